//===- Interpreter.h - what nn operations mean ----------------*- C++ -*-===//
//
// Slow evaluation that reads like each operation's definition. Everything else is compared with it, and
// constants are folded by it.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_REFERENCE_INTERPRETER_H
#define AJOUR_REFERENCE_INTERPRETER_H

#include "ajour/Reference/HostTensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ajour {

/// A constant attribute as a tensor, and back.
HostTensor toHostTensor(mlir::ElementsAttr attr);
mlir::ElementsAttr toAttribute(const HostTensor &tensor, mlir::MLIRContext *context);

/// Evaluates one nn operation. `symbols` holds the values of the module's symbolic dimensions. Fails
/// with a diagnostic at the operation when the operands' values are not acceptable.
mlir::FailureOr<std::vector<HostTensor>> evaluate(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> operands,
                                                  llvm::ArrayRef<int64_t> symbols = {});

/// Called with every value that an interpreted function computes.
using ValueObserver = llvm::function_ref<void(mlir::Value, const HostTensor &)>;

/// Interprets a function of nn and exec operations (dispatches are followed into their callees; the
/// observer then sees the dispatch's results, not the callee's). Intermediate tensors are freed after
/// their last use. `symbols` as above.
mlir::FailureOr<std::vector<HostTensor>> interpret(mlir::func::FuncOp function, llvm::ArrayRef<HostTensor> inputs,
                                                   llvm::ArrayRef<int64_t> symbols = {},
                                                   ValueObserver observer = nullptr);

/// What folding may still cost. A few bytes of a model can ask for constants of any size and for any amount of
/// arithmetic; and since constants stay in memory as long as their context, many small ones count like a large one.
struct FoldBudget {
  int64_t bytes; ///< of constants made
  int64_t steps; ///< about one for each element read, written or multiplied

  /// For a model that brings this many bytes of constants. Real ones transpose or widen each a few times.
  static FoldBudget forBytes(int64_t bytes) {
    return {(int64_t(32) << 20) + 8 * bytes, (int64_t(1) << 28) + 64 * bytes};
  }
};

/// When every operand of `op` is an nn.constant (or it has none) and its results are static and have at
/// most `maxBytes` bytes: evaluates it, creates the constants before it with its location, replaces its uses
/// and erases it. Returns whether it did; `results`, if given, receives the values that stand now. With a budget,
/// an operation that would exceed it stays, and others are charged to it.
bool foldConstants(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> *results = nullptr,
                   int64_t maxBytes = int64_t(1) << 32, FoldBudget *budget = nullptr);

} // namespace ajour

#endif
