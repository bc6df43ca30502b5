// Quantised blocks: hand-made ones against the format's formulas.
#include "Import/GGUF/Blocks.h"
#include "ajour/Encoding/Half.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace ajour;
using gguf::TensorType;

namespace {

struct Block {
  std::vector<uint8_t> bytes;
  explicit Block(size_t size) : bytes(size) {
    // Every byte different, so that a wrong place shows.
    uint32_t state = 12345;
    for (uint8_t &byte : bytes)
      byte = uint8_t((state = state * 1664525u + 1013904223u) >> 24);
  }
  Block &half(size_t at, float value) {
    uint16_t bits = encoding::floatToHalf(value);
    std::memcpy(bytes.data() + at, &bits, 2);
    return *this;
  }
};

/// The numbers that a block stands for.
std::vector<float> decode(TensorType type, const Block &block) {
  gguf::Grouped g = gguf::unpackBlocks(*gguf::findType(uint32_t(type)),
                                       llvm::ArrayRef(reinterpret_cast<const char *>(block.bytes.data()), block.bytes.size()));
  std::vector<float> result;
  for (size_t i = 0; i < g.values.size(); ++i) {
    size_t group = i / size_t(g.group);
    int low = g.isUnsigned ? 0 : -(1 << (g.bits - 1)), high = g.isUnsigned ? (1 << g.bits) - 1 : (1 << (g.bits - 1)) - 1;
    EXPECT_GE(g.values[i], low);
    EXPECT_LE(g.values[i], high);
    size_t shared = g.run ? group / size_t(g.run) : group;
    float scale = encoding::halfToFloat(g.halfScales[shared]), offset = g.offsets.empty() ? 0.0f : encoding::halfToFloat(g.offsets[shared]);
    if (g.run) {
      scale *= float(g.scaleCodes[group]);
      offset *= g.offsets.empty() ? 0.0f : float(g.offsetCodes[group]);
    }
    result.push_back(float(g.values[i]) * scale + offset);
  }
  return result;
}

void expectNear(const std::vector<float> &found, const std::vector<float> &wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], 1e-5f * (1.0f + std::abs(wanted[i]))) << i;
}

TEST(Blocks, Fours) {
  Block b(18), c(20);
  b.half(0, 0.5f);
  c.half(0, 0.25f).half(2, -3.0f);
  std::vector<float> plain(32), affine(32);
  for (int i = 0; i < 32; ++i) {
    plain[i] = 0.5f * float((i < 16 ? b.bytes[2 + i] & 15 : b.bytes[2 + i - 16] >> 4) - 8);
    affine[i] = 0.25f * float(i < 16 ? c.bytes[4 + i] & 15 : c.bytes[4 + i - 16] >> 4) - 3.0f;
  }
  expectNear(decode(TensorType::Q4_0, b), plain);
  expectNear(decode(TensorType::Q4_1, c), affine);
}

TEST(Blocks, ConstantGroups) {
  Block b(20);
  b.half(0, 0.0f).half(2, 1.5f);
  expectNear(decode(TensorType::Q4_1, b), std::vector<float>(32, 1.5f));
  b.half(2, 0.0f);
  expectNear(decode(TensorType::Q4_1, b), std::vector<float>(32, 0.0f));
}

TEST(Blocks, FivesAndEights) {
  Block b(22), c(24), e(34);
  b.half(0, 2.0f);
  c.half(0, 2.0f).half(2, 1.0f);
  e.half(0, 0.125f);
  std::vector<float> plain, affine, eights;
  for (int i = 0; i < 32; ++i) {
    auto five = [&](const Block &block, size_t high, size_t low) {
      int top = block.bytes[high + i / 8] >> (i % 8) & 1;
      return (i < 16 ? block.bytes[low + i] & 15 : block.bytes[low + i - 16] >> 4) | top << 4;
    };
    plain.push_back(2.0f * float(five(b, 2, 6) - 16));
    affine.push_back(2.0f * float(five(c, 4, 8)) + 1.0f);
    eights.push_back(0.125f * float(int8_t(e.bytes[2 + i])));
  }
  expectNear(decode(TensorType::Q5_0, b), plain);
  expectNear(decode(TensorType::Q5_1, c), affine);
  expectNear(decode(TensorType::Q8_0, e), eights);
}

// Element 128 * part + 32 * quarter + l of the types with super-blocks of 256.
TEST(Blocks, SuperBlocksOfTwoThreeAndSixBits) {
  Block two(84), three(110), six(210);
  two.half(80, 0.5f).half(82, 0.25f);
  three.half(108, 0.5f);
  six.half(208, 0.5f);
  std::vector<float> twos, threes, sixes;
  for (int i = 0; i < 256; ++i) {
    int part = i / 128, quarter = i / 32 % 4, l = i % 32, group = i / 16;
    uint8_t scale = two.bytes[group];
    int q = two.bytes[16 + 32 * part + l] >> (2 * quarter) & 3;
    twos.push_back(0.5f * float(scale & 15) * float(q) - 0.25f * float(scale >> 4));

    const uint8_t *packed = three.bytes.data() + 96;
    int low = packed[group % 8] >> (group < 8 ? 0 : 4) & 15, top = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
    int high = three.bytes[l] >> (4 * part + quarter) & 1;
    int value = (three.bytes[32 + 32 * part + l] >> (2 * quarter) & 3) - (high ? 0 : 4);
    threes.push_back(0.5f * float((low + 16 * top) - 32) * float(value));

    int nibble = six.bytes[64 * part + 32 * (quarter % 2) + l] >> (quarter < 2 ? 0 : 4) & 15;
    int upper = six.bytes[128 + 32 * part + l] >> (2 * quarter) & 3;
    sixes.push_back(0.5f * float(int8_t(six.bytes[192 + group])) * float(nibble + 16 * upper - 32));
  }
  expectNear(decode(TensorType::Q2_K, two), twos);
  expectNear(decode(TensorType::Q3_K, three), threes);
  expectNear(decode(TensorType::Q6_K, six), sixes);
}

TEST(Blocks, SuperBlocksOfFourAndFiveBits) {
  Block four(144), five(176);
  for (Block *b : {&four, &five})
    b->half(0, 0.5f).half(2, 0.25f);
  std::vector<float> fours, fives;
  for (int i = 0; i < 256; ++i) {
    int j = i / 32, l = i % 32;
    auto affine = [&](const Block &b, int q) {
      const uint8_t *s = b.bytes.data() + 4;
      int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
      int min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
      return 0.5f * float(scale) * float(q) - 0.25f * float(min);
    };
    fours.push_back(affine(four, four.bytes[16 + 32 * (j / 2) + l] >> (4 * (j % 2)) & 15));
    fives.push_back(affine(five, (five.bytes[48 + 32 * (j / 2) + l] >> (4 * (j % 2)) & 15) + 16 * (five.bytes[16 + l] >> j & 1)));
  }
  expectNear(decode(TensorType::Q4_K, four), fours);
  expectNear(decode(TensorType::Q5_K, five), fives);
}

TEST(Blocks, Ternary) {
  Block two(66), one(54);
  for (uint8_t &byte : two.bytes)
    byte = uint8_t(byte % 3 | (byte / 3 % 3) << 2 | (byte / 9 % 3) << 4 | (byte / 27 % 3) << 6);
  two.half(64, 2.0f);
  std::vector<float> twos;
  for (int i = 0; i < 256; ++i)
    twos.push_back(2.0f * float((two.bytes[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4)) & 3) - 1));
  expectNear(decode(TensorType::TQ2_0, two), twos);

  // Five digits are written as the fraction digits / 243 of 256, rounded up.
  std::vector<float> ones(256);
  one.half(52, 2.0f);
  uint32_t state = 1;
  auto put = [&](size_t byte, size_t first, size_t step, int count) {
    int value = 0, digits[5];
    for (int n = 0; n < 5; ++n) {
      digits[n] = n < count ? int((state = state * 1664525u + 1013904223u) >> 24) % 3 : 0;
      value = value * 3 + digits[n];
    }
    one.bytes[byte] = uint8_t((value * 256 + 242) / 243);
    for (int n = 0; n < count; ++n)
      ones[first + size_t(n) * step] = 2.0f * float(digits[n] - 1);
  };
  for (size_t m = 0; m < 32; ++m)
    put(m, m, 32, 5);
  for (size_t m = 0; m < 16; ++m)
    put(32 + m, 160 + m, 16, 5);
  for (size_t m = 0; m < 4; ++m)
    put(48 + m, 240 + m, 4, 4);
  expectNear(decode(TensorType::TQ1_0, one), ones);
}

TEST(Blocks, Levels) {
  Block b(18);
  b.half(0, 0.5f);
  b.bytes[2] = 0xf0;
  std::vector<float> found = decode(TensorType::IQ4_NL, b);
  EXPECT_EQ(found[0], -63.5f);
  EXPECT_EQ(found[16], 56.5f);
}

} // namespace
