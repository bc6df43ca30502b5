//===- HostTensor.cpp - A tensor in ordinary memory -----------------------===//

#include "ToolSupport/HostTensor.h"

#include "ajour/Encoding/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ajour::tools {

using namespace ajour::encoding;

std::optional<uint64_t> byteSize(const std::vector<int64_t> &shape, uint64_t elementSize) {
  constexpr uint64_t limit = uint64_t(1) << 62;
  // The other sizes of an empty tensor must be sane too: strides are products of them.
  uint64_t product = elementSize;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    empty |= size == 0;
    if (size == 0)
      continue;
    if (product > limit / static_cast<uint64_t>(size))
      return std::nullopt;
    product *= static_cast<uint64_t>(size);
  }
  return empty ? 0 : product;
}

HostTensor makeTensor(uint32_t type, std::vector<int64_t> shape) {
  std::optional<uint64_t> bytes = byteSize(shape, ajour_element_size(type));
  if (!bytes)
    throw ToolError("a tensor of shape " + shapeText(shape) + " is too large");
  HostTensor tensor{type, std::move(shape), {}};
  tensor.data.resize(*bytes);
  return tensor;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + (size < 0 ? std::string("?") : std::to_string(size));
  return text;
}

uint32_t elementTypeFromName(std::string_view name) {
#define AJOUR_ROW(id, enumerator, text, bits, npy)                                                                     \
  if (name == text)                                                                                                    \
    return id;
  AJOUR_ELEMENT_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
  if (!name.empty() && name[0] == 'u')
    return name.substr(0, 2) == "ui" ? 0 : elementTypeFromName("ui" + std::string(name.substr(1)));
  return 0;
}

bool isIntegerType(uint32_t type) { return type >= AJOUR_I8 && type <= AJOUR_BOOL; }

int64_t integerMin(uint32_t type) {
  switch (type) {
  case AJOUR_I8:
    return std::numeric_limits<int8_t>::min();
  case AJOUR_I16:
    return std::numeric_limits<int16_t>::min();
  case AJOUR_I32:
    return std::numeric_limits<int32_t>::min();
  case AJOUR_I64:
    return std::numeric_limits<int64_t>::min();
  default:
    return 0;
  }
}

int64_t integerMax(uint32_t type) {
  switch (type) {
  case AJOUR_BOOL:
    return 1;
  case AJOUR_I8:
    return std::numeric_limits<int8_t>::max();
  case AJOUR_U8:
    return std::numeric_limits<uint8_t>::max();
  case AJOUR_I16:
    return std::numeric_limits<int16_t>::max();
  case AJOUR_U16:
    return std::numeric_limits<uint16_t>::max();
  case AJOUR_I32:
    return std::numeric_limits<int32_t>::max();
  case AJOUR_U32:
    return std::numeric_limits<uint32_t>::max();
  default:
    return std::numeric_limits<int64_t>::max();
  }
}

namespace {

template <typename T> T load(const HostTensor &tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> void store(HostTensor &tensor, int64_t index, T value) {
  std::memcpy(tensor.data.data() + index * sizeof(T), &value, sizeof(T));
}

/// Rounds half to even and saturates to the type; NaN becomes 0.
int64_t roundToInteger(double value, uint32_t type) {
  if (std::isnan(value))
    return 0;
  double rounded = std::nearbyint(value);
  int64_t low = integerMin(type), high = integerMax(type);
  if (rounded <= static_cast<double>(low))
    return low;
  if (rounded >= static_cast<double>(high))
    return high;
  return static_cast<int64_t>(rounded);
}

} // namespace

int64_t getInteger(const HostTensor &tensor, int64_t index) {
  switch (tensor.type) {
  case AJOUR_BOOL:
    return load<uint8_t>(tensor, index) != 0;
  case AJOUR_I8:
    return load<int8_t>(tensor, index);
  case AJOUR_U8:
    return load<uint8_t>(tensor, index);
  case AJOUR_I16:
    return load<int16_t>(tensor, index);
  case AJOUR_U16:
    return load<uint16_t>(tensor, index);
  case AJOUR_I32:
    return load<int32_t>(tensor, index);
  case AJOUR_U32:
    return load<uint32_t>(tensor, index);
  default:
    return load<int64_t>(tensor, index);
  }
}

double getReal(const HostTensor &tensor, int64_t index) {
  switch (tensor.type) {
  case AJOUR_F32:
    return load<float>(tensor, index);
  case AJOUR_F16:
    return halfToFloat(load<uint16_t>(tensor, index));
  case AJOUR_BF16:
    return bfloatToFloat(load<uint16_t>(tensor, index));
  case AJOUR_F64:
    return load<double>(tensor, index);
  case AJOUR_U64:
    return static_cast<double>(load<uint64_t>(tensor, index));
  default:
    return static_cast<double>(getInteger(tensor, index));
  }
}

void setInteger(HostTensor &tensor, int64_t index, int64_t value) {
  switch (ajour_element_size(tensor.type)) {
  case 1:
    return store(tensor, index, static_cast<uint8_t>(value));
  case 2:
    return store(tensor, index, static_cast<uint16_t>(value));
  case 4:
    return store(tensor, index, static_cast<uint32_t>(value));
  default:
    return store(tensor, index, static_cast<uint64_t>(value));
  }
}

void setReal(HostTensor &tensor, int64_t index, double value) {
  switch (tensor.type) {
  case AJOUR_F32:
    return store(tensor, index, static_cast<float>(value));
  case AJOUR_F16:
    return store(tensor, index, floatToHalf(static_cast<float>(value)));
  case AJOUR_BF16:
    return store(tensor, index, floatToBFloat(static_cast<float>(value)));
  case AJOUR_F64:
    return store(tensor, index, value);
  default:
    return setInteger(tensor, index, roundToInteger(value, tensor.type));
  }
}

double dequantize(const TensorInfo &info, double stored) {
  return info.scale == 0 ? stored : (stored - info.zeroPoint) * static_cast<double>(info.scale);
}

void setQuantized(HostTensor &tensor, int64_t index, double real, const TensorInfo &info) {
  setReal(tensor, index, std::nearbyint(real / static_cast<double>(info.scale)) + info.zeroPoint);
}

namespace {

/// Element `index` does not fit the model's tensor.
[[noreturn]] void refuseValue(const HostTensor &tensor, int64_t index, const TensorInfo &info,
                              const std::string &file) {
  char value[40];
  std::snprintf(value, sizeof(value), "%.9g", getReal(tensor, index));
  throw ToolError(file + ": element " + std::to_string(index) + " is " + value + ", which input '" + info.name +
                  "' of type " + ajour_element_name(info.type) + " cannot hold; give the file in that type");
}

bool integerFits(const HostTensor &tensor, int64_t index, uint32_t type) {
  int64_t value = getInteger(tensor, index);
  if (tensor.type == AJOUR_U64 && value < 0)
    return type == AJOUR_U64;
  return value >= integerMin(type) && value <= integerMax(type);
}

bool realFits(double value, uint32_t type) {
  return value == std::nearbyint(value) && value >= static_cast<double>(integerMin(type)) &&
         value <= static_cast<double>(integerMax(type));
}

} // namespace

HostTensor convertTensor(HostTensor tensor, const TensorInfo &info, const std::string &file) {
  if (tensor.type == AJOUR_U16 && info.type == AJOUR_BF16)
    tensor.type = AJOUR_BF16;
  if (tensor.type == info.type)
    return tensor;
  HostTensor result = makeTensor(info.type, tensor.shape);
  bool fromInteger = isIntegerType(tensor.type), toInteger = isIntegerType(info.type);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i) {
    if (!toInteger) {
      setReal(result, i, getReal(tensor, i));
    } else if (fromInteger) {
      if (!integerFits(tensor, i, info.type))
        refuseValue(tensor, i, info, file);
      setInteger(result, i, getInteger(tensor, i));
    } else if (info.scale != 0) {
      setQuantized(result, i, getReal(tensor, i), info);
    } else {
      if (!realFits(getReal(tensor, i), info.type))
        refuseValue(tensor, i, info, file);
      setReal(result, i, getReal(tensor, i));
    }
  }
  return result;
}

} // namespace ajour::tools
