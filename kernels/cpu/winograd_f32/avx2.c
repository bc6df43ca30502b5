/* Winograd's transforms for AVX2: 8 channels at a time. */
#include "../Kernel.h"

#define INPUT_SYMBOL ajour_winograd_input_f32_avx2
#define OUTPUT_SYMBOL ajour_winograd_output_f32_avx2
#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#include "vector.inc"
