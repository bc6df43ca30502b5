//===- NNDialect.cpp - registration, attributes -----------------------------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/Enc/Enc.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ajour::nn;

#include "ajour/Dialect/NN/NNDialect.cpp.inc"
#include "ajour/Dialect/NN/NNEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ajour/Dialect/NN/NNAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "ajour/Dialect/NN/NNOps.cpp.inc"

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ajour/Dialect/NN/NNAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ajour/Dialect/NN/NNOps.cpp.inc"
      >();
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  AffineMap map = getMap();
  if (map.getNumResults() != shape.size() || map.getNumDims() != 0)
    return emitError() << "C1: #nn.dims has " << map.getNumResults() << " expressions for " << shape.size()
                       << " dimensions";
  for (auto [size, expr] : llvm::zip_equal(shape, map.getResults())) {
    std::optional<int64_t> constant = getConstant(expr);
    if (constant ? *constant != size : !ShapedType::isDynamic(size))
      return emitError() << "C2: dimension " << size << " does not fit the expression "
                         << toString(ArrayRef<AffineExpr>(expr));
  }
  return success();
}
