/* The kernels as a compiled model has them: inlined with constants. One function for each row of the table and each
 * depth, behind one table; and loops that find the machine's peak. */
#include "Specialised.h"

#if defined(__x86_64__)
#include "cpu/x86_64.c"
#else
#include "cpu/aarch64.c"
#endif

#define DEPTHS(X, op, symbol, level, mr) \
  X(op, symbol, level, mr, 64) X(op, symbol, level, mr, 256) X(op, symbol, level, mr, 576) X(op, symbol, level, mr, 1152) X(op, symbol, level, mr, 2304)

#define GEMM(symbol, level, m, k, A, B, C)                                                          \
  static AJOUR_TARGET_##level __attribute__((noinline)) void symbol##_m##m##_k##k(const void *a, const void *b, void *c) { \
    symbol((const A *)a, k, (const B *)b, (C *)c, m, k);                                            \
  }
#define DEFINE_gemm_f32(symbol, level, m, k) GEMM(symbol, level, m, k, float, float, float)
#define DEFINE_gemm_8bit(symbol, level, m, k) GEMM(symbol, level, m, k, void, int8_t, int32_t)
#define DEFINE_dwconv_f32(symbol, level, m, k)
#define DEFINE_dwconv_8bit(symbol, level, m, k)
#define DEFINE(op, symbol, level, m, k) DEFINE_##op(symbol, level, m, k)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) DEPTHS(DEFINE, op, symbol, level, mr) DEPTHS(DEFINE, op, symbol, level, 1)
AJOUR_CPU_KERNELS_NATIVE(ROW)
#undef ROW

#define LIST_gemm_f32(symbol, level, m, k) {#symbol, AJOUR_LEVEL_##level, m, k, sizeof(float), symbol##_m##m##_k##k},
#define LIST_gemm_8bit(symbol, level, m, k) {#symbol, AJOUR_LEVEL_##level, m, k, 1, symbol##_m##m##_k##k},
#define LIST_dwconv_f32(symbol, level, m, k)
#define LIST_dwconv_8bit(symbol, level, m, k)
#define LIST(op, symbol, level, m, k) LIST_##op(symbol, level, m, k)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) DEPTHS(LIST, op, symbol, level, mr) DEPTHS(LIST, op, symbol, level, 1)
const specialised_gemm specialised_gemms[] = {AJOUR_CPU_KERNELS_NATIVE(ROW)};
#undef ROW
const int specialised_gemm_count = sizeof(specialised_gemms) / sizeof(specialised_gemms[0]);

/* Depthwise geometries of the MobileNets: kernel, stride, width of the image, channels. */
#define GEOMETRIES(X, op, symbol, level, nr)                                                                  \
  X(op, symbol, level, 3, 1, 112, 32, nr) X(op, symbol, level, 3, 2, 112, 96, nr) X(op, symbol, level, 3, 1, 56, 144, nr) \
  X(op, symbol, level, 3, 1, 28, 192, nr) X(op, symbol, level, 3, 1, 14, 576, nr) X(op, symbol, level, 3, 1, 7, 960, nr)  \
  X(op, symbol, level, 5, 1, 28, 240, nr) X(op, symbol, level, 5, 2, 14, 672, nr)

/* A whole image, as the code generator walks it: rows, tiles of 28 pixels, blocks of channels. */
#define DWCONV(symbol, level, K, S, W, C, NR, A, B, ACC, ...)                                                     \
  static AJOUR_TARGET_##level __attribute__((noinline)) void symbol##_##K##s##S##_##W##x##C(                                \
      const void *image, const void *weights, void *acc) {                                                        \
    const int64_t ow = (W - 1) / S + 1, pad = K / 2;                                                              \
    for (int64_t oy = 0; oy < ow; ++oy) {                                                                         \
      const int64_t y0 = oy * S - pad, ky0 = y0 < 0 ? -y0 : 0, ky1 = y0 + K > W ? W - y0 : K;                     \
      for (int64_t c = 0; c < C; c += NR)                                                                         \
        for (int64_t p = 0; p < ow; p += 28) {                                                                    \
          const int64_t n = ow - p < 28 ? ow - p : 28;                                                            \
          if (c + NR <= C)                                                                                        \
            symbol((const A *)image + (y0 + ky0) * W * C + c, C, W * C, (const B *)weights + c * ((K + __VA_OPT__(3) + 0) / (1 __VA_OPT__(+ 3)) * (1 __VA_OPT__(+ 3))) * K, \
                   (ACC *)acc, n, NR, K, K, ky0, ky1, p * S - pad, W, S, 1 __VA_OPT__(, ) __VA_ARGS__);           \
          else if (C % NR)                                                                                        \
            symbol((const A *)image + (y0 + ky0) * W * C + c, C, W * C, (const B *)weights + c * ((K + __VA_OPT__(3) + 0) / (1 __VA_OPT__(+ 3)) * (1 __VA_OPT__(+ 3))) * K, \
                   (ACC *)acc, n, C % NR, K, K, ky0, ky1, p * S - pad, W, S, 1 __VA_OPT__(, ) __VA_ARGS__);       \
          __asm__ volatile("" ::"r"(acc) : "memory");                                                             \
        }                                                                                                         \
    }                                                                                                             \
  }
#define DW_gemm_f32(...)
#define DW_gemm_8bit(...)
#define DW_dwconv_f32(symbol, level, K, S, W, C, NR) DWCONV(symbol, level, K, S, W, C, NR, float, float, float)
#define DW_dwconv_8bit(symbol, level, K, S, W, C, NR) DWCONV(symbol, level, K, S, W, C, NR, uint8_t, int8_t, int32_t, 128, 0)
#define DW(op, symbol, level, K, S, W, C, NR) DW_##op(symbol, level, K, S, W, C, NR)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) GEOMETRIES(DW, op, symbol, level, nr)
AJOUR_CPU_KERNELS_NATIVE(ROW)
#undef ROW

#define DWLIST_gemm_f32(...)
#define DWLIST_gemm_8bit(...)
#define DWLIST_dwconv_f32(symbol, level, K, S, W, C) {#symbol, AJOUR_LEVEL_##level, K, S, W, C, sizeof(float), symbol##_##K##s##S##_##W##x##C},
#define DWLIST_dwconv_8bit(symbol, level, K, S, W, C) {#symbol, AJOUR_LEVEL_##level, K, S, W, C, 1, symbol##_##K##s##S##_##W##x##C},
#define DWL(op, symbol, level, K, S, W, C, NR) DWLIST_##op(symbol, level, K, S, W, C)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) GEOMETRIES(DWL, op, symbol, level, nr)
const specialised_dwconv specialised_dwconvs[] = {AJOUR_CPU_KERNELS_NATIVE(ROW)};
#undef ROW
const int specialised_dwconv_count = sizeof(specialised_dwconvs) / sizeof(specialised_dwconvs[0]);

#if defined(__x86_64__)
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
