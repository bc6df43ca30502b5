//===- FloatBuilder.h - arithmetic expressions as IR ----------*- C++ -*-===//
#ifndef AJOUR_LIB_TARGET_CPU_FLOATBUILDER_H
#define AJOUR_LIB_TARGET_CPU_FLOATBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ajour {

class FloatBuilder;

/// A float, integer or truth value (scalar or vector) in an expression. All operators make operations
/// without fast-math flags: the expansions rely on every rounding.
struct Term {
  FloatBuilder *builder;
  mlir::Value value;
};

/// Makes the operations of an expression. Functions take and return terms of one shape.
class FloatBuilder {
public:
  FloatBuilder(mlir::OpBuilder &builder, mlir::Location location) : ir(location, builder) {}

  Term term(mlir::Value value) { return {this, value}; }

  /// A type of the shape of `like` with another element type.
  static mlir::Type withElement(mlir::Type like, mlir::Type element) {
    auto shaped = mlir::dyn_cast<mlir::ShapedType>(like);
    return shaped ? mlir::Type(shaped.clone(element)) : element;
  }
  static bool isDouble(Term x) { return mlir::getElementTypeOrSelf(x.value.getType()).isF64(); }
  static unsigned width(Term x) { return mlir::getElementTypeOrSelf(x.value.getType()).getIntOrFloatBitWidth(); }

  Term floatConstant(mlir::Type like, double value) {
    return constant(like, ir.getFloatAttr(mlir::getElementTypeOrSelf(like), value));
  }
  Term intConstant(mlir::Type like, int64_t value) {
    unsigned bits = mlir::getElementTypeOrSelf(like).getIntOrFloatBitWidth();
    return constant(like, ir.getIntegerAttr(mlir::getElementTypeOrSelf(like),
                                            llvm::APInt(bits, uint64_t(value), false, /*implicitTrunc=*/true)));
  }
  Term constantLike(Term x, double value) {
    return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(x.value.getType()))
               ? floatConstant(x.value.getType(), value)
               : intConstant(x.value.getType(), int64_t(value));
  }

  template <typename Op> Term unary(Term x) { return term(Op::create(ir, x.value)); }
  template <typename Op> Term binary(Term x, Term y) { return term(Op::create(ir, x.value, y.value)); }
  Term fma(Term a, Term b, Term c) { return term(mlir::math::FmaOp::create(ir, a.value, b.value, c.value)); }
  Term select(Term condition, Term a, Term b) {
    return term(mlir::arith::SelectOp::create(ir, condition.value, a.value, b.value));
  }
  Term compare(mlir::arith::CmpFPredicate predicate, Term a, Term b) {
    return term(mlir::arith::CmpFOp::create(ir, predicate, a.value, b.value));
  }
  Term compare(mlir::arith::CmpIPredicate predicate, Term a, Term b) {
    return term(mlir::arith::CmpIOp::create(ir, predicate, a.value, b.value));
  }
  template <typename Op> Term cast(Term x, mlir::Type element) {
    return term(Op::create(ir, withElement(x.value.getType(), element), x.value));
  }
  /// The bits of a float as an integer of the same width.
  Term bits(Term x) { return cast<mlir::arith::BitcastOp>(x, ir.getIntegerType(width(x))); }
  /// A float of the same width as the integer x.
  Term fromBits(Term x) {
    unsigned bits = width(x);
    mlir::Type element = bits == 64 ? mlir::Type(ir.getF64Type())
                         : bits == 32 ? mlir::Type(ir.getF32Type()) : mlir::Type(ir.getBF16Type());
    return cast<mlir::arith::BitcastOp>(x, element);
  }
  Term toDouble(Term x) { return isDouble(x) ? x : cast<mlir::arith::ExtFOp>(x, ir.getF64Type()); }
  Term toSingle(Term x) { return cast<mlir::arith::TruncFOp>(x, ir.getF32Type()); }

  mlir::ImplicitLocOpBuilder ir;

private:
  Term constant(mlir::Type like, mlir::TypedAttr element) {
    mlir::TypedAttr attribute = element;
    if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(like))
      attribute = mlir::DenseElementsAttr::get(shaped, mlir::Attribute(element));
    return term(mlir::arith::ConstantOp::create(ir, attribute));
  }
};

inline Term operator+(Term a, Term b) { return a.builder->binary<mlir::arith::AddFOp>(a, b); }
inline Term operator-(Term a, Term b) { return a.builder->binary<mlir::arith::SubFOp>(a, b); }
inline Term operator*(Term a, Term b) { return a.builder->binary<mlir::arith::MulFOp>(a, b); }
inline Term operator/(Term a, Term b) { return a.builder->binary<mlir::arith::DivFOp>(a, b); }
inline Term operator-(Term a) { return a.builder->unary<mlir::arith::NegFOp>(a); }
inline Term operator+(Term a, double b) { return a + a.builder->constantLike(a, b); }
inline Term operator-(Term a, double b) { return a - a.builder->constantLike(a, b); }
inline Term operator*(Term a, double b) { return a * a.builder->constantLike(a, b); }
inline Term operator/(Term a, double b) { return a / a.builder->constantLike(a, b); }
inline Term operator+(double a, Term b) { return b.builder->constantLike(b, a) + b; }
inline Term operator-(double a, Term b) { return b.builder->constantLike(b, a) - b; }
inline Term operator*(double a, Term b) { return b.builder->constantLike(b, a) * b; }
inline Term operator/(double a, Term b) { return b.builder->constantLike(b, a) / b; }
// Ordered comparisons: false for NaN.
inline Term operator<(Term a, Term b) { return a.builder->compare(mlir::arith::CmpFPredicate::OLT, a, b); }
inline Term operator<(Term a, double b) { return a < a.builder->constantLike(a, b); }
inline Term operator>(Term a, Term b) { return b < a; }
inline Term operator>(Term a, double b) { return a.builder->constantLike(a, b) < a; }
inline Term operator==(Term a, Term b) { return a.builder->compare(mlir::arith::CmpFPredicate::OEQ, a, b); }
inline Term operator==(Term a, double b) { return a == a.builder->constantLike(a, b); }
/// True also when a or b is NaN.
inline Term operator!=(Term a, Term b) { return a.builder->compare(mlir::arith::CmpFPredicate::UNE, a, b); }
inline Term operator&(Term a, Term b) { return a.builder->binary<mlir::arith::AndIOp>(a, b); }
inline Term operator|(Term a, Term b) { return a.builder->binary<mlir::arith::OrIOp>(a, b); }
inline Term operator^(Term a, Term b) { return a.builder->binary<mlir::arith::XOrIOp>(a, b); }

inline Term fma(Term a, Term b, Term c) { return a.builder->fma(a, b, c); }
inline Term fma(Term a, double b, Term c) { return fma(a, a.builder->constantLike(a, b), c); }
inline Term fma(Term a, Term b, double c) { return fma(a, b, a.builder->constantLike(a, c)); }
inline Term fma(Term a, double b, double c) {
  return fma(a, a.builder->constantLike(a, b), a.builder->constantLike(a, c));
}
inline Term select(Term condition, Term a, Term b) { return condition.builder->select(condition, a, b); }
inline Term select(Term condition, double a, Term b) { return select(condition, b.builder->constantLike(b, a), b); }
inline Term select(Term condition, Term a, double b) { return select(condition, a, a.builder->constantLike(a, b)); }
inline Term abs(Term a) { return a.builder->unary<mlir::math::AbsFOp>(a); }
inline Term sqrt(Term a) { return a.builder->unary<mlir::math::SqrtOp>(a); }
inline Term floor(Term a) { return a.builder->unary<mlir::math::FloorOp>(a); }
inline Term trunc(Term a) { return a.builder->unary<mlir::math::TruncOp>(a); }
inline Term copysign(Term magnitude, Term sign) {
  return magnitude.builder->binary<mlir::math::CopySignOp>(magnitude, sign);
}
inline Term isNaN(Term a) { return a.builder->compare(mlir::arith::CmpFPredicate::UNO, a, a); }
/// Integer operations.
inline Term addInt(Term a, int64_t b) {
  return a.builder->binary<mlir::arith::AddIOp>(a, a.builder->intConstant(a.value.getType(), b));
}
inline Term addInt(Term a, Term b) { return a.builder->binary<mlir::arith::AddIOp>(a, b); }
inline Term subInt(Term a, Term b) { return a.builder->binary<mlir::arith::SubIOp>(a, b); }
inline Term andInt(Term a, int64_t b) { return a & a.builder->intConstant(a.value.getType(), b); }
inline Term shiftLeft(Term a, int64_t n) {
  return a.builder->binary<mlir::arith::ShLIOp>(a, a.builder->intConstant(a.value.getType(), n));
}
inline Term shiftRight(Term a, int64_t n) { // keeps the sign
  return a.builder->binary<mlir::arith::ShRSIOp>(a, a.builder->intConstant(a.value.getType(), n));
}
inline Term shiftRightZero(Term a, int64_t n) {
  return a.builder->binary<mlir::arith::ShRUIOp>(a, a.builder->intConstant(a.value.getType(), n));
}
inline Term isZeroInt(Term a) {
  return a.builder->compare(mlir::arith::CmpIPredicate::eq, a, a.builder->intConstant(a.value.getType(), 0));
}

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
inline Term polynomial(Term x, llvm::ArrayRef<double> c) {
  Term sum = x.builder->constantLike(x, c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    sum = fma(sum, x, coefficient);
  return sum;
}

} // namespace ajour

#endif
