//===- State.h - what a model keeps between calls -------------*- C++ -*-===//
//
// State is an argument and a result of the function `main` that carry the attribute `nn.state` with one name: what a call returns
// there, the next call is given. So a call is a pure function, and every pass treats state as any other value. The
// argument's attribute `nn.initial` is the value before the first call; without it, zeros.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_DIALECT_NN_STATE_H
#define AJOUR_DIALECT_NN_STATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <vector>

namespace ajour::nn {

inline constexpr llvm::StringLiteral stateAttr = "nn.state", initialAttr = "nn.initial";

struct State {
  mlir::StringAttr name;
  unsigned argument = 0, result = 0;
  mlir::ElementsAttr initial; ///< null: zeros
};

inline bool isStateArgument(mlir::func::FuncOp main, unsigned i) { return bool(main.getArgAttr(i, stateAttr)); }
inline bool isStateResult(mlir::func::FuncOp main, unsigned i) { return bool(main.getResultAttr(i, stateAttr)); }

/// The states of a function in the order of its arguments. Fails, with a diagnostic, unless each name is at exactly
/// one argument and one result of one static type, which that of the initial value is too.
mlir::FailureOr<std::vector<State>> getStates(mlir::func::FuncOp main);

/// Arguments, or results, that are none.
std::vector<unsigned> inputArguments(mlir::func::FuncOp main);
std::vector<unsigned> outputResults(mlir::func::FuncOp main);

} // namespace ajour::nn

#endif
