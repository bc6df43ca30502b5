/* Activations as matrix-vector products want them: quantised, and their sums. One source serves every level. */
#include "../Kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

/* Symmetric 8-bit quantisation, alike on every level: the largest magnitude is found among the bits, one division
 * gives the factor, and adding 1.5 * 2^23 rounds to the nearest even integer. */
AJOUR_KERNEL void ajour_quantize_groups_8bit(const float *restrict src, int8_t *restrict dst, float *restrict scales,
                                             int64_t groups, int64_t group) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, src += group, dst += group) {
    int32_t largest = 0;
#pragma clang loop unroll_count(4) vectorize(enable)
    for (int64_t i = 0; i < group; ++i) {
      int32_t bits;
      __builtin_memcpy(&bits, src + i, 4);
      bits &= 0x7FFFFFFF;
      largest = bits > largest ? bits : largest;
    }
    float magnitude;
    __builtin_memcpy(&magnitude, &largest, 4);
    scales[g] = magnitude / 127.0f;
    /* Below 2^-120 the factor would overflow; such a group is 0. Infinite ones give 0 * inf later. */
    const float factor = magnitude < 0x1p-120f ? 0.0f : 127.0f / magnitude;
#pragma clang loop unroll_count(2) vectorize(enable)
    for (int64_t i = 0; i < group; ++i) {
      const float shifted = src[i] * factor + 12582912.0f;
      int32_t bits;
      __builtin_memcpy(&bits, &shifted, 4);
      dst[i] = (int8_t)(bits - 0x4B400000);
    }
  }
}

AJOUR_KERNEL void ajour_sum_groups_8bit(const int8_t *restrict src, int32_t *restrict sums, int64_t groups,
                                        int64_t group) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, src += group) {
    int64_t i = 0;
#if defined(__x86_64__)
    const __m128i flip = _mm_set1_epi8((char)0x80);
    __m128i sum = _mm_setzero_si128();
    AJOUR_ROLLED
    for (; i + 16 <= group; i += 16)
      sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128((const __m128i *)(src + i)), flip),
                                            _mm_setzero_si128()));
    int32_t total = _mm_cvtsi128_si32(_mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum))) - (int32_t)(128 * i);
#else
    int32_t total = 0;
    AJOUR_ROLLED
    for (; i + 16 <= group; i += 16)
      total += vaddlvq_s8(vld1q_s8(src + i));
#endif
    AJOUR_ROLLED
    for (; i < group; ++i)
      total += src[i];
    sums[g] = total;
  }
}

/* dst[i * patterns + p] = src[p * lds + i], 32-bit words. */
AJOUR_KERNEL void ajour_interleave_words(const void *restrict src, int64_t lds, void *restrict dst, int64_t patterns,
                                         int64_t n) {
  typedef int32_t word __attribute__((aligned(1), may_alias));
  const word *s = (const word *)src;
  word *d = (word *)dst;
  if (patterns == 2) {
#pragma clang loop vectorize_width(8) interleave_count(1) unroll(disable)
    for (int64_t i = 0; i < n; ++i) {
      d[2 * i] = s[i];
      d[2 * i + 1] = s[lds + i];
    }
  } else {
#pragma clang loop vectorize_width(4) interleave_count(1) unroll(disable)
    for (int64_t i = 0; i < n; ++i) {
      d[4 * i] = s[i];
      d[4 * i + 1] = s[lds + i];
      d[4 * i + 2] = s[2 * lds + i];
      d[4 * i + 3] = s[3 * lds + i];
    }
  }
}
