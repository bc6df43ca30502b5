//===- VerifyCommand.cpp - ajour verify --------------------------------------===//
#include "ModelInputs.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Pipeline/Verify.h"
#include "ajour/Reference/State.h"
#include "ajour/Support/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <iostream>
#include <memory>

namespace ajour::tools {

namespace {

struct VerifyCommand : CompileArguments {
  std::vector<std::string> inputs;
  ImageOptions image;
  uint64_t seed = 1;
  double tolerance = VerifyOptions().tolerance;
  int64_t steps = VerifyOptions().steps;
  uint32_t threads = 1;
  size_t rows = 10;
  int64_t calls = 0;
  bool allLevels = false;
};

std::vector<ajour::HostTensor> readInputs(mlir::ModuleOp module, const VerifyCommand &command) {
  std::vector<TensorInfo> infos = inputsOf(module);
  std::vector<InputFile> files;
  if (command.inputs.empty())
    fixFreeSizes(module, infos);
  else
    files = resolveInputFiles(command.inputs, infos);
  std::vector<ajour::HostTensor> tensors;
  for (size_t i = 0; i < infos.size(); ++i)
    tensors.push_back(toCompilerTensor(files.empty() ? randomInput(infos[i], command.seed + i)
                                                     : loadInput(files[i], infos[i], command.image)));
  return tensors;
}

void runVerify(const VerifyCommand &command) {
  VerifyOptions options;
  options.compile = optionsOf(command);
  options.tolerance = command.tolerance;
  options.steps = command.steps;
  options.allLevels = command.allLevels;
  options.threads = command.threads;
  Progress progress;
  attachProgress(options.compile, progress);
  auto context = makeContext();
  DiagnosticCollector diagnostics(context.get(), command.model);
  auto module = importModel(context.get(), command.model, options.compile.import);
  if (!module)
    throw DiagnosedError(diagnostics.text());
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<ajour::HostTensor> arguments = withInitialStates(main, readInputs(*module, command));
  // What a model with states computes first, from initial values, is not all that it does.
  int64_t calls = command.calls ? command.calls : nn::inputArguments(main).size() == arguments.size() ? 1 : 3;
  for (int64_t call = 0; call < calls; ++call) {
    auto report = verifyModule(*module, arguments, options);
    progress.finish();
    if (mlir::failed(report))
      throw DiagnosedError(diagnostics.text());
    if (calls > 1)
      std::cout << "call " << call + 1 << " of " << calls << "\n";
    std::cout << toText(*report, command.rows);
    if (!report->passed())
      throw ToolError(command.model + ": compiled and reference differ");
    carryStates(main, report->results, arguments);
  }
}

} // namespace

void registerVerifyCommand(CLI::App &app) {
  auto arguments = std::make_shared<VerifyCommand>();
  CLI::App *command =
      app.add_subcommand("verify", "Compare a compiled model with the reference, dispatch by dispatch");
  addImportOptions(*command, *arguments);
  addCodeOptions(*command, *arguments);
  command->add_option("-i,--input", arguments->inputs, "NAME=FILE or FILE (.npy, picture, .wav, raw); default random")
      ->type_name("NAME=FILE");
  addImageOptions(*command, arguments->image);
  command->add_option("--seed", arguments->seed, "Of random inputs")->check(wholeNumber(0, UINT64_MAX));
  command->add_option("--tolerance", arguments->tolerance,
                      "Of floats, relative to the tensor's largest and to the value; default 1e-4")
      ->check(realNumber(0, 1e30));
  command->add_option("--steps", arguments->steps, "Of integers that floats are rounded to; default 1")
      ->check(wholeNumber(0, uint64_t(1) << 62));
  command->add_option("--calls", arguments->calls,
                      "Calls one after the other, each with the state that the one before left; default 3 for a model "
                      "with state, else 1")
      ->check(wholeNumber(1, 1000000))
      ->type_name("N");
  command->add_flag("--all-levels", arguments->allLevels, "Every code level of this machine, not only the best");
  command->add_option("-t,--threads", arguments->threads, "Threads that run the model")->check(CLI::Range(1, 256));
  command->add_option("--rows", arguments->rows, "Dispatches in the table; default 10")->check(wholeNumber(0, 1000000));
  command->callback([arguments] { runVerify(*arguments); });
}

} // namespace ajour::tools
