/// Sixteen-bit floating point numbers as bits, for hosts without a type for them.
#ifndef AJOUR_ENCODING_HALF_H
#define AJOUR_ENCODING_HALF_H

#include <cstdint>

namespace ajour::encoding {

/// IEEE binary16. Rounds to nearest even; what is too large becomes infinity, NaN stays NaN.
uint16_t floatToHalf(float value);
float halfToFloat(uint16_t bits);

/// bfloat16: the upper half of a binary32, rounded to nearest even.
uint16_t floatToBFloat(float value);
float bfloatToFloat(uint16_t bits);

} // namespace ajour::encoding

#endif
