#include "SpmmLoops.h"

#if defined(__x86_64__)
#include "cpu/x86_64.c"
#define LEVELS(X, ...)                                                                                                 \
  X(avx2, ajour_spconv_f32_f32_f32_12x16x3_avx2, ajour_spmm_f32_f32_f32_8x8x1_avx2, ajour_gemm_f32_f32_f32_6x32x1_avx2, \
    __VA_ARGS__)                                                                                                       \
  X(avx512, ajour_spconv_f32_f32_f32_16x16x3_avx512, ajour_spmm_f32_f32_f32_8x16x1_avx512,                             \
    ajour_gemm_f32_f32_f32_14x32x1_avx512, __VA_ARGS__)
#define NR 32
#else
#include "cpu/aarch64.c"
#define LEVELS(X, ...)                                                                                      \
  X(neon, ajour_spconv_f32_f32_f32_16x16x3_neon, ajour_spmm_f32_f32_f32_8x4x1_neon, ajour_gemm_f32_f32_f32_8x8x1_neon, \
    __VA_ARGS__)
#define NR 8
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
#define GEMM(level, spconv, spmm, gemm, M)                                                                            \
  static AJOUR_TARGET_##level __attribute__((noinline)) void gemm_##M##_##level(                                      \
      const float *lhs, int64_t part_stride, int64_t lda, const float *rhs, const float *bias, float *dst,            \
      int64_t ldd, int64_t k, int64_t parts) {                                                                        \
    float acc[3][M * NR] __attribute__((aligned(64)));                                                                \
    AJOUR_ROLLED                                                                                                      \
    for (int64_t p = 0; p < parts; ++p)                                                                               \
      gemm(lhs + p * part_stride, lda, rhs + p * k * NR, acc[p], M, k);                                               \
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
