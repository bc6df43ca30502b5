//===- IntegerProducts.cpp - products of quantised tensors in integers ----------===//
//
// dequantize(x) * dequantize(w) + bias is dequantize(x * w + bias'), where bias' is the bias in units of
// scale(x) scale(w), with the sum in i32; then quantize(dequantize(sum)) is a requantisation with one
// scale.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

bool isPerTensor(DequantizeOp op) { return op.getScales().size() == 1; }

unsigned integerWidth(DequantizeOp op) { return cast<IntegerType>(elementType(op.getInput())).getWidth(); }

/// The value of largest magnitude that a quantised element minus its zero point can have.
int64_t largestMagnitude(Type type, int64_t zeroPoint) {
  auto [low, high] = integerRange(type);
  return std::max(std::abs(low - zeroPoint), std::abs(high - zeroPoint));
}

/// One product with both operands dequantised, and what an integer one needs.
class IntegerProduct {
public:
  IntegerProduct(Operation *op, DequantizeOp lhs, DequantizeOp rhs) : op(op), lhs(lhs), rhs(rhs) {}

  /// Empty when everything fits, else why not.
  std::string analyse() {
    if (!isPerTensor(lhs))
      return "its input is quantised per channel";
    if (integerWidth(lhs) != 8)
      return "its input has " + std::to_string(integerWidth(lhs)) + " bits, integer products take 8";
    if (integerWidth(rhs) != 8)
      return "its weight is not of 8 bits per tensor or per output channel";
    if (rhs.getScales().size() > 1 && !isOutputAxis())
      return "its weight is quantised along another dimension than the output channels";
    if (!elementType(op->getResult(0)).isF32())
      return "its result is not f32";
    outputs = tensorType(op->getResult(0)).getShape().back();
    if (ShapedType::isDynamic(outputs) && rhs.getScales().size() > 1)
      return "its output channels are not known";
    for (float scale : rhs.getScales())
      unitScales.push_back(static_cast<float>(double(scale) * lhs.getScales()[0]));
    for (float scale : unitScales)
      if (!(scale > 0) || !std::isfinite(scale) || scale < 1e-30f)
        return "the product of its scales is outside the range of f32";
    if (std::string reason = findBias(); !reason.empty())
      return reason;
    return checkOverflow();
  }

  Value create(PatternRewriter &rewriter) {
    Location loc = fuse(lhs.getLoc(), op->getLoc());
    SmallVector<Value> operands{lhs.getInput(), rhs.getInput()};
    if (hasIntegerBias)
      operands.push_back(makeI32(rewriter, op->getLoc(), {outputs}, bias));
    Operation *product = rewriter.clone(*op);
    product->setLoc(loc);
    product->setOperands(operands);
    int32_t lhsZero = lhs.getZeroPoints()[0];
    SmallVector<int32_t> rhsZeros;
    if (llvm::any_of(rhs.getZeroPoints(), [](int32_t zero) { return zero != 0; }))
      rhsZeros.assign(rhs.getZeroPoints().begin(), rhs.getZeroPoints().end());
    auto setZeros = [&](auto typed) {
      typed.setLhsZeroPoint(lhsZero);
      typed.setRhsZeroPoints(rhsZeros);
    };
    if (auto conv = dyn_cast<ConvOp>(product))
      setZeros(conv);
    else if (auto transposed = dyn_cast<ConvTransposeOp>(product))
      setZeros(transposed);
    else
      setZeros(cast<MatmulOp>(product));
    RankedTensorType type = tensorType(op->getResult(0));
    product->getResult(0).setType(withElementType(type, rewriter.getI32Type()));
    SmallVector<int32_t> zeros(unitScales.size(), 0);
    Value real = DequantizeOp::create(rewriter, loc, type, product->getResult(0), unitScales, zeros, type.getRank() - 1);
    if (floatBias)
      real = BinaryOp::create(rewriter, loc, BinaryKind::add, real, floatBias);
    return real;
  }

private:
  /// Whether the weight's parameters go with the output channels.
  bool isOutputAxis() {
    int64_t axis = rhs.getAxis(), rank = tensorType(rhs.getInput()).getRank();
    axis = axis < 0 ? axis + rank : axis;
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return axis == rank - (matmul.getTransposeRhs() ? 2 : 1);
    return axis == 0;
  }

  /// The bias in units of the accumulator. It must be no coarser than the accumulator itself.
  std::string findBias() {
    if (op->getNumOperands() < 3)
      return "";
    Value value = op->getOperand(2);
    auto dequantize = value.getDefiningOp<DequantizeOp>();
    if (dequantize && integerWidth(dequantize) <= 32 && takesUnits(dequantize))
      if (ElementsAttr attr = getConstantValue(dequantize.getInput())) {
        std::vector<int64_t> wide = *constantInts(attr);
        bias.assign(wide.begin(), wide.end());
        hasIntegerBias = true;
        return "";
      }
    std::optional<std::vector<float>> real = f32Constant(value);
    if (dequantize && !real)
      real = dequantizedConstant(dequantize);
    if (!real) {
      floatBias = value;
      return "";
    }
    for (auto [i, number] : llvm::enumerate(*real)) {
      double units = std::nearbyint(double(number) / unitScale(i));
      if (!(std::fabs(units) < double(1 << 30))) {
        // Too large for the accumulator: added after it.
        floatBias = value;
        bias.clear();
        return "";
      }
      bias.push_back(static_cast<int32_t>(units));
    }
    hasIntegerBias = true;
    return "";
  }

  float unitScale(size_t channel) const { return unitScales[unitScales.size() > 1 ? channel : 0]; }

  /// Whether a quantised bias already counts in units of the accumulator.
  bool takesUnits(DequantizeOp dequantize) const {
    if (llvm::any_of(dequantize.getZeroPoints(), [](int32_t zero) { return zero != 0; }))
      return false;
    for (int64_t i = 0; i < outputs; ++i) {
      float scale = dequantize.getScales()[dequantize.getScales().size() > 1 ? i : 0];
      if (std::fabs(scale - unitScale(i)) > 1e-6f * scale)
        return false;
    }
    return true;
  }

  static std::optional<std::vector<float>> dequantizedConstant(DequantizeOp dequantize) {
    ElementsAttr attr = getConstantValue(dequantize.getInput());
    if (!attr)
      return std::nullopt;
    std::vector<int64_t> values = *constantInts(attr);
    std::vector<float> real;
    for (auto [i, value] : llvm::enumerate(values)) {
      size_t p = dequantize.getScales().size() > 1 ? i : 0;
      real.push_back(float(value - dequantize.getZeroPoints()[p]) * dequantize.getScales()[p]);
    }
    return real;
  }

  /// The sum of a channel's products stays inside i32 whatever the input holds.
  std::string checkOverflow() {
    int64_t input = largestMagnitude(elementType(lhs.getInput()), lhs.getZeroPoints()[0]);
    RankedTensorType type = tensorType(rhs.getInput());
    int64_t largestBias = 0;
    for (int32_t value : bias)
      largestBias = std::max<int64_t>(largestBias, std::abs(int64_t(value)));
    int64_t terms = 1;
    if (auto matmul = dyn_cast<MatmulOp>(op))
      terms = type.getDimSize(type.getRank() - (matmul.getTransposeRhs() ? 1 : 2));
    else
      for (int64_t size : type.getShape().drop_front())
        terms *= size;
    if (ShapedType::isDynamic(terms))
      return "the length of its sums is not known";
    int64_t weight = 0;
    for (int32_t zero : rhs.getZeroPoints())
      weight = std::max(weight, largestMagnitude(type.getElementType(), zero));
    if (terms > (int64_t(1) << 31) / (input * weight) || terms * input * weight + largestBias >= (int64_t(1) << 31))
      return "its sums of " + std::to_string(terms) + " products may exceed 32 bits";
    return "";
  }

  Operation *op;
  DequantizeOp lhs, rhs;
  int64_t outputs = 0;
  SmallVector<float> unitScales;
  std::vector<int32_t> bias;
  bool hasIntegerBias = false;
  Value floatBias;
};

template <typename Op> struct ToIntegerProduct : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto lhs = op->getOperand(0).template getDefiningOp<DequantizeOp>();
    auto rhs = op->getOperand(1).template getDefiningOp<DequantizeOp>();
    if (!lhs || !rhs)
      return failure();
    IntegerProduct product(op, lhs, rhs);
    if (!product.analyse().empty())
      return failure();
    rewriter.replaceOp(op, product.create(rewriter));
    return success();
  }
};

/// quantize(dequantize(sum)) of a 32-bit accumulator: one multiplication by the quotient of the scales.
struct ToRequantize : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    auto dequantize = op.getInput().getDefiningOp<DequantizeOp>();
    if (!dequantize || op.getScales().size() != 1 ||
        !elementType(dequantize.getInput()).isSignlessInteger(32) ||
        cast<IntegerType>(elementType(op.getResult())).getWidth() > 16 ||
        llvm::any_of(dequantize.getZeroPoints(), [](int32_t zero) { return zero != 0; }))
      return failure();
    SmallVector<float> scales;
    for (float scale : dequantize.getScales())
      scales.push_back(static_cast<float>(double(scale) / op.getScales()[0]));
    auto [low, high] = integerRange(elementType(op.getResult()));
    auto requantize = RequantizeOp::create(
        rewriter, fuse(dequantize.getLoc(), op.getLoc()), op.getType(), dequantize.getInput(),
        rewriter.getDenseF32ArrayAttr(scales), /*divisor=*/rewriter.getF32FloatAttr(1), /*multipliers=*/nullptr,
        /*shifts=*/nullptr,
        rewriter.getI64IntegerAttr(scales.size() > 1 ? int64_t(dequantize.getAxis()) : -1),
        rewriter.getI32IntegerAttr(op.getZeroPoints()[0]), rewriter.getI32IntegerAttr(low),
        rewriter.getI32IntegerAttr(high));
    rewriter.replaceOp(op, requantize);
    return success();
  }
};

} // namespace

void populateIntegerProducts(RewritePatternSet &patterns) {
  patterns.add<ToIntegerProduct<ConvOp>, ToIntegerProduct<ConvTransposeOp>, ToIntegerProduct<MatmulOp>, ToRequantize>(
      patterns.getContext());
}

std::string whyNotInteger(Operation *op) {
  auto lhs = op->getOperand(0).getDefiningOp<DequantizeOp>(), rhs = op->getOperand(1).getDefiningOp<DequantizeOp>();
  if (!lhs && !rhs)
    return "";
  if (!lhs)
    return "its input is not quantised";
  if (!rhs)
    return "its weight is not quantised";
  return IntegerProduct(op, lhs, rhs).analyse();
}

} // namespace ajour::simplify
