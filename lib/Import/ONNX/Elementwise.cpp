//===- Elementwise.cpp - ONNX operators on elements ------------------------------===//
#include "Node.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ajour::onnx_import {

namespace {

using U = nn::UnaryKind;
using B = nn::BinaryKind;
using C = nn::CompareKind;

template <U kind> void unary(Node &n) { n.set(0, n.unary(kind, n.in(0))); }

/// An activation with parameters alpha and beta under the format's names.
template <U kind> void activation(Node &n, const char *alpha, float alphaDefault, const char *beta = nullptr,
                                  float betaDefault = 0) {
  float a = n.attrFloat(alpha, alphaDefault);
  n.set(0, n.unary(kind, n.in(0), a, beta ? n.attrFloat(beta, betaDefault) : 0));
}

/// Absolute value and its like leave unsigned integers alone.
void absolute(Node &n) {
  Value x = n.in(0);
  n.set(0, nn::isUnsigned(Node::elementOf(x)) ? x : n.unary(U::abs, x));
}

void gelu(Node &n) {
  std::string form = n.attrString("approximate", "none");
  if (form != "none" && form != "tanh")
    n.refuse("attribute 'approximate' is '" + form + "', expected 'none' or 'tanh'");
  n.set(0, n.unary(form == "tanh" ? U::gelu_tanh : U::gelu, n.in(0)));
}

void biasGelu(Node &n) { n.set(0, n.unary(U::gelu, n.add(n.in(0), n.in(1)))); }

void shrink(Node &n) {
  Value x = n.in(0);
  float lambda = n.attrFloat("lambd", 0.5f), bias = n.attrFloat("bias", 0);
  if (Node::isFloat(x))
    return n.set(0, n.unary(U::shrink, x, lambda, bias));
  n.set(0, n.cast(n.unary(U::shrink, n.cast(x, n.f32()), lambda, bias), Node::elementOf(x)));
}

/// x sigmoid(alpha x).
void swish(Node &n, float alphaDefault) {
  float alpha = n.attrFloat("alpha", alphaDefault);
  Value x = n.in(0);
  if (alpha == 1)
    return n.set(0, n.unary(U::silu, x));
  n.set(0, n.mul(x, n.unary(U::sigmoid, n.mul(x, n.like(alpha, x)))));
}

/// The second operand. Before opset 7 it is broadcast only if an attribute says so, and may be aligned at an axis.
Value secondOperand(Node &n) {
  Value lhs = n.in(0), rhs = n.in(1);
  if (n.opset >= 7)
    return rhs;
  if (!n.attrInt("broadcast", 0)) {
    if (Node::dimsOf(lhs) != Node::dimsOf(rhs))
      n.refuse("its operands are " + n.text(lhs) + " and " + n.text(rhs) +
               ", expected equal shapes since attribute 'broadcast' is not set");
    return rhs;
  }
  if (!n.hasAttr("axis"))
    return rhs;
  int64_t axis = n.axis(n.attrInt("axis"), Node::rankOf(lhs)), after = Node::rankOf(lhs) - axis - Node::rankOf(rhs);
  if (after < 0)
    n.refuse("aligns " + n.text(rhs) + " at axis " + Twine(axis) + " of " + n.text(lhs) + ", which it exceeds");
  Dims dims = Node::dimsOf(rhs);
  dims.append(after, n.dim(1));
  return n.reshape(rhs, dims);
}

template <B kind> void binary(Node &n) { n.set(0, n.binary(kind, n.in(0), secondOperand(n))); }
template <C kind> void compare(Node &n) { n.set(0, n.compare(kind, n.in(0), secondOperand(n))); }

/// The slope broadcasts to x; before opset 7 one for each channel stands along dimension 1.
void prelu(Node &n) {
  Value x = n.in(0), slope = n.in(1);
  int64_t rank = Node::rankOf(x);
  if (n.opset < 7 && Node::rankOf(slope) == 1 && rank > 2 && nn::getConstant(Node::dimsOf(slope)[0]) != 1) {
    Dims dims(rank - 1, n.dim(1));
    dims[0] = Node::dimsOf(slope)[0];
    slope = n.reshape(slope, dims);
  }
  Value result = n.binary(B::prelu, x, slope);
  if (result.getType() != x.getType())
    n.refuse("its slope " + n.text(slope) + " does not broadcast to " + n.text(x));
  n.set(0, result);
}

/// Operators with any number of operands.
template <B kind> void variadic(Node &n) {
  Value result = n.in(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.binary(kind, result, n.in(i));
  n.set(0, result);
}

void mean(Node &n) {
  Value sum = n.in(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    sum = n.add(sum, n.in(i));
  n.set(0, n.div(sum, n.like(double(n.numInputs()), sum)));
}

/// The result has the base's type; an exponent of another kind is computed with in f64.
void power(Node &n) {
  Value base = n.in(0), exponent = secondOperand(n);
  Type element = Node::elementOf(base);
  if (Node::isFloat(base))
    return n.set(0, n.binary(B::pow, base, n.cast(exponent, element)));
  Type f64 = Float64Type::get(n.context());
  n.set(0, n.cast(n.binary(B::pow, n.cast(base, f64), n.cast(exponent, f64)), element));
}

void modulo(Node &n) {
  bool fmod = n.attrInt("fmod", 0);
  if (!fmod && Node::isFloat(n.in(0)))
    n.refuse("attribute 'fmod' is 0, for floating point operands it must be 1");
  n.set(0, n.binary(fmod ? B::trunc_mod : B::floor_mod, n.in(0), n.in(1)));
}

void bitShift(Node &n) {
  std::string direction = n.attrString("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.refuse("attribute 'direction' is '" + direction + "', expected 'LEFT' or 'RIGHT'");
  n.set(0, n.binary(direction == "LEFT" ? B::shift_left : B::shift_right, n.in(0), n.in(1)));
}

void where(Node &n) { n.set(0, n.select(n.in(0), n.in(1), n.in(2))); }

void isInf(Node &n) {
  n.set(0, n.unary(U::is_inf, n.in(0), float(n.attrInt("detect_negative", 1)), float(n.attrInt("detect_positive", 1))));
}

/// A limit of Clip: a constant that nn.clamp can hold, or a value.
struct Limit {
  Value value;
  std::optional<double> constant;
};

Limit clipLimit(Node &n, size_t i, const char *attr, float otherwise) {
  if (n.opset < 11) {
    double value = n.attrFloat(attr, otherwise);
    return {{}, value};
  }
  if (!n.has(i))
    return {};
  Limit limit{n.in(i), std::nullopt};
  ElementsAttr constant = nn::getConstantValue(limit.value);
  if (!constant || constant.getNumElements() != 1)
    return limit;
  if (auto values = nn::constantInts(constant); values && std::abs((*values)[0]) < (int64_t(1) << 53))
    limit.constant = double((*values)[0]);
  else if (Node::elementOf(limit.value).isF64())
    limit.constant = std::nullopt; // f32 would round it
  else if (auto floats = nn::constantFloats(constant))
    limit.constant = (*floats)[0];
  if (limit.constant && std::isnan(*limit.constant))
    limit.constant = std::nullopt;
  return limit;
}

void clip(Node &n) {
  Value x = n.in(0);
  Limit low = clipLimit(n, 1, "min", std::numeric_limits<float>::lowest());
  Limit high = clipLimit(n, 2, "max", std::numeric_limits<float>::max());
  bool isF = Node::isFloat(x);
  if (isF && !low.value && !low.constant)
    low.constant = -std::numeric_limits<double>::infinity();
  if (isF && !high.value && !high.constant)
    high.constant = std::numeric_limits<double>::infinity();
  if (low.constant && high.constant && *low.constant <= *high.constant)
    return n.set(0, n.clamp(x, *low.constant, *high.constant));
  // A scalar of any rank limits every element.
  auto limit = [&](B kind, Limit &l) {
    if (l.value)
      x = n.binary(kind, x, n.reshape(l.value, ArrayRef<int64_t>()));
    else if (l.constant)
      x = n.binary(kind, x, n.like(*l.constant, x));
  };
  limit(B::max, low);
  limit(B::min, high);
  n.set(0, x);
}

Type castTarget(Node &n, int64_t type) {
  Type element = elementTypeOf(int32_t(type), n.context());
  if (!element || type >= OnnxFloat8E4M3FN)
    n.refuse("casts to " + onnxTypeName(int32_t(type)) +
             ", expected float, float16, bfloat16, double, bool or an integer of 8 to 64 bits");
  return element;
}

void cast(Node &n) { n.set(0, n.cast(n.in(0), castTarget(n, n.attrInt("to")))); }
void castLike(Node &n) { n.set(0, n.cast(n.in(0), Node::elementOf(n.in(1)))); }

void identity(Node &n) { n.set(0, n.in(0), n.onnxType(0)); }

/// Dropout when it infers; the mask is all true.
void dropout(Node &n) {
  Value x = n.in(0);
  if (n.opset < 7 && !n.attrInt("is_test", 0))
    n.refuse("attribute 'is_test' is 0, expected a model for inference");
  if (n.opset >= 12 && n.has(2)) {
    Ints training = n.ints(2, "training_mode");
    bool drops = true;
    if (n.has(1))
      drops = n.floats(1, "ratio") != std::vector<float>{0};
    if (training.size() != 1 || (training[0] && drops))
      n.refuse("training_mode is on, expected a model for inference");
  }
  n.set(0, x);
  if (n.wants(1))
    n.set(1, n.broadcast(n.scalar(1, n.opset < 10 ? Node::elementOf(x) : n.i1()), Node::dimsOf(x)));
}

constexpr OpRow rows[] = {
    {"", "Neg", unary<U::neg>},
    {"", "Abs", absolute},
    {"", "Sign", unary<U::sign>},
    {"", "Ceil", unary<U::ceil>},
    {"", "Floor", unary<U::floor>},
    {"", "Round", unary<U::round>},
    {"", "Sqrt", unary<U::sqrt>},
    {"", "Reciprocal", unary<U::reciprocal>},
    {"", "Exp", unary<U::exp>},
    {"", "Log", unary<U::log>},
    {"", "Sin", unary<U::sin>},
    {"", "Cos", unary<U::cos>},
    {"", "Tan", unary<U::tan>},
    {"", "Asin", unary<U::asin>},
    {"", "Acos", unary<U::acos>},
    {"", "Atan", unary<U::atan>},
    {"", "Sinh", unary<U::sinh>},
    {"", "Cosh", unary<U::cosh>},
    {"", "Tanh", unary<U::tanh>},
    {"", "Asinh", unary<U::asinh>},
    {"", "Acosh", unary<U::acosh>},
    {"", "Atanh", unary<U::atanh>},
    {"", "Erf", unary<U::erf>},
    {"", "Sigmoid", unary<U::sigmoid>},
    {"", "Relu", unary<U::relu>},
    {"", "Softplus", unary<U::softplus>},
    {"", "Softsign", unary<U::softsign>},
    {"", "HardSwish", unary<U::hard_swish>},
    {"", "Mish", unary<U::mish>},
    {"", "Not", unary<U::logical_not>},
    {"", "BitwiseNot", unary<U::bitwise_not>},
    {"", "IsNaN", unary<U::is_nan>},
    {"", "IsInf", isInf},
    {"", "Elu", [](Node &n) { activation<U::elu>(n, "alpha", 1); }},
    {"", "LeakyRelu", [](Node &n) { activation<U::leaky_relu>(n, "alpha", 0.01f); }},
    {"", "Selu", [](Node &n) { activation<U::selu>(n, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f); }},
    {"", "Celu", [](Node &n) { activation<U::celu>(n, "alpha", 1); }},
    {"", "ThresholdedRelu", [](Node &n) { activation<U::thresholded_relu>(n, "alpha", 1); }},
    {"", "HardSigmoid", [](Node &n) { activation<U::hard_sigmoid>(n, "alpha", 0.2f, "beta", 0.5f); }},
    {"", "Shrink", shrink},
    {"", "Gelu", gelu},
    {"", "Swish", [](Node &n) { swish(n, 1); }},
    {"com.microsoft", "Gelu", unary<U::gelu>},
    {"com.microsoft", "BiasGelu", biasGelu},
    {"com.microsoft", "QuickGelu", [](Node &n) { swish(n, 1.702f); }},
    {"", "PRelu", prelu},
    {"", "Add", binary<B::add>},
    {"", "Sub", binary<B::sub>},
    {"", "Mul", binary<B::mul>},
    {"", "Div", binary<B::div>},
    {"", "Pow", power},
    {"", "Mod", modulo},
    {"", "BitShift", bitShift},
    {"", "And", binary<B::bit_and>},
    {"", "Or", binary<B::bit_or>},
    {"", "Xor", binary<B::bit_xor>},
    {"", "BitwiseAnd", binary<B::bit_and>},
    {"", "BitwiseOr", binary<B::bit_or>},
    {"", "BitwiseXor", binary<B::bit_xor>},
    {"", "Min", variadic<B::min>},
    {"", "Max", variadic<B::max>},
    {"", "Sum", variadic<B::add>},
    {"", "Mean", mean},
    {"", "Equal", compare<C::eq>},
    {"", "Greater", compare<C::gt>},
    {"", "GreaterOrEqual", compare<C::ge>},
    {"", "Less", compare<C::lt>},
    {"", "LessOrEqual", compare<C::le>},
    {"", "Where", where},
    {"", "Clip", clip},
    {"", "Cast", cast},
    {"", "CastLike", castLike},
    {"", "Identity", identity},
    {"", "Dropout", dropout},
};

} // namespace

ArrayRef<OpRow> elementwiseRows() { return rows; }

} // namespace ajour::onnx_import
