//===- Files.cpp - Whole files in, whole files out ------------------------===//

#include "ToolSupport/Files.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ajour::tools {

namespace {

[[noreturn]] void failErrno(const std::string &path, const char *what) {
  int error = errno;
  throw ToolError(path + ": " + what + ": " + std::strerror(error));
}

constexpr uint64_t maxPipeBytes = uint64_t(256) << 20;

/// Closes a descriptor at the end of a scope.
struct Closer {
  int descriptor;
  ~Closer() { close(descriptor); }
};

} // namespace

Bytes readFile(const std::string &path, uint64_t limitBytes) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    failErrno(path, "cannot open");
  Closer closer{descriptor};
  struct stat status;
  if (fstat(descriptor, &status) != 0)
    failErrno(path, "cannot read");
  if (S_ISDIR(status.st_mode))
    throw ToolError(path + ": is a directory, expected a file");
  // A device may never end.
  bool isEndless = !S_ISREG(status.st_mode) && limitBytes > maxPipeBytes;
  if (isEndless)
    limitBytes = maxPipeBytes;
  auto tooLarge = [&] {
    return ToolError(path + ": is larger than " + std::to_string(limitBytes) + " bytes" +
                     (isEndless ? ", the most that is read from a pipe or device" : ""));
  };
  Bytes bytes;
  // Pipes and devices report no size, so the size is only a first guess.
  size_t chunk = std::max<size_t>(static_cast<size_t>(std::max<off_t>(status.st_size, 0)) + 1, 65536);
  if (static_cast<uint64_t>(std::max<off_t>(status.st_size, 0)) > limitBytes)
    throw tooLarge();
  for (;;) {
    size_t used = bytes.size();
    bytes.resize(used + chunk);
    ssize_t count = read(descriptor, bytes.data() + used, chunk);
    if (count < 0 && errno == EINTR)
      count = 0;
    else if (count < 0)
      failErrno(path, "cannot read");
    else if (count == 0) {
      bytes.resize(used);
      return bytes;
    }
    bytes.resize(used + static_cast<size_t>(count));
    if (bytes.size() > limitBytes)
      throw tooLarge();
    chunk = 65536;
  }
}

OutputFile::OutputFile(std::string path) : path(std::move(path)) {
  struct stat status;
  if (stat(this->path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // Terminals, pipes and devices are written to, not replaced. A directory says so here.
    descriptor = open(this->path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporaryPath = this->path + ".XXXXXX";
    descriptor = mkostemp(temporaryPath.data(), O_CLOEXEC);
  }
  if (descriptor < 0)
    failErrno(this->path, "cannot write");
}

OutputFile::~OutputFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  if (!temporaryPath.empty())
    unlink(temporaryPath.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failErrno(path, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void OutputFile::commit() {
  // mkostemp makes the file private; an ordinary file has the permissions that the umask leaves.
  mode_t mask = umask(0);
  umask(mask);
  if (!temporaryPath.empty() &&
      (fchmod(descriptor, 0666 & ~mask) != 0 || rename(temporaryPath.c_str(), path.c_str()) != 0))
    failErrno(path, "cannot write");
  int status = close(descriptor);
  descriptor = -1;
  if (status != 0)
    failErrno(path, "cannot write");
}

void writeFile(const std::string &path, std::span<const std::byte> bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

void writeFile(const std::string &path, std::string_view text) {
  writeFile(path, std::as_bytes(std::span(text.data(), text.size())));
}

std::string extensionOf(const std::string &path) {
  std::string name = baseName(path);
  size_t dot = name.rfind('.');
  if (dot == std::string::npos)
    return "";
  std::string extension = name.substr(dot + 1);
  for (char &c : extension)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

std::string baseName(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

uint64_t fileBytes(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

std::vector<std::string> readLines(const std::string &path) {
  Bytes bytes = readFile(path, 64 << 20);
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (text.substr(0, 3) == "\xef\xbb\xbf")
    text.remove_prefix(3);
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    lines.emplace_back(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

} // namespace ajour::tools
