// Every GEMM kernel of the table against the reference: all m, ragged k, guard pages around each operand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/ABI/Dispatch.h"
#include "cpu/Reference.h"

using namespace ajour::test;

namespace {

std::string kernelName(const testing::TestParamInfo<NativeKernel> &info) { return info.param.row.symbol; }

constexpr int64_t depths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 147, 257};

class GemmF32 : public testing::TestWithParam<NativeKernel> {};
class Gemm8Bit : public testing::TestWithParam<NativeKernel> {};

} // namespace

TEST_P(GemmF32, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t k : depths)
    for (int64_t m = 1; m <= row.mr; ++m)
      for (bool atStart : {false, true}) {
        const int64_t lda = k + m % 3;
        GuardedBuffer<float> lhs((m - 1) * lda + k, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<float> rhs(k * row.nr, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<float> acc(m * row.nr, 0, atStart);
        for (auto *buffer : {&lhs, &rhs})
          for (int64_t i = 0; i < buffer->size(); ++i)
            (*buffer)[i] = uniform(rng);
        std::vector<double> expected(m * row.nr);
        ajour_reference_gemm_f32(lhs.data(), lda, rhs.data(), expected.data(), m, row.nr, k);
        GetParam().as<ajour_gemm_f32_fn>()(lhs.data(), lda, rhs.data(), acc.data(), m, k);
        // |error| <= k * eps * sum of |a| |b| <= k * eps * k, for any order of summation.
        const double bound = double(k) * k * 0x1p-24;
        for (int64_t i = 0; i < m * row.nr; ++i)
          ASSERT_NEAR(acc[i], expected[i], bound) << "m " << m << " k " << k << " element " << i;
        ASSERT_TRUE(lhs.slackUntouched() && rhs.slackUntouched());
      }
}

TEST_P(GemmF32, IntegersAreExact) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(2);
  for (int64_t k : depths)
    for (int64_t m = 1; m <= row.mr; ++m) {
      std::vector<float> lhs(m * k), rhs(k * row.nr), acc(m * row.nr);
      for (auto *buffer : {&lhs, &rhs})
        for (float &x : *buffer)
          x = float(int(rng() % 15) - 7);
      std::vector<double> expected(m * row.nr);
      ajour_reference_gemm_f32(lhs.data(), k, rhs.data(), expected.data(), m, row.nr, k);
      GetParam().as<ajour_gemm_f32_fn>()(lhs.data(), k, rhs.data(), acc.data(), m, k);
      for (int64_t i = 0; i < m * row.nr; ++i)
        ASSERT_EQ(acc[i], expected[i]) << "m " << m << " k " << k << " element " << i;
    }
}

TEST_P(Gemm8Bit, MatchesReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(3);
  for (int64_t depth : depths)
    for (int64_t m = 1; m <= row.mr; ++m)
      for (bool atStart : {false, true}) {
        const int64_t k = (depth + row.kr - 1) / row.kr * row.kr;
        const int64_t lda = depth + m % 3;
        // Rows overlap in their padding, as rows of a real tensor do; only the slack lies behind the last.
        GuardedBuffer<uint8_t> lhs((m - 1) * lda + depth, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<int8_t> rhs(k * row.nr, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<int32_t> acc(m * row.nr, 0, atStart);
        // Extreme values are frequent: they are what saturating instructions get wrong.
        for (int64_t i = 0; i < lhs.size(); ++i)
          lhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 255 : 128);
        for (int64_t i = 0; i < rhs.size(); ++i)
          rhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 127 : -128);
        for (int64_t p = depth; p < k; ++p)
          for (int64_t j = 0; j < row.nr; ++j)
            rhs[(p / row.kr * row.nr + j) * row.kr + p % row.kr] = 0;
        std::vector<int32_t> expected(m * row.nr);
        ajour_reference_gemm_8bit(lhs.data(), row.lhs == AJOUR_I8, lda, rhs.data(), expected.data(), m, row.nr,
                                  row.kr, depth);
        GetParam().as<ajour_gemm_8bit_fn>()(lhs.data(), lda, rhs.data(), acc.data(), m, k);
        for (int64_t i = 0; i < m * row.nr; ++i)
          ASSERT_EQ(acc[i], expected[i]) << "m " << m << " k " << depth << " element " << i;
        ASSERT_TRUE(lhs.slackUntouched() && rhs.slackUntouched());
      }
}

TEST_P(Gemm8Bit, ExtremesDoNotSaturate) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  const int64_t k = 4096;
  for (int low : {0, 1})
    for (int8_t weight : {int8_t(-128), int8_t(127)}) {
      const uint8_t byte = row.lhs == AJOUR_I8 ? (low ? 0x80 : 0x7F) : (low ? 0 : 255);
      const int32_t value = row.lhs == AJOUR_I8 ? int8_t(byte) : byte;
      std::vector<uint8_t> lhs(row.mr * k, byte);
      std::vector<int8_t> rhs(k * row.nr, weight);
      std::vector<int32_t> acc(row.mr * row.nr);
      GetParam().as<ajour_gemm_8bit_fn>()(lhs.data(), k, rhs.data(), acc.data(), row.mr, k);
      for (int32_t x : acc)
        ASSERT_EQ(x, int32_t(k) * value * weight);
    }
}

INSTANTIATE_TEST_SUITE_P(Table, GemmF32, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_gemm_f32)), kernelName);
INSTANTIATE_TEST_SUITE_P(Table, Gemm8Bit, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_gemm_8bit)), kernelName);

TEST(KernelTable, BestRowPerLevel) {
  EXPECT_STREQ(ajour_find_kernel(AJOUR_KERNEL_gemm_8bit, AJOUR_LEVEL_avx512vnni)->symbol,
               "ajour_gemm_u8_i8_i32_14x32x4_avx512vnni");
  EXPECT_EQ(ajour_find_kernel(AJOUR_KERNEL_gemm_f32, AJOUR_LEVEL_avx512vnni)->level, AJOUR_LEVEL_avx512);
  EXPECT_EQ(ajour_find_kernel(AJOUR_KERNEL_dwconv_8bit, AJOUR_LEVEL_avx512)->level, AJOUR_LEVEL_avx2);
  EXPECT_EQ(ajour_find_kernel(AJOUR_KERNEL_dwconv_8bit, AJOUR_LEVEL_i8mm)->level, AJOUR_LEVEL_dotprod);
  EXPECT_EQ(ajour_find_kernel(AJOUR_KERNEL_gemm_f32, AJOUR_LEVEL_i8mm)->level, AJOUR_LEVEL_neon);
}

// Names state what the columns say, and within an architecture the levels that share a layout really do.
TEST(KernelTable, NamesFollowTheColumns) {
  for (const ajour_kernel_row &row : ajour_kernel_table) {
    auto type = [](uint32_t t) { return t == AJOUR_U8 ? std::string("u8") : ajour_element_name(t); };
    // What only moves activations has its op's name; quantised weights are bytes that hold q8 or q4.
    if (row.op >= AJOUR_KERNEL_compress_f32)
      continue;
    const std::string op = row.op <= AJOUR_KERNEL_gemm_8bit     ? "gemm"
                           : row.op <= AJOUR_KERNEL_dwconv_8bit ? "dwconv"
                           : row.op == AJOUR_KERNEL_spconv_f32  ? "spconv"
                           : row.op <= AJOUR_KERNEL_spmm_f32    ? "spmm"
                           : row.op <= AJOUR_KERNEL_gemm_sparse4_8bit
                               ? "gemm_sparse" + std::to_string(1 << (row.op - AJOUR_KERNEL_gemm_sparse1_f32) % 3)
                           : row.op <= AJOUR_KERNEL_gemv_f32_q4 ? "gemv"
                                                                : "gemm";
    auto isOneOf = [&](std::initializer_list<ajour_kernel_op> ops) { return std::count(ops.begin(), ops.end(), row.op) > 0; };
    const std::string rhs = isOneOf({AJOUR_KERNEL_gemv_q8, AJOUR_KERNEL_gemv_f32_q8, AJOUR_KERNEL_gemm_q8})   ? "q8"
                            : isOneOf({AJOUR_KERNEL_gemv_q4, AJOUR_KERNEL_gemv_f32_q4, AJOUR_KERNEL_gemm_q4}) ? "q4"
                            : isOneOf({AJOUR_KERNEL_gemv_q2})                                                 ? "q2"
                            : isOneOf({AJOUR_KERNEL_gemv_q5})                                                 ? "q5"
                            : isOneOf({AJOUR_KERNEL_gemv_q6})                                                 ? "q6"
                                                                                                              : type(row.rhs);
    EXPECT_EQ(row.symbol, "ajour_" + op + "_" + type(row.lhs) + "_" + rhs + "_" + type(row.acc) + "_" +
                              std::to_string(row.mr) + "x" + std::to_string(row.nr) + "x" + std::to_string(row.kr) +
                              "_" + levelName(row.level));
  }
}
