/* f32 GEMM for NEON: 8x8 in registers (16 accumulators, 8 vectors of 4 lhs values, rhs streamed), FMA by
 * lane. */
#include <arm_neon.h>

#include "../Kernel.h"

#define NR 8

/* One k: c[r][0..1] += a[r] (a lane) * rhs row. */
#define STEP(LANE)                                                                              \
  {                                                                                             \
    float32x4_t b0 = vld1q_f32(rhs + (p + LANE) * NR), b1 = vld1q_f32(rhs + (p + LANE) * NR + 4); \
    AJOUR_UNROLL                                                                                \
    for (int64_t r = 0; r < m; ++r) {                                                           \
      c[LANE % chains][r][0] = vfmaq_laneq_f32(c[LANE % chains][r][0], b0, a[r], LANE);         \
      c[LANE % chains][r][1] = vfmaq_laneq_f32(c[LANE % chains][r][1], b1, a[r], LANE);         \
    }                                                                                           \
  }

/* `m` and `chains` (partial sums per accumulator, which hide the latency of an FMA) are constants at
 * every call. */
AJOUR_HELPER void ajour_gemm_f32_body_neon(const int64_t m, const int64_t chains, const float *restrict lhs,
                                           int64_t lda, const float *restrict rhs, float *restrict acc, int64_t k) {
  float32x4_t c[4][8][2], a[8];
  AJOUR_UNROLL
  for (int64_t s = 0; s < chains; ++s)
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r)
      c[s][r][0] = c[s][r][1] = vdupq_n_f32(0);
  int64_t p = 0;
  AJOUR_ROLLED
  for (; p + 4 <= k; p += 4) {
    __builtin_prefetch(rhs + p * NR + 256, 0, 3);
    __builtin_prefetch(rhs + p * NR + 272, 0, 3);
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r)
      a[r] = vld1q_f32(lhs + r * lda + p);
    STEP(0) STEP(1) STEP(2) STEP(3)
  }
  AJOUR_ROLLED
  for (; p < k; ++p) {
    float32x4_t b0 = vld1q_f32(rhs + p * NR), b1 = vld1q_f32(rhs + p * NR + 4);
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      float32x4_t s = vld1q_dup_f32(lhs + r * lda + p);
      c[0][r][0] = vfmaq_f32(c[0][r][0], b0, s);
      c[0][r][1] = vfmaq_f32(c[0][r][1], b1, s);
    }
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t j = 0; j < 2; ++j) {
      float32x4_t sum = c[0][r][j];
      if (chains == 2)
        sum = vaddq_f32(sum, c[1][r][j]);
      if (chains == 4)
        sum = vaddq_f32(vaddq_f32(sum, c[1][r][j]), vaddq_f32(c[2][r][j], c[3][r][j]));
      vst1q_f32(acc + r * NR + j * 4, sum);
    }
}
#undef STEP

#define CASE(M, CHAINS)                                             \
  case M:                                                           \
    ajour_gemm_f32_body_neon(M, CHAINS, lhs, lda, rhs, acc, k);     \
    break;
AJOUR_KERNEL void ajour_gemm_f32_f32_f32_8x8x1_neon(const float *restrict lhs, int64_t lda,
                                                    const float *restrict rhs, float *restrict acc, int64_t m,
                                                    int64_t k) {
  switch (m) { CASE(1, 4) CASE(2, 2) CASE(3, 2) CASE(4, 1) CASE(5, 1) CASE(6, 1) CASE(7, 1) CASE(8, 1) }
}
#undef CASE
#undef NR
