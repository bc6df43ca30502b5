/* 8-bit depthwise convolution for the Arm dot product, 16 channels at a time: byte interleaving of four input
 * rows with zip, sdot on four kernel rows at once. */
#include <arm_neon.h>

#include "../Kernel.h"

typedef struct {
  int8x16_t q[4];
} ajour_group_dotprod;

/* Rows that the kernel does not have meet zero weights: any bytes will do. */
AJOUR_HELPER AJOUR_TARGET_dotprod ajour_group_dotprod ajour_make_group_dotprod(const uint8x16_t *r,
                                                                               const int64_t rows) {
  uint8x16_t b = rows > 1 ? r[1] : r[0], c = rows > 2 ? r[2] : r[0], d = rows > 3 ? r[3] : c;
  uint16x8_t ab0 = vreinterpretq_u16_u8(vzip1q_u8(r[0], b)), ab1 = vreinterpretq_u16_u8(vzip2q_u8(r[0], b));
  uint16x8_t cd0 = vreinterpretq_u16_u8(vzip1q_u8(c, d)), cd1 = vreinterpretq_u16_u8(vzip2q_u8(c, d));
  ajour_group_dotprod g = {{vreinterpretq_s8_u16(vzip1q_u16(ab0, cd0)), vreinterpretq_s8_u16(vzip2q_u16(ab0, cd0)),
                            vreinterpretq_s8_u16(vzip1q_u16(ab1, cd1)), vreinterpretq_s8_u16(vzip2q_u16(ab1, cd1))}};
  return g;
}

#define SUFFIX dotprod
#define TARGET AJOUR_TARGET_dotprod
#define WIDTH 16
#define NR 32
#define ACCS 4
#define VEC int32x4_t
#define ZERO vdupq_n_s32(0)
#define STORE(p, j, v) vst1q_s32((p) + (j) * 4, v)
#define ROW uint8x16_t
#define LOAD_ROW(p, flip) veorq_u8(vld1q_u8(p), vdupq_n_u8(flip))
#define SPLAT_ROW(x) vdupq_n_u8(x)
#define BLEND(r, pad, mask) vbslq_u8(vdupq_n_u8(mask), r, pad)
#define GROUP ajour_group_dotprod
#define MAKE_GROUP(r, rows) ajour_make_group_dotprod(r, rows)
#define WEIGHTS int8x16_t
#define LOAD_WEIGHTS(p, j) vld1q_s8((p) + (j) * 16)
#define DOT(c, j, group, w, rows) vdotq_s32(c, (group).q[j], w)
#include "groups.inc"

AJOUR_KERNEL AJOUR_TARGET_dotprod void ajour_dwconv_i8_i8_i32_1x32x4_dotprod(
    const void *restrict src, int64_t pixel_stride, int64_t row_stride, const int8_t *restrict weights,
    int32_t *restrict acc, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0, int64_t ky1, int64_t ix0,
    int64_t iw, int64_t stride, int64_t dilation, int64_t pad, int64_t flip) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < c; g += 16)
    ajour_dwconv_8bit_row_dotprod((const uint8_t *)src + g, pixel_stride, row_stride, weights + 4 * g, acc + g, n, kh,
                                  kw, ky0, ky1, ix0, iw, stride, dilation, (uint8_t)pad, (uint8_t)flip);
}
