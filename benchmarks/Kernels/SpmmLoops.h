/* What SpmmLoops.c offers to SpmmBench: kernels inlined with the constants of a layer, as compiled models have them. */
#ifndef AJOUR_BENCHMARKS_KERNELS_SPMMLOOPS_H
#define AJOUR_BENCHMARKS_KERNELS_SPMMLOOPS_H

#include <stdint.h>

#include "ajour/Kernels/Kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All filters of a chunk: spconv over `rows` rows, lists [filters][5], acc [filters][rows][16]. */
typedef void spconv_loop(const float *src, const uint16_t *inputs, const float *weights, const uint32_t *index,
                         float *acc, int64_t filters, int64_t accumulate);
/* All groups of a tile: spmm over n pixels, lists [groups + 1], each tile given a bias and a relu and stored. */
typedef void spmm_loop(const float *src, int64_t scale, const uint16_t *inputs, const float *weights,
                       const uint32_t *index, const float *bias, float *dst, int64_t ldd, int64_t groups);
/* One tile of the dense product, mr rows, with bias, relu and store. parts = 1: one tap. parts = 3: three products over 3 taps each are
 * added before, what a convolution in bands does for each window row. Channels: a power of two from 64 to 2048. */
typedef void gemm_loop(const float *lhs, int64_t part_stride, int64_t channels, const float *rhs, const float *bias, float *dst,
                       int64_t ldd, int64_t parts);
/* All panels of one tile of gemm_sparse, `rows` of the table, each with bias, relu and store; 8 bits: with a multiplication by a scale,
 * rounding and clamping. */
typedef void sparse_loop(const void *lhs, int64_t lda, const uint16_t *offsets, const uint8_t *picks, const void *rhs,
                         const uint32_t *index, const void *bias, void *dst, int64_t ldd, int64_t panels);
/* The same of the dense kernel; rows of k elements lie side by side, k a power of two from 64 to 2048. */
typedef void dense_loop(const void *lhs, const void *rhs, const void *bias, void *dst, int64_t ldd, int64_t k, int64_t panels);
/* Bias, relu and store of one filter's tile [rows][16], `lanes` of each row. */
typedef void store_loop(const float *acc, float bias, float *dst, int64_t ldd, int64_t rows, int64_t lanes);

typedef struct {
  ajour_cpu_level level;
  int64_t value, m; /* spconv: rows; spmm: pixels and filters; gemm: rows */
  void *run;
} spmm_loops_row;
typedef struct {
  ajour_cpu_level level;
  int64_t bits, share, rows, nr, kr; /* share 0: the dense kernel */
  void *run;
} sparse_loops_row;
extern const sparse_loops_row sparse_loops[];
extern const int sparse_loops_count;
extern const spmm_loops_row spconv_loops[], spmm_loops[], gemm_loops[];
extern const int spconv_loops_count, spmm_loops_count, gemm_loops_count;
store_loop store_tile;

#ifdef __cplusplus
}
#endif

#endif
