//===- CompiledModel.h - compiled code as an executor -----------*- C++ -*-===//
//
// The checks of models and of conformance do not know how a model is executed; these run it compiled. The code
// level is the best of the machine, or the one that AJOUR_CPU names.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_SUPPORT_COMPILEDMODEL_H
#define AJOUR_TESTS_SUPPORT_COMPILEDMODEL_H

#include "ajour/Pipeline/CompiledModel.h"

namespace ajour::test {

/// Options that make code for the one level that will run. `optimization` as in CompileOptions.
CompileOptions oneLevel(unsigned optimization = 3);

/// Compiles a clone of an imported module; null after a failure of the running test with the diagnostics.
std::shared_ptr<CompiledModel> compileClone(mlir::ModuleOp module, const CompileOptions &options = oneLevel());

/// As tests/Models takes it: a function that runs the module compiled. What fails is a failure of the test and gives
/// tensors of zeros of no elements.
std::function<std::vector<HostTensor>(const std::vector<HostTensor> &)> prepareCompiled(mlir::ModuleOp module);

/// As tests/Conformance takes it.
bool executeCompiled(mlir::ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &symbols,
                     std::vector<HostTensor> &outputs, std::string &error);

} // namespace ajour::test

#endif
