/// Packing of constant sparse weights for the kernels that work over pixels, spmm and spconv, and for those that take their inputs
/// out of rows of activations, gemm_sparse (kernels/cpu/Kernels.def).
///
/// Channels are worked on in chunks that stay in the first-level cache. For each chunk and each group of filters there is
/// a list of entries: what to read (`inputs`, in units that the plan fixes), the weights, and where the list begins
/// (`index`). As in Packing.h there are no errors: the caller has checked that `units(plan)` fits 16 bits.
#ifndef AJOUR_ENCODING_PACKSPARSE_H
#define AJOUR_ENCODING_PACKSPARSE_H

#include "ajour/Encoding/Packing.h"

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

/// A matrix [k][n] in panels of lanes * share columns, of which the `share` of a lane keep the same inputs (ajour_gemm_sparse_group
/// says which). k is cut into `parts` equal stretches with lists of their own: the window rows of a convolution.
struct PanelPlan {
  int64_t k = 0, n = 0, parts = 1;
  int64_t lanes = 1, share = 1, kr = 1;
  int64_t window = 1; ///< elements from which one step takes; at most 256

  bool operator==(const PanelPlan &) const = default;
  int64_t panels() const { return (n + lanes * share - 1) / (lanes * share); }
  int64_t depth() const { return k / parts; } ///< of a part, at most 65536
};

/// The steps of all panels, and in them of all parts.
template <typename T> struct PackedPanels {
  std::vector<uint16_t> offsets; ///< where a step's window begins, in elements of the part
  std::vector<uint8_t> picks;    ///< [steps][lanes][kr]: elements of the window
  std::vector<T> weights;        ///< [steps][share][lanes][kr]
  std::vector<uint32_t> index;   ///< [panels * parts + 1]: first step
};

/// Packs a matrix. Inputs that all columns of a lane have zeros for (of either sign) are left out. In each step a window begins at
/// the input that the lane farthest behind needs next, and each lane takes as many of its next inputs as lie in it.
PackedPanels<float> packPanels(const PanelPlan &plan, const WeightView<float> &weights);
PackedPanels<int8_t> packPanels(const PanelPlan &plan, const WeightView<int8_t> &weights);

} // namespace ajour::encoding

#endif
