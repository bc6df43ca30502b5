/* The kernels as a compiled model has them: inlined with constants. One function for each row of the table and each
 * depth, behind one table. */
#include "Specialised.h"

#if defined(__x86_64__)
#include "cpu/x86_64.c"
#else
#include "cpu/aarch64.c"
#endif

#define DEPTHS(X, op, symbol, level, mr)     \
  X(op, symbol, level, mr, 64)               \
  X(op, symbol, level, mr, 256)              \
  X(op, symbol, level, mr, 576)              \
  X(op, symbol, level, mr, 1152)             \
  X(op, symbol, level, mr, 2304)

#define GEMM(symbol, level, m, k, A, B, C)                                                          \
  static AJOUR_TARGET_##level __attribute__((noinline)) void symbol##_m##m##_k##k(const void *a, const void *b, void *c) { \
    symbol((const A *)a, k, (const B *)b, (C *)c, m, k);                                            \
  }
#define DEFINE_gemm_f32(symbol, level, m, k) GEMM(symbol, level, m, k, float, float, float)
#define DEFINE_gemm_8bit(symbol, level, m, k) GEMM(symbol, level, m, k, void, int8_t, int32_t)
#define DEFINE_dwconv_f32(symbol, level, m, k)
#define DEFINE_dwconv_8bit(symbol, level, m, k)
#define DEFINE_spmm_f32(symbol, level, m, k)
#define DEFINE_spconv_f32(symbol, level, m, k)
#define DEFINE(op, symbol, level, m, k) DEFINE_##op(symbol, level, m, k)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) DEPTHS(DEFINE, op, symbol, level, mr) DEPTHS(DEFINE, op, symbol, level, 1)
AJOUR_CPU_KERNELS_NATIVE(ROW)
#undef ROW

#define LIST_gemm_f32(symbol, level, m, k) {#symbol, AJOUR_LEVEL_##level, m, k, sizeof(float), symbol##_m##m##_k##k},
#define LIST_gemm_8bit(symbol, level, m, k) {#symbol, AJOUR_LEVEL_##level, m, k, 1, symbol##_m##m##_k##k},
#define LIST_dwconv_f32(symbol, level, m, k)
#define LIST_dwconv_8bit(symbol, level, m, k)
#define LIST_spmm_f32(symbol, level, m, k)
#define LIST_spconv_f32(symbol, level, m, k)
#define LIST(op, symbol, level, m, k) LIST_##op(symbol, level, m, k)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) DEPTHS(LIST, op, symbol, level, mr) DEPTHS(LIST, op, symbol, level, 1)
const specialised_gemm specialised_gemms[] = {AJOUR_CPU_KERNELS_NATIVE(ROW)};
#undef ROW
const int specialised_gemm_count = sizeof(specialised_gemms) / sizeof(specialised_gemms[0]);

/* Depthwise geometries of the MobileNets: kernel, stride, width of the image, channels. */
#define GEOMETRIES(X, op, symbol, level, nr)  \
  X(op, symbol, level, 3, 1, 112, 32, nr)     \
  X(op, symbol, level, 3, 2, 112, 96, nr)     \
  X(op, symbol, level, 3, 1, 56, 144, nr)     \
  X(op, symbol, level, 3, 1, 28, 192, nr)     \
  X(op, symbol, level, 3, 1, 14, 576, nr)     \
  X(op, symbol, level, 3, 1, 7, 960, nr)      \
  X(op, symbol, level, 3, 2, 7, 72, nr)       \
  X(op, symbol, level, 5, 1, 28, 240, nr)     \
  X(op, symbol, level, 5, 2, 14, 672, nr)

/* Weights of one channel: kernel rows are padded to a multiple of kr. */
#define TAPS(K, KR) ((K + KR - 1) / KR * KR * K)

/* A whole image, block of channels by block, so that the rows that neighbouring output rows share stay in L1; then
 * rows, then tiles of 28 pixels. Tile t is written to acc + t * step; a step of 0 keeps the accumulators in cache, as
 * a caller with a fused epilogue does. */
#define DWCONV(symbol, level, K, S, W, C, NR, KR, A, B, ACC, ...)                                                    \
  static AJOUR_TARGET_##level __attribute__((noinline)) void symbol##_##K##s##S##_##W##x##C(                         \
      const void *image, const void *weights, void *acc, int64_t step) {                                             \
    const int64_t ow = (W - 1) / S + 1, pad = K / 2;                                                                 \
    ACC *tile = (ACC *)acc;                                                                                          \
    for (int64_t c = 0; c < C; c += NR)                                                                              \
      for (int64_t oy = 0; oy < ow; ++oy) {                                                                          \
        const int64_t y0 = oy * S - pad, ky0 = y0 < 0 ? -y0 : 0, ky1 = y0 + K > W ? W - y0 : K;                      \
        const A *row = (const A *)image + (y0 + ky0) * W * C;                                                        \
        for (int64_t p = 0; p < ow; p += 28, tile += step) {                                                         \
          const B *w = (const B *)weights + c * TAPS(K, KR);                                                         \
          const int64_t n = ow - p < 28 ? ow - p : 28, ix0 = p * S - pad;                                            \
          if (c + NR <= C)                                                                                           \
            symbol(row + c, C, W * C, w, tile, n, NR, K, K, ky0, ky1, ix0, W, S, __VA_ARGS__);                       \
          else                                                                                                       \
            symbol(row + c, C, W * C, w, tile, n, C % NR, K, K, ky0, ky1, ix0, W, S, __VA_ARGS__);                   \
          __asm__ volatile("" ::"r"(tile) : "memory");                                                               \
        }                                                                                                            \
      }                                                                                                              \
  }
#define DW_gemm_f32(...)
#define DW_gemm_8bit(...)
#define DW_spmm_f32(...)
#define DW_spconv_f32(...)
#define DW_dwconv_f32(symbol, level, K, S, W, C, NR) DWCONV(symbol, level, K, S, W, C, NR, 1, float, float, float, 1)
#define DW_dwconv_8bit(symbol, level, K, S, W, C, NR) \
  DWCONV(symbol, level, K, S, W, C, NR, 4, uint8_t, int8_t, int32_t, 1, SPECIALISED_PAD, SPECIALISED_FLIP)
#define DW(op, symbol, level, K, S, W, C, NR) DW_##op(symbol, level, K, S, W, C, NR)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) GEOMETRIES(DW, op, symbol, level, nr)
AJOUR_CPU_KERNELS_NATIVE(ROW)
#undef ROW

#define DWLIST_gemm_f32(...)
#define DWLIST_gemm_8bit(...)
#define DWLIST_spmm_f32(...)
#define DWLIST_spconv_f32(...)
#define DWLIST_dwconv_f32(symbol, level, K, S, W, C) \
  {#symbol, AJOUR_LEVEL_##level, K, S, W, C, sizeof(float), symbol##_##K##s##S##_##W##x##C},
#define DWLIST_dwconv_8bit(symbol, level, K, S, W, C) \
  {#symbol, AJOUR_LEVEL_##level, K, S, W, C, 1, symbol##_##K##s##S##_##W##x##C},
#define DWL(op, symbol, level, K, S, W, C, NR) DWLIST_##op(symbol, level, K, S, W, C)
#define ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) GEOMETRIES(DWL, op, symbol, level, nr)
const specialised_dwconv specialised_dwconvs[] = {AJOUR_CPU_KERNELS_NATIVE(ROW)};
#undef ROW
const int specialised_dwconv_count = sizeof(specialised_dwconvs) / sizeof(specialised_dwconvs[0]);
