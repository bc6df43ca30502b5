// Attention kernels against the reference, with guard pages around each operand: types of keys and values, ragged sizes, ranges, and all
// that changes scores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/Encoding/Half.h"
#include "ajour/Kernels/AttentionHeads.h"
#include "cpu/Reference.h"

using namespace ajour::test;

namespace {

/// What one call computes.
struct Problem {
  int64_t tokens = 1, heads = 1, rows = 1, groups = 1, joined = 1, size = 8, width = 8, keyType = AJOUR_F32, valueType = AJOUR_F32;
  int64_t position = -1; ///< of the first token; -1: all tokens attend to all rows
  int64_t window = 0, maskRow = -1; ///< -1: no mask
  bool slopes = false, sinks = false;
  float softCap = 0;
};

int64_t bytesOf(int64_t type, int64_t elements) {
  return type == AJOUR_F32 ? elements * 4 : type == AJOUR_F16 ? elements * 2 : type == AJOUR_I8 ? elements : elements / 2;
}

/// Keys or values of `rows` rows of `groups` heads, and scales. The kernel meets the last `joined` heads.
struct Stored {
  int64_t type, stride, groups, head;
  GuardedBuffer<uint8_t> bytes;
  GuardedBuffer<float> scales;

  Stored(int64_t type, int64_t rows, int64_t groups, int64_t joined, int64_t size, std::mt19937 &rng)
      : type(type), stride(bytesOf(type, size) * groups), groups(groups), head(groups - joined), bytes(rows * stride, 0), scales(rows * groups, 0) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * groups; ++i)
      scales[i] = .002f + float(rng() % 100) / 5000;
    for (int64_t i = 0; i < bytes.size(); ++i)
      bytes[i] = uint8_t(rng());
    for (int64_t i = 0; i < rows * groups * size; ++i) {
      float x = normal(rng);
      if (type == AJOUR_F32)
        memcpy(bytes.data() + i * 4, &x, 4);
      uint16_t half = ajour::encoding::floatToHalf(x);
      if (type == AJOUR_F16)
        memcpy(bytes.data() + i * 2, &half, 2);
    }
  }
  int64_t headStride() const { return stride / groups; }
  const uint8_t *data(int64_t joined = 0) { return bytes.data() + headStride() * (head + joined); }
  const float *scaleData(int64_t joined = 0) { return type == AJOUR_I8 || type == AJOUR_U8 ? scales.data() + head + joined : nullptr; }
};

void check(const NativeKernel &kernel, const Problem &p, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  auto fill = [&](GuardedBuffer<float> &buffer, float scale) {
    for (int64_t i = 0; i < buffer.size(); ++i)
      buffer[i] = normal(rng) * scale;
  };
  const int64_t heads = p.joined * p.heads;
  GuardedBuffer<float> query(p.tokens * heads * p.size, 0), mask(p.tokens * heads * p.rows, 0), slopes(heads, 0), sinks(heads, 0);
  fill(query, 1), fill(mask, 1), fill(slopes, .1f), fill(sinks, 1);
  for (int64_t i = 0; i < mask.size(); i += 3)
    mask[i] = -INFINITY;
  Stored key(p.keyType, p.rows, p.groups, p.joined, p.size, rng), value(p.valueType, p.rows, p.groups, p.joined, p.width, rng);
  GuardedBuffer<int64_t> ranges(p.tokens * 3, 0);
  for (int64_t t = 0; t < p.tokens; ++t) {
    int64_t position = p.position < 0 ? p.rows - 1 : p.position + t;
    ranges[t * 3] = p.window ? std::max<int64_t>(0, position - p.window + 1) : 0;
    ranges[t * 3 + 1] = std::min(position + 1, p.rows);
    ranges[t * 3 + 2] = position;
  }
  int64_t maskHead = p.rows, maskToken = p.rows * heads;
  float scale = 1 / std::sqrt(float(p.size));
  GuardedBuffer<float> result(p.tokens * heads * p.width, 0);
  GuardedBuffer<float> scratch(p.joined == 1 ? ajour_attention_scratch(p.tokens * heads, p.size, p.width)
                                             : ajour_attention_groups_scratch(p.tokens * p.heads, p.joined, p.size, p.width), 0);
  kernel.as<ajour_attention_f32_fn>()(
      query.data(), heads * p.size, key.data(), key.stride, key.scaleData(), value.data(), value.stride, value.scaleData(), p.groups,
      ranges.data(), p.maskRow < 0 ? nullptr : mask.data(), maskToken, maskHead, p.maskRow < 0 ? 0 : p.maskRow,
      p.slopes ? slopes.data() : nullptr, p.sinks ? sinks.data() : nullptr, result.data(), heads * p.width, scratch.data(), p.tokens,
      ajour_attention_heads(p.heads, p.joined), p.size, p.width, p.keyType, p.valueType, scale, p.softCap);
  for (int64_t t = 0; t < p.tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> expected(p.width, 0);
      ajour_reference_attention(query.data() + (t * heads + h) * p.size, key.data(h / p.heads), key.stride, key.scaleData(h / p.heads),
                                value.data(h / p.heads), value.stride, value.scaleData(h / p.heads), p.groups, ranges.data() + t * 3,
                                p.maskRow < 0 ? nullptr : mask.data() + t * maskToken + h * maskHead, p.maskRow, p.slopes ? slopes.data() + h : nullptr,
                                p.sinks ? sinks.data() + h : nullptr, expected.data(), p.size, p.width, p.keyType, p.valueType, scale, p.softCap);
      for (int64_t d = 0; d < p.width; ++d)
        ASSERT_NEAR(result[(t * heads + h) * p.width + d], expected[d], 4e-6 * std::max(1.0, std::abs(expected[d]))) << "token " << t << ", head " << h << ", element " << d;
    }
}

class Attention : public testing::TestWithParam<NativeKernel> {};

} // namespace

TEST_P(Attention, EqualsTheReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const int64_t types[] = {AJOUR_F32, AJOUR_F16, AJOUR_I8, AJOUR_U8};
  std::mt19937 rng(5);
  auto pick = [&](std::initializer_list<int64_t> choices) { return choices.begin()[rng() % choices.size()]; };
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Problem p;
    p.tokens = pick({1, 1, 2, 3, 7, 13, 30}), p.heads = pick({1, 2, 3, 4, 7, 8}), p.rows = pick({1, 3, 15, 16, 63, 64, 65, 100, 200});
    p.groups = pick({1, 2, 3, 4}), p.joined = 1 + int64_t(rng() % p.groups), p.size = pick({2, 8, 20, 32, 64, 72, 128}), p.width = rng() % 2 ? p.size : pick({2, 16, 48, 80});
    p.keyType = types[rng() % 4], p.valueType = types[rng() % 4];
    p.position = rng() % 3 ? int64_t(rng() % p.rows) : -1, p.window = rng() % 3 ? 0 : pick({1, 5, 64, 90});
    p.maskRow = pick({-1, -1, 0, 1}), p.slopes = rng() % 4 == 0, p.sinks = rng() % 4 == 0, p.softCap = rng() % 4 ? 0 : 1.5f;
    check(GetParam(), p, seed);
    if (HasFatalFailure()) {
      ADD_FAILURE() << "seed " << seed << ": " << p.tokens << " tokens, " << p.heads << " heads, " << p.rows << " rows, " << p.groups << " groups, " << p.joined << " joined, "
                    << p.size << " x " << p.width << ", types " << p.keyType << ", " << p.valueType << ", position " << p.position << ", window "
                    << p.window << ", mask " << p.maskRow << ", slopes " << p.slopes << ", sinks " << p.sinks << ", cap " << p.softCap;
      return;
    }
  }
}

TEST_P(Attention, NothingToAttendToGivesZeros) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  std::vector<float> x(8, NAN), result(16, 7), scratch(ajour_attention_scratch(2, 8, 8));
  const int64_t ranges[6] = {0, 0, -1, 3, 2, 9};
  std::vector<float> query(16, 1);
  GetParam().as<ajour_attention_f32_fn>()(query.data(), 8, x.data(), 32, nullptr, x.data(), 32, nullptr, 0, ranges, nullptr, 0, 0, 0, nullptr,
                                          nullptr, result.data(), 8, scratch.data(), 2, 1, 8, 8, AJOUR_F32, AJOUR_F32, 1, 0);
  EXPECT_EQ(result, std::vector<float>(16, 0));
}

TEST_P(Attention, LargeScoresAndNumbersThatAreNone) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  // Scores of 10,000 and 9,000: all weight on the first. A NaN in one query leaves the other's result alone.
  std::vector<float> key(16, 0), value(16, 0), result(16), scratch(ajour_attention_scratch(2, 8, 8)), query(16, 0);
  key[0] = 100, key[8] = 90, value[0] = 1, value[8] = 2, query[0] = 100, query[8] = NAN;
  const int64_t ranges[6] = {0, 2, 1, 0, 2, 1};
  GetParam().as<ajour_attention_f32_fn>()(query.data(), 8, key.data(), 32, nullptr, value.data(), 32, nullptr, 0, ranges, nullptr, 0, 0, 0,
                                          nullptr, nullptr, result.data(), 8, scratch.data(), 2, 1, 8, 8, AJOUR_F32, AJOUR_F32, 1, 0);
  EXPECT_EQ(result[0], 1);
  EXPECT_TRUE(std::isnan(result[8]));
}

INSTANTIATE_TEST_SUITE_P(Native, Attention, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_attention_f32)),
                         [](const testing::TestParamInfo<NativeKernel> &info) { return std::string(info.param.row.symbol); });
