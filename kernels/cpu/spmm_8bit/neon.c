/* Sparse s8 x s8 product over pixels for NEON without the dot product: inputs and weights are widened to 16 bits and multiplied
 * by lane. 4 filters by 16 pixels in registers. */
#include <arm_neon.h>

#include "../Kernel.h"

#define BODY ajour_spmm_8bit_body_neon
#define SYMBOL ajour_spmm_i8_i8_i32_8x4x4_neon
#define TARGET AJOUR_TARGET_neon
#define BYTE int8_t
#define PIXELS 16

#define FILTER(R, Q)                                                                      \
  if (R < m) {                                                                            \
    c[R][0] = vmlal_laneq_s16(c[R][0], vget_low_s16(low), w[R / 2], R % 2 * 4 + Q);       \
    c[R][1] = vmlal_high_laneq_s16(c[R][1], low, w[R / 2], R % 2 * 4 + Q);                \
    c[R][2] = vmlal_laneq_s16(c[R][2], vget_low_s16(high), w[R / 2], R % 2 * 4 + Q);      \
    c[R][3] = vmlal_high_laneq_s16(c[R][3], high, w[R / 2], R % 2 * 4 + Q);               \
  }
#define INPUT(Q)                                                          \
  {                                                                       \
    const int8x16_t x = vld1q_s8(src + inputs[e * 4 + Q] * scale);        \
    const int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_high_s8(x); \
    FILTER(0, Q) FILTER(1, Q) FILTER(2, Q) FILTER(3, Q)                   \
  }
AJOUR_HELPER TARGET void BODY(const int64_t m, const int64_t group, const int8_t *restrict src, int64_t scale,
                              const uint16_t *restrict inputs, const int8_t *restrict weights, int32_t *restrict acc,
                              int64_t lda, int64_t n, int64_t count, int64_t accumulate) {
  int32x4_t c[4][4];
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t t = 0; t < 4; ++t)
      c[r][t] = vdupq_n_s32(0);
  AJOUR_ROLLED
  for (int64_t e = 0; e < count; ++e) {
    /* Fewer filters read weights of the next entry, or past the last. */
    const int8x16_t bytes = vld1q_s8(weights + e * group * 4);
    const int16x8_t w[2] = {vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)};
    INPUT(0) INPUT(1) INPUT(2) INPUT(3)
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t t = 0; t < 4; ++t)
      if (4 * t < n) {
        int32_t *to = acc + r * lda + 4 * t;
        vst1q_s32(to, accumulate ? vaddq_s32(c[r][t], vld1q_s32(to)) : c[r][t]);
      }
}
#undef INPUT
#undef FILTER

#include "groups.inc"
