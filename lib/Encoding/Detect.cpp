#include "ajour/Encoding/Detect.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <unordered_set>

#include "Structures.h"
#include "ajour/Encoding/Half.h"

namespace ajour::encoding {

/// A structure holds if at least this share of what it keeps is not zero. Groups of C4^n may keep less: their kernels gain so much.
static constexpr double leastFull = 7.0 / 8, leastFullGroups = 1.0 / 2;
/// Bytes of weights without structure count for more: a kernel gains least from them.
static constexpr double unstructuredPenalty = 1.25;
/// With fewer zeros than this nothing is looked for.
static constexpr double leastZeros = 0.1;

static std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), share > 0 && share < 0.1 ? "%.1f %%" : "%.0f %%", share * 100);
  return text;
}

namespace {
/// Collects candidates for one weight.
struct Search {
  const WeightShape &shape;
  std::span<const uint8_t> nonzero;
  double density;
  std::vector<Candidate> candidates;

  bool at(int64_t row, int64_t column) const { return nonzero[row * shape.k + column] != 0; }
  /// Adds one; without a reason it holds.
  void add(Structure structure, double executed, std::string reason = "") {
    const bool isC4n = structure.kind == StructureKind::C4n;
    if (reason.empty() && density < executed * (isC4n ? leastFullGroups : leastFull))
      reason = "would keep " + percent(executed) + " where " + percent(density) + " are not zero";
    candidates.push_back({std::move(structure), executed, std::move(reason)});
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// C4^n and N:M
//===----------------------------------------------------------------------===//

/// How many of each group of columns the fullest row keeps; `violations(limit)` would need another pass.
static std::vector<int64_t> fullestGroups(const Search &search, int64_t of) {
  std::vector<int64_t> most(ceilDiv(search.shape.k, of));
  for (int64_t row = 0; row < search.shape.n; ++row)
    for (int64_t group = 0; group < static_cast<int64_t>(most.size()); ++group) {
      int64_t count = 0;
      for (int64_t column = group * of; column < std::min((group + 1) * of, search.shape.k); ++column)
        count += search.at(row, column);
      most[group] = std::max(most[group], count);
    }
  return most;
}

/// "fails in 3 of 4096 groups, first at row 7, column 12".
static std::string groupFailures(const Search &search, int64_t of, int64_t keep) {
  int64_t failures = 0, groups = 0, firstRow = 0, firstColumn = 0;
  for (int64_t row = 0; row < search.shape.n; ++row)
    for (int64_t column = 0; column < search.shape.k; column += of, ++groups) {
      int64_t count = 0;
      for (int64_t i = column; i < std::min(column + of, search.shape.k); ++i)
        count += search.at(row, i);
      if (count > keep && failures++ == 0) {
        firstRow = row;
        firstColumn = column;
      }
    }
  return "fails in " + number(failures) + " of " + number(groups) + " groups, first at " + place(firstRow, firstColumn);
}

/// The rows that can share patterns where a row alone keeps what `structure` says.
static int64_t largestShare(const Search &search, const Structure &structure) {
  Structure shared = structure;
  for (int64_t share : {16, 8, 4}) {
    shared.share = share;
    BitWriter index = BitWriter::counter();
    Positions positions;
    positions.onlyCounted = true;
    if (share <= search.shape.n &&
        c4nRow.write(shared, {search.shape, search.nonzero, {}}, index, positions).empty())
      return share;
  }
  return 1;
}

static double keptShare(const Structure &structure, const WeightShape &shape) {
  return double(structureRow(structure.kind)->fixedSize(structure, shape).kept) / double(shape.elements());
}

static void searchC4n(Search &search) {
  const std::vector<int64_t> most = fullestGroups(search, 4);
  Structure best;
  best.kind = StructureKind::C4n;
  double bestKept = 2;
  // One number for all columns first; blocks only if they keep clearly less.
  for (int64_t block : {0, 1024, 512, 256, 128, 64, 32}) {
    Structure s;
    s.kind = StructureKind::C4n;
    s.columnBlock = block;
    if (block >= search.shape.k)
      continue;
    const int64_t groups = block == 0 ? most.size() : block / 4;
    for (size_t begin = 0; begin < most.size(); begin += groups) {
      const size_t end = std::min(begin + groups, most.size());
      s.pruned.push_back(4 - *std::max_element(most.begin() + begin, most.begin() + end));
    }
    if (const double kept = keptShare(s, search.shape); kept < bestKept * 0.98) {
      best = s;
      bestKept = kept;
    }
  }
  if (bestKept < 1) {
    best.share = largestShare(search, best);
    search.add(best, bestKept);
  }
  if (bestKept < 1 && best.columnBlock == 0)
    return;
  // The number for all columns that the zeros suggest.
  Structure uniform;
  uniform.kind = StructureKind::C4n;
  uniform.pruned = {std::clamp<int64_t>(static_cast<int64_t>((1 - search.density) * 4 + 0.1), 1, 3)};
  search.add(uniform, keptShare(uniform, search.shape), groupFailures(search, 4, 4 - uniform.pruned[0]));
}

static void searchNM(Search &search) {
  for (int64_t of : {8, 16, 32}) {
    if (of > search.shape.k)
      continue;
    const std::vector<int64_t> most = fullestGroups(search, of);
    Structure s;
    s.kind = StructureKind::NM;
    s.of = of;
    s.kept = *std::max_element(most.begin(), most.end());
    if (s.kept < of)
      search.add(s, keptShare(s, search.shape));
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

double blockDensity(const WeightShape &shape, std::span<const uint8_t> nonzero, int64_t rows) {
  int64_t kept = 0;
  std::vector<uint8_t> columns(shape.k);
  for (int64_t row = 0; row < shape.n; row += rows) {
    const int64_t end = std::min(row + rows, shape.n);
    std::fill(columns.begin(), columns.end(), 0);
    for (int64_t r = row; r < end; ++r)
      for (int64_t column = 0; column < shape.k; ++column)
        columns[column] |= nonzero[r * shape.k + column];
    kept += std::count(columns.begin(), columns.end(), 1) * (end - row);
  }
  return double(kept) / double(shape.elements());
}

/// Rows that keep the same columns, whatever their number.
static void searchRowGroups(Search &search) {
  std::unordered_set<std::string_view> sets;
  for (int64_t row = 0; row < search.shape.n; ++row)
    sets.insert({reinterpret_cast<const char *>(search.nonzero.data() + row * search.shape.k), size_t(search.shape.k)});
  Structure s;
  s.kind = StructureKind::Block;
  search.add(s, search.density,
             static_cast<int64_t>(sets.size()) * 2 <= search.shape.n
                 ? ""
                 : "has " + number(sets.size()) + " different sets of columns in " + number(search.shape.n) + " rows");
}

static void searchBlocks(Search &search) {
  for (int64_t rows : {16, 8, 4}) {
    if (rows > search.shape.n)
      continue;
    Structure s;
    s.kind = StructureKind::Block;
    s.rows = rows;
    search.add(s, blockDensity(search.shape, search.nonzero, rows));
  }
  searchRowGroups(search);
}

/// What always holds, and is looked at last.
static void searchUnstructured(Search &search) {
  Structure s;
  s.kind = StructureKind::Block;
  s.rows = 1;
  search.add(s, search.density);
}

//===----------------------------------------------------------------------===//
// Convolution filters
//===----------------------------------------------------------------------===//

/// The kept positions of each kernel [filter][channel].
static std::vector<uint32_t> kernelMasks(const Search &search) {
  const WeightShape &shape = search.shape;
  std::vector<uint32_t> masks(shape.n * shape.channels());
  for (int64_t f = 0; f < shape.n; ++f)
    for (int64_t p = 0; p < shape.window(); ++p)
      for (int64_t c = 0; c < shape.channels(); ++c)
        masks[f * shape.channels() + c] |= uint32_t(search.at(f, p * shape.channels() + c)) << p;
  return masks;
}

/// The table: kernels that lie in no larger one. Those that quantisation made smaller lie in theirs.
static std::vector<int64_t> readPatterns(const std::vector<uint32_t> &kernels, size_t limit) {
  std::map<uint32_t, int64_t> counts;
  for (uint32_t kernel : kernels)
    if (kernel != 0)
      ++counts[kernel];
  std::vector<std::pair<uint32_t, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    const int sizeA = std::popcount(a.first), sizeB = std::popcount(b.first);
    return sizeA != sizeB ? sizeA > sizeB : a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<int64_t> table;
  for (const auto &[kernel, count] : sorted) {
    const bool isPart = std::any_of(table.begin(), table.end(), [&](int64_t p) { return (kernel & ~p) == 0; });
    if (!isPart)
      table.push_back(kernel);
    if (table.size() > limit)
      break;
  }
  return table;
}

static void searchPattern(Search &search, const std::vector<uint32_t> &kernels) {
  // More patterns than that are no table, and as many as there are kernels say nothing.
  const size_t limit = std::clamp<size_t>(kernels.size() / 8, 1, 32);
  Structure s;
  s.kind = StructureKind::Pattern;
  s.patterns = readPatterns(kernels, limit);
  if (s.patterns.empty())
    return;
  int64_t kept = 0;
  for (uint32_t kernel : kernels) {
    int64_t least = kernel == 0 ? 0 : 64;
    for (int64_t p : s.patterns)
      if (kernel != 0 && (kernel & ~p) == 0)
        least = std::min<int64_t>(least, std::popcount(static_cast<uint64_t>(p)));
    kept += least == 64 ? search.shape.window() : least;
  }
  const bool isTable = s.patterns.size() <= limit;
  search.add(s, isTable ? double(kept) / double(search.shape.elements()) : 1,
             isTable ? "" : "has more than " + number(limit) + " different kernels in " + number(kernels.size()));
}

static void searchPunched(Search &search, const std::vector<uint32_t> &kernels) {
  const WeightShape &shape = search.shape;
  for (auto [filters, channels] : {std::pair(16, 4), {8, 8}, {8, 4}, {4, 4}}) {
    if (filters > shape.n || channels > shape.channels())
      continue;
    int64_t kept = 0;
    for (int64_t f = 0; f < shape.n; f += filters)
      for (int64_t c = 0; c < shape.channels(); c += channels) {
        uint32_t mask = 0;
        const int64_t fEnd = std::min(f + filters, shape.n), cEnd = std::min(c + channels, shape.channels());
        for (int64_t i = f; i < fEnd; ++i)
          for (int64_t j = c; j < cEnd; ++j)
            mask |= kernels[i * shape.channels() + j];
        kept += std::popcount(mask) * (fEnd - f) * (cEnd - c);
      }
    Structure s;
    s.kind = StructureKind::BlockPunched;
    s.blockFilters = filters;
    s.blockChannels = channels;
    search.add(s, double(kept) / double(shape.elements()));
  }
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Sizes within 3 % are level; then the order in which candidates were added decides.
static void choose(Search &search, const Values &values, Detected &result) {
  const StoredSize dense = *storedSize({Structure(), values}, search.shape);
  result.denseBytes = dense.totalBytes;
  result.stored = dense;
  int best = -1;
  double bestScore = double(dense.totalBytes);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < search.candidates.size(); ++i) {
    Candidate &candidate = search.candidates[i];
    sizes.push_back(0);
    if (!candidate.reason.empty())
      continue;
    std::string error;
    auto size = storedSize({candidate.structure, values}, search.shape, search.nonzero, error);
    if (!size) {
      candidate.reason = error;
      continue;
    }
    sizes.back() = size->totalBytes;
    const bool isUnstructured = candidate.structure.kind == StructureKind::Block && candidate.structure.rows == 1;
    const double score = double(size->totalBytes) * (isUnstructured && best >= 0 ? unstructuredPenalty : 1);
    if (score < bestScore * 0.97) {
      best = static_cast<int>(i);
      bestScore = score;
      result.stored = *size;
    }
  }
  for (size_t i = 0; i < search.candidates.size(); ++i)
    if (static_cast<int>(i) != best && search.candidates[i].reason.empty())
      search.candidates[i].reason = "holds, but takes " + number(sizes[i]) + " bytes; " +
                                    (best < 0 ? "dense " : describe(search.candidates[best].structure, search.shape) + " ") +
                                    number(result.stored.totalBytes);
  if (best < 0)
    return;
  result.encoding.structure = search.candidates[best].structure;
  result.executed = search.candidates[best].executed;
  std::rotate(search.candidates.begin(), search.candidates.begin() + best, search.candidates.begin() + best + 1);
}

static void countEmpty(std::span<const uint8_t> nonzero, Detected &result) {
  const WeightShape &shape = result.shape;
  std::vector<uint8_t> columns(shape.k);
  for (int64_t row = 0; row < shape.n; ++row) {
    uint8_t any = 0;
    for (int64_t column = 0; column < shape.k; ++column) {
      const uint8_t isSet = nonzero[row * shape.k + column];
      any |= isSet;
      columns[column] |= isSet;
    }
    result.zeroRows += any == 0;
  }
  result.zeroColumns = std::count(columns.begin(), columns.end(), 0);
}

Detected detectStructure(const WeightShape &shape, std::span<const uint8_t> nonzero, const Values &values) {
  Detected result;
  result.shape = shape;
  result.encoding.values = values;
  result.nonzero = std::count(nonzero.begin(), nonzero.end(), 1);
  Search search = {shape, nonzero, result.density(), {}};
  if (result.zeros() >= leastZeros) {
    countEmpty(nonzero, result);
    if (shape.window() > 1 && shape.window() <= 32) {
      const std::vector<uint32_t> kernels = kernelMasks(search);
      searchPattern(search, kernels);
      searchPunched(search, kernels);
    }
    searchC4n(search);
    searchBlocks(search);
    searchNM(search);
    searchUnstructured(search);
  }
  choose(search, values, result);
  if (result.encoding.structure.kind == StructureKind::Dense)
    search.candidates.insert(search.candidates.begin(), Candidate());
  result.candidates = std::move(search.candidates);
  return result;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The different numbers, nothing if there are more than `limit`. -0 is 0; a NaN is never a member.
static std::vector<float> distinct(std::span<const float> numbers, size_t limit) {
  std::unordered_set<float> found;
  for (float x : numbers) {
    if (x != x)
      return {};
    found.insert(x == 0 ? 0.0f : x);
    if (found.size() > limit)
      return {};
  }
  return {found.begin(), found.end()};
}

/// Whether all numbers are float products of a step and an integer of at most 8 bits; then those bits, else 0. The step is the smallest
/// magnitude, or a fraction of it where that one has a factor.
static int64_t integerBits(const std::vector<float> &numbers) {
  float least = INFINITY, most = 0;
  for (float x : numbers) {
    if (x != 0)
      least = std::min(least, std::fabs(x));
    most = std::max(most, std::fabs(x));
  }
  for (int divisor = 1; divisor <= 4 && most > 0 && std::isfinite(most); ++divisor) {
    const float step = least / static_cast<float>(divisor);
    int64_t lowest = 0, highest = 0;
    bool isExact = most / step <= 128;
    for (size_t i = 0; i < numbers.size() && isExact; ++i) {
      const float q = std::nearbyint(numbers[i] / step);
      isExact = q * step == numbers[i];
      lowest = std::min<int64_t>(lowest, static_cast<int64_t>(q));
      highest = std::max<int64_t>(highest, static_cast<int64_t>(q));
    }
    for (int64_t bits = 1; isExact && bits <= 8; ++bits)
      if (lowest >= -(int64_t(1) << (bits - 1)) && highest < int64_t(1) << (bits - 1))
        return bits;
  }
  return 0;
}

/// Whether numbers survive rounding to a 16-bit type.
template <typename Round> static bool survives(std::span<const float> numbers, Round &&round) {
  return std::all_of(numbers.begin(), numbers.end(), [&](float x) { return round(x) == x; });
}

Values detectValues(const WeightShape &shape, std::span<const float> numbers, uint32_t type) {
  Values values;
  // A codebook pays only where it is much smaller than what it serves.
  if (std::vector<float> found = distinct(numbers, 256); !found.empty() && found.size() * 8 <= numbers.size()) {
    if (const int64_t bits = integerBits(found)) {
      values.kind = ValuesKind::Int;
      values.bits = bits;
      return values;
    }
    values.kind = ValuesKind::Codebook;
    values.bits = std::max<int64_t>(1, bitsFor(found.size() - 1));
    return values;
  }
  bool isRowwise = shape.k >= 128;
  for (int64_t row = 0; row < shape.n && isRowwise; ++row)
    isRowwise = !distinct(numbers.subspan(row * shape.k, shape.k), 16).empty();
  if (isRowwise) {
    values.kind = ValuesKind::Codebook;
    values.bits = 4;
    values.granularity = Granularity::Channel;
    return values;
  }
  if (type != AJOUR_F32)
    values.type = type;
  else if (survives(numbers, [](float x) { return halfToFloat(floatToHalf(x)); }))
    values.type = AJOUR_F16;
  else if (survives(numbers, [](float x) { return bfloatToFloat(floatToBFloat(x)); }))
    values.type = AJOUR_BF16;
  return values;
}

Values detectValues(std::span<const int8_t> codes, const Values &given) {
  Values values = given;
  if (codes.empty() || !values.isSigned)
    return values;
  const auto [lowest, highest] = std::minmax_element(codes.begin(), codes.end());
  for (int64_t bits = values.bits - 1; bits >= 1; --bits)
    if (*lowest >= -(1 << (bits - 1)) && *highest < 1 << (bits - 1))
      values.bits = bits;
    else
      break;
  return values;
}

} // namespace ajour::encoding
