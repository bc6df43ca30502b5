//===- FoldElementwise.cpp - identities of operations on elements ---------------===//
//
// Every rewrite gives the same bits: an addition of +0.0 therefore stays (it turns -0.0 into +0.0) while
// an addition of -0.0 goes. One exception: max(x, 0) and min(x, 0) become limits, which keep x's own zero.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Whether `kind` with this constant at the right gives its left operand back.
bool isRightIdentity(BinaryKind kind, Value constant) {
  if (std::optional<float> value = floatSplat(constant)) {
    switch (kind) {
    case BinaryKind::add:
      return *value == 0 && std::signbit(*value);
    case BinaryKind::sub:
      return *value == 0 && !std::signbit(*value);
    case BinaryKind::mul:
    case BinaryKind::div:
      return *value == 1;
    default:
      return false;
    }
  }
  std::optional<int64_t> value = intSplat(constant);
  if (!value || elementType(constant).isInteger(1))
    return false;
  switch (kind) {
  case BinaryKind::add:
  case BinaryKind::sub:
  case BinaryKind::bit_or:
  case BinaryKind::bit_xor:
  case BinaryKind::shift_left:
  case BinaryKind::shift_right:
    return *value == 0;
  case BinaryKind::mul:
  case BinaryKind::div:
  case BinaryKind::floor_div:
    return *value == 1;
  default:
    return false;
  }
}

struct FoldBinary : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op, PatternRewriter &rewriter) const override {
    BinaryKind kind = op.getKind();
    bool commutes = kind == BinaryKind::add || kind == BinaryKind::mul;
    bool leftConstant = static_cast<bool>(getConstantValue(op.getLhs()));
    bool rightConstant = static_cast<bool>(getConstantValue(op.getRhs()));
    if (commutes && leftConstant && !rightConstant) {
      Value lhs = op.getLhs(), rhs = op.getRhs();
      rewriter.modifyOpInPlace(op, [&] {
        op.getLhsMutable().assign(rhs);
        op.getRhsMutable().assign(lhs);
      });
      return success();
    }
    if (rightConstant && op.getLhs().getType() == op.getType() && isRightIdentity(kind, op.getRhs())) {
      rewriter.replaceOp(op, op.getLhs());
      return success();
    }
    return minMaxToClamp(op, rewriter);
  }

  /// min and max with a number are limits. Both keep NaN.
  static LogicalResult minMaxToClamp(BinaryOp op, PatternRewriter &rewriter) {
    if (op.getKind() != BinaryKind::min && op.getKind() != BinaryKind::max)
      return failure();
    for (bool constantRight : {true, false}) {
      Value constant = constantRight ? op.getRhs() : op.getLhs(), input = constantRight ? op.getLhs() : op.getRhs();
      std::optional<float> limit = floatSplat(constant);
      if (!limit || input.getType() != op.getType() || std::isnan(*limit) || getConstantValue(input) ||
          elementType(input).isF64())
        continue;
      bool isMin = op.getKind() == BinaryKind::min;
      rewriter.replaceOpWithNewOp<ClampOp>(op, input, rewriter.getF64FloatAttr(isMin ? -infinity : *limit),
                                           rewriter.getF64FloatAttr(isMin ? *limit : infinity));
      return success();
    }
    return failure();
  }
};

struct FoldSelect : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    Value chosen;
    if (op.getLhs() == op.getRhs())
      chosen = op.getLhs();
    else if (std::optional<int64_t> condition = intSplat(op.getCondition()))
      chosen = *condition ? op.getLhs() : op.getRhs();
    if (!chosen)
      return failure();
    if (chosen.getType() == op.getType())
      rewriter.replaceOp(op, chosen);
    else
      rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), chosen);
    return success();
  }
};

/// Whether every value of `from` has exactly that value in `to`.
bool widensExactly(Type from, Type to) {
  auto digits = [](Type type) { return static_cast<int>(cast<FloatType>(type).getFPMantissaWidth()); };
  auto fromInt = dyn_cast<IntegerType>(from), toInt = dyn_cast<IntegerType>(to);
  if (fromInt && toInt) {
    if (toInt.getWidth() == 1)
      return fromInt.getWidth() == 1;
    bool fromUnsigned = isUnsigned(from), toUnsigned = isUnsigned(to);
    if (fromUnsigned == toUnsigned)
      return toInt.getWidth() >= fromInt.getWidth();
    return fromUnsigned && toInt.getWidth() > fromInt.getWidth();
  }
  if (fromInt) {
    // f16 reaches 65504 only, f32 and f64 reach far beyond their digits.
    int bits = static_cast<int>(fromInt.getWidth()) - (isUnsigned(from) ? 0 : 1);
    return bits <= digits(to);
  }
  if (toInt)
    return false;
  if (from == to || to.isF64())
    return true;
  return to.isF32() && !from.isF64();
}

/// cast(cast(x)) is one cast when the first loses nothing and the second means the same from both types.
struct FoldCast : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<CastOp>();
    if (!inner)
      return failure();
    Type a = elementType(inner.getInput()), b = elementType(inner.getResult()), c = elementType(op.getResult());
    if (!widensExactly(a, b))
      return failure();
    // From floating point an integer saturates, from an integer it wraps.
    if (isa<IntegerType>(a) && isa<FloatType>(b) && isa<IntegerType>(c) && !c.isInteger(1) && !widensExactly(a, c))
      return failure();
    if (a == c)
      rewriter.replaceOp(op, inner.getInput());
    else
      replaceFused<CastOp>(rewriter, op, inner.getLoc(), op.getType(), inner.getInput());
    return success();
  }
};

/// The limits that an operation sets: of a clamp, or of relu.
std::optional<std::pair<double, double>> limitsOf(Operation *op) {
  if (auto clamp = dyn_cast_or_null<ClampOp>(op))
    return std::pair(clamp.getLow().convertToDouble(), clamp.getHigh().convertToDouble());
  if (auto unary = dyn_cast_or_null<UnaryOp>(op))
    if (unary.getKind() == UnaryKind::relu)
      return std::pair(0.0, infinity);
  return std::nullopt;
}

/// Limits of limits: the inner interval seen through the outer one. Conversion of the limits to the element type
/// is monotonic, so it commutes with this. Integers of 64 bits have limits that f64 cannot write, they stay.
LogicalResult mergeLimits(Operation *op, PatternRewriter &rewriter) {
  Operation *inner = op->getOperand(0).getDefiningOp();
  auto outerLimits = limitsOf(op), innerLimits = limitsOf(inner);
  if (!outerLimits || !innerLimits || !isa<FloatType>(elementType(op->getResult(0))))
    return failure();
  auto limit = [&](double x) {
    return x < outerLimits->first ? outerLimits->first : x > outerLimits->second ? outerLimits->second : x;
  };
  double newLow = limit(innerLimits->first), newHigh = limit(innerLimits->second);
  Value input = inner->getOperand(0);
  Location loc = fuse(inner->getLoc(), op->getLoc());
  Value merged;
  if (newLow == 0 && newHigh == infinity && (isa<UnaryOp>(op) || isa<UnaryOp>(inner)))
    merged = UnaryOp::create(rewriter, loc, UnaryKind::relu, input);
  else
    merged = ClampOp::create(rewriter, loc, input, rewriter.getF64FloatAttr(newLow), rewriter.getF64FloatAttr(newHigh));
  rewriter.replaceOp(op, merged);
  return success();
}

struct FoldClamp : OpRewritePattern<ClampOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ClampOp op, PatternRewriter &rewriter) const override {
    if (op.getLow().convertToDouble() == -infinity && op.getHigh().convertToDouble() == infinity &&
        isa<FloatType>(elementType(op.getResult()))) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    return mergeLimits(op, rewriter);
  }
};

struct FoldUnary : OpRewritePattern<UnaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(UnaryOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<UnaryOp>();
    bool undoes = op.getKind() == UnaryKind::neg || op.getKind() == UnaryKind::logical_not ||
                  op.getKind() == UnaryKind::bitwise_not;
    if (inner && undoes && inner.getKind() == op.getKind()) {
      rewriter.replaceOp(op, inner.getInput());
      return success();
    }
    return op.getKind() == UnaryKind::relu ? mergeLimits(op, rewriter) : failure();
  }
};

/// quantize(dequantize(x)) is x with equal parameters: for |x - zero_point| < 2^17 the product and the quotient
/// err by less than 2^-5, as long as neither leaves the normal numbers.
struct FoldQuantize : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<DequantizeOp>();
    if (!inner || inner.getInput().getType() != op.getType() ||
        !elementType(inner.getResult()).isF32() || cast<IntegerType>(elementType(op.getResult())).getWidth() > 16 ||
        inner.getScales() != op.getScales() || inner.getZeroPoints() != op.getZeroPoints() ||
        (op.getScales().size() > 1 && inner.getAxis() != op.getAxis()))
      return failure();
    for (float scale : op.getScales())
      if (scale < 1e-30f || scale > 1e30f)
        return failure();
    rewriter.replaceOp(op, inner.getInput());
    return success();
  }
};

/// Limits of a requantised tensor are the requantisation's own, also behind a change of layout.
struct LimitsOfRequantize : OpRewritePattern<ClampOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ClampOp op, PatternRewriter &rewriter) const override {
    Value source = op.getInput();
    while (source.hasOneUse() && isa_and_nonnull<TransposeOp, ReshapeOp>(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    auto requantize = source.getDefiningOp<RequantizeOp>();
    if (!requantize || !source.hasOneUse())
      return failure();
    auto [lowest, highest] = integerRange(elementType(op.getResult()));
    double low = std::clamp(op.getLow().convertToDouble(), double(lowest), double(highest));
    double high = std::clamp(op.getHigh().convertToDouble(), double(lowest), double(highest));
    if (low != std::trunc(low) || high != std::trunc(high))
      return failure();
    auto limit = [&](uint32_t value) {
      return static_cast<int32_t>(std::clamp(double(static_cast<int32_t>(value)), low, high));
    };
    rewriter.modifyOpInPlace(requantize, [&] {
      requantize.setQmin(limit(requantize.getQmin()));
      requantize.setQmax(limit(requantize.getQmax()));
      requantize->setLoc(fuse(requantize.getLoc(), op.getLoc()));
    });
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

} // namespace

void populateElementwisePatterns(RewritePatternSet &patterns) {
  patterns.add<FoldBinary, FoldSelect, FoldCast, FoldClamp, FoldUnary, FoldQuantize, LimitsOfRequantize>(patterns.getContext());
}

} // namespace ajour::simplify
