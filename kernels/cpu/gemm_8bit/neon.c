/* s8 x s8 GEMM for NEON without the dot product, exact: smull gives 16-bit products, sadalp adds pairs of
 * them into 32 bits. Each accumulator holds two partial sums of two columns until the end. */
#include <arm_neon.h>

#include "../Kernel.h"

#define NR 8

/* `m` is a constant at every call. */
AJOUR_HELPER void ajour_gemm_8bit_body_neon(const int64_t m, const int8_t *restrict lhs, int64_t lda,
                                            const int8_t *restrict rhs, int32_t *restrict acc, int64_t k) {
  int32x4_t c[4][4];
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t j = 0; j < 4; ++j)
      c[r][j] = vdupq_n_s32(0);
  AJOUR_ROLLED
  for (int64_t p = 0; p < k; p += 4) {
    int8x16_t b0 = vld1q_s8(rhs + p * NR), b1 = vld1q_s8(rhs + p * NR + 16);
    __builtin_prefetch(rhs + p * NR + 512, 0, 3);
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      int32_t group;
      __builtin_memcpy(&group, lhs + r * lda + p, 4);
      int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(group));
      c[r][0] = vpadalq_s16(c[r][0], vmull_s8(vget_low_s8(b0), vget_low_s8(a)));
      c[r][1] = vpadalq_s16(c[r][1], vmull_high_s8(b0, a));
      c[r][2] = vpadalq_s16(c[r][2], vmull_s8(vget_low_s8(b1), vget_low_s8(a)));
      c[r][3] = vpadalq_s16(c[r][3], vmull_high_s8(b1, a));
    }
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r) {
    vst1q_s32(acc + r * NR, vpaddq_s32(c[r][0], c[r][1]));
    vst1q_s32(acc + r * NR + 4, vpaddq_s32(c[r][2], c[r][3]));
  }
}

#define CASE(M)                                                          \
  case M:                                                                \
    ajour_gemm_8bit_body_neon(M, (const int8_t *)lhs, lda, rhs, acc, k); \
    break;
AJOUR_KERNEL void ajour_gemm_i8_i8_i32_4x8x4_neon(const void *restrict lhs, int64_t lda, const int8_t *restrict rhs,
                                                  int32_t *restrict acc, int64_t m, int64_t k) {
  switch (m) { CASE(1) CASE(2) CASE(3) CASE(4) }
}
#undef CASE
#undef NR
