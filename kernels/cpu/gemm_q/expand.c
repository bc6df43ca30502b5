/* Blocks of C4^n weights as dense blocks of 8 bits. One source serves every level. */
#include "../Kernel.h"

typedef int32_t ajour_expand_ints __attribute__((ext_vector_type(16), aligned(1)));
typedef int32_t ajour_expand_fours __attribute__((ext_vector_type(4), aligned(1)));
typedef int64_t ajour_expand_longs __attribute__((ext_vector_type(8), aligned(1)));
typedef int32_t ajour_expand_word __attribute__((aligned(1), may_alias));
typedef int64_t ajour_expand_long __attribute__((aligned(1), may_alias));

/* The words of all patterns, repeated. `patterns` is a constant at every call. */
AJOUR_HELPER ajour_expand_ints ajour_expand_spread(const uint8_t *words, const int64_t patterns) {
  if (patterns == 1)
    return (ajour_expand_ints)*(const ajour_expand_word *)words;
  if (patterns == 2)
    return (ajour_expand_ints)(ajour_expand_longs)*(const ajour_expand_long *)words;
  const ajour_expand_fours x = *(const ajour_expand_fours *)words;
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

/* Lanes to their rows; `patterns` is a constant at every call. */
AJOUR_HELPER ajour_expand_ints ajour_expand_rows(ajour_expand_ints x, const int64_t patterns) {
  if (patterns == 2)
    return __builtin_shufflevector(x, x, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  if (patterns == 4)
    return __builtin_shufflevector(x, x, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return x;
}

/* Sixteen scales; wide: f32, else f16. */
AJOUR_HELPER void ajour_expand_scales(const uint8_t *from, uint8_t *to, const int64_t patterns, const int wide) {
  AJOUR_UNROLL
  for (int64_t row = 0; row < 16; ++row) {
    const int64_t lane = row % (16 / patterns) * patterns + row / (16 / patterns);
    if (wide)
      ((int32_t *)to)[row] = ((const int32_t *)from)[lane];
    else
      ((int16_t *)to)[row] = ((const int16_t *)from)[lane];
  }
}

/* `patterns`, `kept` and `bits` are constants at every call. */
AJOUR_HELPER void ajour_expand_body(const int64_t patterns, const int64_t kept, const int64_t bits,
                                    const uint8_t *restrict codes, const uint8_t *restrict values, uint8_t *restrict dst,
                                    int64_t groups, int64_t group, const int64_t flags, const int64_t zero,
                                    const int64_t to_zero) {
  const int wide = (flags & AJOUR_GEMV_F32_SCALES) != 0;
  const int64_t scaleBytes = wide ? 64 : 32, valueBytes = group / 4 * kept * 2 * bits;
  AJOUR_ROLLED
  for (int64_t g = 0; g < groups; ++g) {
    AJOUR_ROLLED
    for (int64_t i = 0; i < group / 4; ++i) {
      /* The i-th four columns of the group, `four` of the matrix. */
      const int64_t four = g * (group / 4) + i, quarter = four / 4 % 4;
      ajour_expand_ints dense = (ajour_expand_ints)(0);
      AJOUR_UNROLL
      for (int64_t s = 0; s < kept; ++s) {
        const int64_t at = i * kept + s, place = four % 4 * kept + s, step = at / 4;
        const uint8_t *words = codes + (four / 16 * kept + place / 4) * patterns * 4;
        const ajour_expand_ints column = ajour_expand_spread(words, patterns) >> (int32_t)(place % 4 * 8 + 2 * quarter);
        const ajour_expand_ints shift = (column & 3) * 8;
        ajour_expand_ints w = *(const ajour_expand_ints *)(values + step / (8 / bits) * 64);
        w = (w >> (int32_t)(at % 4 * 8 + step % (8 / bits) * bits)) & ((1 << bits) - 1);
        dense |= ((w - (int32_t)zero) & 255) << shift;
      }
      dense ^= (int32_t)to_zero * 0x01010101;
      *(ajour_expand_ints *)(dst + i * 64) = ajour_expand_rows(dense, patterns);
    }
    ajour_expand_scales(values + valueBytes, dst + group * 16, patterns, wide);
    values += valueBytes + scaleBytes;
    dst += group * 16 + scaleBytes;
  }
}

#define CASE(PATTERNS, KEPT)                                                                                    \
  case PATTERNS * 4 + KEPT:                                                                                     \
    if (bits == 4)                                                                                              \
      ajour_expand_body(PATTERNS, KEPT, 4, codes, (const uint8_t *)values, (uint8_t *)dst, groups, group, flags, zero, to_zero); \
    else                                                                                                        \
      ajour_expand_body(PATTERNS, KEPT, 8, codes, (const uint8_t *)values, (uint8_t *)dst, groups, group, flags, zero, to_zero); \
    break;
AJOUR_KERNEL void ajour_expand_c4_8bit(const uint8_t *restrict codes, const void *restrict values, void *restrict dst,
                                       int64_t kept, int64_t patterns, int64_t groups, int64_t group, int64_t bits,
                                       int64_t flags, int64_t zero, int64_t to_zero) {
  switch (patterns * 4 + kept) {
    CASE(1, 1) CASE(1, 2) CASE(1, 3)
    CASE(2, 1) CASE(2, 2) CASE(2, 3)
    CASE(4, 1) CASE(4, 2) CASE(4, 3)
  }
}
#undef CASE
