#include "ajour/Encoding/PackStored.h"

#include "ajour/Encoding/Half.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ajour::encoding {

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

int64_t storedStep(int64_t bits) { return 32 / (bits & -bits); }

int64_t storedGroup(const StoredFormat &format) { return roundUp(format.group, storedStep(format.bits)); }

int64_t storedGroups(const StoredFormat &format, int64_t k) { return ceilDiv(k, format.group); }

/// Bytes of one row of scales.
static int64_t scaleBytes(const StoredFormat &format) {
  return format.scales == StoredFormat::NoScales ? 0 : storedColumns * (format.scales == StoredFormat::HalfScales ? 2 : 4);
}

static int64_t groupBytes(const StoredFormat &format) {
  const int64_t zeros = format.zeros == StoredFormat::NoZeros     ? 0
                        : format.zeros == StoredFormat::ByteZeros ? storedColumns
                                                                  : scaleBytes(format);
  return storedGroup(format) * storedColumns * format.bits / 8 + scaleBytes(format) + zeros;
}

int64_t storedBlockBytes(const StoredFormat &format, int64_t k) {
  return roundUp(storedGroups(format, k) * groupBytes(format), 64);
}

int64_t storedBytes(const StoredFormat &format, int64_t k, int64_t n) {
  return ceilDiv(n, storedColumns) * storedBlockBytes(format, k);
}

/// Adds a code to the zeroed codes of a group: planes of 8, 4, 2 and 1 bits, the wide ones lowest and first.
static void putCode(uint8_t *codes, int64_t bits, int64_t column, int64_t p, uint32_t code) {
  const int64_t steps = storedStep(bits) / 4, step = p / 4 % steps;
  uint8_t *chunk = codes + p / (4 * steps) * steps * 8 * bits;
  for (int64_t plane = 8; plane > 0; plane /= 2) {
    if (!(bits & plane))
      continue;
    const int64_t sharing = 8 / plane;
    chunk[step / sharing * 64 + column * 4 + p % 4] |= uint8_t((code & ((1u << plane) - 1)) << (step % sharing * plane));
    code >>= plane;
    chunk += steps / sharing * 64;
  }
}

static void putParameter(const StoredFormat &format, float value, uint8_t *row, int64_t column) {
  if (format.scales == StoredFormat::FloatScales) {
    std::memcpy(row + column * 4, &value, 4);
  } else {
    const uint16_t half = floatToHalf(value);
    std::memcpy(row + column * 2, &half, 2);
  }
}

void packStored(const StoredFormat &format, const StoredView &weights, std::span<uint8_t> packed) {
  const WeightView<uint8_t> &codes = weights.codes;
  assert(int64_t(packed.size()) == storedBytes(format, codes.k, codes.n));
  const int64_t blockBytes = storedBlockBytes(format, codes.k), group = storedGroup(format);
  std::fill(packed.begin(), packed.end(), uint8_t(0));
  auto parameter = [](const WeightView<float> &view, int64_t g, int64_t j) {
    return view.data[g * view.strideK + j * view.strideN];
  };
  for (int64_t j = 0; j < roundUp(codes.n, storedColumns); ++j) {
    const int64_t column = j % storedColumns;
    for (int64_t g = 0; g < storedGroups(format, codes.k); ++g) {
      uint8_t *values = packed.data() + j / storedColumns * blockBytes + g * groupBytes(format);
      const int64_t first = g * format.group, last = std::min(codes.k, first + format.group);
      for (int64_t p = 0; p < group; ++p)
        putCode(values, format.bits, column, p,
                j < codes.n && first + p < last ? codes.data[(first + p) * codes.strideK + j * codes.strideN]
                                                : format.padCode);
      uint8_t *scales = values + group * storedColumns * format.bits / 8, *zeros = scales + scaleBytes(format);
      if (j >= codes.n)
        continue;
      if (format.scales != StoredFormat::NoScales)
        putParameter(format, parameter(weights.scales, g, j), scales, column);
      if (format.zeros == StoredFormat::ByteZeros)
        zeros[column] = uint8_t(parameter(weights.zeros, g, j));
      else if (format.zeros == StoredFormat::RealZeros)
        putParameter(format, parameter(weights.zeros, g, j), zeros, column);
    }
  }
}

void packHalves(const WeightView<uint16_t> &weights, std::span<uint16_t> packed) {
  assert(int64_t(packed.size()) == roundUp(weights.n, storedColumns) * weights.k);
  for (int64_t j = 0; j < roundUp(weights.n, storedColumns); ++j) {
    uint16_t *block = packed.data() + j / storedColumns * weights.k * storedColumns;
    for (int64_t p = 0; p < weights.k; ++p)
      block[p * storedColumns + j % storedColumns] =
          j < weights.n ? weights.data[p * weights.strideK + j * weights.strideN] : uint16_t(0);
  }
}

} // namespace ajour::encoding
