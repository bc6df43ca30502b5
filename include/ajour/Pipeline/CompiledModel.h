//===- CompiledModel.h - a module compiled and run here ---------*- C++ -*-===//
//
// For `ajour verify` and for tests: an artifact in a temporary file, run through the runtime's C API.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_PIPELINE_COMPILEDMODEL_H
#define AJOUR_PIPELINE_COMPILEDMODEL_H

#include "ajour/Pipeline/Compile.h"
#include "ajour/Reference/HostTensor.h"
#include "ajour/ajour.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ajour {

/// Values of a module's symbolic dimensions, read from the inputs' shapes where a dimension of `main` is the
/// symbol itself or a multiple of it; 0 where none is.
std::vector<int64_t> readSymbols(mlir::func::FuncOp main, llvm::ArrayRef<HostTensor> inputs);

/// Names of this machine's code levels, lowest first.
std::vector<std::string> runnableLevels();

class CompiledModel {
public:
  /// Compiles an imported module, which is consumed. Null after diagnostics.
  static std::unique_ptr<CompiledModel> compile(mlir::ModuleOp module, const CompileOptions &options = {});
  /// The same for a module that has been through lowerToExec, which is left as it is.
  static std::unique_ptr<CompiledModel> write(mlir::ModuleOp module, const CompileOptions &options = {});
  ~CompiledModel();
  CompiledModel(const CompiledModel &) = delete;
  CompiledModel &operator=(const CompiledModel &) = delete;

  struct RunOptions {
    std::string level; ///< code level; empty: AJOUR_CPU, else the best
    uint32_t threads = 1;
    uint32_t sessionFlags = 0; ///< AJOUR_SESSION_*
    std::function<void(const ajour_observation &)> observer;
  };
  /// Runs once in a session of its own, as the pure function that `main` is: inputs are all its arguments and outputs all its
  /// results, states too. False with the runtime's message in `error` when it cannot.
  bool run(llvm::ArrayRef<HostTensor> inputs, std::vector<HostTensor> &outputs, std::string &error,
           const RunOptions &options);
  bool run(llvm::ArrayRef<HostTensor> inputs, std::vector<HostTensor> &outputs, std::string &error) {
    return run(inputs, outputs, error, RunOptions());
  }

  const std::string &path() const { return artifact; }

private:
  CompiledModel() = default;
  static std::unique_ptr<CompiledModel> make(llvm::function_ref<mlir::LogicalResult(const std::string &)> write,
                                             mlir::ModuleOp module);

  /// An argument or result of `main`: which input or output of the artifact, or which state.
  struct Port {
    bool isState;
    uint32_t index;
  };
  std::vector<Port> arguments, results;
  std::string directory, artifact;
  std::map<std::string, ajour_model *> models; ///< loaded, by level
};

} // namespace ajour

#endif
