//===- Checks.h - What a command line says, checked before work --*- C++ -*-===//

#ifndef AJOUR_TOOLS_CHECKS_H
#define AJOUR_TOOLS_CHECKS_H

#include "ToolSupport/HostTensor.h"

#include <CLI/CLI.hpp>

namespace ajour::tools {

/// An option's check that makes whatever ToolError `parse` throws an error of the command line.
CLI::Validator checkedBy(std::function<void(const std::string &)> parse);

/// Digits alone, from `least` to `most`. (Conversion alone takes -1 for the largest number, and what is too large too.)
CLI::Validator wholeNumber(uint64_t least, uint64_t most);

/// A finite number from `least` to `most`, both within what a float holds. `open` leaves out `least`.
CLI::Validator realNumber(double least, double most, bool open = false);
/// Any finite number.
CLI::Validator finiteNumber();

/// A file that a command is going to write, and the option that names it. An empty path is none.
struct OutputPath {
  std::string option, path;
};

/// Checks before any work that no output is one of the files that the command reads, and none is written twice. A folder
/// among the inputs stands for the files in it. Paths may be links to each other. Throws ToolError.
void checkOutputPaths(const std::vector<OutputPath> &outputs, const std::vector<std::string> &inputs);

/// Checks before long work that a file can be put there: its folder exists and it is no folder itself. Throws ToolError.
void checkWritable(const std::string &path);

} // namespace ajour::tools

#endif
