/* The slow, readable meaning of every kernel; tests compare with it. */
#ifndef AJOUR_KERNELS_REFERENCE_H
#define AJOUR_KERNELS_REFERENCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void ajour_reference_gemm_f32(const float *lhs, int64_t lda, const float *rhs, double *acc, int64_t m,
                              int64_t nr, int64_t k);
void ajour_reference_gemm_8bit(const void *lhs, int lhs_is_signed, int64_t lda, const int8_t *rhs,
                               int32_t *acc, int64_t m, int64_t nr, int64_t kr, int64_t k);

#ifdef __cplusplus
}
#endif

#endif
