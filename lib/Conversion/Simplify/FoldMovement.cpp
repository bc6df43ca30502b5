//===- FoldMovement.cpp - chains of data movement become shorter ----------------===//
//
// Everything here is exact: elements are copied, never computed.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

/// transpose of transpose; identity; and one that moves only dimensions of 1 is a reshape.
struct FoldTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    if (isIdentity(op.getPerm())) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    if (auto inner = op.getInput().getDefiningOp<TransposeOp>()) {
      Perm perm = compose(inner.getPerm(), op.getPerm());
      replaceFused<TransposeOp>(rewriter, op, inner.getLoc(), inner.getInput(), perm);
      return success();
    }
    if (movesOnlyUnits(tensorType(op.getInput()), op.getPerm())) {
      rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
      return success();
    }
    return failure();
  }
};

struct FoldReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner)
      return failure();
    replaceFused<ReshapeOp>(rewriter, op, inner.getLoc(), op.getType(), inner.getInput());
    return success();
  }
};

struct FoldSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType() && llvm::all_of(op.getStarts(), [](int64_t s) { return s == 0; }) &&
        llvm::all_of(op.getSteps(), [](int64_t s) { return s == 1; })) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    if (auto inner = op.getInput().getDefiningOp<SliceOp>()) {
      Perm starts, steps;
      for (size_t i = 0; i < op.getStarts().size(); ++i) {
        starts.push_back(inner.getStarts()[i] + op.getStarts()[i] * inner.getSteps()[i]);
        steps.push_back(inner.getSteps()[i] * op.getSteps()[i]);
      }
      auto merged = SliceOp::create(rewriter, fuse(inner.getLoc(), op.getLoc()), op.getType(), inner.getInput(), starts,
                                    steps);
      rewriter.replaceOp(op, merged);
      return success();
    }
    return sliceOfConcat(op, rewriter);
  }

  /// A slice that lies within one operand of a concatenation reads that operand.
  static LogicalResult sliceOfConcat(SliceOp op, PatternRewriter &rewriter) {
    auto concat = op.getInput().getDefiningOp<ConcatOp>();
    if (!concat)
      return failure();
    int64_t axis = concat.getAxis(), size = tensorType(op.getResult()).getDimSize(axis);
    if (ShapedType::isDynamic(size) || size == 0)
      return failure();
    int64_t first = op.getStarts()[axis], last = first + (size - 1) * op.getSteps()[axis];
    int64_t offset = 0;
    for (Value input : concat.getInputs()) {
      int64_t extent = tensorType(input).getDimSize(axis);
      if (ShapedType::isDynamic(extent))
        return failure();
      if (std::min(first, last) >= offset && std::max(first, last) < offset + extent) {
        Perm starts(op.getStarts());
        starts[axis] -= offset;
        auto direct = SliceOp::create(rewriter, op.getLoc(), op.getType(), input, starts, op.getSteps());
        rewriter.replaceOp(op, direct);
        return success();
      }
      offset += extent;
    }
    return failure();
  }
};

struct FoldConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() == 1) {
      rewriter.replaceOp(op, op.getInputs()[0]);
      return success();
    }
    SmallVector<Value> inputs;
    Location loc = op.getLoc();
    for (Value input : op.getInputs()) {
      auto inner = input.getDefiningOp<ConcatOp>();
      if (inner && inner.getAxis() == op.getAxis() && inner->hasOneUse()) {
        inputs.append(inner.getInputs().begin(), inner.getInputs().end());
        loc = fuse(inner.getLoc(), loc);
      } else if (tensorType(input).getDimSize(op.getAxis()) != 0) {
        inputs.push_back(input);
      }
    }
    if (inputs.empty() || inputs == SmallVector<Value>(op.getInputs()))
      return failure();
    auto flat = ConcatOp::create(rewriter, loc, op.getType(), inputs, op.getAxisAttr());
    rewriter.replaceOp(op, flat);
    return success();
  }
};

/// Padding by nothing; and padding of a padded tensor with the same value.
struct FoldPad : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &rewriter) const override {
    auto isZero = [](int64_t amount) { return amount == 0; };
    if (llvm::all_of(op.getLow(), isZero) && llvm::all_of(op.getHigh(), isZero)) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<PadOp>();
    if (!inner || op.getMode() != PadMode::constant || inner.getMode() != PadMode::constant ||
        inner.getValue() != op.getValue())
      return failure();
    auto isNegative = [](int64_t amount) { return amount < 0; };
    for (ArrayRef<int64_t> amounts : {op.getLow(), op.getHigh(), inner.getLow(), inner.getHigh()})
      if (llvm::any_of(amounts, isNegative))
        return failure();
    Perm low, high;
    for (size_t i = 0; i < op.getLow().size(); ++i) {
      low.push_back(op.getLow()[i] + inner.getLow()[i]);
      high.push_back(op.getHigh()[i] + inner.getHigh()[i]);
    }
    auto merged = PadOp::create(rewriter, fuse(inner.getLoc(), op.getLoc()), op.getType(), inner.getInput(),
                                op.getValue(), rewriter.getDenseI64ArrayAttr(low), rewriter.getDenseI64ArrayAttr(high),
                                op.getModeAttr());
    rewriter.replaceOp(op, merged);
    return success();
  }
};

struct FoldBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    if (auto inner = op.getInput().getDefiningOp<BroadcastOp>()) {
      replaceFused<BroadcastOp>(rewriter, op, inner.getLoc(), op.getType(), inner.getInput());
      return success();
    }
    // Only dimensions of 1 are added in front.
    RankedTensorType in = tensorType(op.getInput()), out = tensorType(op.getResult());
    if (in.hasStaticShape() && out.hasStaticShape() && in.getNumElements() == out.getNumElements()) {
      rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
      return success();
    }
    return failure();
  }
};

/// A broadcast in front of an operation that broadcasts by itself, unless it makes the result's shape.
template <typename Op> struct DropBroadcast : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    for (OpOperand &operand : op->getOpOperands()) {
      auto broadcast = operand.get().template getDefiningOp<BroadcastOp>();
      if (!broadcast)
        continue;
      std::optional<Dims> dims = getDims(broadcast.getInput());
      for (OpOperand &other : op->getOpOperands())
        if (dims && &other != &operand)
          dims = broadcastDims(*dims, getDims(other.get()));
      if (!dims || *dims != getDims(op.getResult()))
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        operand.set(broadcast.getInput());
        op->setLoc(fuse(broadcast.getLoc(), op->getLoc()));
      });
      return success();
    }
    return failure();
  }
};

/// Taking one index, or indices at equal distances, is a slice.
struct GatherToSlice : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    RankedTensorType data = tensorType(op.getData()), indices = tensorType(op.getIndices());
    ElementsAttr attr = getConstantValue(op.getIndices());
    int64_t axis = op.getAxis(), size = data.getDimSize(axis);
    if (!attr || indices.getRank() > 1 || op.getBatchDims() != 0 || ShapedType::isDynamic(size) || size == 0)
      return failure();
    std::optional<std::vector<int64_t>> values = constantInts(attr);
    if (!values || values->empty())
      return failure();
    for (int64_t &value : *values)
      value = std::clamp<int64_t>(value < 0 ? value + size : value, 0, size - 1);
    int64_t step = values->size() > 1 ? (*values)[1] - (*values)[0] : 1;
    if (step == 0)
      return failure();
    for (size_t i = 1; i < values->size(); ++i)
      if ((*values)[i] - (*values)[i - 1] != step)
        return failure();
    Perm starts(data.getRank(), 0), steps(data.getRank(), 1);
    starts[axis] = values->front();
    steps[axis] = step;
    Dims dims = getDims(data);
    dims[axis] = rewriter.getAffineConstantExpr(values->size());
    Value slice = SliceOp::create(rewriter, op.getLoc(), makeTensor(dims, data.getElementType()), op.getData(), starts,
                                  steps);
    if (indices.getRank() == 0)
      slice = ReshapeOp::create(rewriter, op.getLoc(), op.getType(), slice);
    rewriter.replaceOp(op, slice);
    return success();
  }
};

/// A transposition of the last two dimensions of a matrix product's operand is the operand's flag.
struct MatmulTransposedOperand : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    for (bool isLhs : {true, false}) {
      auto transpose = (isLhs ? op.getLhs() : op.getRhs()).getDefiningOp<TransposeOp>();
      if (!transpose)
        continue;
      Perm swapped = identityPerm(transpose.getPerm().size());
      std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
      if (ArrayRef<int64_t>(swapped) != transpose.getPerm())
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        op->setLoc(fuse(transpose.getLoc(), op.getLoc()));
        if (isLhs) {
          op.getLhsMutable().assign(transpose.getInput());
          op.setTransposeLhs(!op.getTransposeLhs());
        } else {
          op.getRhsMutable().assign(transpose.getInput());
          op.setTransposeRhs(!op.getTransposeRhs());
        }
      });
      return success();
    }
    return failure();
  }
};

} // namespace

void populateMovementPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldTranspose, FoldReshape, FoldSlice, FoldConcat, FoldPad, FoldBroadcast, DropBroadcast<BinaryOp>,
               DropBroadcast<CompareOp>, DropBroadcast<SelectOp>, GatherToSlice>(patterns.getContext());
}

void populateProductPatterns(RewritePatternSet &patterns) {
  patterns.add<MatmulTransposedOperand>(patterns.getContext());
}

} // namespace ajour::simplify
