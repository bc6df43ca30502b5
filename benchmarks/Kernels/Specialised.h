/* What Specialised.c offers to the benchmark program. */
#ifndef AJOUR_BENCHMARKS_KERNELS_SPECIALISED_H
#define AJOUR_BENCHMARKS_KERNELS_SPECIALISED_H

#include <stdint.h>

#include "ajour/Kernels/Kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char *symbol;
  ajour_cpu_level level;
  int64_t m, k, element_size;
  void (*run)(const void *lhs, const void *rhs, void *acc);
} specialised_gemm;
extern const specialised_gemm specialised_gemms[];
extern const int specialised_gemm_count;

typedef struct {
  const char *symbol;
  ajour_cpu_level level;
  int64_t kernel, stride, width, channels, element_size;
  void (*run)(const void *image, const void *weights, void *acc);
} specialised_dwconv;
extern const specialised_dwconv specialised_dwconvs[];
extern const int specialised_dwconv_count;

/* Register-only loops of n iterations. Multiply-adds an iteration: 16 * 16, 12 * 8, 16 * 64. */
void peak_f32_avx512(int64_t n);
void peak_f32_avx2(int64_t n);
void peak_8bit_avx512vnni(int64_t n);

#ifdef __cplusplus
}
#endif

#endif
