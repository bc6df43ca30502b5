/* Many rows times quantised weights for NEON without the dot product. */
#include <arm_neon.h>

#include "../Kernel.h"

#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#define MR 4
#define ZERO8 0
#define DOTQ8(c, x, w) ((ajour_gemm_q_ints_neon)ajour_gemv_dot_neon((int32x4_t)(c), (int8x16_t)(x), (int8x16_t)(w)))
#define DOTQ4(c, x, w) DOTQ8(c, x, w)
#include "tile.inc"
