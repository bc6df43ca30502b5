/* Winograd's transforms for AVX-512: 16 channels at a time. */
#include "../Kernel.h"

#define INPUT_SYMBOL ajour_winograd_input_f32_avx512
#define OUTPUT_SYMBOL ajour_winograd_output_f32_avx512
#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#include "vector.inc"
