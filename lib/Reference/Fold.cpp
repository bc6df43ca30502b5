//===- Fold.cpp - constant folding ---------------------------------------------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

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

bool foldConstants(Operation *op, SmallVectorImpl<Value> *results, int64_t maxBytes) {
  if (!isa_and_nonnull<nn::NNDialect>(op->getDialect()) || isa<nn::ConstantOp>(op) || !isWorthFolding(op, maxBytes))
    return false;
  std::vector<HostTensor> tensors;
  for (Value operand : op->getOperands()) {
    ElementsAttr value = nn::getConstantValue(operand);
    if (!value)
      return false;
    tensors.push_back(toHostTensor(value));
  }
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
