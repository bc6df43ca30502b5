/* Lays channels of a channel-major image out for the sparse convolution kernels, one copy for each window column, so
 * that their loads are aligned. Written on generic vectors, as the row copies are. */
#include "../Kernel.h"

typedef int32_t ajour_words16 __attribute__((ext_vector_type(16), aligned(4), may_alias));

/* The lanes of a row that lie in the image, the same for all rows of a window column. */
typedef struct {
  int64_t first; /* x of the first of them */
  int64_t lead;  /* lanes before it */
  int64_t lanes; /* their number */
} ajour_span;

AJOUR_HELPER ajour_span ajour_make_span(int64_t x, int64_t stride, int64_t width, int64_t iw) {
  ajour_span s = {x, 0, 0};
  if (x < 0) {
    s.lead = (stride - 1 - x) / stride;
    s.first = x + s.lead * stride;
  }
  if (s.lead < width && s.first < iw)
    s.lanes = (iw - 1 - s.first) / stride + 1;
  if (s.lead > width)
    s.lead = width;
  if (s.lanes > width - s.lead)
    s.lanes = width - s.lead;
  return s;
}

/* The lanes of one row. Writes 16 lanes behind the leading ones whatever the width: all writes ascend, so what is too
 * much is written again. `end` is where reading must stop. */
AJOUR_HELPER void ajour_expand_row(const int32_t *row, const int32_t *end, int32_t *dst, const ajour_span s,
                                   int64_t stride) {
  const ajour_words16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int32_t *from = row + s.first;
  ajour_words16 v = {0};
  if (s.lanes == 0) {
  } else if (stride == 1) {
    v = *(const ajour_words16 *)from & (lane < (int32_t)s.lanes);
  } else if (stride == 2 && from + 32 <= end) {
    const ajour_words16 low = *(const ajour_words16 *)from, high = *(const ajour_words16 *)(from + 16);
    v = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) &
        (lane < (int32_t)s.lanes);
  } else {
    *(ajour_words16 *)(dst + s.lead) = v;
    AJOUR_ROLLED
    for (int64_t i = 0; i < s.lanes; ++i)
      dst[s.lead + i] = from[i * stride];
    AJOUR_ROLLED
    for (int64_t i = 0; i < s.lead; ++i)
      dst[i] = 0;
    return;
  }
  *(ajour_words16 *)(dst + s.lead) = v;
  AJOUR_ROLLED
  for (int64_t i = 0; i < s.lead; ++i)
    dst[i] = 0;
}

/* `count` rows of whole vectors from row y on: those outside the image are zero, the others copied without asking again. */
AJOUR_HELPER void ajour_expand_plane(const int32_t *image, const int32_t *end, int32_t *plane, int64_t y, int64_t count,
                                     int64_t stride_y, int64_t ih, int64_t iw, const ajour_span span, int64_t stride_x) {
  int64_t r = 0;
  AJOUR_ROLLED
  for (; r < count && y < 0; ++r, y += stride_y)
    *(ajour_words16 *)(plane + r * 16) = (ajour_words16){0};
  AJOUR_ROLLED
  for (; r < count && y < ih; ++r, y += stride_y)
    ajour_expand_row(image + y * iw, end, plane + r * 16, span, stride_x);
  AJOUR_ROLLED
  for (; r < count; ++r)
    *(ajour_words16 *)(plane + r * 16) = (ajour_words16){0};
}

AJOUR_KERNEL void ajour_expand_f32(const float *restrict src, int64_t channel_stride, int64_t channels, int64_t ih,
                                   int64_t iw, float *restrict dst, int64_t oy, int64_t ox, int64_t rows,
                                   int64_t plane_rows, int64_t width, int64_t kh, int64_t kw, int64_t stride_y,
                                   int64_t stride_x, int64_t dilation_y, int64_t dilation_x, int64_t pad_top,
                                   int64_t pad_left) {
  const int64_t reach = (kh - 1) * dilation_y, phases = reach + 1 < stride_y ? reach + 1 : stride_y;
  const int64_t count = rows + reach / stride_y;
  const int32_t *end = (const int32_t *)src + (channels - 1) * channel_stride + ih * iw + 16;
  AJOUR_ROLLED
  for (int64_t c = 0; c < channels; ++c)
    AJOUR_ROLLED
    for (int64_t kx = 0; kx < kw; ++kx) {
      const ajour_span span = ajour_make_span(ox * stride_x + kx * dilation_x - pad_left, stride_x, width, iw);
      AJOUR_ROLLED
      for (int64_t phase = 0; phase < phases; ++phase) {
        const int32_t *image = (const int32_t *)src + c * channel_stride;
        int32_t *plane = (int32_t *)dst + ((c * kw + kx) * phases + phase) * plane_rows * 16;
        if (width == 16) {
          ajour_expand_plane(image, end, plane, oy * stride_y + phase - pad_top, count, stride_y, ih, iw, span, stride_x);
          continue;
        }
        AJOUR_ROLLED
        for (int64_t r = 0; r < count; ++r)
          AJOUR_ROLLED
          for (int64_t lane = 0; lane < 16; lane += width) {
            const int64_t y = (oy + lane / width * rows + r) * stride_y + phase - pad_top;
            ajour_span inside = span;
            if ((uint64_t)y >= (uint64_t)ih)
              inside.lead = inside.lanes = 0;
            ajour_expand_row(image + y * iw, end, plane + r * 16 + lane, inside, stride_x);
          }
      }
    }
}
