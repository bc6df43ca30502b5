/// The bytes of an artifact: mapped, read or lent.
#ifndef AJOUR_LIB_RUNTIME_BYTESOURCE_H
#define AJOUR_LIB_RUNTIME_BYTESOURCE_H

#include "Support.h"

namespace ajour::runtime {

/// Bytes of one artifact. While a descriptor is open, parts can be mapped again with other rights.
class ByteSource {
public:
  ByteSource() = default;
  ByteSource(const ByteSource &) = delete;
  ByteSource &operator=(const ByteSource &) = delete;
  ~ByteSource();

  /// Opens a path; `name` is how messages call it.
  ajour_status_code openPath(const char *path, const char *name, bool copy);
  /// Takes [offset, offset + size) of an open file; size 0: up to its end.
  ajour_status_code openDescriptor(int descriptor, uint64_t offset, uint64_t size, const char *name, bool copy);
  /// Lends memory, or copies it.
  ajour_status_code openMemory(const void *memory, size_t size, const char *name, bool copy);

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return byteCount; }
  bool isMapped() const { return mapping != nullptr; }
  /// The open file and the place of byte 0 in it; -1 when there is none to map from.
  int descriptor() const { return file; }
  uint64_t fileOffset() const { return startInFile; }
  /// Closes the descriptor; the bytes stay.
  void closeDescriptor();

private:
  ajour_status_code readAll(const char *name);

  const uint8_t *bytes = nullptr;
  uint64_t byteCount = 0;
  int file = -1;
  uint64_t startInFile = 0;
  void *mapping = nullptr;
  size_t mappingSize = 0;
  AlignedMemory owned;
};

} // namespace ajour::runtime

#endif
