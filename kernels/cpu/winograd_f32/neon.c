/* Winograd's transforms for NEON: 4 channels at a time. */
#include "../Kernel.h"

#define INPUT_SYMBOL ajour_winograd_input_f32_neon
#define OUTPUT_SYMBOL ajour_winograd_output_f32_neon
#define SUFFIX neon
#define TARGET AJOUR_TARGET_neon
#define LANES 4
#include "vector.inc"
