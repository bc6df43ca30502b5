/* Sparse products for NEON. 8 bits without the dot product: products of 16 bits are added in pairs, which is exact. f32: tbl
 * takes one of 8 inputs for each lane. */
#include <arm_neon.h>

#include "../Kernel.h"

AJOUR_HELPER int32x4_t ajour_gemm_sparse_dot_neon(int32x4_t c, int8x16_t x, int8x16_t w) {
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
  return vaddq_s32(c, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
}

#include "lanes_neon.inc"
#define SUFFIX 8bit_neon
#define TARGET AJOUR_TARGET_neon
#define SYMBOL1 ajour_gemm_sparse1_i8_i8_i32_8x16x4_neon
#define SYMBOL2 ajour_gemm_sparse2_i8_i8_i32_8x16x4_neon
#define SYMBOL4 ajour_gemm_sparse4_i8_i8_i32_4x16x4_neon
#define MR1 8
#define MR2 8
#define MR4 4
#define DOT(c, x, w) ajour_gemm_sparse_dot_neon(c, x, w)
#include "share.inc"

/* Numbers of floats in a window as numbers of their bytes. */
AJOUR_HELPER uint8x16_t ajour_gemm_sparse_picks_neon(const uint8_t *p) {
  uint32_t four;
  __builtin_memcpy(&four, p, 4);
  const uint8x16_t once = vreinterpretq_u8_u32(vdupq_n_u32(four));
  const uint16x8_t twice = vreinterpretq_u16_u8(vzip1q_u8(once, once));
  const uint8x16_t all = vreinterpretq_u8_u16(vzip1q_u16(twice, twice));
  return vaddq_u8(vshlq_n_u8(all, 2), vreinterpretq_u8_u32(vdupq_n_u32(0x03020100)));
}
AJOUR_HELPER float32x4_t ajour_gemm_sparse_take_neon(const float *p, uint8x16_t picks) {
  const uint8x16x2_t window = {{vreinterpretq_u8_f32(vld1q_f32(p)), vreinterpretq_u8_f32(vld1q_f32(p + 4))}};
  return vreinterpretq_f32_u8(vqtbl2q_u8(window, picks));
}

#define D(x) vreinterpretq_f64_f32(x)
#define SUFFIX f32_neon
#define TARGET AJOUR_TARGET_neon
#define SYMBOL1 ajour_gemm_sparse1_f32_f32_f32_12x16x1_neon
#define SYMBOL2 ajour_gemm_sparse2_f32_f32_f32_8x16x1_neon
#define SYMBOL4 ajour_gemm_sparse4_f32_f32_f32_4x16x1_neon
#define MR1 12
#define MR2 8
#define MR4 4
#define LANES 4
#define KR 1
#define LHS float
#define LHS_ARGUMENT float
#define RHS float
#define ACC float
#define VEC float32x4_t
#define ZERO vdupq_n_f32(0)
#define STORE(p, v) vst1q_f32(p, v)
#define PICKS uint8x16_t
#define LOAD_PICKS(p) ajour_gemm_sparse_picks_neon(p)
#define TAKEN float32x4_t
#define TAKE(p, picks) ajour_gemm_sparse_take_neon(p, picks)
#define WEIGHTS float32x4_t
#define LOAD_WEIGHTS(p) vld1q_f32(p)
#define DOT(c, x, w) vfmaq_f32(c, x, w)
#define LOW32(a, b) vzip1q_f32(a, b)
#define HIGH32(a, b) vzip2q_f32(a, b)
#define LOW64(a, b) vreinterpretq_f32_f64(vzip1q_f64(D(a), D(b)))
#define HIGH64(a, b) vreinterpretq_f32_f64(vzip2q_f64(D(a), D(b)))
#include "share.inc"
#undef D
