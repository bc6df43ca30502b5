// Every matrix-vector kernel of the table, and what prepares its lhs, against the reference: all numbers of tokens and
// patterns, ragged depths, guard pages around each operand. 8-bit results and quantisation are exact.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "Kernels/QuantizedBlocks.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Kernels/GemvBlocks.h"
#include "cpu/Reference.h"

using namespace ajour::test;

namespace {

std::string kernelName(const testing::TestParamInfo<NativeKernel> &info) { return info.param.row.symbol; }

constexpr int64_t depths[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 129};
constexpr int64_t patternCounts[] = {1, 2, 4};

class GemvFloat : public testing::TestWithParam<NativeKernel> {};
class Gemv8Bit : public testing::TestWithParam<NativeKernel> {};
class GemvQuantized : public testing::TestWithParam<NativeKernel> {};
/// Those of 8-bit activations, which take several blocks in one call.
class GemvManyBlocks : public GemvQuantized {};
class Compress : public testing::TestWithParam<NativeKernel> {};
class CompressC4 : public testing::TestWithParam<NativeKernel> {};

int64_t bitsOf(const ajour_kernel_row &row) {
  switch (row.op) {
  case AJOUR_KERNEL_gemv_q2:
    return 2;
  case AJOUR_KERNEL_gemv_q4:
  case AJOUR_KERNEL_gemv_f32_q4:
    return 4;
  case AJOUR_KERNEL_gemv_q5:
    return 5;
  case AJOUR_KERNEL_gemv_q6:
    return 6;
  default:
    return 8;
  }
}

} // namespace

TEST_P(GemvFloat, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  const bool half = row.rhs == AJOUR_F16;
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t k : depths)
    for (int64_t m = 1; m <= row.mr; ++m)
      for (int64_t patterns : patternCounts)
        for (bool atStart : {false, true}) {
          const int64_t ldm = k * patterns + m % 3;
          GuardedBuffer<float> lhs((m - 1) * ldm + k * patterns, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<uint8_t> rhs(k * 16 * (half ? 2 : 4), AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<float> acc(m * 16, 0, atStart);
          std::vector<float> weights(k * 16);
          for (int64_t i = 0; i < lhs.size(); ++i)
            lhs[i] = uniform(rng);
          for (int64_t i = 0; i < k * 16; ++i) {
            if (half) {
              // Sign, an exponent of 2^-15 to 2^0 and 10 bits, subnormals among them.
              const uint16_t bits = (rng() & 0x8000) | rng() % (15 << 10);
              std::memcpy(rhs.data() + 2 * i, &bits, 2);
              const int exponent = bits >> 10 & 31;
              weights[i] =
                  std::ldexp(float(exponent ? 1024 + (bits & 1023) : bits & 1023), std::max(exponent, 1) - 25) *
                  (bits >> 15 ? -1 : 1);
            } else {
              weights[i] = uniform(rng);
              std::memcpy(rhs.data() + 4 * i, &weights[i], 4);
            }
          }
          std::vector<double> expected(m * 16);
          ajour_reference_gemv_float(lhs.data(), ldm, weights.data(), expected.data(), m, patterns, k);
          GetParam().as<ajour_gemv_f32_fn>()(lhs.data(), ldm, rhs.data(), acc.data(), m, patterns, k);
          // |error| <= k * eps * sum of |a| |b| <= k * eps * k, for any order of summation.
          for (int64_t i = 0; i < m * 16; ++i)
            ASSERT_NEAR(acc[i], expected[i], double(k) * k * 0x1p-24)
                << "m " << m << " patterns " << patterns << " k " << k << " element " << i;
          ASSERT_TRUE(lhs.slackUntouched() && rhs.slackUntouched());
        }
}

TEST_P(Gemv8Bit, MatchesReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(2);
  for (int64_t depth : depths)
    for (int64_t m = 1; m <= row.mr; ++m)
      for (int64_t patterns : patternCounts)
        for (bool atStart : {false, true}) {
          const int64_t k = (depth + 3) / 4 * 4, ldm = k * patterns + m % 3;
          GuardedBuffer<uint8_t> lhs((m - 1) * ldm + k * patterns, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<int8_t> rhs(k * 16, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<int32_t> acc(m * 16, 0, atStart);
          for (int64_t i = 0; i < lhs.size(); ++i)
            lhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 255 : 128);
          for (int64_t i = 0; i < rhs.size(); ++i)
            rhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 127 : -128);
          std::vector<int32_t> expected(m * 16);
          ajour_reference_gemv_8bit(lhs.data(), row.lhs == AJOUR_I8, ldm, rhs.data(), expected.data(), m, patterns, k);
          GetParam().as<ajour_gemv_8bit_fn>()(lhs.data(), ldm, rhs.data(), acc.data(), m, patterns, k);
          for (int64_t i = 0; i < m * 16; ++i)
            ASSERT_EQ(acc[i], expected[i]) << "m " << m << " patterns " << patterns << " k " << k << " element " << i;
          ASSERT_TRUE(lhs.slackUntouched() && rhs.slackUntouched());
        }
}

// Scales are powers of two and sums small, so that f32 arithmetic is exact as well.
TEST_P(GemvQuantized, MatchesReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  const int64_t bits = bitsOf(row);
  const bool signedValues = bits == 8 && row.rhs == AJOUR_I8;
  const int32_t zero = signedValues ? 0 : 1 << (bits - 1);
  std::mt19937 rng(3);
  std::vector<int64_t> forms = {0, AJOUR_GEMV_F32_SCALES, AJOUR_GEMV_ZERO_POINTS, AJOUR_GEMV_F32_SCALES | AJOUR_GEMV_ZERO_POINTS};
  if (row.lhs != AJOUR_F32)
    for (int64_t more : {AJOUR_GEMV_UNSIGNED, AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED, AJOUR_GEMV_F32_SCALES | AJOUR_GEMV_OFFSETS,
                         2 << AJOUR_GEMV_RUN_SHIFT, 3 << AJOUR_GEMV_RUN_SHIFT | AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED,
                         1 << AJOUR_GEMV_RUN_SHIFT | AJOUR_GEMV_OFFSETS | AJOUR_GEMV_F32_SCALES})
      forms.push_back(more);
  for (int64_t group : {8, 16, 24, 32, 40, 64, 96, 128})
    for (int64_t groups : {1, 2, 5, 6})
      for (int64_t m = 1; m <= row.mr; ++m)
        for (int64_t patterns : patternCounts)
          for (int64_t flags : forms) {
            const int64_t run = flags >> AJOUR_GEMV_RUN_SHIFT;
            if ((signedValues && flags & (AJOUR_GEMV_ZERO_POINTS | AJOUR_GEMV_UNSIGNED)) || group % row.kr != 0 || (run && groups % run != 0))
              continue;
            const bool atStart = rng() % 2, perGroup = rng() % 2, withSums = patterns == 1 && rng() % 2;
            const int64_t k = groups * group, ldm = k * patterns + m % 3;
            GuardedBuffer<int8_t> lhs((m - 1) * ldm + k * patterns, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<float> real(lhs.size(), AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<float> scales(m * groups, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<int32_t> sums(m * groups, AJOUR_BUFFER_SLACK, atStart);
            const int64_t runs = run ? groups / run : groups;
            GuardedBuffer<uint8_t> rhs(groups * ajour_gemv_group_bytes(bits, group, flags) + runs * ajour_gemv_run_bytes(flags),
                                       AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<float> acc(m * 16, 0, atStart);
            for (int64_t i = 0; i < lhs.size(); ++i)
              real[i] = lhs[i] = rng() % 2 ? int(rng() % 255) - 127 : (rng() % 2 ? 127 : -128);
            for (int64_t i = 0; i < m * groups; ++i)
              scales[i] = std::ldexp(1.0f, -int(rng() % 3));
            fillGroups(rhs.data(), bits, groups, group, flags, rng);
            std::vector<double> expected(m * 16);
            if (row.lhs == AJOUR_F32) {
              ajour_reference_gemv_f32_q(real.data(), ldm, rhs.data(), expected.data(), bits, zero, m, patterns, groups,
                                         group, flags);
              GetParam().as<ajour_gemv_f32_q8_fn>()(real.data(), ldm, rhs.data(), acc.data(), m, patterns, groups,
                                                    group, flags);
            } else {
              for (int64_t t = 0; withSums && t < m; ++t)
                ajour_sum_groups_8bit(lhs.data() + t * ldm, sums.data() + t * groups, groups, group);
              ajour_reference_gemv_q(lhs.data(), ldm, perGroup ? scales.data() : nullptr, rhs.data(), expected.data(),
                                     bits, zero, m, patterns, groups, group, flags);
              GetParam().as<ajour_gemv_q8_fn>()(lhs.data(), ldm, perGroup ? scales.data() : nullptr,
                                                withSums ? sums.data() : nullptr, rhs.data(), acc.data(), m, patterns,
                                                groups, group, flags);
            }
            for (int64_t i = 0; i < m * 16; ++i)
              ASSERT_EQ(acc[i], float(expected[i])) << "m " << m << " patterns " << patterns << " groups " << groups
                                                    << " of " << group << " flags " << flags << " element " << i;
            ASSERT_TRUE(lhs.slackUntouched() && real.slackUntouched() && rhs.slackUntouched());
          }
}

// Several blocks in one call: each as alone, with the same lhs or one of its own.
TEST_P(GemvManyBlocks, MatchReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  constexpr int64_t blocks = AJOUR_GEMV_STREAMS;
  const int64_t bits = bitsOf(row);
  const bool signedValues = bits == 8 && row.rhs == AJOUR_I8;
  const int32_t zero = signedValues ? 0 : 1 << (bits - 1);
  std::mt19937 rng(9);
  for (int64_t group : {8, 16, 32, 40, 64, 96})
    for (int64_t groups : {1, 2, 6})
      for (int64_t patterns : patternCounts)
        for (int64_t flags : {0, AJOUR_GEMV_F32_SCALES, AJOUR_GEMV_ZERO_POINTS, AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED,
                              2 << AJOUR_GEMV_RUN_SHIFT, 1 << AJOUR_GEMV_RUN_SHIFT | AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED})
          for (bool ownLhs : {false, true}) {
            const int64_t run = flags >> AJOUR_GEMV_RUN_SHIFT, k = groups * group;
            if ((signedValues && flags & (AJOUR_GEMV_ZERO_POINTS | AJOUR_GEMV_UNSIGNED)) || group % row.kr != 0 || (run && groups % run != 0))
              continue;
            const bool atStart = rng() % 2, perGroup = rng() % 2, withSums = patterns == 1 && !ownLhs && rng() % 2;
            const int64_t ldm = ownLhs ? k * patterns + 4 : 0, runs = run ? groups / run : groups;
            const int64_t blockBytes = groups * ajour_gemv_group_bytes(bits, group, flags) + runs * ajour_gemv_run_bytes(flags);
            const int64_t stride = blockBytes + 64 * (rng() % 2);
            GuardedBuffer<int8_t> lhs((blocks - 1) * ldm + k * patterns, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<float> scales(groups, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<int32_t> sums(groups, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<uint8_t> rhs((blocks - 1) * stride + blockBytes, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<float> acc(blocks * 16, 0, atStart);
            for (int64_t i = 0; i < lhs.size(); ++i)
              lhs[i] = rng() % 2 ? int(rng() % 255) - 127 : (rng() % 2 ? 127 : -128);
            for (int64_t i = 0; i < groups; ++i)
              scales[i] = std::ldexp(1.0f, -int(rng() % 3));
            for (int64_t b = 0; b < blocks; ++b)
              fillGroups(rhs.data() + b * stride, bits, groups, group, flags, rng);
            if (withSums)
              ajour_sum_groups_8bit(lhs.data(), sums.data(), groups, group);
            GetParam().as<ajour_gemv_q8_fn>()(lhs.data(), ldm, perGroup ? scales.data() : nullptr, withSums ? sums.data() : nullptr,
                                              rhs.data(), acc.data(), 1, patterns, groups, group,
                                              ajour_gemv_many_blocks(flags, stride));
            for (int64_t b = 0; b < blocks; ++b) {
              std::vector<double> expected(16);
              ajour_reference_gemv_q(lhs.data() + b * ldm, 0, perGroup ? scales.data() : nullptr, rhs.data() + b * stride,
                                     expected.data(), bits, zero, 1, patterns, groups, group, flags);
              for (int64_t i = 0; i < 16; ++i)
                ASSERT_EQ(acc[b * 16 + i], float(expected[i]))
                    << "block " << b << " patterns " << patterns << " groups " << groups << " of " << group << " flags "
                    << flags << " row " << i;
            }
            ASSERT_TRUE(lhs.slackUntouched() && rhs.slackUntouched());
          }
}

TEST_P(Compress, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  const bool is8 = row.op == AJOUR_KERNEL_compress_8bit;
  const int64_t size = is8 ? 1 : 4;
  std::mt19937 rng(4);
  for (int64_t groups : {1, 3})
    for (int64_t group : {8, 16, 24, 32, 72})
      for (int64_t kept8 : {0, 2, 4, 6, 8})
        for (bool atStart : {false, true}) {
          GuardedBuffer<uint8_t> src(groups * group * size, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<uint8_t> mask(groups * group / 8, AJOUR_BUFFER_SLACK, atStart);
          for (int64_t i = 0; i < src.size(); ++i)
            src[i] = rng();
          int64_t most = 0;
          for (int64_t g = 0; g < groups; ++g) {
            int64_t count = 0;
            for (int64_t i = 0; i < group / 8; ++i) {
              uint8_t &m = mask[g * group / 8 + i];
              do
                m = rng() % 4 ? rng() & rng() : rng() % 2 ? 255 : 0;
              while (kept8 && kept8 != 8 && __builtin_popcount(m) != kept8);
              if (kept8 == 8)
                m = 255;
              count += __builtin_popcount(m);
            }
            most = std::max(most, count);
          }
          const int64_t stride = (most + 7) / 8 * 8;
          const int64_t flip = is8 && rng() % 2 ? 0x80 : 0;
          GuardedBuffer<uint8_t> dst(groups * stride * size, AJOUR_BUFFER_SLACK, atStart);
          std::vector<uint8_t> expected(groups * stride * size);
          ajour_reference_compress(src.data(), mask.data(), expected.data(), size, groups, group, stride, flip);
          if (is8)
            GetParam().as<ajour_compress_8bit_fn>()(src.data(), mask.data(), dst.data(), groups, group, stride, kept8,
                                                    flip);
          else
            GetParam().as<ajour_compress_f32_fn>()(reinterpret_cast<float *>(src.data()), mask.data(),
                                                   reinterpret_cast<float *>(dst.data()), groups, group, stride, kept8);
          for (int64_t i = 0; i < dst.size(); ++i)
            ASSERT_EQ(dst[i], expected[i]) << groups << " groups of " << group << " kept8 " << kept8 << " byte " << i;
          ASSERT_TRUE(src.slackUntouched() && mask.slackUntouched());
        }
}

TEST_P(CompressC4, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  std::mt19937 rng(5);
  for (int64_t k : {64, 128, 192})
    for (int64_t kept : {1, 2, 3})
      for (int64_t patterns : patternCounts)
        for (int64_t flip : {0, 0x80})
          for (bool atStart : {false, true}) {
            GuardedBuffer<uint8_t> src(k, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<uint8_t> codes(k / 16 * kept * patterns, AJOUR_BUFFER_SLACK, atStart);
            GuardedBuffer<uint8_t> dst(k / 4 * kept * patterns, AJOUR_BUFFER_SLACK, atStart);
            for (int64_t i = 0; i < src.size(); ++i)
              src[i] = rng();
            for (int64_t i = 0; i < codes.size(); ++i)
              codes[i] = rng();
            std::vector<uint8_t> expected(dst.size());
            ajour_reference_compress_c4(src.data(), codes.data(), expected.data(), k, kept, patterns, flip);
            GetParam().as<ajour_compress_c4_8bit_fn>()(src.data(), codes.data(), dst.data(), k, kept, patterns, flip);
            for (int64_t i = 0; i < dst.size(); ++i)
              ASSERT_EQ(dst[i], expected[i])
                  << "k " << k << " kept " << kept << " patterns " << patterns << " byte " << i;
            ASSERT_TRUE(src.slackUntouched() && codes.slackUntouched());
          }
}

#define INSTANTIATE(SUITE, NAME, OP)                                                                                   \
  INSTANTIATE_TEST_SUITE_P(NAME, SUITE, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_##OP)), kernelName)
INSTANTIATE(GemvFloat, F32, gemv_f32);
INSTANTIATE(GemvFloat, F16, gemv_f16);
INSTANTIATE(Gemv8Bit, Table, gemv_8bit);
INSTANTIATE(GemvQuantized, Q8, gemv_q8);
INSTANTIATE(GemvQuantized, Q4, gemv_q4);
INSTANTIATE(GemvQuantized, Q2, gemv_q2);
INSTANTIATE(GemvQuantized, Q5, gemv_q5);
INSTANTIATE(GemvQuantized, Q6, gemv_q6);
INSTANTIATE(GemvQuantized, F32Q8, gemv_f32_q8);
INSTANTIATE(GemvQuantized, F32Q4, gemv_f32_q4);
INSTANTIATE(GemvManyBlocks, Q8, gemv_q8);
INSTANTIATE(GemvManyBlocks, Q4, gemv_q4);
INSTANTIATE(GemvManyBlocks, Q2, gemv_q2);
INSTANTIATE(GemvManyBlocks, Q5, gemv_q5);
INSTANTIATE(GemvManyBlocks, Q6, gemv_q6);
INSTANTIATE(Compress, F32, compress_f32);
INSTANTIATE(Compress, Bytes, compress_8bit);
INSTANTIATE(CompressC4, Table, compress_c4_8bit);

TEST(GemvActivations, QuantizeIsExact) {
  std::mt19937 rng(6);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t groups : {1, 2, 5})
    for (int64_t group : {1, 3, 8, 31, 32, 64, 128})
      for (float range : {1.0f, 127.0f, 1e-30f, 1e30f, 0.0f, 1e-40f}) {
        GuardedBuffer<float> src(groups * group, 0), scales(groups, 0);
        GuardedBuffer<int8_t> dst(groups * group, 0);
        // Halves of the step are frequent: they are what rounding gets wrong.
        for (int64_t i = 0; i < src.size(); ++i)
          src[i] = rng() % 2 ? uniform(rng) * range : range * float(int(rng() % 509) - 254) / 254;
        std::vector<int8_t> expected(src.size());
        std::vector<float> expectedScales(groups);
        ajour_reference_quantize(src.data(), expected.data(), expectedScales.data(), groups, group);
        ajour_quantize_groups_8bit(src.data(), dst.data(), scales.data(), groups, group);
        for (int64_t i = 0; i < src.size(); ++i)
          ASSERT_EQ(dst[i], expected[i]) << src[i] << " of range " << range << " in " << groups << " groups of "
                                         << group;
        for (int64_t g = 0; g < groups; ++g)
          ASSERT_EQ(scales[g], expectedScales[g]);
      }
}

TEST(GemvActivations, Sums) {
  std::mt19937 rng(7);
  for (int64_t group : {1, 8, 15, 16, 17, 32, 100})
    for (int64_t groups : {1, 3}) {
      GuardedBuffer<int8_t> src(groups * group, 0);
      GuardedBuffer<int32_t> sums(groups, 0);
      std::vector<int32_t> expected(groups);
      for (int64_t i = 0; i < src.size(); ++i) {
        src[i] = rng() % 4 ? int8_t(rng()) : -128;
        expected[i / group] += src[i];
      }
      ajour_sum_groups_8bit(src.data(), sums.data(), groups, group);
      for (int64_t g = 0; g < groups; ++g)
        ASSERT_EQ(sums[g], expected[g]) << groups << " groups of " << group;
    }
}

TEST(GemvActivations, Interleave) {
  std::mt19937 rng(8);
  for (int64_t patterns : {2, 4})
    for (int64_t n : {1, 7, 8, 9, 33})
      for (int64_t gap : {0, 3}) {
        GuardedBuffer<int32_t> src((patterns - 1) * (n + gap) + n, 0), dst(patterns * n, 0);
        for (int64_t i = 0; i < src.size(); ++i)
          src[i] = rng();
        ajour_interleave_words(src.data(), n + gap, dst.data(), patterns, n);
        for (int64_t i = 0; i < dst.size(); ++i)
          ASSERT_EQ(dst[i], src[i % patterns * (n + gap) + i / patterns]) << patterns << " patterns, word " << i;
      }
}
