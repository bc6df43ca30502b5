/* Sparse f32 convolution of one filter for NEON: up to 16 rows of 4 pixels in registers, four times over 16 pixels. */
#include "../Kernel.h"

#define SYMBOL ajour_spconv_f32_f32_f32_16x16x3_neon
#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#define ROWS 16
#include "vector.inc"
