//===- CompressCommand.cpp - ajour compress ----------------------------------===//
#include "ModelInputs.h"
#include "ToolSupport/Files.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>
#include <iostream>
#include <memory>

namespace ajour::tools {

namespace {

struct CompressCommand : CompileArguments {
  std::string recipe, output;
  CalibrationArguments calibration;
};

/// A folder gets the model's other files as well: its configuration and tokenizer.
void writeModel(const CompressCommand &command, const std::string &bytes) {
  namespace fs = std::filesystem;
  fs::path from = command.model;
  bool isFolder = fs::is_directory(from);
  if (!isFolder || extensionOf(command.output) == "safetensors")
    return writeFile(command.output, bytes);
  std::error_code error;
  fs::create_directories(command.output, error);
  if (error)
    throw ToolError(command.output + ": cannot be made a folder: " + error.message());
  for (const fs::directory_entry &entry : fs::directory_iterator(from)) {
    std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && extensionOf(name) == "json" && name != "model.safetensors.index.json")
      writeFile((fs::path(command.output) / name).string(), readFile(entry.path().string()));
  }
  writeFile((fs::path(command.output) / "model.safetensors").string(), bytes);
}

/// Before the work, which takes long.
void checkOutput(const CompressCommand &command) {
  namespace fs = std::filesystem;
  std::vector<std::string> inputs = filesRead(command);
  inputs.push_back(command.recipe);
  for (const std::string &spec : command.calibration.files) // with and without NAME= in front
    inputs.insert(inputs.end(), {spec, spec.substr(spec.find('=') + 1)});
  std::string from = extensionOf(command.model), to = extensionOf(command.output);
  std::error_code error;
  bool isFolder = fs::is_directory(command.model, error);
  if (isFolder && to != "safetensors") {
    if (fs::equivalent(command.model, command.output, error))
      throw ToolError("--output " + command.output + ": would overwrite the model that is read; give another folder");
    if (fs::exists(command.output, error) && !fs::is_directory(command.output, error))
      throw ToolError("--output " + command.output + ": is a file, expected a folder like the model");
    return;
  }
  if (!isFolder && isModelFile(command.model) && isModelFile(command.output) && from != to)
    throw ToolError("--output " + command.output + ": is named like a model of another format, and ." + from + " is written");
  checkOutputPaths({{"--output", command.output}}, inputs);
  checkWritable(command.output);
}

void runCompress(const CompressCommand &command) {
  checkOutput(command);
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
    writeModel(command, model.bytes);
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
  command->add_option("-o,--output", arguments->output, "Model file to write, in the format of MODEL; a folder for a folder")->required();
  addCalibrationOptions(*command, arguments->calibration);
  command->callback([arguments] { runCompress(*arguments); });
}

} // namespace ajour::tools
