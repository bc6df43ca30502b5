//===- Weights.h - operations that say how a weight is stored ---*- C++ -*-===//
#ifndef AJOUR_DIALECT_NN_WEIGHTS_H
#define AJOUR_DIALECT_NN_WEIGHTS_H

#include "mlir/IR/Operation.h"

namespace ajour::nn {

/// Whether an operation turns a constant of few bits into floats: a dequantisation, a look-up in a codebook, or the
/// widening of 16-bit floats (of some size; smaller ones are as well computed). Importers leave it as it is, because later
/// passes store the constant, not the floats.
bool isStoredForm(mlir::Operation *op);

/// Whether scales or offsets of an nn.dequantize_grouped are themselves dequantised from constants of few bits.
bool isCodedParameter(mlir::Operation *op, mlir::Value operand);
/// The same with another notion of what a constant is.
bool isCodedParameter(mlir::Operation *op, mlir::Value operand, llvm::function_ref<bool(mlir::Value)> isConstant);

} // namespace ajour::nn

#endif
