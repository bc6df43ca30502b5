// Packed sparse weights hold each weight exactly once, where its tap reads, and no zeros but those that filters of a
// group share with others.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "ajour/Encoding/PackSparse.h"
#include "ajour/Kernels/Kernels.h"

using namespace ajour::encoding;

namespace {

std::mt19937 rng(21);

std::vector<float> sparseWeights(const SparsePlan &plan, int percent) {
  std::vector<float> weights(plan.filters * plan.kh * plan.kw * plan.channels);
  for (float &w : weights)
    w = int(rng() % 100) < percent ? 0.0f : float(int(rng() % 50) + 1);
  return weights;
}

/// What the lists say: (chunk, filter, unit) -> weight. Fails where something is said twice.
std::map<std::tuple<int64_t, int64_t, int64_t>, float> decoded(const SparsePlan &plan, const PackedSparse<float> &packed) {
  std::map<std::tuple<int64_t, int64_t, int64_t>, float> found;
  auto add = [&](int64_t chunk, int64_t filter, int64_t unit, float w) {
    if (w != 0)
      EXPECT_TRUE(found.insert({{chunk, filter, unit}, w}).second) << "unit " << unit << " of filter " << filter;
  };
  for (int64_t chunk = 0; chunk < plan.chunks(); ++chunk)
    for (int64_t g = 0; g < plan.groups(); ++g) {
      const int64_t list = chunk * plan.groups() + g;
      if (!plan.runs) {
        for (uint32_t e = packed.index[list]; e < packed.index[list + 1]; ++e) {
          bool any = false;
          for (int64_t r = 0; r < plan.group; ++r) {
            const float w = packed.weights[e * plan.group + r];
            any |= w != 0;
            add(chunk, g * plan.group + r, packed.inputs[e], w);
          }
          EXPECT_TRUE(any);
        }
        continue;
      }
      const uint32_t *row = &packed.index[list * 5];
      uint32_t input = row[0], weight = row[1];
      for (int64_t taps = 1; taps <= 3; ++taps)
        for (uint32_t i = 0; i < row[1 + taps]; ++i, ++input)
          for (int64_t k = 0; k < taps; ++k, ++weight) {
            EXPECT_NE(packed.weights[weight], 0);
            add(chunk, g, packed.inputs[input] + k, packed.weights[weight]);
          }
      EXPECT_EQ(input, list + 1 < plan.chunks() * plan.groups() ? row[5] : packed.inputs.size());
    }
  return found;
}

void check(SparsePlan plan, int percent) {
  const int64_t reach = (plan.kh - 1) * plan.dilationY, planeRows = 5 + reach / plan.strideY;
  const int64_t phases = std::min(plan.strideY, reach + 1);
  if (plan.kh * plan.kw > 1) {
    plan.phaseUnits = planeRows;
    plan.columnUnits = phases * planeRows;
    plan.channelUnits = plan.kw * plan.columnUnits;
  }
  const std::vector<float> weights = sparseWeights(plan, percent);
  std::map<std::tuple<int64_t, int64_t, int64_t>, float> expected;
  for (int64_t f = 0; f < plan.filters; ++f)
    for (int64_t ky = 0; ky < plan.kh; ++ky)
      for (int64_t kx = 0; kx < plan.kw; ++kx)
        for (int64_t c = 0; c < plan.channels; ++c)
          if (float w = weights[((f * plan.kh + ky) * plan.kw + kx) * plan.channels + c]; w != 0) {
            const int64_t unit = plan.unit(c % plan.chunk, ky, kx);
            ASSERT_LT(unit, plan.units());
            expected[{c / plan.chunk, f, unit}] = w;
          }
  EXPECT_EQ(decoded(plan, packSparse(plan, weights.data())), expected);
}

} // namespace

TEST(PackSparse, EveryWeightOnceAndNoZeros) {
  for (int percent : {0, 40, 80, 100})
    for (int64_t filters : {1, 5, 8, 9})
      for (int64_t channels : {1, 7, 20})
        for (int64_t chunk : {3, 20}) {
          for (int64_t group : {1, 2, 4, 8}) {
            check({.filters = filters, .kh = 1, .kw = 1, .channels = channels, .group = group, .chunk = chunk}, percent);
            check({.filters = filters, .kh = 3, .kw = 3, .channels = channels, .group = group, .chunk = chunk}, percent);
          }
          for (auto [kernel, dilation, stride] : {std::tuple{3, 1, 1}, {3, 1, 2}, {3, 2, 1}, {5, 1, 1}, {5, 1, 2}, {7, 1, 2}, {3, 2, 2}})
            check({.filters = filters, .kh = kernel, .kw = kernel, .channels = channels, .group = 1, .chunk = chunk,
                   .dilationY = dilation, .strideY = stride, .runs = true},
                  percent);
        }
}

// Taps below each other are one entry: a 2 x 2 pattern is two entries, a full column one.
TEST(PackSparse, RunsAreTakenTogether) {
  SparsePlan plan{.filters = 1, .kh = 3, .kw = 3, .channels = 1, .group = 1, .chunk = 1};
  plan.phaseUnits = 10, plan.columnUnits = 10, plan.channelUnits = 30, plan.runs = true;
  const float square[9] = {1, 2, 0, 3, 4, 0, 0, 0, 0};
  PackedSparse<float> packed = packSparse(plan, square);
  EXPECT_EQ(packed.index, (std::vector<uint32_t>{0, 0, 0, 2, 0}));
  EXPECT_EQ(packed.inputs, (std::vector<uint16_t>{0, 10}));
  EXPECT_EQ(packed.weights, (std::vector<float>{1, 3, 2, 4}));
  const float column[9] = {5, 0, 1, 0, 0, 2, 6, 0, 3};
  packed = packSparse(plan, column);
  EXPECT_EQ(packed.index, (std::vector<uint32_t>{0, 0, 2, 0, 1}));
  EXPECT_EQ(packed.inputs, (std::vector<uint16_t>{0, 2, 20}));
  EXPECT_EQ(packed.weights, (std::vector<float>{5, 6, 1, 2, 3}));
}

// Panels hold each weight once, in the lane of its column and for the input that its step takes; all else is zero.
TEST(PackPanels, EveryWeightOnce) {
  for (int percent : {0, 40, 80, 100})
    for (auto [lanes, kr, window] : {std::tuple{16, 4, 64}, {8, 2, 16}, {16, 1, 16}, {4, 1, 8}, {4, 4, 16}})
      for (int64_t share : {1, 2, 4})
        for (auto [k, n, parts] : {std::tuple{1, 1, 1}, {70, 9, 1}, {64, 64, 1}, {150, 130, 3}, {33, 40, 3}}) {
          PanelPlan plan{.k = k, .n = n, .parts = parts, .lanes = lanes, .share = share, .kr = kr, .window = window};
          std::vector<int8_t> weights(k * n);
          std::map<std::tuple<int64_t, int64_t>, int> expected, found;
          for (int64_t j = 0; j < n; ++j)
            for (int64_t p = 0; p < k; ++p)
              if (int(rng() % 100) >= percent)
                expected[{p, j}] = weights[j * k + p] = int(rng() % 100) + 1;
          const PackedPanels<int8_t> packed = packPanels(plan, WeightView<int8_t>{weights.data(), k, n, 1, k});
          ASSERT_EQ(int64_t(packed.index.size()), plan.panels() * parts + 1);
          ASSERT_EQ(packed.index.back(), packed.offsets.size());
          ASSERT_EQ(packed.picks.size(), packed.offsets.size() * lanes * kr);
          ASSERT_EQ(packed.weights.size(), packed.picks.size() * share);
          for (int64_t list = 0; list + 1 < int64_t(packed.index.size()); ++list)
            for (uint32_t s = packed.index[list]; s < packed.index[list + 1]; ++s) {
              ASSERT_LT(packed.offsets[s], plan.depth());
              for (int64_t lane = 0; lane < lanes; ++lane)
                for (int64_t q = 0; q < kr; ++q) {
                  const int64_t pick = packed.picks[(s * lanes + lane) * kr + q], p = packed.offsets[s] + pick;
                  ASSERT_LT(pick, window);
                  ASSERT_LT(p, plan.depth());
                  for (int64_t t = 0; t < share; ++t)
                    if (int w = packed.weights[((s * share + t) * lanes + lane) * kr + q]) {
                      const int64_t column = (list / parts * lanes + ajour_gemm_sparse_group(lane, lanes, share)) * share + t;
                      EXPECT_TRUE(found.insert({{list % parts * plan.depth() + p, column}, w}).second);
                    }
                }
            }
          EXPECT_EQ(found, expected) << k << "x" << n << " share " << share << " lanes " << lanes;
        }
}

// Lanes that keep equally many inputs fill their steps although they keep other ones.
TEST(PackPanels, StepsAreFew) {
  PanelPlan plan{.k = 1024, .n = 64, .lanes = 16, .share = 4, .kr = 4, .window = 64};
  std::vector<float> weights(plan.k * plan.n);
  for (int64_t g = 0; g < 16; ++g)
    for (int64_t p = 0; p < plan.k; ++p)
      if (rng() % 4 == 0)
        for (int64_t t = 0; t < 4; ++t)
          weights[(4 * g + t) * plan.k + p] = 1;
  const PackedPanels<float> packed = packPanels(plan, WeightView<float>{weights.data(), plan.k, plan.n, 1, plan.k});
  EXPECT_LT(packed.offsets.size(), 0.31 * 1024 / 4);
}
