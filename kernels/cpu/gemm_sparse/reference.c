/* The meaning of the sparse products: a step takes kr inputs for each lane out of a window, and multiplies them for each of the
 * lane's `share` columns. */
#include "../Reference.h"

#define BODY(ADD)                                                                                      \
  const int64_t lanes = nr / 4;                                                                    \
  for (int64_t r = 0; r < m; ++r)                                                                      \
    for (int64_t lane = 0; lane < lanes; ++lane)                                                       \
      for (int64_t t = 0; t < share; ++t) {                                                            \
        const int64_t column = ajour_gemm_sparse_group(lane, lanes, share) * share + t;                \
        acc[r * nr + column] = 0;                                                                      \
        for (int64_t s = 0; s < steps; ++s)                                                            \
          for (int64_t q = 0; q < kr; ++q) {                                                           \
            const int64_t at = r * lda + offsets[s] + picks[(s * lanes + lane) * kr + q];              \
            acc[r * nr + column] += ADD * rhs[((s * share + t) * lanes + lane) * kr + q];              \
          }                                                                                            \
      }

void ajour_reference_gemm_sparse_f32(const float *lhs, int64_t lda, const uint16_t *offsets, const uint8_t *picks,
                                     const float *rhs, double *acc, int64_t m, int64_t nr, int64_t kr, int64_t share,
                                     int64_t steps) {
  BODY((double)lhs[at])
}

void ajour_reference_gemm_sparse_8bit(const void *lhs, int lhs_is_signed, int64_t lda, const uint16_t *offsets,
                                      const uint8_t *picks, const int8_t *rhs, int32_t *acc, int64_t m, int64_t nr,
                                      int64_t kr, int64_t share, int64_t steps) {
  BODY((lhs_is_signed ? ((const int8_t *)lhs)[at] : ((const uint8_t *)lhs)[at]))
}
