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
#include "ajour/ABI/PanelOrder.h"

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

/* Sparse product of m rows of activations with lanes * share columns (nr = 4 * lanes): the `share` columns of a lane keep the
 * same inputs. In each of `steps` steps a lane takes kr elements of a window (ajour_gemm_sparse_window elements from
 * offsets[s] on), those whose numbers `picks` has:
 *   acc[r * nr + ajour_gemm_sparse_group(lane, lanes, share) * share + t] = sum over s < steps, q < kr of
 *     lhs[r * lda + offsets[s] + picks[(s * lanes + lane) * kr + q]] * rhs[((s * share + t) * lanes + lane) * kr + q]
 * (ajour/Encoding/PackSparse.h makes the lists). Whole windows are read, so lhs up to AJOUR_BUFFER_SLACK bytes past a row. */
typedef void ajour_gemm_sparse1_f32_fn(const float *lhs, int64_t lda, const uint16_t *offsets, const uint8_t *picks,
                                       const float *rhs, float *acc, int64_t m, int64_t steps);
typedef ajour_gemm_sparse1_f32_fn ajour_gemm_sparse2_f32_fn, ajour_gemm_sparse4_f32_fn;
/* The same for 8 bits (lhs of the row's type), exact. */
typedef void ajour_gemm_sparse1_8bit_fn(const void *lhs, int64_t lda, const uint16_t *offsets, const uint8_t *picks,
                                        const int8_t *rhs, int32_t *acc, int64_t m, int64_t steps);
typedef ajour_gemm_sparse1_8bit_fn ajour_gemm_sparse2_8bit_fn, ajour_gemm_sparse4_8bit_fn;

/* Elements that a step's window has, by a kernel's lanes. */
static inline int64_t ajour_gemm_sparse_window(int64_t lanes, ajour_element_type lhs) {
  if (lhs == AJOUR_F32)
    return lanes == 4 ? 8 : lanes;
  return lanes == 16 ? 64 : 16;
}
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
/* Winograd's convolution F(t x t, 3 x 3), t = 2 or 4, of stride 1: t x t outputs from (t + 2) x (t + 2) inputs by as many
 * products as inputs, summed over channels for each of these "points" on its own (A. Lavin and S. Gray, "Fast
 * algorithms for convolutional neural networks", 2016). Outputs = A^T ((G g G^T) . (B^T d B)) A with the matrices of
 * polynomial interpolation (S. Winograd, 1980) at 0, 1, -1 and infinity for t = 2, at 0, a, -a, b, -b and infinity
 * for t = 4. Points whose squares are 1/2 and 2 keep all coefficients near 1, and so rounding small. In order:
 *   B^T, t = 2:  1  0 -1  0    t = 4:  1   0  -5/2   0    1  0
 *                0  1  1  0            0 -2p   -2    p    1  0    p = a, then p = -a
 *                0 -1  1  0            0 -p/2 -1/2   p    1  0    p = b, then p = -b
 *                0 -1  0  1            0   1    0  -5/2   0  1
 *   A^T: row i holds the i-th powers of the points; infinity counts 1 in the last row.
 *   G: see ajour/Encoding/Winograd.h. */
#define AJOUR_WINOGRAD_A 0.70710678118654752440f
#define AJOUR_WINOGRAD_B 1.41421356237309504880f
/* B^T d B of the tiles [first, first + count) of an image [ih][iw][c], counted by rows of tiles_x. Tile (ty, tx) begins at
 * input pixel (ty * t - pad_top, tx * t - pad_left); 0 outside the image.
 *   dst[(i * (t + 2) + j) * point_stride + (tile - first) * ldd + ch] for ch < c; c is at least the row's nr. */
typedef void ajour_winograd_input_f32_fn(const float *src, int64_t ih, int64_t iw, int64_t c, int64_t first,
                                         int64_t count, int64_t tiles_x, int64_t pad_top, int64_t pad_left, float *dst,
                                         int64_t ldd, int64_t point_stride, int64_t t);
/* A^T m A of one tile: acc[(y * t + x) * nr + j] for j < nr, from src[point * point_stride + j]. */
typedef void ajour_winograd_output_f32_fn(const float *src, int64_t point_stride, float *acc, int64_t nr, int64_t t);

/* One block of 16 columns of stored weights as floats of a dense panel, which the gemm kernels read (kr = 1):
 *   dst[p * nr + j] for j < 8 and dst[p * nr + high + j - 8] for 8 <= j < 16; high = 8 puts them side by side.
 * A column has groups * group values. Bytes of a group (ajour/Encoding/PackStored.h makes them): its codes, four k of a
 * column together, 64 bytes for 16 columns; of fewer bits, 8 / bits such steps share 64 bytes, the first in the lowest
 * bits. Other numbers of bits than 1, 2, 4 and 8 are split into planes of 4, 2 and 1, the wide ones lowest and first, in
 * chunks of so many steps as the narrowest plane has in 64 bytes; `group` is a multiple of ajour_unpack_step(bits). Then 16
 * scales (f16 or f32), then 16 zero points: bytes, or real ones of the scales' type.
 *   value = (code - zero point - real zero point) * scale, each step rounded to f32; without ZERO_POINTS they are `zero`. */
#define AJOUR_UNPACK_F32_SCALES 1 /* else f16 */
#define AJOUR_UNPACK_ZERO_POINTS 2
#define AJOUR_UNPACK_REAL_ZEROS 4
#define AJOUR_UNPACK_SCALES 8 /* always set for integers */
#define AJOUR_UNPACK_SIGNED 16 /* codes of 8 bits are s8 */
typedef void ajour_unpack_int_f32_fn(const void *block, float *dst, int64_t nr, int64_t high, int64_t groups,
                                     int64_t group, int64_t bits, int64_t flags, int64_t zero);
/* The same for codes that are indices of a table of 2^bits floats; with SCALES the entries are multiplied by theirs. */
typedef void ajour_unpack_codebook_f32_fn(const void *block, const float *table, float *dst, int64_t nr, int64_t high,
                                          int64_t groups, int64_t group, int64_t bits, int64_t flags);
/* The same for [k][16] weights of f16. */
typedef void ajour_unpack_f16_f32_fn(const void *block, float *dst, int64_t nr, int64_t high, int64_t k);
/* Codes of one group without parameters as bytes, code - zero, of a panel [k / kr][nr][kr] with kr = 4 or 8; k is a multiple of
 * 8 and of ajour_unpack_step(bits). */
typedef void ajour_unpack_int_8bit_fn(const void *block, int8_t *dst, int64_t nr, int64_t high, int64_t kr, int64_t k,
                                      int64_t bits, int64_t zero);

/* What a number of codes of a column is a multiple of: 32 over the narrowest plane. */
static inline int64_t ajour_unpack_step(int64_t bits) { return 32 / (bits & -bits); }

/* Bytes of one group of 16 columns. */
static inline int64_t ajour_unpack_group_bytes(int64_t bits, int64_t group, int64_t flags) {
  const int64_t parameter = flags & AJOUR_UNPACK_F32_SCALES ? 64 : 32;
  return group * 2 * bits + (flags & AJOUR_UNPACK_SCALES ? parameter : 0) +
         (flags & AJOUR_UNPACK_ZERO_POINTS ? 16 : 0) + (flags & AJOUR_UNPACK_REAL_ZEROS ? parameter : 0);
}

/* Attention of m tokens and the `heads` query heads that share a key and value head. For token t and head h, over the rows j from
 * ranges[t * 3] to before ranges[t * 3 + 1] (both within the rows there are, and below 2^31; an empty range gives 0):
 *   score(j) = cap(scale * sum over d < size of query[t * query_stride + h * size + d] * key(j)[d])
 *              + slopes[h] * (j - ranges[t * 3 + 2]) + mask[t * mask_token + h * mask_head + j * mask_row]
 *   result[t * result_stride + h * width + d] = sum over j of e^score(j) * value(j)[d] / (sum over j of e^score(j) + e^sinks[h])
 * cap(x) = soft_cap * tanh(x / soft_cap), or x if soft_cap is 0. slopes, mask and sinks may be null; mask_row is 0 or 1. key(j) starts
 * at key + j * key_stride (bytes) and holds `size` elements of key_type: f32, f16, i8 (times key_scales[j * scale_stride]) or pairs of 4
 * bits in u8 (byte i: element i in its low half and i + size / 2 in its high half, each less 8, times the scale); value(j) likewise, `width`
 * elements. scratch: ajour_attention_scratch floats. No operand is read past its end; rows of the next
 * AJOUR_ATTENTION_BLOCK may be prefetched. A row that only some tokens attend to must be finite. */
#define AJOUR_ATTENTION_BLOCK 64
#define AJOUR_ATTENTION_PADDED(n) (((n) + 15) / 16 * 16)
typedef void ajour_attention_f32_fn(const float *query, int64_t query_stride, const void *key, int64_t key_stride,
                                    const float *key_scales, const void *value, int64_t value_stride, const float *value_scales,
                                    int64_t scale_stride, const int64_t *ranges, const float *mask, int64_t mask_token,
                                    int64_t mask_head, int64_t mask_row, const float *slopes, const float *sinks, float *result,
                                    int64_t result_stride, float *scratch, int64_t m, int64_t heads, int64_t size, int64_t width,
                                    int64_t key_type, int64_t value_type, float scale, float soft_cap);
static inline int64_t ajour_attention_scratch(int64_t rows, int64_t size, int64_t width) {
  return rows * (size + AJOUR_ATTENTION_PADDED(width) + 17) +
         (AJOUR_ATTENTION_PADDED(size) + AJOUR_ATTENTION_PADDED(width) + 16) * AJOUR_ATTENTION_BLOCK + 16;
}

/* dst[r * ldd + p] = src[r * lds + p] ^ flip for p < k, 0 for k <= p < k_padded, r < m. */
typedef void ajour_copy_rows_8bit_fn(const void *src, int64_t lds, void *dst, int64_t ldd, int64_t m, int64_t k,
                                     int64_t k_padded, int64_t flip);

/* data[i] = table[data[i] ^ flip] for i < n; the table has 256 bytes. */
typedef void ajour_lookup_8bit_fn(void *data, const void *table, int64_t n, int64_t flip);

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

/* Matrix-vector products: one block of AJOUR_GEMV_ROWS output rows for m <= 4 tokens (ajour/Encoding/PackGemv.h makes
 * the blocks). The rows of a block share `patterns` (1, 2 or 4) lists of kept columns, neighbouring rows first. What the
 * lists keep of the activations was put together before (compress_*): p-th kept column of pattern q at
 *   lhs[t * ldm + (p / kr * patterns + q) * kr + p % kr],     kr = 1 for f32, 4 for 8 bits,
 * so that kr values of all patterns lie together. A dense matrix is one pattern that keeps everything, and its lhs
 * the activations themselves.
 *   acc[t * 16 + row] = sum over p < k of lhs(t, row * patterns / 16, p) * weight(row, p)
 * Row `row` stands in lane row % (16 / patterns) * patterns + row / (16 / patterns) of rhs.
 * rhs: [k][16], f32 or f16. */
#define AJOUR_GEMV_ROWS 16
typedef void ajour_gemv_f32_fn(const float *lhs, int64_t ldm, const void *rhs, float *acc, int64_t m, int64_t patterns,
                               int64_t k);
typedef ajour_gemv_f32_fn ajour_gemv_f16_fn;

/* The same for 8 bits (lhs of the row's type), exact. k is a multiple of 4; rhs: s8 [k / 4][16][4]. */
typedef void ajour_gemv_8bit_fn(const void *lhs, int64_t ldm, const void *rhs, int32_t *acc, int64_t m,
                                int64_t patterns, int64_t k);

/* The same for weights quantised in groups of `group` kept columns, and an lhs quantised in the same groups
 * (lhs_scales[t * groups + g]; null: 1, for a scale that the caller applies):
 *   acc = sum over g of scale(row, g) * lhs_scale(t, g) * (sum over p in g of lhs * (weight - zero point))
 * with the inner sum exact. lhs_sums[t * groups + g] are the sums of a group of the lhs of a dense matrix; null: the
 * kernel adds them up. A group of rhs: the values, four consecutive k of a lane together, 64 bytes for 16 lanes; of
 * narrower ones, 8 / bits such steps share 64 bytes, the first in the lowest bits; those of 5 and 6 bits are a plane of their
 * low 4 bits and behind it one of the others; then 16 scales, then, if so flagged, 16 zero points of u8 or 16 offsets of the
 * scales' type. Values are stored as they are quantised, from 0 to 2^bits - 1; without zero points of
 * their own they have 2^(bits - 1), except that rows of rhs type I8 store 8-bit values signed and take no zero points, and that
 * with AJOUR_GEMV_UNSIGNED it is 0. An offset adds offset(row, g) * lhs_scale(t, g) * (sum over p in g of lhs).
 *
 * With a run of r > 0 groups in the flags, scales and offsets of a group are codes of s8 instead (16 and 16 bytes), and behind each
 * r-th group stand 16 scales (and 16 more for offsets) that its codes are multiplied by. lhs_scales are then those of runs,
 * lhs_scales[t * (groups / r) + g / r]. Sums of a run must fit 32 bits; there are no zero points.
 * `group` is a multiple of the row's kr. */
#define AJOUR_GEMV_F32_SCALES 1  /* else f16 */
#define AJOUR_GEMV_ZERO_POINTS 2
#define AJOUR_GEMV_OFFSETS 4
#define AJOUR_GEMV_UNSIGNED 8
#define AJOUR_GEMV_RUN_SHIFT 8
typedef void ajour_gemv_q8_fn(const int8_t *lhs, int64_t ldm, const float *lhs_scales, const int32_t *lhs_sums,
                              const void *rhs, float *acc, int64_t m, int64_t patterns, int64_t groups, int64_t group,
                              int64_t flags);
typedef ajour_gemv_q8_fn ajour_gemv_q2_fn;
typedef ajour_gemv_q8_fn ajour_gemv_q4_fn;
typedef ajour_gemv_q8_fn ajour_gemv_q5_fn;
typedef ajour_gemv_q8_fn ajour_gemv_q6_fn;

/* The same with an f32 lhs (kr = 1):
 *   acc = sum over g of scale(row, g) * (sum over p in g of lhs * (weight - zero point)) */
typedef void ajour_gemv_f32_q8_fn(const float *lhs, int64_t ldm, const void *rhs, float *acc, int64_t m,
                                  int64_t patterns, int64_t groups, int64_t group, int64_t flags);
typedef ajour_gemv_f32_q8_fn ajour_gemv_f32_q4_fn;

/* Bytes of one group of 16 rows, without the scales of its run. */
static inline int64_t ajour_gemv_group_bytes(int64_t bits, int64_t group, int64_t flags) {
  const int64_t scale = flags >> AJOUR_GEMV_RUN_SHIFT ? 1 : flags & AJOUR_GEMV_F32_SCALES ? 4 : 2;
  return group * AJOUR_GEMV_ROWS * bits / 8 + AJOUR_GEMV_ROWS * scale * (flags & AJOUR_GEMV_OFFSETS ? 2 : 1) +
         (flags & AJOUR_GEMV_ZERO_POINTS ? AJOUR_GEMV_ROWS : 0);
}

/* Bytes of the scales behind a run of groups; 0 without runs. */
static inline int64_t ajour_gemv_run_bytes(int64_t flags) {
  if (!(flags >> AJOUR_GEMV_RUN_SHIFT))
    return 0;
  return AJOUR_GEMV_ROWS * (flags & AJOUR_GEMV_F32_SCALES ? 4 : 2) * (flags & AJOUR_GEMV_OFFSETS ? 2 : 1);
}

/* The same for many rows of an lhs quantised in groups that divide those of the weights, `parts` in each: one block of
 * AJOUR_GEMV_ROWS outputs of a dense matrix for m <= mr rows of a tile (ajour_quantize_tile_8bit makes it). For each group of
 * the lhs a tile has s8 [mr][group], f32 [mr] scales, and 32 bits [mr]: where weights have zero points or offsets the negated sum
 * of the group as f32, else 0x4B400000 - zero * sum, with `zero` the zero point of all weights.
 *   acc[r * 16 + row] = sum over g < groups, part < parts of lhs_scale(r, g, part) *
 *                       (sum over p < group of lhs * ((weight - zero point) * scale(row, g) + offset(row, g)))
 * A run in the flags counts groups of the weights; lhs scales are those of groups of the tile all the same.
 * The inner sum is exact while its magnitude is below 2^22. Rows of acc from m to the next multiple of 4 are overwritten.
 * `group` is a multiple of the row's kr. */
typedef void ajour_gemm_q8_fn(const void *tile, const void *rhs, float *acc, int64_t m, int64_t groups, int64_t parts,
                              int64_t group, int64_t flags);
typedef ajour_gemm_q8_fn ajour_gemm_q2_fn;
typedef ajour_gemm_q8_fn ajour_gemm_q4_fn;
typedef ajour_gemm_q8_fn ajour_gemm_q5_fn;
typedef ajour_gemm_q8_fn ajour_gemm_q6_fn;

/* Bytes of one group of a tile of mr rows. */
static inline int64_t ajour_gemm_q_tile_bytes(int64_t mr, int64_t group) { return mr * (group + 8); }

/* Puts together the columns that a mask keeps (bit i % 8 of byte i / 8 for column i), group by group; `group` is a
 * multiple of 8. Group g begins at dst + g * stride, stride >= what is kept of any group; the rest of it becomes 0.
 * kept8: how many columns each byte of the mask keeps, if all keep as many, else 0. Bytes are xored with `flip`.
 * dst needs AJOUR_BUFFER_SLACK bytes after its end that may be written. */
typedef void ajour_compress_8bit_fn(const void *src, const uint8_t *mask, void *dst, int64_t groups, int64_t group,
                                    int64_t stride, int64_t kept8, int64_t flip);
typedef void ajour_compress_f32_fn(const float *src, const uint8_t *mask, float *dst, int64_t groups, int64_t group,
                                   int64_t stride, int64_t kept8);

/* The same for C4^n, of which every 4 columns keep `kept` = 1, 2 or 3; for all patterns of a block at once, interleaved as
 * gemv_8bit and gemv_q* read it. k is a multiple of 64. Codes of 64 columns: kept * patterns words of 4 bytes; byte e
 * of word w * patterns + q says of pattern q, in bits 2 i and 2 i + 1, which column of its group the (4 w + e)-th kept one of the
 * i-th 16 columns is. codes may be read AJOUR_BUFFER_SLACK bytes past their end, dst as above. */
typedef void ajour_compress_c4_8bit_fn(const void *src, const uint8_t *codes, void *dst, int64_t k, int64_t kept,
                                       int64_t patterns, int64_t flip);

/* dst[i * patterns + q] = src[q * lds + i] for i < n, words of 4 bytes; patterns = 2 or 4. */
typedef void ajour_interleave_words_fn(const void *src, int64_t lds, void *dst, int64_t patterns, int64_t n);

/* Symmetric quantisation to 8 bits: scales[g] = largest magnitude of group g / 127, dst = the nearest integer (ties to
 * even) to src * (127 / largest), from -127 to 127. Equal on all levels. */
typedef void ajour_quantize_groups_8bit_fn(const float *src, int8_t *dst, float *scales, int64_t groups, int64_t group);
/* sums[g] = sum of a group's bytes. */
typedef void ajour_sum_groups_8bit_fn(const int8_t *src, int32_t *sums, int64_t groups, int64_t group);

/* A tile of gemm_q* from m <= mr rows of k floats: each run of `rounded` of a row (the last may be shorter) becomes 8 bits as
 * by ajour_quantize_groups_8bit; with `half` the scale is rounded to f16. A run is cut into groups of `group`, which divides
 * it; the last run is filled up with 0. `zero` < 0: sums as f32. Rows from m to the next multiple of 4 become 0. */
typedef void ajour_quantize_tile_8bit_fn(const float *src, int64_t lds, void *tile, int64_t m, int64_t mr, int64_t k,
                                         int64_t rounded, int64_t group, int64_t zero, int64_t half);

/* A block of C4^n weights in groups (codes and values as compress_c4_8bit and gemv_q8, gemv_q4 read them, `kept` of 4 columns,
 * without zero points, offsets and runs) as one of gemv_q8 and gemm_q8 without structure: groups * (group * 16 bytes, scales). A weight
 * of value w - zero becomes a byte of value w - zero + to_zero, to_zero = 128 or 0; what is not kept has to_zero. `group` counts
 * columns and is a multiple of 4; bits = 4 or 8. */
typedef void ajour_expand_c4_8bit_fn(const uint8_t *codes, const void *values, void *dst, int64_t kept, int64_t patterns,
                                     int64_t groups, int64_t group, int64_t bits, int64_t flags, int64_t zero,
                                     int64_t to_zero);

typedef enum ajour_kernel_op {
  AJOUR_KERNEL_gemm_f32,
  AJOUR_KERNEL_gemm_8bit,
  AJOUR_KERNEL_dwconv_f32,
  AJOUR_KERNEL_dwconv_8bit,
  AJOUR_KERNEL_spmm_f32,
  AJOUR_KERNEL_spconv_f32,
  AJOUR_KERNEL_gemm_sparse1_f32, /* columns that keep their inputs alone, in pairs and in fours */
  AJOUR_KERNEL_gemm_sparse2_f32,
  AJOUR_KERNEL_gemm_sparse4_f32,
  AJOUR_KERNEL_gemm_sparse1_8bit,
  AJOUR_KERNEL_gemm_sparse2_8bit,
  AJOUR_KERNEL_gemm_sparse4_8bit,
  AJOUR_KERNEL_gemv_f32,
  AJOUR_KERNEL_gemv_f16,
  AJOUR_KERNEL_gemv_8bit,
  AJOUR_KERNEL_gemv_q8,
  AJOUR_KERNEL_gemv_q4,
  AJOUR_KERNEL_gemv_f32_q8,
  AJOUR_KERNEL_gemv_f32_q4,
  AJOUR_KERNEL_compress_f32,
  AJOUR_KERNEL_compress_8bit,
  AJOUR_KERNEL_compress_c4_8bit,
  AJOUR_KERNEL_winograd_input_f32,
  AJOUR_KERNEL_winograd_output_f32,
  AJOUR_KERNEL_unpack_int_f32,
  AJOUR_KERNEL_unpack_int_8bit,
  AJOUR_KERNEL_unpack_f16_f32,
  AJOUR_KERNEL_unpack_codebook_f32,
  AJOUR_KERNEL_gemv_q2,
  AJOUR_KERNEL_gemv_q5,
  AJOUR_KERNEL_gemv_q6,
  AJOUR_KERNEL_gemm_q2,
  AJOUR_KERNEL_gemm_q4,
  AJOUR_KERNEL_gemm_q5,
  AJOUR_KERNEL_gemm_q6,
  AJOUR_KERNEL_gemm_q8,
  AJOUR_KERNEL_attention_f32,
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
    AJOUR_GEMM_SPARSE_KERNELS_X86_64(AJOUR_ROW) AJOUR_GEMM_SPARSE_KERNELS_AARCH64(AJOUR_ROW)
    AJOUR_GEMV_KERNELS_X86_64(AJOUR_ROW) AJOUR_GEMV_KERNELS_AARCH64(AJOUR_ROW)
    AJOUR_WINOGRAD_KERNELS_X86_64(AJOUR_ROW) AJOUR_WINOGRAD_KERNELS_AARCH64(AJOUR_ROW)
    AJOUR_UNPACK_KERNELS_X86_64(AJOUR_ROW) AJOUR_UNPACK_KERNELS_AARCH64(AJOUR_ROW)
    AJOUR_ATTENTION_KERNELS_X86_64(AJOUR_ROW) AJOUR_ATTENTION_KERNELS_AARCH64(AJOUR_ROW)
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
#define AJOUR_GEMM_SPARSE_KERNELS_NATIVE AJOUR_GEMM_SPARSE_KERNELS_X86_64
#define AJOUR_GEMV_KERNELS_NATIVE AJOUR_GEMV_KERNELS_X86_64
#define AJOUR_WINOGRAD_KERNELS_NATIVE AJOUR_WINOGRAD_KERNELS_X86_64
#define AJOUR_UNPACK_KERNELS_NATIVE AJOUR_UNPACK_KERNELS_X86_64
#define AJOUR_ATTENTION_KERNELS_NATIVE AJOUR_ATTENTION_KERNELS_X86_64
#elif defined(__aarch64__)
#define AJOUR_CPU_KERNELS_NATIVE AJOUR_CPU_KERNELS_AARCH64
#define AJOUR_GEMM_SPARSE_KERNELS_NATIVE AJOUR_GEMM_SPARSE_KERNELS_AARCH64
#define AJOUR_GEMV_KERNELS_NATIVE AJOUR_GEMV_KERNELS_AARCH64
#define AJOUR_WINOGRAD_KERNELS_NATIVE AJOUR_WINOGRAD_KERNELS_AARCH64
#define AJOUR_UNPACK_KERNELS_NATIVE AJOUR_UNPACK_KERNELS_AARCH64
#define AJOUR_ATTENTION_KERNELS_NATIVE AJOUR_ATTENTION_KERNELS_AARCH64
#endif
#ifdef AJOUR_CPU_KERNELS_NATIVE
#define AJOUR_ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) ajour_##op##_fn symbol;
AJOUR_CPU_KERNELS_NATIVE(AJOUR_ROW)
AJOUR_GEMM_SPARSE_KERNELS_NATIVE(AJOUR_ROW)
AJOUR_GEMV_KERNELS_NATIVE(AJOUR_ROW)
AJOUR_WINOGRAD_KERNELS_NATIVE(AJOUR_ROW)
AJOUR_UNPACK_KERNELS_NATIVE(AJOUR_ROW)
AJOUR_ATTENTION_KERNELS_NATIVE(AJOUR_ROW)
#undef AJOUR_ROW
#endif
#define AJOUR_ROW(op, symbol) ajour_##op##_fn symbol;
AJOUR_COPY_KERNELS(AJOUR_ROW)
#undef AJOUR_ROW

#ifdef __cplusplus
}
#endif

#endif
