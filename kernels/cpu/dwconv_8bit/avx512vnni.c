/* 8-bit depthwise convolution for AVX-512 VNNI: byte interleaving of four input rows, vpdpbusd on four kernel
 * rows at once. One body for 64, 32 and 16 channels.
 *
 * The interleaves work inside 128-bit lanes. A permutation of the loaded double words puts the channels into
 * the lanes from which they come out in natural order.
 */
#include <immintrin.h>

#include "../Kernel.h"

#define BODY(W, V, MM, SI, CASTLOAD, PERMUTE)                                                           \
  typedef struct {                                                                                           \
    V q[4];                                                                                                  \
  } ajour_group_vnni##W;                                                                                     \
  AJOUR_HELPER AJOUR_TARGET_avx512vnni V ajour_load_row_vnni##W(const uint8_t *p, uint8_t flip) {            \
    V v = CASTLOAD;                                                                                          \
    return MM##_xor_##SI(PERMUTE, MM##_set1_epi8((char)flip));                                               \
  }                                                                                                          \
  AJOUR_HELPER AJOUR_TARGET_avx512vnni V ajour_blend_vnni##W(V row, V pad, uint8_t mask) {                   \
    V m = MM##_set1_epi8((char)mask);                                                                        \
    return MM##_or_##SI(MM##_and_##SI(m, row), MM##_andnot_##SI(m, pad));                                    \
  }                                                                                                          \
  /* Rows that the kernel does not have meet zero weights: any bytes will do. */                             \
  AJOUR_HELPER AJOUR_TARGET_avx512vnni ajour_group_vnni##W ajour_make_group_vnni##W(const V *r,              \
                                                                                    const int64_t rows) {    \
    V a = r[0], b = rows > 1 ? r[1] : a, c = rows > 2 ? r[2] : a, d = rows > 3 ? r[3] : c;                   \
    V ab0 = MM##_unpacklo_epi8(a, b), ab1 = MM##_unpackhi_epi8(a, b);                                        \
    V cd0 = MM##_unpacklo_epi8(c, d), cd1 = MM##_unpackhi_epi8(c, d);                                        \
    ajour_group_vnni##W g = {{MM##_unpacklo_epi16(ab0, cd0), MM##_unpackhi_epi16(ab0, cd0),                  \
                              MM##_unpacklo_epi16(ab1, cd1), MM##_unpackhi_epi16(ab1, cd1)}};                \
    return g;                                                                                                \
  }

BODY(64, __m512i, _mm512, si512, _mm512_loadu_si512(p),
     _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v))
BODY(32, __m256i, _mm256, si256, _mm256_loadu_si256((const __m256i *)p),
     _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)))
BODY(16, __m128i, _mm, si128, _mm_loadu_si128((const __m128i *)p), v)
#undef BODY

#define SUFFIX vnni64
#define TARGET AJOUR_TARGET_avx512vnni
#define WIDTH 64
#define NR 64
#define ACCS 4
#define VEC __m512i
#define ZERO _mm512_setzero_si512()
#define STORE(p, j, v) _mm512_storeu_si512((p) + (j) * 16, v)
#define ROW __m512i
#define LOAD_ROW(p, flip) ajour_load_row_vnni64(p, flip)
#define SPLAT_ROW(x) _mm512_set1_epi8((char)(x))
#define BLEND(r, pad, mask) ajour_blend_vnni64(r, pad, mask)
#define GROUP ajour_group_vnni64
#define MAKE_GROUP(r, rows) ajour_make_group_vnni64(r, rows)
#define WEIGHTS __m512i
#define LOAD_WEIGHTS(p, j) _mm512_loadu_si512((p) + (j) * 64)
#define DOT(c, j, group, w, rows) _mm512_dpbusd_epi32(c, (group).q[j], w)
#include "groups.inc"

#define SUFFIX vnni32
#define TARGET AJOUR_TARGET_avx512vnni
#define WIDTH 32
#define NR 64
#define ACCS 4
#define VEC __m256i
#define ZERO _mm256_setzero_si256()
#define STORE(p, j, v) _mm256_storeu_si256((__m256i *)((p) + (j) * 8), v)
#define ROW __m256i
#define LOAD_ROW(p, flip) ajour_load_row_vnni32(p, flip)
#define SPLAT_ROW(x) _mm256_set1_epi8((char)(x))
#define BLEND(r, pad, mask) ajour_blend_vnni32(r, pad, mask)
#define GROUP ajour_group_vnni32
#define MAKE_GROUP(r, rows) ajour_make_group_vnni32(r, rows)
#define WEIGHTS __m256i
#define LOAD_WEIGHTS(p, j) _mm256_loadu_si256((const __m256i *)((p) + (j) * 32))
#define DOT(c, j, group, w, rows) _mm256_dpbusd_epi32(c, (group).q[j], w)
#include "groups.inc"

#define SUFFIX vnni16
#define TARGET AJOUR_TARGET_avx512vnni
#define WIDTH 16
#define NR 64
#define ACCS 4
#define VEC __m128i
#define ZERO _mm_setzero_si128()
#define STORE(p, j, v) _mm_storeu_si128((__m128i *)((p) + (j) * 4), v)
#define ROW __m128i
#define LOAD_ROW(p, flip) ajour_load_row_vnni16(p, flip)
#define SPLAT_ROW(x) _mm_set1_epi8((char)(x))
#define BLEND(r, pad, mask) ajour_blend_vnni16(r, pad, mask)
#define GROUP ajour_group_vnni16
#define MAKE_GROUP(r, rows) ajour_make_group_vnni16(r, rows)
#define WEIGHTS __m128i
#define LOAD_WEIGHTS(p, j) _mm_loadu_si128((const __m128i *)((p) + (j) * 16))
#define DOT(c, j, group, w, rows) _mm_dpbusd_epi32(c, (group).q[j], w)
#include "groups.inc"

AJOUR_KERNEL AJOUR_TARGET_avx512vnni void ajour_dwconv_u8_i8_i32_1x64x4_avx512vnni(
    const void *restrict src, int64_t pixel_stride, int64_t row_stride, const int8_t *restrict weights,
    int32_t *restrict acc, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0, int64_t ky1, int64_t ix0,
    int64_t iw, int64_t stride, int64_t dilation, int64_t pad, int64_t flip) {
  const uint8_t *s = (const uint8_t *)src;
  if (c <= 16)
    ajour_dwconv_8bit_row_vnni16(s, pixel_stride, row_stride, weights, acc, n, kh, kw, ky0, ky1, ix0, iw, stride,
                                 dilation, (uint8_t)pad, (uint8_t)flip);
  else if (c <= 32)
    ajour_dwconv_8bit_row_vnni32(s, pixel_stride, row_stride, weights, acc, n, kh, kw, ky0, ky1, ix0, iw, stride,
                                 dilation, (uint8_t)pad, (uint8_t)flip);
  else
    ajour_dwconv_8bit_row_vnni64(s, pixel_stride, row_stride, weights, acc, n, kh, kw, ky0, ky1, ix0, iw, stride,
                                 dilation, (uint8_t)pad, (uint8_t)flip);
}
