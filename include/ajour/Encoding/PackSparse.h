/// Packing of constant sparse weights for the kernels that work over pixels: spmm and spconv (kernels/cpu/Kernels.def).
///
/// Channels are worked on in chunks that stay in the first-level cache. For each chunk and each group of filters there is
/// a list of entries: what to read (`inputs`, in units that the plan fixes), the weights, and where the list begins
/// (`index`). As in Packing.h there are no errors: the caller has checked that `units(plan)` fits 16 bits.
#ifndef AJOUR_ENCODING_PACKSPARSE_H
#define AJOUR_ENCODING_PACKSPARSE_H

#include <cstdint>
#include <vector>

namespace ajour::encoding {

/// A convolution's weights [filters][kh][kw][channels] and where its taps find their pixels: tap (ky, kx) of the channel
/// c of a chunk reads from unit c * channelUnits + kx * columnUnits + (ky * dilationY % strideY) * phaseUnits + ky *
/// dilationY / strideY.
struct SparsePlan {
  int64_t filters = 0, kh = 1, kw = 1, channels = 0;
  int64_t group = 1; ///< successive filters that share entries: 1, 2, 4 or 8
  int64_t chunk = 1; ///< channels of a chunk
  int64_t channelUnits = 1, columnUnits = 0, phaseUnits = 0;
  int64_t dilationY = 1, strideY = 1;
  bool runs = false; ///< spconv: taps whose units follow each other are one entry (group = 1)

  bool operator==(const SparsePlan &) const = default;
  int64_t chunks() const { return (channels + chunk - 1) / chunk; }
  int64_t groups() const { return (filters + group - 1) / group; }
  int64_t unit(int64_t channel, int64_t ky, int64_t kx) const {
    return channel * channelUnits + kx * columnUnits + ky * dilationY % strideY * phaseUnits + ky * dilationY / strideY;
  }
  /// Units of a whole chunk, all of which must have 16-bit numbers.
  int64_t units() const { return unit(chunk - 1, kh - 1, kw - 1) + strideY * phaseUnits + 1; }
};

/// The lists of all chunks, and in them of all groups of filters; absent filters of the last group have zero weights.
template <typename T> struct PackedSparse {
  std::vector<uint16_t> inputs;
  std::vector<T> weights;
  /// spmm: [chunks * groups + 1], the first entry of each list; it has `group` weights for each entry.
  /// spconv: [chunks * filters][5]: first entry, first weight, entries of one tap, of two, of three.
  std::vector<uint32_t> index;
};

/// Packs weights [filters][kh][kw][channels]; zeros (of either sign) are left out wherever a whole group has them.
PackedSparse<float> packSparse(const SparsePlan &plan, const float *weights);

} // namespace ajour::encoding

#endif
