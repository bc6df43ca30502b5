/* Register-only loops that find what the machine can do. */
#include "Peak.h"

#include "cpu/Kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Sixteen independent chains: more than latency times width of any of these instructions. */
#define CHAIN(BODY, TYPE, INIT, TARGET)                                     \
  TARGET void BODY(int64_t n) {                                             \
    TYPE c[16], a = INIT, b = INIT;                                         \
    AJOUR_UNROLL for (int i = 0; i < 16; ++i) c[i] = INIT;                  \
    __asm__ volatile("" : "+v"(a), "+v"(b));                                \
    AJOUR_ROLLED for (; n > 0; --n) {                                       \
      AJOUR_UNROLL for (int i = 0; i < 16; ++i) STEP(c[i], a, b);           \
    }                                                                       \
    AJOUR_UNROLL for (int i = 0; i < 16; ++i) __asm__ volatile("" ::"v"(c[i])); \
  }
#define STEP(c, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))
CHAIN(peak_f32_avx512, __m512, _mm512_setzero_ps(), AJOUR_TARGET_avx512)
#undef STEP
#define STEP(c, a, b) __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))
CHAIN(peak_8bit_avx512vnni, __m512i, _mm512_setzero_si512(), AJOUR_TARGET_avx512vnni)
#undef STEP
#undef CHAIN
/* Twelve chains: AVX2 has 16 registers. */
AJOUR_TARGET_avx2 void peak_f32_avx2(int64_t n) {
  __m256 c[12], a = _mm256_setzero_ps(), b = a;
  AJOUR_UNROLL for (int i = 0; i < 12; ++i) c[i] = a;
  __asm__ volatile("" : "+x"(a), "+x"(b));
  AJOUR_ROLLED for (; n > 0; --n) {
    AJOUR_UNROLL for (int i = 0; i < 12; ++i) __asm__("vfmadd231ps %2, %1, %0" : "+x"(c[i]) : "x"(a), "x"(b));
  }
  AJOUR_UNROLL for (int i = 0; i < 12; ++i) __asm__ volatile("" ::"x"(c[i]));
}
#endif
