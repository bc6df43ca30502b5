//===- Weights.cpp - nn-weights: constants stay in the few bits that they have ----------===//
//
// A product can read its weights as they are stored (nn::isStoredForm) and expand them a panel at a time, so they are
// not made floats here. What moves them moves their parts.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/NN/Weights.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace simplify {

/// The fewest elements of a group that a kernel unpacks.
constexpr int64_t shortestGroup = 16;

/// Whether the parameters of a weight lie so that a product can read it: for each output, and along the depth in groups. The
/// depth is dimension `depth`, or, with `depth` the last of several, all dimensions but the outputs'.
bool hasReadableGroups(RankedTensorType weight, RankedTensorType parameters, int64_t axis, int64_t group, int64_t outputs,
                       int64_t depth) {
  for (int64_t d = 0; d < weight.getRank(); ++d)
    if (d != outputs && d != depth && parameters.getDimSize(d) != 1)
      return false;
  if (parameters.getDimSize(depth) == 1)
    return true;
  bool isWhole = weight.getRank() == 2 || weight.getDimSize(depth) % group == 0;
  return axis == depth && group % shortestGroup == 0 && isWhole;
}

/// More zeros than not: a kernel that leaves them out is the better choice, and reads f32.
bool isSparse(ElementsAttr attr) {
  if (!attr)
    return false;
  assert(attr.getElementType().isF16() && "halves are counted");
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(attr, storage);
  size_t zeros = 0, count = bytes.size() / 2;
  for (size_t i = 0; i < count; ++i)
    zeros += bytes[2 * i] == 0 && (bytes[2 * i + 1] & 0x7f) == 0;
  return zeros * 2 > count;
}

/// Whether the operation that defines a product's weight is one that its kernel unpacks.
bool isReadableForm(OpOperand &use, int64_t outputs, int64_t depth) {
  RankedTensorType type = tensorType(use.get());
  auto hasGroups = [&](auto op) {
    return !op.getScales() || hasReadableGroups(type, tensorType(op.getScales()), op.getAxis(), op.getGroup(), outputs, depth);
  };
  Operation *form = use.get().getDefiningOp();
  if (auto grouped = dyn_cast_or_null<DequantizeGroupedOp>(form))
    return hasGroups(grouped);
  if (auto codebook = dyn_cast_or_null<DequantizeCodebookOp>(form))
    return tensorType(codebook.getTable()).getRank() == 1 && hasGroups(codebook);
  if (auto cast = dyn_cast_or_null<CastOp>(form))
    return elementType(cast.getInput()).isF16() && !isSparse(getConstantValue(cast.getInput()));
  return true; // moved first
}

/// Whether compiled code can read the operand in its stored form.
static bool readsStoredWeights(OpOperand &use) {
  Operation *op = use.getOwner();
  RankedTensorType type = tensorType(use.get());
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    int64_t last = type.getRank() - 1, outputs = matmul.getTransposeRhs() ? last - 1 : last;
    return use.getOperandNumber() == 1 && type.getElementType().isF32() && !matmul.getTransposeLhs() &&
           llvm::all_of(type.getShape().drop_back(2), [](int64_t size) { return size == 1; }) &&
           isReadableForm(use, outputs, 2 * last - 1 - outputs);
  }
  if (auto conv = dyn_cast<ConvOp>(op))
    return use.getOperandNumber() == 1 && type.getElementType().isF32() && conv.getGroups() == 1 &&
           type.getRank() <= 4 && isReadableForm(use, 0, type.getRank() - 1);
  // Rows of a gather and of experts are read where they stand.
  if (isa<GatherOp>(op))
    return use.getOperandNumber() == 0;
  if (isa<ExpertMatmulOp>(op))
    return use.getOperandNumber() == 1;
  if (isa<TransposeOp, ReshapeOp>(op) || isCodedParameter(op, use.get()))
    return isStoredWeight(op->getResult(0));
  return false;
}

bool isStoredWeight(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), readsStoredWeights);
}

namespace {

/// A dequantised 8-bit weight of a floating point product has its parameters as tensors.
struct GroupedWeight : OpRewritePattern<DequantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DequantizeOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorType(op.getInput());
    ElementsAttr attr = getConstantValue(op.getInput());
    if (!attr || !type.getElementType().isInteger(8) || type.getRank() == 0 || type.getNumElements() == 0 ||
        !isStoredWeight(op.getResult()))
      return failure();
    int64_t rank = type.getRank(), count = op.getScales().size();
    int64_t axis = count == 1 ? 0 : op.getAxis() < 0 ? op.getAxis() + rank : op.getAxis();
    SmallVector<int64_t> shape(rank, 1);
    shape[axis] = count;
    Location loc = op.getLoc();
    SmallVector<Value> operands{op.getInput(), makeF32(rewriter, loc, shape, op.getScales()), Value()};
    if (llvm::any_of(op.getZeroPoints(), [](int32_t zero) { return zero != 0; })) {
      std::vector<char> zeros;
      for (int32_t zero : op.getZeroPoints())
        zeros.push_back(static_cast<char>(zero));
      RankedTensorType zeroType = makeTensor(ArrayRef<int64_t>(shape), type.getElementType());
      operands[2] = ConstantOp::create(rewriter, loc, zeroType, makeConstant(zeroType, zeros));
    }
    rewriter.replaceOpWithNewOp<DequantizeGroupedOp>(op, op.getType(), operands[0], operands[1], operands[2], axis,
                                                     count == 1 ? type.getDimSize(0) : 1, bitsOf(attr, op.getZeroPoints()), /*offsets=*/false);
    return success();
  }

  /// The fewest bits that hold all values and zero points.
  static int64_t bitsOf(ElementsAttr attr, ArrayRef<int32_t> zeroPoints) {
    int64_t bits = 1, low = 0, high = 0;
    std::vector<int64_t> values = *constantInts(attr);
    values.insert(values.end(), zeroPoints.begin(), zeroPoints.end());
    for (int64_t value : values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    bool isSigned = !isUnsigned(attr.getElementType());
    while (bits < 8 && (isSigned ? low < -(int64_t(1) << (bits - 1)) || high >= int64_t(1) << (bits - 1)
                                 : high >= int64_t(1) << bits))
      ++bits;
    return bits;
  }
};

/// The parts of a stored weight, moved by the same operation.
struct MoveStored : RewritePattern {
  explicit MoveStored(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<TransposeOp, ReshapeOp>(op))
      return failure();
    Operation *stored = op->getOperand(0).getDefiningOp();
    if (!stored || !isStoredForm(stored) || !stored->hasOneUse() || !isStoredWeight(op->getResult(0)))
      return failure();
    if (auto cast = dyn_cast<CastOp>(stored)) {
      Value moved = move(rewriter, op, cast.getInput(), getDims(op->getResult(0)));
      replaceFused<CastOp>(rewriter, op, stored->getLoc(), op->getResult(0).getType(), moved);
      return success();
    }
    if (auto grouped = dyn_cast<DequantizeGroupedOp>(stored))
      return moveGrouped(op, grouped, rewriter);
    return failure();
  }

  static Value move(PatternRewriter &rewriter, Operation *op, Value part, const Dims &dims) {
    Type type = makeTensor(dims, elementType(part));
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return TransposeOp::create(rewriter, op->getLoc(), part, transpose.getPerm());
    return ReshapeOp::create(rewriter, op->getLoc(), type, part);
  }

  static LogicalResult moveGrouped(Operation *op, DequantizeGroupedOp grouped, PatternRewriter &rewriter) {
    auto plan = planGroups(op, grouped);
    if (!plan || isCodedParameter(grouped, grouped.getScales()))
      return failure();
    MLIRContext *context = op->getContext();
    Dims parameterDims;
    for (int64_t size : plan->parameters)
      parameterDims.push_back(getAffineConstantExpr(size, context));
    Value moved = move(rewriter, op, grouped.getInput(), getDims(op->getResult(0))), zeros = grouped.getZeroPoints();
    Value scales = move(rewriter, op, grouped.getScales(), parameterDims);
    if (zeros)
      zeros = move(rewriter, op, zeros, parameterDims);
    replaceFused<DequantizeGroupedOp>(rewriter, op, grouped.getLoc(), op->getResult(0).getType(), moved, scales, zeros,
                                      plan->axis, plan->group, grouped.getBits(), grouped.getOffsets());
    return success();
  }

  struct Groups {
    SmallVector<int64_t> parameters; ///< sizes of the moved parameters
    int64_t axis, group;
  };

  /// Where the groups lie after the movement; nothing when they do not survive it.
  static std::optional<Groups> planGroups(Operation *op, DequantizeGroupedOp grouped) {
    ArrayRef<int64_t> parameters = tensorType(grouped.getScales()).getShape();
    RankedTensorType in = tensorType(grouped.getInput()), out = tensorType(op->getResult(0));
    int64_t axis = grouped.getAxis();
    Groups result{{}, -1, int64_t(grouped.getGroup())};
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      for (int64_t p : transpose.getPerm())
        result.parameters.push_back(parameters[p]);
      result.axis = invert(transpose.getPerm())[axis];
      return result;
    }
    auto matched = matchReshape(in, out);
    if (!matched || out.getRank() == 0)
      return std::nullopt;
    result.parameters.assign(out.getRank(), 1);
    for (const ReshapeGroup &dims : *matched) {
      bool isSingle = dims.in.size() == 1 && dims.out.size() == 1;
      if (isSingle) {
        result.parameters[dims.out[0]] = parameters[dims.in[0]];
        if (dims.in[0] == axis)
          result.axis = dims.out[0];
      } else if (llvm::any_of(dims.in, [&](int64_t d) { return parameters[d] != 1; })) {
        return std::nullopt;
      }
    }
    if (result.axis >= 0)
      return result;
    // The axis was of one group: any dimension without parameters of its own says the same.
    for (int64_t d = 0; d < out.getRank(); ++d)
      if (result.parameters[d] == 1) {
        result.axis = d;
        result.group = std::max<int64_t>(out.getDimSize(d), 1);
        return result;
      }
    return std::nullopt;
  }
};

} // namespace

void populateWeightPatterns(RewritePatternSet &patterns) { patterns.add<MoveStored>(patterns.getContext()); }

} // namespace simplify

namespace {

struct WeightsPass : PassWrapper<WeightsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WeightsPass)

  StringRef getArgument() const override { return "nn-weights"; }
  StringRef getDescription() const override { return "weights of products are stored in the bits that they have"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<simplify::GroupedWeight>(&getContext());
    if (failed(simplify::applyPatterns(getOperation(), std::move(patterns))))
      return signalPassFailure();
    simplify::eraseDeadOps(getOperation());
  }
};

} // namespace

std::unique_ptr<Pass> createWeightsPass() { return std::make_unique<WeightsPass>(); }

} // namespace ajour
