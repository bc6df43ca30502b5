//===- FoldChannels.cpp - movement of channels goes into weights ---------------------------===//
//
// A product sums over the channels of its operand in any order. So what shuffles, takes apart or joins channels in front of
// one with constant weights becomes another order of the weights, and at most contiguous runs of channels are left to read.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"

#include <map>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

/// Filters that a part of a convolution must have to become one by itself.
constexpr int64_t leastSplit = 4;

/// Whether a convolution's window is one pixel and nothing is skipped or padded.
bool isPointwiseConv(ConvOp conv) {
  auto filter = tensorType(conv.getFilter());
  auto isOne = [](int64_t value) { return value == 1; };
  return conv.getGroups() == 1 && llvm::all_of(filter.getShape().drop_front().drop_back(), isOne) &&
         llvm::all_of(conv.getStrides(), isOne) && isZero(conv.getPadsLow()) && isZero(conv.getPadsHigh());
}

/// Where a channel comes from.
struct Origin {
  Value base;
  int64_t channel;
};

/// Follows one element's trailing indices (all behind the first `leading` dimensions, which nothing may touch) through
/// what moves channels alone.
class ChannelTrace {
public:
  explicit ChannelTrace(int64_t leading) : leading(leading) {}

  bool moves = false; ///< something was looked through

  std::optional<Origin> follow(Value value, SmallVector<int64_t> index) {
    while (Operation *op = value.getDefiningOp()) {
      Value input = step(op, index);
      if (!input)
        break;
      value = input;
      moves = true;
    }
    if (int64_t(index.size()) != 1)
      return std::nullopt;
    return Origin{value, index[0]};
  }

private:
  bool sameLeading(Value a, Value b) {
    Dims x = getDims(a), y = getDims(b);
    return int64_t(x.size()) > leading && int64_t(y.size()) > leading &&
           ArrayRef(x).take_front(leading) == ArrayRef(y).take_front(leading);
  }

  /// The operand that holds the element, and its index there; null when this is not movement of channels.
  Value step(Operation *op, SmallVector<int64_t> &index) {
    if (op->getNumResults() != 1 || !isa<SliceOp, TransposeOp, ReshapeOp, ConcatOp>(op) ||
        !sameLeading(op->getOperand(0), op->getResult(0)))
      return {};
    if (auto slice = dyn_cast<SliceOp>(op)) {
      for (int64_t i = 0; i < leading; ++i)
        if (slice.getStarts()[i] != 0 || slice.getSteps()[i] != 1)
          return {};
      for (size_t i = 0; i < index.size(); ++i)
        index[i] = slice.getStarts()[leading + i] + index[i] * slice.getSteps()[leading + i];
      return slice.getInput();
    }
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      SmallVector<int64_t> source(index.size());
      for (auto [i, dim] : llvm::enumerate(transpose.getPerm())) {
        if ((int64_t(i) < leading) != (dim < leading) || (int64_t(i) < leading && dim != int64_t(i)))
          return {};
        if (int64_t(i) >= leading)
          source[dim - leading] = index[i - leading];
      }
      index = std::move(source);
      return transpose.getInput();
    }
    if (auto concat = dyn_cast<ConcatOp>(op)) {
      int64_t axis = int64_t(concat.getAxis()) - leading;
      if (axis < 0)
        return {};
      for (Value input : concat.getInputs()) {
        int64_t size = tensorType(input).getDimSize(leading + axis);
        if (ShapedType::isDynamic(size))
          return {};
        if (index[axis] < size)
          return input;
        index[axis] -= size;
      }
      return {};
    }
    RankedTensorType in = tensorType(op->getOperand(0)), out = tensorType(op->getResult(0));
    ArrayRef<int64_t> from = out.getShape().drop_front(leading), to = in.getShape().drop_front(leading);
    if (llvm::any_of(from, ShapedType::isDynamic) || llvm::any_of(to, ShapedType::isDynamic))
      return {};
    int64_t position = 0;
    for (auto [i, size] : llvm::zip_equal(index, from))
      position = position * size + i;
    SmallVector<int64_t> source(to.size());
    for (size_t i = to.size(); i-- > 0; position /= to[i])
      source[i] = position % to[i];
    index = std::move(source);
    return op->getOperand(0);
  }

  int64_t leading;
};

/// Channels [first, first + count) of a value, and where they were in the product's operand.
struct Run {
  Value base;
  int64_t first = 0;
  SmallVector<int64_t> positions;
};

/// The operand's channels as contiguous runs of what they come from; nothing where nothing is to be gained.
std::optional<std::vector<Run>> findRuns(Value operand) {
  RankedTensorType type = tensorType(operand);
  int64_t channels = type.getDimSize(type.getRank() - 1);
  if (type.getRank() < 2 || ShapedType::isDynamic(channels) || channels < 2)
    return std::nullopt;
  ChannelTrace trace(type.getRank() - 1);
  llvm::MapVector<Value, std::map<int64_t, int64_t>> bases; // channel of the base -> channel of the operand
  for (int64_t c = 0; c < channels; ++c) {
    std::optional<Origin> origin = trace.follow(operand, {c});
    if (!origin || tensorType(origin->base).getRank() != type.getRank() ||
        !bases[origin->base].try_emplace(origin->channel, c).second)
      return std::nullopt;
  }
  if (!trace.moves)
    return std::nullopt;
  std::vector<Run> runs;
  for (auto &[base, taken] : bases) {
    Run run{base, taken.begin()->first, {}};
    for (auto [channel, position] : taken) {
      if (channel != run.first + int64_t(run.positions.size()))
        return std::nullopt;
      run.positions.push_back(position);
    }
    runs.push_back(std::move(run));
  }
  // In the order of the operand, so that what is in order already stays.
  llvm::sort(runs, [](const Run &a, const Run &b) {
    return *llvm::min_element(a.positions) < *llvm::min_element(b.positions);
  });
  return runs;
}

/// A constant with the slices [*][i][inner] along one dimension in another order, or some of them.
Value takeSlices(OpBuilder &builder, Location loc, Value constant, int64_t dim, ArrayRef<int64_t> indices) {
  RankedTensorType type = tensorType(constant);
  std::vector<char> bytes = constantBytes(getConstantValue(constant)), taken;
  int64_t inner = elementBytes(type.getElementType()), outer = 1, size = type.getDimSize(dim);
  for (int64_t i = 0; i < type.getRank(); ++i)
    (i < dim ? outer : inner) *= i == dim ? 1 : type.getDimSize(i);
  taken.reserve(outer * indices.size() * inner);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i : indices)
      taken.insert(taken.end(), bytes.begin() + (o * size + i) * inner, bytes.begin() + (o * size + i + 1) * inner);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = indices.size();
  RankedTensorType made = makeTensor(ArrayRef<int64_t>(shape), type.getElementType());
  return ConstantOp::create(builder, loc, made, makeConstant(made, taken));
}

/// A slice along the last dimension alone.
Value sliceChannels(OpBuilder &builder, Location loc, Value value, int64_t first, int64_t count) {
  Dims dims = getDims(value);
  if (first == 0 && getConstant(dims.back()) == count)
    return value;
  Perm starts(dims.size(), 0), steps(dims.size(), 1);
  starts.back() = first;
  dims.back() = builder.getAffineConstantExpr(count);
  return SliceOp::create(builder, loc, makeTensor(dims, elementType(value)), value, starts, steps);
}

/// Replaces the operand of a product by runs of channels, and orders the weights' dimension `dim` accordingly.
LogicalResult readRuns(PatternRewriter &rewriter, Operation *product, Value weights, int64_t dim, bool severalRuns) {
  Value operand = product->getOperand(0);
  std::optional<std::vector<Run>> runs = findRuns(operand);
  if (!runs || (runs->size() > 1 && !severalRuns))
    return failure();
  SmallVector<int64_t> order;
  for (const Run &run : *runs)
    order.append(run.positions);
  // Nothing to gain: slices of the bases, joined, are what is there already.
  bool inOrder = llvm::is_sorted(order);
  auto isRead = [](Value value) { return !isa_and_nonnull<TransposeOp, ReshapeOp>(value.getDefiningOp()); };
  auto concat = operand.getDefiningOp<ConcatOp>();
  bool isPlain = concat ? concat.getInputs().size() == runs->size() : runs->size() == 1 && isRead(operand);
  if (inOrder && isPlain)
    return failure();
  Location loc = operand.getLoc();
  rewriter.setInsertionPoint(product);
  SmallVector<Value> parts;
  for (const Run &run : *runs)
    parts.push_back(sliceChannels(rewriter, loc, run.base, run.first, run.positions.size()));
  Value joined = parts[0];
  if (parts.size() > 1)
    joined = ConcatOp::create(rewriter, loc, cast<RankedTensorType>(operand.getType()), parts,
                              rewriter.getI64IntegerAttr(tensorType(operand).getRank() - 1));
  Value ordered = inOrder ? weights : takeSlices(rewriter, weights.getLoc(), weights, dim, order);
  rewriter.modifyOpInPlace(product, [&] {
    product->setOperand(0, joined);
    product->setOperand(1, ordered);
  });
  return success();
}

struct ConvReadsRuns : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    if (op.getGroups() != 1 || !getConstantValue(op.getFilter()))
      return failure();
    return readRuns(rewriter, op, op.getFilter(), tensorType(op.getFilter()).getRank() - 1, isPointwiseConv(op));
  }
};

struct MatmulReadsRuns : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    if (op.getTransposeLhs() || !getConstantValue(op.getRhs()) || tensorType(op.getRhs()).getRank() != 2)
      return failure();
    return readRuns(rewriter, op, op.getRhs(), op.getTransposeRhs() ? 1 : 0, /*severalRuns=*/true);
  }
};

/// The channels of `value` that each of its readers takes, when all of them are slices of channels that do not overlap.
std::optional<SmallVector<SmallVector<int64_t>>> sharedChannels(Value value) {
  int64_t last = tensorType(value).getRank() - 1;
  SmallVector<SmallVector<int64_t>> all;
  llvm::SmallDenseSet<int64_t> seen;
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || !isZero(slice.getStarts().drop_back()) ||
        llvm::any_of(slice.getSteps().drop_back(), [](int64_t step) { return step != 1; }) ||
        ArrayRef(getDims(slice.getResult())).drop_back() != ArrayRef(getDims(value)).drop_back())
      return std::nullopt;
    int64_t size = tensorType(slice.getResult()).getDimSize(last);
    if (ShapedType::isDynamic(size) || size == 0)
      return std::nullopt;
    SmallVector<int64_t> channels;
    for (int64_t i = 0; i < size; ++i) {
      channels.push_back(slice.getStarts()[last] + i * slice.getSteps()[last]);
      if (!seen.insert(channels.back()).second)
        return std::nullopt;
    }
    all.push_back(std::move(channels));
  }
  return all.empty() ? std::nullopt : std::optional(all);
}

/// The convolution that a value is from, through operations of one operand; its filters may be reordered freely.
ConvOp sourceConv(Value value, SmallVectorImpl<Operation *> &between) {
  while (isa_and_nonnull<UnaryOp, ClampOp>(value.getDefiningOp()) && value.getDefiningOp()->getOperand(0).hasOneUse()) {
    between.push_back(value.getDefiningOp());
    value = value.getDefiningOp()->getOperand(0);
  }
  auto conv = value.getDefiningOp<ConvOp>();
  if (!conv || conv.getGroups() != 1 || !getConstantValue(conv.getFilter()) ||
      (conv.getBias() && !getConstantValue(conv.getBias())))
    return {};
  return conv;
}

/// Rows of a convolution's filter, bias and zero points, for which `mapping` and the copy then stand.
void takeFilters(OpBuilder &builder, ConvOp conv, ArrayRef<int64_t> rows, IRMapping &mapping) {
  mapping.map(conv.getFilter(), takeSlices(builder, conv.getFilter().getLoc(), conv.getFilter(), 0, rows));
  if (conv.getBias())
    mapping.map(conv.getBias(), takeSlices(builder, conv.getBias().getLoc(), conv.getBias(), 0, rows));
}
SmallVector<int32_t> takeZeroPoints(ConvOp conv, ArrayRef<int64_t> rows) {
  SmallVector<int32_t> taken;
  for (int64_t row : rows)
    taken.push_back(conv.getRhsZeroPoints()[row]);
  return taken;
}

/// A pointwise convolution of which every reader takes other channels is one for each reader.
struct SplitConv : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    SmallVector<Operation *> between;
    ConvOp conv = sourceConv(op.getInput(), between);
    if (!conv || !isPointwiseConv(conv) || op.getSteps().back() != 1 || !sharedChannels(op.getInput()) ||
        !wantsWholeTensors(op.getInput()))
      return failure();
    int64_t last = op.getStarts().size() - 1, count = tensorType(op.getResult()).getDimSize(last);
    // Parts that do not fill a kernel's columns cost as much as whole ones.
    if (count < leastSplit)
      return failure();
    SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(op.getStarts()[last], op.getStarts()[last] + count));
    IRMapping mapping;
    takeFilters(rewriter, conv, rows, mapping);
    auto part = cast<ConvOp>(rewriter.clone(*conv, mapping));
    if (conv.getRhsZeroPoints().size() > 1)
      part.setRhsZeroPoints(takeZeroPoints(conv, rows));
    auto type = cast<RankedTensorType>(op.getType());
    part.getResult().setType(withElementType(type, elementType(conv.getResult())));
    mapping.map(conv.getResult(), part.getResult());
    for (Operation *producer : llvm::reverse(between)) {
      Operation *copy = rewriter.clone(*producer, mapping);
      copy->getResult(0).setType(withElementType(type, elementType(copy->getResult(0))));
      mapping.map(producer->getResult(0), copy->getResult(0));
    }
    rewriter.replaceOp(op, mapping.lookup(op.getInput()));
    return success();
  }

  /// Whether a reader of one of the slices has windows: those cannot read channels out of a wider tensor.
  static bool wantsWholeTensors(Value value) {
    for (Operation *slice : value.getUsers())
      for (Operation *user : slice->getUsers()) {
        auto conv = dyn_cast<ConvOp>(user);
        if (isa<MaxPoolOp, AvgPoolOp, ConvTransposeOp>(user) || (conv && !isPointwiseConv(conv)))
          return true;
      }
    return false;
  }
};

/// Two slices of one value, joined the other way round, are its rows in another order: what stores or reads them can find
/// each where it belongs.
struct RollToGather : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 2)
      return failure();
    auto front = op.getInputs()[0].getDefiningOp<SliceOp>(), back = op.getInputs()[1].getDefiningOp<SliceOp>();
    int64_t axis = op.getAxis();
    if (!front || !back || front.getInput() != back.getInput() || op.getType() != front.getInput().getType() ||
        ShapedType::isDynamic(op.getType().getDimSize(axis)))
      return failure();
    int64_t size = op.getType().getDimSize(axis), first = tensorType(front.getResult()).getDimSize(axis);
    if (first == 0 || first == size)
      return failure();
    for (SliceOp slice : {front, back})
      for (auto [dim, start, step] : llvm::enumerate(slice.getStarts(), slice.getSteps())) {
        int64_t wanted = int64_t(dim) == axis && slice == front ? size - first : 0;
        if (start != wanted || step != 1)
          return failure();
      }
    SmallVector<int64_t> indices;
    for (int64_t i = 0; i < size; ++i)
      indices.push_back((i + size - first) % size);
    RankedTensorType type = makeTensor(ArrayRef<int64_t>{size}, rewriter.getI64Type());
    ArrayRef<char> bytes(reinterpret_cast<const char *>(indices.data()), indices.size() * sizeof(int64_t));
    Value constant = ConstantOp::create(rewriter, op.getLoc(), type, makeConstant(type, bytes));
    Location loc = fuse(fuse(front.getLoc(), back.getLoc()), op.getLoc());
    rewriter.replaceOp(op, GatherOp::create(rewriter, loc, op.getType(), front.getInput(), constant,
                                            rewriter.getI64IntegerAttr(axis), rewriter.getI64IntegerAttr(0)));
    return success();
  }
};

} // namespace

void populateSplitPatterns(RewritePatternSet &patterns) { patterns.add<SplitConv>(patterns.getContext()); }

void populateChannelPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvReadsRuns, MatmulReadsRuns>(patterns.getContext());
}

void populateRollPatterns(RewritePatternSet &patterns) { patterns.add<RollToGather>(patterns.getContext()); }

} // namespace ajour::simplify
