/* The slow, readable meaning of every kernel; tests compare with it. */
#ifndef AJOUR_KERNELS_REFERENCE_H
#define AJOUR_KERNELS_REFERENCE_H

#include <stdint.h>

#include "ajour/Kernels/Kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

void ajour_reference_gemm_f32(const float *lhs, int64_t lda, const float *rhs, double *acc, int64_t m,
                              int64_t nr, int64_t k);
void ajour_reference_gemm_8bit(const void *lhs, int lhs_is_signed, int64_t lda, const int8_t *rhs,
                               int32_t *acc, int64_t m, int64_t nr, int64_t kr, int64_t k);
void ajour_reference_gemm_sparse_f32(const float *lhs, int64_t lda, const uint16_t *offsets, const uint8_t *picks,
                                     const float *rhs, double *acc, int64_t m, int64_t nr, int64_t kr, int64_t share,
                                     int64_t steps);
void ajour_reference_gemm_sparse_8bit(const void *lhs, int lhs_is_signed, int64_t lda, const uint16_t *offsets,
                                      const uint8_t *picks, const int8_t *rhs, int32_t *acc, int64_t m, int64_t nr,
                                      int64_t kr, int64_t share, int64_t steps);
void ajour_reference_dwconv_f32(const float *src, int64_t pixel_stride, int64_t row_stride, const float *weights,
                                double *acc, int64_t nr, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0,
                                int64_t ky1, int64_t ix0, int64_t iw, int64_t stride, int64_t dilation);
void ajour_reference_dwconv_8bit(const void *src, int lhs_is_signed, int64_t pixel_stride, int64_t row_stride,
                                 const int8_t *weights, int32_t *acc, int64_t nr, int64_t n, int64_t c, int64_t kh,
                                 int64_t kw, int64_t ky0, int64_t ky1, int64_t ix0, int64_t iw, int64_t stride,
                                 int64_t dilation, int64_t pad, int64_t flip);
void ajour_reference_spmm_f32(const float *src, int64_t scale, const uint16_t *inputs, const float *weights,
                              double *acc, int64_t lda, int64_t m, int64_t n, int64_t count, int64_t accumulate);
void ajour_reference_spconv_f32(const float *src, const uint16_t *inputs, const float *weights, double *acc,
                                int64_t rows, int64_t singles, int64_t pairs, int64_t triples, int64_t accumulate);

void ajour_reference_gemv_float(const float *lhs, int64_t ldm, const float *rhs, double *acc, int64_t m,
                                int64_t patterns, int64_t k);
void ajour_reference_gemv_8bit(const void *lhs, int lhs_is_signed, int64_t ldm, const int8_t *rhs, int32_t *acc,
                               int64_t m, int64_t patterns, int64_t k);
/* The stored value of (lane, p) among a group's values. */
int32_t ajour_reference_gemv_weight(const uint8_t *values, int64_t bits, int64_t lane, int64_t p, int64_t group);
/* `zero` is the zero point of a matrix without any of its own; 0 with 8 bits: values are signed. */
void ajour_reference_gemv_q(const int8_t *lhs, int64_t ldm, const float *lhs_scales, const uint8_t *rhs, double *acc,
                            int64_t bits, int32_t zero, int64_t m, int64_t patterns, int64_t groups, int64_t group,
                            int64_t flags);
void ajour_reference_gemv_f32_q(const float *lhs, int64_t ldm, const uint8_t *rhs, double *acc, int64_t bits,
                                int32_t zero, int64_t m, int64_t patterns, int64_t groups, int64_t group,
                                int64_t flags);
float ajour_reference_half(uint16_t half);
/* The tile is one of mr rows; `zero` as above. */
void ajour_reference_gemm_q(const void *tile, const uint8_t *rhs, double *acc, int64_t bits, int32_t zero, int64_t mr,
                            int64_t m, int64_t groups, int64_t parts, int64_t group, int64_t flags);
/* `size` bytes an element. */
void ajour_reference_compress(const void *src, const uint8_t *mask, void *dst, int64_t size, int64_t groups,
                              int64_t group, int64_t stride, int64_t flip);
void ajour_reference_compress_c4(const uint8_t *src, const uint8_t *codes, uint8_t *dst, int64_t k, int64_t kept,
                                 int64_t patterns, int64_t flip);
void ajour_reference_quantize(const float *src, int8_t *dst, float *scales, int64_t groups, int64_t group);
/* All points of one tile and one channel. */
void ajour_reference_winograd_input_f32(const float *src, int64_t ih, int64_t iw, int64_t c, int64_t tile_y,
                                        int64_t tile_x, int64_t pad_top, int64_t pad_left, int64_t channel, double *out,
                                        int64_t t);
void ajour_reference_winograd_output_f32(const float *src, int64_t point_stride, double *out, int64_t t);
/* The code of (column, p) among the codes of a group. */
int32_t ajour_reference_unpack_code(const uint8_t *values, int64_t bits, int64_t lane, int64_t p);
void ajour_reference_unpack_int_f32(const uint8_t *block, float *dst, int64_t nr, int64_t high, int64_t groups,
                                    int64_t group, int64_t bits, int64_t flags, int64_t zero);
void ajour_reference_unpack_int_8bit(const uint8_t *block, int8_t *dst, int64_t nr, int64_t high, int64_t kr, int64_t k,
                                     int64_t bits, int64_t zero);
void ajour_reference_unpack_f16_f32(const uint16_t *block, float *dst, int64_t nr, int64_t high, int64_t k);
void ajour_reference_unpack_codebook_f32(const uint8_t *block, const float *table, float *dst, int64_t nr, int64_t high,
                                         int64_t groups, int64_t group, int64_t bits, int64_t flags);

/* One token and head; adds to result, which holds zeros. */
void ajour_reference_attention(const float *query, const void *key, int64_t key_stride, const float *key_scales, const void *value,
                               int64_t value_stride, const float *value_scales, int64_t scale_stride, const int64_t *range,
                               const float *mask, int64_t mask_row, const float *slope, const float *sink, double *result, int64_t size,
                               int64_t width, int64_t key_type, int64_t value_type, double scale, double soft_cap);

#ifdef __cplusplus
}
#endif

#endif
