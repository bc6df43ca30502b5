// The kernels inlined with constant sizes, which the optimiser unrolls, folds and schedules differently from the
// library's, against the reference.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "Kernels/NativeKernels.h"
#include "Kernels/Specialised.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/Packing.h"
#include "cpu/Reference.h"

using namespace ajour::encoding;

namespace {

ajour_kernel_row rowOf(const char *symbol) {
  for (const ajour_kernel_row &row : ajour_kernel_table)
    if (!std::strcmp(row.symbol, symbol))
      return row;
  ADD_FAILURE() << symbol << " is not in the table";
  return {};
}

std::mt19937 rng(11);
template <typename T> void fill(std::vector<T> &values) {
  // Small enough that sums of floats are exact.
  for (T &x : values)
    x = sizeof(T) == 1 ? T(rng()) : T(int(rng() % 15) - 7);
}

class SpecialisedGemm : public testing::TestWithParam<int> {};
class SpecialisedDwconv : public testing::TestWithParam<int> {};

} // namespace

TEST_P(SpecialisedGemm, MatchesReference) {
  const specialised_gemm &gemm = specialised_gemms[GetParam()];
  const ajour_kernel_row row = rowOf(gemm.symbol);
  if (!ajour::test::cpuHas(gemm.level))
    GTEST_SKIP() << "this CPU lacks the level '" << ajour::test::levelName(gemm.level) << "'";
  if (row.op == AJOUR_KERNEL_gemm_f32) {
    std::vector<float> lhs(gemm.m * gemm.k), rhs(gemm.k * row.nr), acc(gemm.m * row.nr);
    std::vector<double> expected(acc.size());
    fill(lhs), fill(rhs);
    gemm.run(lhs.data(), rhs.data(), acc.data());
    ajour_reference_gemm_f32(lhs.data(), gemm.k, rhs.data(), expected.data(), gemm.m, row.nr, gemm.k);
    for (size_t i = 0; i < acc.size(); ++i)
      ASSERT_EQ(acc[i], expected[i]) << i;
  } else {
    std::vector<uint8_t> lhs(gemm.m * gemm.k + AJOUR_BUFFER_SLACK);
    std::vector<int8_t> rhs(gemm.k * row.nr);
    std::vector<int32_t> acc(gemm.m * row.nr), expected(acc);
    fill(lhs), fill(rhs);
    gemm.run(lhs.data(), rhs.data(), acc.data());
    ajour_reference_gemm_8bit(lhs.data(), row.lhs == AJOUR_I8, gemm.k, rhs.data(), expected.data(), gemm.m, row.nr,
                              row.kr, gemm.k);
    ASSERT_EQ(acc, expected);
  }
}

template <typename T, typename Acc, typename Reference>
static void checkDwconv(const specialised_dwconv &conv, const ajour_kernel_row &row, Reference reference) {
  const int64_t k = conv.kernel, w = conv.width, c = conv.channels, pad = k / 2, ow = (w - 1) / conv.stride + 1;
  using Weight = std::conditional_t<sizeof(T) == 1, int8_t, float>;
  std::vector<T> image(w * w * c + AJOUR_BUFFER_SLACK);
  std::vector<Weight> dense(k * k * c), packed(packedDepthwiseSize(k, k, c, row.nr, row.kr));
  fill(image), fill(dense);
  packDepthwise(DepthwiseView<Weight>{dense.data(), k, k, c, k * c, c, 1}, row.nr, row.kr, std::span<Weight>(packed));
  const int64_t blocks = (c + row.nr - 1) / row.nr, tiles = (ow + 27) / 28, step = 28 * row.nr;
  std::vector<Acc> acc(ow * blocks * tiles * step);
  conv.run(image.data(), packed.data(), acc.data(), step);
  const Acc *tile = acc.data();
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t oy = 0; oy < ow; ++oy) {
      const int64_t y0 = oy * conv.stride - pad, ky0 = std::max<int64_t>(0, -y0), ky1 = std::min(k, w - y0);
      for (int64_t p = 0; p < ow; p += 28, tile += step) {
        const int64_t n = std::min<int64_t>(28, ow - p), channels = std::min<int64_t>(row.nr, c - block * row.nr);
        std::vector<std::conditional_t<sizeof(T) == 1, int32_t, double>> expected(step);
        reference(image.data() + (y0 + ky0) * w * c + block * row.nr, c, w * c,
                  packed.data() + packedDepthwiseSize(k, k, block * row.nr, row.nr, row.kr), expected.data(), row.nr,
                  n, channels, k, k, ky0, ky1, p * conv.stride - pad, w, conv.stride);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t ch = 0; ch < channels; ++ch)
            ASSERT_EQ(tile[i * row.nr + ch], expected[i * row.nr + ch])
                << "row " << oy << " pixel " << p + i << " channel " << block * row.nr + ch;
      }
    }
}

TEST_P(SpecialisedDwconv, MatchesReference) {
  const specialised_dwconv &conv = specialised_dwconvs[GetParam()];
  const ajour_kernel_row row = rowOf(conv.symbol);
  if (!ajour::test::cpuHas(conv.level))
    GTEST_SKIP() << "this CPU lacks the level '" << ajour::test::levelName(conv.level) << "'";
  if (row.op == AJOUR_KERNEL_dwconv_f32)
    checkDwconv<float, float>(conv, row, [](auto... args) { ajour_reference_dwconv_f32(args..., 1); });
  else
    checkDwconv<uint8_t, int32_t>(conv, row, [&](const uint8_t *src, auto... args) {
      ajour_reference_dwconv_8bit(src, row.lhs == AJOUR_I8, args..., 1, SPECIALISED_PAD, SPECIALISED_FLIP);
    });
}

INSTANTIATE_TEST_SUITE_P(Table, SpecialisedGemm, testing::Range(0, specialised_gemm_count), [](const auto &info) {
  const specialised_gemm &gemm = specialised_gemms[info.param];
  return std::string(gemm.symbol) + "_m" + std::to_string(gemm.m) + "_k" + std::to_string(gemm.k);
});
// Small images only: the reference is slow, slower still where the CPU is emulated.
static std::vector<int> smallImages() {
  std::vector<int> indices;
  for (int i = 0; i < specialised_dwconv_count; ++i)
    if (specialised_dwconvs[i].width <= 28)
      indices.push_back(i);
  return indices;
}
INSTANTIATE_TEST_SUITE_P(Table, SpecialisedDwconv, testing::ValuesIn(smallImages()), [](const auto &info) {
  const specialised_dwconv &conv = specialised_dwconvs[info.param];
  return std::string(conv.symbol) + "_" + std::to_string(conv.kernel) + "s" + std::to_string(conv.stride) + "_" +
         std::to_string(conv.width) + "x" + std::to_string(conv.channels);
});
