/* Which pixels of an output row have a whole window inside the image. */
#ifndef AJOUR_KERNELS_PIXELS_H
#define AJOUR_KERNELS_PIXELS_H

#include "Kernel.h"

typedef struct {
  int64_t begin, end;
} ajour_pixels;

/* The pixels [begin, end) of n whose taps all have 0 <= ix0 + p * stride + kx * dilation < iw. */
AJOUR_HELPER ajour_pixels ajour_inner_pixels(int64_t n, int64_t kw, int64_t ix0, int64_t iw, int64_t stride,
                                             int64_t dilation) {
  const int64_t room = iw - 1 - (kw - 1) * dilation - ix0;
  ajour_pixels r = {ix0 >= 0 ? 0 : (stride - 1 - ix0) / stride, room < 0 ? 0 : room / stride + 1};
  if (r.begin > n)
    r.begin = n;
  if (r.end > n)
    r.end = n;
  if (r.end < r.begin)
    r.end = r.begin;
  return r;
}

#endif
