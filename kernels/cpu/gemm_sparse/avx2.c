/* Sparse products for AVX2. 8 bits, exact: one byte shuffle of 16 inputs takes two for each lane and widens them to 16
 * bits, for vpmaddwd. */
#include <immintrin.h>

#include "../Kernel.h"

AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_gemm_sparse_picks_avx2(const uint8_t *p) {
  /* The upper byte of each 16 bits becomes zero. */
  return _mm256_or_si256(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p)), _mm256_set1_epi16((short)0x8000));
}

#define SUFFIX 8bit_avx2
#define TARGET AJOUR_TARGET_avx2
#define SYMBOL1 ajour_gemm_sparse1_u8_i8_i32_8x32x2_avx2
#define SYMBOL2 ajour_gemm_sparse2_u8_i8_i32_4x32x2_avx2
#define SYMBOL4 ajour_gemm_sparse4_u8_i8_i32_2x32x2_avx2
#define MR1 8
#define MR2 4
#define MR4 2
#define LANES 8
#define KR 2
#define LHS uint8_t
#define LHS_ARGUMENT void
#define RHS int8_t
#define ACC int32_t
#define VEC __m256i
#define ZERO _mm256_setzero_si256()
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define PICKS __m256i
#define LOAD_PICKS(p) ajour_gemm_sparse_picks_avx2(p)
#define TAKEN __m256i
#define TAKE(p, picks) _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p))), picks)
#define WEIGHTS __m256i
#define LOAD_WEIGHTS(p) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(p)))
#define DOT(c, x, w) _mm256_add_epi32(c, _mm256_madd_epi16(x, w))
#define LOW32(a, b) _mm256_unpacklo_epi32(a, b)
#define HIGH32(a, b) _mm256_unpackhi_epi32(a, b)
#define LOW64(a, b) _mm256_unpacklo_epi64(a, b)
#define HIGH64(a, b) _mm256_unpackhi_epi64(a, b)
#include "share.inc"

#define PD(x) _mm256_castps_pd(x)
#define SUFFIX f32_avx2
#define TARGET AJOUR_TARGET_avx2
#define SYMBOL1 ajour_gemm_sparse1_f32_f32_f32_8x32x1_avx2
#define SYMBOL2 ajour_gemm_sparse2_f32_f32_f32_4x32x1_avx2
#define SYMBOL4 ajour_gemm_sparse4_f32_f32_f32_2x32x1_avx2
#define MR1 8
#define MR2 4
#define MR4 2
#define LANES 8
#define KR 1
#define LHS float
#define LHS_ARGUMENT float
#define RHS float
#define ACC float
#define VEC __m256
#define ZERO _mm256_setzero_ps()
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define PICKS __m256i
#define LOAD_PICKS(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p)))
#define TAKEN __m256
#define TAKE(p, picks) _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), picks)
#define WEIGHTS __m256
#define LOAD_WEIGHTS(p) _mm256_loadu_ps(p)
#define DOT(c, x, w) _mm256_fmadd_ps(x, w, c)
#define LOW32(a, b) _mm256_unpacklo_ps(a, b)
#define HIGH32(a, b) _mm256_unpackhi_ps(a, b)
#define LOW64(a, b) _mm256_castpd_ps(_mm256_unpacklo_pd(PD(a), PD(b)))
#define HIGH64(a, b) _mm256_castpd_ps(_mm256_unpackhi_pd(PD(a), PD(b)))
#include "share.inc"
#undef PD
