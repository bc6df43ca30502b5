//===- main.cpp - ajour-run: the runtime as a program ---------------------===//
//
// Runs, inspects and measures artifacts; contains no compiler, so that it can be pushed to a device.
//
//===----------------------------------------------------------------------===//

#include "ToolSupport/Commands.h"
#include "ajour/ajour.h"

int main(int argc, char **argv) {
  CLI::App app("Runs models that ajour compiled", "ajour-run");
  app.set_version_flag("--version", std::string("ajour-run ") + ajour_version());
  app.require_subcommand(1);
  ajour::tools::registerRuntimeCommands(app);
  return ajour::tools::runProgram(app, argc, argv);
}
