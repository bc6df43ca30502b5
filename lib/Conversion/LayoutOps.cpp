//===- LayoutOps.cpp - what only moves data, and why it remains --------------------------===//
#include "ajour/Conversion/LayoutOps.h"
#include "Loops/Emitter.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Support/NodeLocation.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using ajour::loops::Emitter;

namespace ajour {

namespace {

/// Moves elements and computes none; a nearest resize takes each from one place.
bool onlyMoves(Operation *op) {
  if (auto resize = dyn_cast<nn::ResizeOp>(op))
    return resize.getMode() == nn::ResizeMode::nearest;
  return Emitter::isMovement(op) && !isa<nn::IotaOp>(op);
}

/// Whether a transposition keeps the order of the elements: only dimensions of 1 move.
bool keepsOrder(nn::TransposeOp op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<int64_t> moved;
  for (int64_t dim : op.getPerm())
    if (type.getDimSize(dim) != 1)
      moved.push_back(dim);
  return llvm::is_sorted(moved);
}

/// Whether a value is an input of the model, or the output, apart from what only moves.
bool isInput(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || (onlyMoves(op) && isInput(op->getOperand(0)));
}
bool isOutput(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) || (onlyMoves(user) && isOutput(user->getResult(0)));
  });
}

/// A transposition with the location of the operation that it serves was written by the importer.
bool isImplied(Operation *op) {
  auto sameNode = [&](Operation *other) {
    return other && !onlyMoves(other) && !isa<nn::ConstantOp>(other) && other->getLoc() == op->getLoc();
  };
  return isa<nn::TransposeOp>(op) && (sameNode(op->getOperand(0).getDefiningOp()) ||
                                      llvm::any_of(op->getUsers(), sameNode));
}

int64_t resultBytes(ValueRange results) {
  int64_t bytes = 0;
  for (Value result : results)
    bytes += nn::estimateBytes(cast<RankedTensorType>(result.getType()));
  return bytes;
}

/// "conv 'c1'" for a dispatch, after its first node.
std::string nameOf(Operation *op) {
  auto dispatch = dyn_cast<exec::DispatchOp>(op);
  if (!dispatch)
    return op->getName().stripDialect().str();
  SmallVector<NodeInfo> nodes = getNodes(dispatch.getLoc());
  return dispatch.getKind().str() + (nodes.empty() ? "" : " '" + nodes.front().name + "'");
}

/// Who reads a dispatch's result, through any aliases.
void collectReaders(Value value, llvm::SetVector<Operation *> &readers) {
  for (Operation *user : value.getUsers()) {
    if (auto alias = dyn_cast<exec::AliasOp>(user))
      collectReaders(alias.getResult(), readers);
    else
      readers.insert(user);
  }
}

std::string reasonOf(exec::DispatchOp dispatch, bool fromInput, const llvm::SetVector<Operation *> &readers) {
  bool toOutput = llvm::any_of(readers, [](Operation *op) { return isa<func::ReturnOp>(op); });
  if (fromInput && toOutput)
    return "the model itself only moves this input";
  if (fromInput)
    return "the input stays as the user passes it";
  if (toOutput && readers.size() == 1)
    return "the output is returned as the user's model orders it";
  if (toOutput)
    return "an output of the model that is read again needs a buffer of its own";
  std::string reason = readers.size() == 1 ? "not computed where it is read, by " : "read by ";
  for (size_t i = 0; i < std::min<size_t>(readers.size(), 3); ++i)
    reason += (i ? ", " : "") + nameOf(readers[i]);
  if (readers.size() > 3)
    reason += " and " + std::to_string(readers.size() - 3) + " more";
  return reason;
}

} // namespace

std::vector<LayoutOp> findLayoutOps(func::FuncOp main) {
  std::vector<LayoutOp> found;
  main.walk([&](Operation *op) {
    if (!onlyMoves(op) || isa<nn::ReshapeOp>(op))
      return;
    if (auto transpose = dyn_cast<nn::TransposeOp>(op); transpose && keepsOrder(transpose))
      return;
    // What is computed from constants is so once.
    if (llvm::all_of(op->getOperands(), [](Value operand) { return bool(nn::getConstantValue(operand)); }))
      return;
    LayoutOp layout{op->getName().stripDialect().str(), op->getLoc()};
    layout.bytes = resultBytes(op->getResults());
    layout.border = isInput(op->getOperand(0)) || isOutput(op->getResult(0));
    layout.implied = isImplied(op);
    found.push_back(std::move(layout));
  });
  return found;
}

std::vector<LayoutOp> findLayoutDispatches(ModuleOp module) {
  std::vector<LayoutOp> found;
  int64_t step = -1;
  for (auto dispatch : module.lookupSymbol<func::FuncOp>("main").getOps<exec::DispatchOp>()) {
    ++step;
    auto callee = module.lookupSymbol<func::FuncOp>(dispatch.getCallee());
    bool moves = llvm::all_of(callee.getBody().front().without_terminator(), [](Operation &op) {
      return onlyMoves(&op) || isa<nn::ConstantOp>(op);
    });
    if (!moves)
      continue;
    LayoutOp layout{dispatch.getKind().str(), dispatch.getLoc()};
    layout.step = step;
    layout.bytes = resultBytes(dispatch.getOutputs());
    llvm::SetVector<Operation *> readers;
    for (Value output : dispatch.getOutputs())
      collectReaders(output, readers);
    bool fromInput = llvm::all_of(dispatch.getInputs(), [](Value input) {
      Value origin = exec::resolveAlias(input);
      return isa<BlockArgument>(origin) || nn::getConstantValue(origin);
    });
    layout.border = fromInput || llvm::any_of(readers, [](Operation *op) { return isa<func::ReturnOp>(op); });
    layout.reason = reasonOf(dispatch, fromInput, readers);
    found.push_back(std::move(layout));
  }
  return found;
}

} // namespace ajour
