/* Sparse f32 product for NEON: 8x3, 4x6, 2x12 or 1x16 vectors of accumulators. */
#include "../Kernel.h"

#define SYMBOL ajour_spmm_f32_f32_f32_8x4x1_neon
#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#define VECTORS(m) ((m) == 1 ? 16 : (m) == 2 ? 12 : (m) == 4 ? 6 : 3)
#include "vector.inc"
