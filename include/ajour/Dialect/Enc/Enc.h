//===- Enc.h - the enc dialect ---------------------------------*- C++ -*-===//
#ifndef AJOUR_DIALECT_ENC_ENC_H
#define AJOUR_DIALECT_ENC_ENC_H

#include "ajour/Encoding/Encoding.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"

#include "ajour/Dialect/Enc/EncDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ajour/Dialect/Enc/EncAttrs.h.inc"

namespace ajour::enc {

/// On a product: a WeightAttr.
inline constexpr llvm::StringLiteral weightAttrName = "enc.weight";

/// On a module: a dictionary from the names of the user's nodes to dictionaries {structure = "...", weight = "...", PARAMETER =
/// array<i64>...}: what the model says of a node's weights, `weight` being the name that it gives them.
inline constexpr llvm::StringLiteral declaredAttrName = "enc.declared";

/// Parameters as a dictionary of integer lists, and back.
mlir::DictionaryAttr makeParameters(mlir::MLIRContext *context, llvm::ArrayRef<encoding::Parameter> parameters);
std::vector<encoding::Parameter> readParameters(mlir::DictionaryAttr dictionary);

} // namespace ajour::enc

#endif
