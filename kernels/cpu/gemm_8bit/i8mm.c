/* s8 x s8 GEMM for the Arm matrix multiply: smmla on panels [k/8][8][8], where two columns of 8 make one
 * vector; 8x8 in registers as 4x4 accumulators of 2x2. An odd last row is computed twice. */
#include <arm_neon.h>

#include "../Kernel.h"

#define NR 8

#define STEP(A, OFFSET)                                                     \
  AJOUR_UNROLL                                                              \
  for (int64_t j = 0; j < 4; ++j) {                                         \
    int8x16_t b = vld1q_s8(rhs + (p + OFFSET) * NR + j * 16);               \
    AJOUR_UNROLL                                                            \
    for (int64_t r = 0; r < pairs; ++r)                                     \
      c[r][j] = vmmlaq_s32(c[r][j], A[r], b);                               \
  }

/* `m` is a constant at every call. */
AJOUR_HELPER AJOUR_TARGET_i8mm void ajour_gemm_8bit_body_i8mm(const int64_t m, const int8_t *restrict lhs,
                                                              int64_t lda, const int8_t *restrict rhs,
                                                              int32_t *restrict acc, int64_t k) {
  const int64_t pairs = (m + 1) / 2;
  int32x4_t c[4][4];
  int8x16_t lo[4], hi[4];
  AJOUR_UNROLL
  for (int64_t r = 0; r < pairs; ++r)
    AJOUR_UNROLL
    for (int64_t j = 0; j < 4; ++j)
      c[r][j] = vdupq_n_s32(0);
  int64_t p = 0;
  AJOUR_ROLLED
  for (; p + 16 <= k; p += 16) {
    __builtin_prefetch(rhs + p * NR + 512, 0, 3);
    __builtin_prefetch(rhs + p * NR + 576, 0, 3);
    AJOUR_UNROLL
    for (int64_t r = 0; r < pairs; ++r) {
      int64_t second = 2 * r + 1 < m ? 2 * r + 1 : 2 * r;
      int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(lhs + 2 * r * lda + p));
      int64x2_t y = vreinterpretq_s64_s8(vld1q_s8(lhs + second * lda + p));
      lo[r] = vreinterpretq_s8_s64(vzip1q_s64(x, y));
      hi[r] = vreinterpretq_s8_s64(vzip2q_s64(x, y));
    }
    STEP(lo, 0)
    STEP(hi, 8)
  }
  if (p < k) {
    AJOUR_UNROLL
    for (int64_t r = 0; r < pairs; ++r) {
      int64_t second = 2 * r + 1 < m ? 2 * r + 1 : 2 * r;
      lo[r] = vcombine_s8(vld1_s8(lhs + 2 * r * lda + p), vld1_s8(lhs + second * lda + p));
    }
    STEP(lo, 0)
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < pairs; ++r)
    AJOUR_UNROLL
    for (int64_t j = 0; j < 2; ++j) {
      int64x2_t x = vreinterpretq_s64_s32(c[r][2 * j]), y = vreinterpretq_s64_s32(c[r][2 * j + 1]);
      vst1q_s32(acc + 2 * r * NR + j * 4, vreinterpretq_s32_s64(vzip1q_s64(x, y)));
      if (2 * r + 1 < m)
        vst1q_s32(acc + (2 * r + 1) * NR + j * 4, vreinterpretq_s32_s64(vzip2q_s64(x, y)));
    }
}
#undef STEP

#define CASE(M)                                                          \
  case M:                                                                \
    ajour_gemm_8bit_body_i8mm(M, (const int8_t *)lhs, lda, rhs, acc, k); \
    break;
AJOUR_KERNEL AJOUR_TARGET_i8mm void ajour_gemm_i8_i8_i32_8x8x8_i8mm(const void *restrict lhs, int64_t lda,
                                                                    const int8_t *restrict rhs,
                                                                    int32_t *restrict acc, int64_t m, int64_t k) {
  switch (m) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
}
#undef CASE
#undef NR
