/* Many rows times quantised weights for AVX-512 without VNNI. */
#include <immintrin.h>

#include "../Kernel.h"

#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#define LANES 16
#define MR 8
#define ZERO8 128
#define DOTQ8(c, x, w) ((ajour_gemm_q_ints_avx512)ajour_gemv_dot_avx512((__m512i)(c), (__m512i)(w), (__m512i)(x)))
#define DOTQ4(c, x, w) ((ajour_gemm_q_ints_avx512)ajour_gemv_dot4_avx512((__m512i)(c), (__m512i)(w), (__m512i)(x)))
#include "tile.inc"
