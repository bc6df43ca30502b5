/* Sparse f32 convolution of one filter for AVX2: up to 12 rows of 8 pixels in registers, twice over 16 pixels. */
#include "../Kernel.h"

#define SYMBOL ajour_spconv_f32_f32_f32_12x16x3_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define ROWS 12
#include "vector.inc"
