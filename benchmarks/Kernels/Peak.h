#ifndef AJOUR_BENCHMARKS_KERNELS_PEAK_H
#define AJOUR_BENCHMARKS_KERNELS_PEAK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Register-only loops of n iterations. Multiply-adds an iteration: 16 * 16, 12 * 8, 16 * 64. */
void peak_f32_avx512(int64_t n);
void peak_f32_avx2(int64_t n);
void peak_8bit_avx512vnni(int64_t n);

#ifdef __cplusplus
}
#endif

#endif
