/* Matrix-vector products of one block of 16 rows, specialised as a compiled model has them. */
#ifndef AJOUR_BENCHMARKS_GEMV_VARIANTS_H
#define AJOUR_BENCHMARKS_GEMV_VARIANTS_H

#include <stdint.h>

#include "ajour/Kernels/Kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns of every matrix. */
#define GEMV_DEPTH 4096

/* What all variants read, and their scratch. */
typedef struct gemv_activations {
  float x[GEMV_DEPTH + 64], scales[GEMV_DEPTH / 16];
  int8_t q[GEMV_DEPTH + 64];
  int32_t sums[GEMV_DEPTH / 16];
  /* Of one block. */
  float kept_x[4 * (GEMV_DEPTH + 64)], mixed_x[4 * (GEMV_DEPTH + 64)];
  int8_t kept_q[4 * GEMV_DEPTH + 64];
} gemv_activations;

typedef struct gemv_variant {
  const char *name, *dense; /* `dense`: the variant that it is compared with */
  ajour_cpu_level level;
  int64_t mask_bytes;  /* at the start of a block, each byte keeping `kept8` of 8 columns, or, if that is 0, each tenth
                        * column kept; 0: any byte will do */
  int64_t kept8;
  int64_t block_bytes; /* a multiple of 64 */
  void (*run)(gemv_activations *a, const uint8_t *block, float *acc);
} gemv_variant;

extern const gemv_variant gemv_variants[];
extern const int gemv_variant_count;

/* Adds up 64-byte aligned memory, a multiple of 256 bytes. The levels are those of the variants, in the same order. */
typedef struct gemv_read {
  ajour_cpu_level level;
  void (*run)(const uint8_t *p, int64_t bytes, int64_t *sum);
} gemv_read;
extern const gemv_read gemv_reads[];

#ifdef __cplusplus
}
#endif

#endif
