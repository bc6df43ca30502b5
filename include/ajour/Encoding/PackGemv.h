/// Packing of weights into the blocks of 16 output rows that the matrix-vector kernels read (ajour/Kernels/Kernels.h:
/// gemv_*, compress_*). A weight is a structure (which columns a row keeps) times values (how a kept weight is
/// written).
///
/// A block is one stream of bytes, read once and in order, and a multiple of 64 bytes long:
///   which columns the patterns of its rows keep, padded to 64 bytes:
///     Dense: nothing
///     C4n: codes of ceil(k / 64) times 64 columns, all patterns together (compress_c4_8bit)
///     Columns: for each pattern a mask of one bit a column, ceil(k / 8) bytes padded to 8 (compress_8bit,
///     compress_f32)
///   the values as the kernel of their type reads them; absent columns and rows are zero.
/// The block of rows [16 b, 16 b + 16) begins at b * gemvBlockBytes for Dense and C4n. For Columns, whose blocks keep
/// different numbers of columns, the packed bytes begin with two int64 for each block: where it begins, and how many
/// kept columns a group has in it (a matrix without groups is one group).
#ifndef AJOUR_ENCODING_PACKGEMV_H
#define AJOUR_ENCODING_PACKGEMV_H

#include <cstdint>
#include <optional>
#include <vector>

#include "ajour/Encoding/Packing.h"

namespace ajour::encoding {

struct GemvFormat {
  enum Structure { Dense, C4n, Columns } structure = Dense;
  enum Values {
    F32,
    F16, ///< f32 weights rounded to the nearest
    I8,  ///< exact products; s8
    Q8,  ///< quantised in groups, 8 bits
    Q4,  ///< quantised in groups, 4 bits
    Q2,  ///< 2 bits
    Q5,  ///< 5 bits
    Q6,  ///< 6 bits
  } values = F32;
  int64_t patterns = 1;    ///< in a block: 1, 2 or 4, so that 16, 8 or 4 neighbouring rows keep the same columns
  int64_t kept = 4;        ///< C4n: of each 4 columns, 1 to 3
  int64_t group = 0;       ///< of quantised values: columns of a group, a multiple of gemvStep (C4n: what is kept of it)
  int64_t run = 0;         ///< groups whose scales (and offsets) are codes with common scales; then k is a multiple of run * group; 0: none
  bool halfScales = true;  ///< scales as f16, else f32
  bool zeroPoints = false; ///< each row of a group has one
  bool offsets = false;    ///< each row of a group has a number that is added to its weights
  bool isUnsigned = false; ///< the zero point is 0; else, without zero points, 2^(bits - 1)
  bool signed8 = false;    ///< Q8 stored signed (AArch64); then without zero points
};

/// How the numbers of a format follow from the number of columns.
struct GemvSizes {
  int64_t groups;     ///< 1 for values without groups
  int64_t groupKept;  ///< kept columns of a group as the kernel counts them; Columns: differs by block, here 0
  int64_t codeBytes;  ///< at the start of a block
  int64_t blockBytes; ///< Columns: 0
  int64_t blocks;
};
GemvSizes gemvSizes(const GemvFormat &format, int64_t k, int64_t n);

/// The bytes of one group of a block that keeps `groupKept` columns of it, and of the scales behind a run of groups (0 without runs).
int64_t gemvGroupBytes(const GemvFormat &format, int64_t groupKept);
int64_t gemvRunBytes(const GemvFormat &format);

/// The bytes of one block that keeps `groupKept` columns in each group.
int64_t gemvBlockBytes(const GemvFormat &format, int64_t k, int64_t groupKept);

/// Bits of a quantised weight.
inline int64_t gemvBits(GemvFormat::Values values) {
  return values == GemvFormat::Q4 ? 4 : values == GemvFormat::Q2 ? 2 : values == GemvFormat::Q5 ? 5 : values == GemvFormat::Q6 ? 6 : 8;
}
inline bool isQuantized(const GemvFormat &format) { return format.values >= GemvFormat::Q8; }
/// What k (of a group) is a multiple of.
inline int64_t gemvStep(GemvFormat::Values values) {
  return values < GemvFormat::I8 ? 1 : values < GemvFormat::Q4 ? 4 : values == GemvFormat::Q4 ? 8 : values == GemvFormat::Q5 ? 32 : 16;
}

/// Weights quantised in groups of columns: (value - zero point) * scale + offset. Values are from 0 to 2^bits - 1.
struct QuantizedView {
  WeightView<uint8_t> values;
  WeightView<float> scales;       ///< [groups][n], or of runs: [groups / run][n]
  WeightView<uint8_t> zeroPoints; ///< [groups][n]; data null: all 0 if unsigned, else 2^(bits - 1)
  WeightView<float> offsets{};    ///< as scales
  WeightView<int8_t> scaleCodes{}, offsetCodes{}; ///< [groups][n] where there are runs
};

/// Packs a matrix seen as [k][n]: n output rows of k columns each. Nothing if the zeros do not have the structure: a
/// C4n pattern that would have to keep more than `kept` of 4 columns.
std::optional<std::vector<uint8_t>> packGemv(const GemvFormat &format, const WeightView<float> &weights);
std::optional<std::vector<uint8_t>> packGemv(const GemvFormat &format, const WeightView<int8_t> &weights);
std::optional<std::vector<uint8_t>> packGemv(const GemvFormat &format, const QuantizedView &weights);

} // namespace ajour::encoding

#endif
