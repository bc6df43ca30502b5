// Every depthwise kernel of the table against the reference: kernel sizes, strides, dilations, borders, ragged
// channels, guard pages around each operand.
#include <gtest/gtest.h>

#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/Packing.h"
#include "cpu/Reference.h"

using namespace ajour::test;
using namespace ajour::encoding;

namespace {

std::string kernelName(const testing::TestParamInfo<NativeKernel> &info) { return info.param.row.symbol; }

struct Geometry {
  int64_t kh, kw, stride, dilation, pad, ih, iw;
};

// The padded widths give short rows, rows of less than a tile, and rows of several tiles.
const Geometry geometries[] = {
    {3, 3, 1, 1, 1, 5, 5},  {3, 3, 1, 1, 1, 3, 1},  {3, 3, 1, 1, 1, 4, 7},   {3, 3, 1, 1, 0, 4, 23}, {3, 3, 2, 1, 1, 7, 14},
    {3, 3, 2, 1, 0, 9, 31}, {5, 5, 1, 1, 2, 7, 7},  {5, 5, 1, 1, 2, 6, 2},   {5, 5, 1, 1, 2, 8, 19}, {5, 5, 2, 1, 2, 9, 28},
    {3, 3, 1, 2, 2, 7, 11}, {7, 7, 1, 1, 3, 8, 13}, {1, 1, 1, 1, 0, 2, 9},   {3, 5, 1, 1, 2, 6, 12}, {5, 3, 2, 1, 1, 9, 15},
    {4, 4, 3, 1, 1, 9, 17}, {1, 7, 1, 1, 3, 3, 16}, {7, 1, 1, 1, 0, 9, 8},   {2, 2, 2, 1, 0, 4, 8},  {9, 3, 1, 1, 1, 10, 9},
};

/// Calls `check(oy, ky0, ky1, first row)` for every output row of a geometry with same padding on all sides.
template <typename Fn> void forEachRow(const Geometry &g, Fn check) {
  const int64_t oh = (g.ih + 2 * g.pad - g.dilation * (g.kh - 1) - 1) / g.stride + 1;
  for (int64_t oy = 0; oy < oh; ++oy) {
    const int64_t y0 = oy * g.stride - g.pad;
    int64_t ky0 = 0, ky1 = g.kh;
    while (ky0 < g.kh && y0 + ky0 * g.dilation < 0)
      ++ky0;
    while (ky1 > ky0 && y0 + (ky1 - 1) * g.dilation >= g.ih)
      --ky1;
    if (ky0 < ky1)
      check(ky0, ky1, y0 + ky0 * g.dilation);
  }
}

int64_t outputWidth(const Geometry &g) { return (g.iw + 2 * g.pad - g.dilation * (g.kw - 1) - 1) / g.stride + 1; }

class DepthwiseF32 : public testing::TestWithParam<NativeKernel> {};
class Depthwise8Bit : public testing::TestWithParam<NativeKernel> {};

} // namespace

TEST_P(DepthwiseF32, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(4);
  for (const Geometry &g : geometries)
    for (int64_t c : {int64_t(1), int64_t(5), int64_t(row.nr) / 2, int64_t(row.nr) / 2 + 1, int64_t(row.nr)})
      for (bool atStart : {false, true}) {
        const int64_t pixelStride = c, rowStride = g.iw * pixelStride;
        GuardedBuffer<float> image(g.ih * rowStride, AJOUR_BUFFER_SLACK, atStart);
        std::vector<float> dense(g.kh * g.kw * c);
        GuardedBuffer<float> weights(packedDepthwiseSize(g.kh, g.kw, c, row.nr, 1), AJOUR_BUFFER_SLACK, atStart);
        // Small integers: every order of summation is exact.
        for (int64_t i = 0; i < image.size(); ++i)
          image[i] = float(int(rng() % 31) - 15);
        for (float &x : dense)
          x = float(int(rng() % 31) - 15);
        packDepthwise(DepthwiseView<float>{dense.data(), g.kh, g.kw, c, g.kw * c, c, 1}, row.nr, 1,
                      {weights.data(), size_t(weights.size())});
        const int64_t ow = outputWidth(g);
        forEachRow(g, [&](int64_t ky0, int64_t ky1, int64_t y) {
          for (int64_t first : {int64_t(0), ow / 3}) {
            const int64_t n = ow - first, ix0 = first * g.stride - g.pad;
            GuardedBuffer<float> acc(n * row.nr, 0, atStart);
            std::vector<double> expected(n * row.nr);
            const float *src = image.data() + y * rowStride;
            ajour_reference_dwconv_f32(src, pixelStride, g.dilation * rowStride, weights.data(), expected.data(),
                                       row.nr, n, c, g.kh, g.kw, ky0, ky1, ix0, g.iw, g.stride, g.dilation);
            GetParam().as<ajour_dwconv_f32_fn>()(src, pixelStride, g.dilation * rowStride, weights.data(),
                                                 acc.data(), n, c, g.kh, g.kw, ky0, ky1, ix0, g.iw, g.stride,
                                                 g.dilation);
            for (int64_t p = 0; p < n; ++p)
              for (int64_t ch = 0; ch < c; ++ch)
                ASSERT_EQ(acc[p * row.nr + ch], expected[p * row.nr + ch])
                    << g.kh << "x" << g.kw << " stride " << g.stride << " iw " << g.iw << " c " << c << " ky0 " << ky0
                    << " pixel " << first + p << " channel " << ch;
          }
        });
        ASSERT_TRUE(image.slackUntouched() && weights.slackUntouched());
      }
}

TEST_P(Depthwise8Bit, MatchesReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(5);
  for (const Geometry &g : geometries)
    for (int64_t c : {int64_t(1), int64_t(5), int64_t(16), int64_t(17), int64_t(32), int64_t(33), int64_t(row.nr)})
      for (bool atStart : {false, true}) {
        if (c > row.nr)
          continue;
        const int64_t pixelStride = c, rowStride = g.iw * pixelStride;
        GuardedBuffer<uint8_t> image(g.ih * rowStride, AJOUR_BUFFER_SLACK, atStart);
        std::vector<int8_t> dense(g.kh * g.kw * c);
        GuardedBuffer<int8_t> weights(packedDepthwiseSize(g.kh, g.kw, c, row.nr, row.kr), AJOUR_BUFFER_SLACK, atStart);
        for (int64_t i = 0; i < image.size(); ++i)
          image[i] = rng() % 2 ? rng() : (rng() % 2 ? 255 : 128);
        for (int8_t &x : dense)
          x = rng() % 2 ? rng() : (rng() % 2 ? 127 : -128);
        packDepthwise(DepthwiseView<int8_t>{dense.data(), g.kh, g.kw, c, g.kw * c, c, 1}, row.nr, row.kr,
                      {weights.data(), size_t(weights.size())});
        const int64_t ow = outputWidth(g);
        forEachRow(g, [&](int64_t ky0, int64_t ky1, int64_t y) {
          const int64_t first = rng() % 2 ? 0 : ow / 3, flip = rng() % 2 ? 0x80 : 0, pad = rng() % 256;
          const int64_t n = ow - first, ix0 = first * g.stride - g.pad;
          GuardedBuffer<int32_t> acc(n * row.nr, 0, atStart);
          std::vector<int32_t> expected(n * row.nr);
          const uint8_t *src = image.data() + y * rowStride;
          ajour_reference_dwconv_8bit(src, row.lhs == AJOUR_I8, pixelStride, g.dilation * rowStride, weights.data(),
                                      expected.data(), row.nr, n, c, g.kh, g.kw, ky0, ky1, ix0, g.iw, g.stride,
                                      g.dilation, pad, flip);
          GetParam().as<ajour_dwconv_8bit_fn>()(src, pixelStride, g.dilation * rowStride, weights.data(), acc.data(),
                                                n, c, g.kh, g.kw, ky0, ky1, ix0, g.iw, g.stride, g.dilation, pad,
                                                flip);
          for (int64_t p = 0; p < n; ++p)
            for (int64_t ch = 0; ch < c; ++ch)
              ASSERT_EQ(acc[p * row.nr + ch], expected[p * row.nr + ch])
                  << g.kh << "x" << g.kw << " stride " << g.stride << " iw " << g.iw << " c " << c << " ky0 " << ky0
                  << " ky1 " << ky1 << " pixel " << first + p << " channel " << ch;
        });
        ASSERT_TRUE(image.slackUntouched() && weights.slackUntouched());
      }
}

// What the compiler relies on: with pad = the flipped zero point, one constant per channel removes the zero point,
// inside and at borders, for activations of either sign.
TEST_P(Depthwise8Bit, ZeroPointFoldsIntoABias) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  std::mt19937 rng(6);
  const Geometry g = {3, 3, 1, 1, 1, 5, 9};
  const int64_t c = 19;
  for (bool isSigned : {false, true}) {
    const int64_t flip = isSigned == (row.lhs == AJOUR_I8) ? 0 : 0x80;
    const int32_t zeroPoint = isSigned ? -7 : 131;
    const int64_t pad = uint8_t(zeroPoint) ^ flip;
    const int32_t padValue = row.lhs == AJOUR_I8 ? int8_t(pad) : int32_t(pad);
    std::vector<uint8_t> image(g.ih * g.iw * c + AJOUR_BUFFER_SLACK);
    std::vector<int8_t> dense(9 * c), packed(packedDepthwiseSize(3, 3, c, row.nr, row.kr) + AJOUR_BUFFER_SLACK);
    for (uint8_t &x : image)
      x = rng();
    for (int8_t &x : dense)
      x = rng();
    const DepthwiseView<int8_t> view = {dense.data(), 3, 3, c, 3 * c, c, 1};
    packDepthwise(view, row.nr, row.kr, {packed.data(), packed.size() - AJOUR_BUFFER_SLACK});
    std::vector<int32_t> sums(c), acc(g.iw * row.nr);
    channelSums(view, sums);
    int64_t oy = 0;
    forEachRow(g, [&](int64_t ky0, int64_t ky1, int64_t y) {
      GetParam().as<ajour_dwconv_8bit_fn>()(image.data() + y * g.iw * c, c, g.iw * c, packed.data(), acc.data(), g.iw, c,
                                            3, 3, ky0, ky1, -1, g.iw, 1, 1, pad, flip);
      for (int64_t ox = 0; ox < g.iw; ++ox)
        for (int64_t ch = 0; ch < c; ++ch) {
          int32_t expected = 0;
          for (int64_t ky = 0; ky < 3; ++ky)
            for (int64_t kx = 0; kx < 3; ++kx) {
              const int64_t iy = oy - 1 + ky, ix = ox - 1 + kx;
              if (iy < 0 || iy >= g.ih || ix < 0 || ix >= g.iw)
                continue;
              const uint8_t byte = image[(iy * g.iw + ix) * c + ch];
              expected += ((isSigned ? int8_t(byte) : byte) - zeroPoint) * dense[(ky * 3 + kx) * c + ch];
            }
          ASSERT_EQ(acc[ox * row.nr + ch] - padValue * sums[ch], expected) << "pixel " << oy << "," << ox;
        }
      ++oy;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Table, DepthwiseF32, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_dwconv_f32)), kernelName);
INSTANTIATE_TEST_SUITE_P(Table, Depthwise8Bit, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_dwconv_8bit)), kernelName);
