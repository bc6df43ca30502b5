/* Activations that a row pattern keeps, put together by table look-up. */
#include <arm_neon.h>

#include "../Kernel.h"
#include "compress_table.inc"

AJOUR_KERNEL void ajour_compress_8bit_neon(const void *restrict src, const uint8_t *restrict mask, void *restrict dst,
                                           int64_t groups, int64_t group, int64_t stride, int64_t kept8,
                                           int64_t flip) {
  const uint8x8_t flips = vdup_n_u8((uint8_t)flip);
  const uint8_t *s = (const uint8_t *)src;
  uint8_t *d = (uint8_t *)dst;
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, s += group, mask += group / 8, d += stride) {
    uint8_t *out = d;
    AJOUR_ROLLED
    for (int64_t i = 0; i < group / 8; ++i) {
      const uint8_t m = mask[i];
      uint8x16_t x = vcombine_u8(veor_u8(vld1_u8(s + 8 * i), flips), vdup_n_u8(0));
      vst1_u8(out, vqtbl1_u8(x, vld1_u8((const uint8_t *)(ajour_compress_places + m))));
      out += kept8 ? kept8 : ajour_compress_counts[m];
    }
    AJOUR_ROLLED
    for (; out < d + stride; out += 8)
      vst1_u8(out, vdup_n_u8(0));
  }
}

/* Places of bytes become places of floats: 4 p + 0, 1, 2, 3. */
AJOUR_KERNEL void ajour_compress_f32_neon(const float *restrict src, const uint8_t *restrict mask, float *restrict dst,
                                          int64_t groups, int64_t group, int64_t stride, int64_t kept8) {
  const uint8x16_t bytes = vreinterpretq_u8_u32(vdupq_n_u32(0x03020100));
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, src += group, mask += group / 8, dst += stride) {
    float *out = dst;
    AJOUR_ROLLED
    for (int64_t i = 0; i < group / 8; ++i) {
      const uint8_t m = mask[i];
      uint8x16x2_t x = {{vld1q_u8((const uint8_t *)(src + 8 * i)), vld1q_u8((const uint8_t *)(src + 8 * i + 4))}};
      uint8x8_t places = vshl_n_u8(vld1_u8((const uint8_t *)(ajour_compress_places + m)), 2);
      uint8x16_t twice = vzip1q_u8(vcombine_u8(places, places), vcombine_u8(places, places));
      uint8x16_t low = vzip1q_u8(twice, twice), high = vzip2q_u8(twice, twice);
      vst1q_u8((uint8_t *)out, vqtbl2q_u8(x, vaddq_u8(low, bytes)));
      vst1q_u8((uint8_t *)(out + 4), vqtbl2q_u8(x, vaddq_u8(high, bytes)));
      out += kept8 ? kept8 : ajour_compress_counts[m];
    }
    AJOUR_ROLLED
    for (; out < dst + stride; out += 4)
      vst1q_f32(out, vdupq_n_f32(0));
  }
}

#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define VEC uint8x16_t
#define LOAD(p) vld1q_u8(p)
#define STORE(p, v) vst1q_u8(p, v)
#define DECODE(codes, shift, base) \
  vorrq_u8(vandq_u8((uint8x16_t)((codes) >> (uint8_t)(shift)), vdupq_n_u8(3)), base)
#define SELECT(x, places) vqtbl1q_u8(x, places)
#define XOR(v, byte) veorq_u8(v, vdupq_n_u8((uint8_t)(byte)))
#include "places_128.inc"
