//===- Elementwise.cpp - scalar code of operations on elements -------------------===//
#include "Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using ajour::nn::BinaryKind;
using ajour::nn::CompareKind;
using ajour::nn::ReduceKind;
using ajour::nn::UnaryKind;

namespace ajour::loops {

static bool isFloat(Type type) { return isa<FloatType>(type); }
static unsigned widthOf(Type type) { return type.getIntOrFloatBitWidth(); }

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value Emitter::toFloat(Value scalar, Type from) {
  Type f32 = b.getF32Type();
  if (from.isF32() || from.isF64())
    return scalar;
  if (isFloat(from))
    return arith::ExtFOp::create(b, loc, f32, scalar);
  if (nn::isUnsigned(from))
    return arith::UIToFPOp::create(b, loc, f32, scalar);
  return arith::SIToFPOp::create(b, loc, f32, scalar);
}

/// Float to integer, truncating and saturating; NaN gives 0. `real` is f32 or f64 of any value.
static Value truncateSaturating(Emitter &e, Value real, Type to) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  unsigned width = widthOf(to);
  bool isUnsigned = nn::isUnsigned(to);
  Type realType = real.getType();
  // Limits that the float type can hold: the highest value below 2^n.
  double low = isUnsigned ? 0.0 : -std::ldexp(1.0, width - 1);
  double bound = std::ldexp(1.0, isUnsigned ? width : width - 1);
  double high = realType.isF32() ? std::nextafterf(float(bound), 0.0f) : std::nextafter(bound, 0.0);
  if (bound - 1 < high)
    high = bound - 1;
  Type target = e.scalarType(to);
  Value clamped = arith::MaxNumFOp::create(b, loc, real, e.constant(realType, low));
  clamped = arith::MinNumFOp::create(b, loc, clamped, e.constant(realType, high));
  Value value = isUnsigned ? arith::FPToUIOp::create(b, loc, target, clamped).getResult()
                           : arith::FPToSIOp::create(b, loc, target, clamped).getResult();
  // A float cannot hold 2^n - 1 of wide types: values from the bound on take the type's own maximum.
  if (bound - 1 > high) {
    Value over = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, real, e.constant(realType, bound));
    APInt max = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
    value = e.select(over, arith::ConstantOp::create(b, loc, b.getIntegerAttr(target, max)), value);
  }
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, real, real);
  return e.select(isNan, e.integer(target, 0), value);
}

Value Emitter::convert(Value scalar, Type from, Type to) {
  if (from == to)
    return scalar;
  if (to.isInteger(1)) {
    if (isFloat(from))
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, scalar, constant(from, 0));
    return compare(arith::CmpIPredicate::ne, scalar, integer(scalar.getType(), 0));
  }
  if (isFloat(from) && isFloat(to)) {
    if (widthOf(from) < widthOf(to))
      return arith::ExtFOp::create(b, loc, to, scalar);
    if (widthOf(from) > widthOf(to))
      return arith::TruncFOp::create(b, loc, to, scalar);
    Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), scalar);
    return arith::TruncFOp::create(b, loc, to, wide);
  }
  if (isFloat(from))
    return truncateSaturating(*this, toFloat(scalar, from), to);
  if (isFloat(to)) {
    Type wide = to.isF64() ? to : Type(b.getF32Type());
    Value value = nn::isUnsigned(from) ? arith::UIToFPOp::create(b, loc, wide, scalar).getResult()
                                       : arith::SIToFPOp::create(b, loc, wide, scalar).getResult();
    return wide == to ? value : arith::TruncFOp::create(b, loc, to, value).getResult();
  }
  Type target = scalarType(to);
  if (widthOf(from) == widthOf(to))
    return scalar;
  if (widthOf(from) > widthOf(to))
    return arith::TruncIOp::create(b, loc, target, scalar);
  return nn::isUnsigned(from) ? arith::ExtUIOp::create(b, loc, target, scalar).getResult()
                              : arith::ExtSIOp::create(b, loc, target, scalar).getResult();
}

Value Emitter::saturate(Value real, Type elementType, int64_t low, int64_t high) {
  Type f = real.getType();
  constexpr int64_t exactInF32 = int64_t(1) << 24;
  if (low < -exactInF32 || high > exactInF32) {
    // An f32 may not hold these limits: they are applied to a wider integer.
    double bound = std::ldexp(1.0, 40);
    Value near = arith::MaxNumFOp::create(b, loc, real, constant(f, -bound));
    near = arith::MinNumFOp::create(b, loc, near, constant(f, bound));
    Value whole = arith::FPToSIOp::create(b, loc, b.getI64Type(), near);
    return convert(min(max(whole, i64(low)), i64(high)), b.getI64Type(), elementType);
  }
  Value clamped = arith::MaxNumFOp::create(b, loc, real, constant(f, double(low)));
  clamped = arith::MinNumFOp::create(b, loc, clamped, constant(f, double(high)));
  Value wide = arith::FPToSIOp::create(b, loc, b.getI32Type(), clamped);
  return convert(wide, b.getI32Type(), elementType);
}

//===----------------------------------------------------------------------===//
// Functions of one operand
//===----------------------------------------------------------------------===//

Value Emitter::floatUnary(UnaryKind kind, Value x, float alpha, float beta) {
  Type t = x.getType();
  auto c = [&](double value) { return constant(t, value); };
  auto addF = [&](Value a, Value d) -> Value { return arith::AddFOp::create(b, loc, a, d); };
  auto subF = [&](Value a, Value d) -> Value { return arith::SubFOp::create(b, loc, a, d); };
  auto mulF = [&](Value a, Value d) -> Value { return arith::MulFOp::create(b, loc, a, d); };
  auto divF = [&](Value a, Value d) -> Value { return arith::DivFOp::create(b, loc, a, d); };
  auto maxF = [&](Value a, Value d) -> Value { return arith::MaximumFOp::create(b, loc, a, d); };
  auto minF = [&](Value a, Value d) -> Value { return arith::MinimumFOp::create(b, loc, a, d); };
  auto exp = [&](Value a) -> Value { return math::ExpOp::create(b, loc, a); };
  auto less = [&](Value a, Value d) -> Value {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, a, d);
  };
  auto greater = [&](Value a, Value d) -> Value {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, a, d);
  };
  auto notGreater = [&](Value a, Value d) -> Value {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, a, d);
  };
  // log(1 + exp(x)) without overflow.
  auto softplus = [&]() -> Value {
    Value magnitude = math::AbsFOp::create(b, loc, x);
    Value tail = math::Log1pOp::create(b, loc, exp(arith::NegFOp::create(b, loc, magnitude)));
    return addF(maxF(x, c(0)), tail);
  };
  auto sigmoid = [&]() -> Value { return divF(c(1), addF(c(1), exp(arith::NegFOp::create(b, loc, x)))); };
  switch (kind) {
  case UnaryKind::neg:
    return arith::NegFOp::create(b, loc, x);
  case UnaryKind::abs:
    return math::AbsFOp::create(b, loc, x);
  case UnaryKind::sign: {
    Value s = select(less(x, c(0)), c(-1), select(greater(x, c(0)), c(1), c(0)));
    Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
    return select(isNan, x, s);
  }
  case UnaryKind::ceil:
    return math::CeilOp::create(b, loc, x);
  case UnaryKind::floor:
    return math::FloorOp::create(b, loc, x);
  case UnaryKind::round:
    return math::RoundEvenOp::create(b, loc, x);
  case UnaryKind::trunc:
    return math::TruncOp::create(b, loc, x);
  case UnaryKind::sqrt:
    return math::SqrtOp::create(b, loc, x);
  case UnaryKind::rsqrt:
    return divF(c(1), math::SqrtOp::create(b, loc, x));
  case UnaryKind::reciprocal:
    return divF(c(1), x);
  case UnaryKind::exp:
    return exp(x);
  case UnaryKind::log:
    return math::LogOp::create(b, loc, x);
  case UnaryKind::sin:
    return math::SinOp::create(b, loc, x);
  case UnaryKind::cos:
    return math::CosOp::create(b, loc, x);
  case UnaryKind::tan:
    return math::TanOp::create(b, loc, x);
  case UnaryKind::asin:
    return math::AsinOp::create(b, loc, x);
  case UnaryKind::acos:
    return math::AcosOp::create(b, loc, x);
  case UnaryKind::atan:
    return math::AtanOp::create(b, loc, x);
  case UnaryKind::sinh:
    return math::SinhOp::create(b, loc, x);
  case UnaryKind::cosh:
    return math::CoshOp::create(b, loc, x);
  case UnaryKind::tanh:
    return math::TanhOp::create(b, loc, x);
  case UnaryKind::asinh:
    return math::AsinhOp::create(b, loc, x);
  case UnaryKind::acosh:
    return math::AcoshOp::create(b, loc, x);
  case UnaryKind::atanh:
    return math::AtanhOp::create(b, loc, x);
  case UnaryKind::erf:
    return math::ErfOp::create(b, loc, x);
  case UnaryKind::sigmoid:
    return sigmoid();
  case UnaryKind::relu:
    return maxF(x, c(0));
  case UnaryKind::softplus:
    return softplus();
  case UnaryKind::softsign:
    return divF(x, addF(c(1), math::AbsFOp::create(b, loc, x)));
  case UnaryKind::hard_swish:
    return divF(mulF(x, minF(maxF(addF(x, c(3)), c(0)), c(6))), c(6));
  case UnaryKind::mish:
    return mulF(x, math::TanhOp::create(b, loc, softplus()));
  case UnaryKind::gelu:
    return mulF(mulF(c(0.5), x), addF(c(1), math::ErfOp::create(b, loc, mulF(x, c(0.70710678118654752440)))));
  case UnaryKind::gelu_tanh: {
    Value cube = mulF(mulF(x, x), x);
    Value inner = mulF(c(0.79788456080286535588), addF(x, mulF(c(0.044715), cube)));
    return mulF(mulF(c(0.5), x), addF(c(1), math::TanhOp::create(b, loc, inner)));
  }
  case UnaryKind::silu:
    return mulF(x, sigmoid());
  case UnaryKind::elu:
    return select(less(x, c(0)), mulF(c(alpha), math::ExpM1Op::create(b, loc, x)), x);
  case UnaryKind::leaky_relu:
    return select(less(x, c(0)), mulF(c(alpha), x), x);
  case UnaryKind::selu:
    return mulF(c(beta), select(greater(x, c(0)), x, mulF(c(alpha), math::ExpM1Op::create(b, loc, x))));
  case UnaryKind::celu: {
    Value negative = mulF(c(alpha), math::ExpM1Op::create(b, loc, divF(x, c(alpha))));
    return addF(maxF(x, c(0)), minF(c(0), negative));
  }
  case UnaryKind::thresholded_relu:
    return select(notGreater(x, c(alpha)), c(0), x); // NaN stays
  case UnaryKind::hard_sigmoid:
    return maxF(c(0), minF(c(1), addF(mulF(c(alpha), x), c(beta))));
  case UnaryKind::shrink:
    return select(less(x, c(-alpha)), addF(x, c(beta)), select(notGreater(x, c(alpha)), c(0), subF(x, c(beta))));
  case UnaryKind::square:
    return mulF(x, x);
  default:
    llvm_unreachable("not a function of a float");
  }
}

Value Emitter::unary(UnaryKind kind, Value x, Type type, float alpha, float beta) {
  if (isFloat(type)) {
    if (kind == UnaryKind::is_nan)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
    if (kind == UnaryKind::is_inf) {
      double infinity = std::numeric_limits<double>::infinity();
      Value no = integer(b.getI1Type(), 0);
      Value low = alpha != 0
                      ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, constant(type, -infinity)).getResult()
                      : no;
      Value high = beta != 0
                       ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, constant(type, infinity)).getResult()
                       : no;
      return b.createOrFold<arith::OrIOp>(loc, low, high);
    }
    return convert(floatUnary(kind, toFloat(x, type), alpha, beta), type.isF64() ? type : Type(b.getF32Type()), type);
  }
  Type t = x.getType();
  Value zero = integer(t, 0);
  auto lessThanZero = [&] { return compare(arith::CmpIPredicate::slt, x, zero); };
  bool isUnsigned = nn::isUnsigned(type);
  switch (kind) {
  case UnaryKind::neg:
    return sub(zero, x);
  case UnaryKind::abs:
    return isUnsigned ? x : select(lessThanZero(), sub(zero, x), x);
  case UnaryKind::sign: {
    Value positive = select(compare(arith::CmpIPredicate::ne, x, zero), integer(t, 1), zero);
    return isUnsigned ? positive : select(lessThanZero(), integer(t, -1), positive);
  }
  case UnaryKind::relu:
    return isUnsigned ? x : max(x, zero);
  case UnaryKind::square:
    return mul(x, x);
  case UnaryKind::logical_not:
  case UnaryKind::bitwise_not:
    return b.createOrFold<arith::XOrIOp>(loc, x, integer(t, type.isInteger(1) ? 1 : -1));
  default:
    llvm_unreachable("the verifier wants a float");
  }
}

//===----------------------------------------------------------------------===//
// Functions of two operands
//===----------------------------------------------------------------------===//

/// pow for any real operands. Integral exponents of small size are common; math.powf covers all.
static Value floatBinary(Emitter &e, BinaryKind kind, Value x, Value y) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Type t = x.getType();
  switch (kind) {
  case BinaryKind::add:
    return arith::AddFOp::create(b, loc, x, y);
  case BinaryKind::sub:
    return arith::SubFOp::create(b, loc, x, y);
  case BinaryKind::mul:
    return arith::MulFOp::create(b, loc, x, y);
  case BinaryKind::div:
    return arith::DivFOp::create(b, loc, x, y);
  case BinaryKind::floor_div:
    return math::FloorOp::create(b, loc, arith::DivFOp::create(b, loc, x, y));
  case BinaryKind::pow:
    return math::PowFOp::create(b, loc, x, y);
  case BinaryKind::trunc_mod:
  case BinaryKind::floor_mod: {
    // x - y * trunc(x / y) is exact when the quotient is; a fused step keeps it so nearly always.
    Value quotient = arith::DivFOp::create(b, loc, x, y);
    Value whole = math::TruncOp::create(b, loc, quotient);
    Value r = math::FmaOp::create(b, loc, arith::NegFOp::create(b, loc, whole), y, x);
    if (kind == BinaryKind::trunc_mod)
      return math::CopySignOp::create(b, loc, math::AbsFOp::create(b, loc, r), x);
    Value zero = e.constant(t, 0);
    Value nonZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, r, zero);
    Value rNegative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, r, zero);
    Value yNegative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, y, zero);
    Value differ = b.createOrFold<arith::XOrIOp>(loc, rNegative, yNegative);
    return e.select(e.logicalAnd(nonZero, differ), arith::AddFOp::create(b, loc, r, y), r);
  }
  case BinaryKind::min:
    return arith::MinimumFOp::create(b, loc, x, y);
  case BinaryKind::max:
    return arith::MaximumFOp::create(b, loc, x, y);
  case BinaryKind::squared_difference: {
    Value difference = arith::SubFOp::create(b, loc, x, y);
    return arith::MulFOp::create(b, loc, difference, difference);
  }
  case BinaryKind::prelu: {
    Value negative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, e.constant(t, 0));
    return e.select(negative, arith::MulFOp::create(b, loc, x, y), x);
  }
  case BinaryKind::atan2:
    return math::Atan2Op::create(b, loc, x, y);
  default:
    llvm_unreachable("not a function of floats");
  }
}

Value Emitter::binary(BinaryKind kind, Value x, Value y, Type type) {
  if (isFloat(type))
    return convert(floatBinary(*this, kind, toFloat(x, type), toFloat(y, type)),
                   type.isF64() ? type : Type(b.getF32Type()), type);
  Type t = x.getType();
  bool isUnsigned = nn::isUnsigned(type);
  Value zero = integer(t, 0), one = integer(t, 1);
  // Division by zero gives zero; the lowest value by -1 wraps.
  auto divide = [&](bool wantRemainder) -> Value {
    Value isZero = compare(arith::CmpIPredicate::eq, y, zero);
    Value divisor = select(isZero, one, y);
    Value quotient;
    if (isUnsigned) {
      quotient = wantRemainder ? arith::RemUIOp::create(b, loc, x, divisor).getResult()
                               : arith::DivUIOp::create(b, loc, x, divisor).getResult();
    } else {
      Value isMinusOne = compare(arith::CmpIPredicate::eq, divisor, integer(t, -1));
      Value safe = select(isMinusOne, one, divisor);
      quotient = wantRemainder ? arith::RemSIOp::create(b, loc, x, safe).getResult()
                               : arith::DivSIOp::create(b, loc, x, safe).getResult();
      quotient = select(isMinusOne, wantRemainder ? zero : sub(zero, x), quotient);
    }
    return select(isZero, zero, quotient);
  };
  auto signsDiffer = [&](Value r) {
    Value nonZero = compare(arith::CmpIPredicate::ne, r, zero);
    Value differ = compare(arith::CmpIPredicate::slt, b.createOrFold<arith::XOrIOp>(loc, r, y), zero);
    return logicalAnd(nonZero, differ);
  };
  switch (kind) {
  case BinaryKind::add:
    return add(x, y);
  case BinaryKind::sub:
    return sub(x, y);
  case BinaryKind::mul:
    return mul(x, y);
  case BinaryKind::div:
    return divide(false);
  case BinaryKind::floor_div: {
    Value quotient = divide(false);
    if (isUnsigned)
      return quotient;
    return select(signsDiffer(divide(true)), sub(quotient, one), quotient);
  }
  case BinaryKind::trunc_mod:
    return divide(true);
  case BinaryKind::floor_mod: {
    Value r = divide(true);
    return isUnsigned ? r : select(signsDiffer(r), add(r, y), r);
  }
  case BinaryKind::pow: {
    // Square and multiply over the bits of the exponent; negative exponents give 0 but for bases 1 and -1.
    Index result = reduce(i64(0), i64(widthOf(type) - (isUnsigned ? 0 : 1)), {one, x},
                          [&](Value bit, ArrayRef<Value> carried) -> Index {
                            Value shift = convert(bit, b.getI64Type(), t);
                            Value isSet = b.createOrFold<arith::AndIOp>(loc, arith::ShRUIOp::create(b, loc, y, shift), one);
                            Value next = select(compare(arith::CmpIPredicate::ne, isSet, zero), mul(carried[0], carried[1]),
                                                carried[0]);
                            return {next, mul(carried[1], carried[1])};
                          });
    if (isUnsigned)
      return result[0];
    Value odd = compare(arith::CmpIPredicate::ne, b.createOrFold<arith::AndIOp>(loc, y, one), zero);
    Value minusOne = integer(t, -1);
    Value inverse = select(compare(arith::CmpIPredicate::eq, x, one), one,
                           select(compare(arith::CmpIPredicate::eq, x, minusOne), select(odd, minusOne, one), zero));
    return select(compare(arith::CmpIPredicate::slt, y, zero), inverse, result[0]);
  }
  case BinaryKind::min:
    return isUnsigned ? b.createOrFold<arith::MinUIOp>(loc, x, y) : min(x, y);
  case BinaryKind::max:
    return isUnsigned ? b.createOrFold<arith::MaxUIOp>(loc, x, y) : max(x, y);
  case BinaryKind::bit_and:
    return b.createOrFold<arith::AndIOp>(loc, x, y);
  case BinaryKind::bit_or:
    return b.createOrFold<arith::OrIOp>(loc, x, y);
  case BinaryKind::bit_xor:
    return b.createOrFold<arith::XOrIOp>(loc, x, y);
  case BinaryKind::shift_left:
  case BinaryKind::shift_right: {
    // Shifting by the width or more leaves nothing (or the sign).
    Value width = integer(t, widthOf(type));
    Value tooFar = compare(arith::CmpIPredicate::uge, y, width);
    Value amount = select(tooFar, integer(t, widthOf(type) - 1), y);
    if (kind == BinaryKind::shift_left)
      return select(tooFar, zero, arith::ShLIOp::create(b, loc, x, amount));
    if (isUnsigned)
      return select(tooFar, zero, arith::ShRUIOp::create(b, loc, x, amount));
    return arith::ShRSIOp::create(b, loc, x, amount);
  }
  case BinaryKind::squared_difference: {
    Value difference = sub(x, y);
    return mul(difference, difference);
  }
  case BinaryKind::prelu:
    return isUnsigned ? x : select(compare(arith::CmpIPredicate::slt, x, zero), mul(x, y), x);
  case BinaryKind::atan2:
    break;
  }
  llvm_unreachable("not a function of integers");
}

Value Emitter::compareElements(CompareKind kind, Value x, Value y, Type type) {
  static const arith::CmpFPredicate floats[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
  static const arith::CmpIPredicate signedOnes[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                    arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                    arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  static const arith::CmpIPredicate unsignedOnes[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                      arith::CmpIPredicate::ult, arith::CmpIPredicate::ule,
                                                      arith::CmpIPredicate::ugt, arith::CmpIPredicate::uge};
  size_t i = static_cast<size_t>(kind);
  if (isFloat(type))
    return arith::CmpFOp::create(b, loc, floats[i], x, y);
  return compare(nn::isUnsigned(type) ? unsignedOnes[i] : signedOnes[i], x, y);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value Emitter::neutral(ReduceKind kind, Type type) {
  Type t = scalarType(type);
  bool isFloatType = isFloat(type);
  double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::mean:
    return constant(t, 0);
  case ReduceKind::prod:
    return constant(t, 1);
  case ReduceKind::max:
    if (isFloatType)
      return constant(t, -infinity);
    return nn::isUnsigned(type) ? integer(t, 0)
                                : arith::ConstantOp::create(b, loc, b.getIntegerAttr(t, APInt::getSignedMinValue(widthOf(t))));
  case ReduceKind::min:
    if (isFloatType)
      return constant(t, infinity);
    return nn::isUnsigned(type)
               ? integer(t, -1)
               : arith::ConstantOp::create(b, loc, b.getIntegerAttr(t, APInt::getSignedMaxValue(widthOf(t))));
  }
  llvm_unreachable("unknown reduction");
}

Value Emitter::combine(ReduceKind kind, Value acc, Value x, Type type) {
  // Sums and products of floats may be reordered: it lets them use vectors.
  auto reorder = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  if (isFloat(type)) {
    switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::mean:
      return arith::AddFOp::create(b, loc, acc, x, reorder);
    case ReduceKind::prod:
      return arith::MulFOp::create(b, loc, acc, x, reorder);
    case ReduceKind::max:
      return arith::MaximumFOp::create(b, loc, acc, x);
    case ReduceKind::min:
      return arith::MinimumFOp::create(b, loc, acc, x);
    }
  }
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::mean:
    return add(acc, x);
  case ReduceKind::prod:
    return mul(acc, x);
  case ReduceKind::max:
    return binary(BinaryKind::max, acc, x, type);
  case ReduceKind::min:
    return binary(BinaryKind::min, acc, x, type);
  }
  llvm_unreachable("unknown reduction");
}

//===----------------------------------------------------------------------===//
// Quantisation
//===----------------------------------------------------------------------===//

Value Emitter::perChannel(ArrayRef<float> values, Value channel) {
  if (llvm::all_equal(values))
    return constant(b.getF32Type(), values[0]);
  return loadAt(table(values), channel, b.getF32Type());
}

Value Emitter::perChannel(ArrayRef<int32_t> values, Value channel) {
  if (llvm::all_equal(values))
    return i32(values[0]);
  return loadAt(table(values), channel, b.getI32Type());
}

static int64_t wrapAxis(int64_t axis, size_t rank) { return axis < 0 ? axis + int64_t(rank) : axis; }

/// The channel of an index, or zero for per-tensor parameters of a scalar.
static Value channelOf(Emitter &e, int64_t axis, size_t count, ArrayRef<Value> index) {
  return count == 1 ? e.i64(0) : index[wrapAxis(axis, index.size())];
}

Value Emitter::computeQuantize(nn::QuantizeOp op, ArrayRef<Value> index) {
  Value x = toFloat(element(op.getInput(), index), elementType(op.getInput()));
  Value channel = channelOf(*this, op.getAxis(), op.getScales().size(), index);
  Type f = x.getType();
  Value scale = convert(perChannel(op.getScales(), channel), b.getF32Type(), f);
  Value zeroPoint = perChannel(op.getZeroPoints(), channel);
  Value q = math::RoundEvenOp::create(b, loc, arith::DivFOp::create(b, loc, x, scale));
  q = arith::AddFOp::create(b, loc, q, arith::SIToFPOp::create(b, loc, f, zeroPoint));
  Type type = elementType(op.getResult());
  auto [low, high] = nn::integerRange(type);
  return saturate(q, type, low, high); // NaN becomes the lowest value
}

Value Emitter::computeDequantize(nn::DequantizeOp op, ArrayRef<Value> index) {
  Type from = elementType(op.getInput()), to = elementType(op.getResult());
  Value x = element(op.getInput(), index);
  Value position = channelOf(*this, op.getAxis(), op.getScales().size(), index);
  Value zeroPoint = perChannel(op.getZeroPoints(), position);
  Type i32Type = b.getI32Type();
  unsigned width = widthOf(from);
  Value shifted = width > 32 ? sub(x, convert(zeroPoint, i32Type, from)) : sub(convert(x, from, i32Type), zeroPoint);
  Value real = arith::SIToFPOp::create(b, loc, b.getF32Type(), shifted);
  real = arith::MulFOp::create(b, loc, real, perChannel(op.getScales(), position));
  return convert(real, b.getF32Type(), to);
}

/// x * multiplier * 2^(shift - 31) of a 32-bit x, as nn.requantize defines it.
static Value fixedPoint32(Emitter &e, Value x, Value multiplier, Value shift) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Type i64Type = b.getI64Type(), i32Type = b.getI32Type();
  Value zero = e.i32(0);
  Value left = e.max(shift, zero), right = e.max(e.sub(zero, shift), zero);
  x = arith::ShLIOp::create(b, loc, x, left);
  Value product = arith::MulIOp::create(b, loc, arith::ExtSIOp::create(b, loc, i64Type, x),
                                        arith::ExtSIOp::create(b, loc, i64Type, multiplier));
  // The quotient by 2^31 is truncated: for a negative product that is a shift after adding 2^31 - 1, which
  // with its nudge of 1 - 2^30 makes 2^30, the nudge of the others.
  Value high = arith::ShRSIOp::create(b, loc, e.add(product, e.i64(int64_t(1) << 30)), e.i64(31));
  // Both operands the lowest value: the doubled product does not fit and saturates.
  high = e.min(high, e.i64(std::numeric_limits<int32_t>::max()));
  Value q = arith::TruncIOp::create(b, loc, i32Type, high);
  // Divide by 2^right, halves away from zero.
  Value one = e.i32(1);
  Value mask = e.sub(arith::ShLIOp::create(b, loc, one, right), one);
  Value remainder = b.createOrFold<arith::AndIOp>(loc, q, mask);
  Value negative = arith::ExtUIOp::create(b, loc, i32Type, e.compare(arith::CmpIPredicate::slt, q, zero));
  Value threshold = e.add(arith::ShRSIOp::create(b, loc, mask, one), negative);
  Value up = arith::ExtUIOp::create(b, loc, i32Type, e.compare(arith::CmpIPredicate::sgt, remainder, threshold));
  return e.add(arith::ShRSIOp::create(b, loc, q, right), up);
}

/// The 64-bit form; the result has 64 bits.
static Value fixedPoint64(Emitter &e, Value x, Value multiplier, Value shift) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Type i64Type = b.getI64Type();
  Value m = arith::ExtSIOp::create(b, loc, i64Type, multiplier);
  m = e.min(arith::ShRSIOp::create(b, loc, e.add(m, e.i64(1 << 15)), e.i64(16)), e.i64(0x7fff));
  Value s = arith::ExtSIOp::create(b, loc, i64Type, shift);
  Value total = e.sub(e.i64(15), s);
  Value half = arith::ShLIOp::create(b, loc, e.i64(1), e.sub(total, e.i64(1)));
  return arith::ShRSIOp::create(b, loc, e.add(e.mul(x, m), half), total);
}

Value Emitter::computeRequantize(nn::RequantizeOp op, ArrayRef<Value> index) {
  Type from = elementType(op.getInput()), to = elementType(op.getResult());
  Value x = element(op.getInput(), index);
  int64_t low = static_cast<int32_t>(op.getQmin()), high = static_cast<int32_t>(op.getQmax());
  int32_t zeroPoint = op.getZeroPoint();
  if (auto scales = op.getScales()) {
    Value channel = channelOf(*this, op.getAxis(), scales->size(), index);
    Value real = toFloat(x, from);
    real = arith::MulFOp::create(b, loc, real, perChannel(*scales, channel));
    if (float divisor = op.getDivisor().convertToFloat(); divisor != 1)
      real = arith::DivFOp::create(b, loc, real, constant(b.getF32Type(), divisor));
    real = math::RoundEvenOp::create(b, loc, real);
    real = arith::AddFOp::create(b, loc, real, constant(b.getF32Type(), zeroPoint));
    return saturate(real, to, low, high);
  }
  Value channel = channelOf(*this, op.getAxis(), op.getMultipliers()->size(), index);
  Value multiplier = perChannel(*op.getMultipliers(), channel), shift = perChannel(*op.getShifts(), channel);
  Value q = widthOf(from) == 64 ? fixedPoint64(*this, x, multiplier, shift)
                                : fixedPoint32(*this, convert(x, from, b.getI32Type()), multiplier, shift);
  // Limited before the zero point is added, so that the sum fits 32 bits.
  low = std::max<int64_t>(low - zeroPoint, std::numeric_limits<int32_t>::min());
  high = std::min<int64_t>(high - zeroPoint, std::numeric_limits<int32_t>::max());
  auto limit = [&](int64_t value) { return q.getType().isInteger(64) ? i64(value) : i32(static_cast<int32_t>(value)); };
  q = min(max(q, limit(low)), limit(high));
  if (q.getType().isInteger(64))
    q = arith::TruncIOp::create(b, loc, b.getI32Type(), q);
  return convert(add(q, i32(zeroPoint)), b.getI32Type(), to);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// A 16-bit value between the two entries of the table beside it.
Value Emitter::interpolate(nn::LookupOp op, ArrayRef<Value> index) {
  Type i16 = b.getIntegerType(16), i32Type = b.getI32Type();
  Value position = add(convert(element(op.getInput(), index), i16, i32Type), i32(32768));
  Value entry = convert(div(position, i32(128)), i32Type, b.getI64Type());
  Value low = convert(element(op.getTable(), {entry}), i16, i32Type);
  Value high = convert(element(op.getTable(), {add(entry, i64(1))}), i16, i32Type);
  Value rise = add(mul(sub(high, low), rem(position, i32(128))), i32(64));
  return convert(add(low, b.createOrFold<arith::ShRSIOp>(loc, rise, i32(7))), i32Type, i16);
}

Value Emitter::computeElementwise(Operation *op, ArrayRef<Value> index) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::ConstantOp constantOp) -> Value {
        // Constants that were cloned into a dispatch have one value.
        Type type = elementType(constantOp.getResult());
        if (auto floats = nn::constantFloats(constantOp.getValue()))
          return constant(type, type.isF64() ? *reinterpret_cast<const double *>(
                                                   nn::constantBytes(constantOp.getValue()).data())
                                             : (*floats)[0]);
        return integer(scalarType(type), (*nn::constantInts(constantOp.getValue()))[0]);
      })
      .Case([&](nn::UnaryOp unaryOp) {
        return unary(unaryOp.getKind(), element(unaryOp.getInput(), index), elementType(unaryOp.getInput()),
                     unaryOp.getAlpha().convertToFloat(), unaryOp.getBeta().convertToFloat());
      })
      .Case([&](nn::BinaryOp binaryOp) {
        Value lhs = broadcastElement(binaryOp.getLhs(), index), rhs = broadcastElement(binaryOp.getRhs(), index);
        return binary(binaryOp.getKind(), lhs, rhs, elementType(binaryOp.getLhs()));
      })
      .Case([&](nn::CompareOp compareOp) {
        Value lhs = broadcastElement(compareOp.getLhs(), index), rhs = broadcastElement(compareOp.getRhs(), index);
        return compareElements(compareOp.getKind(), lhs, rhs, elementType(compareOp.getLhs()));
      })
      .Case([&](nn::SelectOp selectOp) {
        Value condition = broadcastElement(selectOp.getCondition(), index);
        Value lhs = broadcastElement(selectOp.getLhs(), index), rhs = broadcastElement(selectOp.getRhs(), index);
        return select(condition, lhs, rhs);
      })
      .Case([&](nn::CastOp castOp) {
        return convert(element(castOp.getInput(), index), elementType(castOp.getInput()),
                       elementType(castOp.getResult()));
      })
      .Case([&](nn::ClampOp clampOp) {
        Type type = elementType(clampOp.getInput());
        Value x = element(clampOp.getInput(), index);
        double low = clampOp.getLow().convertToDouble(), high = clampOp.getHigh().convertToDouble();
        if (isFloat(type)) {
          // f16 limits must not overflow to the wrong side: infinities are what they become.
          x = arith::MaximumFOp::create(b, loc, x, constant(x.getType(), low));
          return arith::MinimumFOp::create(b, loc, x, constant(x.getType(), high)).getResult();
        }
        // Limits outside an integer type do not limit.
        bool isUnsigned = nn::isUnsigned(type);
        unsigned width = widthOf(type);
        double typeLow = isUnsigned ? 0 : -std::ldexp(1.0, width - 1);
        double typeHigh = std::ldexp(1.0, isUnsigned ? width : width - 1) - 1;
        if (low > typeLow)
          x = binary(BinaryKind::max, x, integer(x.getType(), int64_t(std::ceil(std::min(low, typeHigh)))), type);
        if (high < typeHigh)
          x = binary(BinaryKind::min, x, integer(x.getType(), int64_t(std::floor(std::max(high, typeLow)))), type);
        return x;
      })
      .Case([&](nn::QuantizeOp quantizeOp) { return computeQuantize(quantizeOp, index); })
      .Case([&](nn::DequantizeOp dequantizeOp) { return computeDequantize(dequantizeOp, index); })
      .Case([&](nn::RequantizeOp requantizeOp) { return computeRequantize(requantizeOp, index); })
      .Case([&](nn::LookupOp lookupOp) {
        Type type = elementType(lookupOp.getInput());
        if (type.isInteger(16))
          return interpolate(lookupOp, index);
        Value x = convert(element(lookupOp.getInput(), index), type, b.getI64Type());
        if (!nn::isUnsigned(type))
          x = add(x, i64(128));
        return element(lookupOp.getTable(), {x});
      })
      .Default([](Operation *unknown) -> Value {
        llvm::report_fatal_error(llvm::Twine("no scalar code for ") + unknown->getName().getStringRef());
      });
}

} // namespace ajour::loops
