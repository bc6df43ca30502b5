//===- OperandShape.h - shapes that operands must have ----------*- C++ -*-===//
#ifndef AJOUR_LIB_DIALECT_NN_OPERANDSHAPE_H
#define AJOUR_LIB_DIALECT_NN_OPERANDSHAPE_H

#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/IR/Diagnostics.h"

namespace ajour::nn {

/// C1 for an operand that may be absent: it has these dimensions.
inline llvm::LogicalResult checkOperandShape(std::optional<mlir::Location> loc, llvm::StringRef op, llvm::StringRef name, mlir::Value operand,
                                             llvm::ArrayRef<mlir::AffineExpr> dims) {
  if (!operand || getDims(operand) == Dims(dims))
    return llvm::success();
  return emitOptionalError(loc, op, ": C1: ", name, " must be ", toString(dims), ", found ",
                           toString(llvm::cast<mlir::RankedTensorType>(operand.getType())));
}

} // namespace ajour::nn

#endif
