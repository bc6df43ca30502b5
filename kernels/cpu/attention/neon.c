/* Attention for NEON: tiles of 8 rows and 2 vectors. */
#include "../Kernel.h"
#include "ajour/Kernels/AttentionHeads.h"

#define SYMBOL ajour_attention_f32_neon
#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#define MR 8
#define VECTORS(m) ((m) > 4 ? 2 : 4)
#define LOW2 0, 4, 1, 5
#define HIGH2 2, 6, 3, 7
#define LOW4 0, 1, 4, 5
#define HIGH4 2, 3, 6, 7
#define IOTA 0, 1, 2, 3
#include "vector.inc"
