/* The table of what GemvBench measures. */
#include "Variants.h"

#if defined(__x86_64__)
#include "cpu/x86_64.c"
#define COMPRESS_F32_avx512vnni ajour_compress_f32_avx512
#define COMPRESS_F32_avx2 ajour_compress_f32_avx2
#define COMPRESS_8_avx512vnni ajour_compress_8bit_avx2
#define COMPRESS_8_avx2 ajour_compress_8bit_avx2
#define C4_8_avx512vnni ajour_compress_c4_8bit_avx512
#define C4_8_avx2 ajour_compress_c4_8bit_avx2
#define FLOAT_avx512vnni(KIND) ajour_gemv_f32_##KIND##_f32_4x16x1_avx512
#define FLOAT_avx2(KIND) ajour_gemv_f32_##KIND##_f32_4x16x1_avx2
#define MIXED_avx512vnni(BITS, KR) ajour_gemv_f32_q##BITS##_f32_4x16x##KR##_avx512
#define MIXED_avx2(BITS, KR) ajour_gemv_f32_q##BITS##_f32_4x16x##KR##_avx2
#define EXACT(LEVEL) ajour_gemv_u8_i8_i32_4x16x4_##LEVEL
#define EACH_LEVEL(X) X(avx2) X(avx512vnni)
#else
#include "cpu/aarch64.c"
#define COMPRESS_F32_neon ajour_compress_f32_neon
#define COMPRESS_F32_dotprod ajour_compress_f32_neon
#define COMPRESS_8_neon ajour_compress_8bit_neon
#define COMPRESS_8_dotprod ajour_compress_8bit_neon
#define C4_8_neon ajour_compress_c4_8bit_neon
#define C4_8_dotprod ajour_compress_c4_8bit_neon
#define FLOAT_neon(KIND) ajour_gemv_f32_##KIND##_f32_4x16x1_neon
#define FLOAT_dotprod(KIND) ajour_gemv_f32_##KIND##_f32_4x16x1_neon
#define MIXED_neon(BITS, KR) ajour_gemv_f32_q##BITS##_f32_4x16x##KR##_neon
#define MIXED_dotprod(BITS, KR) MIXED_neon(BITS, KR)
#define EXACT(LEVEL) ajour_gemv_i8_i8_i32_4x16x4_##LEVEL
#define EACH_LEVEL(X) X(neon) X(dotprod)
#endif

#define K GEMV_DEPTH
#define RUN(NAME, LEVEL) \
  static AJOUR_TARGET_##LEVEL __attribute__((noinline)) void NAME##_##LEVEL(gemv_activations *a, const uint8_t *block, float *acc)
#define ALIGNED(BYTES) (((BYTES) + 63) / 64 * 64)
#define MASKS(P) ((P) * (K / 8))
#define CODES(N, R) (K / 64 * (4 - (N)) * (16 / (R)) * 4)

/* Dense, quantised in groups of G. */
#define DENSE_Q(LEVEL, BITS, KR, G)                                                                                 \
  RUN(dense_q##BITS##_g##G, LEVEL) {                                                                                \
    ajour_gemv_i8_q##BITS##_f32_4x16x##KR##_##LEVEL(a->q, 0, a->scales, a->sums, block, acc, 1, 1, K / G, G, 0); \
  }
/* Codes of 8 bits for the scales of groups of G, with scales for 256 columns: K-quants. */
#define K_FLAGS(G, MORE) ((256 / (G)) << AJOUR_GEMV_RUN_SHIFT | (MORE))
#define DENSE_K(LEVEL, BITS, KR, G, MORE)                                                                           \
  RUN(dense_q##BITS##_k, LEVEL) {                                                                                   \
    ajour_gemv_i8_q##BITS##_f32_4x16x##KR##_##LEVEL(a->q, 0, a->scales, a->sums, block, acc, 1, 1, K / G, G,        \
                                                    K_FLAGS(G, MORE));                                              \
  }
/* The same with f32 activations. */
#define MIXED_Q(LEVEL, BITS, KR, G)                                                                                 \
  RUN(dense_f32q##BITS##_g##G, LEVEL) {                                                                             \
    MIXED_##LEVEL(BITS, KR)(a->x, 0, block, acc, 1, 1, K / G, G, 0);                                                \
  }
/* 4 - N of 4 columns kept, R rows to a pattern: N = 1, 2, 3 keep 6, 4, 2 of 8. */
#define C4_Q(LEVEL, BITS, KR, G, N, R)                                                                              \
  RUN(c4n##N##_r##R##_q##BITS##_g##G, LEVEL) {                                                                      \
    C4_8_##LEVEL(a->q, block, a->kept_q, K, 4 - N, 16 / R, 0);                                                      \
    ajour_gemv_i8_q##BITS##_f32_4x16x##KR##_##LEVEL(a->kept_q, 0, a->scales, 0, block + CODES(N, R), acc, 1,        \
                                                    16 / R, K / G, G * (4 - N) / 4, 0);                             \
  }
#define DENSE_F(LEVEL, KIND) \
  RUN(dense_##KIND, LEVEL) { FLOAT_##LEVEL(KIND)(a->x, 0, block, acc, 1, 1, K); }
#define C4_F(LEVEL, KIND, N, R)                                                                                     \
  RUN(c4n##N##_r##R##_##KIND, LEVEL) {                                                                              \
    enum { P = 16 / R };                                                                                            \
    AJOUR_UNROLL                                                                                                    \
    for (int p = 0; p < P; ++p)                                                                                     \
      COMPRESS_F32_##LEVEL(a->x, block + p * (K / 8), a->kept_x + p * (K + 64), 1, K, K * (4 - N) / 4, 8 - 2 * N);  \
    ajour_interleave_words(a->kept_x, K + 64, a->mixed_x, P, K * (4 - N) / 4);                                      \
    FLOAT_##LEVEL(KIND)(a->mixed_x, 0, block + MASKS(P), acc, 1, P, K * (4 - N) / 4);                               \
  }
#define DENSE_8(LEVEL) \
  RUN(dense_int8, LEVEL) { EXACT(LEVEL)(a->q, 0, block, (int32_t *)acc, 1, 1, K); }
#define C4_8(LEVEL, N, R)                                                                                           \
  RUN(c4n##N##_r##R##_int8, LEVEL) {                                                                                \
    C4_8_##LEVEL(a->q, block, a->kept_q, K, 4 - N, 16 / R, 0x80);                                                   \
    EXACT(LEVEL)(a->kept_q, 0, block + CODES(N, R), (int32_t *)acc, 1, 16 / R, K * (4 - N) / 4);                    \
  }

/* A tenth of the columns kept, by R rows together. */
#define TENTH ((K + 9) / 10 + 7) / 8 * 8
#define COLUMNS_F(LEVEL, KIND)                                                                                      \
  RUN(block90_r16_##KIND, LEVEL) {                                                                                  \
    COMPRESS_F32_##LEVEL(a->x, block, a->kept_x, 1, K, TENTH, 0);                                                   \
    FLOAT_##LEVEL(KIND)(a->kept_x, 0, block + MASKS(1), acc, 1, 1, TENTH);                                          \
  }
#define COLUMNS_8(LEVEL)                                                                                            \
  RUN(block90_r16_int8, LEVEL) {                                                                                    \
    COMPRESS_8_##LEVEL(a->q, block, a->kept_q, 1, K, TENTH, 0, 0x80);                                               \
    EXACT(LEVEL)(a->kept_q, 0, block + MASKS(1), (int32_t *)acc, 1, 1, TENTH);                                      \
  }

#define ALL_C4(X, LEVEL, ...) X(LEVEL, __VA_ARGS__, 1, 8) X(LEVEL, __VA_ARGS__, 2, 8) X(LEVEL, __VA_ARGS__, 3, 8)
#define DEFINE(LEVEL)                                                                                               \
  DENSE_F(LEVEL, f32) ALL_C4(C4_F, LEVEL, f32) DENSE_F(LEVEL, f16) ALL_C4(C4_F, LEVEL, f16)                         \
  COLUMNS_F(LEVEL, f32) COLUMNS_F(LEVEL, f16) COLUMNS_8(LEVEL)                                                      \
  DENSE_8(LEVEL) C4_8(LEVEL, 1, 8) C4_8(LEVEL, 2, 8) C4_8(LEVEL, 3, 8)                                              \
  DENSE_Q(LEVEL, 8, 4, 32) ALL_C4(C4_Q, LEVEL, 8, 4, 32)                                                            \
  MIXED_Q(LEVEL, 8, 4, 32) MIXED_Q(LEVEL, 4, 8, 32) MIXED_Q(LEVEL, 4, 8, 128)                                       \
  DENSE_Q(LEVEL, 5, 32, 32)                                                                                         \
  DENSE_K(LEVEL, 2, 16, 16, AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED)                                               \
  DENSE_K(LEVEL, 4, 8, 32, AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED)                                                \
  DENSE_K(LEVEL, 5, 32, 32, AJOUR_GEMV_OFFSETS | AJOUR_GEMV_UNSIGNED) DENSE_K(LEVEL, 6, 16, 16, 0)                  \
  DENSE_Q(LEVEL, 4, 8, 32) ALL_C4(C4_Q, LEVEL, 4, 8, 32) C4_Q(LEVEL, 4, 8, 32, 2, 16)                               \
  DENSE_Q(LEVEL, 4, 8, 128) ALL_C4(C4_Q, LEVEL, 4, 8, 128) C4_Q(LEVEL, 4, 8, 128, 2, 16)
EACH_LEVEL(DEFINE)

/* Reads everything, as fast as the machine gives it. */
typedef int64_t read_lanes __attribute__((vector_size(64)));
#define READ(LEVEL)                                                                              \
  static AJOUR_TARGET_##LEVEL void read_##LEVEL(const uint8_t *p, int64_t bytes, int64_t *sum) { \
    read_lanes c[4] = {{0}, {0}, {0}, {0}};                                                      \
    AJOUR_ROLLED                                                                                 \
    for (int64_t i = 0; i < bytes; i += 256)                                                     \
      AJOUR_UNROLL                                                                               \
      for (int j = 0; j < 4; ++j) {                                                              \
        __builtin_prefetch(p + i + 64 * j + 1024, 0, AJOUR_GEMV_LOCALITY);                       \
        c[j] += *(const read_lanes *)(p + i + 64 * j);                                           \
      }                                                                                          \
    c[0] += c[1] + c[2] + c[3];                                                                  \
    for (int j = 0; j < 8; ++j)                                                                  \
      *sum += c[0][j];                                                                           \
  }
EACH_LEVEL(READ)
#define READ_AT(LEVEL) {AJOUR_LEVEL_##LEVEL, read_##LEVEL},
const gemv_read gemv_reads[] = {EACH_LEVEL(READ_AT)};

#define ROW(NAME, DENSE, LEVEL, MASK_BYTES, KEPT8, BYTES) \
  {#NAME, #DENSE, AJOUR_LEVEL_##LEVEL, MASK_BYTES, KEPT8, ALIGNED(BYTES), NAME##_##LEVEL},
#define ROW_DENSE_Q(LEVEL, BITS, KR, G) \
  ROW(dense_q##BITS##_g##G, dense_q##BITS##_g##G, LEVEL, 0, 8, K * 2 * BITS + K / G * 32)
#define ROW_K(LEVEL, BITS, G, PARTS) \
  ROW(dense_q##BITS##_k, dense_q##BITS##_k, LEVEL, 0, 8, K * 2 * BITS + K / G * 16 * PARTS + K / 256 * 32 * PARTS)
#define ROW_MIXED_Q(LEVEL, BITS, KR, G) \
  ROW(dense_f32q##BITS##_g##G, dense_f32q##BITS##_g##G, LEVEL, 0, 8, K * 2 * BITS + K / G * 32)
#define ROW_C4_Q(LEVEL, BITS, KR, G, N, R)                                              \
  ROW(c4n##N##_r##R##_q##BITS##_g##G, dense_q##BITS##_g##G, LEVEL, 0, 8 - 2 * N,        \
      CODES(N, R) + K * (4 - N) / 2 * BITS + K / G * 32)
#define SIZE_f32 4
#define SIZE_f16 2
#define ROW_DENSE_F(LEVEL, KIND) ROW(dense_##KIND, dense_##KIND, LEVEL, 0, 8, K * 16 * SIZE_##KIND)
#define ROW_C4_F(LEVEL, KIND, N, R)                                                     \
  ROW(c4n##N##_r##R##_##KIND, dense_##KIND, LEVEL, MASKS(16 / R), 8 - 2 * N,            \
      MASKS(16 / R) + K * 4 * (4 - N) * SIZE_##KIND)
#define ROW_DENSE_8(LEVEL) ROW(dense_int8, dense_int8, LEVEL, 0, 8, K * 16)
#define ROW_C4_8(LEVEL, N, R) \
  ROW(c4n##N##_r##R##_int8, dense_int8, LEVEL, 0, 8 - 2 * N, CODES(N, R) + K * 4 * (4 - N))
#define ROW_COLUMNS(LEVEL, KIND, SIZE) \
  ROW(block90_r16_##KIND, dense_##KIND, LEVEL, MASKS(1), 0, MASKS(1) + TENTH * 16 * SIZE)
#define ROWS(LEVEL)                                                                                                 \
  ROW_DENSE_F(LEVEL, f32) ALL_C4(ROW_C4_F, LEVEL, f32) ROW_DENSE_F(LEVEL, f16) ALL_C4(ROW_C4_F, LEVEL, f16)         \
  ROW_COLUMNS(LEVEL, f32, 4) ROW_COLUMNS(LEVEL, f16, 2) ROW_COLUMNS(LEVEL, int8, 1)                                 \
  ROW_DENSE_8(LEVEL) ROW_C4_8(LEVEL, 1, 8) ROW_C4_8(LEVEL, 2, 8) ROW_C4_8(LEVEL, 3, 8)                              \
  ROW_DENSE_Q(LEVEL, 8, 4, 32) ALL_C4(ROW_C4_Q, LEVEL, 8, 4, 32)                                                    \
  ROW_MIXED_Q(LEVEL, 8, 4, 32) ROW_MIXED_Q(LEVEL, 4, 8, 32) ROW_MIXED_Q(LEVEL, 4, 8, 128)                           \
  ROW_DENSE_Q(LEVEL, 5, 32, 32)                                                                                     \
  ROW_K(LEVEL, 2, 16, 2) ROW_K(LEVEL, 4, 32, 2) ROW_K(LEVEL, 5, 32, 2) ROW_K(LEVEL, 6, 16, 1)                       \
  ROW_DENSE_Q(LEVEL, 4, 8, 32) ALL_C4(ROW_C4_Q, LEVEL, 4, 8, 32) ROW_C4_Q(LEVEL, 4, 8, 32, 2, 16)                   \
  ROW_DENSE_Q(LEVEL, 4, 8, 128) ALL_C4(ROW_C4_Q, LEVEL, 4, 8, 128) ROW_C4_Q(LEVEL, 4, 8, 128, 2, 16)
const gemv_variant gemv_variants[] = {EACH_LEVEL(ROWS)};
const int gemv_variant_count = sizeof(gemv_variants) / sizeof(gemv_variants[0]);
