//===- Commands.h - commands that need the compiler ----------*- C++ -*-===//
#ifndef AJOUR_TOOLS_AJOUR_COMMANDS_H
#define AJOUR_TOOLS_AJOUR_COMMANDS_H

#include "ToolSupport/Commands.h"
#include "ToolSupport/Progress.h"
#include "ajour/Pipeline/Compile.h"

namespace ajour::tools {

/// What the command line says of how a model is compiled.
struct CompileArguments {
  std::string model;
  std::vector<std::string> targets, cpus, dims, bindings, caches;
  unsigned optimization = 3;
  bool allowNewerOpset = false, floatProducts = false, winograd = true, sparse = true;
};

/// Adds the model and those options to a command.
void addImportOptions(CLI::App &command, CompileArguments &arguments);
/// The former without the model.
void addImportSettings(CLI::App &command, CompileArguments &arguments);
void addCodeOptions(CLI::App &command, CompileArguments &arguments);

/// The compiler's options. Reads the files of --bind. Throws ToolError.
CompileOptions optionsOf(const CompileArguments &arguments);

/// The model and the files of --bind.
std::vector<std::string> filesRead(const CompileArguments &arguments);

/// Shows the phases of work as they come.
void attachProgress(CompileOptions &options, Progress &progress);

void registerCompileCommand(CLI::App &app);
void registerVerifyCommand(CLI::App &app);
void registerTokenizeCommand(CLI::App &app);
void registerCompressCommand(CLI::App &app);
/// Lets `inspect` read models.
void addInspectHooks(CommandHooks &hooks);
/// Adds every command.
void registerCommands(CLI::App &app);

/// Compiles a model for this machine with default options (for `run MODEL` and `bench MODEL`).
void compileForHere(const std::string &model, const std::string &artifact);

/// True for a file that can be compiled, by its extension.
bool isModelFile(const std::string &path);

} // namespace ajour::tools

#endif
