//===- Factors.h - index spaces without divisions ----------------*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_LOOPS_FACTORS_H
#define AJOUR_LIB_CONVERSION_LOOPS_FACTORS_H

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include <deque>

namespace ajour::loops {

/// Takes the dimensions of an index space apart so that the reshapes between it and other spaces only regroup
/// factors. A loop nest over the factors then needs neither quotients nor remainders: the strength reduction of
/// "SmartMem" (ASPLOS 2024), done before there is code. A space of [8, 6] that a reshape reads as [2, 4, 3, 2]
/// has the factors (2, 4), (3, 2).
class Factors {
public:
  explicit Factors(llvm::ArrayRef<mlir::AffineExpr> dims);

  /// Follows what `value`, whose index space this is, is computed from.
  void followOperands(mlir::Value value);
  /// Follows operations that only reorder, from this space on, each the reader of the one before.
  void followReaders(llvm::ArrayRef<mlir::Operation *> chain);

  /// The factors of a dimension, outermost first; at least one.
  nn::Dims of(size_t dim) const;
  /// Whether neighbours in the space that followReaders came to are neighbours in this dimension; also when it could
  /// not come to the end.
  bool endsWith(size_t dim) const;

private:
  struct Factor {
    mlir::AffineExpr size;
    Factor *outer = nullptr, *inner = nullptr;
  };
  using List = llvm::SmallVector<Factor *, 2>;
  using Space = llvm::SmallVector<List, 6>;

  Factor *make(mlir::AffineExpr size);
  static void collect(Factor *factor, List &leaves);
  static List leaves(const List &list);
  Space fresh(llvm::ArrayRef<mlir::AffineExpr> dims);
  /// The same elements in other dimensions, or nothing when their boundaries do not fit.
  std::optional<Space> regroup(const Space &space, llvm::ArrayRef<mlir::AffineExpr> dims);
  void follow(mlir::Value value, const Space &space);

  std::deque<Factor> storage;
  Space own, reached;
};

} // namespace ajour::loops

#endif
