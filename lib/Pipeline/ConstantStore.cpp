//===- ConstantStore.cpp - an artifact's constants while it is made ------------------===//
#include "ConstantStore.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace ajour {

static constexpr uint64_t alignment = 64;
static constexpr uint64_t mostInMemory = 64 << 20;

ConstantStore::~ConstantStore() {
  if (file >= 0)
    close(file);
}

/// Writes all of it, or says that it cannot.
static bool writeAll(int file, const char *data, size_t size, uint64_t place) {
  while (size > 0) {
    ssize_t count = pwrite(file, data, size, static_cast<off_t>(place));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    data += count;
    size -= static_cast<size_t>(count);
    place += static_cast<uint64_t>(count);
  }
  return true;
}

bool ConstantStore::spill(const std::vector<char> &bytes) {
  if (file < 0) {
    llvm::SmallString<128> path;
    if (llvm::sys::fs::createUniqueFile(directory + "/.ajour-%%%%%%%%.constants", file, path)) {
      file = -1;
      return false;
    }
    // It lives as long as it is open.
    llvm::sys::fs::remove(path);
  }
  if (!writeAll(file, bytes.data(), bytes.size(), inFile))
    return false;
  inFile += bytes.size();
  return true;
}

uint64_t ConstantStore::append(std::vector<char> bytes) {
  uint64_t offset = llvm::alignTo(total, alignment), size = bytes.size(), place = inFile;
  total = offset + size;
  if (inMemory + size > mostInMemory) {
    // Where no file can be made the artifact cannot be written either, and whoever writes it says why.
    failed = failed || !spill(bytes);
    bytes = std::vector<char>();
  } else {
    inMemory += size;
  }
  pieces.push_back({offset, size, std::move(bytes), place});
  return offset;
}

bool ConstantStore::read(uint64_t offset, void *to, size_t bytes) const {
  if (failed)
    return false;
  std::memset(to, 0, bytes);
  auto piece = llvm::upper_bound(pieces, offset, [](uint64_t at, const Piece &p) { return at < p.offset; });
  if (piece != pieces.begin())
    --piece;
  for (; piece != pieces.end() && piece->offset < offset + bytes; ++piece) {
    uint64_t from = std::max(offset, piece->offset), end = std::min(offset + bytes, piece->offset + piece->size);
    if (from >= end)
      continue;
    char *target = static_cast<char *>(to) + (from - offset);
    uint64_t within = from - piece->offset, count = end - from;
    if (!piece->bytes.empty()) {
      std::memcpy(target, piece->bytes.data() + within, count);
      continue;
    }
    while (count > 0) {
      ssize_t got = pread(file, target, count, static_cast<off_t>(piece->place + within));
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        return false;
      target += got;
      within += static_cast<uint64_t>(got);
      count -= static_cast<uint64_t>(got);
    }
  }
  return true;
}

} // namespace ajour
