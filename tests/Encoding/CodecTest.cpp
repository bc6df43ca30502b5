// Properties of the codec over structures x values x ragged shapes, its sizes, and bytes that nobody has checked.
#include <gtest/gtest.h>

#include <cmath>

#include "Encoding/Weights.h"
#include "ajour/Encoding/Codec.h"
#include "ajour/Encoding/Half.h"

using namespace ajour::test;

namespace {
constexpr WeightShape shapes[] = {{1, 1}, {1, 7}, {3, 4}, {5, 33}, {17, 40}, {33, 18, 3, 3}, {9, 27, 3, 3}, {8, 50, 5, 5}};
}

/// Every element as the number that it stands for.
static std::vector<float> meaning(const Weight &weight, const Values &values) {
  if (values.kind != ValuesKind::Int)
    return weight.numbers;
  std::vector<float> numbers;
  const int64_t groups = values.granularity == Granularity::Group ? (weight.shape.k + values.group - 1) / values.group : 1;
  for (int64_t i = 0; i < weight.shape.elements(); ++i) {
    const int64_t row = i / weight.shape.k, column = i % weight.shape.k;
    const int64_t unit = values.granularity == Granularity::Tensor    ? 0
                         : values.granularity == Granularity::Channel ? row
                                                                      : row * groups + column / values.group;
    numbers.push_back(weight.scales[unit] * float(weight.codes[i] - (values.hasZeroPoints ? weight.zeroPoints[unit] : 0)));
  }
  return numbers;
}

static std::string text(const Encoding &e, const WeightShape &shape) {
  return describe(e.structure, shape) + " x " + describe(e.values) + " of " + std::to_string(shape.n) + " x " +
         std::to_string(shape.k);
}

TEST(Codec, WhatIsWrittenIsReadForEveryPair) {
  std::mt19937 rng(1);
  int64_t pairs = 0;
  for (const WeightShape &shape : shapes)
    for (const Structure &structure : structuresFor(rng, shape))
      for (const Values &values : allValues()) {
        const Encoding encoding = {structure, values};
        SCOPED_TRACE(text(encoding, shape));
        const Weight weight = randomWeight(rng, values, shape, randomMask(rng, structure, shape, .4));
        std::vector<uint8_t> bytes;
        ASSERT_EQ(encode(weight, encoding, bytes), "");
        ASSERT_EQ(verify(bytes), "");
        Weight read;
        Encoding readEncoding;
        ASSERT_EQ(decode(bytes, read, readEncoding), "");
        EXPECT_EQ(readEncoding, encoding);
        EXPECT_EQ(read.shape, shape);
        // All numbers of these weights are exact in f16 and bf16, the scales (multiples of 1/64 below 2) too.
        ASSERT_EQ(meaning(read, values), meaning(weight, values));
        EXPECT_EQ(read.codes, weight.codes);
        EXPECT_EQ(read.zeroPoints, weight.zeroPoints);
        EXPECT_EQ(read.scales, weight.scales);
        // The size is known beforehand.
        std::string error;
        auto size = storedSize(encoding, shape, nonzeroMask(weight, values), error);
        ASSERT_TRUE(size) << error;
        EXPECT_EQ(size->totalBytes, int64_t(bytes.size()));
        if (auto fixed = storedSize(encoding, shape)) {
          EXPECT_EQ(fixed->totalBytes, int64_t(bytes.size()));
          EXPECT_EQ(fixed->indexBits, size->indexBits);
        }
        ++pairs;
      }
  EXPECT_GT(pairs, 10000);
}

/// bits_stored / bits_dense of a large C4^n weight.
static double storedShare(int64_t bits, int64_t pruned, int64_t share) {
  Encoding encoding;
  encoding.structure.kind = StructureKind::C4n;
  encoding.structure.pruned = {pruned};
  encoding.structure.share = share;
  if (bits == 16) {
    encoding.values.type = AJOUR_F16;
  } else {
    encoding.values.kind = ValuesKind::Int;
    encoding.values.bits = bits;
  }
  const WeightShape shape = {4096, 4096};
  return double(storedSize(encoding, shape)->totalBytes) * 8 / double(shape.elements() * bits);
}

// The arithmetic: kept weights of 4 - n times the bits, and of each group of four ceil(log2(choose(4, n))) bits that say which, divided by
// the rows that share them. Within 3 %.
TEST(Codec, StoragesOfC4nAreWhatArithmeticSays) {
  for (int64_t bits : {16, 8, 4, 2})
    for (int64_t pruned : {1, 2, 3})
      for (int64_t share : {1, 4, 8, 16}) {
        const double pattern = pruned == 2 ? 3 : 2;
        const double expected = (double((4 - pruned) * bits) + pattern / double(share)) / double(4 * bits);
        EXPECT_NEAR(storedShare(bits, pruned, share) / expected, 1, .03) << bits << " bits, n " << pruned;
      }
}

TEST(Codec, ElementsOutsideAStructureAreRefusedWithTheirPlace) {
  Weight weight;
  weight.shape = {3, 8};
  weight.numbers.assign(24, 0);
  for (int64_t i : {12, 13, 14})
    weight.numbers[i] = 1; // Row 1, columns 4 to 6.
  Encoding encoding;
  ASSERT_EQ(makeStructure("nm", std::vector<Parameter>{{"kept", {2}}, {"of", {4}}}, encoding.structure), "");
  std::vector<uint8_t> bytes;
  EXPECT_EQ(encode(weight, encoding, bytes), "more than 2 of 4 weights are not zero at row 1, column 4");
  weight.shape = {1, 18, 3, 3};
  weight.numbers.assign(18, 0);
  weight.numbers[17] = 1; // Position 8 of channel 1.
  ASSERT_EQ(makeStructure("pattern", std::vector<Parameter>{{"patterns", {15}}}, encoding.structure), "");
  EXPECT_EQ(encode(weight, encoding, bytes), "the kernel of filter 0, channel 1 has none of the patterns");
}

TEST(Codec, ValuesThatCannotBeWrittenAreRefused) {
  Weight weight;
  weight.shape = {1, 4};
  weight.codes = {1, 2, 8, 0};
  weight.scales = {1};
  Encoding encoding;
  encoding.values.kind = ValuesKind::Int;
  encoding.values.bits = 4;
  std::vector<uint8_t> bytes;
  EXPECT_EQ(encode(weight, encoding, bytes), "the code 8 at row 0, column 2 does not fit 4 bits");
  weight.scales = {1, 2};
  EXPECT_EQ(encode(weight, encoding, bytes), "scales has 2 entries instead of 1");
  encoding.values.kind = ValuesKind::Codebook;
  encoding.values.bits = 1;
  weight.numbers = {1, 2, 2, 0};
  weight.entries = {1, 2};
  EXPECT_EQ(encode(weight, encoding, bytes),
            "the number at row 0, column 3 is not in its codebook; the structure stores zeros, so 0 must be an entry");
}

TEST(Codec, NumbersAreRoundedToTheirType) {
  Weight weight;
  weight.shape = {1, 3};
  weight.numbers = {1.0f + 0x1p-12f, 1e6f, -0.0f};
  Encoding encoding;
  encoding.values.type = AJOUR_F16;
  std::vector<uint8_t> bytes;
  ASSERT_EQ(encode(weight, encoding, bytes), "");
  Weight read;
  ASSERT_EQ(decode(bytes, read, encoding), "");
  EXPECT_EQ(read.numbers, (std::vector<float>{1.0f, INFINITY, 0.0f}));
}

TEST(Codec, EachNestedLevelIsAPrefixWithTheMostImportantColumns) {
  std::mt19937 rng(4);
  Encoding encoding;
  encoding.structure.kind = StructureKind::Nested;
  encoding.structure.rows = 2;
  encoding.structure.levels = {250, 500, 1000};
  Weight weight;
  weight.shape = {4, 8};
  for (int64_t i = 0; i < 32; ++i)
    weight.numbers.push_back(float(i % 8 + 1) * (i % 16 < 8 ? 1.0f : -1.0f));
  std::vector<uint8_t> bytes;
  ASSERT_EQ(encode(weight, encoding, bytes), "");
  for (auto [level, kept] : {std::pair(0, 2), {1, 4}, {2, 8}, {-1, 8}}) {
    Weight read;
    ASSERT_EQ(decode(bytes, read, encoding, {.level = level}), "");
    for (int64_t i = 0; i < 32; ++i)
      EXPECT_EQ(read.numbers[i], i % 8 >= 8 - kept ? weight.numbers[i] : 0) << "level " << level << " at " << i;
  }
  Weight read;
  EXPECT_EQ(decode(bytes, read, encoding, {.level = 3}), "level 3 of 3");
}

TEST(Codec, ParametersOutOfRangeAreNamed) {
  struct {
    const char *structure;
    std::vector<Parameter> parameters;
    WeightShape shape;
    const char *error;
  } cases[] = {
      {"c4n", {{"n", {2}}, {"share", {3}}}, {8, 8}, "share is 3; it may be 1, 4, 8 or 16 rows"},
      {"c4n", {{"n", {5}}}, {8, 8}, "n is 5; of 4 weights 0 to 4 can be pruned"},
      {"c4n", {{"n", {1}}, {"column_block", {4}}}, {8, 8}, "n has 1 numbers for 2 column blocks"},
      {"c4n", {{"n", {1}}, {"column_block", {6}}}, {8, 8}, "column_block is 6; it must be a multiple of 4"},
      {"nm", {{"kept", {3}}, {"of", {2}}}, {8, 8}, "kept is 3 of 2"},
      {"nm", {{"kept", {3}}, {"of", {33}}}, {8, 8}, "of is 33; groups have 2 to 32 weights"},
      {"block", {{"rows", {-1}}}, {8, 8}, "rows is -1; a group has at least one"},
      {"nested", {{"rows", {1}}, {"levels", {500}}}, {8, 8}, "levels must be 1 to 16 numbers, the last 1000"},
      {"nested", {{"rows", {1}}, {"levels", {500, 400, 1000}}}, {8, 8}, "levels must ascend from 0 to 1000"},
      {"pattern", {}, {8, 9, 3, 3}, "patterns has 0 entries; 1 to 64 can be told apart"},
      {"pattern", {{"patterns", {3, 3}}}, {8, 9, 3, 3}, "patterns has an entry twice"},
      {"pattern", {{"patterns", {512}}}, {8, 9, 3, 3}, "patterns has an entry that is not a set of the 9 window positions"},
      {"pattern", {{"patterns", {1}}}, {8, 49, 7, 7}, "window has 49 positions; at most 32 can be told apart"},
      {"block_punched", {{"filters", {0}}, {"channels", {4}}}, {8, 9, 3, 3}, "filters and channels are 0 and 4; a block has at least one"},
      {"dense", {}, {0, 8}, "shape has a size 0; sizes are 1 to 2147483648"},
      {"dense", {}, {1 << 20, 1 << 20}, "shape 1048576 x 1048576 has more than 2147483648 elements"},
      {"dense", {}, {8, 10, 3, 3}, "shape has 10 columns, which the window 3 x 3 does not divide"},
  };
  for (const auto &c : cases) {
    Structure structure;
    ASSERT_EQ(makeStructure(c.structure, c.parameters, structure), "");
    EXPECT_EQ(check(structure, c.shape), c.error);
  }
  Structure structure;
  EXPECT_EQ(makeStructure("csr", {}, structure),
            "'csr' is no structure; there are dense, c4n, nm, pattern, block_punched, block, nested");
  EXPECT_EQ(makeStructure("nm", std::vector<Parameter>{{"m", {4}}}, structure), "'nm' has no parameter 'm'");
  EXPECT_EQ(makeStructure("nm", std::vector<Parameter>{{"of", {4, 4}}}, structure), "parameter 'of' of 'nm' must be one number");
  Encoding encoding;
  encoding.values.bits = 9;
  EXPECT_EQ(check(encoding, {8, 8}), "granularity and bits are for integers and codebooks, not for floating point numbers");
  encoding.values.kind = ValuesKind::Int;
  EXPECT_EQ(check(encoding, {8, 8}), "bits is 9; it may be 1 to 8");
  encoding.values.bits = 4;
  encoding.values.granularity = Granularity::Group;
  EXPECT_EQ(check(encoding, {8, 8}), "group is 0 columns; it must be at least one");
  encoding.values.type = AJOUR_I8;
  EXPECT_EQ(check(encoding, {8, 8}), "type is 5; it may be f32, f16 or bf16");
}

TEST(Codec, ParametersGoThroughNames) {
  std::mt19937 rng(2);
  for (const Structure &structure : structuresFor(rng, {33, 18, 3, 3})) {
    Structure made;
    ASSERT_EQ(makeStructure(name(structure.kind), parameters(structure), made), "");
    EXPECT_EQ(made, structure);
  }
}

//===----------------------------------------------------------------------===//
// Bytes that nobody has checked
//===----------------------------------------------------------------------===//

/// Small good weights of every structure.
static std::vector<std::vector<uint8_t>> goodBytes() {
  std::mt19937 rng(3);
  std::vector<std::vector<uint8_t>> list;
  const WeightShape shape = {6, 18, 3, 3};
  size_t next = 0;
  const std::vector<Values> values = allValues();
  for (const Structure &structure : structuresFor(rng, shape)) {
    const Values &v = values[next++ % values.size()];
    const Weight weight = randomWeight(rng, v, shape, randomMask(rng, structure, shape, .4));
    EXPECT_EQ(encode(weight, {structure, v}, list.emplace_back()), "");
  }
  return list;
}

TEST(HostileWeight, CutAnywhereItIsRefused) {
  for (const std::vector<uint8_t> &bytes : goodBytes())
    for (size_t size = 0; size < bytes.size(); ++size)
      ASSERT_NE(verify(std::span(bytes).first(size)), "") << size << " of " << bytes.size();
}

TEST(HostileWeight, MoreBytesAreRefused) {
  for (std::vector<uint8_t> bytes : goodBytes()) {
    bytes.push_back(0);
    EXPECT_NE(verify(bytes), "");
  }
}

// Whatever a changed byte makes of it: what is accepted can be decoded, and decoding agrees with verifying.
TEST(HostileWeight, AnyByteMayBeWrong) {
  std::mt19937 rng(5);
  int64_t refused = 0, accepted = 0;
  for (const std::vector<uint8_t> &good : goodBytes())
    for (size_t i = 0; i < good.size(); ++i)
      for (int tries = 0; tries < 8; ++tries) {
        std::vector<uint8_t> bytes = good;
        bytes[i] ^= uint8_t(pick(rng, 1, 255));
        Weight weight;
        Encoding encoding;
        const DecodeOptions options = {.maxElements = 1 << 16};
        const std::string error = verify(bytes, options);
        ASSERT_EQ(decode(bytes, weight, encoding, options), error);
        (error.empty() ? accepted : refused)++;
        if (error.empty()) {
          // It is a weight like any other.
          EXPECT_EQ(check(encoding, weight.shape), "");
          std::vector<uint8_t> again;
          EXPECT_TRUE(encode(weight, encoding, again).empty() || encoding.values.kind == ValuesKind::Codebook);
        }
      }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 1000);
}

TEST(HostileWeight, TheFaultyFieldIsNamed) {
  Weight weight;
  weight.shape = {4, 8};
  weight.numbers.assign(32, 1);
  std::vector<uint8_t> good;
  ASSERT_EQ(encode(weight, {}, good), "");
  auto with = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes = good;
    bytes[at] = value;
    return verify(bytes);
  };
  EXPECT_EQ(verify({}), "magic: the bytes end here");
  EXPECT_EQ(with(0, 'B'), "magic: these are not the bytes of a weight");
  EXPECT_EQ(with(4, 9), "version: 9 is not known; this reader knows 1");
  EXPECT_EQ(with(5, 77), "structure: 77 is not known");
  EXPECT_EQ(with(6, 3), "values: 3 is not known");
  EXPECT_EQ(with(7, 3), "granularity: 3 is not known");
  EXPECT_EQ(with(8, 5), "type is 5; it may be f32, f16 or bf16");
  EXPECT_EQ(with(10, 4), "flags: 4 has unknown bits");
  EXPECT_EQ(with(11, 0), "shape has a size 0; sizes are 1 to 2147483648");
  EXPECT_EQ(with(12, 9), "fewer values than weights");
  EXPECT_EQ(verify(good, {.maxElements = 31}), "shape 4 x 8 has more than 31 elements");
}
