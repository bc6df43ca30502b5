/* 8-bit depthwise convolution for AVX2, 8 channels at a time: bytes of two kernel rows widened into 16-bit pairs,
 * vpmaddwd on both, exact. Shares its weights with the VNNI kernel. Also serves AVX-512 without VNNI. */
#include <immintrin.h>

#include "../Kernel.h"

/* The pairs of kernel rows (0, 2) and (1, 3) of 8 channels. */
typedef struct {
  __m256i even, odd;
} ajour_row_pairs_avx2;

AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_load_row_avx2(const uint8_t *p, uint8_t flip) {
  __m128i v = _mm_loadl_epi64((const __m128i *)p);
  return _mm256_cvtepu8_epi32(_mm_xor_si128(v, _mm_set1_epi8((char)flip)));
}
AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_blend_row_avx2(__m256i row, __m256i pad, uint8_t mask) {
  return _mm256_blendv_epi8(pad, row, _mm256_set1_epi8((char)mask));
}
AJOUR_HELPER AJOUR_TARGET_avx2 ajour_row_pairs_avx2 ajour_make_pairs_avx2(const __m256i *r, const int64_t rows) {
  ajour_row_pairs_avx2 g = {r[0], rows > 1 ? r[1] : _mm256_setzero_si256()};
  if (rows > 2)
    g.even = _mm256_or_si256(g.even, _mm256_slli_epi32(r[2], 16));
  if (rows > 3)
    g.odd = _mm256_or_si256(g.odd, _mm256_slli_epi32(r[3], 16));
  return g;
}
AJOUR_HELPER AJOUR_TARGET_avx2 ajour_row_pairs_avx2 ajour_weight_pairs_avx2(const int8_t *p) {
  __m256i v = _mm256_loadu_si256((const __m256i *)p);
  ajour_row_pairs_avx2 w = {_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
  return w;
}
AJOUR_HELPER AJOUR_TARGET_avx2 __m256i ajour_dot_rows_avx2(__m256i c, ajour_row_pairs_avx2 g, ajour_row_pairs_avx2 w,
                                                           const int64_t rows) {
  c = _mm256_add_epi32(c, _mm256_madd_epi16(g.even, w.even));
  return rows > 1 ? _mm256_add_epi32(c, _mm256_madd_epi16(g.odd, w.odd)) : c;
}

#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define WIDTH 8
#define NR 64
#define ACCS 1
#define VEC __m256i
#define ZERO _mm256_setzero_si256()
#define STORE(p, j, v) _mm256_storeu_si256((__m256i *)(p), v)
#define ROW __m256i
#define LOAD_ROW(p, flip) ajour_load_row_avx2(p, flip)
#define SPLAT_ROW(x) _mm256_set1_epi32((uint8_t)(x))
#define BLEND(r, pad, mask) ajour_blend_row_avx2(r, pad, mask)
#define GROUP ajour_row_pairs_avx2
#define MAKE_GROUP(r, rows) ajour_make_pairs_avx2(r, rows)
#define WEIGHTS ajour_row_pairs_avx2
#define LOAD_WEIGHTS(p, j) ajour_weight_pairs_avx2(p)
#define DOT(c, j, group, w, rows) ajour_dot_rows_avx2(c, group, w, rows)
#include "groups.inc"

AJOUR_KERNEL AJOUR_TARGET_avx2 void ajour_dwconv_u8_i8_i32_1x64x4_avx2(
    const void *restrict src, int64_t pixel_stride, int64_t row_stride, const int8_t *restrict weights,
    int32_t *restrict acc, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0, int64_t ky1, int64_t ix0,
    int64_t iw, int64_t stride, int64_t dilation, int64_t pad, int64_t flip) {
  AJOUR_ROLLED
  for (int64_t g = 0; g < c; g += 8)
    ajour_dwconv_8bit_row_avx2((const uint8_t *)src + g, pixel_stride, row_stride, weights + 4 * g, acc + g, n, kh,
                               kw, ky0, ky1, ix0, iw, stride, dilation, (uint8_t)pad, (uint8_t)flip);
}
