/* Activations that a row pattern keeps, put together by table look-up. */
#include <immintrin.h>

#include "../Kernel.h"
#include "compress_table.inc"

AJOUR_KERNEL AJOUR_TARGET_avx2 void ajour_compress_8bit_avx2(const void *restrict src, const uint8_t *restrict mask,
                                                             void *restrict dst, int64_t groups, int64_t group,
                                                             int64_t stride, int64_t kept8, int64_t flip) {
  const __m128i flips = _mm_set1_epi8((char)flip);
  const char *s = (const char *)src;
  char *d = (char *)dst;
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, s += group, mask += group / 8, d += stride) {
    char *out = d;
    AJOUR_ROLLED
    for (int64_t i = 0; i < group / 8; ++i) {
      const uint8_t m = mask[i];
      __m128i x = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(s + 8 * i)), flips);
      x = _mm_shuffle_epi8(x, _mm_loadl_epi64((const __m128i *)(ajour_compress_places + m)));
      _mm_storel_epi64((__m128i *)out, x);
      out += kept8 ? kept8 : __builtin_popcount(m);
    }
    AJOUR_ROLLED
    for (; out < d + stride; out += 8)
      _mm_storel_epi64((__m128i *)out, _mm_setzero_si128());
  }
}

AJOUR_KERNEL AJOUR_TARGET_avx2 void ajour_compress_f32_avx2(const float *restrict src, const uint8_t *restrict mask,
                                                            float *restrict dst, int64_t groups, int64_t group,
                                                            int64_t stride, int64_t kept8) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, src += group, mask += group / 8, dst += stride) {
    float *out = dst;
    AJOUR_ROLLED
    for (int64_t i = 0; i < group / 8; ++i) {
      const uint8_t m = mask[i];
      __m256i places = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(ajour_compress_places + m)));
      _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(_mm256_loadu_ps(src + 8 * i), places));
      out += kept8 ? kept8 : __builtin_popcount(m);
    }
    AJOUR_ROLLED
    for (; out < dst + stride; out += 8)
      _mm256_storeu_ps(out, _mm256_setzero_ps());
  }
}

#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define VEC __m128i
#define LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(p), v)
#define DECODE(codes, shift, base) \
  _mm_or_si128(_mm_and_si128(_mm_srli_epi16(codes, shift), _mm_set1_epi8(3)), base)
#define SELECT(x, places) _mm_shuffle_epi8(x, places)
#define XOR(v, byte) _mm_xor_si128(v, _mm_set1_epi8((char)(byte)))
#include "places_128.inc"
