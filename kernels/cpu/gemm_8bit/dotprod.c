/* s8 x s8 GEMM for the Arm dot product: 8x8 in registers (16 accumulators, 8 vectors of 16 lhs bytes),
 * sdot by lane. Shares its panels with the NEON kernel. */
#include <arm_neon.h>

#include "../Kernel.h"

#define NR 8

#define STEP(LANE)                                                                                \
  {                                                                                               \
    int8x16_t b0 = vld1q_s8(rhs + (p + 4 * LANE) * NR), b1 = vld1q_s8(rhs + (p + 4 * LANE) * NR + 16); \
    AJOUR_UNROLL                                                                                  \
    for (int64_t r = 0; r < m; ++r) {                                                             \
      c[LANE % chains][r][0] = vdotq_laneq_s32(c[LANE % chains][r][0], b0, a[r], LANE);           \
      c[LANE % chains][r][1] = vdotq_laneq_s32(c[LANE % chains][r][1], b1, a[r], LANE);           \
    }                                                                                             \
  }

/* `m` and `chains` are constants at every call. */
AJOUR_HELPER AJOUR_TARGET_dotprod void
ajour_gemm_8bit_body_dotprod(const int64_t m, const int64_t chains, const int8_t *restrict lhs, int64_t lda,
                             const int8_t *restrict rhs, int32_t *restrict acc, int64_t k) {
  int32x4_t c[4][8][2];
  int8x16_t a[8];
  AJOUR_UNROLL
  for (int64_t s = 0; s < chains; ++s)
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r)
      c[s][r][0] = c[s][r][1] = vdupq_n_s32(0);
  int64_t p = 0;
  AJOUR_ROLLED
  for (; p + 16 <= k; p += 16) {
    __builtin_prefetch(rhs + p * NR + 512, 0, 3);
    __builtin_prefetch(rhs + p * NR + 576, 0, 3);
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r)
      a[r] = vld1q_s8(lhs + r * lda + p);
    STEP(0) STEP(1) STEP(2) STEP(3)
  }
  AJOUR_ROLLED
  for (; p < k; p += 4) {
    int8x16_t b0 = vld1q_s8(rhs + p * NR), b1 = vld1q_s8(rhs + p * NR + 16);
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      int32_t group;
      __builtin_memcpy(&group, lhs + r * lda + p, 4);
      int8x16_t s = vreinterpretq_s8_s32(vdupq_n_s32(group));
      c[0][r][0] = vdotq_s32(c[0][r][0], b0, s);
      c[0][r][1] = vdotq_s32(c[0][r][1], b1, s);
    }
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t j = 0; j < 2; ++j) {
      int32x4_t sum = c[0][r][j];
      if (chains == 2)
        sum = vaddq_s32(sum, c[1][r][j]);
      if (chains == 4)
        sum = vaddq_s32(vaddq_s32(sum, c[1][r][j]), vaddq_s32(c[2][r][j], c[3][r][j]));
      vst1q_s32(acc + r * NR + j * 4, sum);
    }
}
#undef STEP

#define CASE(M, CHAINS)                                                             \
  case M:                                                                           \
    ajour_gemm_8bit_body_dotprod(M, CHAINS, (const int8_t *)lhs, lda, rhs, acc, k); \
    break;
AJOUR_KERNEL AJOUR_TARGET_dotprod void ajour_gemm_i8_i8_i32_8x8x4_dotprod(const void *restrict lhs, int64_t lda,
                                                                          const int8_t *restrict rhs,
                                                                          int32_t *restrict acc, int64_t m,
                                                                          int64_t k) {
  switch (m) { CASE(1, 4) CASE(2, 2) CASE(3, 2) CASE(4, 1) CASE(5, 1) CASE(6, 1) CASE(7, 1) CASE(8, 1) }
}
#undef CASE
#undef NR
