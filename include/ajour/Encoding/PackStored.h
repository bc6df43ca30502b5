/// Packing of weights that keep their few bits: blocks of 16 columns (outputs) that the kernels unpack_* turn into columns of
/// a dense panel (ajour/Kernels/Kernels.h). Dense blocks of 4- and 8-bit codes are those of the matrix-vector kernels too.
///
/// A block is one stream of bytes, a multiple of 64 long: for each group of k its codes, then a scale for each column,
/// then, if the format has any, zero points. Absent columns have scale 0; absent k have `padCode`.
#ifndef AJOUR_ENCODING_PACKSTORED_H
#define AJOUR_ENCODING_PACKSTORED_H

#include "ajour/Encoding/Packing.h"

namespace ajour::encoding {

/// Columns of a block.
inline constexpr int64_t storedColumns = 16;

struct StoredFormat {
  enum Scales { NoScales, HalfScales, FloatScales };
  enum Zeros { NoZeros, ByteZeros, RealZeros };

  int64_t bits = 8;  ///< of a code, 1 to 8
  int64_t group = 0; ///< k of a group before it is padded to storedGroup
  Scales scales = HalfScales;
  Zeros zeros = NoZeros; ///< real ones have the type of the scales
  uint8_t padCode = 0;
};

/// Weights: codes [k][n], scales and zero points [groups][n] (data null where the format has none).
struct StoredView {
  WeightView<uint8_t> codes;
  WeightView<float> scales, zeros;
};

/// What the number of codes of a column in a group is a multiple of.
int64_t storedStep(int64_t bits);
/// k of a group with padding.
int64_t storedGroup(const StoredFormat &format);
int64_t storedGroups(const StoredFormat &format, int64_t k);
int64_t storedBlockBytes(const StoredFormat &format, int64_t k);
/// Bytes of all blocks of a matrix with n columns.
int64_t storedBytes(const StoredFormat &format, int64_t k, int64_t n);

/// Writes storedBytes bytes.
void packStored(const StoredFormat &format, const StoredView &weights, std::span<uint8_t> packed);

/// f16 weights as bits, [ceil(n / 16)][k][16]; absent columns are 0.
void packHalves(const WeightView<uint16_t> &weights, std::span<uint16_t> packed);

} // namespace ajour::encoding

#endif
