/* Sparse f32 products for AVX-512: vpermps takes one of 16 inputs for each lane. */
#include <immintrin.h>

#include "../Kernel.h"

#define PD(x) _mm512_castps_pd(x)
#define SUFFIX f32_avx512
#define TARGET AJOUR_TARGET_avx512
#define SYMBOL1 ajour_gemm_sparse1_f32_f32_f32_12x64x1_avx512
#define SYMBOL2 ajour_gemm_sparse2_f32_f32_f32_12x64x1_avx512
#define SYMBOL4 ajour_gemm_sparse4_f32_f32_f32_6x64x1_avx512
#define MR1 12
#define MR2 12
#define MR4 6
#define LANES 16
#define KR 1
#define LHS float
#define LHS_ARGUMENT float
#define RHS float
#define ACC float
#define VEC __m512
#define ZERO _mm512_setzero_ps()
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define PICKS __m512i
#define LOAD_PICKS(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p)))
#define TAKEN __m512
#define TAKE(p, picks) _mm512_permutexvar_ps(picks, _mm512_loadu_ps(p))
#define WEIGHTS __m512
#define LOAD_WEIGHTS(p) _mm512_loadu_ps(p)
#define DOT(c, x, w) _mm512_fmadd_ps(x, w, c)
#define LOW32(a, b) _mm512_unpacklo_ps(a, b)
#define HIGH32(a, b) _mm512_unpackhi_ps(a, b)
#define LOW64(a, b) _mm512_castpd_ps(_mm512_unpacklo_pd(PD(a), PD(b)))
#define HIGH64(a, b) _mm512_castpd_ps(_mm512_unpackhi_pd(PD(a), PD(b)))
#include "share.inc"
#undef PD
