/* Sparse s8 x s8 product over pixels for NEON with the dot product: the bytes of four inputs are interleaved, which four
 * filters share, whose weights are the lanes of one vector. 4 filters by 16 pixels in registers. */
#include <arm_neon.h>

#include "../Kernel.h"

#define BODY ajour_spmm_8bit_body_dotprod
#define SYMBOL ajour_spmm_i8_i8_i32_8x4x4_dotprod
#define TARGET AJOUR_TARGET_dotprod
#define BYTE int8_t
#define PIXELS 16

#define FILTER(R)                                         \
  if (R < m) {                                            \
    c[R][0] = vdotq_laneq_s32(c[R][0], p[0], w, R);       \
    c[R][1] = vdotq_laneq_s32(c[R][1], p[1], w, R);       \
    c[R][2] = vdotq_laneq_s32(c[R][2], p[2], w, R);       \
    c[R][3] = vdotq_laneq_s32(c[R][3], p[3], w, R);       \
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
    int8x16_t x[4];
    AJOUR_UNROLL
    for (int64_t q = 0; q < 4; ++q)
      x[q] = vld1q_s8(src + inputs[e * 4 + q] * scale);
    const int16x8_t low = vreinterpretq_s16_s8(vzip1q_s8(x[0], x[1])), high = vreinterpretq_s16_s8(vzip2q_s8(x[0], x[1]));
    const int16x8_t low2 = vreinterpretq_s16_s8(vzip1q_s8(x[2], x[3])), high2 = vreinterpretq_s16_s8(vzip2q_s8(x[2], x[3]));
    const int8x16_t p[4] = {vreinterpretq_s8_s16(vzip1q_s16(low, low2)), vreinterpretq_s8_s16(vzip2q_s16(low, low2)),
                            vreinterpretq_s8_s16(vzip1q_s16(high, high2)), vreinterpretq_s8_s16(vzip2q_s16(high, high2))};
    /* Fewer filters read weights of the next entry, or past the last. */
    const int8x16_t w = vld1q_s8(weights + e * group * 4);
    FILTER(0) FILTER(1) FILTER(2) FILTER(3)
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
#undef FILTER

#include "groups.inc"
