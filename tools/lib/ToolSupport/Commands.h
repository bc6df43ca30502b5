//===- Commands.h - Commands that need the runtime alone --------*- C++ -*-===//
//
// run, inspect and bench, shared by `ajour` and `ajour-run`.
//
//===----------------------------------------------------------------------===//

#ifndef AJOUR_TOOLS_COMMANDS_H
#define AJOUR_TOOLS_COMMANDS_H

#include "ToolSupport/Checks.h"

#include <functional>
#include <string>

namespace ajour::tools {

/// What a program with a compiler adds. Without them only artifacts are accepted.
struct CommandHooks {
  /// True for a file that `compile` takes (by its name or its first bytes).
  std::function<bool(const std::string &path)> isModel;
  /// Compiles a model for this machine into an artifact. Throws ToolError, or prints diagnostics and throws one.
  std::function<void(const std::string &model, const std::string &artifact)> compile;
  /// Prints what `inspect` says of a model. Adds its own options to the command first.
  std::function<void(CLI::App &inspect)> addInspectOptions;
  std::function<void(const std::string &model)> inspect;
};

/// Adds run, inspect and bench. They do their work while `app` parses and throw ToolError.
void registerRuntimeCommands(CLI::App &app, CommandHooks hooks = {});

/// Prints an error to stderr, as "error: MESSAGE" unless it is a DiagnosedError.
void printError(const std::exception &error);

/// Parses the command line, which does the work, and returns the program's exit code: 0 done, 1 the work failed, 2 the command
/// line is wrong. Errors go to stderr.
int runProgram(CLI::App &app, int argc, char **argv);

} // namespace ajour::tools

#endif
