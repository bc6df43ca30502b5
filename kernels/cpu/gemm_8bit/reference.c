/* The meaning of the 8-bit GEMM kernels on a panel [k/kr][nr][kr], exact modulo 2^32. */
#include "../Reference.h"

void ajour_reference_gemm_8bit(const void *lhs, int lhs_is_signed, int64_t lda, const int8_t *rhs,
                               int32_t *acc, int64_t m, int64_t nr, int64_t kr, int64_t k) {
  for (int64_t r = 0; r < m; ++r)
    for (int64_t j = 0; j < nr; ++j) {
      uint32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        int32_t a = lhs_is_signed ? ((const int8_t *)lhs)[r * lda + p] : ((const uint8_t *)lhs)[r * lda + p];
        sum += (uint32_t)(a * rhs[(p / kr * nr + j) * kr + p % kr]);
      }
      acc[r * nr + j] = (int32_t)sum;
    }
}
