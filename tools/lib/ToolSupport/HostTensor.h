//===- HostTensor.h - A tensor in ordinary memory ---------------*- C++ -*-===//
//
// What the tools read from files, hand to a model and write back.
//
//===----------------------------------------------------------------------===//

#ifndef AJOUR_TOOLS_HOSTTENSOR_H
#define AJOUR_TOOLS_HOSTTENSOR_H

#include "ajour/ABI/ElementTypes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ajour::tools {

/// The work failed: the message is complete, in lower case, and names the file. A program that catches it prints it and
/// exits with 1.
struct ToolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The same where the message is lines of the compiler's, which say themselves that they are errors ("FILE: error: what"); empty if
/// they have been printed.
struct DiagnosedError : ToolError {
  using ToolError::ToolError;
};

/// Elements in C order. An empty shape is a scalar.
struct HostTensor {
  uint32_t type = AJOUR_F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  /// Number of elements that `data` holds.
  int64_t numElements() const {
    uint32_t size = ajour_element_size(type);
    return size ? static_cast<int64_t>(data.size() / size) : 0;
  }
};

/// What a model says of one of its inputs or outputs.
struct TensorInfo {
  std::string name;
  uint32_t type = AJOUR_F32;
  /// Sizes; -1 where the caller decides.
  std::vector<int64_t> shape;
  /// real = (stored - zeroPoint) * scale; scale 0: not quantised.
  float scale = 0;
  int32_t zeroPoint = 0;
};

/// Product of the sizes times `elementSize`, or nothing if a size is negative or the product of those that
/// are not 0 exceeds 2^62.
std::optional<uint64_t> byteSize(const std::vector<int64_t> &shape, uint64_t elementSize);

/// A tensor of zeros. Throws ToolError when the size overflows.
HostTensor makeTensor(uint32_t type, std::vector<int64_t> shape);

/// "1x3x224x224"; "?" for -1; "scalar" for an empty shape.
std::string shapeText(const std::vector<int64_t> &shape);

/// The element type named `name` ("f32", "ui8", ...; "u8" is accepted for "ui8"), or 0.
uint32_t elementTypeFromName(std::string_view name);

/// True for the signed, unsigned and bool types.
bool isIntegerType(uint32_t type);

/// Smallest and largest value of an integer type that an int64 holds (for ui64, 2^63 - 1 above).
int64_t integerMin(uint32_t type);
int64_t integerMax(uint32_t type);

/// Element `index` as a double (64-bit integers may be rounded).
double getReal(const HostTensor &tensor, int64_t index);

/// Element `index` of an integer tensor; ui64 values above 2^63 - 1 wrap.
int64_t getInteger(const HostTensor &tensor, int64_t index);

/// Stores `value`: floats are rounded to nearest even; integers are rounded to nearest even and saturated.
void setReal(HostTensor &tensor, int64_t index, double value);

/// Stores the low bits of `value` in an integer tensor.
void setInteger(HostTensor &tensor, int64_t index, int64_t value);

/// The value that a quantised element stands for; the element itself where `info.scale` is 0.
double dequantize(const TensorInfo &info, double stored);

/// Stores a real number in a quantised integer tensor: round half to even of real / scale + zeroPoint, saturated.
void setQuantized(HostTensor &tensor, int64_t index, double real, const TensorInfo &info);

/// Converts `tensor` to the element type of `info`, keeping its values.
///
/// The same type is returned as it is, and 16-bit unsigned bits become bf16 where bf16 is expected (`.npy` has no name for it). Floats
/// and integers become floats with one rounding. Integers become integers if every value fits. Floats become integers through
/// the scale and zero point of a quantised tensor, and otherwise only if every value is whole and fits. Throws ToolError,
/// naming `file`, the tensor and the first value that does not fit.
HostTensor convertTensor(HostTensor tensor, const TensorInfo &info, const std::string &file);

} // namespace ajour::tools

#endif
