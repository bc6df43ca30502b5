//===- Simplify.h - passes over nn before dispatches ----------*- C++ -*-===//
//
// They make a function of nn operations cheaper without changing what it means. Unless a pass says
// otherwise, results stay bit for bit the same.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_CONVERSION_SIMPLIFY_H
#define AJOUR_CONVERSION_SIMPLIFY_H

#include "ajour/Dialect/NN/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ajour {

struct FoldOptions {
  /// Also fold dequantisations of constants that no product can read as they are stored; off while they still tell how a
  /// weight is quantised.
  bool foldDequantize = false;
  /// Also let a matrix product read a transposed operand, and products take what moves channels in front of them into
  /// their weights (which changes the order of sums); off while layouts are still to be chosen.
  bool foldIntoProducts = false;
};

/// `nn-fold`: constants are computed, common subexpressions and dead operations removed, identities and
/// chains of data movement combined. Exact.
std::unique_ptr<mlir::Pass> createFoldPass(const FoldOptions &options = {});

/// `nn-fold-affine`: multiplication and addition of constants per channel go into the filter and bias of
/// the convolution or matrix product beside them (batch normalisation), explicit padding into its
/// padding. Floating point results change by rounding only.
std::unique_ptr<mlir::Pass> createFoldAffinePass();

/// `nn-integer`: dequantise - compute - quantise becomes integer arithmetic, and quantisation moves through
/// data movement so that the stored tensors are the quantised ones. A product's result is within one step of the
/// floating point meaning; everything else is exact. A product that must stay in floating point although an
/// operand is quantised gets a remark that says why.
std::unique_ptr<mlir::Pass> createIntegerPass();

/// `nn-weights`: a dequantised 8-bit weight that floating point products or gathers read gets its parameters as
/// tensors and the fewest bits that hold it (nn.dequantize_grouped), and is stored so. Exact.
std::unique_ptr<mlir::Pass> createWeightsPass();

/// `nn-layout`: chooses for each layout-free operation the order of dimensions in which it is computed so
/// that the fewest bytes are transposed. Exact but for the order in which reductions over several axes add.
std::unique_ptr<mlir::Pass> createLayoutPass();

/// On an operation over pictures whose input and result stand in memory as [N, C, H, W]: a transpose of the input is
/// before it, one of the result behind it.
constexpr llvm::StringLiteral channelMajorAttr = "nn.channel_major";

/// `nn-channel-major`: convolutions of pictures that `wanted` names are to read and write [N, C, H, W]. Each gets the mark
/// and transposes around it; the operations between them are computed in that order too where fewer bytes are transposed
/// then, pools and depthwise convolutions with the mark. Without such a convolution nothing changes. Exact. It is the last
/// pass: folding would take the transposes for what they are.
std::unique_ptr<mlir::Pass> createChannelMajorPass(std::function<bool(nn::ConvOp)> wanted);

/// `nn-dead-channels`: channels that no weight of the product behind them reads are not computed, back to the product that makes them;
/// what pruned networks are full of. Exact, except that infinities and NaN in such a channel no longer reach a sum as NaN.
std::unique_ptr<mlir::Pass> createDeadChannelsPass();

/// `nn-attention`: products of activations around a softmax become nn.attention. Floating point results change by rounding only, and rows
/// whose scores are all -infinity are 0 instead of NaN.
std::unique_ptr<mlir::Pass> createAttentionPass();

/// `nn-matmul-shape`: batch dimensions that only the left operand has become rows. Exact.
std::unique_ptr<mlir::Pass> createMatmulShapePass();

/// `nn-recurrent`: a recurrence of one time step, or of some steps with large weights, becomes matrix products and
/// element-wise operations, which then take part in everything else. Floating point results change by rounding only.
std::unique_ptr<mlir::Pass> createRecurrentPass();

struct SimplifyOptions {
  /// Run only this many of simplifyStages(), to find the one that changes a result; -1: all.
  int stages = -1;
};

/// The names of the pipeline's stages, in order.
const std::vector<std::string> &simplifyStages();

/// Adds the passes above to a pass manager over a module, in order.
void buildSimplifyPipeline(mlir::OpPassManager &manager, const SimplifyOptions &options = {});

/// What data movement a function still pays for. A reshape never moves data: tensors are row-major.
struct LayoutReport {
  int64_t transposes = 0;       ///< transposes that move data, those at the border aside
  int64_t transposeBytes = 0;   ///< bytes that they write
  int64_t borderTransposes = 0; ///< transposes next to an input or output of the model (the user's layout)
  int64_t borderBytes = 0;
  int64_t reshapes = 0; ///< reshapes; they cost nothing by themselves
};
LayoutReport countLayoutOps(mlir::func::FuncOp function);

} // namespace ajour

#endif
