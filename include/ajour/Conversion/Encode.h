//===- Encode.h - what weights are made of ----------------------*- C++ -*-===//
//
// Finds the structure and values of each product's constant weights and notes them on the product (`enc.weight`).
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_CONVERSION_ENCODE_H
#define AJOUR_CONVERSION_ENCODE_H

#include "ajour/Conversion/Selection.h"
#include "ajour/Encoding/Detect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseSet.h"

#include <memory>
#include <vector>

namespace ajour {

/// A product with constant weights (nn.matmul, nn.conv, nn.conv_transpose) and what was found in them.
struct EncodedWeight {
  mlir::Operation *op;
  encoding::Detected found;
  WeightUse use;
  bool isDeclared = false; ///< the model says what the structure is
  int64_t givenBytes = 0;  ///< of the constant as it is in the module
  int64_t rows = 1; ///< of the product: tokens, output pixels; -1: not known
};

/// Looks at every product of `main` that has constant weights, in order, and sets `enc.weight` where the structure is not dense. What the
/// module's `enc.declared` says is checked against the weights: the weights not being as declared is an error at the user's node.
mlir::FailureOr<std::vector<EncodedWeight>> encodeWeights(mlir::ModuleOp module);

/// Takes all weights as dense ones: no `enc.weight`, and nothing that a kernel could leave out. What was found stays known for reports.
void ignoreZeros(std::vector<EncodedWeight> &weights);

/// The convolutions for which channel-major activations pay, since their sparse kernels have pixels in vectors: none where the network
/// is expected to be as fast with all activations channels-last. All levels of an artifact share buffers, so the best one decides.
llvm::SmallDenseSet<mlir::Operation *> chooseChannelMajor(llvm::ArrayRef<EncodedWeight> weights, ajour_cpu_level level);

/// encodeWeights as a pass over a module, `nn-encode`.
std::unique_ptr<mlir::Pass> createEncodePass();

/// What `enc.weight` and the product itself say; nullopt for one without the attribute (dense weights) or that is no product.
std::optional<WeightUse> getWeightUse(mlir::Operation *product);

} // namespace ajour

#endif
