/* u8 x s8 GEMM for AVX-512 without VNNI: the AVX2 scheme (16-bit pairs, vpmaddwd) on wider vectors. */
#include <immintrin.h>

#include "../Kernel.h"

typedef struct {
  __m512i even, odd;
} ajour_pairs_avx512;

AJOUR_HELPER AJOUR_TARGET_avx512 ajour_pairs_avx512 ajour_rhs_pairs_avx512(__m512i v) {
  ajour_pairs_avx512 r = {_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8), _mm512_srai_epi16(v, 8)};
  return r;
}
AJOUR_HELPER AJOUR_TARGET_avx512 ajour_pairs_avx512 ajour_lhs_pairs_avx512(__m512i v) {
  ajour_pairs_avx512 r = {_mm512_and_si512(v, _mm512_set1_epi16(255)), _mm512_srli_epi16(v, 8)};
  return r;
}
AJOUR_HELPER AJOUR_TARGET_avx512 __m512i ajour_dot_pairs_avx512(__m512i c, ajour_pairs_avx512 a,
                                                                ajour_pairs_avx512 b) {
  return _mm512_add_epi32(c, _mm512_add_epi32(_mm512_madd_epi16(a.even, b.even), _mm512_madd_epi16(a.odd, b.odd)));
}

#define SYMBOL ajour_gemm_u8_i8_i32_12x32x4_avx512
#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#define MR 12
#define VECTORS 2
#define PASSES 1
#define CHAINS(m) 1
#define PREFETCH_BYTES(m) ((m) == 1 ? 8192 : 1024)
#define VEC __m512i
#define ZERO _mm512_setzero_si512()
#define LOAD(p) _mm512_loadu_si512(p)
#define SPLAT(x) _mm512_set1_epi32(x)
#define ADD(a, b) _mm512_add_epi32(a, b)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define RHS ajour_pairs_avx512
#define LHS ajour_pairs_avx512
#define PREPARE_RHS(v) ajour_rhs_pairs_avx512(v)
#define PREPARE_LHS(v) ajour_lhs_pairs_avx512(v)
#define DOT(c, a, b) ajour_dot_pairs_avx512(c, a, b)
#include "x86.inc"
