//===- Elementwise.cpp - types and checks of operations on elements ----------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }
static bool isFloat(Type type) { return isa<FloatType>(type); }
static bool isBool(Type type) { return type.isInteger(1); }

//===----------------------------------------------------------------------===//
// constant
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  if (getValue().getType() != getType())
    return emitOpError() << "C1: value of type " << getValue().getType() << " for result " << getType();
  if (!tensor(getResult()).hasStaticShape())
    return emitOpError() << "C2: a constant has a static shape";
  return success();
}

//===----------------------------------------------------------------------===//
// unary
//===----------------------------------------------------------------------===//

void UnaryOp::build(OpBuilder &b, OperationState &state, UnaryKind kind, Value input, float alpha, float beta) {
  build(b, state, UnaryKindAttr::get(b.getContext(), kind), input, b.getF32FloatAttr(alpha), b.getF32FloatAttr(beta));
}

LogicalResult UnaryOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  RankedTensorType type = tensor(adaptor.getInput());
  bool givesBool = adaptor.getKind() == UnaryKind::is_nan || adaptor.getKind() == UnaryKind::is_inf;
  types.push_back(givesBool ? withElementType(type, IntegerType::get(context, 1)) : type);
  return success();
}

LogicalResult UnaryOp::verify() {
  Type element = tensor(getInput()).getElementType();
  switch (getKind()) {
  case UnaryKind::neg:
  case UnaryKind::abs:
  case UnaryKind::sign:
  case UnaryKind::relu:
  case UnaryKind::square:
    return isBool(element) ? emitOpError() << "C1: a number is needed, found i1" : success();
  case UnaryKind::logical_not:
    return isBool(element) ? success() : emitOpError() << "C2: i1 is needed, found " << elementName(element);
  case UnaryKind::bitwise_not:
    return isFloat(element) ? emitOpError() << "C3: an integer is needed, found " << elementName(element) : success();
  default:
    return isFloat(element)
               ? success()
               : emitOpError() << "C1: a floating point operand is needed, found " << elementName(element);
  }
}

//===----------------------------------------------------------------------===//
// binary, compare, select
//===----------------------------------------------------------------------===//

static FailureOr<Dims> inferBroadcast(std::optional<Location> loc, StringRef op, RankedTensorType lhs,
                                      RankedTensorType rhs) {
  std::optional<Dims> dims = broadcastDims(getDims(lhs), getDims(rhs));
  if (!dims)
    return emitOptionalError(loc, op, ": C2: shapes do not broadcast: ", toString(lhs), " and ", toString(rhs));
  return *dims;
}

static LogicalResult checkSameElement(std::optional<Location> loc, StringRef op, RankedTensorType lhs,
                                      RankedTensorType rhs) {
  if (lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc, op, ": C1: element types differ: ", toString(lhs), " and ", toString(rhs));
  return success();
}

/// Fills in an operation of two operands that has its kind; where the types do not fit, the verifier speaks about `fallback`.
template <typename Op>
static void buildPair(OpBuilder &b, OperationState &state, Value lhs, Value rhs, Type fallback) {
  state.addOperands({lhs, rhs});
  SmallVector<Type> types;
  if (succeeded(Op::inferReturnTypes(b.getContext(), state.location, state.operands,
                                     state.attributes.getDictionary(b.getContext()), state.getRawProperties(), {}, types)))
    state.addTypes(types);
  else
    state.addTypes(fallback);
}

void BinaryOp::build(OpBuilder &b, OperationState &state, BinaryKind kind, Value lhs, Value rhs) {
  state.getOrAddProperties<Properties>().setKind(BinaryKindAttr::get(b.getContext(), kind));
  buildPair<BinaryOp>(b, state, lhs, rhs, lhs.getType());
}

LogicalResult BinaryOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType lhs = tensor(adaptor.getLhs()), rhs = tensor(adaptor.getRhs());
  if (failed(checkSameElement(loc, "nn.binary", lhs, rhs)))
    return failure();
  FailureOr<Dims> dims = inferBroadcast(loc, "nn.binary", lhs, rhs);
  if (failed(dims))
    return failure();
  types.push_back(makeTensor(*dims, lhs.getElementType()));
  return success();
}

void CompareOp::build(OpBuilder &b, OperationState &state, CompareKind kind, Value lhs, Value rhs) {
  state.getOrAddProperties<Properties>().setKind(CompareKindAttr::get(b.getContext(), kind));
  buildPair<CompareOp>(b, state, lhs, rhs, withElementType(tensor(lhs), b.getI1Type()));
}

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  RankedTensorType lhs = tensor(adaptor.getLhs()), rhs = tensor(adaptor.getRhs());
  if (failed(checkSameElement(loc, "nn.compare", lhs, rhs)))
    return failure();
  FailureOr<Dims> dims = inferBroadcast(loc, "nn.compare", lhs, rhs);
  if (failed(dims))
    return failure();
  types.push_back(makeTensor(*dims, IntegerType::get(context, 1)));
  return success();
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType lhs = tensor(adaptor.getLhs()), rhs = tensor(adaptor.getRhs());
  if (failed(checkSameElement(loc, "nn.select", lhs, rhs)))
    return failure();
  FailureOr<Dims> dims = inferBroadcast(loc, "nn.select", lhs, rhs);
  if (failed(dims))
    return failure();
  dims = inferBroadcast(loc, "nn.select", makeTensor(*dims, lhs.getElementType()), tensor(adaptor.getCondition()));
  if (failed(dims))
    return failure();
  types.push_back(makeTensor(*dims, lhs.getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// cast, clamp
//===----------------------------------------------------------------------===//

void CastOp::build(OpBuilder &b, OperationState &state, Value input, Type elementType) {
  build(b, state, withElementType(tensor(input), elementType), input);
}

OpFoldResult CastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

/// C1 of operations that keep the shape.
template <typename Op> static LogicalResult checkSameShape(Op op, const char *constraint) {
  RankedTensorType in = tensor(op.getInput()), out = tensor(op.getResult());
  if (getDims(in) != getDims(out))
    return op.emitOpError() << constraint << ": shapes differ: " << toString(in) << " and " << toString(out);
  return success();
}

LogicalResult CastOp::verify() { return checkSameShape(*this, "C1"); }

LogicalResult ClampOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getInput().getType());
  return success();
}

LogicalResult ClampOp::verify() {
  if (!(getLow().convertToDouble() <= getHigh().convertToDouble()))
    return emitOpError() << "C1: low " << getLow().convertToDouble() << " exceeds high "
                         << getHigh().convertToDouble();
  return success();
}

//===----------------------------------------------------------------------===//
// quantize, dequantize, requantize, lookup
//===----------------------------------------------------------------------===//

/// Checks an axis and that `count` is 1 or the size of that dimension.
static LogicalResult checkPerChannel(Operation *op, RankedTensorType type, int64_t axis, int64_t count,
                                     const char *constraint) {
  if (count == 1)
    return success();
  int64_t rank = type.getRank();
  int64_t position = axis < 0 ? axis + rank : axis;
  if (position < 0 || position >= rank)
    return op->emitOpError() << constraint << ": axis " << axis << " is outside " << toString(type);
  if (type.getDimSize(position) != count)
    return op->emitOpError() << constraint << ": " << count << " parameters for dimension " << position << " of "
                             << toString(type);
  return success();
}

static LogicalResult checkScales(Operation *op, ArrayRef<float> scales) {
  for (float scale : scales)
    if (!(scale > 0) || !std::isfinite(scale))
      return op->emitOpError() << "C3: scale " << scale << " is not positive and finite";
  return success();
}

static LogicalResult checkZeroPoints(Operation *op, ArrayRef<int32_t> zeroPoints, Type type) {
  if (cast<IntegerType>(type).getWidth() > 32)
    return success();
  auto [low, high] = integerRange(type);
  for (int32_t zeroPoint : zeroPoints)
    if (zeroPoint < low || zeroPoint > high)
      return op->emitOpError() << "C4: zero point " << zeroPoint << " is outside " << elementName(type);
  return success();
}

LogicalResult QuantizeOp::verify() {
  if (failed(checkSameShape(*this, "C1")))
    return failure();
  if (getScales().size() != getZeroPoints().size())
    return emitOpError() << "C2: " << getScales().size() << " scales and " << getZeroPoints().size() << " zero points";
  if (failed(checkPerChannel(*this, tensor(getResult()), getAxis(), getScales().size(), "C2")) ||
      failed(checkScales(*this, getScales())))
    return failure();
  return checkZeroPoints(*this, getZeroPoints(), tensor(getResult()).getElementType());
}

LogicalResult DequantizeOp::verify() {
  if (failed(checkSameShape(*this, "C1")))
    return failure();
  if (getScales().size() != getZeroPoints().size())
    return emitOpError() << "C2: " << getScales().size() << " scales and " << getZeroPoints().size() << " zero points";
  RankedTensorType type = tensor(getInput());
  if (failed(checkPerChannel(*this, type, getAxis(), getScales().size(), "C2")))
    return failure();
  return checkZeroPoints(*this, getZeroPoints(), type.getElementType());
}

LogicalResult RequantizeOp::verify() {
  if (failed(checkSameShape(*this, "C1")))
    return failure();
  if (getScales().has_value() == getMultipliers().has_value() ||
      getMultipliers().has_value() != getShifts().has_value())
    return emitOpError() << "C2: either scales or multipliers with shifts are needed";
  int64_t count = getScales() ? getScales()->size() : getMultipliers()->size();
  if (getMultipliers() && getShifts()->size() != getMultipliers()->size())
    return emitOpError() << "C2: " << getMultipliers()->size() << " multipliers and " << getShifts()->size()
                         << " shifts";
  if (failed(checkPerChannel(*this, tensor(getResult()), getAxis(), count, "C3")))
    return failure();
  auto [low, high] = integerRange(tensor(getResult()).getElementType());
  int64_t qmin = static_cast<int32_t>(getQmin()), qmax = static_cast<int32_t>(getQmax());
  if (qmin > qmax || qmin < low || qmax > high)
    return emitOpError() << "C4: limits [" << qmin << ", " << qmax << "] for "
                         << elementName(tensor(getResult()).getElementType());
  float divisor = getDivisor().convertToFloat();
  if (!(divisor > 0) || !std::isfinite(divisor))
    return emitOpError() << "C5: the divisor must be positive and finite, found " << divisor;
  if (divisor != 1 && !getScales())
    return emitOpError() << "C5: a divisor goes with scales, not with multipliers";
  return success();
}

LogicalResult LookupOp::verify() {
  Type element = tensor(getInput()).getElementType();
  bool interpolates = element.isSignlessInteger(16);
  if (!interpolates && cast<IntegerType>(element).getWidth() != 8)
    return emitOpError() << "C1: an 8-bit or i16 operand is needed, found " << toString(tensor(getInput()));
  RankedTensorType table = tensor(getTable());
  if (table.getShape() != ArrayRef<int64_t>{interpolates ? 513 : 256} ||
      table.getElementType() != tensor(getResult()).getElementType() || (interpolates && table.getElementType() != element))
    return emitOpError() << "C2: the table has type " << toString(table);
  return checkSameShape(*this, "C3");
}
