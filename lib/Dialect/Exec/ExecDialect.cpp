//===- ExecDialect.cpp - registration and checks -------------------------------===//
#include "ajour/Dialect/Exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace ajour::exec;

#include "ajour/Dialect/Exec/ExecDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ajour/Dialect/Exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ajour/Dialect/Exec/ExecOps.cpp.inc"
      >();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "C1: no function " << getCalleeAttr();
  if (callee.getFunctionType() != FunctionType::get(getContext(), getOperandTypes(), getResultTypes()))
    return emitOpError() << "C1: types differ from those of " << getCalleeAttr();
  return success();
}
