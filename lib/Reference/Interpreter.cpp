//===- Interpreter.cpp - evaluation of operations and functions ---------------===//
#include "ajour/Reference/Interpreter.h"

#include "Evaluation.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ajour {

namespace reference {

Shape stridesOf(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Shape broadcastStrides(ArrayRef<int64_t> shape, ArrayRef<int64_t> to) {
  Shape own = stridesOf(shape), strides(to.size(), 0);
  size_t offset = to.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    strides[offset + d] = shape[d] == 1 ? 0 : own[d];
  return strides;
}

int64_t sizeOf(ArrayRef<int64_t> shape, size_t begin, size_t end) {
  int64_t size = 1;
  for (size_t d = begin; d < end; ++d)
    size *= shape[d];
  return size;
}

} // namespace reference

using namespace reference;

/// The value of a dimension's expression, or nothing: a symbol without a value, a division by a number
/// that is not positive, or overflow.
static std::optional<int64_t> evaluateDim(AffineExpr expr, ArrayRef<int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbol.getPosition() < symbols.size() ? std::optional(symbols[symbol.getPosition()]) : std::nullopt;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> lhs = evaluateDim(binary.getLHS(), symbols), rhs = evaluateDim(binary.getRHS(), symbols);
  if (!lhs || !rhs)
    return std::nullopt;
  int64_t value;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(*lhs, *rhs, value) ? std::nullopt : std::optional(value);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(*lhs, *rhs, value) ? std::nullopt : std::optional(value);
  case AffineExprKind::FloorDiv:
    return *rhs > 0 ? std::optional(llvm::divideFloorSigned(*lhs, *rhs)) : std::nullopt;
  case AffineExprKind::CeilDiv:
    return *rhs > 0 ? std::optional(llvm::divideCeilSigned(*lhs, *rhs)) : std::nullopt;
  case AffineExprKind::Mod:
    return *rhs > 0 ? std::optional(llvm::mod(*lhs, *rhs)) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// The shape of a tensor type for these symbol values.
static FailureOr<Shape> evaluateShape(Operation *op, Type type, ArrayRef<int64_t> symbols) {
  auto tensor = cast<RankedTensorType>(type);
  Shape shape;
  int64_t bytes = nn::elementBytes(tensor.getElementType());
  for (AffineExpr dim : nn::getDims(tensor)) {
    std::optional<int64_t> size = evaluateDim(dim, symbols);
    if (!size || *size < 0)
      return op->emitError() << "dimension " << shape.size() << " of " << nn::toString(tensor)
                             << (size ? " is negative: " + std::to_string(*size) : " has no value")
                             << " for the given values of the symbolic dimensions";
    shape.push_back(*size);
    if (llvm::MulOverflow(bytes, std::max<int64_t>(*size, 1), bytes))
      return op->emitError() << nn::toString(tensor) << " has more bytes than can be addressed";
  }
  return shape;
}

/// Checks a tensor against the type that the program gives it.
static LogicalResult checkTensor(Operation *op, const Twine &what, const HostTensor &tensor, Type type,
                                 ArrayRef<int64_t> symbols) {
  FailureOr<Shape> shape = evaluateShape(op, type, symbols);
  if (failed(shape))
    return failure();
  Type element = cast<RankedTensorType>(type).getElementType();
  if (tensor.elementType != nn::getElementTypeId(element) || ArrayRef(tensor.shape) != ArrayRef(*shape) ||
      int64_t(tensor.data.size()) != tensor.numElements() * nn::elementBytes(element)) {
    InFlightDiagnostic diagnostic = op->emitError() << what << " needs " << nn::elementName(element) << "[";
    llvm::interleaveComma(*shape, diagnostic);
    const char *name = ajour_element_name(tensor.elementType);
    diagnostic << "], found " << (name ? name : "an unknown element type") << "[";
    llvm::interleaveComma(tensor.shape, diagnostic);
    return diagnostic << "] of " << int64_t(tensor.data.size()) << " bytes";
  }
  return success();
}

HostTensor toHostTensor(ElementsAttr attr) {
  HostTensor tensor;
  tensor.elementType = nn::getElementTypeId(attr.getElementType());
  tensor.shape = attr.getShapedType().getShape().vec();
  tensor.data = nn::constantBytes(attr);
  return tensor;
}

ElementsAttr toAttribute(const HostTensor &tensor, MLIRContext *context) {
  return nn::makeConstant(nn::makeTensor(tensor.shape, nn::getElementType(tensor.elementType, context)), tensor.data);
}

/// The results of an operation with their shapes, filled with zeros.
static FailureOr<std::vector<HostTensor>> allocateResults(Operation *op, ArrayRef<int64_t> symbols) {
  std::vector<HostTensor> results(op->getNumResults());
  for (auto [result, type] : llvm::zip_equal(results, op->getResultTypes())) {
    FailureOr<Shape> shape = evaluateShape(op, type, symbols);
    if (failed(shape))
      return failure();
    Type element = cast<RankedTensorType>(type).getElementType();
    result.elementType = nn::getElementTypeId(element);
    result.shape.assign(shape->begin(), shape->end());
    result.data.resize(result.numElements() * nn::elementBytes(element));
  }
  return results;
}

FailureOr<std::vector<HostTensor>> evaluate(Operation *op, ArrayRef<const HostTensor *> operands,
                                            ArrayRef<int64_t> symbols) {
  if (operands.size() != op->getNumOperands())
    return op->emitError() << op->getNumOperands() << " operands are needed, found " << operands.size();
  for (auto [i, operand] : llvm::enumerate(operands))
    if (failed(checkTensor(op, "operand " + Twine(i), *operand, op->getOperand(i).getType(), symbols)))
      return failure();
  FailureOr<std::vector<HostTensor>> results = allocateResults(op, symbols);
  if (failed(results))
    return failure();
  Evaluation e{operands, std::move(*results)};
  auto run = [&](auto typed) { return reference::evaluate(typed, e); };
  LogicalResult done =
      TypeSwitch<Operation *, LogicalResult>(op)
          .Case<nn::ConstantOp, nn::UnaryOp, nn::BinaryOp, nn::CompareOp, nn::SelectOp, nn::CastOp, nn::ClampOp,
                nn::QuantizeOp, nn::DequantizeOp, nn::RequantizeOp, nn::LookupOp>(run)
          .Case<nn::MatmulOp, nn::ExpertMatmulOp, nn::ConvOp, nn::ConvTransposeOp, nn::MaxPoolOp, nn::AvgPoolOp, nn::ResizeOp,
                nn::GridSampleOp>(run)
          .Case<nn::ReduceOp, nn::ArgReduceOp, nn::SoftmaxOp, nn::LayerNormOp, nn::CumsumOp, nn::TopKOp>(run)
          .Case<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp, nn::SliceOp, nn::ConcatOp, nn::PadOp, nn::GatherOp,
                nn::GatherElementsOp, nn::GatherNDOp, nn::ScatterElementsOp, nn::ScatterNDOp, nn::ReverseSequenceOp,
                nn::IotaOp>(run)
          .Case<nn::DequantizeGroupedOp, nn::DequantizeCodebookOp>(run)
          .Case<nn::RnnOp, nn::GruOp, nn::LstmOp, nn::AttentionOp>(run)
          .Case<nn::CausalConvOp, nn::SelectiveScanOp>(run)
          .Default([](Operation *other) {
            return other->emitError() << "the reference has no meaning for '" << other->getName() << "'";
          });
  if (failed(done))
    return failure();
  return std::move(e.results);
}

//===----------------------------------------------------------------------===//
// functions
//===----------------------------------------------------------------------===//

namespace {

/// Values of one call of a function.
class Frame {
public:
  Frame(ArrayRef<int64_t> symbols, ValueObserver observer, unsigned depth)
      : symbols(symbols), observer(observer), depth(depth) {}

  FailureOr<std::vector<HostTensor>> run(func::FuncOp function, std::vector<HostTensor> inputs);

private:
  FailureOr<std::vector<HostTensor>> runOperation(Operation *op, ArrayRef<const HostTensor *> operands);
  FailureOr<std::vector<HostTensor>> runDispatch(exec::DispatchOp op, ArrayRef<const HostTensor *> operands);
  /// Keeps a value while something still reads it.
  void define(Value value, HostTensor tensor);

  ArrayRef<int64_t> symbols;
  ValueObserver observer;
  unsigned depth;
  llvm::DenseMap<Value, HostTensor> values;
  llvm::DenseMap<Value, unsigned> uses; ///< reads that are still to come
};

/// Deeper nesting of dispatches than any compiler pass makes; a function that calls itself ends here.
constexpr unsigned maxDepth = 16;

} // namespace

void Frame::define(Value value, HostTensor tensor) {
  if (observer)
    observer(value, tensor);
  if (value.use_empty())
    return;
  uses[value] = std::distance(value.use_begin(), value.use_end());
  values[value] = std::move(tensor);
}

FailureOr<std::vector<HostTensor>> Frame::runDispatch(exec::DispatchOp op, ArrayRef<const HostTensor *> operands) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee)
    return op.emitError() << "no function " << op.getCalleeAttr();
  std::vector<HostTensor> inputs;
  for (const HostTensor *operand : operands)
    inputs.push_back(*operand);
  return Frame(symbols, nullptr, depth + 1).run(callee, std::move(inputs));
}

FailureOr<std::vector<HostTensor>> Frame::runOperation(Operation *op, ArrayRef<const HostTensor *> operands) {
  if (auto dispatch = dyn_cast<exec::DispatchOp>(op))
    return runDispatch(dispatch, operands);
  if (!isa<exec::AliasOp>(op))
    return evaluate(op, operands, symbols);
  FailureOr<std::vector<HostTensor>> results = allocateResults(op, symbols);
  if (failed(results))
    return failure();
  if ((*results)[0].data.size() != operands[0]->data.size())
    return op->emitError() << "an alias of " << operands[0]->data.size() << " bytes cannot have "
                           << (*results)[0].data.size();
  (*results)[0].data = operands[0]->data;
  return results;
}

FailureOr<std::vector<HostTensor>> Frame::run(func::FuncOp function, std::vector<HostTensor> inputs) {
  if (function.isExternal() || !llvm::hasSingleElement(function.getBody()))
    return function.emitError() << "a function with one block is needed to interpret it";
  if (depth > maxDepth)
    return function.emitError() << "dispatches are nested more than " << maxDepth << " deep";
  Block &block = function.getBody().front();
  if (inputs.size() != block.getNumArguments())
    return function.emitError() << block.getNumArguments() << " inputs are needed, found " << inputs.size();
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    if (failed(checkTensor(function, "input " + Twine(i), inputs[i], argument.getType(), symbols)))
      return failure();
    define(argument, std::move(inputs[i]));
  }
  for (Operation &op : block.without_terminator()) {
    SmallVector<const HostTensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values.find(operand)->second);
    FailureOr<std::vector<HostTensor>> results = runOperation(&op, operands);
    if (failed(results))
      return failure();
    for (Value operand : op.getOperands())
      if (--uses[operand] == 0)
        values.erase(operand);
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
      define(value, std::move(tensor));
  }
  std::vector<HostTensor> outputs;
  for (Value value : block.getTerminator()->getOperands())
    outputs.push_back(values.find(value)->second);
  return outputs;
}

FailureOr<std::vector<HostTensor>> interpret(func::FuncOp function, ArrayRef<HostTensor> inputs,
                                             ArrayRef<int64_t> symbols, ValueObserver observer) {
  return Frame(symbols, observer, 0).run(function, std::vector<HostTensor>(inputs.begin(), inputs.end()));
}

} // namespace ajour
