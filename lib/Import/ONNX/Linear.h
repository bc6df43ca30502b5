//===- Linear.h - matrix products shared by kinds -------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ONNX_LINEAR_H
#define AJOUR_LIB_IMPORT_ONNX_LINEAR_H

#include "Node.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ajour::onnx_import {

/// The product of two tensors of rank 2 or more, for floats and 32- and 64-bit integers.
Value matrixProduct(Node &n, Value lhs, Value rhs);

/// NumPy's rule for matmul: vectors become a row or a column, and the added dimension goes again.
Value matMulLike(Node &n, Value lhs, Value rhs, llvm::function_ref<Value(Value, Value)> product);

} // namespace ajour::onnx_import

#endif
