//===- Program.cpp - Command line in, exit code out -----------------------===//

#include "ToolSupport/Commands.h"
#include "ToolSupport/HostTensor.h"

#include <cctype>
#include <cstdio>
#include <new>

namespace ajour::tools {

CLI::Validator checkedBy(std::function<void(const std::string &)> parse) {
  auto check = [parse = std::move(parse)](std::string &value) {
    try {
      parse(value);
    } catch (const ToolError &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  return CLI::Validator(check, "");
}

void printError(const std::exception &error) {
  if (!dynamic_cast<const DiagnosedError *>(&error))
    std::fprintf(stderr, "error: %s\n", error.what());
  else if (*error.what())
    std::fprintf(stderr, "%s\n", error.what());
}

/// An option takes one argument each time that it is given, so that what follows it (the model) is not swallowed.
static void takeOneArgument(CLI::App &app) {
  for (CLI::Option *option : app.get_options())
    if (!option->get_positional())
      option->allow_extra_args(false);
  for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    takeOneArgument(*command);
}

int runProgram(CLI::App &app, int argc, char **argv) {
  takeOneArgument(app);
  try {
    app.parse(argc, argv);
    std::fflush(stdout);
    if (std::ferror(stdout))
      throw ToolError("standard output: cannot write");
    return 0;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    std::string message = error.what();
    if (message.size() > 1 && !std::isupper(static_cast<unsigned char>(message[1])))
      message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
    std::fprintf(stderr, "error: %s\nrun '%s --help' for the options\n", message.c_str(), app.get_name().c_str());
    return 2;
  } catch (const ToolError &error) {
    std::fflush(stdout);
    printError(error);
    return 1;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "error: out of memory\n");
    return 1;
  } catch (const std::exception &error) {
    printError(error);
    return 1;
  }
}

} // namespace ajour::tools
