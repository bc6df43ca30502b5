/* Sparse f32 convolution of one filter for AVX-512: up to 16 rows of 16 pixels in registers. */
#include "../Kernel.h"

#define SYMBOL ajour_spconv_f32_f32_f32_16x16x3_avx512
#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#define ROWS 16
#include "vector.inc"
