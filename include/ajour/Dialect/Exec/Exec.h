//===- Exec.h - the exec dialect ------------------------------*- C++ -*-===//
#ifndef AJOUR_DIALECT_EXEC_EXEC_H
#define AJOUR_DIALECT_EXEC_EXEC_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ajour/Dialect/Exec/ExecDialect.h.inc"

#define GET_OP_CLASSES
#include "ajour/Dialect/Exec/ExecOps.h.inc"

namespace ajour::exec {

/// The value whose buffer `value` is, behind any number of exec.alias.
inline mlir::Value resolveAlias(mlir::Value value) {
  while (auto alias = value.getDefiningOp<AliasOp>())
    value = alias.getInput();
  return value;
}

} // namespace ajour::exec

#endif
