//===- main.cpp - ajour: the compiler as a program ------------------------===//
#include "Commands.h"
#include "ajour/ajour.h"

int main(int argc, char **argv) {
  using namespace ajour::tools;
  CLI::App app("Compiles models for devices, runs and measures them", "ajour");
  app.set_version_flag("--version", std::string("ajour ") + ajour_version());
  app.require_subcommand(1);
  registerCompileCommand(app);
  registerVerifyCommand(app);
  CommandHooks hooks;
  hooks.isModel = isModelFile;
  hooks.compile = compileForHere;
  registerRuntimeCommands(app, hooks);
  return runProgram(app, argc, argv);
}
