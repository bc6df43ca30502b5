/* Matrix-vector products for NEON without the dot product, exact: products of 16 bits; those of 4-bit weights are added up
 * in 16 bits, 8 products an instruction, as many as the packed multiplication of two weights at once has. */
#include <arm_neon.h>

#include "../Kernel.h"

AJOUR_HELPER int32x4_t ajour_gemv_dot_neon(int32x4_t c, int8x16_t x, int8x16_t w) {
  int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w)));
  int32x4_t high = vpaddlq_s16(vmull_high_s8(x, w));
  return vaddq_s32(c, vpaddq_s32(low, high));
}

#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#include "lanes.inc"
#define CHAINS(m) ((m) == 1 ? 2 : 1)
#include "float.inc"
#define SIGNED8 1
#define NIBBLES(w, shift) __builtin_convertvector((((w) ^ (int32_t)0x88888888) << (28 - (shift))) >> 28, ajour_gemv_mixed_floats_neon)
#include "mixed.inc"
#undef SIGNED8
#undef NIBBLES
#define TYPE8 i8
#define ZERO8 0
#define DOT8(c, x, w) ((ajour_gemv_ints_neon)ajour_gemv_dot_neon((int32x4_t)(c), (int8x16_t)(x), (int8x16_t)(w)))
#define DOTQ8(c, x, w) DOT8(c, x, w)
#define DOTQ4(c, x, w) DOT8(c, x, w)
#define SUM4(c, x) ((ajour_gemv_ints_neon)vpadalq_s16((int32x4_t)(c), vpaddlq_s8((int8x16_t)(x))))
#define SHORTS int16x8_t
#define ADDQ4(h, x, w)                                                                              \
  ((h)[0] = vmlal_s8((h)[0], vget_low_s8((int8x16_t)(x)), vget_low_s8((int8x16_t)(w))),             \
   (h)[1] = vmlal_high_s8((h)[1], (int8x16_t)(x), (int8x16_t)(w)))
#define FLUSH(c, h) \
  ((c) + (ajour_gemv_ints_neon)vpaddq_s32(vpaddlq_s16((h)[0]), vpaddlq_s16((h)[1])))
#include "integer.inc"
#undef SUFFIX
#undef TARGET
#undef LANES
#undef CHAINS
#undef TYPE8
#undef ZERO8
#undef DOT8
#undef DOTQ8
#undef DOTQ4
#undef SHORTS
#undef ADDQ4
#undef FLUSH
