//===- Blocks.h - quantised blocks of GGUF tensors --------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_GGUF_BLOCKS_H
#define AJOUR_LIB_IMPORT_GGUF_BLOCKS_H

#include "Reader.h"

namespace ajour::gguf {

/// A quantised tensor as integers with parameters in groups along the last dimension: element = (q - zero) * scale. Values are
/// those of the file; where it says q * scale + offset, zero is -offset / scale.
struct Grouped {
  std::vector<int8_t> values;    ///< in the tensor's order
  int64_t group = 0;             ///< elements that share parameters; divides the last dimension
  unsigned bits = 8;             ///< that the values need, as signed or unsigned numbers
  bool isUnsigned = false;
  std::vector<float> scales;     ///< [rows][columns / group]
  std::vector<float> zeroPoints; ///< the same, or empty: all are 0
};

/// Whether a type is made of quantised blocks (not plain numbers).
bool isQuantized(TensorType type);

/// Unpacks the blocks of a quantised type. `bytes` holds whole blocks. Source of the layouts: the format's published
/// description of its types.
Grouped unpackBlocks(const TypeInfo &type, llvm::ArrayRef<char> bytes);

} // namespace ajour::gguf

#endif
