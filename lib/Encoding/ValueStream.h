/// How the values of kept elements are written, for any structure.
#ifndef AJOUR_LIB_ENCODING_VALUESTREAM_H
#define AJOUR_LIB_ENCODING_VALUESTREAM_H

#include "Structures.h"

namespace ajour::encoding {

/// What is wrong with the parameters of values.
std::string checkValues(const Values &values, const WeightShape &shape);

/// What is wrong with the sizes of a weight's parts.
std::string checkParts(const Weight &weight, const Values &values);

/// The scale, zero point or codebook that serves an element (row * k + column).
int64_t unitOf(const Values &values, const WeightShape &shape, uint32_t position);

/// Bytes of scales, zero points and codebooks, each part rounded up to a byte.
int64_t scaleBytes(const Values &values, const WeightShape &shape);

/// Writes scales, zero points and codebooks.
std::string writeScales(const Weight &weight, const Values &values, std::vector<uint8_t> &bytes);
/// Reads scaleBytes() bytes of them.
std::string readScales(std::span<const uint8_t> bytes, const Values &values, Weight &weight);

/// Writes the elements in the positions' order. Elements elsewhere are zero: the structure's row has seen to it.
std::string writeElements(const Weight &weight, const Values &values, const Positions &positions, std::vector<uint8_t> &bytes);
/// Reads the first `count` of them into a weight whose scales have been read; the others become zero. Without `store` it only checks.
std::string readElements(std::span<const uint8_t> bytes, const Values &values, const Positions &positions, int64_t count,
                         bool store, Weight &weight);

} // namespace ajour::encoding

#endif
