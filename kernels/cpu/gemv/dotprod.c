/* Matrix-vector products for the Arm dot product. */
#include <arm_neon.h>

#include "../Kernel.h"

#define SUFFIX dotprod
#define TARGET AJOUR_TARGET_dotprod
#define LANES 4
#include "lanes.inc"
#define TYPE8 i8
#define ZERO8 0
#define DOT8(c, x, w) ((ajour_gemv_ints_dotprod)vdotq_s32((int32x4_t)(c), (int8x16_t)(x), (int8x16_t)(w)))
#define DOTQ8(c, x, w) DOT8(c, x, w)
#define DOTQ4(c, x, w) DOT8(c, x, w)
#define SUM4(c, x) DOTQ4(c, x, (ajour_gemv_ints_dotprod)0x01010101)
#include "integer.inc"
#undef SUFFIX
#undef TARGET
#undef LANES
#undef TYPE8
#undef ZERO8
#undef DOT8
#undef DOTQ8
#undef DOTQ4
