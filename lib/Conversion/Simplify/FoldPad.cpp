//===- FoldPad.cpp - explicit padding becomes an operation's own ----------------===//
//
// Exact: the same elements meet the same values. Only spatial dimensions may be padded, by amounts that
// are not negative.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

#include <limits>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

/// A constant padding in front of a spatial operation, seen through a transpose.
struct PaddedInput {
  PadOp pad;
  TransposeOp transpose; ///< between padding and operation, or null
  Perm low, high;        ///< for each dimension as the operation sees it
};

std::optional<PaddedInput> matchPaddedInput(Value input) {
  PaddedInput found;
  found.transpose = input.getDefiningOp<TransposeOp>();
  found.pad = (found.transpose ? found.transpose.getInput() : input).getDefiningOp<PadOp>();
  if (!found.pad || found.pad.getMode() != PadMode::constant)
    return std::nullopt;
  Perm perm = found.transpose ? Perm(found.transpose.getPerm()) : identityPerm(tensorType(input).getRank());
  for (int64_t p : perm) {
    found.low.push_back(found.pad.getLow()[p]);
    found.high.push_back(found.pad.getHigh()[p]);
    if (found.low.back() < 0 || found.high.back() < 0)
      return std::nullopt;
  }
  if (found.low.front() || found.high.front() || found.low.back() || found.high.back())
    return std::nullopt;
  return found;
}

/// What stands in the padding: 0 without a value, nothing when it is not constant.
std::optional<double> paddingValue(PadOp pad) {
  if (!pad.getValue())
    return 0.0;
  if (std::optional<float> value = floatSplat(pad.getValue()))
    return *value;
  if (std::optional<int64_t> value = intSplat(pad.getValue()))
    return static_cast<double>(*value);
  return std::nullopt;
}

/// The operand without its padding.
Value withoutPadding(const PaddedInput &padded, PatternRewriter &rewriter) {
  PadOp pad = padded.pad;
  if (!padded.transpose)
    return pad.getInput();
  TransposeOp transpose = padded.transpose;
  return TransposeOp::create(rewriter, transpose.getLoc(), pad.getInput(), transpose.getPerm());
}

/// Adds the padding's spatial amounts to an operation's own and takes the padding away.
template <typename Op> void absorb(Op op, const PaddedInput &padded, PatternRewriter &rewriter) {
  Value input = withoutPadding(padded, rewriter);
  Perm low(op.getPadsLow()), high(op.getPadsHigh());
  for (size_t i = 0; i < low.size(); ++i) {
    low[i] += padded.low[i + 1];
    high[i] += padded.high[i + 1];
  }
  PadOp pad = padded.pad;
  rewriter.modifyOpInPlace(op, [&] {
    op.getInputMutable().assign(input);
    op.setPadsLow(low);
    op.setPadsHigh(high);
    op->setLoc(fuse(pad.getLoc(), op->getLoc()));
  });
}

struct PadBeforeConv : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    std::optional<PaddedInput> padded = matchPaddedInput(op.getInput());
    bool isFloat = isa<FloatType>(elementType(op.getInput()));
    double neutral = isFloat ? 0.0 : static_cast<int32_t>(op.getLhsZeroPoint());
    if (!padded || paddingValue(padded->pad) != neutral)
      return failure();
    absorb(op, *padded, rewriter);
    return success();
  }
};

/// Zeros in front of a mean that counts its padding.
struct PadBeforeAvgPool : OpRewritePattern<AvgPoolOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AvgPoolOp op, PatternRewriter &rewriter) const override {
    bool ownPadding = !isZero(op.getPadsLow()) || !isZero(op.getPadsHigh());
    std::optional<PaddedInput> padded = matchPaddedInput(op.getInput());
    if (!padded || op.getCeilMode() || (ownPadding && !op.getCountIncludePad()) || paddingValue(padded->pad) != 0.0)
      return failure();
    absorb(op, *padded, rewriter);
    rewriter.modifyOpInPlace(op, [&] { op.setCountIncludePad(true); });
    return success();
  }
};

/// Whether no element can be negative.
bool isNonNegative(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto unary = dyn_cast_or_null<UnaryOp>(op))
    return unary.getKind() == UnaryKind::relu || unary.getKind() == UnaryKind::sigmoid;
  if (auto clamp = dyn_cast_or_null<ClampOp>(op))
    return clamp.getLow().convertToDouble() >= 0;
  if (isa_and_nonnull<TransposeOp, ReshapeOp, SliceOp, MaxPoolOp>(op))
    return isNonNegative(op->getOperand(0));
  return false;
}

/// The lowest value in front of a maximum, or 0 where nothing is negative; every window must hold an element.
struct PadBeforeMaxPool : OpRewritePattern<MaxPoolOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MaxPoolOp op, PatternRewriter &rewriter) const override {
    std::optional<PaddedInput> padded = matchPaddedInput(op.getInput());
    if (!padded || op.getCeilMode() || !isZero(op.getPadsLow()) || !isZero(op.getPadsHigh()))
      return failure();
    for (size_t i = 0; i < op.getWindow().size(); ++i)
      if (op.getDilations()[i] != 1 || padded->low[i + 1] >= op.getWindow()[i] ||
          padded->high[i + 1] >= op.getWindow()[i])
        return failure();
    std::optional<double> value = paddingValue(padded->pad);
    Type element = elementType(op.getInput());
    double lowest = -std::numeric_limits<double>::infinity();
    if (auto integer = dyn_cast<IntegerType>(element)) {
      if (integer.getWidth() > 32)
        return failure();
      lowest = integerRange(element).first;
    }
    if (!value || (*value != lowest && !(*value == 0 && isNonNegative(padded->pad.getInput()))))
      return failure();
    absorb(op, *padded, rewriter);
    return success();
  }
};

} // namespace

void populatePadPatterns(RewritePatternSet &patterns) {
  patterns.add<PadBeforeConv, PadBeforeAvgPool, PadBeforeMaxPool>(patterns.getContext());
}

} // namespace ajour::simplify
