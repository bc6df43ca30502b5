/* f32 depthwise convolution for AVX-512: 8 pixels x 32 channels in registers. */
#include "../Kernel.h"

#define SYMBOL ajour_dwconv_f32_f32_f32_8x32x1_avx512
#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#define VECTORS 2
#define NR 32
#define TILE 8
#include "vector.inc"
