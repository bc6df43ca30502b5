//===- Relayout.h - operations computed in another order of dimensions -*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_SIMPLIFY_RELAYOUT_H
#define AJOUR_LIB_CONVERSION_SIMPLIFY_RELAYOUT_H

#include "Utils.h"

namespace ajour::simplify {

/// How one operation may be computed when its tensors are stored with permuted dimensions. A *layout* of a
/// value x is a permutation p: what is stored is transpose(x, p). A *label* of an operation is the permutation
/// from which the layouts of its operands and results follow.
class Relayout {
public:
  /// With `planes`, pools and depthwise convolutions may also be channel-major, and those that are marked must be.
  explicit Relayout(mlir::Operation *op, bool planes = false);

  /// Whether there is a choice.
  bool isFlexible() const { return kind != Kind::Fixed && kind != Kind::ChannelMajor; }
  /// The label to start from: the operation as it is written, where that is possible.
  Perm initialLabel() const;
  int64_t labelRank() const { return rank; }
  bool isFeasible(llvm::ArrayRef<int64_t> label) const;

  /// The layouts that a feasible label asks of an operand and gives to a result. Results may differ in rank where there is no choice.
  Perm operandLayout(unsigned operand, llvm::ArrayRef<int64_t> label) const;
  Perm resultLayout(unsigned result, llvm::ArrayRef<int64_t> label) const;

  /// A label under which an operand, or the results, have the given layout.
  std::optional<Perm> labelForOperand(unsigned operand, llvm::ArrayRef<int64_t> layout) const;
  std::optional<Perm> labelForResult(llvm::ArrayRef<int64_t> layout) const;

  /// Creates the operation under a label; `operands` are stored as operandLayout says.
  mlir::Operation *rebuild(mlir::OpBuilder &builder, llvm::ArrayRef<int64_t> label,
                           llvm::ArrayRef<mlir::Value> operands) const;

private:
  enum class Kind {
    Fixed,        ///< channels-last or row-major: the identity alone
    Same,         ///< operands marked in `carries` and results have the label's layout
    Broadcasting, ///< operands are aligned with the result at the right
    Dropping,     ///< the label is the first operand's layout; the axes in `dropped` are missing in the result
    Reshape,      ///< the label is the result's layout; dimensions that belong together stay together
    Planes,       ///< channels-last or channel-major: transposes stand around it
    ChannelMajor, ///< the latter alone
    Flatten,      ///< a reshape into the rows of products with constant weights, which are permuted instead
  };

  void classify();
  void classifyReshape(nn::ReshapeOp reshape);
  Perm throughGroups(llvm::ArrayRef<int64_t> layout, bool fromResult) const;
  bool keepsGroups(llvm::ArrayRef<int64_t> layout, bool ofResult) const;
  void permuteAttributes(mlir::Operation *clone, llvm::ArrayRef<int64_t> label) const;
  void permuteWeights(llvm::ArrayRef<int64_t> label) const;

  mlir::Operation *op;
  Kind kind = Kind::Fixed;
  int64_t rank = 0;
  unsigned carries = 1; ///< operands [0, carries) have the label's layout
  Perm dropped;
  llvm::SmallVector<ReshapeGroup> groups;
};

} // namespace ajour::simplify

#endif
