/* Attention for AVX-512: tiles of 12 rows and 2 vectors. */
#include "../Kernel.h"
#include "ajour/Kernels/AttentionHeads.h"

#define SYMBOL ajour_attention_f32_avx512
#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#define MR 12
#define VECTORS(m) ((m) > 4 ? 2 : 4)
#define LOW2 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH2 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define LOW4 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH4 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define IOTA 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#include "vector.inc"
