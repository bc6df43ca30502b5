//===- Program.cpp - Command line in, exit code out -----------------------===//

#include "ToolSupport/Commands.h"
#include "ToolSupport/HostTensor.h"
#include "ajour/Support/Printable.h"

#include <cctype>
#include <csignal>
#include <cstdio>
#include <new>

namespace ajour::tools {

void printError(const std::exception &error) {
  if (!dynamic_cast<const DiagnosedError *>(&error))
    std::fprintf(stderr, "error: %s\n", printable(error.what(), /*keepLines=*/true).c_str());
  else if (*error.what())
    std::fprintf(stderr, "%s\n", printable(error.what(), /*keepLines=*/true).c_str());
}

/// An option takes one argument each time that it is given, so that what follows it (the model) is not swallowed.
static void takeOneArgument(CLI::App &app) {
  for (CLI::Option *option : app.get_options())
    if (!option->get_positional())
      option->allow_extra_args(false);
  for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    takeOneArgument(*command);
}

/// What an error of the command line says.
static std::string messageOf(const CLI::ParseError &error, const CLI::App &app) {
  std::vector<std::string> rest = app.remaining();
  if (app.get_subcommands().empty() && !rest.empty() && rest[0].rfind('-', 0) != 0) {
    std::string known;
    for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
      known += (known.empty() ? "" : ", ") + command->get_name();
    return "there is no command '" + rest[0] + "'; there are " + known;
  }
  std::string message = error.what();
  if (message.size() > 1 && !std::isupper(static_cast<unsigned char>(message[1])))
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  // CLI11 puts the option in front of what a check says, which may name it itself.
  size_t colon = message.find(": ");
  if (colon != std::string::npos && colon > 0 && message.compare(colon + 2, colon, message, 0, colon) == 0)
    message.erase(0, colon + 2);
  return message;
}

int runProgram(CLI::App &app, int argc, char **argv) {
  takeOneArgument(app);
  // A file that would become larger than its user may make it is an error of writing, which is reported and cleaned up.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    app.parse(argc, argv);
    std::fflush(stdout);
    if (std::ferror(stdout))
      throw ToolError("standard output: cannot write");
    return 0;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    std::string program = app.get_name();
    for (const CLI::App *command : app.get_subcommands())
      program += " " + command->get_name();
    std::fprintf(stderr, "error: %s\nrun '%s --help' for the options\n", printable(messageOf(error, app)).c_str(), program.c_str());
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
