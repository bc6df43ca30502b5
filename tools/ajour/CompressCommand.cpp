//===- CompressCommand.cpp - ajour compress ----------------------------------===//
#include "ModelInputs.h"
#include "ToolSupport/Files.h"

#include "mlir/IR/MLIRContext.h"

#include <iostream>
#include <memory>

namespace ajour::tools {

namespace {

struct CompressCommand : CompileArguments {
  std::string recipe, output;
  CalibrationArguments calibration;
};

void runCompress(const CompressCommand &command) {
  Bytes text = readFile(command.recipe, 1 << 20);
  compress::CompressOptions options;
  options.import = optionsOf(command).import;
  options.synthetic = command.calibration.files.empty();
  Progress progress;
  std::string phase;
  options.progress = [&](const std::string &name, int64_t done, int64_t total) {
    if (phase != name) {
      phase = name;
      progress.begin(name, uint64_t(total));
    }
    progress.update(uint64_t(done));
  };
  auto context = makeContext();
  try {
    options.recipe = compress::parseRecipe({reinterpret_cast<const char *>(text.data()), text.size()}, command.recipe);
    options.cost = productCost(options.recipe.cpu);
    options.samples = [&](mlir::ModuleOp module) { return calibrationSamples(module, command.calibration); };
    compress::CompressedModel model = compress::compressModel(context.get(), command.model, options);
    progress.finish();
    writeFile(command.output, model.bytes);
    std::cout << compress::toText(model.report);
  } catch (const compress::ImportFailure &problem) {
    progress.finish();
    throw DiagnosedError(problem.what());
  } catch (const compress::CompressError &problem) {
    progress.finish();
    throw ToolError(problem.what());
  }
}

} // namespace

void registerCompressCommand(CLI::App &app) {
  auto arguments = std::make_shared<CompressCommand>();
  CLI::App *command = app.add_subcommand("compress", "Prune and quantise the weights of a model as a recipe says");
  addImportOptions(*command, *arguments);
  command->add_option("--recipe", arguments->recipe, "Rules in JSON or YAML (docs/COMPRESS.md)")->required()->type_name("FILE");
  command->add_option("-o,--output", arguments->output, "Model file to write, in the format of MODEL")->required();
  addCalibrationOptions(*command, arguments->calibration);
  command->callback([arguments] { runCompress(*arguments); });
}

} // namespace ajour::tools
