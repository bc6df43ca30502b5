/* The meaning of the sparse f32 convolution of one filter: runs of 1, 2 and 3 taps whose input rows follow each other,
 * with sums in double precision. */
#include "../Reference.h"

void ajour_reference_spconv_f32(const float *src, const uint16_t *inputs, const float *weights, double *acc,
                                int64_t rows, int64_t singles, int64_t pairs, int64_t triples, int64_t accumulate) {
  const int64_t counts[3] = {singles, pairs, triples};
  if (!accumulate)
    for (int64_t i = 0; i < rows * 16; ++i)
      acc[i] = 0;
  for (int64_t taps = 1; taps <= 3; ++taps)
    for (int64_t run = 0; run < counts[taps - 1]; ++run, ++inputs, weights += taps)
      for (int64_t k = 0; k < taps; ++k)
        for (int64_t i = 0; i < rows * 16; ++i)
          acc[i] += (double)weights[k] * src[(*inputs + k) * 16 + i];
}
