// Weights with a structure, made at random, for the tests of codecs and of recognition.
#ifndef AJOUR_TESTS_ENCODING_WEIGHTS_H
#define AJOUR_TESTS_ENCODING_WEIGHTS_H

#include <algorithm>
#include <functional>
#include <random>

#include "ajour/Encoding/Encoding.h"

namespace ajour::test {

using namespace ajour::encoding;

/// A number from `low` to `high`.
inline int64_t pick(std::mt19937 &rng, int64_t low, int64_t high) {
  return low + int64_t(rng() % uint64_t(high - low + 1));
}

/// A mask in which each group that a structure knows keeps as much as it may, at random; Block with `rows` 0 gives every third row the same
/// columns. `density` of the rows, blocks or kernels exist where the structure leaves that open.
inline std::vector<uint8_t> randomMask(std::mt19937 &rng, const Structure &s, const WeightShape &shape, double density) {
  std::vector<uint8_t> mask(shape.elements());
  auto at = [&](int64_t row, int64_t column) -> uint8_t & { return mask[row * shape.k + column]; };
  auto coin = [&] { return std::uniform_real_distribution<>(0, 1)(rng) < density; };
  auto chooseGroups = [&](int64_t of, int64_t share, const std::function<int64_t(int64_t)> &keepOf) {
    for (int64_t row = 0; row < shape.n; row += share)
      for (int64_t column = 0; column < shape.k; column += of) {
        std::vector<int64_t> places;
        for (int64_t i = column; i < std::min(column + of, shape.k); ++i)
          places.push_back(i);
        std::shuffle(places.begin(), places.end(), rng);
        places.resize(std::min<int64_t>(places.size(), keepOf(column)));
        for (int64_t r = row; r < std::min(row + share, shape.n); ++r)
          for (int64_t i : places)
            at(r, i) = 1;
      }
  };
  switch (s.kind) {
  case StructureKind::Dense:
    std::fill(mask.begin(), mask.end(), 1);
    break;
  case StructureKind::C4n:
    chooseGroups(4, s.share, [&](int64_t c) { return 4 - s.pruned[s.columnBlock ? c / s.columnBlock : 0]; });
    break;
  case StructureKind::NM:
    chooseGroups(s.of, 1, [&](int64_t) { return s.kept; });
    break;
  case StructureKind::Pattern:
    for (int64_t f = 0; f < shape.n; ++f)
      for (int64_t c = 0; c < shape.channels(); ++c) {
        const int64_t pattern = coin() ? s.patterns[rng() % s.patterns.size()] : 0;
        for (int64_t p = 0; p < shape.window(); ++p)
          at(f, p * shape.channels() + c) = pattern >> p & 1;
      }
    break;
  case StructureKind::BlockPunched:
    for (int64_t f = 0; f < shape.n; f += s.blockFilters)
      for (int64_t c = 0; c < shape.channels(); c += s.blockChannels)
        for (int64_t p = 0; p < shape.window(); ++p)
          if (coin())
            for (int64_t i = f; i < std::min(f + s.blockFilters, shape.n); ++i)
              for (int64_t j = c; j < std::min(c + s.blockChannels, shape.channels()); ++j)
                at(i, p * shape.channels() + j) = 1;
    break;
  case StructureKind::Block:
  case StructureKind::Nested: {
    const int64_t rows = s.rows ? s.rows : 1;
    for (int64_t row = 0; row < shape.n; row += rows)
      for (int64_t column = 0; column < shape.k; ++column) {
        const bool isKept = s.rows == 0 && row >= 3 ? at(row - 3, column) : coin();
        for (int64_t r = row; r < std::min(row + rows, shape.n); ++r)
          at(r, column) = isKept;
      }
    break;
  }
  }
  return mask;
}

/// A weight with a mask: elements that exist are not zero (with 1 bit: where that can be), the others are.
inline Weight randomWeight(std::mt19937 &rng, const Values &values, const WeightShape &shape, std::span<const uint8_t> mask) {
  Weight weight;
  weight.shape = shape;
  const int64_t units = granularityUnits(values, shape);
  const int64_t groups = values.granularity == Granularity::Group ? units / shape.n : 1;
  auto unitOf = [&](int64_t i) {
    return values.granularity == Granularity::Tensor    ? 0
           : values.granularity == Granularity::Channel ? i / shape.k
                                                        : i / shape.k * groups + i % shape.k / values.group;
  };
  const int64_t low = values.isSigned ? -((1 << values.bits) / 2) : 0, high = low + (1 << values.bits) - 1;
  switch (values.kind) {
  case ValuesKind::Float:
    for (uint8_t isKept : mask)
      weight.numbers.push_back(isKept ? float(pick(rng, 1, 127)) * (rng() % 2 ? .25f : -.5f) : 0);
    break;
  case ValuesKind::Int:
    for (int64_t u = 0; u < units; ++u) {
      weight.scales.push_back(float(pick(rng, 1, 100)) / 64);
      if (values.hasZeroPoints)
        weight.zeroPoints.push_back(int16_t(pick(rng, low, high)));
    }
    for (size_t i = 0; i < mask.size(); ++i) {
      const int64_t zero = values.hasZeroPoints ? weight.zeroPoints[unitOf(i)] : 0;
      int64_t code = zero;
      for (int tries = 0; mask[i] && code == zero && tries < 100; ++tries)
        code = pick(rng, low, high);
      weight.codes.push_back(int16_t(code));
    }
    break;
  case ValuesKind::Codebook:
    for (int64_t i = 0; i < units << values.bits; ++i)
      weight.entries.push_back(i % (1 << values.bits) == 0 ? 0.0f : float(i % 1000 + 1) / 4);
    for (size_t i = 0; i < mask.size(); ++i)
      weight.numbers.push_back(mask[i] ? weight.entries[(unitOf(i) << values.bits) + pick(rng, 1, (1 << values.bits) - 1)] : 0);
    break;
  }
  return weight;
}

/// Structures of every kind that are right for a shape.
inline std::vector<Structure> structuresFor(std::mt19937 &rng, const WeightShape &shape) {
  std::vector<Structure> list(1);
  auto make = [&](StructureKind kind) -> Structure & {
    list.emplace_back().kind = kind;
    return list.back();
  };
  for (int64_t share : {1, 4, 8, 16})
    for (int64_t pruned : {0, 1, 2, 3, 4}) {
      Structure &s = make(StructureKind::C4n);
      s.share = share;
      s.pruned = {pruned};
    }
  Structure &mixed = make(StructureKind::C4n);
  mixed.columnBlock = 8;
  for (int64_t c = 0; c < shape.k; c += 8)
    mixed.pruned.push_back(pick(rng, 0, 4));
  for (auto [keep, of] : {std::pair(1, 2), {2, 4}, {2, 8}, {16, 32}, {0, 5}, {7, 7}}) {
    Structure &s = make(StructureKind::NM);
    s.kept = keep;
    s.of = of;
  }
  for (int64_t rows : {0, 1, 4, 8, 16})
    make(StructureKind::Block).rows = rows;
  for (int64_t rows : {1, 4}) {
    Structure &s = make(StructureKind::Nested);
    s.rows = rows;
    s.levels = {250, 500, 1000};
  }
  if (shape.window() <= 32)
    for (auto [filters, channels] : {std::pair(8, 4), {4, 1}, {3, 5}}) {
      Structure &s = make(StructureKind::BlockPunched);
      s.blockFilters = filters;
      s.blockChannels = channels;
    }
  if (shape.window() == 9)
    make(StructureKind::Pattern).patterns = {0b000111010, 0b010110010, 0b010011010, 0b010111000, 0b111111111, 0b1};
  return list;
}

/// Values of every kind.
inline std::vector<Values> allValues() {
  std::vector<Values> list;
  for (uint32_t type : {AJOUR_F32, AJOUR_F16, AJOUR_BF16})
    list.emplace_back().type = type;
  for (int64_t bits : {1, 2, 3, 4, 5, 6, 7, 8})
    for (Granularity granularity : {Granularity::Tensor, Granularity::Channel, Granularity::Group})
      for (ValuesKind kind : {ValuesKind::Int, ValuesKind::Codebook})
        for (bool hasZeroPoints : {false, true}) {
          if (kind == ValuesKind::Codebook && hasZeroPoints)
            continue;
          Values v;
          v.kind = kind;
          v.bits = bits;
          v.granularity = granularity;
          v.group = granularity == Granularity::Group ? 5 : 0;
          v.type = bits % 2 ? AJOUR_F32 : AJOUR_F16;
          v.hasZeroPoints = hasZeroPoints;
          v.isSigned = bits % 3 != 0;
          list.push_back(v);
        }
  return list;
}

} // namespace ajour::test

#endif
