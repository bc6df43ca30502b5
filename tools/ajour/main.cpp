//===- main.cpp - ajour: the compiler as a program ------------------------===//
#include "Commands.h"
#include "ajour/ajour.h"

int main(int argc, char **argv) {
  using namespace ajour::tools;
  CLI::App app("Compiles models for devices, runs and measures them", "ajour");
  app.set_version_flag("--version", std::string("ajour ") + ajour_version());
  registerCommands(app);
  return runProgram(app, argc, argv);
}
