// Row copies and im2col, with guard pages around each operand.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "Kernels/GuardedBuffer.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Kernels/Kernels.h"

using namespace ajour::test;

TEST(CopyRows, FlipsAndPads) {
  std::mt19937 rng(7);
  for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200})
    for (int64_t tail : {0, 1, 3, 7})
      for (int64_t flip : {0, 0x80})
        for (bool atStart : {false, true}) {
          const int64_t m = 3, lds = k + 2, ldd = k + tail + 5;
          GuardedBuffer<uint8_t> src((m - 1) * lds + k, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<uint8_t> dst((m - 1) * ldd + k + tail, 0, atStart);
          for (int64_t i = 0; i < src.size(); ++i)
            src[i] = rng();
          for (int64_t i = 0; i < dst.size(); ++i)
            dst[i] = 0xEE;
          ajour_copy_rows_8bit(src.data(), lds, dst.data(), ldd, m, k, k + tail, flip);
          for (int64_t i = 0; i < dst.size(); ++i) {
            const int64_t r = i / ldd, p = i % ldd;
            const int expected = p < k ? src[r * lds + p] ^ flip : p < k + tail ? 0 : 0xEE;
            ASSERT_EQ(dst[i], expected) << "k " << k << " tail " << tail << " row " << r << " place " << p;
          }
        }
}

TEST(Lookup, EveryByteInPlace) {
  std::mt19937 rng(8);
  for (int64_t n : {0, 1, 7, 8, 9, 32, 300})
    for (int64_t flip : {0, 0x80})
      for (bool atStart : {false, true}) {
        GuardedBuffer<uint8_t> data(n, 0, atStart), table(256, 0, atStart);
        for (int64_t i = 0; i < 256; ++i)
          table[i] = rng();
        std::vector<uint8_t> before(n);
        for (int64_t i = 0; i < n; ++i)
          before[i] = data[i] = n == 300 ? i : rng();
        ajour_lookup_8bit(data.data(), table.data(), n, flip);
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(data[i], table[before[i] ^ flip]) << "n " << n << " place " << i;
      }
}

namespace {
struct Geometry {
  int64_t ih, iw, c, ldp, kh, kw, strideY, strideX, dilationY, dilationX, padTop, padLeft, oh, ow;
};
const Geometry geometries[] = {
    {7, 9, 3, 3, 3, 3, 2, 2, 1, 1, 0, 1, 4, 5},  {5, 6, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 5, 6},
    {5, 6, 4, 12, 3, 3, 1, 1, 1, 1, 1, 1, 5, 6}, {9, 9, 5, 5, 3, 3, 1, 1, 2, 3, 2, 3, 9, 9},
    {8, 8, 3, 3, 7, 7, 2, 2, 1, 1, 3, 3, 4, 4},  {4, 4, 70, 70, 1, 1, 2, 2, 1, 1, 0, 0, 2, 2},
    {2, 3, 1, 1, 5, 5, 1, 1, 1, 1, 4, 4, 6, 7},  {3, 5, 24, 24, 3, 1, 1, 2, 1, 1, 1, 0, 3, 3},
};
} // namespace

template <typename T, typename Call> static void checkIm2Col(T hole, uint8_t flip, Call call) {
  std::mt19937 rng(8);
  for (const Geometry &g : geometries)
    for (int64_t tail : {0, 3})
      for (int64_t first : {int64_t(0), int64_t(1), g.ow - 1, g.ow}) {
        const int64_t m = std::min<int64_t>(g.oh * g.ow - first, 6), k = g.kh * g.kw * g.c, ldd = k + tail + 2;
        GuardedBuffer<T> src((g.ih * g.iw - 1) * g.ldp + g.c, AJOUR_BUFFER_SLACK);
        GuardedBuffer<T> dst((m - 1) * ldd + k + tail, 0);
        for (int64_t i = 0; i < src.size(); ++i)
          src[i] = T(rng() % 200);
        for (int64_t i = 0; i < dst.size(); ++i)
          dst[i] = T(77);
        call(g, src.data(), dst.data(), ldd, first, m, k + tail);
        for (int64_t i = 0; i < dst.size(); ++i) {
          const int64_t r = i / ldd, p = i % ldd, oy = (first + r) / g.ow, ox = (first + r) % g.ow;
          T expected = T(77);
          if (p < k) {
            const int64_t ch = p % g.c, kx = p / g.c % g.kw, ky = p / g.c / g.kw;
            const int64_t y = oy * g.strideY - g.padTop + ky * g.dilationY,
                          x = ox * g.strideX - g.padLeft + kx * g.dilationX;
            expected = y < 0 || y >= g.ih || x < 0 || x >= g.iw ? hole : src[(y * g.iw + x) * g.ldp + ch];
            if (flip)
              expected = T(uint8_t(expected) ^ flip);
          } else if (p < k + tail) {
            expected = T(0);
          }
          ASSERT_EQ(dst[i], expected) << g.kh << "x" << g.kw << " c " << g.c << " first " << first << " row " << r
                                      << " place " << p;
        }
      }
}

TEST(Im2Col, EightBit) {
  for (uint8_t flip : {0, 0x80})
    checkIm2Col<uint8_t>(131, flip,
                         [&](const Geometry &g, const uint8_t *src, uint8_t *dst, int64_t ldd, int64_t first,
                             int64_t m, int64_t padded) {
                           ajour_im2col_8bit(src, g.ih, g.iw, g.c, g.ldp, dst, ldd, first, m, g.ow, g.kh, g.kw,
                                             g.strideY, g.strideX, g.dilationY, g.dilationX, g.padTop, g.padLeft,
                                             padded, 131, flip);
                         });
}

TEST(Im2Col, F32) {
  checkIm2Col<float>(0, 0,
                     [&](const Geometry &g, const float *src, float *dst, int64_t ldd, int64_t first, int64_t m,
                         int64_t padded) {
                       ajour_im2col_f32(src, g.ih, g.iw, g.c, g.ldp, dst, ldd, first, m, g.ow, g.kh, g.kw, g.strideY,
                                        g.strideX, g.dilationY, g.dilationX, g.padTop, g.padLeft, padded);
                     });
}
