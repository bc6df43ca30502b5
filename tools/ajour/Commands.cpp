//===- Commands.cpp - all commands of ajour -----------------------------------===//
#include "Commands.h"

namespace ajour::tools {

void registerCommands(CLI::App &app) {
  app.require_subcommand(1);
  registerCompileCommand(app);
  registerVerifyCommand(app);
  registerTokenizeCommand(app);
  registerCompressCommand(app);
  CommandHooks hooks;
  hooks.isModel = isModelFile;
  hooks.compile = compileForHere;
  addInspectHooks(hooks);
  registerRuntimeCommands(app, hooks);
}

} // namespace ajour::tools
