/* What Specialised.c offers to tests and benchmarks: kernels inlined with constants. */
#ifndef AJOUR_TESTS_KERNELS_SPECIALISED_H
#define AJOUR_TESTS_KERNELS_SPECIALISED_H

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

/* Arguments of the 8-bit depthwise kernels. */
#define SPECIALISED_PAD 0x91
#define SPECIALISED_FLIP 0x80

typedef struct {
  const char *symbol;
  ajour_cpu_level level;
  int64_t kernel, stride, width, channels, element_size;
  /* Same padding; weights are packed as the table says. Tiles of [28][nr] accumulators follow each other `step`
   * elements apart: blocks of nr channels, then rows, then pixels. */
  void (*run)(const void *image, const void *weights, void *acc, int64_t step);
} specialised_dwconv;
extern const specialised_dwconv specialised_dwconvs[];
extern const int specialised_dwconv_count;

#ifdef __cplusplus
}
#endif

#endif
