//===- Executor.h - how a checked model is run ------------------*- C++ -*-===//
#ifndef AJOUR_TESTS_MODELS_EXECUTOR_H
#define AJOUR_TESTS_MODELS_EXECUTOR_H

#include "ajour/Reference/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <vector>

namespace ajour::test {

/// Runs a prepared model once: inputs in the order of main's arguments, outputs in that of its results.
using Run = std::function<std::vector<HostTensor>(const std::vector<HostTensor> &)>;
/// Prepares a module for running; the module outlives the result.
using Prepare = std::function<Run(mlir::ModuleOp)>;

} // namespace ajour::test

#endif
