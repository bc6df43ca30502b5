/* Row copies that prepare the lhs of a GEMM in scratch. Written on generic vectors, so that one source
 * serves every ISA: the compiler of the caller splits 64 bytes into what the target has. */
#include "../Kernel.h"

typedef uint8_t ajour_bytes64 __attribute__((vector_size(64), aligned(1)));
typedef uint8_t ajour_bytes32 __attribute__((vector_size(32), aligned(1)));
typedef uint8_t ajour_bytes16 __attribute__((vector_size(16), aligned(1)));
typedef uint8_t ajour_bytes8 __attribute__((vector_size(8), aligned(1)));
typedef uint32_t ajour_bytes4 __attribute__((aligned(1), may_alias));

/* Copies or fills exactly n bytes, each xored with `flip`: whole vectors, then one that overlaps them.
 * `from` is an expression of the vector type and the offset. */
#define AJOUR_SPAN(VALUE64, VALUE32, VALUE16, VALUE8, VALUE4, VALUE1)          \
  if (n >= 64) {                                                               \
    int64_t i = 0;                                                             \
    AJOUR_ROLLED                                                               \
    for (; i + 64 <= n; i += 64)                                               \
      *(ajour_bytes64 *)(dst + i) = VALUE64(i);                                \
    if (i < n)                                                                 \
      *(ajour_bytes64 *)(dst + n - 64) = VALUE64(n - 64);                      \
  } else if (n >= 32) {                                                        \
    *(ajour_bytes32 *)dst = VALUE32(0);                                        \
    *(ajour_bytes32 *)(dst + n - 32) = VALUE32(n - 32);                        \
  } else if (n >= 16) {                                                        \
    *(ajour_bytes16 *)dst = VALUE16(0);                                        \
    *(ajour_bytes16 *)(dst + n - 16) = VALUE16(n - 16);                        \
  } else if (n >= 8) {                                                         \
    *(ajour_bytes8 *)dst = VALUE8(0);                                          \
    *(ajour_bytes8 *)(dst + n - 8) = VALUE8(n - 8);                            \
  } else if (n >= 4) {                                                         \
    *(ajour_bytes4 *)dst = VALUE4(0);                                          \
    *(ajour_bytes4 *)(dst + n - 4) = VALUE4(n - 4);                            \
  } else {                                                                     \
    if (n > 0)                                                                 \
      dst[0] = VALUE1(0);                                                      \
    if (n > 1)                                                                 \
      dst[1] = VALUE1(1);                                                      \
    if (n > 2)                                                                 \
      dst[2] = VALUE1(2);                                                      \
  }

AJOUR_HELPER void ajour_copy_bytes(uint8_t *restrict dst, const uint8_t *restrict src, int64_t n, uint8_t flip) {
#define AJOUR_AT64(o) (*(const ajour_bytes64 *)(src + (o)) ^ flip)
#define AJOUR_AT32(o) (*(const ajour_bytes32 *)(src + (o)) ^ flip)
#define AJOUR_AT16(o) (*(const ajour_bytes16 *)(src + (o)) ^ flip)
#define AJOUR_AT8(o) (*(const ajour_bytes8 *)(src + (o)) ^ flip)
#define AJOUR_AT4(o) (*(const ajour_bytes4 *)(src + (o)) ^ flip * 0x01010101u)
#define AJOUR_AT1(o) (uint8_t)(src[o] ^ flip)
  AJOUR_SPAN(AJOUR_AT64, AJOUR_AT32, AJOUR_AT16, AJOUR_AT8, AJOUR_AT4, AJOUR_AT1)
#undef AJOUR_AT64
#undef AJOUR_AT32
#undef AJOUR_AT16
#undef AJOUR_AT8
#undef AJOUR_AT4
#undef AJOUR_AT1
}

AJOUR_HELPER void ajour_fill_bytes(uint8_t *restrict dst, int64_t n, uint8_t value) {
#define AJOUR_AT64(o) ((ajour_bytes64){0} | value)
#define AJOUR_AT32(o) ((ajour_bytes32){0} | value)
#define AJOUR_AT16(o) ((ajour_bytes16){0} | value)
#define AJOUR_AT8(o) ((ajour_bytes8){0} | value)
#define AJOUR_AT4(o) (value * 0x01010101u)
#define AJOUR_AT1(o) value
  AJOUR_SPAN(AJOUR_AT64, AJOUR_AT32, AJOUR_AT16, AJOUR_AT8, AJOUR_AT4, AJOUR_AT1)
#undef AJOUR_AT64
#undef AJOUR_AT32
#undef AJOUR_AT16
#undef AJOUR_AT8
#undef AJOUR_AT4
#undef AJOUR_AT1
}
#undef AJOUR_SPAN

AJOUR_KERNEL void ajour_copy_rows_8bit(const void *restrict src, int64_t lds, void *restrict dst, int64_t ldd,
                                       int64_t m, int64_t k, int64_t k_padded, int64_t flip) {
  AJOUR_ROLLED
  for (int64_t r = 0; r < m; ++r) {
    uint8_t *row = (uint8_t *)dst + r * ldd;
    ajour_copy_bytes(row, (const uint8_t *)src + r * lds, k, (uint8_t)flip);
    ajour_fill_bytes(row + k, k_padded - k, 0);
  }
}

/* A table of bytes does not fit a register: loads beat the shuffles that vectors would take. */
AJOUR_KERNEL void ajour_lookup_8bit(void *data, const void *restrict table, int64_t n, int64_t flip) {
  uint8_t *bytes = (uint8_t *)data;
  _Pragma("clang loop unroll_count(8) vectorize(disable)")
  for (int64_t i = 0; i < n; ++i)
    bytes[i] = ((const uint8_t *)table)[bytes[i] ^ (uint8_t)flip];
}

/* im2col in bytes: `c` bytes of a pixel are copied, pixels are `ldp` bytes apart. Only a zero `fill` makes
 * sense for elements of more than one byte. */
AJOUR_HELPER void ajour_im2col_bytes(const uint8_t *restrict src, int64_t ih, int64_t iw, int64_t c, int64_t ldp,
                                     uint8_t *restrict dst, int64_t ldd, int64_t first, int64_t m, int64_t ow,
                                     int64_t kh, int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y,
                                     int64_t dilation_x, int64_t pad_top, int64_t pad_left, int64_t k_padded,
                                     uint8_t fill, uint8_t flip) {
  int64_t oy = first / ow, ox = first % ow;
  const int64_t tail = k_padded - kh * kw * c;
  const uint8_t hole = fill ^ flip;
  AJOUR_ROLLED
  for (int64_t r = 0; r < m; ++r) {
    const int64_t x0 = ox * stride_x - pad_left;
    uint8_t *out = dst + r * ldd;
    const int whole = x0 >= 0 && x0 + (kw - 1) * dilation_x < iw;
    AJOUR_ROLLED
    for (int64_t ky = 0; ky < kh; ++ky, out += kw * c) {
      const int64_t y = oy * stride_y - pad_top + ky * dilation_y;
      if (y < 0 || y >= ih) {
        ajour_fill_bytes(out, kw * c, hole);
        continue;
      }
      const uint8_t *row = src + y * iw * ldp;
      if (whole && dilation_x == 1 && c == ldp) {
        ajour_copy_bytes(out, row + x0 * ldp, kw * c, flip);
        continue;
      }
      AJOUR_ROLLED
      for (int64_t kx = 0; kx < kw; ++kx) {
        const int64_t x = x0 + kx * dilation_x;
        if (x < 0 || x >= iw)
          ajour_fill_bytes(out + kx * c, c, hole);
        else
          ajour_copy_bytes(out + kx * c, row + x * ldp, c, flip);
      }
    }
    if (tail > 0)
      ajour_fill_bytes(out, tail, 0);
    if (++ox == ow) {
      ox = 0;
      ++oy;
    }
  }
}

AJOUR_KERNEL void ajour_im2col_8bit(const void *restrict src, int64_t ih, int64_t iw, int64_t c, int64_t ldp,
                                    void *restrict dst, int64_t ldd, int64_t first, int64_t m, int64_t ow, int64_t kh,
                                    int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y,
                                    int64_t dilation_x, int64_t pad_top, int64_t pad_left, int64_t k_padded,
                                    int64_t fill, int64_t flip) {
  ajour_im2col_bytes((const uint8_t *)src, ih, iw, c, ldp, (uint8_t *)dst, ldd, first, m, ow, kh, kw, stride_y,
                     stride_x, dilation_y, dilation_x, pad_top, pad_left, k_padded, (uint8_t)fill, (uint8_t)flip);
}

AJOUR_KERNEL void ajour_im2col_f32(const float *restrict src, int64_t ih, int64_t iw, int64_t c, int64_t ldp,
                                   float *restrict dst, int64_t ldd, int64_t first, int64_t m, int64_t ow, int64_t kh,
                                   int64_t kw, int64_t stride_y, int64_t stride_x, int64_t dilation_y,
                                   int64_t dilation_x, int64_t pad_top, int64_t pad_left, int64_t k_padded) {
  ajour_im2col_bytes((const uint8_t *)src, ih, iw, 4 * c, 4 * ldp, (uint8_t *)dst, 4 * ldd, first, m, ow, kh, kw,
                     stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left, 4 * k_padded, 0, 0);
}
