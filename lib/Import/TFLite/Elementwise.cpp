//===- Elementwise.cpp - operators on elements -----------------------------------===//
#include "Importer.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isQuantizedNode(Node &node) { return node.has(0) && node.isQuantized(0) && node.out().isQuantized(); }

unsigned widthOf(const TensorData &tensor) {
  auto integer = dyn_cast_or_null<IntegerType>(tensor.elementType);
  return integer ? integer.getWidth() : 0;
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// An 8-bit quantised function as a table: dequantise, apply, scale by the reciprocal, round half away
/// from zero, in single precision as the reference kernels do.
LogicalResult setTable(Node &node, llvm::function_ref<float(float)> function) {
  Value x = node.value(0);
  const TensorData &in = node.in(0), &out = node.out();
  if (!x || failed(node.needPerTensor(in)) || failed(node.needPerTensor(out)))
    return failure();
  float inScale = in.quant->scales[0], inverse = 1.0f / out.quant->scales[0];
  int32_t inZero = in.quant->zeroPoints[0], outZero = out.quant->zeroPoints[0];
  return node.set(node.lookup(x, out.elementType, [&](int64_t v) -> int64_t {
    float real = function(inScale * float(v - inZero)) * inverse;
    if (std::isnan(real))
      return outZero;
    return int64_t(std::round(std::clamp(real, -1e9f, 1e9f))) + outZero;
  }));
}

/// A function of one real operand: a table for 8 bits, f32 for other quantised types.
LogicalResult setUnary(Node &node, UnaryKind kind, float alpha, float (*function)(float, float)) {
  if (isQuantizedNode(node) && widthOf(node.in(0)) == 8 && function)
    return setTable(node, [&](float x) { return function(x, alpha); });
  bool plainInteger = node.has(0) && !node.isQuantized(0) && node.in(0).elementType &&
                      isa<IntegerType>(node.in(0).elementType);
  if (plainInteger)
    return node.set(node.unary(kind, node.value(0), alpha));
  if (isQuantizedNode(node))
    node.remarkFloatFallback();
  return node.setFloat(node.unary(kind, node.floatValue(0), alpha));
}

float sigmoid(float x, float) { return 1.0f / (1.0f + std::exp(-x)); }
float tanhOf(float x, float) { return std::tanh(x); }
float hardSwish(float x, float) { return x * std::clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f; }
float elu(float x, float alpha) { return x < 0 ? alpha * std::expm1(x) : x; }
float expOf(float x, float) { return std::exp(x); }
float logOf(float x, float) { return std::log(x); }
float sqrtOf(float x, float) { return std::sqrt(x); }
float rsqrtOf(float x, float) { return 1.0f / std::sqrt(x); }
float absOf(float x, float) { return std::fabs(x); }
float negOf(float x, float) { return -x; }
float squareOf(float x, float) { return x * x; }
float sinOf(float x, float) { return std::sin(x); }
float cosOf(float x, float) { return std::cos(x); }
float floorOf(float x, float) { return std::floor(x); }
float ceilOf(float x, float) { return std::ceil(x); }
float roundOf(float x, float) { return std::nearbyint(x); }
float signOf(float x, float) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }
float geluErf(float x, float) { return 0.5f * x * (1.0f + std::erf(x * float(M_SQRT1_2))); }
float geluTanh(float x, float) {
  return 0.5f * x * (1.0f + std::tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}

template <UnaryKind kind, float (*function)(float, float)> LogicalResult importUnary(Node &node) {
  return setUnary(node, kind, kind == UnaryKind::elu ? 1.0f : 0.0f, function);
}

LogicalResult importGelu(Node &node) {
  const Gelu *o = node.options<Gelu>();
  return o && o->approximate() ? setUnary(node, UnaryKind::gelu_tanh, 0, geluTanh)
                               : setUnary(node, UnaryKind::gelu, 0, geluErf);
}

LogicalResult importLogicalNot(Node &node) { return node.set(node.unary(UnaryKind::logical_not, node.value(0))); }

/// A leaky slope on integers: each side of the zero point has its own factor. Source: the reference kernel.
LogicalResult setQuantizedLeaky(Node &node, float alpha) {
  Value x = node.value(0);
  const TensorData &in = node.in(0), &out = node.out();
  if (!x || failed(node.needPerTensor(in)) || failed(node.needPerTensor(out)))
    return failure();
  // The kernels form both factors in single precision and in this order.
  double ratio = in.quant->scales[0] / out.quant->scales[0];
  double slope = in.quant->scales[0] * alpha / out.quant->scales[0];
  if (alpha < 0) {
    node.remarkFloatFallback();
    return node.setFloat(node.unary(UnaryKind::leaky_relu, node.floatValue(0), alpha));
  }
  FixedPoint above = quantizeMultiplier(ratio), below = quantizeMultiplier(slope);
  int32_t inZero = in.quant->zeroPoints[0], outZero = out.quant->zeroPoints[0];
  if (widthOf(in) == 8)
    return node.set(node.lookup(x, out.elementType, [&](int64_t v) -> int64_t {
      int32_t centred = int32_t(v) - inZero;
      return int64_t(multiplyByQuantized(centred, centred >= 0 ? above : below)) + outZero;
    }));
  Value centred = node.centered(x, inZero);
  Value positive = node.compare(CompareKind::ge, centred, node.intScalar(node.b.getI32Type(), 0));
  return node.set(node.select(positive, node.requantize(centred, above, outZero, out.elementType),
                              node.requantize(centred, below, outZero, out.elementType)));
}

LogicalResult importLeakyRelu(Node &node) {
  const LeakyRelu *o = node.options<LeakyRelu>();
  float alpha = o ? o->alpha() : 0;
  if (isQuantizedNode(node))
    return setQuantizedLeaky(node, alpha);
  return node.setFloat(node.unary(UnaryKind::leaky_relu, node.floatValue(0), alpha));
}

/// RELU and its relatives: on integers rescaled, then limited.
template <Activation activation> LogicalResult importActivation(Node &node) {
  if (!isQuantizedNode(node))
    return node.setFloat(node.activate(node.floatValue(0), activation));
  std::optional<Range> range = node.activationRange(activation, node.out());
  return range ? node.set(node.clamp(node.rescale(node.value(0), node.in(0), node.out()), *range)) : failure();
}

LogicalResult importRelu0To1(Node &node) {
  if (isQuantizedNode(node) && widthOf(node.in(0)) == 8)
    return setTable(node, [](float x) { return std::clamp(x, 0.0f, 1.0f); });
  return node.setFloat(node.clamp(node.floatValue(0), {0, 1}));
}

LogicalResult importPrelu(Node &node) {
  if (!isQuantizedNode(node) || !node.isQuantized(1))
    return node.setFloat(node.binary(BinaryKind::prelu, node.floatValue(0), node.floatValue(1)));
  const TensorData &in = node.in(0), &slope = node.in(1), &out = node.out();
  if (failed(node.needPerTensor(in)) || failed(node.needPerTensor(slope)) || failed(node.needPerTensor(out)))
    return failure();
  double ratio = double(in.quant->scales[0]) / double(out.quant->scales[0]);
  FixedPoint above = quantizeMultiplier(ratio), below = quantizeMultiplier(ratio * double(slope.quant->scales[0]));
  int32_t outZero = out.quant->zeroPoints[0];
  Value x = node.centered(node.value(0), in.quant->zeroPoints[0]);
  Value a = node.centered(node.value(1), slope.quant->zeroPoints[0]);
  Value positive = x ? node.compare(CompareKind::ge, x, node.intScalar(node.b.getI32Type(), 0)) : Value();
  return node.set(node.select(positive, node.requantize(x, above, outZero, out.elementType),
                              node.requantize(node.binary(BinaryKind::mul, x, a), below, outZero, out.elementType)));
}

LogicalResult importCast(Node &node) {
  Value x = node.value(0);
  if (!x || !node.out().elementType)
    return x ? node.error() << "result type " << typeName(node.out().format) << " is not supported" : failure();
  return node.set(node.cast(x, node.out().elementType));
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// Sum or difference of quantised tensors. Source: the reference kernels: both operands are shifted left,
/// brought to twice the larger scale, added, and rescaled.
LogicalResult setQuantizedSum(Node &node, BinaryKind kind, Activation activation) {
  const TensorData &lhs = node.in(0), &rhs = node.in(1), &out = node.out();
  std::optional<Range> range = node.activationRange(activation, out);
  if (!range || failed(node.needPerTensor(lhs)) || failed(node.needPerTensor(rhs)))
    return failure();
  int shift = widthOf(out) == 16 ? 15 : 20;
  double twice = 2 * std::max(double(lhs.quant->scales[0]), double(rhs.quant->scales[0]));
  Type i32 = node.b.getI32Type();
  auto operand = [&](size_t i, const TensorData &tensor) {
    Value x = node.centered(node.value(i), tensor.quant->zeroPoints[0]);
    x = node.binary(BinaryKind::shift_left, x, node.intScalar(i32, shift));
    return node.requantize(x, quantizeMultiplier(double(tensor.quant->scales[0]) / twice), 0, i32);
  };
  Value a = operand(0, lhs), b = operand(1, rhs);
  FixedPoint factor = quantizeMultiplier(twice / (double(1 << shift) * double(out.quant->scales[0])));
  return node.set(
      node.requantize(node.binary(kind, a, b), factor, out.quant->zeroPoints[0], out.elementType, range));
}

LogicalResult setQuantizedProduct(Node &node, Activation activation) {
  const TensorData &lhs = node.in(0), &rhs = node.in(1), &out = node.out();
  std::optional<Range> range = node.activationRange(activation, out);
  if (!range || failed(node.needPerTensor(lhs)) || failed(node.needPerTensor(rhs)))
    return failure();
  Value a = node.centered(node.value(0), lhs.quant->zeroPoints[0]);
  Value b = node.centered(node.value(1), rhs.quant->zeroPoints[0]);
  FixedPoint factor = quantizeMultiplier(double(lhs.quant->scales[0]) * double(rhs.quant->scales[0]) /
                                         double(out.quant->scales[0]));
  return node.set(node.requantize(node.binary(BinaryKind::mul, a, b), factor, out.quant->zeroPoints[0],
                                  out.elementType, range));
}

bool bothQuantized(Node &node) { return isQuantizedNode(node) && node.has(1) && node.isQuantized(1); }

/// Plain integers stay integers, all else is computed in f32.
LogicalResult setArithmetic(Node &node, BinaryKind kind, Activation activation) {
  if (!node.has(0) || !node.has(1))
    return node.error() << "two operands are needed";
  bool plainInteger = !node.isQuantized(0) && !node.isQuantized(1) && node.in(0).elementType &&
                      isa<IntegerType>(node.in(0).elementType);
  if (plainInteger) {
    Value result = node.binary(kind, node.value(0), node.value(1));
    return node.set(result ? node.activate(result, activation) : result);
  }
  if (isQuantizedNode(node))
    node.remarkFloatFallback();
  return node.setFloat(node.activate(node.binary(kind, node.floatValue(0), node.floatValue(1)), activation));
}

template <typename Options, BinaryKind kind> LogicalResult importArithmetic(Node &node) {
  const Options *o = node.options<Options>();
  Activation activation = o ? o->activation() : Activation::NONE;
  if (bothQuantized(node) && widthOf(node.out()) <= 16) {
    if (kind == BinaryKind::add || kind == BinaryKind::sub)
      return setQuantizedSum(node, kind, activation);
    if (kind == BinaryKind::mul)
      return setQuantizedProduct(node, activation);
  }
  return setArithmetic(node, kind, activation);
}

template <BinaryKind kind> LogicalResult importBinary(Node &node) {
  return setArithmetic(node, kind, Activation::NONE);
}

/// On integers both operands get the result's scale first; order is then that of the stored values.
template <BinaryKind kind> LogicalResult importExtreme(Node &node) {
  if (!bothQuantized(node))
    return setArithmetic(node, kind, Activation::NONE);
  return node.set(node.binary(kind, node.rescale(node.value(0), node.in(0), node.out()),
                              node.rescale(node.value(1), node.in(1), node.out())));
}

template <CompareKind kind> LogicalResult importCompare(Node &node) {
  if (!node.has(0) || !node.has(1))
    return node.error() << "two operands are needed";
  const TensorData &lhs = node.in(0), &rhs = node.in(1);
  bool sameScale = lhs.isQuantized() && rhs.isQuantized() && lhs.quant->scales == rhs.quant->scales &&
                   lhs.quant->zeroPoints == rhs.quant->zeroPoints && lhs.quant->isPerTensor();
  if ((lhs.isQuantized() || rhs.isQuantized()) && !sameScale)
    return node.set(node.compare(kind, node.floatValue(0), node.floatValue(1)));
  return node.set(node.compare(kind, node.value(0), node.value(1)));
}

template <BinaryKind kind> LogicalResult importLogical(Node &node) {
  Value lhs = node.value(0), rhs = node.value(1);
  if (!lhs || !rhs)
    return failure();
  if (!typeOf(lhs).getElementType().isInteger(1))
    return node.unsupportedType(0, "BOOL");
  return node.set(node.binary(kind, lhs, rhs));
}

template <BinaryKind kind> LogicalResult importBits(Node &node) {
  return node.set(node.binary(kind, node.value(0), node.value(1)));
}

LogicalResult importAddN(Node &node) {
  Value sum = node.floatValue(0);
  for (size_t i = 1; i < node.numInputs(); ++i)
    sum = node.binary(BinaryKind::add, sum, node.floatValue(i));
  return node.setFloat(sum);
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// The two alternatives, with the result's scale.
std::pair<Value, Value> alternatives(Node &node) {
  auto one = [&](size_t i) {
    Value x = node.value(i);
    bool rescaled = x && node.isQuantized(i) && node.out().isQuantized();
    return rescaled ? node.rescale(x, node.in(i), node.out()) : x;
  };
  Value lhs = one(1);
  return {lhs, one(2)};
}

/// The first version: a condition of rank 1 chooses whole rows.
LogicalResult importSelect(Node &node) {
  Value condition = node.value(0);
  auto [lhs, rhs] = alternatives(node);
  if (!condition || !lhs || !rhs)
    return failure();
  int64_t rank = typeOf(lhs).getRank();
  if (typeOf(condition).getRank() == 1 && rank > 1) {
    Dims dims = getDims(condition);
    dims.append(rank - 1, node.b.getAffineConstantExpr(1));
    condition = node.reshape(condition, dims);
  }
  return node.set(node.select(condition, lhs, rhs));
}

LogicalResult importSelectV2(Node &node) {
  Value condition = node.value(0);
  auto [lhs, rhs] = alternatives(node);
  return node.set(node.select(condition, lhs, rhs));
}

const OpRow rows[] = {
    {Builtin::ADD, 5, 2, 2, importArithmetic<Add, BinaryKind::add>},
    {Builtin::SUB, 5, 2, 2, importArithmetic<Sub, BinaryKind::sub>},
    {Builtin::MUL, 7, 2, 2, importArithmetic<Mul, BinaryKind::mul>},
    {Builtin::DIV, 2, 2, 2, importArithmetic<Div, BinaryKind::div>},
    {Builtin::POW, 1, 2, 2, importBinary<BinaryKind::pow>},
    {Builtin::FLOOR_DIV, 3, 2, 2, importBinary<BinaryKind::floor_div>},
    {Builtin::FLOOR_MOD, 2, 2, 2, importBinary<BinaryKind::floor_mod>},
    {Builtin::SQUARED_DIFFERENCE, 3, 2, 2, importBinary<BinaryKind::squared_difference>},
    {Builtin::ATAN2, 1, 2, 2, importBinary<BinaryKind::atan2>},
    {Builtin::BITWISE_XOR, 1, 2, 2, importBits<BinaryKind::bit_xor>},
    {Builtin::RIGHT_SHIFT, 1, 2, 2, importBits<BinaryKind::shift_right>},
    {Builtin::MAXIMUM, 4, 2, 2, importExtreme<BinaryKind::max>},
    {Builtin::MINIMUM, 4, 2, 2, importExtreme<BinaryKind::min>},
    {Builtin::ADD_N, 1, 1, -1, importAddN},
    {Builtin::EQUAL, 4, 2, 2, importCompare<CompareKind::eq>},
    {Builtin::NOT_EQUAL, 3, 2, 2, importCompare<CompareKind::ne>},
    {Builtin::LESS, 3, 2, 2, importCompare<CompareKind::lt>},
    {Builtin::LESS_EQUAL, 2, 2, 2, importCompare<CompareKind::le>},
    {Builtin::GREATER, 2, 2, 2, importCompare<CompareKind::gt>},
    {Builtin::GREATER_EQUAL, 3, 2, 2, importCompare<CompareKind::ge>},
    {Builtin::LOGICAL_AND, 1, 2, 2, importLogical<BinaryKind::bit_and>},
    {Builtin::LOGICAL_OR, 1, 2, 2, importLogical<BinaryKind::bit_or>},
    {Builtin::LOGICAL_NOT, 1, 1, 1, importLogicalNot},
    {Builtin::SELECT, 4, 3, 3, importSelect},
    {Builtin::SELECT_V2, 2, 3, 3, importSelectV2},
    {Builtin::RELU, 3, 1, 1, importActivation<Activation::RELU>},
    {Builtin::RELU6, 3, 1, 1, importActivation<Activation::RELU6>},
    {Builtin::RELU_N1_TO_1, 1, 1, 1, importActivation<Activation::RELU_N1_TO_1>},
    {Builtin::RELU_0_TO_1, 1, 1, 1, importRelu0To1},
    {Builtin::LEAKY_RELU, 2, 1, 1, importLeakyRelu},
    {Builtin::PRELU, 2, 2, 2, importPrelu},
    {Builtin::GELU, 2, 1, 1, importGelu},
    {Builtin::CAST, 7, 1, 1, importCast},
    {Builtin::LOGISTIC, 3, 1, 1, importUnary<UnaryKind::sigmoid, sigmoid>},
    {Builtin::TANH, 3, 1, 1, importUnary<UnaryKind::tanh, tanhOf>},
    {Builtin::HARD_SWISH, 1, 1, 1, importUnary<UnaryKind::hard_swish, hardSwish>},
    {Builtin::ELU, 1, 1, 1, importUnary<UnaryKind::elu, elu>},
    {Builtin::EXP, 2, 1, 1, importUnary<UnaryKind::exp, expOf>},
    {Builtin::LOG, 2, 1, 1, importUnary<UnaryKind::log, logOf>},
    {Builtin::SQRT, 1, 1, 1, importUnary<UnaryKind::sqrt, sqrtOf>},
    {Builtin::RSQRT, 3, 1, 1, importUnary<UnaryKind::rsqrt, rsqrtOf>},
    {Builtin::SQUARE, 1, 1, 1, importUnary<UnaryKind::square, squareOf>},
    {Builtin::ABS, 5, 1, 1, importUnary<UnaryKind::abs, absOf>},
    {Builtin::NEG, 1, 1, 1, importUnary<UnaryKind::neg, negOf>},
    {Builtin::SIN, 1, 1, 1, importUnary<UnaryKind::sin, sinOf>},
    {Builtin::COS, 1, 1, 1, importUnary<UnaryKind::cos, cosOf>},
    {Builtin::FLOOR, 1, 1, 1, importUnary<UnaryKind::floor, floorOf>},
    {Builtin::CEIL, 1, 1, 1, importUnary<UnaryKind::ceil, ceilOf>},
    {Builtin::ROUND, 1, 1, 1, importUnary<UnaryKind::round, roundOf>},
    {Builtin::SIGN, 2, 1, 1, importUnary<UnaryKind::sign, signOf>},
};

} // namespace

ArrayRef<OpRow> elementwiseRows() { return rows; }

} // namespace ajour::tflite
