//===- FoldSlices.cpp - slices and element-wise operations rise above concatenations --------===//
//
// What is joined only to be taken apart again along another dimension (boxes and classes of all scales of a detector) need
// not be joined.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

/// The same tensor type with another size in one dimension.
RankedTensorType resized(Value value, int64_t dim, AffineExpr size) {
  Dims dims = getDims(value);
  dims[dim] = size;
  return makeTensor(dims, elementType(value));
}

Value sliceOf(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t first, AffineExpr size) {
  if (first == 0 && getDims(value)[dim] == size)
    return value;
  Perm starts(tensorType(value).getRank(), 0), steps(starts.size(), 1);
  starts[dim] = first;
  return SliceOp::create(builder, loc, resized(value, dim, size), value, starts, steps);
}

/// A slice of one dimension of a concatenation along another, behind any transposes and reshapes that leave that
/// dimension whole, where slices are all that is read.
struct SliceRises : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    std::optional<int64_t> dim;
    Dims in = getDims(op.getInput()), out = getDims(op.getResult());
    for (size_t i = 0; i < in.size(); ++i) {
      if (op.getSteps()[i] != 1)
        return failure();
      if (in[i] == out[i])
        continue;
      if (dim)
        return failure();
      dim = i;
    }
    if (!dim)
      return failure();
    int64_t first = op.getStarts()[*dim], own = *dim;
    AffineExpr size = out[*dim];
    SmallVector<Operation *> chain; // from the slice upwards
    SmallVector<int64_t> dims;      // of each one's result
    Value value = op.getInput();
    while (isReadBySlices(value)) {
      Operation *producer = value.getDefiningOp();
      if (auto concat = dyn_cast_or_null<ConcatOp>(producer))
        return concat.getAxis() == uint64_t(own) && chain.empty() ? failure() // FoldSlice's
                                                                  : rise(rewriter, op, concat, own, first, size, chain, dims);
      if (auto transpose = dyn_cast_or_null<TransposeOp>(producer)) {
        chain.push_back(producer);
        dims.push_back(own);
        own = transpose.getPerm()[own];
      } else if (auto reshape = dyn_cast_or_null<ReshapeOp>(producer)) {
        std::optional<int64_t> above = wholeDim(reshape, own);
        if (!above)
          return failure();
        chain.push_back(producer);
        dims.push_back(own);
        own = *above;
      } else {
        return failure();
      }
      value = producer->getOperand(0);
    }
    return failure();
  }

  static bool isReadBySlices(Value value) {
    return value.hasOneUse() || llvm::all_of(value.getUsers(), [](Operation *user) { return isa<SliceOp>(user); });
  }

  /// The operand's dimension that a result's dimension is, if it is one.
  static std::optional<int64_t> wholeDim(ReshapeOp reshape, int64_t dim) {
    auto groups = matchReshape(tensorType(reshape.getInput()), tensorType(reshape.getResult()));
    if (!groups)
      return std::nullopt;
    for (const ReshapeGroup &group : *groups)
      if (group.out.size() == 1 && group.in.size() == 1 && group.out[0] == dim)
        return group.in[0];
    return std::nullopt;
  }

  static LogicalResult rise(PatternRewriter &rewriter, SliceOp op, ConcatOp concat, int64_t dim, int64_t first,
                            AffineExpr size, ArrayRef<Operation *> chain, ArrayRef<int64_t> dims) {
    Location loc = op.getLoc();
    Value value;
    if (concat.getAxis() != uint64_t(dim)) {
      SmallVector<Value> parts;
      for (Value input : concat.getInputs())
        parts.push_back(sliceOf(rewriter, loc, input, dim, first, size));
      value = ConcatOp::create(rewriter, concat.getLoc(), resized(concat.getResult(), dim, size), parts, concat.getAxisAttr());
    } else {
      // One operand that holds all of it.
      auto count = getConstant(size);
      for (Value input : concat.getInputs()) {
        auto extent = getConstant(getDims(input)[dim]);
        if (!extent || !count)
          return failure();
        if (first >= 0 && first + *count <= *extent) {
          value = sliceOf(rewriter, loc, input, dim, first, size);
          break;
        }
        first -= *extent;
      }
      if (!value)
        return failure();
    }
    for (size_t i = chain.size(); i-- > 0;) {
      if (auto transpose = dyn_cast<TransposeOp>(chain[i]))
        value = TransposeOp::create(rewriter, chain[i]->getLoc(), value, transpose.getPerm());
      else
        value = ReshapeOp::create(rewriter, chain[i]->getLoc(), resized(chain[i]->getResult(0), dims[i], size), value);
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// An element-wise operation of one operand behind a concatenation that nothing else reads: computed where the parts are.
struct UnaryRises : RewritePattern {
  explicit UnaryRises(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    std::optional<unsigned> varying;
    if (isa<UnaryOp, ClampOp>(op))
      varying = 0;
    else if (isa<BinaryOp>(op))
      for (unsigned i : {0u, 1u})
        if (getConstantValue(op->getOperand(1 - i)) && tensorType(op->getOperand(1 - i)).getNumElements() == 1 &&
            tensorType(op->getOperand(1 - i)).getRank() <= tensorType(op->getOperand(i)).getRank())
          varying = i;
    if (!varying)
      return failure();
    auto concat = op->getOperand(*varying).getDefiningOp<ConcatOp>();
    if (!concat || !concat->hasOneUse())
      return failure();
    SmallVector<Value> parts;
    for (Value input : concat.getInputs()) {
      Operation *part = rewriter.clone(*op);
      part->setOperand(*varying, input);
      part->getResult(0).setType(withElementType(tensorType(input), elementType(op->getResult(0))));
      parts.push_back(part->getResult(0));
    }
    rewriter.replaceOp(op, ConcatOp::create(rewriter, concat.getLoc(), cast<RankedTensorType>(op->getResult(0).getType()),
                                            parts, concat.getAxisAttr()));
    return success();
  }
};

} // namespace

void populateSlicePatterns(RewritePatternSet &patterns) {
  patterns.add<SliceRises, UnaryRises>(patterns.getContext());
}

} // namespace ajour::simplify
