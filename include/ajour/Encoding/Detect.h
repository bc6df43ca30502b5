/// Which structure and values a weight has, read from its zeros and numbers.
#ifndef AJOUR_ENCODING_DETECT_H
#define AJOUR_ENCODING_DETECT_H

#include "ajour/Encoding/Codec.h"

namespace ajour::encoding {

/// A structure that was looked for.
struct Candidate {
  Structure structure;
  /// Share of the dense products that a kernel of this structure computes: the zeros that its blocks contain count.
  double executed = 1;
  /// Why it is not the one; empty for the one.
  std::string reason;
};

struct Detected {
  WeightShape shape;
  Encoding encoding;
  int64_t nonzero = 0;
  int64_t zeroRows = 0, zeroColumns = 0; ///< outputs and inputs that are not used at all
  /// Share of the dense products that the structure found computes.
  double executed = 1;
  StoredSize stored;
  int64_t denseBytes = 0; ///< dense with the same values
  /// What was looked for, the one that was found first.
  std::vector<Candidate> candidates;

  double density() const { return double(nonzero) / double(shape.elements()); }
  double zeros() const { return 1 - density(); }
};

/// The structure of a weight with a mask (1: not zero), the one that takes the fewest bytes with these values (unstructured: only
/// if a fifth fewer). A structure is found if at least 7 of 8 elements that it keeps are not zero, since quantisation rounds some kept ones
/// to zero, and half of them with C4^n. `nested` is never found: it is a matter of what a weight means.
Detected detectStructure(const WeightShape &shape, std::span<const uint8_t> nonzero, const Values &values);

/// The values of plain numbers: integers of few bits times a scale, a codebook of at most 256 entries (or 16 a row), f16 or bf16, else f32.
/// Each gives the numbers back exactly. `type`: they are known to be numbers of this type.
Values detectValues(const WeightShape &shape, std::span<const float> numbers, uint32_t type = AJOUR_F32);

/// The fewest bits that hold all codes, which are given with 8; granularity and type stay.
Values detectValues(std::span<const int8_t> codes, const Values &given);

/// The density that groups of `rows` rows execute: a column is computed for all of them if one of them keeps it.
double blockDensity(const WeightShape &shape, std::span<const uint8_t> nonzero, int64_t rows);

} // namespace ajour::encoding

#endif
