#include "ajour/Encoding/Half.h"

#include <cmath>
#include <cstring>

namespace ajour::encoding {

float halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 0) { // Zero and subnormals: fraction * 2^-24.
    float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  uint32_t word = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

uint16_t floatToHalf(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  uint16_t sign = static_cast<uint16_t>(word >> 16 & 0x8000);
  if (std::isnan(value))
    return sign | 0x7e00;
  float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) // Half-way between the largest half and the next power of two.
    return sign | 0x7c00;
  if (magnitude < 0x1p-14f) // Subnormal: a multiple of 2^-24; rint rounds to nearest even.
    return sign | static_cast<uint16_t>(std::rint(std::ldexp(magnitude, 24)));
  uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  bits += 0xfff + (bits >> 13 & 1);
  return sign | static_cast<uint16_t>((bits >> 13) - (112 << 10));
}

uint16_t floatToBFloat(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  if (std::isnan(value))
    return static_cast<uint16_t>(word >> 16 | 0x40);
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

float bfloatToFloat(uint16_t bits) {
  uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

} // namespace ajour::encoding
