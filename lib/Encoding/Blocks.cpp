/// Groups of rows that keep the same columns (4x1 blocks; BCR and BSPC of GRIM and RTMobile), and nested levels of them.
#include <algorithm>
#include <map>
#include <numeric>

#include "Structures.h"

namespace ajour::encoding {

/// The columns in which one of the rows is not zero.
static std::vector<uint8_t> columnsOf(const Mask &mask, std::span<const int64_t> rows) {
  std::vector<uint8_t> columns(mask.shape.k);
  for (int64_t row : rows)
    for (int64_t column = 0; column < mask.shape.k; ++column)
      columns[column] |= mask.at(row, column);
  return columns;
}

/// Groups of `rows` consecutive rows, or with 0 those that keep the same columns: those with most columns first.
static std::vector<std::vector<int64_t>> makeGroups(const Structure &s, const Mask &mask) {
  std::vector<std::vector<int64_t>> groups;
  if (s.rows > 0) {
    for (int64_t row = 0; row < mask.shape.n; ++row) {
      if (row % s.rows == 0)
        groups.emplace_back();
      groups.back().push_back(row);
    }
    return groups;
  }
  std::map<std::vector<uint8_t>, std::vector<int64_t>> rowsOf;
  for (int64_t row = 0; row < mask.shape.n; ++row)
    rowsOf[columnsOf(mask, std::span(&row, 1))].push_back(row);
  std::vector<int64_t> counts;
  for (auto &[columns, rows] : rowsOf) {
    counts.push_back(std::count(columns.begin(), columns.end(), 1));
    groups.push_back(std::move(rows));
  }
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : groups[a].front() < groups[b].front();
  });
  std::vector<std::vector<int64_t>> sorted;
  for (size_t i : order)
    sorted.push_back(std::move(groups[i]));
  return sorted;
}

static void addColumn(Positions &positions, const WeightShape &shape, std::span<const int64_t> rows, int64_t column) {
  for (int64_t row : rows)
    positions.add(shape, row, column);
}

//===----------------------------------------------------------------------===//
// Block
//===----------------------------------------------------------------------===//

static std::string checkBlock(const Structure &s, const WeightShape &) {
  if (s.rows < 0 || s.rows > INT32_MAX)
    return "rows is " + number(s.rows) + "; a group has at least one";
  return "";
}

/// One bit says whether columns are written as a bit for each (1) or as a list of numbers. With `rows` 0 the number of groups follows and
/// before each group its rows. Then each group's columns.
static std::string writeBlock(const Structure &s, const Mask &mask, BitWriter &index, Positions &positions) {
  const WeightShape &shape = mask.shape;
  std::vector<std::vector<int64_t>> groups = makeGroups(s, mask);
  std::vector<std::vector<uint8_t>> columns;
  int64_t listBits = 0;
  for (const std::vector<int64_t> &rows : groups) {
    columns.push_back(columnsOf(mask, rows));
    listBits += bitsFor(shape.k) +
                std::count(columns.back().begin(), columns.back().end(), 1) * int64_t(bitsFor(shape.k - 1));
  }
  const bool isBitmap = listBits > static_cast<int64_t>(groups.size()) * shape.k;
  index.put(isBitmap, 1);
  if (s.rows == 0)
    index.put(groups.size(), bitsFor(shape.n));
  for (size_t g = 0; g < groups.size(); ++g) {
    if (s.rows == 0) {
      index.put(groups[g].size(), bitsFor(shape.n));
      for (int64_t row : groups[g])
        index.put(row, bitsFor(shape.n - 1));
    }
    if (!isBitmap)
      index.put(std::count(columns[g].begin(), columns[g].end(), 1), bitsFor(shape.k));
    for (int64_t column = 0; column < shape.k; ++column) {
      if (isBitmap)
        index.put(columns[g][column], 1);
      else if (columns[g][column])
        index.put(column, bitsFor(shape.k - 1));
      if (columns[g][column])
        addColumn(positions, shape, groups[g], column);
    }
  }
  return "";
}

/// The rows of the next group, each of which must be new.
static std::string readRows(const WeightShape &shape, BitReader &index, std::vector<bool> &hasRow,
                            std::vector<int64_t> &rows) {
  const int64_t count = index.get(bitsFor(shape.n));
  rows.clear();
  for (int64_t i = 0; i < count && index.good(); ++i) {
    const int64_t row = index.get(bitsFor(shape.n - 1));
    if (row >= shape.n || hasRow[row])
      return "row " + number(row) + " of a group is not there or was there before";
    hasRow[row] = true;
    rows.push_back(row);
  }
  return index.good() ? "" : "fewer index bits than the groups need";
}

static std::string readColumns(const WeightShape &shape, BitReader &index, bool isBitmap, std::span<const int64_t> rows,
                               Positions &positions) {
  const int64_t count = isBitmap ? shape.k : index.get(bitsFor(shape.k));
  int64_t previous = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (isBitmap && index.get(1) == 0)
      continue;
    const int64_t column = isBitmap ? i : index.get(bitsFor(shape.k - 1));
    if (!index.good() || !positions.fits(rows.size()))
      return "fewer index bits or values than the groups need";
    if (column <= previous || column >= shape.k)
      return "column " + number(column) + " of a group is not there or does not follow " + number(previous);
    previous = column;
    addColumn(positions, shape, rows, column);
  }
  return index.good() ? "" : "fewer index bits than the groups need";
}

/// Rows [first, first + count), cut off at n.
static void setRows(std::vector<int64_t> &rows, int64_t first, int64_t count, const WeightShape &shape) {
  rows.resize(std::min(count, shape.n - first));
  std::iota(rows.begin(), rows.end(), first);
}

static std::string readBlock(const Structure &s, const WeightShape &shape, BitReader &index, Positions &positions) {
  const bool isBitmap = index.get(1);
  std::vector<int64_t> rows;
  if (s.rows > 0) {
    for (int64_t row = 0; row < shape.n; row += s.rows) {
      setRows(rows, row, s.rows, shape);
      if (std::string error = readColumns(shape, index, isBitmap, rows, positions); !error.empty())
        return error;
    }
    return "";
  }
  std::vector<bool> hasRow(shape.n);
  const int64_t groups = index.get(bitsFor(shape.n));
  for (int64_t g = 0; g < groups; ++g) {
    if (std::string error = readRows(shape, index, hasRow, rows); !error.empty())
      return error;
    if (std::string error = readColumns(shape, index, isBitmap, rows, positions); !error.empty())
      return error;
  }
  if (std::find(hasRow.begin(), hasRow.end(), false) != hasRow.end())
    return "a row is in no group";
  return "";
}

static std::string describeBlock(const Structure &s, const WeightShape &) {
  if (s.rows == 0)
    return "rows grouped by their columns";
  return s.rows == 1 ? "unstructured" : number(s.rows) + "x1 blocks";
}

//===----------------------------------------------------------------------===//
// Nested
//===----------------------------------------------------------------------===//

static std::string checkNested(const Structure &s, const WeightShape &shape) {
  if (s.rows < 1 || s.rows > INT32_MAX)
    return "rows is " + number(s.rows) + "; a group has at least one";
  if (s.levels.empty() || s.levels.size() > 16 || s.levels.back() != 1000)
    return "levels must be 1 to 16 numbers, the last 1000";
  for (size_t i = 0; i < s.levels.size(); ++i)
    if (s.levels[i] < (i == 0 ? 0 : s.levels[i - 1]))
      return "levels must ascend from 0 to 1000";
  return "";
}

/// The columns of a group that are kept, the most important (sum of magnitudes) first.
static std::vector<int64_t> byImportance(const Mask &mask, std::span<const int64_t> rows) {
  std::vector<uint8_t> kept = columnsOf(mask, rows);
  std::vector<double> importance(mask.shape.k);
  std::vector<int64_t> columns;
  for (int64_t column = 0; column < mask.shape.k; ++column) {
    if (!kept[column])
      continue;
    columns.push_back(column);
    for (int64_t row : rows)
      importance[column] += mask.magnitude.empty() ? 0 : mask.magnitude[row * mask.shape.k + column];
  }
  std::sort(columns.begin(), columns.end(), [&](int64_t a, int64_t b) {
    return importance[a] != importance[b] ? importance[a] > importance[b] : a < b;
  });
  return columns;
}

/// For each level and group: how many columns the level adds, and which. So a level's index and values are a prefix of the next one's.
static std::string writeNested(const Structure &s, const Mask &mask, BitWriter &index, Positions &positions) {
  const WeightShape &shape = mask.shape;
  std::vector<std::vector<int64_t>> groups = makeGroups(s, mask), columns;
  for (const std::vector<int64_t> &rows : groups)
    columns.push_back(byImportance(mask, rows));
  std::vector<int64_t> done(groups.size());
  for (int64_t level : s.levels) {
    for (size_t g = 0; g < groups.size(); ++g) {
      const int64_t end = ceilDiv(static_cast<int64_t>(columns[g].size()) * level, 1000);
      std::sort(columns[g].begin() + done[g], columns[g].begin() + end);
      index.put(end - done[g], bitsFor(shape.k));
      for (; done[g] < end; ++done[g]) {
        index.put(columns[g][done[g]], bitsFor(shape.k - 1));
        addColumn(positions, shape, groups[g], columns[g][done[g]]);
      }
    }
    positions.levelEnds.push_back(positions.kept.size());
  }
  return "";
}

static std::string readNested(const Structure &s, const WeightShape &shape, BitReader &index, Positions &positions) {
  std::vector<int64_t> rows;
  for (size_t level = 0; level < s.levels.size(); ++level) {
    for (int64_t row = 0; row < shape.n; row += s.rows) {
      setRows(rows, row, s.rows, shape);
      if (std::string error = readColumns(shape, index, /*isBitmap=*/false, rows, positions); !error.empty())
        return error;
    }
    positions.levelEnds.push_back(positions.kept.size());
  }
  // A column of a group may be there once.
  std::vector<uint32_t> sorted = positions.kept;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return "a column of a group is in two levels";
  return "";
}

static constexpr FieldRow blockFields[] = {{"rows", &Structure::rows}};
static constexpr FieldRow nestedFields[] = {{"rows", &Structure::rows}, {"levels", nullptr, &Structure::levels}};

const StructureRow blockRow = {StructureKind::Block, "block",   blockFields, checkBlock,
                               writeBlock,           readBlock, nullptr,     describeBlock};
const StructureRow nestedRow = {
    StructureKind::Nested, "nested", nestedFields, checkNested, writeNested, readNested, nullptr,
    [](const Structure &s, const WeightShape &shape) {
      return number(s.levels.size()) + " levels of " + describeBlock(s, shape);
    }};

} // namespace ajour::encoding
