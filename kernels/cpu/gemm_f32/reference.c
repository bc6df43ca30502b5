/* The meaning of the f32 GEMM kernels: acc[r][j] = sum over p of lhs[r][p] * rhs[p][j], with sums in
 * double precision. */
#include "../Reference.h"

void ajour_reference_gemm_f32(const float *lhs, int64_t lda, const float *rhs, double *acc, int64_t m,
                              int64_t nr, int64_t k) {
  for (int64_t r = 0; r < m; ++r)
    for (int64_t j = 0; j < nr; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += (double)lhs[r * lda + p] * rhs[p * nr + j];
      acc[r * nr + j] = sum;
    }
}
