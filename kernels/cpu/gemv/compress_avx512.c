/* Activations that a row pattern keeps, put together by vcompressps. */
#include <immintrin.h>

#include "../Kernel.h"

AJOUR_KERNEL AJOUR_TARGET_avx512 void ajour_compress_f32_avx512(const float *restrict src, const uint8_t *restrict mask,
                                                                float *restrict dst, int64_t groups, int64_t group,
                                                                int64_t stride, int64_t kept8) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g, src += group, mask += group / 8, dst += stride) {
    float *out = dst;
    int64_t i = 0;
    AJOUR_ROLLED
    for (; i + 2 <= group / 8; i += 2) {
      uint16_t m;
      __builtin_memcpy(&m, mask + i, 2);
      _mm512_storeu_ps(out, _mm512_maskz_compress_ps(m, _mm512_loadu_ps(src + 8 * i)));
      out += kept8 ? 2 * kept8 : __builtin_popcount(m);
    }
    if (i < group / 8) {
      _mm256_storeu_ps(out, _mm256_maskz_compress_ps(mask[i], _mm256_loadu_ps(src + 8 * i)));
      out += kept8 ? kept8 : __builtin_popcount(mask[i]);
    }
    AJOUR_ROLLED
    for (; out < dst + stride; out += 8)
      _mm256_storeu_ps(out, _mm256_setzero_ps());
  }
}

/* 64 columns at a time, a quarter in each 128-bit lane. `words` = kept * patterns and both are constants at every call. */
AJOUR_HELPER AJOUR_TARGET_avx512 __m512i ajour_places_avx512(const int64_t kept, const int64_t patterns, const int64_t c,
                                                             __m512i codes, __m512i x) {
  const __m512i shifts = _mm512_set_epi64(6LL << 32 | 6, 6LL << 32 | 6, 4LL << 32 | 4, 4LL << 32 | 4, 2LL << 32 | 2,
                                          2LL << 32 | 2, 0, 0);
  char base[16];
  AJOUR_UNROLL
  for (int64_t b = 0; b < 16; ++b)
    base[b] = ((4 * c + b / 4) / patterns * 4 + b % 4) / kept * 4 % 16;
  __m512i places = _mm512_ternarylogic_epi32(_mm512_srlv_epi32(codes, shifts), _mm512_set1_epi8(3),
                                             _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)base)), 0xEA);
  return _mm512_shuffle_epi8(x, places);
}

AJOUR_HELPER AJOUR_TARGET_avx512 void ajour_compress_c4_body_avx512(const int64_t kept, const int64_t patterns,
                                                                    const uint8_t *restrict src,
                                                                    const uint8_t *restrict codes,
                                                                    uint8_t *restrict dst, int64_t k, int64_t flip) {
  const int64_t words = kept * patterns;
  const __m512i flips = _mm512_set1_epi8((char)flip);
#pragma clang loop unroll_count(2) vectorize(disable)
  for (int64_t i = 0; i < k; i += 64) {
    const __m512i x = _mm512_xor_si512(_mm512_loadu_si512(src + i), flips);
    const uint8_t *code = codes + i / 64 * words * 4;
    uint8_t *out = dst + i / 64 * words * 16;
    if (words == 1) {
      int32_t word;
      __builtin_memcpy(&word, code, 4);
      __m512i y = ajour_places_avx512(kept, patterns, 0, _mm512_set1_epi32(word), x);
      y = _mm512_permutexvar_epi32(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0), y);
      _mm_storeu_si128((__m128i *)out, _mm512_castsi512_si128(y));
    } else if (words == 2) {
      int64_t pair;
      __builtin_memcpy(&pair, code, 8);
      __m512i y = ajour_places_avx512(kept, patterns, 0, _mm512_set1_epi64(pair), x);
      y = _mm512_permutexvar_epi64(_mm512_set_epi64(0, 0, 0, 0, 6, 4, 2, 0), y);
      _mm256_storeu_si256((__m256i *)out, _mm512_castsi512_si256(y));
    } else if (words == 3) {
      __m512i y = ajour_places_avx512(kept, patterns, 0,
                                      _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code)), x);
      y = _mm512_permutexvar_epi32(_mm512_set_epi32(0, 0, 0, 0, 14, 13, 12, 10, 9, 8, 6, 5, 4, 2, 1, 0), y);
      _mm512_storeu_si512(out, y);
    } else if (words == 4) {
      _mm512_storeu_si512(out, ajour_places_avx512(kept, patterns, 0,
                                                   _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code)), x));
    } else if (words == 6) {
      int64_t pair;
      __builtin_memcpy(&pair, code + 16, 8);
      __m512i y = ajour_places_avx512(kept, patterns, 0,
                                      _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)code)), x);
      __m512i z = ajour_places_avx512(kept, patterns, 1, _mm512_set1_epi64(pair), x);
      const __m512i first = _mm512_set_epi64(5, 4, 10, 3, 2, 8, 1, 0), last = _mm512_set_epi64(0, 0, 0, 0, 14, 7, 6, 12);
      _mm512_storeu_si512(out, _mm512_permutex2var_epi64(y, first, z));
      _mm256_storeu_si256((__m256i *)(out + 64), _mm512_castsi512_si256(_mm512_permutex2var_epi64(y, last, z)));
    } else {
      AJOUR_UNROLL
      for (int64_t c = 0; c < words / 4; ++c) {
        __m512i y = ajour_places_avx512(kept, patterns, c,
                                        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(code + c * 16))), x);
        _mm_storeu_si128((__m128i *)(out + c * 16), _mm512_castsi512_si128(y));
        _mm_storeu_si128((__m128i *)(out + words * 4 + c * 16), _mm512_extracti32x4_epi32(y, 1));
        _mm_storeu_si128((__m128i *)(out + words * 8 + c * 16), _mm512_extracti32x4_epi32(y, 2));
        _mm_storeu_si128((__m128i *)(out + words * 12 + c * 16), _mm512_extracti32x4_epi32(y, 3));
      }
    }
  }
}

#define CASE(KEPT, P)                                                                                             \
  case KEPT * 8 + P:                                                                                              \
    ajour_compress_c4_body_avx512(KEPT, P, (const uint8_t *)src, codes, (uint8_t *)dst, k, flip);                 \
    break;
AJOUR_KERNEL AJOUR_TARGET_avx512 void ajour_compress_c4_8bit_avx512(const void *restrict src,
                                                                    const uint8_t *restrict codes, void *restrict dst,
                                                                    int64_t k, int64_t kept, int64_t patterns,
                                                                    int64_t flip) {
  switch (kept * 8 + patterns) {
    CASE(1, 1) CASE(2, 1) CASE(3, 1) CASE(1, 2) CASE(2, 2) CASE(3, 2) CASE(1, 4) CASE(2, 4) CASE(3, 4)
  }
}
#undef CASE
