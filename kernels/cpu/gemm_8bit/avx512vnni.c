/* u8 x s8 GEMM for AVX-512 VNNI: 14x32 in registers (28 accumulators, 2 rhs, 1 broadcast). */
#include <immintrin.h>

#include "../Kernel.h"

#define SYMBOL ajour_gemm_u8_i8_i32_14x32x4_avx512vnni
#define SUFFIX avx512vnni
#define TARGET AJOUR_TARGET_avx512vnni
#define LANES 16
#define MR 14
#define VECTORS 2
#define PASSES 1
#define CHAINS(m) ((m) <= 2 ? 4 : (m) <= 5 ? 2 : 1)
#define PREFETCH_BYTES(m) ((m) == 1 ? 8192 : 1024)
#define VEC __m512i
#define ZERO _mm512_setzero_si512()
#define LOAD(p) _mm512_loadu_si512(p)
#define SPLAT(x) _mm512_set1_epi32(x)
#define ADD(a, b) _mm512_add_epi32(a, b)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define RHS __m512i
#define LHS __m512i
#define PREPARE_RHS(v) (v)
#define PREPARE_LHS(v) (v)
#define DOT(c, a, b) _mm512_dpbusd_epi32(c, a, b)
#include "x86.inc"
