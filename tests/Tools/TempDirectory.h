//===- TempDirectory.h - A directory for the files of a test ----*- C++ -*-===//

#ifndef AJOUR_TESTS_TOOLS_TEMPDIRECTORY_H
#define AJOUR_TESTS_TOOLS_TEMPDIRECTORY_H

#include "ToolSupport/Files.h"

#include <filesystem>
#include <stdlib.h>

namespace ajour::tools {

/// Removed with everything in it at the end.
struct TempDirectory {
  TempDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "ajour-test.XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw ToolError("cannot make a temporary directory");
    path = name;
  }
  ~TempDirectory() { std::filesystem::remove_all(path); }

  std::string file(const std::string &name) const { return path + "/" + name; }

  std::string path;
};

/// The message of the ToolError that `work` throws; "nothing thrown" if none.
template <typename Work> std::string messageOf(Work work) {
  try {
    work();
  } catch (const ToolError &error) {
    return error.what();
  }
  return "nothing thrown";
}

/// Bytes of a string literal, embedded zeros included.
inline Bytes bytesOf(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return Bytes(bytes.begin(), bytes.end());
}

} // namespace ajour::tools

#endif
