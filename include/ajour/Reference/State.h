//===- State.h - calls of a function with state ---------------*- C++ -*-===//
#ifndef AJOUR_REFERENCE_STATE_H
#define AJOUR_REFERENCE_STATE_H

#include "ajour/Dialect/NN/State.h"
#include "ajour/Reference/HostTensor.h"

namespace ajour {

/// The values before the first call: one tensor for each argument of `main`, of its initial value or zeros where it is a
/// state, and else the next of `inputs`.
std::vector<HostTensor> withInitialStates(mlir::func::FuncOp main, llvm::ArrayRef<HostTensor> inputs);
/// Takes the states among the results of a call over into the arguments of the next.
void carryStates(mlir::func::FuncOp main, llvm::ArrayRef<HostTensor> results, std::vector<HostTensor> &arguments);

} // namespace ajour

#endif
