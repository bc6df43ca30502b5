/* f32 depthwise convolution for AVX2: 8 pixels x 8 channels in registers, four times over a block of 32. */
#include "../Kernel.h"

#define SYMBOL ajour_dwconv_f32_f32_f32_8x32x1_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define VECTORS 1
#define NR 32
#define TILE 8
#include "vector.inc"
