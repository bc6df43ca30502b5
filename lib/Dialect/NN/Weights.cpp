//===- Weights.cpp - checks of weights stored in few bits ---------------------===//
#include "ajour/Dialect/NN/Weights.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Widened constants of fewer elements are not worth keeping.
static constexpr int64_t smallConstant = 1024;

bool ajour::nn::isCodedParameter(Operation *op, Value operand, function_ref<bool(Value)> isConstant) {
  auto codes = operand.getDefiningOp<DequantizeGroupedOp>();
  return codes && isa<DequantizeGroupedOp>(op) && operand != op->getOperand(0) && llvm::all_of(codes->getOperands(), isConstant);
}

bool ajour::nn::isCodedParameter(Operation *op, Value operand) {
  return isCodedParameter(op, operand, [](Value part) { return bool(getConstantValue(part)); });
}

bool ajour::nn::isStoredForm(Operation *op) {
  if (!isa<DequantizeOp, DequantizeGroupedOp, DequantizeCodebookOp, CastOp>(op))
    return false;
  for (Value operand : op->getOperands())
    if (!getConstantValue(operand) && !isCodedParameter(op, operand))
      return false;
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return true;
  Type from = tensor(cast.getInput()).getElementType(), to = tensor(cast.getResult()).getElementType();
  return (from.isF16() || from.isBF16()) && to.isF32() && tensor(cast.getInput()).getNumElements() >= smallConstant;
}

/// C1 and C2, which both operations share.
static LogicalResult checkOperand(Operation *op, int64_t axis, int64_t group) {
  RankedTensorType in = tensor(op->getOperand(0)), out = tensor(op->getResult(0));
  if (!in.hasStaticShape() || in.getShape() != out.getShape())
    return op->emitOpError() << "C1: static and equal shapes are needed, found " << toString(in) << " and "
                             << toString(out);
  if (axis < 0 || axis >= in.getRank() || group < 1)
    return op->emitOpError() << "C2: groups of " << group << " along axis " << axis << " of " << toString(in);
  return success();
}

/// C3: parameters in groups along an axis.
static LogicalResult checkGroups(Operation *op, RankedTensorType parameters, int64_t axis, int64_t group) {
  RankedTensorType in = tensor(op->getOperand(0));
  bool fits = parameters.getRank() == in.getRank();
  for (int64_t d = 0; fits && d < in.getRank(); ++d) {
    int64_t size = in.getDimSize(d), found = parameters.getDimSize(d);
    fits = d == axis ? found == int64_t(llvm::divideCeil(size, group)) : found == 1 || found == size;
  }
  if (!fits)
    return op->emitOpError() << "C3: scales " << toString(parameters) << " for groups of " << group << " along axis "
                             << axis << " of " << toString(in);
  return success();
}

LogicalResult DequantizeGroupedOp::verify() {
  int64_t axis = getAxis(), group = getGroup(), bits = getBits();
  if (failed(checkOperand(*this, axis, group)) || failed(checkGroups(*this, tensor(getScales()), axis, group)))
    return failure();
  if (Value zeroPoints = getZeroPoints()) {
    RankedTensorType type = tensor(zeroPoints);
    Type element = type.getElementType();
    if (type.getShape() != tensor(getScales()).getShape() ||
        (element != tensor(getInput()).getElementType() && element != tensor(getScales()).getElementType()))
      return emitOpError() << "C4: zero points " << toString(type) << " for scales " << toString(tensor(getScales()));
  }
  if (bits < 1 || bits > 8)
    return emitOpError() << "C5: elements of " << bits << " bits";
  if (getOffsets() && (!getZeroPoints() || !isa<FloatType>(tensor(getZeroPoints()).getElementType())))
    return emitOpError() << "C6: offsets are floating point numbers, found "
                         << (getZeroPoints() ? toString(tensor(getZeroPoints())) : "none");
  return success();
}

LogicalResult DequantizeCodebookOp::verify() {
  int64_t axis = getAxis(), group = getGroup();
  RankedTensorType in = tensor(getInput()), table = tensor(getTable());
  if (failed(checkOperand(*this, axis, group)) ||
      (getScales() && failed(checkGroups(*this, tensor(getScales()), axis, group))))
    return failure();
  bool fits = table.getRank() == 1 || table.getRank() == in.getRank() + 1;
  for (int64_t d = 0; fits && d + 1 < table.getRank(); ++d)
    fits = table.getDimSize(d) == 1 || table.getDimSize(d) == in.getDimSize(d);
  if (!fits)
    return emitOpError() << "C4: a table " << toString(table) << " for " << toString(in);
  if (int64_t entries = table.getShape().back(); entries < 1 || entries > 256)
    return emitOpError() << "C5: " << entries << " entries";
  return success();
}
