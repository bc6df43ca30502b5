/* Many rows times quantised weights for AVX2: 4x16. */
#include <immintrin.h>

#include "../Kernel.h"

#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#define LANES 8
#define MR 4
#define ZERO8 128
#define DOTQ8(c, x, w) ((ajour_gemm_q_ints_avx2)ajour_gemv_dot_avx2((__m256i)(c), (__m256i)(w), (__m256i)(x)))
#define DOTQ4(c, x, w) ((ajour_gemm_q_ints_avx2)ajour_gemv_dot4_avx2((__m256i)(c), (__m256i)(w), (__m256i)(x)))
#include "tile.inc"
