//===- LayoutOps.h - operations that only move data, counted ----*- C++ -*-===//
//
// What `compile --report` says of layouts: how much a model moves as it was imported, when each operation
// writes its result to memory, and what is left in the dispatches, with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_CONVERSION_LAYOUTOPS_H
#define AJOUR_CONVERSION_LAYOUTOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace ajour {

/// On a module: formDispatches makes each operation that moves data a dispatch of its own, as engines do that have a kernel
/// for each. For measuring what their elimination gains.
constexpr llvm::StringLiteral explicitLayoutsAttr = "exec.explicit_layouts";

/// One operation, or one dispatch, that only moves data.
struct LayoutOp {
  std::string kind;   ///< "transpose", "slice", "concat", ...
  mlir::Location loc; ///< of the user's nodes
  int64_t bytes = 0;  ///< that it writes; a dynamic size counts as nn::assumedSize
  bool border = false; ///< at an input or output of the model, whose order the user decides
  bool implied = false; ///< written by the importer around an operation whose dimensions the file orders otherwise
  int64_t step = -1;  ///< position of the dispatch
  std::string reason; ///< of what remains: why
};

/// What moves data in `main` of a module of nn operations. Reshapes are not among them: tensors are row-major, so
/// that one is another name for the same bytes.
std::vector<LayoutOp> findLayoutOps(mlir::func::FuncOp main);

/// The dispatches that only move data, after formDispatches.
std::vector<LayoutOp> findLayoutDispatches(mlir::ModuleOp module);

} // namespace ajour

#endif
