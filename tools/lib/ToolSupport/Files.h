//===- Files.h - Whole files in, whole files out ----------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_FILES_H
#define AJOUR_TOOLS_FILES_H

#include "ToolSupport/HostTensor.h"

#include <span>

namespace ajour::tools {

using Bytes = std::vector<std::byte>;

/// Reads a file. Throws ToolError if it cannot be read or is larger than `limitBytes`.
Bytes readFile(const std::string &path, uint64_t limitBytes = uint64_t(4) << 30);

/// A file that appears under its name whole or not at all: bytes go to a temporary file in the same directory, which
/// commit() renames. Without a commit nothing remains. What is there already and is no regular file (a terminal, a
/// device) is written to directly.
class OutputFile {
public:
  /// Throws ToolError if the directory cannot be written.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Appends. Throws ToolError.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  /// Puts the file in its place. Throws ToolError.
  void commit();

private:
  std::string path, temporaryPath; // no temporary file: empty
  int descriptor = -1;
};

/// Writes a whole file through an OutputFile.
void writeFile(const std::string &path, std::span<const std::byte> bytes);
void writeFile(const std::string &path, std::string_view text);

/// Lower-case extension of a path without the dot; empty if there is none.
std::string extensionOf(const std::string &path);

/// Last component of a path.
std::string baseName(const std::string &path);

/// Size of a file in bytes, or 0 if it cannot be seen.
uint64_t fileBytes(const std::string &path);

/// The lines of a text file without line ends; a byte order mark and one empty last line are dropped.
std::vector<std::string> readLines(const std::string &path);

} // namespace ajour::tools

#endif
