/* Matrix-vector products for AVX-512 VNNI: a block of 16 rows is one vector. */
#include <immintrin.h>

#include "../Kernel.h"

#define SUFFIX avx512vnni
#define TARGET AJOUR_TARGET_avx512vnni
#define LANES 16
#include "lanes.inc"
#define TYPE8 u8
#define ZERO8 128
#define DOT8(c, x, w) ((ajour_gemv_ints_avx512vnni)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(x), (__m512i)(w)))
#define DOTQ8(c, x, w) ((ajour_gemv_ints_avx512vnni)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(w), (__m512i)(x)))
#define DOTQ4(c, x, w) DOTQ8(c, x, w)
#define SUM4(c, x) DOTQ4(c, x, (ajour_gemv_ints_avx512vnni)0x01010101)
#include "integer.inc"
#undef SUFFIX
#undef TARGET
#undef LANES
#undef TYPE8
#undef ZERO8
#undef DOT8
#undef DOTQ8
#undef DOTQ4
