//===- Accumulator.h - element types of products ----------------*- C++ -*-===//
#ifndef AJOUR_LIB_DIALECT_NN_ACCUMULATOR_H
#define AJOUR_LIB_DIALECT_NN_ACCUMULATOR_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Types.h"

namespace ajour::nn {

/// The element type of a product's result: the operands' own for floating point, i32 for integers, i64
/// when lhs has 16 bits. `bias` may be null.
mlir::FailureOr<mlir::Type> inferAccumulator(std::optional<mlir::Location> loc, llvm::StringRef op, mlir::Type lhs,
                                             mlir::Type rhs, mlir::Type bias);

} // namespace ajour::nn

#endif
