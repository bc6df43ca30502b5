//===- Elementwise.cpp - operations on elements --------------------------------===//
#include "Evaluation.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

LogicalResult evaluate(ConstantOp op, Evaluation &e) {
  e.result().data = constantBytes(op.getValue());
  return success();
}

//===----------------------------------------------------------------------===//
// unary
//===----------------------------------------------------------------------===//

template <typename C> static C sigmoid(C x) { return 1 / (1 + std::exp(-x)); }
/// log(1 + exp(x)) without overflow.
template <typename C> static C softplus(C x) { return std::fmax(x, C(0)) + std::log1p(std::exp(-std::fabs(x))); }

/// The activations that have parameters.
template <typename C> static C parametric(UnaryKind kind, C x, C alpha, C beta) {
  switch (kind) {
  case UnaryKind::elu:
    return x < 0 ? alpha * std::expm1(x) : x;
  case UnaryKind::leaky_relu:
    return x < 0 ? alpha * x : x;
  case UnaryKind::selu:
    return beta * (x > 0 ? x : alpha * std::expm1(x));
  case UnaryKind::celu:
    return x < 0 ? alpha * std::expm1(x / alpha) : x;
  case UnaryKind::thresholded_relu:
    return x > alpha || std::isnan(x) ? x : C(0);
  case UnaryKind::hard_sigmoid: {
    C line = alpha * x + beta;
    return line < 0 ? C(0) : line > 1 ? C(1) : line;
  }
  case UnaryKind::shrink:
    return x < -alpha ? x + beta : x > alpha ? x - beta : std::isnan(x) ? x : C(0);
  default:
    llvm_unreachable("a kind without parameters");
  }
}

template <typename C> static C activation(UnaryKind kind, C x, C alpha, C beta) {
  switch (kind) {
  case UnaryKind::sigmoid:
    return sigmoid(x);
  case UnaryKind::relu:
    return x < 0 ? C(0) : x;
  case UnaryKind::softplus:
    return std::isnan(x) ? x : softplus(x);
  case UnaryKind::softsign:
    return x / (1 + std::fabs(x));
  case UnaryKind::hard_swish: {
    C gate = x + 3 < 0 ? C(0) : x + 3 > 6 ? C(6) : x + 3;
    return x * gate / 6;
  }
  case UnaryKind::mish:
    return std::isnan(x) ? x : x * std::tanh(softplus(x));
  case UnaryKind::gelu:
    return x / 2 * (1 + std::erf(x * C(0.70710678118654752440)));
  case UnaryKind::gelu_tanh:
    return x / 2 * (1 + std::tanh(C(0.79788456080286535588) * (x + C(0.044715) * x * x * x)));
  case UnaryKind::silu:
    return x * sigmoid(x);
  default:
    return parametric(kind, x, alpha, beta);
  }
}

/// Every kind of a floating point operand that gives one.
template <typename C> static C unaryFloat(UnaryKind kind, C x, C alpha, C beta) {
  switch (kind) {
  case UnaryKind::neg:
    return -x;
  case UnaryKind::abs:
    return std::fabs(x);
  case UnaryKind::sign:
    return x > 0 ? C(1) : x < 0 ? C(-1) : x;
  case UnaryKind::ceil:
    return std::ceil(x);
  case UnaryKind::floor:
    return std::floor(x);
  case UnaryKind::round:
    return std::nearbyint(x);
  case UnaryKind::trunc:
    return std::trunc(x);
  case UnaryKind::sqrt:
    return std::sqrt(x);
  case UnaryKind::rsqrt:
    return 1 / std::sqrt(x);
  case UnaryKind::reciprocal:
    return 1 / x;
  case UnaryKind::exp:
    return std::exp(x);
  case UnaryKind::log:
    return std::log(x);
  case UnaryKind::sin:
    return std::sin(x);
  case UnaryKind::cos:
    return std::cos(x);
  case UnaryKind::tan:
    return std::tan(x);
  case UnaryKind::asin:
    return std::asin(x);
  case UnaryKind::acos:
    return std::acos(x);
  case UnaryKind::atan:
    return std::atan(x);
  case UnaryKind::sinh:
    return std::sinh(x);
  case UnaryKind::cosh:
    return std::cosh(x);
  case UnaryKind::tanh:
    return std::tanh(x);
  case UnaryKind::asinh:
    return std::asinh(x);
  case UnaryKind::acosh:
    return std::acosh(x);
  case UnaryKind::atanh:
    return std::atanh(x);
  case UnaryKind::erf:
    return std::erf(x);
  case UnaryKind::square:
    return x * x;
  default:
    return activation(kind, x, alpha, beta);
  }
}

/// Integers wrap: they are computed in 64 unsigned bits and cut.
template <typename T> static T unaryInt(UnaryKind kind, T x) {
  switch (kind) {
  case UnaryKind::neg:
    return static_cast<T>(-static_cast<uint64_t>(x));
  case UnaryKind::abs:
    return x < 0 ? static_cast<T>(-static_cast<uint64_t>(x)) : x;
  case UnaryKind::sign:
    return static_cast<T>((x > 0) - (x < 0));
  case UnaryKind::relu:
    return x < 0 ? T(0) : x;
  case UnaryKind::square:
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
  case UnaryKind::bitwise_not:
    return static_cast<T>(~x);
  default:
    llvm_unreachable("the verifier wants floating point (C1)");
  }
}

LogicalResult evaluate(UnaryOp op, Evaluation &e) {
  UnaryKind kind = op.getKind();
  float alpha = op.getAlpha().convertToFloat(), beta = op.getBeta().convertToFloat();
  int64_t count = e.operand(0).numElements();
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const T *in = e.operand(0).as<T>();
    T *out = e.result().as<T>();
    if constexpr (isBool<T>) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = Boolean(!in[i]);
    } else if constexpr (isInt<T>) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = unaryInt(kind, in[i]);
    } else if (kind == UnaryKind::is_nan || kind == UnaryKind::is_inf) {
      Boolean *truth = e.result().as<Boolean>();
      for (int64_t i = 0; i < count; ++i) {
        C x = in[i];
        truth[i] =
            Boolean(kind == UnaryKind::is_nan ? std::isnan(x) : std::isinf(x) && (x < 0 ? alpha != 0 : beta != 0));
      }
    } else {
      for (int64_t i = 0; i < count; ++i)
        out[i] = T(unaryFloat<C>(kind, in[i], alpha, beta));
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// binary, compare, select
//===----------------------------------------------------------------------===//

template <typename C> static C binaryFloat(BinaryKind kind, C a, C b) {
  switch (kind) {
  case BinaryKind::add:
    return a + b;
  case BinaryKind::sub:
    return a - b;
  case BinaryKind::mul:
    return a * b;
  case BinaryKind::div:
    return a / b;
  case BinaryKind::pow:
    return std::pow(a, b);
  case BinaryKind::floor_mod: {
    C rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  case BinaryKind::trunc_mod:
    return std::fmod(a, b);
  case BinaryKind::min:
    return std::isnan(a) || a < b ? a : b;
  case BinaryKind::max:
    return std::isnan(a) || a > b ? a : b;
  case BinaryKind::floor_div:
    return std::floor(a / b);
  case BinaryKind::squared_difference:
    return (a - b) * (a - b);
  case BinaryKind::prelu:
    return a < 0 ? b * a : a;
  case BinaryKind::atan2:
    return std::atan2(a, b);
  default:
    return 0;
  }
}

/// Division of integers and what is left, both by zero 0.
template <typename T> static T divideInt(BinaryKind kind, T a, T b) {
  if (b == 0)
    return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1)) // The lowest value divided by -1 wraps.
      return kind == BinaryKind::div || kind == BinaryKind::floor_div ? static_cast<T>(-static_cast<uint64_t>(a))
                                                                      : T(0);
  T quotient = a / b, rest = a % b;
  bool roundsUp = rest != 0 && (rest < 0) != (b < 0);
  switch (kind) {
  case BinaryKind::div:
    return quotient;
  case BinaryKind::floor_div:
    return roundsUp ? quotient - 1 : quotient;
  case BinaryKind::floor_mod:
    return roundsUp ? rest + b : rest;
  default:
    return rest;
  }
}

/// Integer power, wrapping; a negative exponent gives 1 / a^-b truncated.
template <typename T> static T powInt(T a, T b) {
  if (b < 0)
    return a == 1 || (a == T(-1) && b % 2 == 0) ? T(1) : a == T(-1) ? T(-1) : T(0);
  uint64_t base = static_cast<uint64_t>(a), value = 1;
  for (uint64_t exponent = static_cast<uint64_t>(b); exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      value *= base;
  return static_cast<T>(value);
}

/// Shifts by the width or more (a negative count is such) leave zeros, or copies of the sign.
template <typename T> static T shiftInt(BinaryKind kind, T a, T b) {
  constexpr int width = sizeof(T) * 8;
  bool all = b < 0 || static_cast<uint64_t>(b) >= width;
  if (kind == BinaryKind::shift_left)
    return all ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << b);
  if (all)
    return a < 0 ? T(-1) : T(0);
  return static_cast<T>(a >> b);
}

template <typename T> static T binaryInt(BinaryKind kind, T a, T b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (kind) {
  case BinaryKind::add:
    return static_cast<T>(x + y);
  case BinaryKind::sub:
    return static_cast<T>(x - y);
  case BinaryKind::mul:
    return static_cast<T>(x * y);
  case BinaryKind::div:
  case BinaryKind::floor_div:
  case BinaryKind::floor_mod:
  case BinaryKind::trunc_mod:
    return divideInt(kind, a, b);
  case BinaryKind::pow:
    return powInt(a, b);
  case BinaryKind::min:
    return std::min(a, b);
  case BinaryKind::max:
    return std::max(a, b);
  case BinaryKind::bit_and:
    return static_cast<T>(x & y);
  case BinaryKind::bit_or:
    return static_cast<T>(x | y);
  case BinaryKind::bit_xor:
    return static_cast<T>(x ^ y);
  case BinaryKind::shift_left:
  case BinaryKind::shift_right:
    return shiftInt(kind, a, b);
  case BinaryKind::squared_difference:
    return static_cast<T>((x - y) * (x - y));
  case BinaryKind::prelu:
    return a < 0 ? static_cast<T>(x * y) : a;
  default:
    return 0;
  }
}

static bool binaryBool(BinaryKind kind, bool a, bool b) {
  switch (kind) {
  case BinaryKind::min:
  case BinaryKind::bit_and:
    return a && b;
  case BinaryKind::max:
  case BinaryKind::bit_or:
    return a || b;
  case BinaryKind::bit_xor:
    return a != b;
  default:
    return false;
  }
}

bool hasBinary(BinaryKind kind, uint32_t elementType) {
  bool bits = kind == BinaryKind::bit_and || kind == BinaryKind::bit_or || kind == BinaryKind::bit_xor;
  bool shift = kind == BinaryKind::shift_left || kind == BinaryKind::shift_right;
  return dispatch(elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (isBool<T>)
      return bits || kind == BinaryKind::min || kind == BinaryKind::max;
    else if constexpr (isFloat<T>)
      return !bits && !shift;
    else
      return kind != BinaryKind::atan2;
  });
}

template <typename T> T applyBinary(BinaryKind kind, T lhs, T rhs) {
  if constexpr (isBool<T>)
    return Boolean(binaryBool(kind, lhs, rhs));
  else if constexpr (isFloat<T>)
    return T(binaryFloat<Compute<T>>(kind, lhs, rhs));
  else
    return binaryInt(kind, lhs, rhs);
}

template float applyBinary(BinaryKind, float, float);
template double applyBinary(BinaryKind, double, double);
template Float16 applyBinary(BinaryKind, Float16, Float16);
template BFloat16 applyBinary(BinaryKind, BFloat16, BFloat16);
template int8_t applyBinary(BinaryKind, int8_t, int8_t);
template uint8_t applyBinary(BinaryKind, uint8_t, uint8_t);
template int16_t applyBinary(BinaryKind, int16_t, int16_t);
template uint16_t applyBinary(BinaryKind, uint16_t, uint16_t);
template int32_t applyBinary(BinaryKind, int32_t, int32_t);
template uint32_t applyBinary(BinaryKind, uint32_t, uint32_t);
template int64_t applyBinary(BinaryKind, int64_t, int64_t);
template uint64_t applyBinary(BinaryKind, uint64_t, uint64_t);
template Boolean applyBinary(BinaryKind, Boolean, Boolean);

/// Calls `function(i, lhs, rhs)` with the offsets of both operands for each element of the result.
template <typename Function> static void forEachPair(Evaluation &e, Function &&function) {
  ArrayRef<int64_t> shape = e.result().shape;
  std::array<Shape, 2> strides{broadcastStrides(e.operand(0).shape, shape),
                               broadcastStrides(e.operand(1).shape, shape)};
  forEachIndex<2>(shape, strides, [&](int64_t i, auto &offsets) { function(i, offsets[0], offsets[1]); });
}

LogicalResult evaluate(BinaryOp op, Evaluation &e) {
  BinaryKind kind = op.getKind();
  if (!hasBinary(kind, e.operand(0).elementType))
    return op.emitError() << "'" << stringifyBinaryKind(kind) << "' has no meaning for "
                          << ajour_element_name(e.operand(0).elementType);
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *lhs = e.operand(0).as<T>(), *rhs = e.operand(1).as<T>();
    T *out = e.result().as<T>();
    forEachPair(e, [&](int64_t i, int64_t l, int64_t r) { out[i] = applyBinary(kind, lhs[l], rhs[r]); });
  });
  return success();
}

template <typename C> static bool compare(CompareKind kind, C a, C b) {
  switch (kind) {
  case CompareKind::eq:
    return a == b;
  case CompareKind::ne:
    return a != b;
  case CompareKind::lt:
    return a < b;
  case CompareKind::le:
    return a <= b;
  case CompareKind::gt:
    return a > b;
  case CompareKind::ge:
    return a >= b;
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult evaluate(CompareOp op, Evaluation &e) {
  CompareKind kind = op.getKind();
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *lhs = e.operand(0).as<T>(), *rhs = e.operand(1).as<T>();
    Boolean *out = e.result().as<Boolean>();
    forEachPair(e,
                [&](int64_t i, int64_t l, int64_t r) { out[i] = Boolean(compare<Compute<T>>(kind, lhs[l], rhs[r])); });
  });
  return success();
}

LogicalResult evaluate(SelectOp op, Evaluation &e) {
  ArrayRef<int64_t> shape = e.result().shape;
  std::array<Shape, 3> strides;
  for (size_t n = 0; n < 3; ++n)
    strides[n] = broadcastStrides(e.operand(n).shape, shape);
  const Boolean *condition = e.operand(0).as<Boolean>();
  dispatchSize(e.result().elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *lhs = e.operand(1).as<T>(), *rhs = e.operand(2).as<T>();
    T *out = e.result().as<T>();
    forEachIndex<3>(shape, strides, [&](int64_t i, auto &offsets) {
      out[i] = condition[offsets[0]] ? lhs[offsets[1]] : rhs[offsets[2]];
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// cast, clamp
//===----------------------------------------------------------------------===//

LogicalResult evaluate(CastOp op, Evaluation &e) {
  int64_t count = e.result().numElements();
  dispatch(e.operand(0).elementType, [&](auto fromTag) {
    using From = typename decltype(fromTag)::type;
    dispatch(e.result().elementType, [&](auto toTag) {
      using To = typename decltype(toTag)::type;
      const From *in = e.operand(0).as<From>();
      To *out = e.result().as<To>();
      for (int64_t i = 0; i < count; ++i)
        out[i] = convert<To>(in[i]);
    });
  });
  return success();
}

LogicalResult evaluate(ClampOp op, Evaluation &e) {
  int64_t count = e.result().numElements();
  double lowLimit = op.getLow().convertToDouble(), highLimit = op.getHigh().convertToDouble();
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    C low = convert<T>(lowLimit), high = convert<T>(highLimit);
    const T *in = e.operand(0).as<T>();
    T *out = e.result().as<T>();
    for (int64_t i = 0; i < count; ++i) {
      C x = in[i];
      out[i] = T(x < low ? low : x > high ? high : x);
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// quantize, dequantize, requantize, lookup
//===----------------------------------------------------------------------===//

/// The parameter of each element: one for all, or one for each index of `axis`.
namespace {
struct PerChannel {
  PerChannel(ArrayRef<int64_t> shape, int64_t axis, size_t count) {
    if (count == 1)
      return;
    axis = axis < 0 ? axis + int64_t(shape.size()) : axis;
    size = shape[axis];
    inner = sizeOf(shape, axis + 1, shape.size());
  }
  size_t operator()(int64_t i) const { return i / inner % size; }

  int64_t size = 1, inner = 1;
};
} // namespace

LogicalResult evaluate(QuantizeOp op, Evaluation &e) {
  ArrayRef<float> scales = op.getScales();
  ArrayRef<int32_t> zeroPoints = op.getZeroPoints();
  PerChannel channel(e.result().shape, op.getAxis(), scales.size());
  int64_t count = e.result().numElements();
  dispatchFloat(e.operand(0).elementType, [&](auto fromTag) {
    using From = typename decltype(fromTag)::type;
    dispatchInt(e.result().elementType, [&](auto toTag) {
      using To = typename decltype(toTag)::type;
      using C = Compute<From>;
      const From *in = e.operand(0).as<From>();
      To *out = e.result().as<To>();
      for (int64_t i = 0; i < count; ++i) {
        size_t c = channel(i);
        double value = double(std::nearbyint(C(in[i]) / C(scales[c]))) + zeroPoints[c];
        out[i] = saturate<To>(value, /*ifNaN=*/std::numeric_limits<To>::min());
      }
    });
  });
  return success();
}

LogicalResult evaluate(DequantizeOp op, Evaluation &e) {
  ArrayRef<float> scales = op.getScales();
  ArrayRef<int32_t> zeroPoints = op.getZeroPoints();
  PerChannel channel(e.operand(0).shape, op.getAxis(), scales.size());
  int64_t count = e.result().numElements();
  dispatchInt(e.operand(0).elementType, [&](auto fromTag) {
    using From = typename decltype(fromTag)::type;
    dispatchFloat(e.result().elementType, [&](auto toTag) {
      using To = typename decltype(toTag)::type;
      using C = Compute<To>;
      const From *in = e.operand(0).as<From>();
      To *out = e.result().as<To>();
      for (int64_t i = 0; i < count; ++i) {
        size_t c = channel(i);
        // 64-bit operands may wrap here; all others are exact.
        auto difference = static_cast<int64_t>(static_cast<uint64_t>(in[i]) - static_cast<uint64_t>(zeroPoints[c]));
        out[i] = To(C(difference) * C(scales[c]));
      }
    });
  });
  return success();
}

/// (2 a b) / 2^32 rounded to nearest, halves upwards, saturated.
static int32_t doublingHighProduct(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min())
    return std::numeric_limits<int32_t>::max();
  int64_t product = int64_t(a) * b;
  int64_t nudge = product >= 0 ? int64_t(1) << 30 : 1 - (int64_t(1) << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t(1) << 31));
}

/// x / 2^count rounded to nearest, halves away from zero.
static int32_t roundingShiftRight(int32_t x, int count) {
  int64_t half = count == 0 ? 0 : int64_t(1) << (count - 1);
  return static_cast<int32_t>(x >= 0 ? (x + half) >> count : -((-int64_t(x) + half) >> count));
}

/// x multiplier 2^(shift - 31) of a 32-bit operand: two roundings.
static int64_t multiply32(int32_t x, int32_t multiplier, int shift) {
  auto shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << std::max(shift, 0));
  return roundingShiftRight(doublingHighProduct(shifted, multiplier), std::max(-shift, 0));
}

/// The same of a 64-bit operand: a 16-bit multiplier and one rounding.
static int64_t multiply64(int64_t x, int32_t multiplier, int shift) {
  int64_t reduced = std::min<int64_t>((int64_t(multiplier) + (1 << 15)) >> 16, 0x7fff);
  uint64_t product = static_cast<uint64_t>(x) * static_cast<uint64_t>(reduced) + (uint64_t(1) << (14 - shift));
  return static_cast<int64_t>(product) >> (15 - shift);
}

/// The real value of a requantized element before its zero point, rounded.
template <typename T> static double requantizeElement(RequantizeOp op, T x, size_t channel) {
  if (std::optional<ArrayRef<float>> scales = op.getScales())
    return std::nearbyint(static_cast<float>(x) * (*scales)[channel] / op.getDivisor().convertToFloat());
  int32_t multiplier = (*op.getMultipliers())[channel], shift = (*op.getShifts())[channel];
  return sizeof(T) == 8 ? multiply64(static_cast<int64_t>(x), multiplier, shift)
                        : multiply32(static_cast<int32_t>(x), multiplier, shift);
}

LogicalResult evaluate(RequantizeOp op, Evaluation &e) {
  int highest = ajour_element_size(e.operand(0).elementType) == 8 ? 14 : 31;
  for (int32_t shift : op.getShifts().value_or(ArrayRef<int32_t>()))
    if (shift < -31 || shift > highest)
      return op.emitError() << "shift " << shift << " is outside [-31, " << highest << "]";
  size_t parameters = op.getScales() ? op.getScales()->size() : op.getMultipliers()->size();
  PerChannel channel(e.result().shape, op.getAxis(), parameters);
  double zeroPoint = static_cast<int32_t>(op.getZeroPoint());
  double qmin = static_cast<int32_t>(op.getQmin()), qmax = static_cast<int32_t>(op.getQmax());
  int64_t count = e.result().numElements();
  dispatchInt(e.operand(0).elementType, [&](auto fromTag) {
    using From = typename decltype(fromTag)::type;
    dispatchInt(e.result().elementType, [&](auto toTag) {
      using To = typename decltype(toTag)::type;
      const From *in = e.operand(0).as<From>();
      To *out = e.result().as<To>();
      for (int64_t i = 0; i < count; ++i) {
        double value = requantizeElement(op, in[i], channel(i)) + zeroPoint;
        out[i] = static_cast<To>(value >= qmin ? std::min(value, qmax) : qmin);
      }
    });
  });
  return success();
}

LogicalResult evaluate(LookupOp op, Evaluation &e) {
  int64_t count = e.result().numElements();
  if (e.operand(0).elementType == AJOUR_I16) {
    const int16_t *in = e.operand(0).as<int16_t>(), *table = e.operand(1).as<int16_t>();
    for (int64_t i = 0; i < count; ++i) {
      int32_t position = in[i] + 32768, low = table[position / 128], slope = table[position / 128 + 1] - low;
      e.result().as<int16_t>()[i] = static_cast<int16_t>(low + ((slope * (position % 128) + 64) >> 7));
    }
    return success();
  }
  int lowest = e.operand(0).elementType == AJOUR_I8 ? -128 : 0;
  dispatchSize(e.result().elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *table = e.operand(1).as<T>();
    T *out = e.result().as<T>();
    for (int64_t i = 0; i < count; ++i) {
      int x = lowest ? int(e.operand(0).as<int8_t>()[i]) : int(e.operand(0).as<uint8_t>()[i]);
      out[i] = table[x - lowest];
    }
  });
  return success();
}

} // namespace ajour::reference
