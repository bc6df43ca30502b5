/* The meaning of products of many rows with weights quantised in groups: the matrix-vector product of each row. */
#include "../Reference.h"

static float number_at(const uint8_t *numbers, int64_t i, int64_t flags) {
  return flags & AJOUR_GEMV_F32_SCALES ? ((const float *)numbers)[i]
                                       : ajour_reference_half(((const uint16_t *)numbers)[i]);
}

void ajour_reference_gemm_q(const void *tile, const uint8_t *rhs, double *acc, int64_t bits, int32_t zero, int64_t mr,
                            int64_t m, int64_t groups, int64_t parts, int64_t group, int64_t flags) {
  const int64_t run = flags >> AJOUR_GEMV_RUN_SHIFT, whole = parts * group;
  const int64_t groupBytes = ajour_gemv_group_bytes(bits, whole, flags), size = flags & AJOUR_GEMV_F32_SCALES ? 4 : 2;
  for (int64_t r = 0; r < m; ++r)
    for (int64_t row = 0; row < 16; ++row) {
      double total = 0;
      const int8_t *lhs = (const int8_t *)tile;
      for (int64_t g = 0; g < groups; ++g) {
        const uint8_t *start = rhs + (run ? g / run * (run * groupBytes + ajour_gemv_run_bytes(flags)) : 0);
        const uint8_t *values = start + (run ? g % run : g) * groupBytes, *codes = values + whole * 2 * bits;
        const uint8_t *numbers = run ? start + run * groupBytes : codes;
        double scale = number_at(numbers, row, flags);
        double offset = flags & AJOUR_GEMV_OFFSETS ? number_at(numbers + 16 * size, row, flags) : 0;
        if (run) {
          scale *= (int8_t)codes[row];
          offset *= flags & AJOUR_GEMV_OFFSETS ? (int8_t)codes[16 + row] : 0;
        }
        const int32_t zero_point = flags & AJOUR_GEMV_UNSIGNED      ? 0
                                   : flags & AJOUR_GEMV_ZERO_POINTS ? codes[16 * size + row]
                                                                    : zero;
        for (int64_t part = 0; part < parts; ++part, lhs += ajour_gemm_q_tile_bytes(mr, group)) {
          double sum = 0;
          for (int64_t p = 0; p < group; ++p) {
            int32_t w = ajour_reference_gemv_weight(values, bits, row, part * group + p, whole);
            /* 8-bit weights that are stored signed have no zero point. */
            if (bits == 8 && zero == 0 && !(flags & (AJOUR_GEMV_ZERO_POINTS | AJOUR_GEMV_UNSIGNED)))
              w = (int8_t)w;
            sum += lhs[r * group + p] * ((w - zero_point) * scale + offset);
          }
          total += ((const float *)(lhs + mr * group))[r] * sum;
        }
      }
      acc[r * 16 + row] = total;
    }
}
