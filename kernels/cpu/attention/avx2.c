/* Attention for AVX2: tiles of 6 rows and 2 vectors. */
#include "../Kernel.h"
#include "ajour/Kernels/AttentionHeads.h"

#define SYMBOL ajour_attention_f32_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define MR 6
#define VECTORS(m) ((m) > 1 ? 2 : 4)
#define LOW2 0, 8, 1, 9, 4, 12, 5, 13
#define HIGH2 2, 10, 3, 11, 6, 14, 7, 15
#define LOW4 0, 1, 8, 9, 4, 5, 12, 13
#define HIGH4 2, 3, 10, 11, 6, 7, 14, 15
#define IOTA 0, 1, 2, 3, 4, 5, 6, 7
#include "vector.inc"
