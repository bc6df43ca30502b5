/* u8 x s8 GEMM for AVX2, exact: the bytes of a group of 4 are widened to two 16-bit pairs (even and odd
 * positions) and multiplied with vpmaddwd, whose sums fit 32 bits; vpmaddubsw would saturate. */
#include <immintrin.h>

#include "../Kernel.h"

typedef struct {
  __m256i even, odd;
} ajour_pairs_avx2;

AJOUR_HELPER AJOUR_TARGET_avx2 ajour_pairs_avx2 ajour_rhs_pairs_avx2(__m256i v) {
  ajour_pairs_avx2 r = {_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
  return r;
}
AJOUR_HELPER AJOUR_TARGET_avx2 ajour_pairs_avx2 ajour_lhs_pairs_avx2(__m256i v) {
  ajour_pairs_avx2 r = {_mm256_and_si256(v, _mm256_set1_epi16(255)), _mm256_srli_epi16(v, 8)};
  return r;
}
AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_dot_pairs_avx2(__m256i c, ajour_pairs_avx2 a, ajour_pairs_avx2 b) {
  return _mm256_add_epi32(c, _mm256_add_epi32(_mm256_madd_epi16(a.even, b.even), _mm256_madd_epi16(a.odd, b.odd)));
}

#define SYMBOL ajour_gemm_u8_i8_i32_4x32x4_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define MR 4
#define VECTORS 2
#define PASSES 2
#define CHAINS(m) 1
#define PREFETCH_BYTES(m) ((m) == 1 ? 8192 : 1024)
#define VEC __m256i
#define ZERO _mm256_setzero_si256()
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define SPLAT(x) _mm256_set1_epi32(x)
#define ADD(a, b) _mm256_add_epi32(a, b)
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define RHS ajour_pairs_avx2
#define LHS ajour_pairs_avx2
#define PREPARE_RHS(v) ajour_rhs_pairs_avx2(v)
#define PREPARE_LHS(v) ajour_lhs_pairs_avx2(v)
#define DOT(c, a, b) ajour_dot_pairs_avx2(c, a, b)
#include "x86.inc"
