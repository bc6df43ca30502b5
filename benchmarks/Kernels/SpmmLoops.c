#include "SpmmLoops.h"

#if defined(__x86_64__)
#include "cpu/x86_64.c"
#define LEVELS(X, ...)                                                                                                 \
  X(avx2, ajour_spconv_f32_f32_f32_12x16x3_avx2, ajour_spmm_f32_f32_f32_8x8x1_avx2, ajour_gemm_f32_f32_f32_6x32x1_avx2, \
    __VA_ARGS__)                                                                                                       \
  X(avx512, ajour_spconv_f32_f32_f32_16x16x3_avx512, ajour_spmm_f32_f32_f32_8x16x1_avx512,                             \
    ajour_gemm_f32_f32_f32_14x32x1_avx512, __VA_ARGS__)
#define NR 32
#define SPARSE_LEVELS(F32, BITS8)                                                                                  \
  F32(avx2, f32_f32_f32, 8, 8x32x1, 4, 4x32x1, 2, 2x32x1, 6, 6x32x1, 8, 1, avx2)                                     \
  F32(avx512, f32_f32_f32, 12, 12x64x1, 12, 12x64x1, 6, 6x64x1, 14, 14x32x1, 16, 1, avx512)                         \
  BITS8(avx2, u8_i8_i32, 8, 8x32x2, 4, 4x32x2, 2, 2x32x2, 4, 4x32x4, 8, 2, avx2)                                     \
  BITS8(avx512vbmi, u8_i8_i32, 12, 12x64x4, 12, 12x64x4, 6, 6x64x4, 14, 14x32x4, 16, 4, avx512vnni)
#else
#include "cpu/aarch64.c"
#define LEVELS(X, ...)                                                                                      \
  X(neon, ajour_spconv_f32_f32_f32_16x16x3_neon, ajour_spmm_f32_f32_f32_8x4x1_neon, ajour_gemm_f32_f32_f32_8x8x1_neon, \
    __VA_ARGS__)
#define NR 8
#define SPARSE_LEVELS(F32, BITS8)                                                                 \
  F32(neon, f32_f32_f32, 12, 12x16x1, 8, 8x16x1, 4, 4x16x1, 8, 8x8x1, 4, 1, neon)                    \
  BITS8(neon, i8_i8_i32, 8, 8x16x4, 8, 8x16x4, 4, 4x16x4, 4, 4x8x4, 4, 4, neon)                      \
  BITS8(dotprod, i8_i8_i32, 12, 12x16x4, 12, 12x16x4, 5, 5x16x4, 8, 8x8x4, 4, 4, dotprod)
#endif

#define SPCONV(level, spconv, spmm, gemm, ROWS)                                                                       \
  static AJOUR_TARGET_##level __attribute__((noinline)) void spconv_##ROWS##_##level(                                 \
      const float *src, const uint16_t *inputs, const float *weights, const uint32_t *index, float *acc,              \
      int64_t filters, int64_t accumulate) {                                                                          \
    AJOUR_ROLLED                                                                                                      \
    for (int64_t f = 0; f < filters; ++f, index += 5)                                                                 \
      spconv(src, inputs + index[0], weights + index[1], acc + f * ROWS * 16, ROWS, index[2], index[3], index[4],     \
             accumulate);                                                                                             \
  }
#define SPMM(level, spconv, spmm, gemm, M, N)                                                                         \
  static AJOUR_TARGET_##level __attribute__((noinline)) void spmm_##M##_##N##_##level(                                \
      const float *src, int64_t scale, const uint16_t *inputs, const float *weights, const uint32_t *index,           \
      const float *bias, float *dst, int64_t ldd, int64_t groups) {                                                   \
    float acc[M * N] __attribute__((aligned(64)));                                                                    \
    AJOUR_ROLLED                                                                                                      \
    for (int64_t g = 0; g < groups; ++g) {                                                                            \
      spmm(src, scale, inputs + index[g], weights + (int64_t)index[g] * M, acc, N, M, N, index[g + 1] - index[g], 0); \
      AJOUR_ROLLED                                                                                                    \
      for (int64_t r = 0; r < M; ++r)                                                                                 \
        for (int64_t i = 0; i < N; ++i) {                                                                             \
          const float x = acc[r * N + i] + bias[g * M + r];                                                           \
          dst[(g * M + r) * ldd + i] = x > 0 ? x : 0;                                                                 \
        }                                                                                                             \
    }                                                                                                                 \
  }
/* Strides and depth are constants as in compiled models: else the compiler keeps addresses in registers and accumulators not. */
#define GEMM_CASE(gemm, M, C)                                                                                         \
  case C:                                                                                                             \
    if (parts == 1)                                                                                                   \
      gemm(lhs, C, rhs, acc[0], M, C);                                                                                \
    else                                                                                                              \
      AJOUR_ROLLED                                                                                                    \
      for (int64_t p = 0; p < 3; ++p)                                                                                 \
        gemm(lhs + p * part_stride, C, rhs + p * 3 * C * NR, acc[p], M, 3 * C);                                       \
    break;
#define GEMM(level, spconv, spmm, gemm, M)                                                                            \
  static AJOUR_TARGET_##level __attribute__((noinline)) void gemm_##M##_##level(                                      \
      const float *lhs, int64_t part_stride, int64_t channels, const float *rhs, const float *bias, float *dst,       \
      int64_t ldd, int64_t parts) {                                                                                   \
    float acc[3][M * NR] __attribute__((aligned(64)));                                                                \
    switch (channels) {                                                                                               \
      GEMM_CASE(gemm, M, 64) GEMM_CASE(gemm, M, 128) GEMM_CASE(gemm, M, 256)                                          \
      GEMM_CASE(gemm, M, 512) GEMM_CASE(gemm, M, 1024) GEMM_CASE(gemm, M, 2048)                                       \
    default:                                                                                                          \
      __builtin_trap();                                                                                               \
    }                                                                                                                 \
    AJOUR_ROLLED                                                                                                      \
    for (int64_t r = 0; r < M; ++r)                                                                                   \
      for (int64_t j = 0; j < NR; ++j) {                                                                              \
        float x = acc[0][r * NR + j] + bias[j];                                                                       \
        if (parts == 3)                                                                                               \
          x += acc[1][r * NR + j] + acc[2][r * NR + j];                                                               \
        dst[r * ldd + j] = x > 0 ? x : 0;                                                                             \
      }                                                                                                               \
  }
#define SPCONV_ROW(level, spconv, spmm, gemm, ROWS) {AJOUR_LEVEL_##level, ROWS, 1, (void *)spconv_##ROWS##_##level},
#define SPMM_ROW(level, spconv, spmm, gemm, M, N) {AJOUR_LEVEL_##level, N, M, (void *)spmm_##M##_##N##_##level},
#define GEMM_ROW(level, spconv, spmm, gemm, M) {AJOUR_LEVEL_##level, M, 1, (void *)gemm_##M##_##level},

#define ROWS(X) LEVELS(X, 4) LEVELS(X, 14) LEVELS(X, 16)
#define TILES(X) LEVELS(X, 4, 64) LEVELS(X, 4, 80) LEVELS(X, 4, 96) LEVELS(X, 8, 32) LEVELS(X, 8, 48)
#define HEIGHTS(X) LEVELS(X, 4) LEVELS(X, 5) LEVELS(X, 6) LEVELS(X, 7) LEVELS(X, 8) LEVELS(X, 13) LEVELS(X, 14)
ROWS(SPCONV)
TILES(SPMM)
HEIGHTS(GEMM)
const spmm_loops_row spconv_loops[] = {ROWS(SPCONV_ROW)};
const spmm_loops_row spmm_loops[] = {TILES(SPMM_ROW)};
const spmm_loops_row gemm_loops[] = {HEIGHTS(GEMM_ROW)};
const int spconv_loops_count = sizeof(spconv_loops) / sizeof(spconv_loops[0]);
const int spmm_loops_count = sizeof(spmm_loops) / sizeof(spmm_loops[0]);
const int gemm_loops_count = sizeof(gemm_loops) / sizeof(gemm_loops[0]);

void store_tile(const float *acc, float bias, float *dst, int64_t ldd, int64_t rows, int64_t lanes) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < lanes; ++i) {
      const float x = acc[r * 16 + i] + bias;
      dst[r * ldd + i] = x > 0 ? x : 0;
    }
}

#define FINISH_F32(x, b) \
  const float sum = x + b; \
  *to = sum > 0 ? sum : 0;
#define FINISH_8BIT(x, b) \
  const float scaled = __builtin_rintf((float)(x + b) * 0.0117f); \
  *to = (uint8_t)(scaled < 0 ? 0 : scaled > 255 ? 255 : scaled);
#define EPILOGUE(MR, NR, ACC, OUT, FINISH)                              \
  AJOUR_ROLLED                                                          \
  for (int64_t r = 0; r < MR; ++r)                                      \
    for (int64_t j = 0; j < NR; ++j) {                                  \
      OUT *to = (OUT *)dst + r * ldd + p * NR + j;                      \
      FINISH(acc[r * NR + j], ((const ACC *)bias)[p * NR + j])          \
    }
#define SPARSE_LOOP(name, kernel, level, SHARE, MR, LANES, KR, A, B, ACC, OUT, FINISH)                                      \
  static AJOUR_TARGET_##level __attribute__((noinline)) void name(                                                          \
      const void *lhs, int64_t lda, const uint16_t *offsets, const uint8_t *picks, const void *rhs, const uint32_t *index,  \
      const void *bias, void *dst, int64_t ldd, int64_t panels) {                                                           \
    ACC acc[MR * LANES * 4] __attribute__((aligned(64)));                                                                   \
    AJOUR_ROLLED                                                                                                            \
    for (int64_t p = 0; p < panels; ++p) {                                                                                  \
      AJOUR_ROLLED                                                                                                          \
      for (int64_t piece = 0; piece < 4 / SHARE; ++piece, ++index)                                                          \
        kernel((const A *)lhs, lda, offsets + *index, picks + (int64_t)*index * (LANES * KR),                               \
               (const B *)rhs + (int64_t)*index * (LANES * KR * SHARE), acc + piece * LANES * SHARE, MR, index[1] - *index); \
      EPILOGUE(MR, LANES * 4, ACC, OUT, FINISH)                                                                             \
    }                                                                                                                       \
  }
/* With rows side by side, of a depth that is a constant as in compiled models: else the compiler keeps addresses in
 * registers and accumulators not. */
#define DENSE_CASE(kernel, MR, NR, A, B, K)                                   \
  case K:                                                                     \
    kernel((const A *)lhs, K, (const B *)rhs + p * NR * K, acc, MR, K);       \
    break;
#define DENSE_LOOP(name, kernel, level, MR, NR, A, B, ACC, OUT, FINISH)                                                     \
  static AJOUR_TARGET_##level __attribute__((noinline)) void name(const void *lhs, const void *rhs, const void *bias,       \
                                                                  void *dst, int64_t ldd, int64_t k, int64_t panels) {      \
    ACC acc[MR * NR] __attribute__((aligned(64)));                                                                          \
    AJOUR_ROLLED                                                                                                            \
    for (int64_t p = 0; p < panels; ++p) {                                                                                  \
      switch (k) {                                                                                                          \
        DENSE_CASE(kernel, MR, NR, A, B, 64) DENSE_CASE(kernel, MR, NR, A, B, 128) DENSE_CASE(kernel, MR, NR, A, B, 256)    \
        DENSE_CASE(kernel, MR, NR, A, B, 512) DENSE_CASE(kernel, MR, NR, A, B, 1024) DENSE_CASE(kernel, MR, NR, A, B, 2048) \
      default:                                                                                                              \
        __builtin_trap();                                                                                                   \
      }                                                                                                                     \
      EPILOGUE(MR, NR, ACC, OUT, FINISH)                                                                                    \
    }                                                                                                                       \
  }
#define SPARSE_F32(level, types, m1, s1, m2, s2, m4, s4, m, s, lanes, kr, dense)                                                                        \
  SPARSE_LOOP(sparse1_f32_##level, ajour_gemm_sparse1_##types##_##s1##_##level, level, 1, m1, lanes, kr, float, float, float, float, FINISH_F32)        \
  SPARSE_LOOP(sparse2_f32_##level, ajour_gemm_sparse2_##types##_##s2##_##level, level, 2, m2, lanes, kr, float, float, float, float, FINISH_F32)        \
  SPARSE_LOOP(sparse4_f32_##level, ajour_gemm_sparse4_##types##_##s4##_##level, level, 4, m4, lanes, kr, float, float, float, float, FINISH_F32)        \
  DENSE_LOOP(dense_f32_##level, ajour_gemm_##types##_##s##_##dense, level, m, NR, float, float, float, float, FINISH_F32)
#define SPARSE_8BIT(level, types, m1, s1, m2, s2, m4, s4, m, s, lanes, kr, dense)                                                                       \
  SPARSE_LOOP(sparse1_8bit_##level, ajour_gemm_sparse1_##types##_##s1##_##level, level, 1, m1, lanes, kr, void, int8_t, int32_t, uint8_t, FINISH_8BIT)  \
  SPARSE_LOOP(sparse2_8bit_##level, ajour_gemm_sparse2_##types##_##s2##_##level, level, 2, m2, lanes, kr, void, int8_t, int32_t, uint8_t, FINISH_8BIT)  \
  SPARSE_LOOP(sparse4_8bit_##level, ajour_gemm_sparse4_##types##_##s4##_##level, level, 4, m4, lanes, kr, void, int8_t, int32_t, uint8_t, FINISH_8BIT)  \
  DENSE_LOOP(dense_8bit_##level, ajour_gemm_##types##_##s##_##dense, level, m, NR, void, int8_t, int32_t, uint8_t, FINISH_8BIT)
SPARSE_LEVELS(SPARSE_F32, SPARSE_8BIT)

#define SPARSE_ROWS(level, bits, name, m1, m2, m4, m, lanes, kr)                                \
  {AJOUR_LEVEL_##level, bits, 1, m1, 4 * lanes, kr, (void *)sparse1_##name##_##level},              \
      {AJOUR_LEVEL_##level, bits, 2, m2, 4 * lanes, kr, (void *)sparse2_##name##_##level},      \
      {AJOUR_LEVEL_##level, bits, 4, m4, 4 * lanes, kr, (void *)sparse4_##name##_##level},      \
      {AJOUR_LEVEL_##level, bits, 0, m, NR, 0, (void *)dense_##name##_##level},
#define SPARSE_ROWS_F32(level, types, m1, s1, m2, s2, m4, s4, m, s, lanes, kr, dense) SPARSE_ROWS(level, 32, f32, m1, m2, m4, m, lanes, kr)
#define SPARSE_ROWS_8BIT(level, types, m1, s1, m2, s2, m4, s4, m, s, lanes, kr, dense) SPARSE_ROWS(level, 8, 8bit, m1, m2, m4, m, lanes, kr)
const sparse_loops_row sparse_loops[] = {SPARSE_LEVELS(SPARSE_ROWS_F32, SPARSE_ROWS_8BIT)};
const int sparse_loops_count = sizeof(sparse_loops) / sizeof(sparse_loops[0]);
