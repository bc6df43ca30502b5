// Properties of weight packing over ragged shapes: every element in its place, everything else zero, and a packed
// product equal to the plain one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ajour/Encoding/Packing.h"

using namespace ajour::encoding;

namespace {
constexpr int64_t ragged[] = {1, 2, 3, 7, 8, 9, 16, 31, 33};
}

template <typename T> static void checkGemm(int64_t k, int64_t n, int64_t nr, int64_t kr) {
  std::mt19937 rng(k * 1000 + n);
  std::vector<T> rowMajor(n * k), columnMajor(k * n); // [N][K], [K][N]
  for (int64_t j = 0; j < n; ++j)
    for (int64_t p = 0; p < k; ++p)
      rowMajor[j * k + p] = columnMajor[p * n + j] = T(int(rng() % 127) + 1);
  // Stale contents must not survive.
  std::vector<T> a(packedGemmSize(k, n, nr, kr), T(99)), b(a);
  packGemm(WeightView<T>{rowMajor.data(), k, n, 1, k}, nr, kr, std::span<T>(a));
  packGemm(WeightView<T>{columnMajor.data(), k, n, n, 1}, nr, kr, std::span<T>(b));
  EXPECT_EQ(a, b);
  const int64_t groups = (k + kr - 1) / kr, panels = (n + nr - 1) / nr;
  ASSERT_EQ(int64_t(a.size()), panels * groups * nr * kr);
  for (int64_t i = 0; i < int64_t(a.size()); ++i) {
    const int64_t j = i / (groups * nr * kr) * nr + i / kr % nr, p = i / (nr * kr) % groups * kr + i % kr;
    ASSERT_EQ(a[i], j < n && p < k ? rowMajor[j * k + p] : T(0)) << "k " << k << " n " << n << " at " << i;
  }
}

TEST(Packing, GemmPanels) {
  for (int64_t k : ragged)
    for (int64_t n : ragged)
      for (int64_t nr : {8, 32}) {
        checkGemm<float>(k, n, nr, 1);
        checkGemm<int8_t>(k, n, nr, 4);
        checkGemm<int8_t>(k, n, nr, 8);
      }
}

TEST(Packing, ColumnSumsRemoveTheZeroPoint) {
  std::mt19937 rng(9);
  for (int64_t k : ragged)
    for (int64_t n : ragged) {
      std::vector<int8_t> weights(n * k);
      std::vector<uint8_t> lhs(k);
      for (int8_t &x : weights)
        x = rng();
      for (uint8_t &x : lhs)
        x = rng();
      const WeightView<int8_t> view = {weights.data(), k, n, 1, k};
      std::vector<int32_t> sums(n);
      columnSums(view, sums);
      for (int64_t j = 0; j < n; ++j) {
        int32_t plain = 0, shifted = 0;
        for (int64_t p = 0; p < k; ++p) {
          plain += lhs[p] * weights[j * k + p];
          shifted += (lhs[p] - 37) * weights[j * k + p];
        }
        EXPECT_EQ(plain - 37 * sums[j], shifted);
      }
    }
}

template <typename T> static void checkDepthwise(int64_t kh, int64_t kw, int64_t channels, int64_t cb, int64_t kr) {
  std::mt19937 rng(kh * 1000 + channels);
  std::vector<T> channelsLast(kh * kw * channels), channelsFirst(channels * kh * kw);
  for (int64_t t = 0; t < kh * kw; ++t)
    for (int64_t c = 0; c < channels; ++c)
      channelsLast[t * channels + c] = channelsFirst[c * kh * kw + t] = T(int(rng() % 127) + 1);
  std::vector<T> a(packedDepthwiseSize(kh, kw, channels, cb, kr), T(99)), b(a);
  packDepthwise(DepthwiseView<T>{channelsLast.data(), kh, kw, channels, kw * channels, channels, 1}, cb, kr,
                std::span<T>(a));
  packDepthwise(DepthwiseView<T>{channelsFirst.data(), kh, kw, channels, kw, 1, kh * kw}, cb, kr, std::span<T>(b));
  EXPECT_EQ(a, b);
  const int64_t groups = (kh + kr - 1) / kr;
  for (int64_t i = 0; i < int64_t(a.size()); ++i) {
    const int64_t c = i / (groups * kw * cb * kr) * cb + i / kr % cb, kx = i / (cb * kr) % kw;
    const int64_t ky = i / (kw * cb * kr) % groups * kr + i % kr;
    ASSERT_EQ(a[i], c < channels && ky < kh ? channelsLast[(ky * kw + kx) * channels + c] : T(0));
  }
}

TEST(Packing, DepthwiseBlocks) {
  for (int64_t k : {1, 3, 4, 5, 7})
    for (int64_t channels : {1, 15, 32, 33, 64, 70}) {
      checkDepthwise<float>(k, k, channels, 32, 1);
      checkDepthwise<float>(k, 3, channels, 16, 1);
      checkDepthwise<int8_t>(k, k, channels, 64, 4);
      checkDepthwise<int8_t>(k, 2, channels, 32, 4);
    }
}

TEST(Packing, ChannelSums) {
  const std::vector<int8_t> weights = {1, -128, 3, 127, 5, 127}; // [3][1][2]
  std::vector<int32_t> sums(2);
  channelSums(DepthwiseView<int8_t>{weights.data(), 3, 1, 2, 2, 2, 1}, sums);
  EXPECT_EQ(sums, (std::vector<int32_t>{9, 126}));
}
