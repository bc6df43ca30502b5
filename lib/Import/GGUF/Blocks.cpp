//===- Blocks.cpp - quantised blocks of GGUF tensors -------------------------------===//
#include "Blocks.h"

#include "ajour/Encoding/Half.h"

#include <cstring>

using namespace llvm;

namespace ajour::gguf {

namespace {

uint16_t halfAt(const uint8_t *at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

/// Collects one tensor's groups, block by block.
class Writer {
public:
  explicit Writer(Grouped &result, size_t elements) : r(result) { r.values.reserve(elements); }

  void value(int q) { r.values.push_back(int8_t(q)); }
  /// Of a group or of a super-block.
  void scale(uint16_t scale) { r.halfScales.push_back(scale); }
  void affine(uint16_t scale, uint16_t offset) {
    r.halfScales.push_back(scale);
    r.offsets.push_back(offset);
  }
  /// Of a group in a super-block.
  void codes(int scale) { r.scaleCodes.push_back(int8_t(scale)); }
  void codes(int scale, int offset) {
    codes(scale);
    r.offsetCodes.push_back(int8_t(offset));
  }

private:
  Grouped &r;
};

/// The f16 of the opposite sign.
uint16_t negated(uint16_t half) { return half ^ 0x8000; }

// One function for each type: a block to values and parameters.

void q4_0(const uint8_t *b, Writer &w) {
  w.scale(halfAt(b));
  for (int half : {0, 4})
    for (int j = 0; j < 16; ++j)
      w.value((b[2 + j] >> half & 15) - 8);
}

void q4_1(const uint8_t *b, Writer &w) {
  w.affine(halfAt(b), halfAt(b + 2));
  for (int half : {0, 4})
    for (int j = 0; j < 16; ++j)
      w.value(b[4 + j] >> half & 15);
}

/// The 32 values of 5 bits whose fifth bits stand in `high`.
void fives(const uint8_t *high, const uint8_t *low, int bias, Writer &w) {
  uint32_t bits;
  std::memcpy(&bits, high, 4);
  for (int half : {0, 1})
    for (int j = 0; j < 16; ++j)
      w.value(int((low[j] >> (4 * half) & 15) | (bits >> (j + 16 * half) & 1) << 4) - bias);
}

void q5_0(const uint8_t *b, Writer &w) {
  w.scale(halfAt(b));
  fives(b + 2, b + 6, 16, w);
}

void q5_1(const uint8_t *b, Writer &w) {
  w.affine(halfAt(b), halfAt(b + 2));
  fives(b + 4, b + 8, 0, w);
}

void q8_0(const uint8_t *b, Writer &w) {
  w.scale(halfAt(b));
  for (int j = 0; j < 32; ++j)
    w.value(int8_t(b[2 + j]));
}

void iq4_nl(const uint8_t *b, Writer &w) {
  static constexpr int8_t levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  w.scale(halfAt(b));
  for (int half : {0, 4})
    for (int j = 0; j < 16; ++j)
      w.value(levels[b[2 + j] >> half & 15]);
}

void q2_k(const uint8_t *b, Writer &w) {
  const uint8_t *scales = b, *q = b + 16;
  w.affine(halfAt(b + 80), negated(halfAt(b + 82)));
  for (int part = 0; part < 2; ++part, q += 32)
    for (int shift = 0; shift < 8; shift += 2)
      for (int half = 0; half < 2; ++half) {
        uint8_t s = *scales++;
        w.codes(s & 15, s >> 4);
        for (int l = 0; l < 16; ++l)
          w.value(q[16 * half + l] >> shift & 3);
      }
}

void q3_k(const uint8_t *b, Writer &w) {
  const uint8_t *high = b, *q = b + 32, *packed = b + 96;
  w.scale(halfAt(b + 108));
  int group = 0;
  for (int part = 0; part < 2; ++part, q += 32)
    for (int shift = 0; shift < 8; shift += 2)
      for (int half = 0; half < 2; ++half, ++group) {
        int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
        int top = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
        w.codes((low | top << 4) - 32);
        int bit = part * 4 + shift / 2;
        for (int l = 16 * half; l < 16 * half + 16; ++l)
          w.value((q[l] >> shift & 3) - (high[l] >> bit & 1 ? 0 : 4));
      }
}

/// Scale and minimum `j` of eight, 6 bits each, in 12 bytes.
std::pair<int, int> scaleAndMin(const uint8_t *q, int j) {
  if (j < 4)
    return {q[j] & 63, q[j + 4] & 63};
  return {(q[j + 4] & 15) | (q[j - 4] >> 6) << 4, q[j + 4] >> 4 | (q[j] >> 6) << 4};
}

void q4_k(const uint8_t *b, Writer &w) {
  w.affine(halfAt(b), negated(halfAt(b + 2)));
  for (int j = 0; j < 8; ++j) {
    auto [scale, min] = scaleAndMin(b + 4, j);
    w.codes(scale, min);
    const uint8_t *q = b + 16 + 32 * (j / 2);
    for (int l = 0; l < 32; ++l)
      w.value(q[l] >> (4 * (j % 2)) & 15);
  }
}

void q5_k(const uint8_t *b, Writer &w) {
  w.affine(halfAt(b), negated(halfAt(b + 2)));
  const uint8_t *high = b + 16;
  for (int j = 0; j < 8; ++j) {
    auto [scale, min] = scaleAndMin(b + 4, j);
    w.codes(scale, min);
    const uint8_t *q = b + 48 + 32 * (j / 2);
    for (int l = 0; l < 32; ++l)
      w.value((q[l] >> (4 * (j % 2)) & 15) | (high[l] >> j & 1) << 4);
  }
}

void q6_k(const uint8_t *b, Writer &w) {
  w.scale(halfAt(b + 208));
  for (int part = 0; part < 2; ++part) {
    const uint8_t *low = b + 64 * part, *high = b + 128 + 32 * part;
    const int8_t *scales = reinterpret_cast<const int8_t *>(b + 192 + 8 * part);
    for (int quarter = 0; quarter < 4; ++quarter)
      for (int half = 0; half < 2; ++half) {
        w.codes(scales[2 * quarter + half]);
        for (int l = 16 * half; l < 16 * half + 16; ++l) {
          int nibble = low[l + 32 * (quarter % 2)] >> (4 * (quarter / 2)) & 15;
          w.value((nibble | (high[l] >> (2 * quarter) & 3) << 4) - 32);
        }
      }
  }
}

/// Five digits to the base 3 in a byte, as a fraction of 256: digit n of the byte.
int ternaryDigit(uint8_t byte, int n) {
  static constexpr uint8_t powers[5] = {1, 3, 9, 27, 81};
  return (uint8_t(byte * powers[n]) * 3) >> 8;
}

void tq1_0(const uint8_t *b, Writer &w) {
  w.scale(halfAt(b + 52));
  for (auto [from, count, digits] : {std::tuple(0, 32, 5), {32, 16, 5}, {48, 4, 4}})
    for (int n = 0; n < digits; ++n)
      for (int m = 0; m < count; ++m)
        w.value(ternaryDigit(b[from + m], n) - 1);
}

void tq2_0(const uint8_t *b, Writer &w) {
  w.scale(halfAt(b + 64));
  for (int part = 0; part < 64; part += 32)
    for (int shift = 0; shift < 8; shift += 2)
      for (int m = 0; m < 32; ++m)
        w.value((b[part + m] >> shift & 3) - 1);
}

struct BlockRow {
  TensorType type;
  void (*unpack)(const uint8_t *, Writer &);
  int64_t group, run;
  unsigned bits;
  bool isUnsigned;
};

const BlockRow rows[] = {
    {TensorType::Q4_0, q4_0, 32, 0, 4, false}, {TensorType::Q4_1, q4_1, 32, 0, 4, true},  {TensorType::Q5_0, q5_0, 32, 0, 5, false},
    {TensorType::Q5_1, q5_1, 32, 0, 5, true},  {TensorType::Q8_0, q8_0, 32, 0, 8, false}, {TensorType::Q2_K, q2_k, 16, 16, 2, true},
    {TensorType::Q3_K, q3_k, 16, 16, 3, false}, {TensorType::Q4_K, q4_k, 32, 8, 4, true},  {TensorType::Q5_K, q5_k, 32, 8, 5, true},
    {TensorType::Q6_K, q6_k, 16, 16, 6, false}, {TensorType::IQ4_NL, iq4_nl, 32, 0, 8, false},
    {TensorType::TQ1_0, tq1_0, 256, 0, 2, false}, {TensorType::TQ2_0, tq2_0, 256, 0, 2, false},
};

const BlockRow *findRow(TensorType type) {
  for (const BlockRow &row : rows)
    if (row.type == type)
      return &row;
  return nullptr;
}

} // namespace

bool isQuantized(TensorType type) { return findRow(type) != nullptr; }

Grouped unpackBlocks(const TypeInfo &type, ArrayRef<char> bytes) {
  const BlockRow &row = *findRow(type.type);
  Grouped result;
  result.group = row.group;
  result.run = row.run;
  result.bits = row.bits;
  result.isUnsigned = row.isUnsigned;
  size_t blocks = bytes.size() / size_t(type.blockBytes);
  Writer writer(result, blocks * size_t(type.blockElements));
  for (size_t i = 0; i < blocks; ++i)
    row.unpack(reinterpret_cast<const uint8_t *>(bytes.data()) + i * size_t(type.blockBytes), writer);
  return result;
}

} // namespace ajour::gguf
