//===- CompileCommand.cpp - ajour compile -----------------------------------===//
#include "Commands.h"
#include "ToolSupport/Files.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Target/CpuTarget.h"
#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ajour.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>

namespace ajour::tools {

namespace {

struct CompileCommand : CompileArguments {
  std::string output;
  std::string emit = "artifact";
  std::string report;
};

/// What is written after a stage instead of an artifact.
std::string emitText(mlir::MLIRContext *context, const CompileCommand &arguments, const CompileOptions &options) {
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
  if (mlir::failed(simplify(*module, options.stages())) || mlir::failed(lowerToExec(*module)))
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

/// --output without an extension, or the model's name in that directory.
std::string staticPrefix(const CompileCommand &arguments) {
  const std::string &output = arguments.output;
  if (output.back() != '/' && !std::filesystem::is_directory(output))
    return output;
  std::string stem = baseName(arguments.model);
  return output + (output.back() == '/' ? "" : "/") + stem.substr(0, stem.rfind('.'));
}

StaticPlatform staticPlatform(const CompileCommand &arguments) {
  if (arguments.targets.empty())
    return StaticPlatform::Linux;
  const std::string &target = arguments.targets[0];
  return target == "arm64-ios"         ? StaticPlatform::IOS
         : target == "aarch64-android" ? StaticPlatform::Android
                                       : StaticPlatform::Linux;
}

/// What --emit, --target and --cpu ask for together.
void checkArguments(const CompileCommand &arguments, const CompileOptions &options) {
  if (arguments.output.empty())
    throw CLI::ValidationError("--output", "is empty, expected a file");
  bool isStatic = arguments.emit == "static";
  if (!arguments.report.empty() && !isStatic && arguments.emit != "artifact")
    throw CLI::ValidationError("--report", "is written of what is compiled whole, not with --emit " + arguments.emit);
  for (const std::string &target : arguments.targets)
    if (target == "arm64-ios" && !isStatic)
      throw CLI::ValidationError("--target", "arm64-ios loads no code from files; give --emit static");
  if (!isStatic)
    return;
  if (arguments.targets.size() > 1)
    throw CLI::ValidationError("--target", "--emit static makes code for one target, not " +
                                               std::to_string(arguments.targets.size()));
  std::set<ajour_arch> archs;
  for (ajour_cpu_level level : options.levels)
    archs.insert(lookupCpuLevel(level)->arch);
  if (archs.size() > 1 || (staticPlatform(arguments) == StaticPlatform::IOS && archs.count(AJOUR_ARCH_X86_64)))
    throw CLI::ValidationError("--cpu", "--emit static makes code for the levels of one architecture, that of --target");
}

/// What is to be written must not be what is read, nor lie there as something else that may be needed (weights of a model kept in
/// other files, for example): an artifact replaces artifacts. Where nothing can be written is said before the work.
void checkOutputs(const CompileCommand &arguments) {
  bool isStatic = arguments.emit == "static", isArtifact = arguments.emit == "artifact";
  std::vector<OutputPath> outputs;
  if (isStatic)
    for (const char *extension : {".ajour", ".o", ".h"})
      outputs.push_back({"--output", staticPrefix(arguments) + extension});
  else
    outputs.push_back({"--output", arguments.output});
  if (arguments.report != "-")
    outputs.push_back({"--report", arguments.report});
  checkOutputPaths(outputs, filesRead(arguments));
  std::error_code error;
  const std::string &artifact = outputs[0].path;
  if (isArtifact && extensionOf(artifact) != "ajour" && std::filesystem::is_regular_file(artifact, error) && fileBytes(artifact) > 0) {
    std::string head(sizeof(AJOUR_ARTIFACT_MAGIC) - 1, '\0');
    std::ifstream(artifact, std::ios::binary).read(head.data(), std::streamsize(head.size()));
    if (head != std::string(AJOUR_ARTIFACT_MAGIC, head.size()))
      throw ToolError("--output " + artifact + ": is there and is no artifact; give another name, or remove it");
  }
  for (const OutputPath &output : outputs)
    if (!output.path.empty())
      checkWritable(output.path);
}

/// As JSON where the file's name says so; "-" is stdout.
void writeReport(const std::string &path, const CompileReport &report) {
  std::string text = extensionOf(path) == "json" ? reportJson(report) : reportText(report);
  if (path == "-")
    std::cout << text;
  else
    writeFile(path, text);
}

void runCompile(const CompileCommand &arguments) {
  CompileOptions options = optionsOf(arguments);
  checkArguments(arguments, options);
  checkOutputs(arguments);
  Progress progress;
  attachProgress(options, progress);
  CompileReport report;
  report.model = baseName(arguments.model);
  if (!arguments.report.empty())
    options.report = &report;
  auto context = makeContext();
  DiagnosticCollector diagnostics(context.get(), arguments.model);
  bool done = true;
  if (arguments.emit == "static") {
    done = mlir::succeeded(compileStatic(context.get(), arguments.model, staticPrefix(arguments), staticPlatform(arguments), options));
  } else if (arguments.emit == "artifact") {
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
    throw DiagnosedError(diagnostics.text());
  if (options.report)
    writeReport(arguments.report, report);
}

} // namespace

bool isModelFile(const std::string &path) {
  std::string extension = extensionOf(path);
  return extension == "onnx" || extension == "tflite" || extension == "gguf" || extension == "safetensors" ||
         std::filesystem::exists(path + "/config.json");
}

void compileForHere(const std::string &model, const std::string &artifact) {
  CompileCommand arguments;
  arguments.model = model;
  arguments.output = artifact;
  runCompile(arguments);
}

void registerCompileCommand(CLI::App &app) {
  auto arguments = std::make_shared<CompileCommand>();
  CLI::App *command = app.add_subcommand("compile", "Make an artifact from a model (ONNX or TFLite)");
  addImportOptions(*command, *arguments);
  addCodeOptions(*command, *arguments);
  command->add_option("-o,--output", arguments->output, "File to write; with --emit static a prefix, or a directory")->required();
  command->add_option("--emit", arguments->emit, "artifact; static (object file, header and artifact for linking); nn, mlir (dispatches) or asm as text")
      ->check(CLI::IsMember({"artifact", "static", "nn", "mlir", "asm"}));
  command->add_option("--report", arguments->report, "File for what became of the model; JSON if it ends in .json, - for stdout");
  command->callback([arguments] { runCompile(*arguments); });
}

} // namespace ajour::tools
