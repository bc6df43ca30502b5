/// How a weight is stored: a structure (which positions exist) times values (how each is written). Any pair is legal.
///
/// A weight is a matrix [n][k] of n outputs and k inputs, row-major. The filter of a convolution [O][kh][kw][I] is the matrix with
/// n = O and k = kh * kw * I and keeps its window sizes, which two of the structures need. docs/ENCODINGS.md has the layouts.
#ifndef AJOUR_ENCODING_ENCODING_H
#define AJOUR_ENCODING_ENCODING_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ajour/ABI/ElementTypes.h"

namespace ajour::encoding {

struct WeightShape {
  int64_t n = 0, k = 0;
  int64_t kh = 1, kw = 1; ///< window; k is a multiple of kh * kw

  int64_t window() const { return kh * kw; }
  int64_t channels() const { return k / (kh * kw); }
  int64_t elements() const { return n * k; }
  bool operator==(const WeightShape &) const = default;
};

/// Ids are written into files: append only.
enum class StructureKind : uint8_t {
  Dense = 0,        ///< every position
  C4n = 1,          ///< of every 4 consecutive inputs, n are pruned
  NM = 2,           ///< of every m consecutive inputs, at most n are kept
  Pattern = 3,      ///< a filter's kernels are removed or keep one of a few patterns of window positions
  BlockPunched = 4, ///< blocks of filters x channels keep the same window positions
  Block = 5,        ///< groups of rows keep the same columns
  Nested = 6,       ///< levels of Block, each a prefix of the next
};

/// A structure with its parameters; those of other kinds are left alone.
struct Structure {
  StructureKind kind = StructureKind::Dense;

  /// C4n: weights pruned of each 4 (0 to 4), one number for all columns or one for each `columnBlock` columns (the last block may
  /// be cut short). columnBlock is a multiple of 4; 0: one number for all.
  std::vector<int64_t> pruned;
  int64_t columnBlock = 0;
  /// C4n: consecutive rows that have one pattern (1, 4, 8 or 16).
  int64_t share = 1;

  /// NM: `kept` of each `of` (2 to 32).
  int64_t kept = 0, of = 0;

  /// Pattern: the kept window positions of each pattern, bit ky * kw + kx. At most 64 patterns, windows of at most 32 positions.
  std::vector<int64_t> patterns;

  /// BlockPunched: the size of a block.
  int64_t blockFilters = 0, blockChannels = 0;

  /// Block, Nested: rows of a group. Block: 0 means that rows with the same columns are put together, whatever their number.
  int64_t rows = 0;

  /// Nested: the columns that each level keeps of those that are kept at all, in thousandths, ascending, the last 1000.
  std::vector<int64_t> levels;

  bool operator==(const Structure &) const = default;
};

/// Ids are written into files: append only.
enum class ValuesKind : uint8_t {
  Float = 0,    ///< floating point numbers
  Int = 1,      ///< integers q of some bits that stand for scale * (q - zero point)
  Codebook = 2, ///< indices of entries
};

/// What one scale, zero point or codebook serves. Ids are written into files: append only.
enum class Granularity : uint8_t {
  Tensor = 0,
  Channel = 1, ///< a row
  Group = 2,   ///< `group` consecutive columns of a row
};

struct Values {
  ValuesKind kind = ValuesKind::Float;
  /// F32, F16 or BF16: of the numbers; Int: of the scales; Codebook: of the entries.
  uint32_t type = AJOUR_F32;
  /// Int: 1 to 8; Codebook: 1 to 8, of an index.
  int64_t bits = 0;
  /// Int: q lies in [-2^(bits-1), 2^(bits-1)); else in [0, 2^bits).
  bool isSigned = true;
  bool hasZeroPoints = false; ///< Int: else they are 0
  Granularity granularity = Granularity::Tensor;
  int64_t group = 0; ///< columns

  bool operator==(const Values &) const = default;
};

struct Encoding {
  Structure structure;
  Values values;
  bool operator==(const Encoding &) const = default;
};

/// A weight in plain form. Int: `codes`, `scales` and, if there are any, `zeroPoints`; Float: `numbers`; Codebook: `numbers`, each one of
/// its `entries`. An element is zero if it stands for 0: a code that is its zero point, a number that is 0.
struct Weight {
  WeightShape shape;
  std::vector<float> numbers;       ///< [n][k]
  std::vector<int16_t> codes;       ///< [n][k]
  std::vector<float> scales;        ///< one for each unit of the granularity, rows outermost
  std::vector<int16_t> zeroPoints;  ///< the same
  std::vector<float> entries;       ///< [units][2^bits]
};

/// Units of a granularity: scales, zero points or codebooks of a weight.
int64_t granularityUnits(const Values &values, const WeightShape &shape);

/// Bits that one element takes.
int64_t valueBits(const Values &values);

/// The position for which an element is zero: one byte for each element, 1 where it is not zero.
std::vector<uint8_t> nonzeroMask(const Weight &weight, const Values &values);

/// The same of plain data: what is not `zero` (of the row, if there are n of them; one for all; none: 0).
std::vector<uint8_t> nonzeroMask(std::span<const float> data);
std::vector<uint8_t> nonzeroMask(std::span<const int8_t> data, const WeightShape &shape, std::span<const int32_t> zero);

/// "dense", "c4n", "nm", "pattern", "block_punched", "block", "nested".
std::string_view name(StructureKind kind);
std::string_view name(ValuesKind kind);
std::string_view name(Granularity granularity);

/// A parameter of a structure by name, as attributes and metadata write it. A number is a list of one.
struct Parameter {
  std::string name;
  std::vector<int64_t> value;
};

/// The parameters of a structure's kind, all of them, in the order of the table.
std::vector<Parameter> parameters(const Structure &structure);

/// The structure of a name and parameters. Returns what is wrong, naming the parameter, or an empty string; those that are left out keep
/// their defaults. `structure` is valid for some shape only after `check`.
std::string makeStructure(std::string_view kind, std::span<const Parameter> parameters, Structure &structure);

/// The same for values: bits, signed (0 or 1), zero_points (0 or 1), granularity and type (their ids), group.
std::vector<Parameter> parameters(const Values &values);
std::string makeValues(std::string_view kind, std::span<const Parameter> parameters, Values &values);

/// What is wrong with a weight's shape or its encoding's parameters; empty: nothing. `bits <= 8`, `share 1, 4, 8 or 16`, and so on.
std::string check(const Encoding &encoding, const WeightShape &shape);
std::string check(const Structure &structure, const WeightShape &shape);

/// For people: "2:4, pattern shared by 8 rows", "8 patterns of 3x3", "4x1 blocks", "int4, 32 columns a scale".
std::string describe(const Structure &structure, const WeightShape &shape);
std::string describe(const Values &values);

} // namespace ajour::encoding

#endif
