/* Rows of activations as tiles of 8-bit groups. One source serves every level. */
#include "../Kernel.h"

typedef float ajour_tile_floats __attribute__((ext_vector_type(16), aligned(4)));
typedef int32_t ajour_tile_ints __attribute__((ext_vector_type(16), aligned(4)));
typedef int8_t ajour_tile_bytes __attribute__((ext_vector_type(16), aligned(1)));

/* The largest magnitude of n numbers. Of bits without their sign the order is that of the numbers. */
AJOUR_HELPER float ajour_largest_magnitude(const float *src, int64_t n) {
  ajour_tile_ints most = (ajour_tile_ints)(0);
  int64_t i = 0;
  AJOUR_ROLLED
  for (; i + 16 <= n; i += 16)
    most = __builtin_elementwise_max(most, (ajour_tile_ints)(*(const ajour_tile_floats *)(src + i)) & 0x7FFFFFFF);
  int32_t largest = __builtin_reduce_max(most);
  AJOUR_ROLLED
  for (; i < n; ++i) {
    int32_t bits;
    __builtin_memcpy(&bits, src + i, 4);
    bits &= 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  float magnitude;
  __builtin_memcpy(&magnitude, &largest, 4);
  return magnitude;
}

/* Adding 1.5 * 2^23 rounds to the nearest even integer. Returns the sum of what is written. */
AJOUR_HELPER int32_t ajour_round_8bit(const float *src, int8_t *dst, int64_t n, int64_t padded, float factor) {
  ajour_tile_ints sums = (ajour_tile_ints)(0);
  int64_t i = 0;
  AJOUR_ROLLED
  for (; i + 16 <= n; i += 16) {
    const ajour_tile_floats shifted = *(const ajour_tile_floats *)(src + i) * factor + 12582912.0f;
    const ajour_tile_ints q = (ajour_tile_ints)shifted - 0x4B400000;
    *(ajour_tile_bytes *)(dst + i) = __builtin_convertvector(q, ajour_tile_bytes);
    sums += q;
  }
  int32_t sum = __builtin_reduce_add(sums);
  AJOUR_ROLLED
  for (; i < n; ++i) {
    const float shifted = src[i] * factor + 12582912.0f;
    int32_t bits;
    __builtin_memcpy(&bits, &shifted, 4);
    dst[i] = (int8_t)(bits - 0x4B400000);
    sum += bits - 0x4B400000;
  }
  AJOUR_ROLLED
  for (; i < padded; ++i)
    dst[i] = 0;
  return sum;
}

AJOUR_KERNEL void ajour_quantize_tile_8bit(const float *restrict src, int64_t lds, void *restrict tile, int64_t m,
                                           int64_t mr, int64_t k, int64_t rounded, int64_t group, int64_t zero,
                                           int64_t half) {
  const int64_t bytes = ajour_gemm_q_tile_bytes(mr, group), rows = (m + 3) / 4 * 4;
  AJOUR_ROLLED
  for (int64_t r = 0; r < rows; ++r) {
    int8_t *to = (int8_t *)tile;
    AJOUR_ROLLED
    for (int64_t from = 0; from < k; from += rounded) {
      const int64_t own = r < m ? (k - from < rounded ? k - from : rounded) : 0;
      const float *row = src + (r < m ? r * lds + from : 0);
      const float magnitude = ajour_largest_magnitude(row, own);
      /* Below 2^-120 the factor would overflow; such a group is 0. */
      const float factor = magnitude < 0x1p-120f ? 0.0f : 127.0f / magnitude;
      float scale = magnitude / 127.0f;
      if (half)
        scale = (float)(_Float16)scale;
      AJOUR_ROLLED
      for (int64_t p = 0; p < rounded; p += group, to += bytes) {
        const int64_t left = own - p, n = left < 0 ? 0 : left < group ? left : group;
        const int32_t sum = ajour_round_8bit(row + p, to + r * group, n, group, factor);
        float *scales = (float *)(to + mr * group);
        scales[r] = scale;
        if (zero < 0)
          scales[mr + r] = (float)-sum;
        else
          ((int32_t *)scales)[mr + r] = 0x4B400000 - (int32_t)zero * sum;
      }
    }
  }
}
