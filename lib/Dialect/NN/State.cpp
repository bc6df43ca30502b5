//===- State.cpp - what a model keeps between calls ---------------------------===//
#include "ajour/Dialect/NN/State.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;

namespace ajour::nn {

FailureOr<std::vector<State>> getStates(func::FuncOp main) {
  std::vector<State> states;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, stateAttr);
    if (!name)
      continue;
    State state{name, i, 0, main.getArgAttrOfType<ElementsAttr>(i, initialAttr)};
    for (const State &other : states)
      if (other.name == name)
        return main.emitError() << "two arguments are the state '" << name.getValue() << "'";
    auto type = dyn_cast<RankedTensorType>(main.getArgumentTypes()[i]);
    unsigned found = 0;
    for (unsigned r = 0; r < main.getNumResults(); ++r)
      if (main.getResultAttrOfType<StringAttr>(r, stateAttr) == name) {
        state.result = r;
        ++found;
      }
    if (!type || !type.hasStaticShape() || found != 1 || main.getResultTypes()[state.result] != type ||
        (state.initial && state.initial.getShapedType() != type))
      return main.emitError() << "the state '" << name.getValue()
                              << "' needs one argument, one result and an initial value of one static type";
    states.push_back(state);
  }
  for (unsigned r = 0; r < main.getNumResults(); ++r)
    if (auto name = main.getResultAttrOfType<StringAttr>(r, stateAttr))
      if (llvm::none_of(states, [&](const State &state) { return state.result == r; }))
        return main.emitError() << "no argument is the state '" << name.getValue() << "' that a result is";
  return states;
}

static std::vector<unsigned> without(unsigned count, llvm::function_ref<bool(unsigned)> isState) {
  std::vector<unsigned> others;
  for (unsigned i = 0; i < count; ++i)
    if (!isState(i))
      others.push_back(i);
  return others;
}

std::vector<unsigned> inputArguments(func::FuncOp main) {
  return without(main.getNumArguments(), [&](unsigned i) { return isStateArgument(main, i); });
}

std::vector<unsigned> outputResults(func::FuncOp main) {
  return without(main.getNumResults(), [&](unsigned i) { return isStateResult(main, i); });
}

} // namespace ajour::nn
