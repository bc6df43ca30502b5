/* The meaning of the sparse 8-bit product over pixels: acc[r][i] (+)= sum over e, q < 4 of weights[e][r][q] *
 * src[inputs[e][q] * scale + i]. */
#include "../Reference.h"

void ajour_reference_spmm_8bit(const void *src, int src_is_signed, int64_t scale, const uint16_t *inputs,
                               const int8_t *weights, int32_t *acc, int64_t lda, int64_t m, int64_t n, int64_t count,
                               int64_t accumulate) {
  for (int64_t r = 0; r < m; ++r)
    for (int64_t i = 0; i < n; ++i) {
      int32_t sum = accumulate ? acc[r * lda + i] : 0;
      for (int64_t e = 0; e < count; ++e)
        for (int64_t q = 0; q < 4; ++q) {
          const int64_t at = inputs[e * 4 + q] * scale + i;
          const int32_t x = src_is_signed ? ((const int8_t *)src)[at] : ((const uint8_t *)src)[at];
          sum += weights[(e * m + r) * 4 + q] * x;
        }
      acc[r * lda + i] = sum;
    }
}
