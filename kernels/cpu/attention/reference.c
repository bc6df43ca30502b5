#include "../Kernel.h"
#include "../Reference.h"

#include <math.h>

static double number_of(int64_t type, const void *head, int64_t i, int64_t size, double scale) {
  if (type == AJOUR_F32)
    return ((const float *)head)[i];
  if (type == AJOUR_F16)
    return (double)((const _Float16 *)head)[i];
  if (type == AJOUR_I8)
    return ((const int8_t *)head)[i] * scale;
  const int byte = ((const uint8_t *)head)[i % (size / 2)];
  return ((i < size / 2 ? byte & 15 : byte >> 4) - 8) * scale;
}

void ajour_reference_attention(const float *query, const void *key, int64_t key_stride, const float *key_scales, const void *value,
                               int64_t value_stride, const float *value_scales, int64_t scale_stride, const int64_t *range,
                               const float *mask, int64_t mask_row, const float *slope, const float *sink, double *result, int64_t size,
                               int64_t width, int64_t key_type, int64_t value_type, double scale, double soft_cap) {
  /* Two passes: the largest score, then sums relative to it. */
  double top = sink ? *sink : -INFINITY, sum = 0;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) {
      if (top == -INFINITY)
        return;
      sum = sink ? exp(*sink - top) : 0;
    }
    for (int64_t j = range[0]; j < range[1]; ++j) {
      const char *head = (const char *)key + j * key_stride;
      double score = 0;
      for (int64_t d = 0; d < size; ++d)
        score += query[d] * number_of(key_type, head, d, size, key_scales ? key_scales[j * scale_stride] : 1);
      score *= scale;
      if (soft_cap != 0)
        score = soft_cap * tanh(score / soft_cap);
      if (slope)
        score += *slope * (double)(j - range[2]);
      if (mask)
        score += mask[j * mask_row];
      if (pass == 0) {
        top = score > top ? score : top;
        continue;
      }
      const double weight = exp(score - top);
      sum += weight;
      for (int64_t d = 0; d < width; ++d)
        result[d] += weight * number_of(value_type, (const char *)value + j * value_stride, d, width,
                                        value_scales ? value_scales[j * scale_stride] : 1);
    }
  }
  for (int64_t d = 0; d < width; ++d)
    result[d] /= sum;
}
