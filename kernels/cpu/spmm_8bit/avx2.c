/* Sparse u8 x s8 product over pixels for AVX2, exact: two inputs are interleaved and widened to 16 bits, and vpmaddwd adds
 * pairs of products in 32 bits. 4 filters by 16 pixels in registers. */
#include <immintrin.h>

#include "../Kernel.h"

#define BODY ajour_spmm_8bit_body_avx2
#define SYMBOL ajour_spmm_u8_i8_i32_8x8x4_avx2
#define TARGET AJOUR_TARGET_avx2
#define BYTE uint8_t
#define PIXELS 16

AJOUR_HELPER TARGET void BODY(const int64_t m, const int64_t group, const uint8_t *restrict src, int64_t scale,
                              const uint16_t *restrict inputs, const int8_t *restrict weights, int32_t *restrict acc,
                              int64_t lda, int64_t n, int64_t count, int64_t accumulate) {
  __m256i c[4][2];
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    c[r][0] = c[r][1] = _mm256_setzero_si256();
  AJOUR_ROLLED
  for (int64_t e = 0; e < count; ++e) {
    __m128i x[4];
    AJOUR_UNROLL
    for (int64_t q = 0; q < 4; ++q)
      x[q] = _mm_loadu_si128((const __m128i *)(src + inputs[e * 4 + q] * scale));
    const __m256i first[2] = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x[0], x[1])),
                              _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x[0], x[1]))};
    const __m256i second[2] = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x[2], x[3])),
                               _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x[2], x[3]))};
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      int32_t quad;
      __builtin_memcpy(&quad, weights + (e * group + r) * 4, 4);
      const __m128i w = _mm_cvtepi8_epi16(_mm_cvtsi32_si128(quad));
      const __m256i w0 = _mm256_broadcastd_epi32(w), w1 = _mm256_broadcastd_epi32(_mm_shuffle_epi32(w, 1));
      AJOUR_UNROLL
      for (int64_t t = 0; t < 2; ++t)
        c[r][t] = _mm256_add_epi32(
            c[r][t], _mm256_add_epi32(_mm256_madd_epi16(first[t], w0), _mm256_madd_epi16(second[t], w1)));
    }
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t t = 0; t < 2; ++t)
      if (8 * t < n) {
        __m256i *to = (__m256i *)(acc + r * lda + 8 * t);
        _mm256_storeu_si256(to, accumulate ? _mm256_add_epi32(c[r][t], _mm256_loadu_si256(to)) : c[r][t]);
      }
}

#include "groups.inc"
