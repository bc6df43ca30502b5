/* The meaning of the sparse f32 product over pixels: acc[r][i] (+)= sum over e of weights[e][r] *
 * src[inputs[e] * scale + i], with sums in double precision. */
#include "../Reference.h"

void ajour_reference_spmm_f32(const float *src, int64_t scale, const uint16_t *inputs, const float *weights,
                              double *acc, int64_t lda, int64_t m, int64_t n, int64_t count, int64_t accumulate) {
  for (int64_t r = 0; r < m; ++r)
    for (int64_t i = 0; i < n; ++i) {
      double sum = accumulate ? acc[r * lda + i] : 0;
      for (int64_t e = 0; e < count; ++e)
        sum += (double)weights[e * m + r] * src[inputs[e] * scale + i];
      acc[r * lda + i] = sum;
    }
}
