//===- PruningTest.cpp - Zeros of benchmark networks ----------------------===//

#include "Pruning.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace ajour::tools;

namespace {

std::vector<float> ones(const std::vector<int64_t> &dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return std::vector<float>(count, 1.0f);
}

TEST(Pruning, PatternsKeepTheCentreAndShareOfKernels) {
  std::vector<int64_t> dims = {16, 32, 3, 3};
  for (int64_t kept : {1, 4, 5}) {
    std::vector<float> weights = ones(dims);
    EXPECT_DOUBLE_EQ(prune({.pattern = kept, .connectivity = 0.5}, dims, 3, weights), double(kept) / 18);
    for (int64_t f = 0; f < 16; ++f) {
      int64_t kernels = 0;
      for (int64_t c = 0; c < 32; ++c) {
        auto kernel = weights.begin() + (f * 32 + c) * 9;
        int64_t count = std::count(kernel, kernel + 9, 1.0f);
        EXPECT_TRUE(count == 0 || (count == kept && kernel[4] == 1));
        kernels += count > 0;
      }
      EXPECT_EQ(kernels, 16);
    }
  }
}

TEST(Pruning, BlocksAreRemovedTogether) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{20, 64, 1, 1}, {20, 64, 5, 5}, {20, 64}}) {
    int64_t taps = dims.size() == 2 ? 1 : dims[2] * dims[3];
    std::vector<float> weights = ones(dims);
    Pruning pruning{.blockFilters = 8, .blockChannels = 4, .sparsity = 0.75, .linearSparsity = 0.75};
    EXPECT_DOUBLE_EQ(prune(pruning, dims, 5, weights), 0.25);
    for (int64_t f = 0; f < 20; ++f)
      for (int64_t c = 0; c < 64; ++c)
        for (int64_t t = 0; t < taps; ++t)
          EXPECT_EQ(weights[(f * 64 + c) * taps + t], weights[(f / 8 * 8 * 64 + c / 4 * 4) * taps + t]);
  }
}

TEST(Pruning, DepthwiseAndThePictureStayDense) {
  Pruning pruning{.pattern = 4, .sparsity = 0.9, .linearSparsity = 0};
  for (std::vector<int64_t> dims : {std::vector<int64_t>{8, 1, 3, 3}, {8, 3, 7, 7}, {10, 20}}) {
    std::vector<float> weights = ones(dims);
    EXPECT_EQ(prune(pruning, dims, 1, weights), 1);
    EXPECT_EQ(weights, ones(dims));
  }
}

TEST(Pruning, SeedDecides) {
  std::vector<int64_t> dims = {8, 16, 3, 3};
  std::vector<float> a = ones(dims), b = a, c = a;
  prune({.pattern = 4}, dims, 1, a), prune({.pattern = 4}, dims, 1, b), prune({.pattern = 4}, dims, 2, c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

} // namespace
