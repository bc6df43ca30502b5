//===- Fold.cpp - constant folding ---------------------------------------------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace ajour {

/// Results up to this size are folded even when they are much larger than what they are made of.
static constexpr int64_t smallBytes = 64 << 10;

/// Bytes of a static tensor; nothing when it is dynamic or too large to count.
static std::optional<int64_t> bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return std::nullopt;
  int64_t bytes = nn::elementBytes(tensor.getElementType());
  for (int64_t size : tensor.getShape())
    if (llvm::MulOverflow(bytes, size, bytes))
      return std::nullopt;
  return bytes;
}

/// Whether the result is worth its bytes: repetition is cheaper to compute than to store.
static bool isWorthFolding(Operation *op, int64_t maxBytes) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes()) {
    std::optional<int64_t> size = bytesOf(type);
    if (!size || llvm::AddOverflow(bytes, *size, bytes))
      return false;
  }
  if (bytes > maxBytes)
    return false;
  if (isa<nn::IotaOp>(op))
    return bytes <= smallBytes;
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op))
    return bytes <= smallBytes || bytes / 4 <= bytesOf(broadcast.getInput().getType()).value_or(0);
  return true;
}

static double elementsOf(Value value) {
  double elements = 1;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    elements *= double(size);
  return elements;
}

/// Steps that evaluation takes for each element of the result; an estimate from above.
static double stepsPerElement(Operation *op) {
  auto product = [](ArrayRef<int64_t> sizes) {
    double volume = 1;
    for (int64_t size : sizes)
      volume *= double(size);
    return volume;
  };
  if (auto conv = dyn_cast<nn::ConvOp>(op))
    return product(cast<RankedTensorType>(conv.getFilter().getType()).getShape().drop_front());
  if (auto pool = dyn_cast<nn::MaxPoolOp>(op))
    return product(pool.getWindow());
  if (auto pool = dyn_cast<nn::AvgPoolOp>(op))
    return product(pool.getWindow());
  if (isa<nn::MatmulOp>(op)) {
    // [m, k] x [k, n]: the operands have m k and k n elements, the result m n for each batch.
    double result = std::max(elementsOf(op->getResult(0)), 1.0);
    return std::sqrt(elementsOf(op->getOperand(0)) * elementsOf(op->getOperand(1)) / result) + 1;
  }
  return 4; // resampling reads up to 4 taps a dimension, sorting compares
}

/// Steps that evaluation takes.
static double stepsOf(Operation *op) {
  double steps = 0;
  for (Value operand : op->getOperands())
    steps += elementsOf(operand);
  if (auto conv = dyn_cast<nn::ConvTransposeOp>(op))
    steps += elementsOf(op->getOperand(0)) * elementsOf(op->getOperand(1)); // each pixel meets each tap
  if (isa<nn::RnnOp, nn::GruOp, nn::LstmOp>(op)) { // each row of each step meets all recurrent weights
    auto input = cast<RankedTensorType>(op->getOperand(0).getType());
    steps += double(input.getDimSize(0)) * double(input.getDimSize(1)) * elementsOf(op->getOperand(1));
  }
  if (isa<nn::AttentionOp>(op)) // each query meets each row
    steps += 2 * elementsOf(op->getOperand(0)) * double(nn::estimateSize(nn::getDims(op->getOperand(1)).rbegin()[2]));
  if (auto scan = dyn_cast<nn::SelectiveScanOp>(op)) // each token meets the whole state
    steps += elementsOf(scan.getX()) * elementsOf(scan.getB()) / std::max(elementsOf(scan.getDelta()), 1.0);
  if (auto conv = dyn_cast<nn::CausalConvOp>(op)) // each row meets all taps
    steps += elementsOf(conv.getInput()) * double(cast<RankedTensorType>(conv.getFilter().getType()).getDimSize(0));
  for (Value result : op->getResults())
    steps += elementsOf(result) * stepsPerElement(op);
  return steps;
}

/// Takes the operation's cost from the budget, or leaves it and says no.
static bool charge(Operation *op, FoldBudget &budget) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += bytesOf(type).value_or(0);
  double steps = stepsOf(op);
  if (bytes > budget.bytes || steps > double(budget.steps))
    return false;
  budget.bytes -= bytes;
  budget.steps -= int64_t(steps);
  return true;
}

bool foldConstants(Operation *op, SmallVectorImpl<Value> *results, int64_t maxBytes, FoldBudget *budget) {
  if (!isa_and_nonnull<nn::NNDialect>(op->getDialect()) || isa<nn::ConstantOp>(op) || !isWorthFolding(op, maxBytes))
    return false;
  if (!llvm::all_of(op->getOperands(), [](Value operand) { return bool(nn::getConstantValue(operand)); }))
    return false;
  if (budget && !charge(op, *budget))
    return false;
  std::vector<HostTensor> tensors;
  for (Value operand : op->getOperands())
    tensors.push_back(toHostTensor(nn::getConstantValue(operand)));
  SmallVector<const HostTensor *> operands;
  for (const HostTensor &tensor : tensors)
    operands.push_back(&tensor);

  // An operation that cannot be evaluated stays; whoever compiles it reports why.
  ScopedDiagnosticHandler quiet(op->getContext(), [](Diagnostic &) { return success(); });
  FailureOr<std::vector<HostTensor>> folded = evaluate(op, operands);
  if (failed(folded))
    return false;
  OpBuilder builder(op);
  SmallVector<Value> values;
  for (auto [tensor, type] : llvm::zip_equal(*folded, op->getResultTypes()))
    values.push_back(nn::ConstantOp::create(builder, op->getLoc(), type,
                                            nn::makeConstant(cast<RankedTensorType>(type), tensor.data)));
  op->replaceAllUsesWith(values);
  op->erase();
  if (results)
    results->assign(values.begin(), values.end());
  return true;
}

} // namespace ajour
