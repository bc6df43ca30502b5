//===- Pruning.cpp - Zeros as pruned networks have them ------------------===//

#include "Pruning.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace ajour::tools {

namespace {

/// `count` places of which `removed` are true, evenly drawn.
std::vector<bool> draw(int64_t count, int64_t removed, std::mt19937 &rng) {
  std::vector<bool> places(count);
  std::fill_n(places.begin(), removed, true);
  for (int64_t i = count - 1; i > 0; --i) {
    int64_t j = rng() % (i + 1);
    bool other = places[j];
    places[j] = places[i];
    places[i] = other;
  }
  return places;
}

/// Patterns of `kept` taps around the centre: bit ky * 3 + kx.
std::vector<int> patternTable(int64_t kept, std::mt19937 &rng) {
  if (kept == 4) // the four squares and the four T shapes
    return {0b000011011, 0b000110110, 0b011011000, 0b110110000, 0b000111010, 0b010111000, 0b010110010, 0b010011010};
  std::vector<int> table;
  for (int i = 0; i < 8; ++i) {
    std::vector<bool> removed = draw(8, 9 - std::max<int64_t>(kept, 1), rng);
    int pattern = 1 << 4;
    for (int tap = 0; tap < 8; ++tap)
      if (!removed[tap])
        pattern |= 1 << (tap < 4 ? tap : tap + 1);
    table.push_back(pattern);
  }
  return table;
}

void prunePatterns(const Pruning &pruning, int64_t filters, int64_t channels, std::mt19937 &rng,
                   std::vector<float> &weights) {
  std::vector<int> table = patternTable(pruning.pattern, rng);
  int64_t gone = std::llround(double(channels) * (1 - pruning.connectivity));
  for (int64_t f = 0; f < filters; ++f) {
    std::vector<bool> removed = draw(channels, gone, rng);
    for (int64_t c = 0; c < channels; ++c) {
      int pattern = removed[c] ? 0 : table[rng() % table.size()];
      for (int tap = 0; tap < 9; ++tap)
        if (!(pattern >> tap & 1))
          weights[(f * channels + c) * 9 + tap] = 0;
    }
  }
}

void pruneBlocks(const Pruning &pruning, double sparsity, int64_t filters, int64_t channels, int64_t taps,
                 std::mt19937 &rng, std::vector<float> &weights) {
  int64_t columns = (channels + pruning.blockChannels - 1) / pruning.blockChannels;
  int64_t gone = std::llround(double(columns * taps) * sparsity);
  for (int64_t f0 = 0; f0 < filters; f0 += pruning.blockFilters) {
    std::vector<bool> removed = draw(columns * taps, gone, rng);
    for (int64_t f = f0; f < std::min(filters, f0 + pruning.blockFilters); ++f)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t tap = 0; tap < taps; ++tap)
          if (removed[c / pruning.blockChannels * taps + tap])
            weights[(f * channels + c) * taps + tap] = 0;
  }
}

} // namespace

double prune(const Pruning &pruning, const std::vector<int64_t> &dims, uint64_t seed, std::vector<float> &weights) {
  bool isLinear = dims.size() == 2;
  int64_t filters = dims[0], channels = dims[1], taps = isLinear ? 1 : dims[2] * dims[3];
  double sparsity = isLinear ? pruning.linearSparsity : pruning.sparsity;
  // One channel: depthwise; three: the picture.
  if (channels <= 3)
    return 1;
  std::mt19937 rng(static_cast<uint32_t>(seed ^ seed >> 32));
  if (pruning.pattern > 0 && !isLinear && dims[2] == 3 && dims[3] == 3)
    prunePatterns(pruning, filters, channels, rng, weights);
  else if (sparsity > 0)
    pruneBlocks(pruning, sparsity, filters, channels, taps, rng, weights);
  return 1 - double(std::count(weights.begin(), weights.end(), 0.0f)) / double(weights.size());
}

} // namespace ajour::tools
