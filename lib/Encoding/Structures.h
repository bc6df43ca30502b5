/// The table of structures: what a row must be able to do. Values are written elsewhere (ValueStream.h); the two meet in the order of
/// the kept positions.
#ifndef AJOUR_LIB_ENCODING_STRUCTURES_H
#define AJOUR_LIB_ENCODING_STRUCTURES_H

#include <optional>

#include "Bits.h"
#include "ajour/Encoding/Encoding.h"

namespace ajour::encoding {

/// A parameter's name and place: one of the two members.
struct FieldRow {
  const char *name;
  int64_t Structure::*number = nullptr;
  std::vector<int64_t> Structure::*list = nullptr;
};

/// Which elements of a weight are not zero, and how large elements are (empty: alike).
struct Mask {
  const WeightShape &shape;
  std::span<const uint8_t> nonzero;
  std::span<const float> magnitude;

  bool at(int64_t row, int64_t column) const { return nonzero[row * shape.k + column] != 0; }
};

/// The elements that are stored, in the order of their values: row * k + column.
struct Positions {
  std::vector<uint32_t> kept;
  /// Nested: how many of them each level has.
  std::vector<int64_t> levelEnds;
  /// Reading: more than the values can hold.
  uint64_t limit = UINT64_MAX;
  /// Writing: only how many there are is wanted, and `kept` stays empty. Not for Dense and Nested.
  bool onlyCounted = false;
  int64_t counted = 0;

  int64_t count() const { return onlyCounted ? counted : static_cast<int64_t>(kept.size()); }
  bool fits(uint64_t more) const { return kept.size() + more <= limit; }
  void add(const WeightShape &shape, int64_t row, int64_t column) {
    if (onlyCounted)
      ++counted;
    else
      kept.push_back(static_cast<uint32_t>(row * shape.k + column));
  }
};

struct FixedSize {
  int64_t indexBits, kept;
};

struct StructureRow {
  StructureKind kind;
  const char *name;
  std::span<const FieldRow> fields;
  /// What is wrong with the parameters for a valid shape.
  std::string (*check)(const Structure &, const WeightShape &);
  /// Writes which positions are kept. Returns which element they leave out.
  std::string (*write)(const Structure &, const Mask &, BitWriter &, Positions &);
  /// Reads it; whether all bits are there is checked by the caller.
  std::string (*read)(const Structure &, const WeightShape &, BitReader &, Positions &);
  /// The size where it does not depend on the mask, else null.
  FixedSize (*fixedSize)(const Structure &, const WeightShape &);
  std::string (*describe)(const Structure &, const WeightShape &);
};

extern const StructureRow denseRow, c4nRow, nmRow, patternRow, blockPunchedRow, blockRow, nestedRow;

/// The row of a kind; null if there is none.
const StructureRow *structureRow(StructureKind kind);
std::span<const StructureRow *const> structureRows();

/// "row 7, column 12": where a structure does not hold.
std::string place(int64_t row, int64_t column);
inline std::string number(int64_t value) { return std::to_string(value); }

} // namespace ajour::encoding

#endif
