/* 8-bit depthwise convolution for NEON without the dot product, 8 channels at a time: rows and weights widened to
 * 16 bits, smlal, exact. Shares its weights with the dot-product kernel (ld4 takes the kernel rows apart). */
#include <arm_neon.h>

#include "../Kernel.h"

typedef struct {
  int16x8_t row[4];
} ajour_rows_neon;

AJOUR_HELPER ajour_rows_neon ajour_widen_rows_neon(const uint8x8_t *r, const int64_t rows) {
  ajour_rows_neon g;
  AJOUR_UNROLL
  for (int64_t i = 0; i < 4; ++i)
    g.row[i] = vmovl_s8(vreinterpret_s8_u8(r[i < rows ? i : 0]));
  return g;
}
AJOUR_HELPER ajour_rows_neon ajour_widen_weights_neon(const int8_t *p) {
  int8x8x4_t v = vld4_s8(p);
  ajour_rows_neon w = {{vmovl_s8(v.val[0]), vmovl_s8(v.val[1]), vmovl_s8(v.val[2]), vmovl_s8(v.val[3])}};
  return w;
}
AJOUR_HELPER int32x4_t ajour_dot_rows_neon(int32x4_t c, const int64_t j, ajour_rows_neon g, ajour_rows_neon w,
                                           const int64_t rows) {
  AJOUR_UNROLL
  for (int64_t i = 0; i < rows; ++i)
    c = j == 0 ? vmlal_s16(c, vget_low_s16(g.row[i]), vget_low_s16(w.row[i])) : vmlal_high_s16(c, g.row[i], w.row[i]);
  return c;
}

#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define WIDTH 8
#define NR 32
#define ACCS 2
#define VEC int32x4_t
#define ZERO vdupq_n_s32(0)
#define STORE(p, j, v) vst1q_s32((p) + (j) * 4, v)
#define ROW uint8x8_t
#define LOAD_ROW(p, flip) veor_u8(vld1_u8(p), vdup_n_u8(flip))
#define SPLAT_ROW(x) vdup_n_u8(x)
#define BLEND(r, pad, mask) vbsl_u8(vdup_n_u8(mask), r, pad)
#define GROUP ajour_rows_neon
#define MAKE_GROUP(r, rows) ajour_widen_rows_neon(r, rows)
#define WEIGHTS ajour_rows_neon
#define LOAD_WEIGHTS(p, j) ajour_widen_weights_neon(p)
#define DOT(c, j, group, w, rows) ajour_dot_rows_neon(c, j, group, w, rows)
#include "groups.inc"

AJOUR_KERNEL void ajour_dwconv_i8_i8_i32_1x32x4_neon(const void *restrict src, int64_t pixel_stride,
                                                     int64_t row_stride, const int8_t *restrict weights,
                                                     int32_t *restrict acc, int64_t n, int64_t c, int64_t kh,
                                                     int64_t kw, int64_t ky0, int64_t ky1, int64_t ix0, int64_t iw,
                                                     int64_t stride, int64_t dilation, int64_t pad, int64_t flip) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < c; g += 8)
    ajour_dwconv_8bit_row_neon((const uint8_t *)src + g, pixel_stride, row_stride, weights + 4 * g, acc + g, n, kh,
                               kw, ky0, ky1, ix0, iw, stride, dilation, (uint8_t)pad, (uint8_t)flip);
}
