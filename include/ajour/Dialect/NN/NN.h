//===- NN.h - the nn dialect -----------------------------------*- C++ -*-===//
//
// What a model says, without layouts. See NNDialect.td for the rules that all operations share and
// docs/NN.md for the reference made from it.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_DIALECT_NN_NN_H
#define AJOUR_DIALECT_NN_NN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ajour/Dialect/NN/NNDialect.h.inc"
#include "ajour/Dialect/NN/NNEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ajour/Dialect/NN/NNAttrs.h.inc"

#define GET_OP_CLASSES
#include "ajour/Dialect/NN/NNOps.h.inc"

#endif
