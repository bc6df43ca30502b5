/* Matrix-vector products for AVX2: bytes are widened to 16-bit pairs for vpmaddwd, except 4-bit
 * weights, whose vpmaddubsw cannot saturate (2 * 15 * 128). */
#include <immintrin.h>

#include "../Kernel.h"

/* c + sums of 4 products of u8 with s8. */
AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_gemv_dot_avx2(__m256i c, __m256i u, __m256i s) {
  __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(255)),
                                   _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
  __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
  return _mm256_add_epi32(c, _mm256_add_epi32(even, odd));
}
AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_gemv_dot4_avx2(__m256i c, __m256i u, __m256i s) {
  return _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}

#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#include "lanes.inc"
#define CHAINS(m) ((m) == 1 ? 4 : (m) == 2 ? 2 : 1)
#include "float.inc"
#define SIGNED8 0
#define NIBBLES(w, shift) __builtin_convertvector((((w) ^ (int32_t)0x88888888) << (28 - (shift))) >> 28, ajour_gemv_mixed_floats_avx2)
#include "mixed.inc"
#undef SIGNED8
#undef NIBBLES
#define TYPE8 u8
#define ZERO8 128
#define DOT8(c, x, w) ((ajour_gemv_ints_avx2)ajour_gemv_dot_avx2((__m256i)(c), (__m256i)(x), (__m256i)(w)))
#define DOTQ8(c, x, w) ((ajour_gemv_ints_avx2)ajour_gemv_dot_avx2((__m256i)(c), (__m256i)(w), (__m256i)(x)))
#define DOTQ4(c, x, w) ((ajour_gemv_ints_avx2)ajour_gemv_dot4_avx2((__m256i)(c), (__m256i)(w), (__m256i)(x)))
#define SUM4(c, x) DOTQ4(c, x, (ajour_gemv_ints_avx2)0x01010101)
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
