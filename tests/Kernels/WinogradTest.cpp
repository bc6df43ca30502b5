// Winograd's transforms of the table against the reference, and the whole method against the convolution that it stands
// for: sizes of images, borders, ragged channels, guard pages around each operand.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/Winograd.h"
#include "cpu/Reference.h"

using namespace ajour::test;
using namespace ajour::encoding;

namespace {

std::string kernelName(const testing::TestParamInfo<NativeKernel> &info) { return info.param.row.symbol; }

class WinogradInput : public testing::TestWithParam<NativeKernel> {};
class WinogradOutput : public testing::TestWithParam<NativeKernel> {};

// Sums of at most 36 products of numbers up to 15 with factors up to 6.25 (two rows of B^T: 2.5 each), rounded about a
// dozen times: 36 * 15 * 6.25 * 12 * 2^-24 is below 3e-3; what is expected is far less.
constexpr double tolerance = 1e-3;

} // namespace

TEST_P(WinogradInput, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(7);
  for (int64_t t : {2, 4})
    for (auto [ih, iw, pad] : {std::array<int64_t, 3>{1, 1, 1}, {3, 3, 0}, {7, 5, 1}, {6, 13, 1}, {9, 9, 2}, {12, 8, 0}})
      for (int64_t c : {int64_t(row.nr), int64_t(row.nr) + 1, 2 * int64_t(row.nr) + row.nr / 2})
        for (bool atStart : {false, true}) {
          const int64_t tilesY = (ih + 2 * pad - 2 + t - 1) / t, tilesX = (iw + 2 * pad - 2 + t - 1) / t;
          if (tilesY * tilesX == 0)
            continue;
          GuardedBuffer<float> image(ih * iw * c, AJOUR_BUFFER_SLACK, atStart);
          for (int64_t i = 0; i < image.size(); ++i)
            image[i] = float(int(rng() % 31) - 15);
          const int64_t first = tilesY * tilesX / 3, count = tilesY * tilesX - first, points = winogradPoints(t);
          const int64_t ldd = c + 3, stride = (count - 1) * ldd + c;
          GuardedBuffer<float> out(points * stride, 0, atStart);
          GetParam().as<ajour_winograd_input_f32_fn>()(image.data(), ih, iw, c, first, count, tilesX, pad, pad,
                                                       out.data(), ldd, stride, t);
          std::vector<double> expected(points);
          for (int64_t tile = 0; tile < count; ++tile)
            for (int64_t ch = 0; ch < c; ++ch) {
              ajour_reference_winograd_input_f32(image.data(), ih, iw, c, (first + tile) / tilesX,
                                                 (first + tile) % tilesX, pad, pad, ch, expected.data(), t);
              for (int64_t p = 0; p < points; ++p)
                ASSERT_NEAR(out[p * stride + tile * ldd + ch], expected[p], tolerance)
                    << "t " << t << " image " << ih << "x" << iw << " c " << c << " tile " << tile << " point " << p
                    << " channel " << ch;
            }
          ASSERT_TRUE(image.slackUntouched());
        }
}

TEST_P(WinogradOutput, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(8);
  for (int64_t t : {2, 4})
    for (int64_t nr : {int64_t(row.nr), 4 * int64_t(row.nr)})
      for (bool atStart : {false, true}) {
        const int64_t points = winogradPoints(t), stride = nr + 5;
        GuardedBuffer<float> products((points - 1) * stride + nr, AJOUR_BUFFER_SLACK, atStart), acc(t * t * nr, 0, atStart);
        for (int64_t i = 0; i < products.size(); ++i)
          products[i] = float(int(rng() % 31) - 15);
        GetParam().as<ajour_winograd_output_f32_fn>()(products.data(), stride, acc.data(), nr, t);
        std::vector<double> expected(t * t);
        for (int64_t j = 0; j < nr; ++j) {
          ajour_reference_winograd_output_f32(products.data() + j, stride, expected.data(), t);
          for (int64_t p = 0; p < t * t; ++p)
            ASSERT_NEAR(acc[p * nr + j], expected[p], tolerance) << "t " << t << " output " << p << " channel " << j;
        }
        ASSERT_TRUE(products.slackUntouched());
      }
}

// The three transforms together are the convolution; in double precision to about its rounding, but that the kernels'
// points are rounded to f32.
TEST(Winograd, TransformsAreAConvolution) {
  std::mt19937 rng(9);
  std::uniform_real_distribution<float> random(-1, 1);
  for (int64_t t : {2, 4}) {
    const int64_t n = t + 2, points = winogradPoints(t);
    std::vector<float> image(n * n), products(points);
    double filter[9];
    std::vector<double> input(points), weights(points), outputs(t * t);
    for (float &x : image)
      x = random(rng);
    for (double &x : filter)
      x = random(rng);
    ajour_reference_winograd_input_f32(image.data(), n, n, 1, 0, 0, 0, 0, 0, input.data(), t);
    winogradFilter(t, filter, weights);
    for (int64_t p = 0; p < points; ++p)
      products[p] = float(input[p] * weights[p]);
    ajour_reference_winograd_output_f32(products.data(), 1, outputs.data(), t);
    for (int64_t y = 0; y < t; ++y)
      for (int64_t x = 0; x < t; ++x) {
        double expected = 0;
        for (int64_t ky = 0; ky < 3; ++ky)
          for (int64_t kx = 0; kx < 3; ++kx)
            expected += image[(y + ky) * n + x + kx] * filter[ky * 3 + kx];
        EXPECT_NEAR(outputs[y * t + x], expected, 2e-5) << "t " << t << " output " << y << "," << x;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, WinogradInput, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_winograd_input_f32)),
                         kernelName);
INSTANTIATE_TEST_SUITE_P(Table, WinogradOutput, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_winograd_output_f32)),
                         kernelName);
