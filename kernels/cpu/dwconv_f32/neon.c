/* f32 depthwise convolution for NEON: 8 pixels x 8 channels in registers, twice over a block of 16. */
#include "../Kernel.h"

#define SYMBOL ajour_dwconv_f32_f32_f32_8x16x1_neon
#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#define VECTORS 2
#define NR 16
#define TILE 8
#include "vector.inc"
