//===- FoldAffine.cpp - nn-fold-affine: scales and offsets into filters ---------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace simplify {
namespace {

/// A convolution, transposed convolution or matrix product with a constant weight, seen alike.
struct Product {
  Operation *op;

  static Product get(Operation *op) {
    return {isa_and_nonnull<ConvOp, ConvTransposeOp, MatmulOp>(op) ? op : nullptr};
  }
  explicit operator bool() const { return op != nullptr; }

  bool isMatmul() const { return isa<MatmulOp>(op); }
  Value weight() const { return op->getOperand(1); }
  Value bias() const { return op->getNumOperands() > 2 ? op->getOperand(2) : Value(); }
  RankedTensorType resultType() const { return tensorType(op->getResult(0)); }
  bool transposeRhs() const { return isMatmul() && cast<MatmulOp>(op).getTransposeRhs(); }
  int64_t outputs() const { return resultType().getShape().back(); }
  int64_t inputs() const {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return tensorType(weight()).getDimSize(matmul.getTransposeRhs() ? 1 : 0);
    return tensorType(op->getOperand(0)).getShape().back();
  }
  int64_t groups() const {
    if (auto conv = dyn_cast<ConvOp>(op))
      return conv.getGroups();
    return isMatmul() ? 1 : static_cast<int64_t>(cast<ConvTransposeOp>(op).getGroups());
  }

  /// Weight f32, constant, and for a matrix product of rank 2.
  bool hasConstantWeight() const {
    return f32Constant(weight()).has_value() && (!isMatmul() || tensorType(weight()).getRank() == 2);
  }

  /// Calls f(element, output channel, input channel) for each element of the weight.
  void forEach(std::vector<float> &values, llvm::function_ref<void(float &, int64_t, int64_t)> f) const {
    ArrayRef<int64_t> shape = tensorType(weight()).getShape();
    if (isMatmul()) {
      for (int64_t i = 0, n = values.size(); i < n; ++i) {
        int64_t row = i / shape[1], column = i % shape[1];
        transposeRhs() ? f(values[i], row, column) : f(values[i], column, row);
      }
      return;
    }
    int64_t channels = shape.back(), perOutput = values.size() / shape[0], outputsPerGroup = shape[0] / groups();
    for (int64_t i = 0, n = values.size(); i < n; ++i) {
      int64_t output = i / perOutput;
      f(values[i], output, output / outputsPerGroup * channels + i % channels);
    }
  }

  void setWeight(PatternRewriter &rewriter, ArrayRef<float> values) const {
    rewriter.setInsertionPoint(op);
    Value weight = makeF32(rewriter, op->getOperand(1).getLoc(), tensorType(op->getOperand(1)).getShape(), values);
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(1, weight); });
  }
  void setBias(PatternRewriter &rewriter, ArrayRef<float> values) const {
    rewriter.setInsertionPoint(op);
    Value constant = makeF32(rewriter, op->getLoc(), {outputs()}, values);
    rewriter.modifyOpInPlace(op, [&] {
      if (op->getNumOperands() > 2)
        op->setOperand(2, constant);
      else
        op->insertOperands(2, constant);
    });
  }
  /// The bias, zeros when there is none; nothing when it is not constant.
  std::optional<std::vector<float>> biasValues() const {
    return bias() ? f32Constant(bias()) : std::vector<float>(outputs(), 0.0f);
  }
};

/// Follows single-use transposes up from `value`; `channel` becomes the position of that dimension there.
Value traceUp(Value value, int64_t &channel) {
  while (auto transpose = value.getDefiningOp<TransposeOp>()) {
    if (!value.hasOneUse())
      break;
    channel = transpose.getPerm()[channel];
    value = transpose.getInput();
  }
  return value;
}

/// A constant that differs at most along dimension `channel` of a tensor of `rank`: one value for each of
/// `count` channels.
std::optional<std::vector<float>> perChannel(Value constant, int64_t rank, int64_t channel, int64_t count) {
  std::optional<std::vector<float>> values = f32Constant(constant);
  if (!values)
    return std::nullopt;
  RankedTensorType type = tensorType(constant);
  int64_t position = channel - (rank - type.getRank());
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.getDimSize(i) != 1 && i != position)
      return std::nullopt;
  if (values->size() == 1)
    return std::vector<float>(count, values->front());
  if (int64_t(values->size()) != count)
    return std::nullopt;
  return values;
}

/// product * a, product / a, product + a, product - a, a - product.
struct AffineAfterProduct : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op, PatternRewriter &rewriter) const override {
    BinaryKind kind = op.getKind();
    bool constantRight = static_cast<bool>(getConstantValue(op.getRhs()));
    Value input = constantRight ? op.getLhs() : op.getRhs(), constant = constantRight ? op.getRhs() : op.getLhs();
    if (!getConstantValue(constant) || input.getType() != op.getType() || !elementType(input).isF32())
      return failure();
    if (kind != BinaryKind::add && kind != BinaryKind::sub && kind != BinaryKind::mul &&
        (kind != BinaryKind::div || !constantRight))
      return failure();
    int64_t rank = tensorType(input).getRank();
    for (int64_t channel = 0; channel < rank; ++channel) {
      int64_t position = channel;
      Value root = traceUp(input, position);
      Product product = Product::get(root.getDefiningOp());
      if (!product || !root.hasOneUse() || !product.hasConstantWeight() || !product.biasValues())
        return failure();
      if (position != product.resultType().getRank() - 1)
        continue;
      std::optional<std::vector<float>> values = perChannel(constant, rank, channel, product.outputs());
      if (!values)
        return failure();
      fold(product, kind, constantRight, *values, rewriter);
      rewriter.modifyOpInPlace(product.op, [&] { product.op->setLoc(fuse(product.op->getLoc(), op.getLoc())); });
      rewriter.replaceOp(op, input);
      return success();
    }
    return failure();
  }

  static void fold(const Product &product, BinaryKind kind, bool constantRight, ArrayRef<float> values,
                   PatternRewriter &rewriter) {
    std::vector<float> bias = *product.biasValues();
    bool hadBias = static_cast<bool>(product.bias());
    if (kind == BinaryKind::add || (kind == BinaryKind::sub && constantRight)) {
      for (size_t i = 0; i < bias.size(); ++i)
        bias[i] = kind == BinaryKind::add ? bias[i] + values[i] : bias[i] - values[i];
      return product.setBias(rewriter, bias);
    }
    std::vector<float> weight = *f32Constant(product.weight());
    if (kind == BinaryKind::sub) {
      product.forEach(weight, [](float &w, int64_t, int64_t) { w = -w; });
      for (size_t i = 0; i < bias.size(); ++i)
        bias[i] = values[i] - bias[i];
      product.setWeight(rewriter, weight);
      return product.setBias(rewriter, bias);
    }
    auto scaled = [&](float x, int64_t o) { return kind == BinaryKind::mul ? x * values[o] : x / values[o]; };
    product.forEach(weight, [&](float &w, int64_t o, int64_t) { w = scaled(w, o); });
    for (size_t i = 0; i < bias.size(); ++i)
      bias[i] = scaled(bias[i], i);
    product.setWeight(rewriter, weight);
    if (hadBias)
      product.setBias(rewriter, bias);
  }
};

/// bias of an integer product: an addition of i32 constants per channel is exact, it wraps as the sum does.
struct IntegerBias : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op, PatternRewriter &rewriter) const override {
    Operation *product = op.getLhs().getDefiningOp();
    ElementsAttr constant = getConstantValue(op.getRhs());
    if (op.getKind() != BinaryKind::add || !constant || !isa_and_nonnull<ConvOp, ConvTransposeOp, MatmulOp>(product) ||
        product->getNumOperands() > 2 || !op.getLhs().hasOneUse() || op.getLhs().getType() != op.getType() ||
        !elementType(op.getResult()).isSignlessInteger(32))
      return failure();
    int64_t outputs = tensorType(op.getResult()).getShape().back();
    RankedTensorType type = tensorType(op.getRhs());
    if (ShapedType::isDynamic(outputs) || type.getNumElements() != outputs || type.getRank() == 0 ||
        type.getShape().back() != outputs)
      return failure();
    SmallVector<int32_t> values;
    std::vector<int64_t> wide = *constantInts(constant);
    for (int64_t value : wide)
      values.push_back(static_cast<int32_t>(value));
    rewriter.setInsertionPoint(product);
    Value bias = makeI32(rewriter, op.getLoc(), {outputs}, values);
    rewriter.modifyOpInPlace(product, [&] {
      product->insertOperands(2, bias);
      product->setLoc(fuse(product->getLoc(), op.getLoc()));
    });
    rewriter.replaceOp(op, op.getLhs());
    return success();
  }
};

/// x * a per input channel in front of a product. Zero padding stays zero under a finite factor. An addition
/// in front only commutes without padding.
template <typename Op> struct AffineBeforeProduct : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Product product = Product::get(op);
    if (!product.hasConstantWeight())
      return failure();
    Value operand = op->getOperand(0);
    int64_t channel = tensorType(operand).getRank() - 1;
    if constexpr (std::is_same_v<Op, MatmulOp>)
      if (op.getTransposeLhs())
        --channel;
    Value root = traceUp(operand, channel);
    auto binary = root.template getDefiningOp<BinaryOp>();
    if (!binary || !root.hasOneUse() || binary.getLhs().getType() != binary.getType())
      return failure();
    BinaryKind kind = binary.getKind();
    bool additive = kind == BinaryKind::add || kind == BinaryKind::sub;
    if (!additive && kind != BinaryKind::mul && kind != BinaryKind::div)
      return failure();
    if (additive && (!isUnpadded(op) || !product.biasValues()))
      return failure();
    std::optional<std::vector<float>> values =
        perChannel(binary.getRhs(), tensorType(root).getRank(), channel, product.inputs());
    if (!values || !llvm::all_of(*values, [](float value) { return std::isfinite(value); }))
      return failure();
    std::vector<float> weight = *f32Constant(product.weight());
    if (additive) {
      std::vector<double> sums(product.outputs(), 0.0);
      product.forEach(weight, [&](float &w, int64_t o, int64_t i) { sums[o] += double(w) * (*values)[i]; });
      std::vector<float> bias = *product.biasValues();
      for (size_t o = 0; o < bias.size(); ++o)
        bias[o] += static_cast<float>(kind == BinaryKind::add ? sums[o] : -sums[o]);
      product.setBias(rewriter, bias);
    } else {
      product.forEach(weight, [&](float &w, int64_t, int64_t i) {
        w = kind == BinaryKind::mul ? w * (*values)[i] : w / (*values)[i];
      });
      if (!llvm::all_of(weight, [](float value) { return std::isfinite(value); }))
        return failure();
      product.setWeight(rewriter, weight);
    }
    rewriter.modifyOpInPlace(op, [&] { op->setLoc(fuse(binary.getLoc(), op->getLoc())); });
    rewriter.replaceOp(binary, binary.getLhs());
    return success();
  }

  static bool isUnpadded(Op op) {
    if constexpr (std::is_same_v<Op, ConvOp>)
      return isZero(op.getPadsLow()) && isZero(op.getPadsHigh());
    return std::is_same_v<Op, MatmulOp>;
  }
};

} // namespace
} // namespace simplify

namespace {

struct FoldAffinePass : PassWrapper<FoldAffinePass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldAffinePass)

  StringRef getArgument() const override { return "nn-fold-affine"; }
  StringRef getDescription() const override { return "fold scales, offsets and padding into products and pools"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<simplify::AffineAfterProduct, simplify::IntegerBias, simplify::AffineBeforeProduct<ConvOp>,
                 simplify::AffineBeforeProduct<MatmulOp>>(&getContext());
    simplify::populatePadPatterns(patterns);
    if (failed(simplify::applyPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
    simplify::eraseDeadOps(getOperation());
  }
};

} // namespace

std::unique_ptr<Pass> createFoldAffinePass() { return std::make_unique<FoldAffinePass>(); }

} // namespace ajour
