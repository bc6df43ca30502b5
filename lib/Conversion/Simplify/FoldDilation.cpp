//===- FoldDilation.cpp - space-to-batch around a convolution -------------------===//
//
// Some exporters write a dilated convolution as space-to-batch, convolution, batch-to-space. Exact: each result is the
// same sum of the same products.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

/// One reshape, transpose, reshape; `middle` is the shape in between, before the transpose.
struct Rearrangement {
  Value input;
  ArrayRef<int64_t> middle;

  static std::optional<Rearrangement> match(Value value, ArrayRef<int64_t> perm) {
    auto last = value.getDefiningOp<ReshapeOp>();
    auto transpose = last ? last.getInput().getDefiningOp<TransposeOp>() : TransposeOp();
    auto first = transpose ? transpose.getInput().getDefiningOp<ReshapeOp>() : ReshapeOp();
    if (!first || transpose.getPerm() != perm || !tensorType(first.getResult()).hasStaticShape() ||
        tensorType(first.getInput()).getRank() != 4 || tensorType(value).getRank() != 4)
      return std::nullopt;
    return Rearrangement{first.getInput(), tensorType(first.getResult()).getShape()};
  }
};

/// Operations that treat every pixel alike may stand between the convolution and batch-to-space.
bool isPerPixel(Operation *op) {
  if (auto binary = dyn_cast<BinaryOp>(op))
    return getConstantValue(binary.getRhs()) && tensorType(binary.getRhs()).getRank() <= 1;
  return isa<RequantizeOp, UnaryOp, ClampOp>(op);
}

struct DilatedConv : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto toSpace = Rearrangement::match(op.getResult(), {2, 3, 0, 4, 1, 5});
    if (!toSpace)
      return failure();
    SmallVector<Operation *> chain;
    Value value = toSpace->input;
    while (value.getDefiningOp() && isPerPixel(value.getDefiningOp()) && value.hasOneUse()) {
      chain.push_back(value.getDefiningOp());
      value = chain.back()->getOperand(0);
    }
    auto conv = value.getDefiningOp<ConvOp>();
    auto toBatch = conv ? Rearrangement::match(conv.getInput(), {2, 4, 0, 1, 3, 5}) : std::nullopt;
    if (!toBatch || !value.hasOneUse() || !isPlain(conv))
      return failure();
    // toBatch.middle is [N, H/b, b, W/b, b', C], toSpace.middle [b, b', N, H'/b, W'/b', O].
    ArrayRef<int64_t> in = toBatch->middle, out = toSpace->middle;
    RankedTensorType input = tensorType(toBatch->input), result = tensorType(op.getResult());
    if (in[2] != out[0] || in[4] != out[1] || in[0] != out[2] || tensorType(value).getDimSize(1) != out[3] ||
        tensorType(value).getDimSize(2) != out[4] ||
        input.getShape() != ArrayRef<int64_t>{in[0], in[1] * in[2], in[3] * in[4], in[5]} ||
        tensorType(conv.getInput()).getShape() != ArrayRef<int64_t>{in[2] * in[4] * in[0], in[1], in[3], in[5]} ||
        result.getShape() != ArrayRef<int64_t>{out[2], out[3] * out[0], out[4] * out[1], out[5]})
      return failure();
    auto dilated = cast<ConvOp>(rewriter.clone(*conv));
    dilated.getInputMutable().assign(toBatch->input);
    dilated.setDilations({conv.getDilations()[0] * in[2], conv.getDilations()[1] * in[4]});
    dilated.getResult().setType(withElementType(result, elementType(value)));
    dilated->setLoc(fuse(fuse(conv.getInput().getLoc(), conv.getLoc()), op.getLoc()));
    Value last = dilated.getResult();
    for (Operation *step : llvm::reverse(chain)) {
      Operation *clone = rewriter.clone(*step);
      clone->setOperand(0, last);
      clone->getResult(0).setType(withElementType(result, elementType(step->getResult(0))));
      last = clone->getResult(0);
    }
    rewriter.replaceOp(op, last);
    return success();
  }

  /// Neither padding nor strides.
  static bool isPlain(ConvOp conv) {
    return llvm::all_of(conv.getStrides(), [](int64_t stride) { return stride == 1; }) &&
           llvm::all_of(conv.getPadsLow(), [](int64_t pad) { return pad == 0; }) &&
           llvm::all_of(conv.getPadsHigh(), [](int64_t pad) { return pad == 0; });
  }
};

} // namespace

void populateDilationPatterns(RewritePatternSet &patterns) { patterns.add<DilatedConv>(patterns.getContext()); }

} // namespace ajour::simplify
