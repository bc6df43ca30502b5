/* f32 GEMM for AVX-512: 14x32 in registers (28 accumulators, 2 rhs, 1 broadcast). */
#include "../Kernel.h"

#define SYMBOL ajour_gemm_f32_f32_f32_14x32x1_avx512
#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#define MR 14
#define VECTORS 2
#define PASSES 1
#define STEPS 4
#define NEAR_FLOATS 128
#define CHAINS(m) ((m) <= 2 ? 4 : (m) <= 4 ? 2 : 1)
#define PREFETCH_FLOATS(m) 2048
#include "vector.inc"
