//===- IntegerMotion.cpp - quantisation moves through data movement -------------===//
//
// Dequantisations sink and quantisations rise through operations that only copy or compare elements: both are
// monotonic functions of single elements, so they commute with them exactly. What is moved then is small.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"
#include "ajour/Reference/Interpreter.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {
namespace {

/// Where parameters along `axis` of a movement's operand lie in its result; `fromResult`: the other way. Nothing when
/// that dimension does not survive.
std::optional<int64_t> moveAxis(Operation *op, int64_t axis, bool fromResult) {
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return fromResult ? transpose.getPerm()[axis] : invert(transpose.getPerm())[axis];
  if (isa<ReshapeOp>(op)) {
    auto groups = matchReshape(tensorType(op->getOperand(0)), tensorType(op->getResult(0)));
    if (groups)
      for (const ReshapeGroup &group : *groups)
        if (group.in.size() == 1 && group.out.size() == 1 && (fromResult ? group.out : group.in)[0] == axis)
          return (fromResult ? group.in : group.out)[0];
    return std::nullopt;
  }
  if (auto pool = dyn_cast<MaxPoolOp>(op))
    return axis == tensorType(pool.getInput()).getRank() - 1 ? std::optional(axis) : std::nullopt;
  return std::nullopt;
}

/// Movement of one operand that adds no elements of its own.
bool isMovement(Operation *op) {
  if (auto resize = dyn_cast<ResizeOp>(op))
    return resize.getMode() == ResizeMode::nearest && resize.getCoordinateMode() != CoordinateMode::tf_crop_and_resize;
  if (auto pad = dyn_cast<PadOp>(op))
    return pad.getMode() != PadMode::constant;
  return isa<TransposeOp, ReshapeOp, SliceOp, BroadcastOp, MaxPoolOp>(op);
}

int64_t axisOf(int64_t axis, Value value) { return axis < 0 ? axis + tensorType(value).getRank() : axis; }

/// A copy of a movement that works on another element type.
Value cloneMovement(OpBuilder &builder, Operation *op, Value input) {
  Operation *clone = builder.clone(*op);
  clone->setOperand(0, input);
  clone->getResult(0).setType(withElementType(tensorType(op->getResult(0)), elementType(input)));
  return clone->getResult(0);
}

/// The accumulator of a product: movement of it waits for the quantisation, which comes up to it.
bool isAccumulator(DequantizeOp op) {
  return isa_and_nonnull<ConvOp, ConvTransposeOp, MatmulOp>(op.getInput().getDefiningOp());
}

/// movement(dequantize(x)) is dequantize(movement(x)).
struct SinkDequantize : RewritePattern {
  explicit SinkDequantize(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (op->getNumOperands() == 0 || op->getNumResults() != 1 || !isMovement(op))
      return failure();
    auto dequantize = op->getOperand(0).getDefiningOp<DequantizeOp>();
    if (!dequantize || isAccumulator(dequantize))
      return failure();
    int64_t axis = 0;
    if (dequantize.getScales().size() > 1) {
      auto moved = moveAxis(op, axisOf(dequantize.getAxis(), dequantize.getInput()), /*fromResult=*/false);
      if (!moved)
        return failure();
      axis = *moved;
    }
    Value moved = cloneMovement(rewriter, op, dequantize.getInput());
    auto after = DequantizeOp::create(rewriter, dequantize.getLoc(), op->getResult(0).getType(), moved,
                                      dequantize.getScales(), dequantize.getZeroPoints(), axis);
    rewriter.replaceOp(op, after);
    return success();
  }
};

/// quantize(movement(x)) is movement(quantize(x)), for a movement that nothing else reads.
struct RaiseQuantize : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    Operation *movement = op.getInput().getDefiningOp();
    if (!movement || !movement->hasOneUse())
      return failure();
    if (auto concat = dyn_cast<ConcatOp>(movement))
      return throughConcat(op, concat, rewriter);
    if (!isMovement(movement) || !elementType(op.getInput()).isF32())
      return failure();
    auto dequantize = movement->getOperand(0).getDefiningOp<DequantizeOp>();
    if (dequantize && !isAccumulator(dequantize))
      return failure();
    int64_t axis = 0;
    if (op.getScales().size() > 1) {
      auto moved = moveAxis(movement, axisOf(op.getAxis(), op.getInput()), /*fromResult=*/true);
      if (!moved)
        return failure();
      axis = *moved;
    }
    Value input = movement->getOperand(0);
    Type element = elementType(op.getResult());
    // Quantising more elements than before would cost more than it saves.
    RankedTensorType inType = tensorType(input), outType = tensorType(op.getResult());
    if (!isa<TransposeOp, ReshapeOp>(movement) &&
        (!inType.hasStaticShape() || inType.getNumElements() > 4 * outType.getNumElements()))
      return failure();
    rewriter.setInsertionPoint(movement);
    Value quantized = QuantizeOp::create(rewriter, op.getLoc(), withElementType(inType, element), input, op.getScales(),
                                         op.getZeroPoints(), axis);
    rewriter.replaceOp(op, cloneMovement(rewriter, movement, quantized));
    return success();
  }

  static LogicalResult throughConcat(QuantizeOp op, ConcatOp concat, PatternRewriter &rewriter) {
    bool perChannel = op.getScales().size() > 1;
    if (perChannel && axisOf(op.getAxis(), op.getInput()) == int64_t(concat.getAxis()))
      return failure();
    rewriter.setInsertionPoint(op);
    SmallVector<Value> inputs;
    for (Value input : concat.getInputs())
      inputs.push_back(QuantizeOp::create(rewriter, op.getLoc(),
                                          withElementType(tensorType(input), elementType(op.getResult())), input,
                                          op.getScales(), op.getZeroPoints(), op.getAxis()));
    auto joined = ConcatOp::create(rewriter, concat.getLoc(), op.getType(), inputs, concat.getAxisAttr());
    rewriter.replaceOp(op, joined);
    return success();
  }
};

/// The value that quantisation gives to one real number.
int64_t quantized(double real, QuantizeOp op) {
  auto [low, high] = integerRange(elementType(op.getResult()));
  double value = std::nearbyint(static_cast<float>(real) / op.getScales()[0]) + op.getZeroPoints()[0];
  return static_cast<int64_t>(std::clamp(value, double(low), double(high)));
}

/// quantize(limits(x)) is limits(quantize(x)), on the way up to the accumulator of a product.
struct RaiseQuantizeThroughLimits : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    Operation *limits = op.getInput().getDefiningOp();
    if (!isLimits(limits) || !elementType(op.getInput()).isF32() || op.getScales().size() != 1 ||
        cast<IntegerType>(elementType(op.getResult())).getWidth() > 16 || !reachesAccumulator(op.getInput()))
      return failure();
    double low = 0, high = std::numeric_limits<double>::infinity();
    if (auto clamp = dyn_cast<ClampOp>(limits)) {
      low = clamp.getLow().convertToDouble();
      high = clamp.getHigh().convertToDouble();
    }
    Value inner = QuantizeOp::create(rewriter, op.getLoc(), op.getType(), limits->getOperand(0), op.getScales(),
                                     op.getZeroPoints(), op.getAxis());
    rewriter.replaceOp(op, ClampOp::create(rewriter, limits->getLoc(), inner,
                                           rewriter.getF64FloatAttr(quantized(low, op)),
                                           rewriter.getF64FloatAttr(quantized(high, op))));
    return success();
  }

  static bool isLimits(Operation *op) {
    auto unary = dyn_cast_or_null<UnaryOp>(op);
    return isa_and_nonnull<ClampOp>(op) || (unary && unary.getKind() == UnaryKind::relu);
  }

  static bool reachesAccumulator(Value value) {
    while (value.hasOneUse()) {
      Operation *op = value.getDefiningOp();
      if (auto dequantize = dyn_cast_or_null<DequantizeOp>(op))
        return isAccumulator(dequantize);
      if (!op || (!isLimits(op) && !isa<TransposeOp, ReshapeOp>(op)))
        return false;
      value = op->getOperand(0);
    }
    return false;
  }
};

/// A function of one 8-bit tensor's elements, from dequantize to quantize, is a table of its 256 values: exact. The
/// operations between may join again, as in x * sigmoid(x), and read tables and constants of one element.
struct TableOfElements : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    Function function;
    if (op.getScales().size() != 1 || failed(function.collect(op.getInput())) || !function.isWorthwhile ||
        !function.source)
      return failure();
    function.steps.push_back(op);
    std::optional<Value> table = buildTable(function, rewriter);
    if (!table)
      return failure();
    Location loc = function.steps.front()->getLoc();
    for (Operation *step : ArrayRef(function.steps).drop_front())
      loc = fuse(loc, step->getLoc());
    rewriter.replaceOp(op, LookupOp::create(rewriter, loc, op.getType(), function.source, *table));
    return success();
  }

  /// The operations between one 8-bit tensor and a value, in an order in which they can be evaluated.
  struct Function {
    static constexpr size_t maxSteps = 16;
    Value source;
    SmallVector<Operation *> steps;
    bool isWorthwhile = false; ///< more than the limits of a quantisation

    /// Fails where the value is no function of one 8-bit tensor's elements.
    LogicalResult collect(Value value) {
      Operation *op = value.getDefiningOp();
      if (llvm::is_contained(steps, op))
        return success();
      bool isStep = isa_and_nonnull<UnaryOp, ClampOp, BinaryOp, DequantizeOp, LookupOp>(op) && steps.size() < maxSteps;
      if (auto dequantize = dyn_cast_or_null<DequantizeOp>(op))
        isStep &= dequantize.getScales().size() == 1;
      if (!isStep)
        return isSource(value);
      isWorthwhile |= isa<UnaryOp, LookupOp>(op);
      for (OpOperand &operand : op->getOpOperands()) {
        if (isParameter(operand))
          continue;
        if (getDims(operand.get()) != getDims(value) || failed(collect(operand.get())))
          return failure();
      }
      steps.push_back(op);
      return success();
    }

    LogicalResult isSource(Value value) {
      auto type = dyn_cast<IntegerType>(elementType(value));
      if (!type || type.getWidth() != 8 || (source && source != value))
        return failure();
      source = value;
      return success();
    }

    /// What is the same for every element: a table, a number.
    static bool isParameter(OpOperand &operand) {
      auto constant = operand.get().getDefiningOp<ConstantOp>();
      bool isTable = isa<LookupOp>(operand.getOwner()) && operand.getOperandNumber() == 1;
      return constant && (isTable || constant.getValue().getNumElements() == 1);
    }
  };

  /// Every value of the source's type through copies of the steps, evaluated by the reference.
  static std::optional<Value> buildTable(const Function &function, PatternRewriter &rewriter) {
    auto type = cast<IntegerType>(elementType(function.source));
    std::vector<char> bytes(256);
    for (int i = 0; i < 256; ++i)
      bytes[i] = static_cast<char>(isUnsigned(type) ? i : i - 128);
    Location loc = function.steps.back()->getLoc();
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(loc);
    OpBuilder builder(scratch->getBodyRegion());
    llvm::DenseMap<Value, std::pair<Value, HostTensor>> values; // of the function's values: in scratch, and what they are
    auto define = [&](Value value, ElementsAttr attr) {
      Value constant = ConstantOp::create(builder, loc, cast<RankedTensorType>(attr.getType()), attr);
      values[value] = {constant, toHostTensor(attr)};
    };
    define(function.source, makeConstant(makeTensor(ArrayRef<int64_t>{256}, type), bytes));
    for (Operation *step : function.steps) {
      Operation *clone = builder.clone(*step);
      SmallVector<const HostTensor *> operands;
      for (OpOperand &operand : step->getOpOperands()) {
        if (Function::isParameter(operand) && !values.contains(operand.get())) {
          ElementsAttr attr = operand.get().getDefiningOp<ConstantOp>().getValue();
          define(operand.get(),
                 makeConstant(makeTensor(ArrayRef<int64_t>{attr.getNumElements()}, attr.getElementType()),
                              nn::constantBytes(attr)));
        }
        clone->setOperand(operand.getOperandNumber(), values[operand.get()].first);
      }
      // Only now: the map may have moved.
      for (Value operand : step->getOperands())
        operands.push_back(&values[operand].second);
      Value result = clone->getResult(0);
      result.setType(makeTensor(ArrayRef<int64_t>{256}, elementType(step->getResult(0))));
      FailureOr<std::vector<HostTensor>> evaluated = evaluate(clone, operands);
      if (failed(evaluated))
        return std::nullopt;
      values[step->getResult(0)] = {result, std::move((*evaluated)[0])};
    }
    ElementsAttr attr = toAttribute(values[function.steps.back()->getResult(0)].second, rewriter.getContext());
    return ConstantOp::create(rewriter, loc, cast<RankedTensorType>(attr.getType()), attr).getResult();
  }
};

/// Whether a dequantize - op - quantize chain keeps one pair of parameters.
bool sameParameters(DequantizeOp in, QuantizeOp out) {
  return in && in.getScales().size() == 1 && out.getScales().size() == 1 &&
         in.getScales() == out.getScales() && in.getZeroPoints() == out.getZeroPoints() &&
         elementType(in.getInput()) == elementType(out.getResult());
}

/// Means and interpolations with weights that add up to 1 commute with the affine map of equal parameters; the
/// result is rounded once either way, halves may go to the other side (one step).
struct IntegerMean : OpRewritePattern<QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(QuantizeOp op, PatternRewriter &rewriter) const override {
    Operation *mean = op.getInput().getDefiningOp();
    if (!mean || !mean->hasOneUse() || !isMean(mean))
      return failure();
    auto dequantize = mean->getOperand(0).getDefiningOp<DequantizeOp>();
    if (!sameParameters(dequantize, op) || cast<IntegerType>(elementType(op.getResult())).getWidth() != 8)
      return failure();
    rewriter.replaceOp(op, cloneMovement(rewriter, mean, dequantize.getInput()));
    return success();
  }

  static bool isMean(Operation *op) {
    auto isZero = [](int64_t amount) { return amount == 0; };
    if (auto pool = dyn_cast<AvgPoolOp>(op))
      return !pool.getCountIncludePad() ||
             (llvm::all_of(pool.getPadsLow(), isZero) && llvm::all_of(pool.getPadsHigh(), isZero));
    auto resize = dyn_cast<ResizeOp>(op);
    return resize && resize.getMode() == ResizeMode::linear &&
           resize.getCoordinateMode() != CoordinateMode::tf_crop_and_resize;
  }
};

} // namespace

void populateQuantizationMotion(RewritePatternSet &patterns) {
  patterns.add<SinkDequantize, RaiseQuantize, RaiseQuantizeThroughLimits, TableOfElements, IntegerMean>(patterns.getContext());
}

} // namespace ajour::simplify
