/// Weights to bytes and back.
///
/// The bytes say themselves what they are (docs/ENCODINGS.md). Functions return what is wrong, in lower case and naming the field, or
/// an empty string.
#ifndef AJOUR_ENCODING_CODEC_H
#define AJOUR_ENCODING_CODEC_H

#include <optional>

#include "ajour/Encoding/Encoding.h"

namespace ajour::encoding {

/// Writes a weight. Every element that is not zero must lie in a position that the structure keeps, and every element must be one that the
/// values can write: rounding is the caller's. F16 and BF16 round numbers, scales and entries to nearest even.
std::string encode(const Weight &weight, const Encoding &encoding, std::vector<uint8_t> &bytes);

struct DecodeOptions {
  /// Weights with more elements are refused: what an attacker could make us allocate.
  int64_t maxElements = int64_t(1) << 31;
  /// Nested: the level to decode, -1: the last.
  int64_t level = -1;
};

/// Reads bytes that nobody has checked. On failure `weight` and `encoding` are unspecified.
std::string decode(std::span<const uint8_t> bytes, Weight &weight, Encoding &encoding, const DecodeOptions &options = {});

/// Checks everything that decode checks without making the weight.
std::string verify(std::span<const uint8_t> bytes, const DecodeOptions &options = {});

/// What of a weight's bytes is what, in bits of the unpadded parts.
struct StoredSize {
  int64_t indexBits = 0;    ///< which positions exist
  int64_t kept = 0;         ///< elements stored, zeros that only fill up among them
  int64_t scaleBytes = 0;   ///< scales, zero points, codebooks
  int64_t headerBytes = 0;  ///< fixed part, parameters
  int64_t totalBytes = 0;   ///< of the whole
};

/// The size of a weight of this shape where it follows from shape and parameters alone (dense, c4n, nm); nullopt for the others.
std::optional<StoredSize> storedSize(const Encoding &encoding, const WeightShape &shape);

/// The size of a weight with this mask (1: not zero), without writing it; `error` says why it cannot be written.
std::optional<StoredSize> storedSize(const Encoding &encoding, const WeightShape &shape, std::span<const uint8_t> nonzero,
                                     std::string &error);

} // namespace ajour::encoding

#endif
