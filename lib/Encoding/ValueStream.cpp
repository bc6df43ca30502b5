#include "ValueStream.h"

#include <algorithm>
#include <bit>

#include "ajour/Encoding/Half.h"

namespace ajour::encoding {

//===----------------------------------------------------------------------===//
// Floating point numbers of some type
//===----------------------------------------------------------------------===//

static bool isFloatType(uint32_t type) { return type == AJOUR_F32 || type == AJOUR_F16 || type == AJOUR_BF16; }

static uint32_t toBits(float value, uint32_t type) {
  return type == AJOUR_F32   ? std::bit_cast<uint32_t>(value)
         : type == AJOUR_F16 ? floatToHalf(value)
                             : floatToBFloat(value);
}

static float fromBits(uint32_t bits, uint32_t type) {
  return type == AJOUR_F32   ? std::bit_cast<float>(bits)
         : type == AJOUR_F16 ? halfToFloat(static_cast<uint16_t>(bits))
                             : bfloatToFloat(static_cast<uint16_t>(bits));
}

static unsigned floatBits(uint32_t type) { return ajour_element_size(type) * 8; }

static void writeFloats(std::span<const float> numbers, uint32_t type, BitWriter &out) {
  for (float number : numbers)
    out.put(toBits(number, type), floatBits(type));
}

static void readFloats(BitReader &in, uint32_t type, std::span<float> numbers) {
  for (float &number : numbers)
    number = fromBits(static_cast<uint32_t>(in.get(floatBits(type))), type);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

int64_t granularityUnits(const Values &values, const WeightShape &shape) {
  switch (values.granularity) {
  case Granularity::Tensor:
    return 1;
  case Granularity::Channel:
    return shape.n;
  case Granularity::Group:
    return shape.n * ceilDiv(shape.k, values.group);
  }
  return 0;
}

int64_t valueBits(const Values &values) { return values.kind == ValuesKind::Float ? floatBits(values.type) : values.bits; }

int64_t unitOf(const Values &values, const WeightShape &shape, uint32_t position) {
  switch (values.granularity) {
  case Granularity::Tensor:
    return 0;
  case Granularity::Channel:
    return position / shape.k;
  case Granularity::Group:
    return position / shape.k * ceilDiv(shape.k, values.group) + position % shape.k / values.group;
  }
  return 0;
}

static int64_t lowestCode(const Values &values) { return values.isSigned ? -(int64_t(1) << (values.bits - 1)) : 0; }

static bool isCode(const Values &values, int64_t code) {
  const int64_t lowest = lowestCode(values);
  return code >= lowest && code < lowest + (int64_t(1) << values.bits);
}

std::string checkValues(const Values &values, const WeightShape &shape) {
  if (!isFloatType(values.type))
    return "type is " + number(values.type) + "; it may be f32, f16 or bf16";
  if (values.kind == ValuesKind::Float)
    return values.granularity == Granularity::Tensor && values.bits == 0
               ? ""
               : "granularity and bits are for integers and codebooks, not for floating point numbers";
  if (values.bits < 1 || values.bits > 8)
    return "bits is " + number(values.bits) + "; it may be 1 to 8";
  if (values.granularity == Granularity::Group && (values.group < 1 || values.group > INT32_MAX))
    return "group is " + number(values.group) + " columns; it must be at least one";
  return "";
}

std::string checkParts(const Weight &weight, const Values &values) {
  const size_t elements = weight.shape.elements(), units = granularityUnits(values, weight.shape);
  auto part = [](const char *name, size_t found, size_t wanted) {
    return found == wanted ? std::string()
                           : std::string(name) + " has " + number(found) + " entries instead of " + number(wanted);
  };
  const bool isInt = values.kind == ValuesKind::Int;
  std::string error = isInt ? part("codes", weight.codes.size(), elements) : part("numbers", weight.numbers.size(), elements);
  if (error.empty() && isInt)
    error = part("scales", weight.scales.size(), units);
  if (error.empty() && isInt)
    error = part("zero points", weight.zeroPoints.size(), values.hasZeroPoints ? units : 0);
  if (error.empty() && values.kind == ValuesKind::Codebook)
    error = part("codebook", weight.entries.size(), units << values.bits);
  return error;
}

int64_t scaleBytes(const Values &values, const WeightShape &shape) {
  const int64_t units = granularityUnits(values, shape), width = ajour_element_size(values.type);
  switch (values.kind) {
  case ValuesKind::Float:
    return 0;
  case ValuesKind::Int:
    return units * width + (values.hasZeroPoints ? ceilDiv(units * values.bits, 8) : 0);
  case ValuesKind::Codebook:
    return (units << values.bits) * width;
  }
  return 0;
}

std::string writeScales(const Weight &weight, const Values &values, std::vector<uint8_t> &bytes) {
  BitWriter out;
  if (values.kind == ValuesKind::Int) {
    writeFloats(weight.scales, values.type, out);
    for (size_t i = 0; i < weight.zeroPoints.size(); ++i) {
      if (!isCode(values, weight.zeroPoints[i]))
        return "zero point " + number(weight.zeroPoints[i]) + " of unit " + number(i) + " does not fit " +
               number(values.bits) + " bits";
      out.put(weight.zeroPoints[i] - lowestCode(values), values.bits);
    }
  } else if (values.kind == ValuesKind::Codebook) {
    writeFloats(weight.entries, values.type, out);
  }
  bytes = out.take();
  return "";
}

std::string readScales(std::span<const uint8_t> bytes, const Values &values, Weight &weight) {
  const int64_t units = granularityUnits(values, weight.shape);
  BitReader in(bytes);
  if (values.kind == ValuesKind::Int) {
    weight.scales.resize(units);
    readFloats(in, values.type, weight.scales);
    weight.zeroPoints.resize(values.hasZeroPoints ? units : 0);
    for (int16_t &zeroPoint : weight.zeroPoints)
      zeroPoint = static_cast<int16_t>(static_cast<int64_t>(in.get(values.bits)) + lowestCode(values));
  } else if (values.kind == ValuesKind::Codebook) {
    weight.entries.resize(units << values.bits);
    readFloats(in, values.type, weight.entries);
  }
  return in.atEnd() ? "" : "scales are followed by bits that are not zero";
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {
/// Finds the index of a number in each unit's codebook.
class CodebookIndex {
public:
  CodebookIndex(const Weight &weight, const Values &values) : weight(weight), size(int64_t(1) << values.bits) {}

  /// -1: there is none. Of equal entries the first; -0 equals 0.
  int64_t find(int64_t unit, float number) {
    if (unit != sortedUnit) {
      sorted.clear();
      for (int64_t i = 0; i < size; ++i)
        sorted.push_back({weight.entries[unit * size + i], i});
      // NaN equals nothing and would break the order.
      std::erase_if(sorted, [](const auto &entry) { return entry.first != entry.first; });
      std::sort(sorted.begin(), sorted.end());
      sortedUnit = unit;
    }
    auto it = std::lower_bound(sorted.begin(), sorted.end(), number,
                               [](const auto &entry, float value) { return entry.first < value; });
    return it != sorted.end() && it->first == number ? it->second : -1;
  }

private:
  const Weight &weight;
  int64_t size, sortedUnit = -1;
  std::vector<std::pair<float, int64_t>> sorted;
};
} // namespace

static std::string atElement(const WeightShape &shape, uint32_t position) {
  return place(position / shape.k, position % shape.k);
}

std::string writeElements(const Weight &weight, const Values &values, const Positions &positions,
                          std::vector<uint8_t> &bytes) {
  BitWriter out;
  CodebookIndex codebook(weight, values);
  for (uint32_t position : positions.kept) {
    if (values.kind == ValuesKind::Float) {
      out.put(toBits(weight.numbers[position], values.type), floatBits(values.type));
    } else if (values.kind == ValuesKind::Int) {
      if (!isCode(values, weight.codes[position]))
        return "the code " + number(weight.codes[position]) + " at " + atElement(weight.shape, position) +
               " does not fit " + number(values.bits) + " bits";
      out.put(weight.codes[position] - lowestCode(values), values.bits);
    } else {
      const int64_t index = codebook.find(unitOf(values, weight.shape, position), weight.numbers[position]);
      if (index < 0)
        return "the number at " + atElement(weight.shape, position) + " is not in its codebook" +
               (weight.numbers[position] == 0 ? "; the structure stores zeros, so 0 must be an entry" : "");
      out.put(index, values.bits);
    }
  }
  bytes = out.take();
  return "";
}

/// Gives all elements the value that stands for zero.
static void fillZeros(const Values &values, Weight &weight) {
  const WeightShape &shape = weight.shape;
  if (values.kind != ValuesKind::Int) {
    weight.numbers.assign(shape.elements(), 0.0f);
    return;
  }
  weight.codes.assign(shape.elements(), 0);
  if (values.hasZeroPoints)
    for (size_t i = 0; i < weight.codes.size(); ++i)
      weight.codes[i] = weight.zeroPoints[unitOf(values, shape, static_cast<uint32_t>(i))];
}

std::string readElements(std::span<const uint8_t> bytes, const Values &values, const Positions &positions, int64_t count,
                         bool store, Weight &weight) {
  BitReader in(bytes);
  if (store)
    fillZeros(values, weight);
  const unsigned bits = static_cast<unsigned>(valueBits(values));
  for (size_t i = 0; i < positions.kept.size(); ++i) {
    const uint32_t position = positions.kept[i];
    const uint64_t raw = in.get(bits);
    if (!store || static_cast<int64_t>(i) >= count)
      continue;
    if (values.kind == ValuesKind::Float)
      weight.numbers[position] = fromBits(static_cast<uint32_t>(raw), values.type);
    else if (values.kind == ValuesKind::Int)
      weight.codes[position] = static_cast<int16_t>(static_cast<int64_t>(raw) + lowestCode(values));
    else
      weight.numbers[position] = weight.entries[(unitOf(values, weight.shape, position) << values.bits) + raw];
  }
  return in.atEnd() ? "" : "values are followed by bits that are not zero";
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

std::vector<uint8_t> nonzeroMask(const Weight &weight, const Values &values) {
  if (values.kind != ValuesKind::Int)
    return nonzeroMask(weight.numbers);
  std::vector<uint8_t> mask(weight.codes.size());
  for (size_t i = 0; i < mask.size(); ++i)
    mask[i] = weight.codes[i] !=
              (values.hasZeroPoints ? weight.zeroPoints[unitOf(values, weight.shape, static_cast<uint32_t>(i))] : 0);
  return mask;
}

std::vector<uint8_t> nonzeroMask(std::span<const float> data) {
  std::vector<uint8_t> mask(data.size());
  for (size_t i = 0; i < mask.size(); ++i)
    mask[i] = data[i] != 0;
  return mask;
}

std::vector<uint8_t> nonzeroMask(std::span<const int8_t> data, const WeightShape &shape, std::span<const int32_t> zero) {
  std::vector<uint8_t> mask(data.size());
  for (size_t i = 0; i < mask.size(); ++i)
    mask[i] = data[i] != (zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : i / shape.k]);
  return mask;
}

} // namespace ajour::encoding
