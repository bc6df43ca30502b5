//===- Elements.h - element types of host tensors ---------------*- C++ -*-===//
//
// A C++ type for each element type, and the one switch from an element type to code typed by it.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_REFERENCE_ELEMENTS_H
#define AJOUR_LIB_REFERENCE_ELEMENTS_H

#include "ajour/ABI/ElementTypes.h"

#include "llvm/Support/ErrorHandling.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ajour::reference {

/// `value` rounded to nearest even in a binary format with `fraction` stored bits of fraction and the
/// given lowest and highest exponent of normal numbers. Overflow gives infinity.
inline double roundToFormat(double value, int fraction, int lowest, int highest) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::max(std::ilogb(value), lowest) - fraction;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  bool overflows = std::fabs(rounded) >= std::ldexp(1.0, highest + 1);
  return overflows ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

/// IEEE binary16.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(double value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    double size = std::fabs(roundToFormat(value, 10, -14, 15));
    if (std::isnan(size))
      bits = sign | 0x7e00;
    else if (std::isinf(size))
      bits = sign | 0x7c00;
    else if (size < 0x1p-14)
      bits = sign | static_cast<uint16_t>(std::ldexp(size, 24));
    else {
      int exponent = std::ilogb(size);
      bits = sign | ((exponent + 15) << 10 | (static_cast<uint16_t>(std::ldexp(size, 10 - exponent)) & 0x3ff));
    }
  }
  operator float() const {
    int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    float size = exponent == 0x1f
                     ? (fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
                 : exponent == 0 ? std::ldexp(float(fraction), -24)
                                 : std::ldexp(float(fraction | 0x400), exponent - 25);
    return bits & 0x8000 ? -size : size;
  }
};

/// The upper half of IEEE binary32.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(double value) {
    bits = std::bit_cast<uint32_t>(static_cast<float>(roundToFormat(value, 7, -126, 127))) >> 16;
    if (std::isnan(value))
      bits |= 0x0040;
  }
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

/// A byte that means true unless it is 0.
struct Boolean {
  uint8_t byte = 0;

  Boolean() = default;
  explicit Boolean(bool value) : byte(value) {}
  operator bool() const { return byte != 0; }
};

template <typename T> constexpr bool isBool = std::is_same_v<T, Boolean>;
template <typename T>
constexpr bool isFloat = std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T> constexpr bool isInt = std::is_integral_v<T>;

/// The type in which one element is computed: f32 for the 16-bit floating point types.
template <typename T> struct ComputeType {
  using type = T;
};
template <> struct ComputeType<Float16> {
  using type = float;
};
template <> struct ComputeType<BFloat16> {
  using type = float;
};
template <> struct ComputeType<Boolean> {
  using type = bool;
};
template <typename T> using Compute = typename ComputeType<T>::type;

/// The type of sums: f64 for floating point; integers wrap, so 64 unsigned bits hold every width's sum.
template <typename T> using Accumulator = std::conditional_t<isFloat<T>, double, uint64_t>;

template <typename T> struct TypeTag {
  using type = T;
};

/// Calls `function(TypeTag<T>())` with the type of an element type's values.
template <typename Function> auto dispatch(uint32_t elementType, Function &&function) {
  switch (elementType) {
  case AJOUR_F32:
    return function(TypeTag<float>());
  case AJOUR_F16:
    return function(TypeTag<Float16>());
  case AJOUR_BF16:
    return function(TypeTag<BFloat16>());
  case AJOUR_F64:
    return function(TypeTag<double>());
  case AJOUR_I8:
    return function(TypeTag<int8_t>());
  case AJOUR_U8:
    return function(TypeTag<uint8_t>());
  case AJOUR_I16:
    return function(TypeTag<int16_t>());
  case AJOUR_U16:
    return function(TypeTag<uint16_t>());
  case AJOUR_I32:
    return function(TypeTag<int32_t>());
  case AJOUR_U32:
    return function(TypeTag<uint32_t>());
  case AJOUR_I64:
    return function(TypeTag<int64_t>());
  case AJOUR_U64:
    return function(TypeTag<uint64_t>());
  case AJOUR_BOOL:
    return function(TypeTag<Boolean>());
  default:
    llvm::report_fatal_error("a host tensor has no known element type");
  }
}

/// The same for operations that verify a floating point operand.
template <typename Function> auto dispatchFloat(uint32_t elementType, Function &&function) {
  switch (elementType) {
  case AJOUR_F32:
    return function(TypeTag<float>());
  case AJOUR_F16:
    return function(TypeTag<Float16>());
  case AJOUR_BF16:
    return function(TypeTag<BFloat16>());
  case AJOUR_F64:
    return function(TypeTag<double>());
  default:
    llvm::report_fatal_error("a floating point tensor is expected");
  }
}

/// The same for integers (not booleans).
template <typename Function> auto dispatchInt(uint32_t elementType, Function &&function) {
  switch (elementType) {
  case AJOUR_I8:
    return function(TypeTag<int8_t>());
  case AJOUR_U8:
    return function(TypeTag<uint8_t>());
  case AJOUR_I16:
    return function(TypeTag<int16_t>());
  case AJOUR_U16:
    return function(TypeTag<uint16_t>());
  case AJOUR_I32:
    return function(TypeTag<int32_t>());
  case AJOUR_U32:
    return function(TypeTag<uint32_t>());
  case AJOUR_I64:
    return function(TypeTag<int64_t>());
  case AJOUR_U64:
    return function(TypeTag<uint64_t>());
  default:
    llvm::report_fatal_error("an integer tensor is expected");
  }
}

/// For data movement, which only needs the size of an element.
template <typename Function> auto dispatchSize(uint32_t elementType, Function &&function) {
  switch (ajour_element_size(elementType)) {
  case 1:
    return function(TypeTag<uint8_t>());
  case 2:
    return function(TypeTag<uint16_t>());
  case 4:
    return function(TypeTag<uint32_t>());
  case 8:
    return function(TypeTag<uint64_t>());
  default:
    llvm::report_fatal_error("a host tensor has no known element type");
  }
}

/// The integer nearest to a value that is whole already; outside T's range the limit, for NaN `ifNaN`.
template <typename T> T saturate(double value, T ifNaN = 0) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value))
    return ifNaN;
  // The highest value of a 64-bit type is not a double: 2^63 and 2^64 are, one above.
  if (value >= std::ldexp(1.0, Limits::digits))
    return Limits::max();
  return value <= double(Limits::min()) ? Limits::min() : static_cast<T>(value);
}

/// nn.cast: float to integer truncates and saturates (NaN: 0), integer to integer wraps, to a boolean
/// compares with 0, float to float rounds once.
template <typename To, typename From> To convert(From value) {
  if constexpr (isBool<To>)
    return Boolean(static_cast<Compute<From>>(value) != Compute<From>(0));
  else if constexpr (isFloat<From> && isInt<To>)
    return saturate<To>(std::trunc(static_cast<double>(static_cast<Compute<From>>(value))));
  else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>)
    return To(static_cast<double>(static_cast<Compute<From>>(value)));
  else
    return static_cast<To>(static_cast<Compute<From>>(value));
}

/// Lowest and highest value; infinities for floating point.
template <typename T> T lowestOf() {
  if constexpr (isFloat<T>)
    return T(-std::numeric_limits<Compute<T>>::infinity());
  else if constexpr (isBool<T>)
    return T(false);
  else
    return std::numeric_limits<T>::min();
}
template <typename T> T highestOf() {
  if constexpr (isFloat<T>)
    return T(std::numeric_limits<Compute<T>>::infinity());
  else if constexpr (isBool<T>)
    return T(true);
  else
    return std::numeric_limits<T>::max();
}

} // namespace ajour::reference

#endif
