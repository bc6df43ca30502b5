//===- State.cpp - calls of a function with state -------------------------------===//
#include "ajour/Reference/State.h"

#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"

using namespace mlir;

namespace ajour {

std::vector<HostTensor> withInitialStates(func::FuncOp main, ArrayRef<HostTensor> inputs) {
  std::vector<HostTensor> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    if (!nn::isStateArgument(main, i)) {
      if (inputs.empty())
        break;
      arguments.push_back(inputs.front());
      inputs = inputs.drop_front();
      continue;
    }
    if (auto initial = main.getArgAttrOfType<ElementsAttr>(i, nn::initialAttr)) {
      arguments.push_back(toHostTensor(initial));
      continue;
    }
    auto type = cast<RankedTensorType>(main.getArgumentTypes()[i]);
    HostTensor zeros{nn::getElementTypeId(type.getElementType()), type.getShape().vec(), {}};
    zeros.data.resize(zeros.numElements() * nn::elementBytes(type.getElementType()));
    arguments.push_back(std::move(zeros));
  }
  return arguments;
}

void carryStates(func::FuncOp main, ArrayRef<HostTensor> results, std::vector<HostTensor> &arguments) {
  FailureOr<std::vector<nn::State>> states = nn::getStates(main);
  if (succeeded(states))
    for (const nn::State &state : *states)
      arguments[state.argument] = results[state.result];
}

} // namespace ajour
