/* Matrix-vector products for AVX-512 without VNNI: bytes are widened to 16-bit pairs for vpmaddwd, except 4-bit
 * weights, whose vpmaddubsw cannot saturate (2 * 15 * 128). */
#include <immintrin.h>

#include "../Kernel.h"

/* c + sums of 4 products of u8 with s8. */
AJOUR_HELPER AJOUR_TARGET_avx512 __m512i ajour_gemv_dot_avx512(__m512i c, __m512i u, __m512i s) {
  __m512i even = _mm512_madd_epi16(_mm512_and_si512(u, _mm512_set1_epi16(255)),
                                   _mm512_srai_epi16(_mm512_slli_epi16(s, 8), 8));
  __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(u, 8), _mm512_srai_epi16(s, 8));
  return _mm512_add_epi32(c, _mm512_add_epi32(even, odd));
}
AJOUR_HELPER AJOUR_TARGET_avx512 __m512i ajour_gemv_dot4_avx512(__m512i c, __m512i u, __m512i s) {
  return _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_maddubs_epi16(u, s), _mm512_set1_epi16(1)));
}

/* What 4 bits stand for. vpermps looks at the lowest 4 bits of each lane. */
AJOUR_HELPER AJOUR_TARGET_avx512 __m512 ajour_gemv_nibbles_avx512(void) {
  return _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
}

#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#include "lanes.inc"
#define CHAINS(m) ((m) <= 2 ? 4 : 2)
#include "float.inc"
#define SIGNED8 0
#define NIBBLES(w, shift) _mm512_permutexvar_ps((__m512i)((w) >> (shift)), ajour_gemv_nibbles_avx512())
#include "mixed.inc"
#undef SIGNED8
#undef NIBBLES
#define TYPE8 u8
#define ZERO8 128
#define DOT8(c, x, w) ((ajour_gemv_ints_avx512)ajour_gemv_dot_avx512((__m512i)(c), (__m512i)(x), (__m512i)(w)))
#define DOTQ8(c, x, w) ((ajour_gemv_ints_avx512)ajour_gemv_dot_avx512((__m512i)(c), (__m512i)(w), (__m512i)(x)))
#define DOTQ4(c, x, w) ((ajour_gemv_ints_avx512)ajour_gemv_dot4_avx512((__m512i)(c), (__m512i)(w), (__m512i)(x)))
#define SUM4(c, x) DOTQ4(c, x, (ajour_gemv_ints_avx512)0x01010101)
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
