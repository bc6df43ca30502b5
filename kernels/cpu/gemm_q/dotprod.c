/* Many rows times quantised weights for the Arm dot product: 8x8 in registers (16 sums, 8 vectors of 16 lhs bytes), twice for
 * the 16 columns of a block; sdot by lane. Totals stay in memory. How sums become floats: tile.inc. */
#include <arm_neon.h>

#include "../Kernel.h"

#define MR 8

/* Two vectors of weights, four columns of four k each; `half` of bytes that hold two of 4 bits. */
#define WEIGHTS(AT, HALF)                                                             \
  int8x16_t w0 = vld1q_s8((const int8_t *)(AT)), w1 = vld1q_s8((const int8_t *)(AT) + 16); \
  if (bits == 4 && (HALF)) {                                                          \
    w0 = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(w0), 4));                 \
    w1 = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(w1), 4));                 \
  } else if (bits == 4) {                                                             \
    w0 = vandq_s8(w0, vdupq_n_s8(15));                                                \
    w1 = vandq_s8(w1, vdupq_n_s8(15));                                                \
  }
/* Four k, the LANE-th of the lhs vectors. */
#define STEP(LANE)                                                                                       \
  {                                                                                                      \
    WEIGHTS(weights + (p + 4 * (bits == 4 ? LANE / 2 * 2 : LANE)) * 2 * bits, LANE % 2)                  \
    AJOUR_UNROLL                                                                                         \
    for (int64_t r = 0; r < m; ++r) {                                                                    \
      c[r][0] = vdotq_laneq_s32(c[r][0], w0, a[r], LANE);                                                \
      c[r][1] = vdotq_laneq_s32(c[r][1], w1, a[r], LANE);                                                \
    }                                                                                                    \
  }

/* Adds the part of one group to half of the columns of acc. `bits` and `m` are constants at every call. */
AJOUR_HELPER AJOUR_TARGET_dotprod void ajour_gemm_q_part_dotprod(const int64_t bits, const int64_t m, const int8_t *tile,
                                                                 const uint8_t *weights, const uint8_t *parameters,
                                                                 float *restrict acc, int64_t group, int64_t flags,
                                                                 int64_t column) {
  const float *factors = (const float *)(tile + MR * group);
  const int32_t *starts = (const int32_t *)(factors + MR);
  int32x4_t c[MR][2];
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    c[r][0] = c[r][1] = vdupq_n_s32(flags & AJOUR_GEMV_ZERO_POINTS ? 0x4B400000 : starts[r]);
  int64_t p = 0;
  AJOUR_ROLLED
  for (; p + 16 <= group; p += 16) {
    int8x16_t a[MR];
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r)
      a[r] = vld1q_s8(tile + r * group + p);
    STEP(0) STEP(1) STEP(2) STEP(3)
  }
  AJOUR_ROLLED
  for (; p < group; p += 4) {
    WEIGHTS(weights + (bits == 4 ? p / 8 * 8 : p) * 2 * bits, p % 8)
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      int32_t four;
      __builtin_memcpy(&four, tile + r * group + p, 4);
      const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(four));
      c[r][0] = vdotq_s32(c[r][0], w0, x);
      c[r][1] = vdotq_s32(c[r][1], w1, x);
    }
  }
  const float32x4_t magic = vdupq_n_f32(12582912.0f);
  AJOUR_UNROLL
  for (int64_t v = 0; v < 2; ++v) {
    const int64_t at = column + v * 4;
    float32x4_t scale, zero = vdupq_n_f32(0);
    if (flags & AJOUR_GEMV_F32_SCALES)
      scale = vld1q_f32((const float *)parameters + at);
    else
      scale = vcvt_f32_f16(vld1_f16((const float16_t *)parameters + at));
    if (flags & AJOUR_GEMV_ZERO_POINTS) {
      uint32_t four;
      __builtin_memcpy(&four, parameters + AJOUR_GEMV_ROWS * (flags & AJOUR_GEMV_F32_SCALES ? 4 : 2) + at, 4);
      const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
      zero = vmulq_f32(scale, vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))));
    }
    const float32x4_t negative = vnegq_f32(vmulq_f32(scale, magic));
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      const float32x4_t x = vreinterpretq_f32_s32(c[r][v]);
      float32x4_t sum = flags & AJOUR_GEMV_F32_SCALES ? vmulq_f32(vsubq_f32(x, magic), scale) : vfmaq_f32(negative, x, scale);
      if (flags & AJOUR_GEMV_ZERO_POINTS) {
        float negatedSum;
        __builtin_memcpy(&negatedSum, starts + r, 4);
        sum = vfmaq_n_f32(sum, zero, negatedSum);
      }
      float *total = acc + r * AJOUR_GEMV_ROWS + at;
      vst1q_f32(total, vfmaq_n_f32(vld1q_f32(total), sum, factors[r]));
    }
  }
}

/* `bits` and `m` are constants at every call. */
AJOUR_HELPER AJOUR_TARGET_dotprod void ajour_gemm_q_body_dotprod(const int64_t bits, const int64_t m,
                                                                 const int8_t *restrict tile,
                                                                 const uint8_t *restrict rhs, float *restrict acc,
                                                                 int64_t groups, int64_t parts, int64_t group,
                                                                 int64_t flags) {
  const int64_t partBytes = group * 2 * bits, groupBytes = ajour_gemv_group_bytes(bits, parts * group, flags);
  AJOUR_UNROLL
  for (int64_t i = 0; i < m * AJOUR_GEMV_ROWS; i += 4)
    vst1q_f32(acc + i, vdupq_n_f32(0));
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, rhs += groupBytes)
    AJOUR_ROLLED
    for (int64_t part = 0; part < parts; ++part, tile += ajour_gemm_q_tile_bytes(MR, group)) {
      __builtin_prefetch(rhs + part * partBytes + 1024, 0, 3);
      __builtin_prefetch(rhs + part * partBytes + 1088, 0, 3);
      AJOUR_ROLLED
      for (int64_t column = 0; column < AJOUR_GEMV_ROWS; column += 8)
        ajour_gemm_q_part_dotprod(bits, m, tile, rhs + part * partBytes + column * 4, rhs + parts * partBytes, acc, group,
                                  flags, column);
    }
}
#undef STEP
#undef WEIGHTS

/* Offsets, and scales that are codes, and other widths take the general form. */
#define SUFFIX dotprod
#define TARGET AJOUR_TARGET_dotprod
#define LANES 4
#define ZERO8 0
#define DOTQ8(c, x, w) ((ajour_gemm_q_ints_dotprod)vdotq_s32((int32x4_t)(c), (int8x16_t)(x), (int8x16_t)(w)))
#define DOTQ4(c, x, w) DOTQ8(c, x, w)
#define MULTIPLY(WIDTH, M)                                                                                              \
  if ((WIDTH == 4 || WIDTH == 8) && !(flags & AJOUR_GEMV_OFFSETS) && !(flags >> AJOUR_GEMV_RUN_SHIFT))                  \
    ajour_gemm_q_body_dotprod(WIDTH, M, (const int8_t *)tile, (const uint8_t *)rhs, acc, groups, parts, group, flags);  \
  else                                                                                                                  \
    ajour_gemm_q_general_dotprod(WIDTH, M, (const int8_t *)tile, (const uint8_t *)rhs, acc, groups, parts, group, flags)
#include "tile.inc"
