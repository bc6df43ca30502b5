/* Sparse f32 product for AVX2: 8x1, 4x3, 2x6 or 1x12 vectors of accumulators. */
#include "../Kernel.h"

#define SYMBOL ajour_spmm_f32_f32_f32_8x8x1_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define VECTORS(m) ((m) == 1 ? 12 : (m) == 2 ? 6 : (m) == 4 ? 3 : 1)
#include "vector.inc"
