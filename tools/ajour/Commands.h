//===- Commands.h - commands that need the compiler ----------*- C++ -*-===//
#ifndef AJOUR_TOOLS_AJOUR_COMMANDS_H
#define AJOUR_TOOLS_AJOUR_COMMANDS_H

#include "ToolSupport/Commands.h"

namespace ajour::tools {

void registerCompileCommand(CLI::App &app);

/// Compiles a model for this machine with default options (for `run MODEL` and `bench MODEL`).
void compileForHere(const std::string &model, const std::string &artifact);

/// True for a file that can be compiled, by its extension.
bool isModelFile(const std::string &path);

} // namespace ajour::tools

#endif
