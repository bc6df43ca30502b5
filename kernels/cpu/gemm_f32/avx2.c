/* f32 GEMM for AVX2: 6x16 in registers (12 accumulators, 2 rhs, 1 broadcast), twice over the panel of
 * 32 columns that the AVX-512 kernel uses as well. */
#include "../Kernel.h"

#define SYMBOL ajour_gemm_f32_f32_f32_6x32x1_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define MR 6
#define VECTORS 2
#define PASSES 2
#define STEPS 4
#define NEAR_FLOATS 128
#define CHAINS(m) ((m) == 1 ? 4 : (m) <= 2 ? 2 : 1)
#define PREFETCH_FLOATS(m) ((m) == 1 ? 2048 : 512)
#include "vector.inc"
