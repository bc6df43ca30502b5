/* The meaning of the unpacking kernels. */
#include "../Reference.h"

/* The code of (lane, p): steps of four k, in chunks of 8 over the narrowest plane; planes of 8, 4, 2 and 1 bits, wide
 * ones first, of which 8 / bits steps share 64 bytes. */
int32_t ajour_reference_unpack_code(const uint8_t *values, int64_t bits, int64_t lane, int64_t p) {
  const int64_t steps = 8 / (bits & -bits), step = p / 4 % steps;
  const uint8_t *chunk = values + p / (4 * steps) * steps * 8 * bits;
  int32_t code = 0, shift = 0;
  for (int64_t plane = 8; plane > 0; plane /= 2)
    if (bits & plane) {
      const int64_t sharing = 8 / plane;
      const uint8_t byte = chunk[step / sharing * 64 + lane * 4 + p % 4];
      code |= (byte >> step % sharing * plane & ((1 << plane) - 1)) << shift;
      shift += (int32_t)plane;
      chunk += steps / sharing * 64;
    }
  return code;
}

static float parameter(const uint8_t *row, int64_t lane, int64_t flags) {
  return flags & AJOUR_UNPACK_F32_SCALES ? ((const float *)row)[lane] : ajour_reference_half(((const uint16_t *)row)[lane]);
}

/* Where lane `lane` of row p of the panel stands. */
static int64_t place(int64_t p, int64_t lane, int64_t nr, int64_t high) {
  return p * nr + (lane < 8 ? lane : lane - 8 + high);
}

void ajour_reference_unpack_int_f32(const uint8_t *block, float *dst, int64_t nr, int64_t high, int64_t groups,
                                    int64_t group, int64_t bits, int64_t flags, int64_t zero) {
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t *values = block + g * ajour_unpack_group_bytes(bits, group, flags);
    const uint8_t *scales = values + group * 2 * bits, *zeros = scales + (flags & AJOUR_UNPACK_F32_SCALES ? 64 : 32);
    for (int64_t p = 0; p < group; ++p)
      for (int64_t lane = 0; lane < 16; ++lane) {
        int32_t code = ajour_reference_unpack_code(values, bits, lane, p);
        if (flags & AJOUR_UNPACK_SIGNED)
          code = (int8_t)code;
        float x = (float)(code - (flags & AJOUR_UNPACK_ZERO_POINTS ? zeros[lane] : (int32_t)zero));
        if (flags & AJOUR_UNPACK_REAL_ZEROS)
          x -= parameter(zeros, lane, flags);
        dst[place(g * group + p, lane, nr, high)] = x * parameter(scales, lane, flags);
      }
  }
}

void ajour_reference_unpack_int_8bit(const uint8_t *block, int8_t *dst, int64_t nr, int64_t high, int64_t kr, int64_t k,
                                     int64_t bits, int64_t zero) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t lane = 0; lane < 16; ++lane)
      dst[place(p / kr, lane, nr, high) * kr + p % kr] =
          (int8_t)(ajour_reference_unpack_code(block, bits, lane, p) - zero);
}

void ajour_reference_unpack_f16_f32(const uint16_t *block, float *dst, int64_t nr, int64_t high, int64_t k) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t lane = 0; lane < 16; ++lane)
      dst[place(p, lane, nr, high)] = ajour_reference_half(block[p * 16 + lane]);
}

void ajour_reference_unpack_codebook_f32(const uint8_t *block, const float *table, float *dst, int64_t nr, int64_t high,
                                         int64_t groups, int64_t group, int64_t bits, int64_t flags) {
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t *values = block + g * ajour_unpack_group_bytes(bits, group, flags);
    for (int64_t p = 0; p < group; ++p)
      for (int64_t lane = 0; lane < 16; ++lane) {
        float x = table[ajour_reference_unpack_code(values, bits, lane, p)];
        if (flags & AJOUR_UNPACK_SCALES)
          x *= parameter(values + group * 2 * bits, lane, flags);
        dst[place(g * group + p, lane, nr, high)] = x;
      }
  }
}
