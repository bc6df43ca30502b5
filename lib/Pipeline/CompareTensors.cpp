//===- CompareTensors.cpp - how two tensors differ -----------------------------------------===//
#include "ajour/Pipeline/Verify.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace ajour {

namespace {

template <typename T> T load(const HostTensor &tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

double loadReal(const HostTensor &tensor, int64_t index) {
  switch (tensor.elementType) {
  case AJOUR_F32:
    return load<float>(tensor, index);
  case AJOUR_F64:
    return load<double>(tensor, index);
  case AJOUR_F16:
    return llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, load<uint16_t>(tensor, index))).convertToDouble();
  default:
    return llvm::APFloat(llvm::APFloat::BFloat(), llvm::APInt(16, load<uint16_t>(tensor, index))).convertToDouble();
  }
}

/// Any integer; unsigned 64-bit values keep their bits.
int64_t loadInteger(const HostTensor &tensor, int64_t index) {
  switch (tensor.elementType) {
  case AJOUR_I8:
    return load<int8_t>(tensor, index);
  case AJOUR_U8:
  case AJOUR_BOOL:
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

bool isFloat(uint32_t type) {
  return type == AJOUR_F32 || type == AJOUR_F64 || type == AJOUR_F16 || type == AJOUR_BF16;
}

/// One step of the format relative to the number: narrow floats cannot be closer.
double formatStep(uint32_t type) { return type == AJOUR_F16 ? 0x1p-10 : type == AJOUR_BF16 ? 0x1p-7 : 0; }

/// Sums for the cosine of the angle between two tensors.
struct Angle {
  double dot = 0, found = 0, expected = 0;
  void add(double f, double e) {
    if (!std::isfinite(f) || !std::isfinite(e))
      return;
    dot += f * e;
    found += f * f;
    expected += e * e;
  }
  double cosine() const {
    if (found == 0 || expected == 0)
      return found == expected ? 1 : 0;
    return dot / std::sqrt(found * expected);
  }
};

/// Notes one element; `error` is how far off it is, in units that `worst` keeps.
void note(TensorDifference &difference, double &worst, double error, int64_t index, double found, double expected,
          bool wrong) {
  difference.count += wrong;
  difference.differs |= wrong;
  if (error <= worst)
    return;
  worst = error;
  difference.index = index;
  difference.found = found;
  difference.expected = expected;
}

void compareFloats(const HostTensor &found, const HostTensor &expected, double tolerance, TensorDifference &out) {
  tolerance = std::max(tolerance, formatStep(expected.elementType));
  int64_t count = expected.numElements();
  double largest = verifyTinyValue, worst = 0;
  for (int64_t i = 0; i < count; ++i)
    if (double e = std::fabs(loadReal(expected, i)); std::isfinite(e))
      largest = std::max(largest, e);
  Angle angle;
  for (int64_t i = 0; i < count; ++i) {
    double f = loadReal(found, i), e = loadReal(expected, i);
    angle.add(f, e);
    bool same = f == e || (std::isnan(f) && std::isnan(e));
    if (same)
      continue;
    double error = std::fabs(f - e);
    if (!std::isfinite(error)) {
      note(out, worst, std::numeric_limits<double>::infinity(), i, f, e, true);
      out.maxAbsolute = std::numeric_limits<double>::infinity();
      continue;
    }
    out.maxAbsolute = std::max(out.maxAbsolute, error);
    if (e != 0)
      out.maxRelative = std::max(out.maxRelative, error / std::fabs(e));
    double scaled = error / (largest + std::fabs(e));
    note(out, worst, scaled, i, f, e, scaled > tolerance);
  }
  out.cosine = angle.cosine();
}

void compareIntegers(const HostTensor &found, const HostTensor &expected, int64_t steps, TensorDifference &out) {
  double worst = 0;
  Angle angle;
  for (int64_t i = 0, count = expected.numElements(); i < count; ++i) {
    int64_t f = loadInteger(found, i), e = loadInteger(expected, i);
    angle.add(double(f), double(e));
    if (f == e)
      continue;
    uint64_t error = f > e ? uint64_t(f) - uint64_t(e) : uint64_t(e) - uint64_t(f);
    out.maxAbsolute = std::max(out.maxAbsolute, double(error));
    if (e != 0)
      out.maxRelative = std::max(out.maxRelative, double(error) / std::fabs(double(e)));
    note(out, worst, double(error), i, double(f), double(e), error > uint64_t(steps));
  }
  out.cosine = angle.cosine();
}

} // namespace

TensorDifference compareTensors(const HostTensor &found, const HostTensor &expected, double tolerance, int64_t steps) {
  TensorDifference difference;
  difference.shape = expected.shape;
  if (found.elementType != expected.elementType || found.shape != expected.shape ||
      found.data.size() != expected.data.size()) {
    difference.differs = true;
    difference.cosine = 0;
    difference.count = expected.numElements();
    return difference;
  }
  if (isFloat(expected.elementType))
    compareFloats(found, expected, tolerance, difference);
  else
    compareIntegers(found, expected, steps, difference);
  return difference;
}

} // namespace ajour
