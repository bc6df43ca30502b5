//===- StateSpace.cpp - types and checks of state-space operations ------------===//
#include "OperandShape.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace {

/// What the operations' checks share: messages with the operation's name.
class Check {
public:
  Check(std::optional<Location> loc, StringRef op, ValueRange operands)
      : loc(loc), op(op), operands(operands), element(cast<RankedTensorType>(operands[0].getType()).getElementType()) {}

  LogicalResult elementTypes() const {
    for (Value operand : operands)
      if (Type other = cast<RankedTensorType>(operand.getType()).getElementType(); other != element)
        return emitOptionalError(loc, op, ": C2: element types differ: ", elementName(element), ", ", elementName(other));
    return success();
  }
  LogicalResult shape(StringRef name, Value operand, ArrayRef<AffineExpr> dims) const {
    return checkOperandShape(loc, op, name, operand, dims);
  }
  AffineExpr dim(int64_t size) const { return getAffineConstantExpr(size, element.getContext()); }
  Type tensor(ArrayRef<AffineExpr> dims) const { return makeTensor(dims, element); }

  std::optional<Location> loc;
  StringRef op;
  ValueRange operands;
  Type element;
};

std::string text(Value value) { return toString(cast<RankedTensorType>(value.getType())); }

} // namespace

LogicalResult CausalConvOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  Check check(loc, "nn.causal_conv", adaptor.getOperands());
  auto filter = cast<RankedTensorType>(adaptor.getFilter().getType());
  Dims input = getDims(adaptor.getInput());
  if (input.size() != 2 || filter.getRank() != 2 || !filter.hasStaticShape() || filter.getDimSize(0) < 2 ||
      input[1] != check.dim(filter.getDimSize(1)))
    return emitOptionalError(loc, check.op, ": C1: an input [T, C] and a filter [K, C] with K at least 2 are needed, found ",
                             text(adaptor.getInput()), " and ", text(adaptor.getFilter()));
  Dims state = {check.dim(filter.getDimSize(0) - 1), input[1]};
  if (failed(check.shape("bias", adaptor.getBias(), {input[1]})) || failed(check.shape("initial", adaptor.getInitial(), state)) ||
      failed(check.elementTypes()))
    return failure();
  types.append({check.tensor(input), check.tensor(state)});
  return success();
}

LogicalResult SelectiveScanOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  Check check(loc, "nn.selective_scan", adaptor.getOperands());
  Dims x = getDims(adaptor.getX()), a = getDims(adaptor.getA()), b = getDims(adaptor.getB());
  std::optional<int64_t> heads = x.size() == 3 ? getConstant(x[1]) : std::nullopt;
  std::optional<int64_t> groups = b.size() == 3 ? getConstant(b[1]) : std::nullopt;
  if (!heads || !groups || a.size() != 2 || !getConstant(x[2]) || !getConstant(b[2]) || *groups < 1 || *heads % *groups != 0)
    return emitOptionalError(loc, check.op, ": C1: x [T, H, P], a [N, H] and b [T, G, N] with H a multiple of G are needed, found ",
                             text(adaptor.getX()), ", ", text(adaptor.getA()), " and ", text(adaptor.getB()));
  Dims state = {b[2], x[1], x[2]};
  // One decay of all states, or one of each.
  AffineExpr decays = a[0] == check.dim(1) ? a[0] : b[2];
  if (failed(check.shape("delta", adaptor.getDelta(), {x[0], x[1]})) || failed(check.shape("a", adaptor.getA(), {decays, x[1]})) ||
      failed(check.shape("b", adaptor.getB(), {x[0], b[1], b[2]})) || failed(check.shape("c", adaptor.getC(), b)) ||
      failed(check.shape("delta_bias", adaptor.getDeltaBias(), {x[1]})) || failed(check.shape("skip", adaptor.getSkip(), {x[1]})) ||
      failed(check.shape("gate", adaptor.getGate(), x)) || failed(check.shape("initial", adaptor.getInitial(), state)) ||
      failed(check.elementTypes()))
    return failure();
  APFloat low = adaptor.getDeltaMin(), high = adaptor.getDeltaMax();
  if (low.isNaN() || high.isNaN() || low > high)
    return emitOptionalError(loc, check.op, ": C3: delta_min ", low.convertToDouble(), " is more than delta_max ", high.convertToDouble());
  types.append({check.tensor(x), check.tensor(state)});
  return success();
}
