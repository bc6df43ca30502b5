//===- CompileCommand.cpp - ajour compile -----------------------------------===//
#include "Commands.h"
#include "ToolSupport/Files.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Progress.h"
#include "ajour/Pipeline/Compile.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Target/CpuTarget.h"
#include "ajour/ajour.h"

#include "mlir/IR/MLIRContext.h"

#include <iostream>
#include <memory>
#include <sstream>

namespace ajour::tools {

namespace {

struct CompileArguments {
  std::string model, output;
  std::vector<std::string> targets, cpus, dims, bindings;
  std::string emit = "artifact";
  unsigned optimization = 3;
  bool allowNewerOpset = false;
};

/// The CPU levels that --target and --cpu name.
std::vector<ajour_cpu_level> levelsOf(const CompileArguments &arguments) {
  std::vector<ajour_cpu_level> levels;
  for (const std::string &target : arguments.targets) {
    if (target == "host")
      continue;
    ajour_arch arch = target == "x86-64" ? AJOUR_ARCH_X86_64 : AJOUR_ARCH_AARCH64;
    for (const CpuLevelInfo &info : cpuLevels())
      if (info.arch == arch)
        levels.push_back(info.level);
  }
  if (arguments.cpus.empty())
    return levels;
  levels.clear();
  for (const std::string &cpu : arguments.cpus)
    for (const CpuLevelInfo &info : cpuLevels())
      if (cpu == info.name)
        levels.push_back(info.level);
  return levels;
}

DimBounds parseBounds(const std::string &text) {
  DimBounds bounds;
  size_t dots = text.find("..");
  auto number = [&](const std::string &digits) {
    size_t used = 0;
    int64_t value = -1;
    try {
      value = std::stoll(digits, &used);
    } catch (const std::exception &) {
    }
    if (used != digits.size() || digits.empty() || value < 0)
      throw CLI::ValidationError("--dim", "'" + text + "' is neither a size nor MIN..MAX");
    return value;
  };
  if (dots == std::string::npos) {
    bounds.min = bounds.max = number(text);
  } else {
    bounds.min = number(text.substr(0, dots));
    bounds.max = number(text.substr(dots + 2));
  }
  return bounds;
}

std::pair<std::string, std::string> splitNamed(const std::string &option, const std::string &text) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw CLI::ValidationError(option, "'" + text + "' is not NAME=VALUE");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

CompileOptions optionsOf(const CompileArguments &arguments) {
  CompileOptions options;
  options.levels = levelsOf(arguments);
  options.optimization = arguments.optimization;
  options.import.allowNewerOpset = arguments.allowNewerOpset;
  for (const std::string &text : arguments.dims) {
    auto [name, value] = splitNamed("--dim", text);
    options.import.dims[name] = parseBounds(value);
  }
  for (const std::string &text : arguments.bindings) {
    auto [name, file] = splitNamed("--bind", text);
    tools::HostTensor array = readNpy(file);
    ajour::HostTensor tensor;
    tensor.elementType = array.type;
    tensor.shape = array.shape;
    const char *bytes = reinterpret_cast<const char *>(array.data.data());
    tensor.data.assign(bytes, bytes + array.data.size());
    options.import.bindings[name] = std::move(tensor);
  }
  return options;
}

/// Shows phases as they come.
void attachProgress(CompileOptions &options, Progress &progress) {
  auto phase = std::make_shared<std::string>();
  options.progress = [&progress, phase](const char *name, int64_t done, int64_t total) {
    if (*phase != name) {
      *phase = name;
      progress.begin(name, total);
    }
    progress.update(done);
  };
  options.import.progress = options.progress;
}

/// What is written after a stage instead of an artifact.
std::string emitText(mlir::MLIRContext *context, const CompileArguments &arguments, const CompileOptions &options) {
  auto module = importModel(context, arguments.model, options.import);
  if (!module)
    return {};
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
  if (arguments.emit == "nn") {
    module->print(os, flags);
    return text;
  }
  int stages = options.optimization == 0 ? 0 : options.simplifyStages;
  if (mlir::failed(simplify(*module, stages)) || mlir::failed(lowerToExec(*module)))
    return {};
  if (arguments.emit == "mlir") {
    module->print(os, flags);
    return text;
  }
  std::vector<ajour_cpu_level> levels = options.levels;
  if (levels.empty())
    for (const CpuLevelInfo &info : cpuLevels())
      if (std::string(ajour_cpu_level_name()) == info.name)
        levels.push_back(info.level);
  for (ajour_cpu_level level : levels) {
    auto assembly = emitAssembly(*module, level, options);
    if (mlir::failed(assembly))
      return {};
    os << *assembly;
  }
  return text;
}

void runCompile(const CompileArguments &arguments) {
  CompileOptions options = optionsOf(arguments);
  Progress progress;
  attachProgress(options, progress);
  auto context = makeContext();
  DiagnosticCollector diagnostics(context.get(), arguments.model);
  bool done = true;
  if (arguments.emit == "artifact") {
    done = mlir::succeeded(compileModel(context.get(), arguments.model, arguments.output, options));
  } else {
    std::string text = emitText(context.get(), arguments, options);
    done = !text.empty() && diagnostics.errors().empty();
    if (done)
      writeFile(arguments.output, text);
  }
  progress.finish();
  for (const std::string &note : diagnostics.notes())
    std::cerr << note << "\n";
  if (!done)
    throw ToolError(diagnostics.text());
}

} // namespace

bool isModelFile(const std::string &path) {
  std::string extension = extensionOf(path);
  return extension == "onnx" || extension == "tflite";
}

void compileForHere(const std::string &model, const std::string &artifact) {
  CompileArguments arguments;
  arguments.model = model;
  arguments.output = artifact;
  runCompile(arguments);
}

void registerCompileCommand(CLI::App &app) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App *command = app.add_subcommand("compile", "Make an artifact from a model (ONNX or TFLite)");
  command->add_option("model", arguments->model, "Model file")->required();
  command->add_option("-o,--output", arguments->output, "File to write")->required();
  command->add_option("--target", arguments->targets, "host, x86-64 or aarch64-linux; several separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"host", "x86-64", "aarch64-linux", "aarch64-android"}));
  std::vector<std::string> names;
  for (const CpuLevelInfo &info : cpuLevels())
    names.push_back(info.name);
  command->add_option("--cpu", arguments->cpus, "Only these code levels: avx2, avx512, avx512vnni, neon, dotprod, i8mm")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  command->add_option("--dim", arguments->dims, "NAME=SIZE or NAME=MIN..MAX of a symbolic dimension")
      ->check(checkedBy([](const std::string &text) { parseBounds(splitNamed("--dim", text).second); }));
  command->add_option("--bind", arguments->bindings, "NAME=FILE.npy makes an input a constant");
  command->add_option("--emit", arguments->emit, "artifact; nn, mlir (dispatches) or asm as text")
      ->check(CLI::IsMember({"artifact", "nn", "mlir", "asm"}));
  command->add_option("-O", arguments->optimization, "Optimisation level 0 to 3")->check(CLI::Range(0, 3));
  command->add_flag("--allow-newer-opset", arguments->allowNewerOpset,
                    "Read operator sets newer than the newest known one as that one");
  command->callback([arguments] { runCompile(*arguments); });
}

} // namespace ajour::tools
