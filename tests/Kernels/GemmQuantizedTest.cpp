// Products of many rows with weights quantised in groups, and the tiles that they read, against the reference: whole and
// ragged tiles, groups of the lhs that are those of the weights or parts of them, guard pages around each operand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "Kernels/QuantizedBlocks.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/Half.h"
#include "cpu/Reference.h"

using namespace ajour::test;

namespace {

std::string kernelName(const testing::TestParamInfo<NativeKernel> &info) { return info.param.row.symbol; }

class GemmQuantized : public testing::TestWithParam<NativeKernel> {};

int64_t bitsOf(const ajour_kernel_row &row) {
  return row.op == AJOUR_KERNEL_gemm_q2   ? 2
         : row.op == AJOUR_KERNEL_gemm_q4 ? 4
         : row.op == AJOUR_KERNEL_gemm_q5 ? 5
         : row.op == AJOUR_KERNEL_gemm_q6 ? 6
                                          : 8;
}

/// A row of floats whose runs have magnitudes of a power of two, so that rounding to 8 bits and all sums are exact:
/// 127 * 2^-e times integers of 127.
void fillRow(float *row, int64_t k, int64_t rounded, std::mt19937 &rng) {
  for (int64_t p = 0; p < k; ++p) {
    if (p % rounded == 0)
      row[p] = 127.0f * (rng() % 2 ? 1 : -1);
    else
      row[p] = float(int(rng() % 255) - 127);
  }
  for (int64_t p = 0; p < k; p += rounded) {
    const float scale = std::ldexp(1.0f, -int(rng() % 3));
    for (int64_t i = p; i < std::min(k, p + rounded); ++i)
      row[i] *= scale;
  }
}

} // namespace

// Scales are powers of two and sums small, so that f32 arithmetic is exact as well.
TEST_P(GemmQuantized, MatchesReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  const int64_t bits = bitsOf(row), mr = row.mr;
  const bool signedValues = row.rhs == AJOUR_I8;
  const int64_t zero = signedValues ? 0 : 1 << (bits - 1);
  std::mt19937 rng(1);
  const int64_t wide = AJOUR_GEMV_F32_SCALES, zeros = AJOUR_GEMV_ZERO_POINTS, offsets = AJOUR_GEMV_OFFSETS;
  const int64_t isUnsigned = AJOUR_GEMV_UNSIGNED, runOf2 = 2 << AJOUR_GEMV_RUN_SHIFT;
  for (int64_t group : {8, 16, 24, 32, 40, 64, 128})
    for (int64_t parts : {1, 3})
      for (int64_t groups : {1, 2, 4})
        for (int64_t m = 1; m <= mr; ++m)
          for (int64_t flags : {int64_t(0), wide, zeros, wide | zeros, offsets, wide | offsets, isUnsigned, isUnsigned | offsets, runOf2,
                                runOf2 | offsets, runOf2 | wide | isUnsigned | offsets}) {
            // Deeper sums have more than the 24 bits of an f32.
            if (group % row.kr != 0 || (signedValues && flags & (zeros | isUnsigned)) || groups * parts * group > 400 ||
                (flags >> AJOUR_GEMV_RUN_SHIFT && groups % 2 != 0))
              continue;
            const bool atStart = rng() % 2, summed = flags & (zeros | offsets);
            const int64_t k = groups * parts * group, run = std::max<int64_t>(flags >> AJOUR_GEMV_RUN_SHIFT, 1);
            std::vector<float> lhs(m * k);
            for (int64_t r = 0; r < m; ++r)
              fillRow(lhs.data() + r * k, k, group, rng);
            GuardedBuffer<uint8_t> tile(groups * parts * ajour_gemm_q_tile_bytes(mr, group), AJOUR_BUFFER_SLACK, atStart);
            ajour_quantize_tile_8bit(lhs.data(), k, tile.data(), m, mr, k, group, group,
                                     summed ? -1 : flags & isUnsigned ? 0 : zero, 0);
            GuardedBuffer<uint8_t> rhs(groups * ajour_gemv_group_bytes(bits, parts * group, flags) +
                                           groups / run * ajour_gemv_run_bytes(flags),
                                       AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<float> acc((m + 3) / 4 * 4 * 16, 0, atStart);
            fillGroups(rhs.data(), bits, groups, parts * group, flags, rng);
            std::vector<double> expected(m * 16);
            ajour_reference_gemm_q(tile.data(), rhs.data(), expected.data(), bits, zero, mr, m, groups, parts, group,
                                   flags);
            GetParam().as<ajour_gemm_q8_fn>()(tile.data(), rhs.data(), acc.data(), m, groups, parts, group, flags);
            for (int64_t i = 0; i < m * 16; ++i)
              ASSERT_EQ(acc[i], float(expected[i])) << "m " << m << " groups " << groups << " of " << parts << " times "
                                                    << group << " flags " << flags << " element " << i;
            ASSERT_TRUE(tile.slackUntouched() && rhs.slackUntouched());
          }
}

// A product of ordinary numbers: f16 scales, whose products with the constant that makes floats of integers are exact.
TEST_P(GemmQuantized, RoundsOnceInAGroup) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  const int64_t bits = bitsOf(row), mr = row.mr, group = 32, groups = 9;
  const int32_t zero = row.rhs == AJOUR_I8 ? 0 : 1 << (bits - 1);
  std::mt19937 rng(2);
  std::normal_distribution<float> normal;
  std::vector<float> lhs(mr * groups * group), acc(mr * 16);
  for (float &x : lhs)
    x = normal(rng);
  std::vector<uint8_t> tile(groups * ajour_gemm_q_tile_bytes(mr, group)), rhs(groups * ajour_gemv_group_bytes(bits, group, 0));
  ajour_quantize_tile_8bit(lhs.data(), groups * group, tile.data(), mr, mr, groups * group, group, group, zero, 0);
  for (uint8_t &byte : rhs)
    byte = rng();
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t j = 0; j < 16; ++j) {
      const uint16_t half = (rng() & 0x8000) | (3 + rng() % 10) << 10 | (rng() & 1023);
      std::memcpy(rhs.data() + g * ajour_gemv_group_bytes(bits, group, 0) + group * 2 * bits + 2 * j, &half, 2);
    }
  std::vector<double> expected(acc.size());
  ajour_reference_gemm_q(tile.data(), rhs.data(), expected.data(), bits, zero, mr, mr, groups, 1, group, 0);
  GetParam().as<ajour_gemm_q8_fn>()(tile.data(), rhs.data(), acc.data(), mr, groups, 1, group, 0);
  for (size_t i = 0; i < acc.size(); ++i) {
    // Each group rounds its product and the total once; scales reach 0.25, activations 4 / 127, sums 32 * 127 * 128.
    const double bound = 2 * groups * 0x1p-24 * groups * 0.25 * 4 / 127 * (32 * 127 * (1 << (bits - 1)));
    ASSERT_NEAR(acc[i], expected[i], bound) << i;
  }
}

#define INSTANTIATE(NAME, OP) \
  INSTANTIATE_TEST_SUITE_P(NAME, GemmQuantized, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_##OP)), kernelName)
INSTANTIATE(Q2, gemm_q2);
INSTANTIATE(Q4, gemm_q4);
INSTANTIATE(Q5, gemm_q5);
INSTANTIATE(Q6, gemm_q6);
INSTANTIATE(Q8, gemm_q8);

TEST(QuantizeTile, MatchesRowsQuantisedOneByOne) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal;
  for (int64_t mr : {4, 8, 12})
    for (int64_t group : {8, 32})
      for (int64_t parts : {1, 4})
        for (int64_t k : {int64_t(1), group - 1, group, 5 * group + 3, parts * group, 2 * parts * group})
          for (int64_t m = 1; m <= mr; ++m)
            for (int64_t zero : {-1, 0, 8, 128})
              for (int64_t half : {0, 1}) {
                const int64_t rounded = parts * group, groups = (k + rounded - 1) / rounded * parts, lds = k + m % 3;
                const bool atStart = rng() % 2;
                GuardedBuffer<float> src((m - 1) * lds + k, 0, atStart);
                for (int64_t i = 0; i < src.size(); ++i)
                  src[i] = rng() % 16 ? std::ldexp(normal(rng), int(rng() % 20) - 10) : 0;
                const int64_t bytes = ajour_gemm_q_tile_bytes(mr, group);
                GuardedBuffer<uint8_t> tile(groups * bytes, AJOUR_BUFFER_SLACK, atStart);
                ajour_quantize_tile_8bit(src.data(), lds, tile.data(), m, mr, k, rounded, group, zero, half);
                for (int64_t r = 0; r < m; ++r)
                  for (int64_t from = 0; from < k; from += rounded) {
                    const int64_t own = std::min(rounded, k - from);
                    std::vector<int8_t> q(rounded, 0);
                    float scale;
                    ajour_reference_quantize(src.data() + r * lds + from, q.data(), &scale, 1, own);
                    if (half)
                      scale = ajour::encoding::halfToFloat(ajour::encoding::floatToHalf(scale));
                    for (int64_t p = 0; p < rounded; p += group) {
                      const uint8_t *g = tile.data() + (from + p) / group * bytes;
                      ASSERT_EQ(std::memcmp(g + r * group, q.data() + p, group), 0) << "k " << k << " row " << r;
                      float stored;
                      std::memcpy(&stored, g + mr * group + 4 * r, 4);
                      ASSERT_EQ(stored, scale);
                      int32_t sum = 0, start;
                      for (int64_t i = 0; i < group; ++i)
                        sum += q[p + i];
                      std::memcpy(&start, g + mr * group + 4 * (mr + r), 4);
                      std::memcpy(&stored, &start, 4);
                      if (zero < 0)
                        ASSERT_EQ(stored, float(-sum));
                      else
                        ASSERT_EQ(start, 0x4B400000 - zero * sum);
                    }
                  }
                ASSERT_TRUE(tile.slackUntouched());
              }
}
