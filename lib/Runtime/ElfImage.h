/// Loads position-independent ELF code from memory (docs/decisions/0001-own-elf-loader.md).
#ifndef AJOUR_LIB_RUNTIME_ELFIMAGE_H
#define AJOUR_LIB_RUNTIME_ELFIMAGE_H

#include <elf.h>

#include "Support.h"

namespace ajour::runtime {

/// Where the bytes of an executable come from.
struct ElfInput {
  const uint8_t *bytes;
  uint64_t size;
  int file;             ///< descriptor to map read-only parts from, or -1
  uint64_t fileOffset;  ///< place of bytes[0] in it
  uint32_t arch;        ///< ajour_arch that the code must be for
  const char *where;    ///< how messages call it
};

/// A loaded executable. Accepts only self-contained ET_DYN files: no libraries, thread-local storage,
/// initialisers or undefined symbols. All bytes are untrusted.
class ElfImage {
public:
  ElfImage() = default;
  ElfImage(const ElfImage &) = delete;
  ElfImage &operator=(const ElfImage &) = delete;
  ~ElfImage();

  ajour_status_code load(const ElfInput &input);

  /// Address of a defined function, or null.
  void *findFunction(const char *name);

  /// Bytes of address space in use.
  uint64_t size() const { return span; }

private:
  struct Segment {
    uint64_t address, memorySize, offset, fileSize;
    uint32_t flags;
  };
  struct Dynamic {
    uint64_t hash, symbols, strings, stringsSize, relocations, relocationsSize, jumps, jumpsSize;
  };

  ajour_status_code readHeaders(const ElfInput &input);
  ajour_status_code readSegment(const ElfInput &input, const Elf64_Phdr &header, uint64_t &end);
  ajour_status_code mapSegments(const ElfInput &input);
  ajour_status_code readDynamic(const ElfInput &input);
  ajour_status_code checkSymbolTables(const ElfInput &input);
  ajour_status_code relocate(const ElfInput &input, uint64_t table, uint64_t size);
  ajour_status_code protect(const ElfInput &input);
  const Segment *segmentOf(uint64_t address, uint64_t bytes, uint32_t flags) const;
  template <typename T> T at(uint64_t address) const {
    T value;
    std::memcpy(&value, base + address, sizeof(T));
    return value;
  }

  static constexpr uint32_t maxSegments = 16;
  uint8_t *base = nullptr;
  uint64_t span = 0;
  uint64_t pageSize = 4096;
  Segment segments[maxSegments];
  uint32_t segmentCount = 0;
  uint64_t dynamicAddress = 0, dynamicSize = 0;
  uint64_t relroAddress = 0, relroSize = 0;
  Dynamic dynamic = {};
  uint32_t bucketCount = 0, symbolCount = 0;
  uint64_t lookupSteps = 0;
};

} // namespace ajour::runtime

#endif
