//===- ConstantStore.h - an artifact's constants while it is made -*- C++ -*-===//
#ifndef AJOUR_LIB_PIPELINE_CONSTANTSTORE_H
#define AJOUR_LIB_PIPELINE_CONSTANTSTORE_H

#include <cstdint>
#include <string>
#include <vector>

namespace ajour {

/// Packed constants one behind the other. Up to 64 MiB stay in memory; what comes after that goes to a file without a name, so that a model
/// larger than memory can be compiled.
class ConstantStore {
public:
  /// `directory` is where the file is made, when it is needed; it should be on the disk that the artifact is written to.
  explicit ConstantStore(std::string directory) : directory(std::move(directory)) {}
  ~ConstantStore();
  ConstantStore(const ConstantStore &) = delete;
  ConstantStore &operator=(const ConstantStore &) = delete;

  /// Appends one at the next aligned place and returns the place.
  uint64_t append(std::vector<char> bytes);
  /// Bytes so far, gaps included.
  uint64_t size() const { return total; }
  /// Copies from a place on; gaps read as zeros. False: the file cannot be read, or could not be written.
  bool read(uint64_t offset, void *to, size_t bytes) const;

private:
  bool spill(const std::vector<char> &bytes);

  struct Piece {
    uint64_t offset, size;
    std::vector<char> bytes; ///< empty: in the file
    uint64_t place = 0;      ///< in the file
  };
  std::string directory;
  std::vector<Piece> pieces;
  uint64_t total = 0, inMemory = 0, inFile = 0;
  int file = -1;
  bool failed = false;
};

} // namespace ajour

#endif
