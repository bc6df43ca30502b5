// Recognition: made structures are found with their parameters, others are not, and the reasons say where.
#include <gtest/gtest.h>

#include <cmath>

#include "Encoding/Weights.h"
#include "ajour/Encoding/Detect.h"

using namespace ajour::test;

static Values int8() {
  Values values;
  values.kind = ValuesKind::Int;
  values.bits = 8;
  return values;
}

static Structure make(const char *kind, std::vector<Parameter> parameters) {
  Structure structure;
  EXPECT_EQ(makeStructure(kind, parameters, structure), "");
  return structure;
}

static Detected find(const Structure &made, const WeightShape &shape, double density = .25, const Values &values = int8()) {
  std::mt19937 rng(7);
  return detectStructure(shape, randomMask(rng, made, shape, density), values);
}

/// The reason why a kind was not taken.
static std::string reason(const Detected &detected, std::string_view wanted) {
  for (const Candidate &candidate : detected.candidates)
    if (describe(candidate.structure, detected.shape) == wanted)
      return candidate.reason;
  return "not looked for";
}

TEST(Detect, MadeStructuresAreFound) {
  const WeightShape matrix = {64, 256}, filter = {64, 9 * 32, 3, 3};
  struct {
    Structure structure;
    WeightShape shape;
  } cases[] = {
      {make("c4n", {{"n", {1}}, {"share", {1}}}), matrix},  {make("c4n", {{"n", {2}}, {"share", {1}}}), matrix},
      {make("c4n", {{"n", {3}}, {"share", {1}}}), matrix},  {make("c4n", {{"n", {2}}, {"share", {4}}}), matrix},
      {make("c4n", {{"n", {2}}, {"share", {8}}}), matrix},  {make("c4n", {{"n", {1}}, {"share", {16}}}), matrix},
      {make("c4n", {{"n", {1, 3, 2, 0}}, {"column_block", {64}}}), matrix},
      {make("nm", {{"kept", {2}}, {"of", {8}}}), matrix},   {make("nm", {{"kept", {4}}, {"of", {16}}}), matrix},
      {make("block", {{"rows", {4}}}), matrix},             {make("block", {{"rows", {8}}}), matrix},
      {make("block", {{"rows", {16}}}), matrix},            {make("block", {{"rows", {1}}}), matrix},
      {make("block", {{"rows", {0}}}), matrix},             {make("block", {{"rows", {4}}}), filter},
      {make("pattern", {{"patterns", {0b010110010, 0b010011010, 0b000111010, 0b010111000}}}), filter},
      {make("block_punched", {{"filters", {8}}, {"channels", {4}}}), filter},
      {make("block_punched", {{"filters", {4}}, {"channels", {4}}}), filter},
      {make("dense", {}), matrix},
  };
  for (auto &c : cases) {
    for (int64_t ragged : {0, 3}) {
      WeightShape shape = c.shape;
      shape.n += ragged;
      SCOPED_TRACE(describe(c.structure, shape));
      const Detected found = find(c.structure, shape);
      Structure structure = found.encoding.structure;
      std::sort(structure.patterns.begin(), structure.patterns.end());
      std::sort(c.structure.patterns.begin(), c.structure.patterns.end());
      EXPECT_EQ(structure, c.structure) << describe(structure, shape);
      EXPECT_EQ(found.candidates.front().structure, found.encoding.structure);
      EXPECT_EQ(found.candidates.front().reason, "");
      // What was found can be written, in as many bytes.
      std::mt19937 rng(7);
      const std::vector<uint8_t> mask = randomMask(rng, c.structure, shape, .25);
      std::vector<uint8_t> bytes;
      ASSERT_EQ(encode(randomWeight(rng, int8(), shape, mask), found.encoding, bytes), "");
      EXPECT_EQ(found.stored.totalBytes, int64_t(bytes.size()));
      EXPECT_LE(found.stored.totalBytes, found.denseBytes);
    }
  }
}

TEST(Detect, KeptWeightsThatBecameZeroDoNotHideAStructure) {
  std::mt19937 rng(8);
  const WeightShape filter = {64, 9 * 32, 3, 3};
  for (const Structure &made : {make("block", {{"rows", {4}}}), make("block_punched", {{"filters", {8}}, {"channels", {4}}}),
                                make("pattern", {{"patterns", {0b010110010, 0b010011010, 0b000111010}}}),
                                make("c4n", {{"n", {2}}, {"share", {1}}})}) {
    std::vector<uint8_t> mask = randomMask(rng, made, filter, .3);
    for (uint8_t &x : mask)
      x &= rng() % 20 != 0;
    Structure found = detectStructure(filter, mask, int8()).encoding.structure;
    std::sort(found.patterns.begin(), found.patterns.end());
    Structure expected = made;
    std::sort(expected.patterns.begin(), expected.patterns.end());
    EXPECT_EQ(found, expected) << describe(found, filter);
  }
}

TEST(Detect, ReasonsSayWhereAStructureFails) {
  std::mt19937 rng(9);
  const WeightShape shape = {16, 1024};
  std::vector<uint8_t> mask = randomMask(rng, make("c4n", {{"n", {2}}, {"share", {1}}}), shape, 1);
  for (int64_t row : {7, 9, 12})
    for (int64_t column = 8; column < 12; ++column)
      mask[row * shape.k + column] = 1;
  const Detected found = detectStructure(shape, mask, int8());
  EXPECT_EQ(reason(found, "C4^2"), "fails in 3 of 4096 groups, first at row 7, column 8");
  EXPECT_EQ(reason(found, "16x1 blocks"), "would keep 100 % where 50 % are not zero");
  EXPECT_EQ(reason(found, "rows grouped by their columns"), "has 16 different sets of columns in 16 rows");
  // Zeros at random.
  std::vector<uint8_t> random = randomMask(rng, make("block", {{"rows", {1}}}), {64, 9 * 32, 3, 3}, .17);
  const Detected unstructured = detectStructure({64, 9 * 32, 3, 3}, random, int8());
  EXPECT_EQ(describe(unstructured.encoding.structure, unstructured.shape), "unstructured");
  EXPECT_NEAR(blockDensity(unstructured.shape, random, 4), 1 - std::pow(.83, 4), .03);
  EXPECT_NEAR(unstructured.executed, .17, .02);
  EXPECT_EQ(unstructured.nonzero, std::count(random.begin(), random.end(), 1));
}

TEST(Detect, FewZerosAreDense) {
  const Detected found = find(make("block", {{"rows", {1}}}), {64, 256}, .95);
  EXPECT_EQ(found.encoding.structure, Structure());
  EXPECT_EQ(found.executed, 1);
  EXPECT_EQ(found.candidates.size(), 1u);
}

TEST(Detect, ExtremesAreHandled) {
  for (const WeightShape &shape : {WeightShape{1, 1}, {1, 3}, {3, 1}, {5, 7}, {2, 18, 3, 3}, {4, 100, 10, 10}})
    for (uint8_t value : {0, 1}) {
      const Detected found = detectStructure(shape, std::vector<uint8_t>(shape.elements(), value), int8());
      EXPECT_EQ(check(found.encoding, shape), "");
      EXPECT_LE(found.stored.totalBytes, found.denseBytes);
    }
}

TEST(Detect, ValuesOfNumbers) {
  std::mt19937 rng(10);
  const WeightShape shape = {16, 256};
  auto numbers = [&](auto &&make) {
    std::vector<float> list(shape.elements());
    for (size_t i = 0; i < list.size(); ++i)
      list[i] = make(i);
    return describe(detectValues(shape, list));
  };
  std::normal_distribution<float> normal;
  std::vector<float> entries(200), rowEntries(16 * 16);
  for (float &x : entries)
    x = normal(rng);
  for (float &x : rowEntries)
    x = normal(rng);
  EXPECT_EQ(numbers([&](size_t) { return normal(rng); }), "f32");
  EXPECT_EQ(numbers([&](size_t) { return entries[rng() % 200]; }), "codebook of 256");
  EXPECT_EQ(numbers([&](size_t i) { return rowEntries[i / 256 * 16 + rng() % 16]; }), "codebook of 256");
  EXPECT_EQ(numbers([&](size_t) { return float(int(rng() % 15) - 7) * 0.013f; }), "int4");
  EXPECT_EQ(numbers([&](size_t) { return float(int(rng() % 3) - 1) * 0.7f; }), "int2");
  EXPECT_EQ(numbers([&](size_t) { return float(int(rng() % 3)) * 0.7f; }), "int3");
  EXPECT_EQ(numbers([&](size_t) { return float(int(rng() % 2000) - 1000) / 1024; }), "f16");
  EXPECT_EQ(numbers([&](size_t) { return std::ldexp(float(rng() % 256), int(rng() % 60)); }), "bf16");
  EXPECT_EQ(numbers([&](size_t) { return NAN; }), "f32");
}

TEST(Detect, RowsWithFewNumbersHaveCodebooksOfTheirOwn) {
  std::mt19937 rng(11);
  const WeightShape shape = {64, 256};
  std::normal_distribution<float> normal;
  std::vector<float> entries(64 * 16), list(shape.elements());
  for (float &x : entries)
    x = normal(rng);
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = entries[i / 256 * 16 + rng() % 16];
  EXPECT_EQ(describe(detectValues(shape, list)), "codebook of 16 per channel");
}

TEST(Detect, FewestBitsOfCodes) {
  Values given = int8();
  given.granularity = Granularity::Channel;
  for (auto [low, high, bits] : {std::tuple(-128, 127, 8), {-7, 7, 4}, {-8, 7, 4}, {-9, 7, 5}, {-1, 1, 2}, {-1, 0, 1}, {0, 1, 2}}) {
    const std::vector<int8_t> codes = {0, int8_t(low), int8_t(high)};
    const Values values = detectValues(codes, given);
    EXPECT_EQ(values.bits, bits) << low << " to " << high;
    EXPECT_EQ(values.granularity, Granularity::Channel);
  }
}
