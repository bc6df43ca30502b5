//===- ExpandMath.cpp - no operation may become a library call ------------===//
//
// Two walks over a module. The first makes arithmetic on f16 and bf16 arithmetic on f32, and the remainder
// and the elementary functions expressions. The second makes the conversions from and to bf16, and those
// from f64 to f16, integer operations. What LLVM selects inline for every level is left alone.
//
//===----------------------------------------------------------------------===//
#include "Codegen.h"
#include "MathFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ajour {

static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

/// Operations that compute with floats, as opposed to moving or converting them.
static bool computes(Operation *op) {
  if (isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp, arith::SIToFPOp,
          arith::UIToFPOp>(op))
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<vector::FMAOp, vector::ReductionOp, vector::MultiDimReductionOp, vector::ContractionOp,
             vector::OuterProductOp, vector::ScanOp>(op);
}

/// Computes in f32 what is stated for f16 or bf16, rounding the result.
static void widen(Operation *op) {
  OpBuilder builder(op);
  Location location = op->getLoc();
  Type f32 = builder.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isHalf(operand.get().getType()))
      operand.set(arith::ExtFOp::create(builder, location, FloatBuilder::withElement(operand.get().getType(), f32),
                                        operand.get()));
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    Type type = result.getType();
    if (!isHalf(type))
      continue;
    result.setType(FloatBuilder::withElement(type, f32));
    auto narrow = arith::TruncFOp::create(builder, location, type, result);
    result.replaceAllUsesExcept(narrow, narrow);
  }
}

/// Conversions from integers to f16 and bf16 go by way of a type that holds the integer exactly enough.
template <typename Op> static void widenConversion(Op op) {
  Type type = op.getType();
  if (!isHalf(type))
    return;
  OpBuilder builder(op);
  Type wide = getElementTypeOrSelf(type).isBF16() ? Type(builder.getF64Type()) : Type(builder.getF32Type());
  Value exact = Op::create(builder, op.getLoc(), FloatBuilder::withElement(type, wide), op.getIn());
  op.replaceAllUsesWith(arith::TruncFOp::create(builder, op.getLoc(), type, exact).getResult());
  op.erase();
}

/// f64 to f32, rounded to odd: a second rounding then gives the same as a single one.
static Term toSingleOdd(Term x) {
  FloatBuilder &builder = *x.builder;
  Term single = builder.toSingle(x);
  Term back = builder.toDouble(single);
  Term bits = builder.bits(single);
  Term truncated = select(abs(back) > abs(x), addInt(bits, -1), bits);
  Term one = builder.intConstant(bits.value.getType(), 1);
  Term inexact = builder.compare(arith::CmpFPredicate::ONE, back, x);
  return builder.fromBits(select(inexact, truncated | one, bits));
}

/// f32 to bf16: round to nearest, ties to even; NaN stays NaN.
static Term toBFloat(Term x) {
  FloatBuilder &builder = *x.builder;
  Term bits = builder.bits(x);
  Term high = shiftRightZero(bits, 16);
  Term rounded = shiftRightZero(addInt(addInt(bits, 0x7fff), andInt(high, 1)), 16);
  Term quiet = high | builder.intConstant(high.value.getType(), 0x40);
  return builder.fromBits(
      builder.cast<arith::TruncIOp>(select(isNaN(x), quiet, rounded), builder.ir.getIntegerType(16)));
}

static void expandTruncation(arith::TruncFOp op) {
  OpBuilder ir(op);
  FloatBuilder builder(ir, op.getLoc());
  Term x = builder.term(op.getIn());
  bool toBF16 = getElementTypeOrSelf(op.getType()).isBF16();
  if (!toBF16 && !(FloatBuilder::isDouble(x) && getElementTypeOrSelf(op.getType()).isF16()))
    return;
  if (FloatBuilder::isDouble(x))
    x = toSingleOdd(x);
  Term result = toBF16 ? toBFloat(x) : builder.cast<arith::TruncFOp>(x, ir.getF16Type());
  op.replaceAllUsesWith(result.value);
  op.erase();
}

static void expandExtension(arith::ExtFOp op) {
  if (!getElementTypeOrSelf(op.getIn().getType()).isBF16())
    return;
  OpBuilder ir(op);
  FloatBuilder builder(ir, op.getLoc());
  Term bits = builder.cast<arith::ExtUIOp>(builder.bits(builder.term(op.getIn())), ir.getI32Type());
  Term result = builder.fromBits(shiftLeft(bits, 16));
  if (getElementTypeOrSelf(op.getType()).isF64())
    result = builder.toDouble(result);
  op.replaceAllUsesWith(result.value);
  op.erase();
}

/// The expression of one operation, or nothing if LLVM has an instruction for it.
static SmallVector<Value> expand(Operation *op, FloatBuilder &builder) {
  auto operand = [&](unsigned i) { return builder.term(op->getOperand(i)); };
#define AJOUR_UNARY(name, function) .Case<math::name>([&](auto) { return functions::function(operand(0)).value; })
#define AJOUR_BINARY(name, function)                                                                                   \
  .Case<name>([&](auto) { return functions::function(operand(0), operand(1)).value; })
  if (auto both = dyn_cast<math::SincosOp>(op))
    return {functions::sin(operand(0)).value, functions::cos(operand(0)).value};
  Value value =
      TypeSwitch<Operation *, Value>(op)
      // clang-format off
      AJOUR_UNARY(ExpOp, exp) AJOUR_UNARY(Exp2Op, exp2) AJOUR_UNARY(ExpM1Op, expm1)
      AJOUR_UNARY(LogOp, log) AJOUR_UNARY(Log2Op, log2) AJOUR_UNARY(Log10Op, log10) AJOUR_UNARY(Log1pOp, log1p)
      AJOUR_UNARY(TanhOp, tanh) AJOUR_UNARY(ErfOp, erf) AJOUR_UNARY(ErfcOp, erfc) AJOUR_UNARY(RsqrtOp, rsqrt)
      AJOUR_UNARY(SinOp, sin) AJOUR_UNARY(CosOp, cos) AJOUR_UNARY(TanOp, tan)
      AJOUR_UNARY(AsinOp, asin) AJOUR_UNARY(AcosOp, acos) AJOUR_UNARY(AtanOp, atan)
      AJOUR_UNARY(SinhOp, sinh) AJOUR_UNARY(CoshOp, cosh)
      AJOUR_UNARY(AsinhOp, asinh) AJOUR_UNARY(AcoshOp, acosh) AJOUR_UNARY(AtanhOp, atanh)
      AJOUR_UNARY(CbrtOp, cbrt)
      AJOUR_BINARY(math::Atan2Op, atan2) AJOUR_BINARY(math::PowFOp, pow) AJOUR_BINARY(math::FPowIOp, powInt)
      AJOUR_BINARY(math::IPowIOp, integerPower) AJOUR_BINARY(arith::RemFOp, remainder)
      // clang-format on
      .Default([](Operation *) { return Value(); });
#undef AJOUR_UNARY
#undef AJOUR_BINARY
  return value ? SmallVector<Value>{value} : SmallVector<Value>{};
}

void expandMath(ModuleOp module) {
  module.walk([](Operation *op) {
    if (computes(op) && (llvm::any_of(op->getOperandTypes(), isHalf) || llvm::any_of(op->getResultTypes(), isHalf)))
      widen(op);
  });
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<arith::SIToFPOp, arith::UIToFPOp, arith::RemFOp>(op) || isa<math::MathDialect>(op->getDialect()))
      found.push_back(op);
  });
  for (Operation *op : found) {
    if (auto conversion = dyn_cast<arith::SIToFPOp>(op)) {
      widenConversion(conversion);
      continue;
    }
    if (auto conversion = dyn_cast<arith::UIToFPOp>(op)) {
      widenConversion(conversion);
      continue;
    }
    OpBuilder ir(op);
    FloatBuilder builder(ir, op->getLoc());
    SmallVector<Value> values = expand(op, builder);
    if (values.empty())
      continue;
    op->replaceAllUsesWith(values);
    op->erase();
  }
  // Collected after the first walk, which makes conversions.
  SmallVector<Operation *> conversions;
  module.walk([&](Operation *op) {
    if (isa<arith::TruncFOp, arith::ExtFOp>(op))
      conversions.push_back(op);
  });
  for (Operation *op : conversions) {
    if (auto truncation = dyn_cast<arith::TruncFOp>(op))
      expandTruncation(truncation);
    else
      expandExtension(cast<arith::ExtFOp>(op));
  }
}

} // namespace ajour
