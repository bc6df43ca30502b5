//===- Utils.h - what the simplifying passes share ------------*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_SIMPLIFY_UTILS_H
#define AJOUR_LIB_CONVERSION_SIMPLIFY_UTILS_H

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <optional>
#include <vector>

namespace ajour::simplify {

using Perm = llvm::SmallVector<int64_t, 6>;

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline mlir::Type elementType(mlir::Value value) { return tensorType(value).getElementType(); }

Perm identityPerm(int64_t rank);
bool isIdentity(llvm::ArrayRef<int64_t> perm);
Perm invert(llvm::ArrayRef<int64_t> perm);
/// transpose(transpose(x, first), second) is transpose(x, compose(first, second)).
Perm compose(llvm::ArrayRef<int64_t> first, llvm::ArrayRef<int64_t> second);
/// Whether transposing a tensor of this type keeps the order of its elements: only dimensions of 1 move.
bool movesOnlyUnits(mlir::RankedTensorType input, llvm::ArrayRef<int64_t> perm);
/// The dimensions of a transposed tensor.
nn::Dims permuted(llvm::ArrayRef<mlir::AffineExpr> dims, llvm::ArrayRef<int64_t> perm);

/// The location of an operation made from two.
mlir::Location fuse(mlir::Location a, mlir::Location b);

/// Whether every value is 0.
inline bool isZero(llvm::ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t value) { return value == 0; });
}

/// Replaces an operation by a new one that stands for it and an inner one. The locations are joined first: an
/// operation is gone once it has been replaced.
template <typename NewOp, typename... Args>
void replaceFused(mlir::PatternRewriter &rewriter, mlir::Operation *op, mlir::Location inner, Args &&...args) {
  mlir::Location loc = fuse(inner, op->getLoc());
  rewriter.replaceOp(op, NewOp::create(rewriter, loc, std::forward<Args>(args)...));
}

/// The elements of an f32 constant.
std::optional<std::vector<float>> f32Constant(mlir::Value value);
/// The one value that all elements of a floating point constant have.
std::optional<float> floatSplat(mlir::Value value);
/// The one value that all elements of an integer or boolean constant have.
std::optional<int64_t> intSplat(mlir::Value value);

mlir::Value makeF32(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape,
                    llvm::ArrayRef<float> values);
mlir::Value makeI32(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape,
                    llvm::ArrayRef<int32_t> values);

/// Dimensions of a reshape that belong together: operand dimensions [inBegin, inEnd) hold the same elements
/// as result dimensions [outBegin, outEnd). Dimensions of 1 are in no group. Nothing when the shapes
/// cannot be matched (an empty tensor).
struct ReshapeGroup {
  llvm::SmallVector<int64_t, 4> in, out;
};
std::optional<llvm::SmallVector<ReshapeGroup>> matchReshape(mlir::RankedTensorType in, mlir::RankedTensorType out);

/// Runs patterns to a fixed point without touching what they do not match.
mlir::LogicalResult applyPatterns(mlir::Operation *root, mlir::RewritePatternSet &&patterns);

/// Removes operations without uses and side effects.
void eraseDeadOps(mlir::func::FuncOp function);

void populateMovementPatterns(mlir::RewritePatternSet &patterns);
void populateSlicePatterns(mlir::RewritePatternSet &patterns);
void populateSplitPatterns(mlir::RewritePatternSet &patterns);
void populateChannelPatterns(mlir::RewritePatternSet &patterns);
void populateRollPatterns(mlir::RewritePatternSet &patterns);
void populateProductPatterns(mlir::RewritePatternSet &patterns);
void populateDilationPatterns(mlir::RewritePatternSet &patterns);
void populateElementwisePatterns(mlir::RewritePatternSet &patterns);
void populateWeightPatterns(mlir::RewritePatternSet &patterns);
void populatePadPatterns(mlir::RewritePatternSet &patterns);
void populateQuantizationMotion(mlir::RewritePatternSet &patterns);
void populateIntegerProducts(mlir::RewritePatternSet &patterns);

/// Whether only products and gathers that can read a weight in its stored form read this value, perhaps moved.
bool isStoredWeight(mlir::Value value);

/// Why a product with a quantised operand cannot be computed in integers; empty when it can, or when nothing is
/// quantised.
std::string whyNotInteger(mlir::Operation *product);

} // namespace ajour::simplify

#endif
