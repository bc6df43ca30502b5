//===- Pruning.h - Zeros as pruned networks have them --------------------===//

#ifndef AJOUR_TOOLS_MAKEMODEL_PRUNING_H
#define AJOUR_TOOLS_MAKEMODEL_PRUNING_H

#include <cstdint>
#include <vector>

namespace ajour::tools {

/// Which weights of a network are zero. Depthwise convolutions and those of the picture itself stay dense.
struct Pruning {
  /// Weights that each 3x3 kernel keeps, in one of eight patterns around its centre (Niu et al. 2020, "PatDNN"); 0: all.
  int64_t pattern = 0;
  /// The share of 3x3 kernels that are kept at all.
  double connectivity = 1;
  /// Other convolutions (and those of 3x3 without patterns, tap by tap): blocks of filters x channels are removed together.
  int64_t blockFilters = 1, blockChannels = 1;
  /// The share of these blocks that is removed; the same of linear layers.
  double sparsity = 0, linearSparsity = 0;
};

/// Removes weights [O][I][kh][kw] (or [O][I]) in place. Which ones depends on `seed` alone, as many as asked for in each row of blocks.
/// Returns the share that is left.
double prune(const Pruning &pruning, const std::vector<int64_t> &dims, uint64_t seed, std::vector<float> &weights);

} // namespace ajour::tools

#endif
