//===- Npz.cpp - NumPy archives with expected values ----------------------===//

#include "Tools/Npz.h"

#include <cstring>

#define STBI_NO_STDIO
#include <stb/stb_image.h>

namespace ajour::tools {

std::map<std::string, HostTensor> readNpz(const std::string &path) {
  Bytes bytes = readFile(path);
  auto integer = [&](size_t offset, size_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset)
      throw ToolError(path + ": the archive is cut off");
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value |= static_cast<uint64_t>(bytes[offset + i]) << (8 * i);
    return value;
  };
  // The end record is last and has no comment in files that NumPy writes.
  if (bytes.size() < 22 || integer(bytes.size() - 22, 4) != 0x06054b50)
    throw ToolError(path + ": not an .npz file");
  uint64_t count = integer(bytes.size() - 12, 2), entry = integer(bytes.size() - 6, 4);
  std::map<std::string, HostTensor> arrays;
  for (uint64_t i = 0; i < count; ++i) {
    if (integer(entry, 4) != 0x02014b50)
      throw ToolError(path + ": the archive's directory is damaged");
    uint64_t method = integer(entry + 10, 2), packed = integer(entry + 20, 4), size = integer(entry + 24, 4);
    uint64_t nameLength = integer(entry + 28, 2), local = integer(entry + 42, 4);
    integer(entry + 46, 0);
    std::string name;
    for (uint64_t k = 0; k < nameLength; ++k)
      name += static_cast<char>(integer(entry + 46 + k, 1));
    uint64_t data = local + 30 + integer(local + 26, 2) + integer(local + 28, 2);
    if (data > bytes.size() || packed > bytes.size() - data)
      throw ToolError(path + ": " + name + " is cut off");
    Bytes unpacked(size);
    if (method == 8) {
      // The decoder looks for 16 bits at a time and gives up where the last code has fewer, so zeros follow.
      Bytes padded(bytes.begin() + static_cast<ptrdiff_t>(data), bytes.begin() + static_cast<ptrdiff_t>(data + packed));
      padded.resize(packed + 4);
      int length = stbi_zlib_decode_noheader_buffer(reinterpret_cast<char *>(unpacked.data()), static_cast<int>(size),
                                                    reinterpret_cast<const char *>(padded.data()),
                                                    static_cast<int>(padded.size()));
      if (length < 0 || static_cast<uint64_t>(length) != size)
        throw ToolError(path + ": " + name + " cannot be unpacked");
    } else {
      std::memcpy(unpacked.data(), bytes.data() + data, std::min(size, packed));
    }
    if (name.size() > 4 && name.substr(name.size() - 4) == ".npy")
      name.resize(name.size() - 4);
    arrays.emplace(name, parseNpy(unpacked, path + ":" + name));
    entry += 46 + nameLength + integer(entry + 30, 2) + integer(entry + 32, 2);
  }
  return arrays;
}

} // namespace ajour::tools
