//===- Calibration.h - a model run on many inputs side by side -*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_CALIBRATION_H
#define AJOUR_LIB_COMPRESS_CALIBRATION_H

#include "Solver.h"

#include "ajour/Compress/Compress.h"
#include "ajour/Dialect/NN/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ajour::compress {

/// Runs a function of nn operations on all samples at once, operation by operation, so that an operation can be changed when its
/// operands are known and what follows sees its new results. Beside that it runs the function as it was: where the two differ,
/// a layer can make up for what happened before it.
class Calibration {
public:
  Calibration(mlir::func::FuncOp main, std::vector<Sample> samples);

  /// Called before each operation. It may give the operation other constants, made in front of it.
  std::function<void(mlir::Operation *)> before;
  /// Called after each operation with each of its results.
  std::function<void(mlir::Value, const std::vector<HostTensor> &)> after;
  std::function<void(int64_t done, int64_t total)> progress;

  /// Throws CompressError when an operation cannot be evaluated; the context has had the diagnostics.
  void run();

  int64_t numSamples() const { return int64_t(samples.size()); }
  /// Before run(), which takes their inputs.
  const std::vector<Sample> &allSamples() const { return samples; }
  /// Inside `before`: the value of an operand for each sample, or one that is the same for all.
  const std::vector<HostTensor> &valueOf(mlir::Value value) const { return values.find(value)->second; }
  /// The same without any changes.
  const std::vector<HostTensor> &unchangedValueOf(mlir::Value value) const {
    auto found = unchanged.find(value);
    return found == unchanged.end() ? valueOf(value) : found->second;
  }

private:
  using Lane = llvm::DenseMap<mlir::Value, std::vector<HostTensor>>;
  using Lookup = llvm::function_ref<const std::vector<HostTensor> &(mlir::Value)>;
  void evaluateInto(Lane &lane, mlir::Operation *op, mlir::ValueRange operands, Lookup lookup);
  void evaluateConstants(mlir::ValueRange operands);
  void release(mlir::Operation *op);

  mlir::func::FuncOp main;
  std::vector<Sample> samples;
  Lane values;
  Lane unchanged; ///< those that differ from `values`
};

/// The values of a layer's input, with the changes before it and without them.
struct LayerInputs {
  const std::vector<HostTensor> &changed, &unchanged;
};

/// Sets what a layer's parts know of the data from the values of its input: the rows of a matrix product, or windows of a
/// convolution. At most about `mostRows` of them, chosen evenly.
void measure(nn::ConvOp op, const LayerInputs &inputs, int64_t mostRows, LayerProblem &problem);
void measure(nn::MatmulOp op, const LayerInputs &inputs, int64_t mostRows, LayerProblem &problem);

} // namespace ajour::compress

#endif
