/* Sparse u8 x s8 product over pixels for AVX-512 VNNI: 4 filters by 64 pixels in registers. The bytes of four inputs are
 * interleaved, which the filters of a group share; that puts the pixels of a vector in quarters, undone at the end. */
#include <immintrin.h>

#include "../Kernel.h"

#define BODY ajour_spmm_8bit_body_avx512vnni
#define SYMBOL ajour_spmm_u8_i8_i32_8x16x4_avx512vnni
#define TARGET AJOUR_TARGET_avx512vnni
#define BYTE uint8_t
#define PIXELS 64

/* `m` filters (at most 4) of a group of `group` over 64 pixels, of which n are wanted. */
AJOUR_HELPER TARGET void BODY(const int64_t m, const int64_t group, const uint8_t *restrict src, int64_t scale,
                              const uint16_t *restrict inputs, const int8_t *restrict weights, int32_t *restrict acc,
                              int64_t lda, int64_t n, int64_t count, int64_t accumulate) {
  __m512i c[4][4];
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r)
    AJOUR_UNROLL
    for (int64_t t = 0; t < 4; ++t)
      c[r][t] = _mm512_setzero_si512();
  AJOUR_ROLLED
  for (int64_t e = 0; e < count; ++e) {
    const __m512i a = _mm512_loadu_si512(src + inputs[e * 4] * scale);
    const __m512i b = _mm512_loadu_si512(src + inputs[e * 4 + 1] * scale);
    const __m512i d = _mm512_loadu_si512(src + inputs[e * 4 + 2] * scale);
    const __m512i f = _mm512_loadu_si512(src + inputs[e * 4 + 3] * scale);
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const __m512i low2 = _mm512_unpacklo_epi8(d, f), high2 = _mm512_unpackhi_epi8(d, f);
    const __m512i p[4] = {_mm512_unpacklo_epi16(low, low2), _mm512_unpackhi_epi16(low, low2),
                          _mm512_unpacklo_epi16(high, high2), _mm512_unpackhi_epi16(high, high2)};
    AJOUR_UNROLL
    for (int64_t r = 0; r < m; ++r) {
      int32_t quad;
      __builtin_memcpy(&quad, weights + (e * group + r) * 4, 4);
      const __m512i w = _mm512_set1_epi32(quad);
      AJOUR_UNROLL
      for (int64_t t = 0; t < 4; ++t)
        c[r][t] = _mm512_dpbusd_epi32(c[r][t], p[t], w);
    }
  }
  AJOUR_UNROLL
  for (int64_t r = 0; r < m; ++r) {
    /* The quarter L of c[t] holds pixels 16 L + 4 t to 16 L + 4 t + 3. */
    const __m512i ab = _mm512_shuffle_i32x4(c[r][0], c[r][1], 0x44), cd = _mm512_shuffle_i32x4(c[r][2], c[r][3], 0x44);
    const __m512i ef = _mm512_shuffle_i32x4(c[r][0], c[r][1], 0xee), gh = _mm512_shuffle_i32x4(c[r][2], c[r][3], 0xee);
    const __m512i rows[4] = {_mm512_shuffle_i32x4(ab, cd, 0x88), _mm512_shuffle_i32x4(ab, cd, 0xdd),
                             _mm512_shuffle_i32x4(ef, gh, 0x88), _mm512_shuffle_i32x4(ef, gh, 0xdd)};
    AJOUR_UNROLL
    for (int64_t t = 0; t < 4; ++t)
      if (16 * t < n) {
        int32_t *to = acc + r * lda + 16 * t;
        _mm512_storeu_si512(to, accumulate ? _mm512_add_epi32(rows[t], _mm512_loadu_si512(to)) : rows[t]);
      }
  }
}

#include "groups.inc"
