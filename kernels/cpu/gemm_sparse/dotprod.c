/* Sparse s8 x s8 products for NEON with the dot product. */
#include <arm_neon.h>

#include "../Kernel.h"

#include "lanes_neon.inc"
#define SUFFIX 8bit_dotprod
#define TARGET AJOUR_TARGET_dotprod
#define SYMBOL1 ajour_gemm_sparse1_i8_i8_i32_12x16x4_dotprod
#define SYMBOL2 ajour_gemm_sparse2_i8_i8_i32_12x16x4_dotprod
#define SYMBOL4 ajour_gemm_sparse4_i8_i8_i32_5x16x4_dotprod
#define MR1 12
#define MR2 12
#define MR4 5
#define DOT(c, x, w) vdotq_s32(c, x, w)
#include "share.inc"
