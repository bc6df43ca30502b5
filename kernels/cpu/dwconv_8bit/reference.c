/* The meaning of the 8-bit depthwise kernels on weights [ceil(kh / 4)][kw][nr][4], exact modulo 2^32. */
#include "../Reference.h"

void ajour_reference_dwconv_8bit(const void *src, int lhs_is_signed, int64_t pixel_stride, int64_t row_stride,
                                 const int8_t *weights, int32_t *acc, int64_t nr, int64_t n, int64_t c, int64_t kh,
                                 int64_t kw, int64_t ky0, int64_t ky1, int64_t ix0, int64_t iw, int64_t stride,
                                 int64_t dilation, int64_t pad, int64_t flip) {
  for (int64_t p = 0; p < n; ++p)
    for (int64_t ch = 0; ch < c; ++ch) {
      uint32_t sum = 0;
      for (int64_t ky = 0; ky < kh; ++ky)
        for (int64_t kx = 0; kx < kw; ++kx) {
          int64_t x = ix0 + p * stride + kx * dilation;
          uint8_t byte = (uint8_t)pad;
          if (ky >= ky0 && ky < ky1 && x >= 0 && x < iw)
            byte = ((const uint8_t *)src)[(ky - ky0) * row_stride + x * pixel_stride + ch] ^ (uint8_t)flip;
          int32_t value = lhs_is_signed ? (int8_t)byte : byte;
          sum += (uint32_t)(value * weights[((ky / 4 * kw + kx) * nr + ch) * 4 + ky % 4]);
        }
      acc[p * nr + ch] = (int32_t)sum;
    }
}
