/* The meaning of the f32 depthwise kernels, with sums in double precision. */
#include "../Reference.h"

void ajour_reference_dwconv_f32(const float *src, int64_t pixel_stride, int64_t row_stride, const float *weights,
                                double *acc, int64_t nr, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0,
                                int64_t ky1, int64_t ix0, int64_t iw, int64_t stride, int64_t dilation) {
  (void)kh;
  for (int64_t p = 0; p < n; ++p)
    for (int64_t ch = 0; ch < c; ++ch) {
      double sum = 0;
      for (int64_t ky = ky0; ky < ky1; ++ky)
        for (int64_t kx = 0; kx < kw; ++kx) {
          int64_t x = ix0 + p * stride + kx * dilation;
          if (x >= 0 && x < iw)
            sum += (double)src[(ky - ky0) * row_stride + x * pixel_stride + ch] * weights[(ky * kw + kx) * nr + ch];
        }
      acc[p * nr + ch] = sum;
    }
}
