#include "ajour/Encoding/PackGemv.h"
#include "ajour/Encoding/Half.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace ajour::encoding {

namespace {

constexpr int64_t blockRows = 16;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

/// Bytes of what says which columns are kept.
int64_t codeBytes(const GemvFormat &format, int64_t k) {
  if (format.structure == GemvFormat::Columns)
    return roundUp(format.patterns * roundUp(ceilDiv(k, 8), 8), 64);
  if (format.structure == GemvFormat::Dense)
    return 0;
  // Groups follow each other in the codes without a gap.
  const int64_t padded = isQuantized(format) ? roundUp(k, format.group) : k;
  return roundUp(ceilDiv(padded, 64) * format.kept * format.patterns * 4, 64);
}

} // namespace

int64_t gemvGroupBytes(const GemvFormat &format, int64_t groupKept) {
  const int64_t bits = format.values == GemvFormat::F32   ? 32
                       : format.values == GemvFormat::F16 ? 16
                                                          : gemvBits(format.values);
  int64_t bytes = groupKept * blockRows * bits / 8;
  if (isQuantized(format))
    bytes += blockRows * ((format.run ? 1 : format.halfScales ? 2 : 4) * (format.offsets ? 2 : 1) + (format.zeroPoints ? 1 : 0));
  return bytes;
}

int64_t gemvRunBytes(const GemvFormat &format) {
  return format.run ? blockRows * (format.halfScales ? 2 : 4) * (format.offsets ? 2 : 1) : 0;
}

namespace {

int64_t lanesOf(int64_t row, int64_t patterns) {
  const int64_t share = blockRows / patterns;
  return row % share * patterns + row / share;
}

/// The columns that a pattern keeps, in order, for each group; -1: a place without a column.
using Kept = std::vector<int64_t>;

/// Packs one block after the other; `Source` says what stands where:
///   isZero(p, row), and how a value, a scale and a zero point are written.
template <typename Source> class Packer {
public:
  Packer(const GemvFormat &format, const Source &source, int64_t k, int64_t n)
      : format(format), source(source), k(k), n(n), sizes(gemvSizes(format, k, n)),
        groupColumns(isQuantized(format) ? format.group : k) {}

  std::optional<std::vector<uint8_t>> run() {
    std::vector<uint8_t> packed;
    std::vector<int64_t> table;
    const int64_t tableBytes = format.structure == GemvFormat::Columns ? roundUp(sizes.blocks * 16, 64) : 0;
    packed.resize(tableBytes);
    for (int64_t block = 0; block < sizes.blocks; ++block) {
      std::array<Kept, 4> kept;
      int64_t groupKept = sizes.groupKept;
      if (!choose(block, kept, groupKept))
        return std::nullopt;
      table.push_back(packed.size());
      table.push_back(groupKept);
      packed.resize(packed.size() + gemvBlockBytes(format, k, groupKept));
      uint8_t *out = packed.data() + table[2 * block];
      writeColumns(kept, groupKept, out);
      writeValues(block, kept, groupKept, out + sizes.codeBytes);
    }
    if (tableBytes)
      std::memcpy(packed.data(), table.data(), table.size() * 8);
    return packed;
  }

private:
  int64_t rowsOfPattern() const { return blockRows / format.patterns; }

  bool isKept(int64_t block, int64_t pattern, int64_t p) const {
    const int64_t first = block * blockRows + pattern * rowsOfPattern();
    for (int64_t row = first; row < std::min(n, first + rowsOfPattern()); ++row)
      if (!source.isZero(p, row))
        return true;
    return false;
  }

  bool choose(int64_t block, std::array<Kept, 4> &kept, int64_t &groupKept) const {
    std::vector<std::vector<std::vector<int64_t>>> lists(format.patterns);
    for (int64_t q = 0; q < format.patterns; ++q) {
      lists[q].resize(sizes.groups);
      for (int64_t g = 0; g < sizes.groups; ++g)
        if (!chooseGroup(block, q, g, lists[q][g]))
          return false;
    }
    if (format.structure == GemvFormat::Columns) {
      size_t most = 1;
      for (const auto &list : lists)
        for (const auto &columns : list)
          most = std::max(most, columns.size());
      groupKept = roundUp(most, gemvStep(format.values));
    }
    for (int64_t q = 0; q < format.patterns; ++q)
      for (std::vector<int64_t> &columns : lists[q]) {
        columns.resize(groupKept, -1);
        kept[q].insert(kept[q].end(), columns.begin(), columns.end());
      }
    return true;
  }

  /// The columns of one group that a pattern keeps.
  bool chooseGroup(int64_t block, int64_t pattern, int64_t group, std::vector<int64_t> &columns) const {
    const int64_t first = group * groupColumns, last = std::min(k, first + groupColumns);
    if (format.structure == GemvFormat::Dense) {
      for (int64_t p = first; p < last; ++p)
        columns.push_back(p);
      return true;
    }
    if (format.structure == GemvFormat::Columns) {
      for (int64_t p = first; p < last; ++p)
        if (isKept(block, pattern, p))
          columns.push_back(p);
      return true;
    }
    // Groups of 4 that keep fewer columns keep some zeros besides. Behind the last column they keep what is not there.
    for (int64_t p = first; p < first + roundUp(last - first, 4); p += 4) {
      bool keeps[4];
      int64_t count = 0;
      for (int64_t i = 0; i < 4; ++i)
        count += keeps[i] = p + i < last && isKept(block, pattern, p + i);
      if (count > format.kept)
        return false;
      for (int64_t i = 0; i < 4 && count < format.kept; ++i)
        if (!keeps[i]) {
          keeps[i] = true;
          ++count;
        }
      for (int64_t i = 0; i < 4; ++i)
        if (keeps[i])
          columns.push_back(p + i);
    }
    return true;
  }

  void writeColumns(const std::array<Kept, 4> &kept, int64_t groupKept, uint8_t *out) const {
    if (format.structure == GemvFormat::Columns) {
      const int64_t maskBytes = roundUp(ceilDiv(k, 8), 8);
      for (int64_t q = 0; q < format.patterns; ++q)
        for (int64_t p : kept[q])
          if (p >= 0)
            out[q * maskBytes + p / 8] |= 1 << p % 8;
    } else if (format.structure == GemvFormat::C4n) {
      // The i-th 16 columns of 64 keep 4 * kept; byte e of word w says of the (4 w + e)-th of them which of its 4.
      for (int64_t q = 0; q < format.patterns; ++q)
        for (size_t at = 0; at < kept[q].size(); ++at) {
          const int64_t group = at / groupKept, inGroup = at % groupKept;
          if (kept[q][at] < 0)
            continue;
          // Position among all kept ones, if all groups before were whole.
          const int64_t position = group * (groupColumns / 4 * format.kept) + inGroup;
          const int64_t chunk = position / (16 * format.kept), rest = position % (16 * format.kept);
          const int64_t quarter = rest / (4 * format.kept), w = rest % (4 * format.kept) / 4, e = rest % 4;
          out[((chunk * format.kept + w) * format.patterns + q) * 4 + e] |= kept[q][at] % 4 << 2 * quarter;
        }
    }
  }

  void writeValues(int64_t block, const std::array<Kept, 4> &kept, int64_t groupKept, uint8_t *out) const {
    for (int64_t row = 0; row < blockRows; ++row) {
      const int64_t lane = lanesOf(row, format.patterns), outRow = block * blockRows + row;
      const Kept &columns = kept[row / rowsOfPattern()];
      for (int64_t g = 0; g < sizes.groups; ++g) {
        uint8_t *group = out + g * gemvGroupBytes(format, groupKept) + (format.run ? g / format.run * gemvRunBytes(format) : 0);
        for (int64_t i = 0; i < groupKept; ++i) {
          const int64_t p = columns[g * groupKept + i];
          source.write(format, group, i, lane, p >= 0 && p < k ? p : -1, outRow < n ? outRow : -1, g, groupKept);
        }
        source.writeGroup(format, group + groupKept * blockRows * gemvBits(format.values) / 8, lane, g,
                          outRow < n ? outRow : -1);
      }
    }
  }

  const GemvFormat &format;
  const Source &source;
  int64_t k, n;
  GemvSizes sizes;
  int64_t groupColumns;
};

struct FloatSource {
  const WeightView<float> &view;
  float at(int64_t p, int64_t row) const { return view.data[p * view.strideK + row * view.strideN]; }
  bool isZero(int64_t p, int64_t row) const { return at(p, row) == 0; }
  void write(const GemvFormat &format, uint8_t *out, int64_t i, int64_t lane, int64_t p, int64_t row, int64_t, int64_t) const {
    const float value = p >= 0 && row >= 0 ? at(p, row) : 0;
    if (format.values == GemvFormat::F32) {
      std::memcpy(out + (i * blockRows + lane) * 4, &value, 4);
    } else {
      const uint16_t half = floatToHalf(value);
      std::memcpy(out + (i * blockRows + lane) * 2, &half, 2);
    }
  }
  void writeGroup(const GemvFormat &, uint8_t *, int64_t, int64_t, int64_t) const {}
};

struct ByteSource {
  const WeightView<int8_t> &view;
  int8_t at(int64_t p, int64_t row) const { return view.data[p * view.strideK + row * view.strideN]; }
  bool isZero(int64_t p, int64_t row) const { return at(p, row) == 0; }
  void write(const GemvFormat &, uint8_t *out, int64_t i, int64_t lane, int64_t p, int64_t row, int64_t, int64_t) const {
    out[(i / 4 * blockRows + lane) * 4 + i % 4] = p >= 0 && row >= 0 ? static_cast<uint8_t>(at(p, row)) : 0;
  }
  void writeGroup(const GemvFormat &, uint8_t *, int64_t, int64_t, int64_t) const {}
};

struct QuantizedSource {
  const QuantizedView &view;
  int64_t group, bits;
  template <typename T> static T at(const WeightView<T> &matrix, int64_t p, int64_t row) {
    return matrix.data[p * matrix.strideK + row * matrix.strideN];
  }
  bool isUnsigned;
  uint8_t zeroPoint(int64_t g, int64_t row) const {
    return view.zeroPoints.data ? at(view.zeroPoints, g, row) : isUnsigned ? 0 : uint8_t(1 << (bits - 1));
  }
  bool isZero(int64_t p, int64_t row) const { return at(view.values, p, row) == zeroPoint(p / group, row); }
  /// A value in a plane that has `width` bits of each.
  static void put(uint8_t *plane, int64_t width, int64_t i, int64_t lane, int value) {
    const int64_t steps = 8 / width, step = i / 4;
    plane[(step / steps * blockRows + lane) * 4 + i % 4] |= uint8_t(value << step % steps * width);
  }
  void write(const GemvFormat &format, uint8_t *out, int64_t i, int64_t lane, int64_t p, int64_t row, int64_t g, int64_t kept) const {
    // What is not there has the value of its zero point, which for an absent row is that of a row without any.
    uint8_t value = row < 0 ? uint8_t(format.zeroPoints || isUnsigned ? 0 : 1 << (bits - 1))
                    : p < 0 ? zeroPoint(g, row)
                            : at(view.values, p, row);
    if (format.signed8)
      value ^= 0x80;
    if (bits == 5 || bits == 6) {
      put(out, 4, i, lane, value & 15);
      put(out + kept * blockRows / 2, bits - 4, i, lane, value >> 4);
    } else {
      put(out, bits, i, lane, value);
    }
  }
  void writeNumber(const GemvFormat &format, uint8_t *out, int64_t lane, const WeightView<float> &numbers, int64_t g, int64_t row) const {
    const float number = row >= 0 ? at(numbers, g, row) : 0;
    const int64_t size = format.halfScales ? 2 : 4;
    const uint16_t half = floatToHalf(number);
    std::memcpy(out + lane * size, format.halfScales ? static_cast<const void *>(&half) : &number, size);
  }
  void writeGroup(const GemvFormat &format, uint8_t *out, int64_t lane, int64_t g, int64_t row) const {
    const int64_t size = format.halfScales ? 2 : 4;
    if (format.run) {
      out[lane] = uint8_t(row >= 0 ? at(view.scaleCodes, g, row) : 0);
      if (format.offsets)
        out[blockRows + lane] = uint8_t(row >= 0 ? at(view.offsetCodes, g, row) : 0);
      if ((g + 1) % format.run != 0)
        return;
      out += blockRows * (format.offsets ? 2 : 1);
      g /= format.run;
    }
    writeNumber(format, out, lane, view.scales, g, row);
    if (format.offsets)
      writeNumber(format, out + blockRows * size, lane, view.offsets, g, row);
    if (format.zeroPoints)
      out[blockRows * size + lane] = row >= 0 ? zeroPoint(g, row) : 0;
  }
};

} // namespace

GemvSizes gemvSizes(const GemvFormat &format, int64_t k, int64_t n) {
  GemvSizes sizes{};
  const int64_t columns = isQuantized(format) ? format.group : k, step = gemvStep(format.values);
  assert(columns > 0);
  sizes.groups = ceilDiv(k, columns);
  sizes.blocks = ceilDiv(n, blockRows);
  sizes.codeBytes = codeBytes(format, k);
  if (format.structure == GemvFormat::Columns)
    return sizes;
  assert(format.structure == GemvFormat::Dense || sizes.groups == 1 ||
         (columns % 4 == 0 && columns / 4 * format.kept % step == 0));
  sizes.groupKept = roundUp(format.structure == GemvFormat::C4n ? ceilDiv(columns, 4) * format.kept : columns, step);
  sizes.blockBytes = gemvBlockBytes(format, k, sizes.groupKept);
  return sizes;
}

int64_t gemvBlockBytes(const GemvFormat &format, int64_t k, int64_t groupKept) {
  const int64_t groups = isQuantized(format) ? ceilDiv(k, format.group) : 1;
  assert(format.run == 0 || groups % format.run == 0);
  return roundUp(codeBytes(format, k) + groups * gemvGroupBytes(format, groupKept) + (format.run ? groups / format.run * gemvRunBytes(format) : 0), 64);
}

std::optional<std::vector<uint8_t>> packGemv(const GemvFormat &format, const WeightView<float> &weights) {
  assert(format.values == GemvFormat::F32 || format.values == GemvFormat::F16);
  FloatSource source{weights};
  return Packer(format, source, weights.k, weights.n).run();
}

std::optional<std::vector<uint8_t>> packGemv(const GemvFormat &format, const WeightView<int8_t> &weights) {
  assert(format.values == GemvFormat::I8);
  ByteSource source{weights};
  return Packer(format, source, weights.k, weights.n).run();
}

std::optional<std::vector<uint8_t>> packGemv(const GemvFormat &format, const QuantizedView &weights) {
  assert(isQuantized(format) && (!format.signed8 || !format.zeroPoints) &&
         (format.zeroPoints || !weights.zeroPoints.data) && !(format.zeroPoints && (format.run || format.offsets)));
  QuantizedSource source{weights, format.group, gemvBits(format.values), format.isUnsigned};
  return Packer(format, source, weights.values.k, weights.values.n).run();
}

} // namespace ajour::encoding
