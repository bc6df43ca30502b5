//===- InPlace.cpp - states that are changed where they lie --------------------===//
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/State.h"

using namespace mlir;

namespace ajour {

static constexpr llvm::StringLiteral inPlaceAttr = "exec.in_place";

std::optional<unsigned> inPlaceArgument(func::FuncOp callee) {
  auto attr = callee->getAttrOfType<IntegerAttr>(inPlaceAttr);
  return attr ? std::optional<unsigned>(unsigned(attr.getInt())) : std::nullopt;
}

/// The argument of a function that does nothing but write elements over it; nothing for other functions.
static std::optional<unsigned> overwrittenArgument(func::FuncOp callee) {
  Block &body = callee.getBody().front();
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  if (ret.getNumOperands() != 1)
    return std::nullopt;
  Operation *last = ret.getOperand(0).getDefiningOp();
  auto tuples = dyn_cast_or_null<nn::ScatterNDOp>(last);
  auto elements = dyn_cast_or_null<nn::ScatterElementsOp>(last);
  if (!tuples && !elements)
    return std::nullopt;
  // Other kinds than set read what they write; then too each element is read before it is written, but not more than once only.
  if ((tuples ? tuples.getKind() : elements.getKind()) != nn::ScatterKind::set)
    return std::nullopt;
  auto data = dyn_cast<BlockArgument>(last->getOperand(0));
  return data && data.hasOneUse() ? std::optional<unsigned>(data.getArgNumber()) : std::nullopt;
}

void updateStatesInPlace(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  FailureOr<std::vector<nn::State>> states = nn::getStates(main);
  if (failed(states))
    return;
  auto ret = cast<func::ReturnOp>(main.getBody().front().getTerminator());
  // A function may serve several dispatches: all of them must be such.
  llvm::MapVector<Operation *, unsigned> good;
  for (const nn::State &state : *states) {
    Value argument = main.getArgument(state.argument), result = ret.getOperand(state.result);
    auto dispatch = result.getDefiningOp<exec::DispatchOp>();
    if (!dispatch || !argument.hasOneUse() || *argument.user_begin() != dispatch)
      continue;
    auto callee = module.lookupSymbol<func::FuncOp>(dispatch.getCallee());
    std::optional<unsigned> overwritten = overwrittenArgument(callee);
    if (overwritten && dispatch.getInputs()[*overwritten] == argument)
      ++good[callee];
  }
  llvm::DenseMap<Operation *, unsigned> uses;
  for (exec::DispatchOp dispatch : main.getOps<exec::DispatchOp>())
    ++uses[module.lookupSymbol(dispatch.getCallee())];
  for (auto [callee, count] : good)
    if (count == uses[callee])
      callee->setAttr(inPlaceAttr, IntegerAttr::get(IntegerType::get(module.getContext(), 64), *overwrittenArgument(cast<func::FuncOp>(callee))));
}

} // namespace ajour
