/* Many rows times quantised weights for AVX-512 VNNI: 12x16 in registers (12 sums of a group, 12 totals, weights). The
 * lhs's four bytes are broadcast by the instruction. */
#include <immintrin.h>

#include "../Kernel.h"

#define SUFFIX avx512vnni
#define TARGET AJOUR_TARGET_avx512vnni
#define LANES 16
#define MR 12
#define ZERO8 128
#define DOTQ8(c, x, w) ((ajour_gemm_q_ints_avx512vnni)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(w), (__m512i)(x)))
#define DOTQ4(c, x, w) DOTQ8(c, x, w)
#include "tile.inc"
