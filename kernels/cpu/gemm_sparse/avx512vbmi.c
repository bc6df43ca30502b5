/* Sparse u8 x s8 products for AVX-512 with VNNI and VBMI: vpermb takes any four of 64 inputs for each lane. */
#include <immintrin.h>

#include "../Kernel.h"

#define SUFFIX 8bit_avx512vbmi
#define TARGET AJOUR_TARGET_avx512vbmi
#define SYMBOL1 ajour_gemm_sparse1_u8_i8_i32_12x64x4_avx512vbmi
#define SYMBOL2 ajour_gemm_sparse2_u8_i8_i32_12x64x4_avx512vbmi
#define SYMBOL4 ajour_gemm_sparse4_u8_i8_i32_6x64x4_avx512vbmi
#define MR1 12
#define MR2 12
#define MR4 6
#define LANES 16
#define KR 4
#define LHS uint8_t
#define LHS_ARGUMENT void
#define RHS int8_t
#define ACC int32_t
#define VEC __m512i
#define ZERO _mm512_setzero_si512()
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define PICKS __m512i
#define LOAD_PICKS(p) _mm512_loadu_si512(p)
#define TAKEN __m512i
#define TAKE(p, picks) _mm512_permutexvar_epi8(picks, _mm512_loadu_si512(p))
#define WEIGHTS __m512i
#define LOAD_WEIGHTS(p) _mm512_loadu_si512(p)
#define DOT(c, x, w) _mm512_dpbusd_epi32(c, x, w)
#define LOW32(a, b) _mm512_unpacklo_epi32(a, b)
#define HIGH32(a, b) _mm512_unpackhi_epi32(a, b)
#define LOW64(a, b) _mm512_unpacklo_epi64(a, b)
#define HIGH64(a, b) _mm512_unpackhi_epi64(a, b)
#include "share.inc"
