/// Blocks of weights quantised in groups, as kernels read them, with random contents.
#ifndef AJOUR_TESTS_KERNELS_QUANTIZEDBLOCKS_H
#define AJOUR_TESTS_KERNELS_QUANTIZEDBLOCKS_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "ajour/Kernels/Kernels.h"

namespace ajour::test {

/// Any values, codes and zero points; scales and offsets that are powers of two.
inline void fillGroups(uint8_t *rhs, int64_t bits, int64_t groups, int64_t group, int64_t flags, std::mt19937 &rng) {
  const int64_t bytes = ajour_gemv_group_bytes(bits, group, flags), run = flags >> AJOUR_GEMV_RUN_SHIFT;
  for (int64_t g = 0; g < groups; ++g, rhs += bytes) {
    for (int64_t i = 0; i < bytes; ++i)
      rhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 255 : 0);
    uint8_t *scales = rhs + group * 2 * bits;
    if (run) {
      // Small ones, so that sums are exact in f32.
      for (uint8_t *code = scales; code < rhs + bytes; ++code)
        *code = uint8_t(int(rng() % 4) - 2);
      if ((g + 1) % run != 0)
        continue;
      scales = rhs + bytes;
      rhs += ajour_gemv_run_bytes(flags);
    }
    for (int64_t j = 0; j < (flags & AJOUR_GEMV_OFFSETS ? 32 : 16); ++j) {
      const int exponent = rng() % 3;
      const float wide = std::ldexp(rng() % 2 ? 1.0f : -1.0f, -exponent);
      const uint16_t half = (wide < 0 ? 0x8000 : 0) | (15 - exponent) << 10;
      if (flags & AJOUR_GEMV_F32_SCALES)
        std::memcpy(scales + 4 * j, &wide, 4);
      else
        std::memcpy(scales + 2 * j, &half, 2);
    }
  }
}

} // namespace ajour::test

#endif
