//===- Blocks.h - quantised blocks of GGUF tensors --------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_GGUF_BLOCKS_H
#define AJOUR_LIB_IMPORT_GGUF_BLOCKS_H

#include "Reader.h"

namespace ajour::gguf {

/// A quantised tensor as integers with parameters in groups along the last dimension: element = (q - zero) * scale, or of a GGUF file q * scale + offset.
/// All numbers are those of the file. In super-blocks of `run` groups the scale of a group is its code times the super-block's scale, and the offset likewise.
struct Grouped {
  std::vector<int8_t> values;    ///< in the tensor's order
  int64_t group = 0;             ///< elements that share parameters; divides the last dimension
  unsigned bits = 8;             ///< that the values need, as signed or unsigned numbers
  bool isUnsigned = false;
  int64_t run = 0;               ///< groups of a super-block; 0: there are none
  std::vector<float> scales;     ///< [rows][columns / group]; empty where there are halfScales
  std::vector<float> zeroPoints; ///< the same, or empty: all are 0
  std::vector<uint16_t> halfScales; ///< f16, [rows][columns / group], or of super-blocks: [rows][columns / group / run]
  std::vector<uint16_t> offsets;    ///< the same, or empty: all are 0
  std::vector<int8_t> scaleCodes, offsetCodes; ///< [rows][columns / group] where there are super-blocks
};

/// Whether a type is made of quantised blocks (not plain numbers).
bool isQuantized(TensorType type);

/// Unpacks the blocks of a quantised type. `bytes` holds whole blocks. Source of the layouts: the format's published
/// description of its types.
Grouped unpackBlocks(const TypeInfo &type, llvm::ArrayRef<char> bytes);

} // namespace ajour::gguf

#endif
