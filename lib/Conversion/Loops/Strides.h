//===- Strides.h - views of buffers as strides --------------------*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_LOOPS_STRIDES_H
#define AJOUR_LIB_CONVERSION_LOOPS_STRIDES_H

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include <optional>

namespace ajour::loops {

/// Where a value's elements lie in the row-major buffer of another: element i at offset + sum of i[d] * strides[d].
struct StridedView {
  mlir::Value base;
  mlir::AffineExpr offset;
  nn::Dims strides; ///< in elements; of a dimension of size 1: any
};

/// Follows transposes, slices and reshapes from a value to what they are views of, as far as `base` if that is given. Nothing
/// where the places of elements are no such sum, and where a given base is not come to.
std::optional<StridedView> findStridedView(mlir::Value value, mlir::Value base = {});

/// The view of what a kernel reads for an operand of an attention, as above; nothing where its head dimension does not lie together
/// or, for queries, query heads that share a key head do not.
std::optional<StridedView> findAttentionView(nn::AttentionOp op, unsigned operand, mlir::Value base = {});

} // namespace ajour::loops

#endif
