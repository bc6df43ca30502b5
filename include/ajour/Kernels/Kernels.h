/* Signatures of the CPU micro-kernels and their table as data.
 *
 * A kernel computes one tile of accumulators and nothing else; bias, scales, activations and the store are
 * the generated caller's. Strides and counts are in elements. Pointers need only the alignment of their
 * element; panels are best aligned to 64 bytes. lhs, src and rhs may be read up to AJOUR_BUFFER_SLACK bytes
 * past their last element; nothing is written outside acc or dst.
 */
#ifndef AJOUR_KERNELS_KERNELS_H
#define AJOUR_KERNELS_KERNELS_H

#include <stdint.h>

#include "ajour/ABI/CpuFeatures.h"
#include "ajour/ABI/ElementTypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* acc[r * nr + j] = sum over p < k of lhs[r * lda + p] * rhs[p * nr + j], for r < m <= mr, j < nr. */
typedef void ajour_gemm_f32_fn(const float *lhs, int64_t lda, const float *rhs, float *acc, int64_t m, int64_t k);

/* The same for 8-bit operands (lhs of the row's type), exact: rhs is a panel [k / kr][nr][kr] and k a
 * multiple of kr. Bytes of lhs between the true and the padded k may hold anything: their weights are 0. */
typedef void ajour_gemm_8bit_fn(const void *lhs, int64_t lda, const int8_t *rhs, int32_t *acc, int64_t m, int64_t k);

/* Depthwise convolution, multiplier 1, NHWC: n neighbouring pixels of one output row, c <= nr channels.
 *   acc[p * nr + ch] = sum over ky in [ky0, ky1), kx < kw with 0 <= x < iw of
 *                      src[(ky - ky0) * row_stride + x * pixel_stride + ch] * weight(ky, kx, ch)
 *   where x = ix0 + p * stride + kx * dilation.
 * src is column 0 of the input row that tap ky0 reads; row_stride leads from tap to tap (dilation
 * included); [ky0, ky1), not empty, are the taps whose row exists; ix0 = ox * stride - pad_left may be negative.
 * weights: [kh * kw][nr]. Columns of acc from c on are unspecified. */
typedef void ajour_dwconv_f32_fn(const float *src, int64_t pixel_stride, int64_t row_stride, const float *weights,
                                 float *acc, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0, int64_t ky1,
                                 int64_t ix0, int64_t iw, int64_t stride, int64_t dilation);

/* The same for 8 bits, exact. Every source byte is xored with `flip` (0 or 0x80, to give it the row's sign);
 * a tap outside the image reads `pad`, in the flipped domain. So with pad = the flipped zero point, the sum
 * over (x - zero point) * w is acc - pad * (sum of all weights of the channel), also at borders.
 * weights: [ceil(kh / 4)][kw][nr][4], absent kernel rows zero. */
typedef void ajour_dwconv_8bit_fn(const void *src, int64_t pixel_stride, int64_t row_stride, const int8_t *weights,
                                  int32_t *acc, int64_t n, int64_t c, int64_t kh, int64_t kw, int64_t ky0,
                                  int64_t ky1, int64_t ix0, int64_t iw, int64_t stride, int64_t dilation, int64_t pad,
                                  int64_t flip);

/* Sparse product over pixels. m filters (1, 2, 4 or 8) share `count` entries, each the pixels of an input and one weight
 * for each filter:
 *   acc[r * lda + i] = (accumulate ? acc[r * lda + i] : 0) + sum over e < count of weights[e * m + r] *
 *                     src[inputs[e] * scale + i]
 * for i < n. Elements of acc between n and the next multiple of nr may be overwritten. */
typedef void ajour_spmm_f32_fn(const float *src, int64_t scale, const uint16_t *inputs, const float *weights, float *acc,
                               int64_t lda, int64_t m, int64_t n, int64_t count, int64_t accumulate);

/* Sparse convolution of one filter over `rows` rows of 16 pixels, [rows][16]. An entry is a run of taps that read
 * successive rows of src: singles first, then pairs, then triples, each with as many weights:
 *   acc[i] = (accumulate ? acc[i] : 0) + sum over runs, k < taps of the run, of weight(run, k) *
 *          src[(input(run) + k) * 16 + i]
 * for i < rows * 16. */
typedef void ajour_spconv_f32_fn(const float *src, const uint16_t *inputs, const float *weights, float *acc,
                                 int64_t rows, int64_t singles, int64_t pairs, int64_t triples, int64_t accumulate);

/* Lays channels of a channel-major image out for spconv and spmm: for each channel and window column, planes of rows of
 * 16 lanes, [channels][kw][phases][plane_rows][16], zero outside the image. A row holds 16 / width segments of `width`
 * (4, 8 or 16) output pixels from column ox on; the segment s of row r serves the output row oy + s * rows + r. Window
 * row ky lies at phase ky * dilation_y % stride_y, ky * dilation_y / stride_y rows further down; there are
 * min(stride_y, (kh - 1) * dilation_y + 1) phases. rows + (kh - 1) * dilation_y / stride_y <= plane_rows rows of each plane are
 * written. May write up to 32 elements past the last of them. */
typedef void ajour_expand_f32_fn(const float *src, int64_t channel_stride, int64_t channels, int64_t ih, int64_t iw,
                                 float *dst, int64_t oy, int64_t ox, int64_t rows, int64_t plane_rows, int64_t width,
                                 int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y,
                                 int64_t dilation_x, int64_t pad_top, int64_t pad_left);

/* dst[r * ldd + p] = src[r * lds + p] ^ flip for p < k, 0 for k <= p < k_padded, r < m. */
typedef void ajour_copy_rows_8bit_fn(const void *src, int64_t lds, void *dst, int64_t ldd, int64_t m, int64_t k,
                                     int64_t k_padded, int64_t flip);

/* im2col of m consecutive output pixels, from pixel `first` = oy * ow + ox of one image [ih][iw][ldp], of which
 * c channels are taken: dst[r * ldd + (ky * kw + kx) * c + ch] = src[(y * iw + x) * ldp + ch] ^ flip, or
 * fill ^ flip outside the image; 0 from kh * kw * c to k_padded. src points at the first channel taken. */
typedef void ajour_im2col_8bit_fn(const void *src, int64_t ih, int64_t iw, int64_t c, int64_t ldp, void *dst,
                                  int64_t ldd, int64_t first, int64_t m, int64_t ow, int64_t kh, int64_t kw,
                                  int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x,
                                  int64_t pad_top, int64_t pad_left, int64_t k_padded, int64_t fill, int64_t flip);
/* The same for f32, with 0 outside the image. */
typedef void ajour_im2col_f32_fn(const float *src, int64_t ih, int64_t iw, int64_t c, int64_t ldp, float *dst,
                                 int64_t ldd, int64_t first, int64_t m, int64_t ow, int64_t kh, int64_t kw,
                                 int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x,
                                 int64_t pad_top, int64_t pad_left, int64_t k_padded);

typedef enum ajour_kernel_op {
  AJOUR_KERNEL_gemm_f32,
  AJOUR_KERNEL_gemm_8bit,
  AJOUR_KERNEL_dwconv_f32,
  AJOUR_KERNEL_dwconv_8bit,
  AJOUR_KERNEL_spmm_f32,
  AJOUR_KERNEL_spconv_f32,
} ajour_kernel_op;

#include "../../../kernels/cpu/Kernels.def"

/* A row of the table; columns as in Kernels.def. */
typedef struct ajour_kernel_row {
  ajour_kernel_op op;
  const char *symbol;
  ajour_cpu_level level;
  int32_t mr, nr, kr;
  ajour_element_type lhs, rhs, acc;
} ajour_kernel_row;

static const ajour_kernel_row ajour_kernel_table[] = {
#define AJOUR_ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) \
  {AJOUR_KERNEL_##op, #symbol, AJOUR_LEVEL_##level, mr, nr, kr, AJOUR_##lhs, AJOUR_##rhs, AJOUR_##acc},
    AJOUR_CPU_KERNELS_X86_64(AJOUR_ROW) AJOUR_CPU_KERNELS_AARCH64(AJOUR_ROW)
#undef AJOUR_ROW
};

static inline int32_t ajour_kernel_count(void) {
  return (int32_t)(sizeof(ajour_kernel_table) / sizeof(ajour_kernel_table[0]));
}

/* The best kernel of an op at a level: the last row of the level's architecture that it may use; null if
 * there is none. */
static inline const ajour_kernel_row *ajour_find_kernel(ajour_kernel_op op, ajour_cpu_level level) {
  const ajour_kernel_row *best = 0;
  const int aarch64 = level >= AJOUR_LEVEL_neon;
  for (int32_t i = 0; i < ajour_kernel_count(); ++i) {
    const ajour_kernel_row *row = &ajour_kernel_table[i];
    if (row->op == op && row->level <= level && (row->level >= AJOUR_LEVEL_neon) == aarch64)
      best = row;
  }
  return best;
}

/* The kernels of the architecture that this is compiled for, as linked from AjourKernels. */
#if defined(__x86_64__)
#define AJOUR_CPU_KERNELS_NATIVE AJOUR_CPU_KERNELS_X86_64
#elif defined(__aarch64__)
#define AJOUR_CPU_KERNELS_NATIVE AJOUR_CPU_KERNELS_AARCH64
#endif
#ifdef AJOUR_CPU_KERNELS_NATIVE
#define AJOUR_ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) ajour_##op##_fn symbol;
AJOUR_CPU_KERNELS_NATIVE(AJOUR_ROW)
#undef AJOUR_ROW
#endif
#define AJOUR_ROW(op, symbol) ajour_##op##_fn symbol;
AJOUR_COPY_KERNELS(AJOUR_ROW)
#undef AJOUR_ROW

#ifdef __cplusplus
}
#endif

#endif
