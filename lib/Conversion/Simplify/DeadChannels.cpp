//===- DeadChannels.cpp - nn-dead-channels: what no weight reads is not computed ------------===//
//
// Pruning leaves channels that no weight of the next product reads. They are followed back through what works on each channel by
// itself to the product that makes them; all between is made narrower.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/Enc/Enc.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace {

using Channels = SmallVector<int64_t>;

/// Channels that are left are a multiple of this where there are enough: kernels work on so many at a time.
constexpr int64_t channelStep = 16;
/// At most this share of the channels may be left: structures of weights that a few missing rows would break are worth more.
constexpr double mostLeft = 0.75;

/// The elements of a constant at some indices of a dimension.
Value sliceConstant(OpBuilder &b, Value value, int64_t dim, ArrayRef<int64_t> kept) {
  auto type = cast<RankedTensorType>(value.getType());
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(getConstantValue(value), storage);
  int64_t inner = elementBytes(type.getElementType()) * llvm::product_of(type.getShape().drop_front(dim + 1));
  int64_t outer = llvm::product_of(type.getShape().take_front(dim)), size = type.getDimSize(dim);
  std::vector<char> sliced;
  sliced.reserve(outer * kept.size() * inner);
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t index : kept) {
      const char *from = bytes.data() + (i * size + index) * inner;
      sliced.insert(sliced.end(), from, from + inner);
    }
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = kept.size();
  auto result = RankedTensorType::get(shape, type.getElementType());
  return ConstantOp::create(b, value.getLoc(), result, makeConstant(result, sliced));
}

/// A list of one value for each channel, or of one for all.
template <typename T> SmallVector<T> sliceList(ArrayRef<T> values, ArrayRef<int64_t> kept) {
  if (values.size() <= 1)
    return SmallVector<T>(values);
  SmallVector<T> result;
  for (int64_t index : kept)
    result.push_back(values[index]);
  return result;
}

bool isConstant(Value value) { return !value || getConstantValue(value); }

int64_t lastSize(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

/// A product over all channels with plain constant weights.
bool isProduct(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return conv.getGroups() == 1 && isConstant(conv.getFilter()) && isConstant(conv.getBias());
  auto matmul = dyn_cast<MatmulOp>(op);
  return matmul && cast<RankedTensorType>(matmul.getRhs().getType()).getRank() == 2 && !matmul.getTransposeLhs() &&
         isConstant(matmul.getRhs()) && isConstant(matmul.getBias());
}

/// Whether each channel of the result depends on the same channel of operand 0 alone.
bool isChannelwise(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([](ConvOp conv) {
        int64_t groups = conv.getGroups();
        return groups > 1 && groups == lastSize(conv.getInput()) && groups == lastSize(conv.getResult()) &&
               isConstant(conv.getFilter()) && isConstant(conv.getBias());
      })
      .Case([](RequantizeOp requantize) {
        int64_t rank = cast<RankedTensorType>(requantize.getInput().getType()).getRank(), axis = requantize.getAxis();
        return axis == -1 || axis == rank - 1;
      })
      .Case<UnaryOp, ClampOp, MaxPoolOp, AvgPoolOp>([](auto) { return true; })
      .Default([](Operation *) { return false; });
}

/// The channels of a product's operand that some weight reads.
Channels channelsRead(Operation *product) {
  auto conv = dyn_cast<ConvOp>(product);
  Value weights = product->getOperand(1);
  bool isTurned = !conv && !cast<MatmulOp>(product).getTransposeRhs();
  ArrayRef<int32_t> zeroPoints = conv ? conv.getRhsZeroPoints() : cast<MatmulOp>(product).getRhsZeroPoints();
  auto type = cast<RankedTensorType>(weights.getType());
  int64_t channels = isTurned ? type.getDimSize(0) : type.getShape().back();
  int64_t outputs = isTurned ? type.getShape().back() : type.getDimSize(0);
  std::vector<bool> isRead(channels);
  auto visit = [&](const auto &values) {
    int64_t perOutput = int64_t(values.size()) / outputs;
    for (int64_t i = 0; i < int64_t(values.size()); ++i) {
      int64_t output = isTurned ? i % outputs : i / perOutput, channel = isTurned ? i / outputs : i % channels;
      if (values[i] != (zeroPoints.empty() ? 0 : zeroPoints[zeroPoints.size() == 1 ? 0 : output]))
        isRead[channel] = true;
    }
  };
  if (auto floats = constantFloats(getConstantValue(weights)))
    visit(*floats);
  else if (auto integers = constantInts(getConstantValue(weights)))
    visit(*integers);
  else
    isRead.assign(channels, true);
  Channels read;
  for (int64_t c = 0; c < channels; ++c)
    if (isRead[c])
      read.push_back(c);
  return read;
}

/// Those that are read, filled up to whole steps with others; nothing if that is not much fewer.
Channels channelsToKeep(ArrayRef<int64_t> read, int64_t channels) {
  int64_t wanted = std::max<int64_t>(channelStep, llvm::alignTo(read.size(), channelStep));
  if (double(wanted) > mostLeft * double(channels))
    return {};
  Channels kept(read);
  for (int64_t c = 0; int64_t(kept.size()) < wanted; ++c)
    if (!llvm::is_contained(read, c))
      kept.push_back(c);
  llvm::sort(kept);
  return kept;
}

/// What the model itself says of an operation's weights holds for them as they are.
bool isDeclared(Operation *op) {
  auto declared = op->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(enc::declaredAttrName);
  return declared && llvm::any_of(getNodes(op->getLoc()), [&](const NodeInfo &node) { return declared.contains(node.name); });
}

/// The operations from a product's operand back to the product that makes it, that one last; empty if there is none.
SmallVector<Operation *> findChain(Operation *consumer) {
  SmallVector<Operation *> chain;
  for (Value value = consumer->getOperand(0);;) {
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse() || isDeclared(op))
      return {};
    chain.push_back(op);
    if (isProduct(op))
      return chain;
    if (!isChannelwise(op))
      return {};
    value = op->getOperand(0);
  }
}

/// A copy of an operation that makes the kept channels alone.
Value makeNarrow(OpBuilder &b, Operation *op, Value input, ArrayRef<int64_t> kept) {
  Operation *narrow = b.clone(*op);
  if (input)
    narrow->setOperand(0, input);
  llvm::TypeSwitch<Operation *>(narrow)
      .Case([&](ConvOp conv) {
        conv.getFilterMutable().assign(sliceConstant(b, conv.getFilter(), 0, kept));
        if (conv.getBias())
          conv.getBiasMutable().assign(sliceConstant(b, conv.getBias(), 0, kept));
        conv.setRhsZeroPoints(sliceList(conv.getRhsZeroPoints(), kept));
        if (conv.getGroups() > 1)
          conv.setGroups(kept.size());
      })
      .Case([&](MatmulOp matmul) {
        matmul.getRhsMutable().assign(sliceConstant(b, matmul.getRhs(), matmul.getTransposeRhs() ? 0 : 1, kept));
        if (matmul.getBias())
          matmul.getBiasMutable().assign(sliceConstant(b, matmul.getBias(), 0, kept));
        matmul.setRhsZeroPoints(sliceList(matmul.getRhsZeroPoints(), kept));
      })
      .Case([&](RequantizeOp requantize) {
        if (auto scales = requantize.getScales())
          requantize.setScales(sliceList(*scales, kept));
        if (auto multipliers = requantize.getMultipliers())
          requantize.setMultipliers(sliceList(*multipliers, kept));
        if (auto shifts = requantize.getShifts())
          requantize.setShifts(sliceList(*shifts, kept));
      });
  Dims dims = getDims(op->getResult(0));
  dims.back() = getAffineConstantExpr(kept.size(), op->getContext());
  narrow->getResult(0).setType(makeTensor(dims, simplify::elementType(op->getResult(0))));
  // Constants that were made for it stand behind it.
  for (Value operand : narrow->getOperands())
    if (auto constant = operand.getDefiningOp<ConstantOp>())
      if (constant->getBlock() == narrow->getBlock() && narrow->isBeforeInBlock(constant))
        constant->moveBefore(narrow);
  return narrow->getResult(0);
}

struct DeadChannelsPass : PassWrapper<DeadChannelsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DeadChannelsPass)

  StringRef getArgument() const override { return "nn-dead-channels"; }
  StringRef getDescription() const override { return "do not compute channels that no weight reads"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    // From the last: what a product no longer makes may be all that its own operand was read for.
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isProduct(op))
        products.push_back(op);
    });
    llvm::SmallDenseMap<Operation *, Operation *> replaced;
    for (Operation *product : llvm::reverse(products)) {
      if (Operation *now = replaced.lookup(product))
        product = now;
      narrow(product, replaced);
    }
    simplify::eraseDeadOps(getOperation());
  }

  void narrow(Operation *consumer, llvm::SmallDenseMap<Operation *, Operation *> &replaced) {
    SmallVector<Operation *> chain = isDeclared(consumer) ? SmallVector<Operation *>() : findChain(consumer);
    if (chain.empty())
      return;
    Channels kept = channelsToKeep(channelsRead(consumer), lastSize(consumer->getOperand(0)));
    if (kept.empty())
      return;
    OpBuilder b(consumer);
    Value input;
    for (Operation *op : llvm::reverse(chain)) {
      b.setInsertionPoint(op);
      input = makeNarrow(b, op, input, kept);
      if (op == chain.back())
        replaced[op] = input.getDefiningOp();
    }
    b.setInsertionPoint(consumer);
    auto matmul = dyn_cast<MatmulOp>(consumer);
    int64_t dim = matmul ? (matmul.getTransposeRhs() ? 1 : 0)
                         : cast<RankedTensorType>(consumer->getOperand(1).getType()).getRank() - 1;
    consumer->setOperand(1, sliceConstant(b, consumer->getOperand(1), dim, kept));
    consumer->setOperand(0, input);
    // At once: their operand would look as if it were used twice.
    for (Operation *op : chain)
      op->erase();
  }
};

} // namespace

std::unique_ptr<Pass> createDeadChannelsPass() { return std::make_unique<DeadChannelsPass>(); }

} // namespace ajour
