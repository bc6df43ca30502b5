/* The meaning of the matrix-vector kernels on one block of 16 rows, with sums in double precision or exact. */
#include "../Reference.h"

/* Where the p-th kept column of a row's pattern stands in an lhs of units of kr values. */
static int64_t place(int64_t row, int64_t patterns, int64_t p, int64_t kr) {
  return (p / kr * patterns + row * patterns / 16) * kr + p % kr;
}

static int64_t lane_of(int64_t row, int64_t patterns) {
  const int64_t share = 16 / patterns;
  return row % share * patterns + row / share;
}

void ajour_reference_gemv_float(const float *lhs, int64_t ldm, const float *rhs, double *acc, int64_t m,
                                int64_t patterns, int64_t k) {
  for (int64_t t = 0; t < m; ++t)
    for (int64_t row = 0; row < 16; ++row) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += (double)lhs[t * ldm + place(row, patterns, p, 1)] * rhs[p * 16 + lane_of(row, patterns)];
      acc[t * 16 + row] = sum;
    }
}

void ajour_reference_gemv_8bit(const void *lhs, int lhs_is_signed, int64_t ldm, const int8_t *rhs, int32_t *acc,
                               int64_t m, int64_t patterns, int64_t k) {
  for (int64_t t = 0; t < m; ++t)
    for (int64_t row = 0; row < 16; ++row) {
      uint32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        int64_t at = t * ldm + place(row, patterns, p, 4);
        int32_t a = lhs_is_signed ? ((const int8_t *)lhs)[at] : ((const uint8_t *)lhs)[at];
        sum += (uint32_t)(a * rhs[p / 4 * 64 + lane_of(row, patterns) * 4 + p % 4]);
      }
      acc[t * 16 + row] = (int32_t)sum;
    }
}

/* Four k of a lane lie together, 64 bytes for 16 lanes; of narrower weights, 8 / bits such steps share the 64 bytes,
 * the first in the lowest bits. */
int32_t ajour_reference_gemv_weight(const uint8_t *values, int64_t bits, int64_t lane, int64_t p, int64_t group) {
  /* Of 5 and 6 bits: a plane of the low 4, then one of the others. */
  if (bits == 5 || bits == 6)
    return ajour_reference_gemv_weight(values, 4, lane, p, group) |
           ajour_reference_gemv_weight(values + group * 8, bits - 4, lane, p, group) << 4;
  const int64_t steps = 8 / bits, step = p / 4;
  const uint8_t byte = values[step / steps * 64 + lane * 4 + p % 4];
  return byte >> step % steps * bits & ((1 << bits) - 1);
}

float ajour_reference_half(uint16_t half) {
  int32_t exponent = half >> 10 & 31, fraction = half & 1023;
  float value = exponent == 0 ? (float)fraction * 0x1p-24f : (float)(1024 + fraction) * 0x1p-10f;
  for (; exponent > 15; --exponent)
    value *= 2;
  for (; exponent > 0 && exponent < 15; ++exponent)
    value /= 2;
  return half >> 15 ? -value : value;
}

static float number_at(const uint8_t *numbers, int64_t i, int wide) {
  return wide ? ((const float *)numbers)[i] : ajour_reference_half(((const uint16_t *)numbers)[i]);
}

static double product_of_groups(const int8_t *lhs, const float *lhs_real, const float *lhs_scales, const uint8_t *rhs,
                                int64_t bits, int32_t zero, int64_t row, int64_t patterns, int64_t groups,
                                int64_t group, int64_t flags) {
  const int wide = (flags & AJOUR_GEMV_F32_SCALES) != 0;
  const int64_t lane = lane_of(row, patterns);
  double result = 0;
  const int64_t size = wide ? 4 : 2, run = flags >> AJOUR_GEMV_RUN_SHIFT;
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t *run_start = rhs;
    if (run)
      run_start += g / run * (run * ajour_gemv_group_bytes(bits, group, flags) + ajour_gemv_run_bytes(flags));
    const uint8_t *values = run_start + (run ? g % run : g) * ajour_gemv_group_bytes(bits, group, flags);
    const uint8_t *codes = values + group * 16 * bits / 8;
    const uint8_t *scales = run ? run_start + run * ajour_gemv_group_bytes(bits, group, flags) : codes;
    const int32_t zero_point = flags & AJOUR_GEMV_UNSIGNED      ? 0
                               : flags & AJOUR_GEMV_ZERO_POINTS ? scales[16 * size + lane]
                                                                : zero;
    double scale = number_at(scales, lane, wide), offset = 0;
    if (flags & AJOUR_GEMV_OFFSETS)
      offset = number_at(scales + 16 * size, lane, wide);
    if (run) {
      scale *= (int8_t)codes[lane];
      offset *= (int8_t)codes[16 + lane];
    }
    double sum = 0, lhs_sum = 0;
    for (int64_t p = 0; p < group; ++p) {
      int32_t w = ajour_reference_gemv_weight(values, bits, lane, p, group);
      /* 8-bit weights that are stored signed have no zero point. */
      if (bits == 8 && zero == 0 && !(flags & (AJOUR_GEMV_ZERO_POINTS | AJOUR_GEMV_UNSIGNED)))
        w = (int8_t)w;
      const double x = lhs ? (double)lhs[place(row, patterns, g * group + p, 4)]
                           : (double)lhs_real[place(row, patterns, g * group + p, 1)];
      sum += (w - zero_point) * x;
      lhs_sum += x;
    }
    result += (sum * scale + lhs_sum * offset) * (lhs_scales ? lhs_scales[run ? g / run : g] : 1.0f);
  }
  return result;
}

void ajour_reference_gemv_q(const int8_t *lhs, int64_t ldm, const float *lhs_scales, const uint8_t *rhs, double *acc,
                            int64_t bits, int32_t zero, int64_t m, int64_t patterns, int64_t groups, int64_t group,
                            int64_t flags) {
  const int64_t run = flags >> AJOUR_GEMV_RUN_SHIFT ? flags >> AJOUR_GEMV_RUN_SHIFT : 1;
  for (int64_t t = 0; t < m; ++t)
    for (int64_t row = 0; row < 16; ++row)
      acc[t * 16 + row] = product_of_groups(lhs + t * ldm, 0, lhs_scales ? lhs_scales + t * (groups / run) : 0, rhs, bits, zero,
                                            row, patterns, groups, group, flags);
}

void ajour_reference_gemv_f32_q(const float *lhs, int64_t ldm, const uint8_t *rhs, double *acc, int64_t bits,
                                int32_t zero, int64_t m, int64_t patterns, int64_t groups, int64_t group,
                                int64_t flags) {
  for (int64_t t = 0; t < m; ++t)
    for (int64_t row = 0; row < 16; ++row)
      acc[t * 16 + row] =
          product_of_groups(0, lhs + t * ldm, 0, rhs, bits, zero, row, patterns, groups, group, flags);
}

void ajour_reference_compress(const void *src, const uint8_t *mask, void *dst, int64_t size, int64_t groups,
                              int64_t group, int64_t stride, int64_t flip) {
  for (int64_t g = 0; g < groups; ++g) {
    uint8_t *out = (uint8_t *)dst + g * stride * size;
    for (int64_t i = 0; i < group; ++i)
      if (mask[(g * group + i) / 8] >> (g * group + i) % 8 & 1)
        for (int64_t b = 0; b < size; ++b)
          *out++ = ((const uint8_t *)src)[(g * group + i) * size + b] ^ flip;
    while (out < (uint8_t *)dst + (g + 1) * stride * size)
      *out++ = 0;
  }
}

void ajour_reference_compress_c4(const uint8_t *src, const uint8_t *codes, uint8_t *dst, int64_t k, int64_t kept,
                                 int64_t patterns, int64_t flip) {
  for (int64_t chunk = 0; chunk < k / 64; ++chunk)
    for (int64_t quarter = 0; quarter < 4; ++quarter)
      for (int64_t w = 0; w < kept; ++w)
        for (int64_t q = 0; q < patterns; ++q)
          for (int64_t e = 0; e < 4; ++e) {
            const int64_t code = codes[((chunk * kept + w) * patterns + q) * 4 + e] >> 2 * quarter & 3;
            const int64_t column = chunk * 64 + quarter * 16 + (4 * w + e) / kept * 4 + code;
            dst[(((chunk * 4 + quarter) * kept + w) * patterns + q) * 4 + e] = src[column] ^ flip;
          }
}

void ajour_reference_quantize(const float *src, int8_t *dst, float *scales, int64_t groups, int64_t group) {
  for (int64_t g = 0; g < groups; ++g) {
    float largest = 0;
    for (int64_t i = 0; i < group; ++i) {
      float a = src[g * group + i] < 0 ? -src[g * group + i] : src[g * group + i];
      largest = a > largest ? a : largest;
    }
    scales[g] = largest / 127.0f;
    for (int64_t i = 0; i < group; ++i) {
      float x = largest < 0x1p-120f ? 0 : src[g * group + i] * (127.0f / largest);
      /* To the nearest, ties to even. */
      int32_t low = (int32_t)x - (x < (float)(int32_t)x);
      float rest = x - (float)low;
      dst[g * group + i] = (int8_t)(low + (rest > 0.5f || (rest == 0.5f && low % 2 != 0)));
    }
  }
}
