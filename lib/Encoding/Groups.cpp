/// Dense weights, and those that keep a few of each group of consecutive inputs (C4^n, N:M).
#include "Groups.h"

#include <algorithm>
#include <array>

namespace ajour::encoding {

//===----------------------------------------------------------------------===//
// Patterns as numbers
//===----------------------------------------------------------------------===//

static constexpr int maxGroup = 32;

/// binomials()[w][i]: subsets of i out of w.
static const std::array<std::array<uint64_t, maxGroup + 1>, maxGroup + 1> &binomials() {
  static const auto table = [] {
    std::array<std::array<uint64_t, maxGroup + 1>, maxGroup + 1> t{};
    for (int w = 0; w <= maxGroup; ++w) {
      t[w][0] = 1;
      for (int i = 1; i <= w; ++i)
        t[w][i] = t[w - 1][i - 1] + (i <= w - 1 ? t[w - 1][i] : 0);
    }
    return t;
  }();
  return table;
}

unsigned patternBits(int64_t width, int64_t keep) { return bitsFor(binomials()[width][keep] - 1); }

uint64_t patternRank(uint32_t mask) {
  uint64_t rank = 0;
  for (int taken = 1; mask != 0; ++taken, mask &= mask - 1)
    rank += binomials()[std::countr_zero(mask)][taken];
  return rank;
}

/// The subset of `keep` out of `width` with a rank; nullopt: there is none.
static std::optional<uint32_t> patternOfRank(uint64_t rank, int64_t width, int64_t keep) {
  if (rank >= binomials()[width][keep])
    return std::nullopt;
  uint32_t mask = 0;
  for (int64_t position = width - 1; keep > 0; --position)
    if (rank >= binomials()[position][keep]) {
      rank -= binomials()[position][keep--];
      mask |= uint32_t(1) << position;
    }
  return mask;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Calls `each` with every group: rows [row, rowEnd), columns [column, column + width), of which `keep` are kept.
template <typename Fn>
static std::string forEachGroup(const Structure &s, const WeightShape &shape, Fn &&each) {
  const bool isC4n = s.kind == StructureKind::C4n;
  const int64_t of = isC4n ? 4 : s.of, share = isC4n ? s.share : 1;
  for (int64_t row = 0; row < shape.n; row += share)
    for (int64_t column = 0; column < shape.k; column += of) {
      const int64_t width = std::min(of, shape.k - column);
      const int64_t keep = isC4n ? 4 - s.pruned[s.columnBlock ? column / s.columnBlock : 0] : s.kept;
      if (std::string error = each(row, std::min(row + share, shape.n), column, width, std::min(keep, width));
          !error.empty())
        return error;
    }
  return "";
}

static std::string writeGroups(const Structure &s, const Mask &mask, BitWriter &index, Positions &positions) {
  return forEachGroup(s, mask.shape, [&](int64_t row, int64_t rowEnd, int64_t column, int64_t width, int64_t keep) {
    uint32_t pattern = 0;
    for (int64_t r = row; r < rowEnd; ++r)
      for (int64_t i = 0; i < width; ++i)
        pattern |= uint32_t(mask.at(r, column + i)) << i;
    if (std::popcount(pattern) > keep)
      return "more than " + number(keep) + " of " + number(width) + " weights are not zero at " + place(row, column);
    // Zeros fill up: the first that are free.
    for (int64_t i = 0; std::popcount(pattern) < keep; ++i)
      pattern |= uint32_t(1) << i;
    index.put(patternRank(pattern), patternBits(width, keep));
    for (int64_t r = row; r < rowEnd; ++r)
      for (uint32_t left = pattern; left != 0; left &= left - 1)
        positions.add(mask.shape, r, column + std::countr_zero(left));
    return std::string();
  });
}

static std::string readGroups(const Structure &s, const WeightShape &shape, BitReader &index, Positions &positions) {
  return forEachGroup(s, shape, [&](int64_t row, int64_t rowEnd, int64_t column, int64_t width, int64_t keep) {
    std::optional<uint32_t> pattern = patternOfRank(index.get(patternBits(width, keep)), width, keep);
    if (!pattern)
      return "pattern of the group at " + place(row, column) + ": there are only " +
             std::to_string(binomials()[width][keep]);
    if (!index.good() || !positions.fits((rowEnd - row) * keep))
      return std::string("fewer index bits or values than the groups need");
    for (int64_t r = row; r < rowEnd; ++r)
      for (uint32_t left = *pattern; left != 0; left &= left - 1)
        positions.add(shape, r, column + std::countr_zero(left));
    return std::string();
  });
}

static FixedSize groupsSize(const Structure &s, const WeightShape &shape) {
  FixedSize size = {0, 0};
  // Every row group is like the first, but the last may have fewer rows.
  Structure one = s;
  WeightShape first = {std::min(shape.n, s.kind == StructureKind::C4n ? s.share : 1), shape.k};
  const int64_t rowGroups = ceilDiv(shape.n, s.kind == StructureKind::C4n ? s.share : 1);
  int64_t keptOfRow = 0;
  forEachGroup(one, first, [&](int64_t, int64_t, int64_t, int64_t width, int64_t keep) {
    size.indexBits += patternBits(width, keep);
    keptOfRow += keep;
    return std::string();
  });
  size.indexBits *= rowGroups;
  size.kept = keptOfRow * shape.n;
  return size;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static std::string checkC4n(const Structure &s, const WeightShape &shape) {
  if (s.share != 1 && s.share != 4 && s.share != 8 && s.share != 16)
    return "share is " + number(s.share) + "; it may be 1, 4, 8 or 16 rows";
  if (s.columnBlock < 0 || s.columnBlock > INT32_MAX || s.columnBlock % 4 != 0)
    return "column_block is " + number(s.columnBlock) + "; it must be a multiple of 4";
  const int64_t blocks = s.columnBlock == 0 ? 1 : ceilDiv(shape.k, s.columnBlock);
  if (static_cast<int64_t>(s.pruned.size()) != blocks)
    return "n has " + number(s.pruned.size()) + " numbers for " + number(blocks) + " column blocks";
  for (int64_t n : s.pruned)
    if (n < 0 || n > 4)
      return "n is " + number(n) + "; of 4 weights 0 to 4 can be pruned";
  return "";
}

static std::string describeC4n(const Structure &s, const WeightShape &) {
  auto [least, most] = std::minmax_element(s.pruned.begin(), s.pruned.end());
  std::string text = *least == *most ? "C4^" + number(*least)
                                     : "C4^n with n = " + number(*least) + " to " + number(*most) + " by " +
                                           number(s.columnBlock) + " columns";
  if (s.share > 1)
    text += ", a pattern for " + number(s.share) + " rows";
  return text;
}

static std::string checkNM(const Structure &s, const WeightShape &) {
  if (s.of < 2 || s.of > maxGroup)
    return "of is " + number(s.of) + "; groups have 2 to 32 weights";
  if (s.kept < 0 || s.kept > s.of)
    return "kept is " + number(s.kept) + " of " + number(s.of);
  return "";
}

static std::string writeAll(const Structure &, const Mask &mask, BitWriter &, Positions &positions) {
  positions.kept.resize(mask.shape.elements());
  for (size_t i = 0; i < positions.kept.size(); ++i)
    positions.kept[i] = static_cast<uint32_t>(i);
  return "";
}

static std::string readAll(const Structure &s, const WeightShape &shape, BitReader &, Positions &positions) {
  if (!positions.fits(shape.elements()))
    return "fewer values than weights";
  BitWriter none;
  return writeAll(s, {shape, {}, {}}, none, positions);
}

static constexpr FieldRow c4nFields[] = {
    {"n", nullptr, &Structure::pruned}, {"column_block", &Structure::columnBlock}, {"share", &Structure::share}};
static constexpr FieldRow nmFields[] = {{"kept", &Structure::kept}, {"of", &Structure::of}};

const StructureRow denseRow = {
    StructureKind::Dense,
    "dense",
    {},
    [](const Structure &, const WeightShape &) { return std::string(); },
    writeAll,
    readAll,
    [](const Structure &, const WeightShape &shape) { return FixedSize{0, shape.elements()}; },
    [](const Structure &, const WeightShape &) { return std::string("dense"); }};
const StructureRow c4nRow = {StructureKind::C4n, "c4n",      c4nFields,  checkC4n,
                             writeGroups,        readGroups, groupsSize, describeC4n};
const StructureRow nmRow = {
    StructureKind::NM, "nm", nmFields, checkNM, writeGroups, readGroups, groupsSize,
    [](const Structure &s, const WeightShape &) { return number(s.kept) + ":" + number(s.of); }};

} // namespace ajour::encoding
