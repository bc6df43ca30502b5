//===- Checks.cpp - What a command line says, checked before work ---------===//

#include "ToolSupport/Checks.h"

#include <cfloat>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace ajour::tools {

namespace fs = std::filesystem;

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

CLI::Validator wholeNumber(uint64_t least, uint64_t most) {
  std::string range = std::to_string(least) + " to " + std::to_string(most);
  auto check = [=](std::string &text) {
    uint64_t value = 0;
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value);
    bool good = error == std::errc() && stop == end && value >= least && value <= most;
    return good ? std::string() : "'" + text + "' is no whole number from " + range;
  };
  return CLI::Validator(check, range);
}

/// `what` is said of the numbers that are taken.
static CLI::Validator numberCheck(std::function<bool(double)> taken, const std::string &what) {
  auto check = [=](std::string &text) {
    double value = 0;
    bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && taken(value);
    return good ? std::string() : "'" + text + "' is no " + what;
  };
  return CLI::Validator(check, "");
}

CLI::Validator realNumber(double least, double most, bool open) {
  auto plain = [](double value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
  };
  std::string what = (open ? "number above " : "number of at least ") + plain(least);
  if (most < FLT_MAX)
    what += " and at most " + plain(most);
  return numberCheck([=](double v) { return (open ? v > least : v >= least) && v <= most; }, what);
}

CLI::Validator finiteNumber() {
  return numberCheck([](double v) { return std::fabs(v) <= FLT_MAX; }, "finite number");
}

/// Whether two paths lead to the same place, be it there or not.
static bool isSame(const std::string &a, const std::string &b) {
  std::error_code error;
  if (fs::equivalent(a, b, error))
    return true;
  return !fs::exists(a, error) && !fs::exists(b, error) && fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

/// Terminals, pipes and devices are written to, not replaced.
static bool isReplaced(const std::string &path) {
  struct stat status;
  return !path.empty() && (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode));
}

/// A file, or the files in a folder.
static std::vector<std::string> filesAt(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    files.push_back(entry->path().string());
  return files;
}

void checkOutputPaths(const std::vector<OutputPath> &outputs, const std::vector<std::string> &inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPath &output = outputs[i];
    if (!isReplaced(output.path))
      continue;
    for (const std::string &input : inputs)
      for (const std::string &file : filesAt(input))
        if (isSame(output.path, file))
          throw ToolError(output.option + " " + output.path + ": would overwrite a file that is read; give another name");
    for (size_t k = 0; k < i; ++k)
      if (isReplaced(outputs[k].path) && isSame(output.path, outputs[k].path))
        throw ToolError(output.option + " " + output.path + ": would overwrite what " + outputs[k].option +
                        " writes; give another name");
  }
}

void checkWritable(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      throw ToolError(path + ": cannot write: Is a directory");
    return;
  }
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (stat(folder.c_str(), &status) != 0 || access(folder.c_str(), W_OK | X_OK) != 0)
    throw ToolError(path + ": cannot write: " + std::strerror(errno));
}

} // namespace ajour::tools
