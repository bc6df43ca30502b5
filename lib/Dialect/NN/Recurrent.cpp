//===- Recurrent.cpp - types and checks of recurrences ------------------------===//
#include "OperandShape.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace {

/// The checks that the cells share. `gates` is how many times H the input has in its last dimension.
class CellCheck {
public:
  template <typename Adaptor>
  CellCheck(std::optional<Location> loc, StringRef op, Adaptor adaptor, int64_t gates)
      : loc(loc), op(op), input(cast<RankedTensorType>(adaptor.getInput().getType())),
        recurrent(cast<RankedTensorType>(adaptor.getRecurrent().getType())), gates(gates) {}

  std::optional<Location> loc;
  StringRef op;
  RankedTensorType input, recurrent;
  int64_t gates, hidden = 0, state = 0;
  AffineExpr batch;

  LogicalResult run(ValueRange operands, Value lengths, size_t activations, size_t wanted, size_t alphas, size_t betas) {
    if (input.getRank() != 3 || recurrent.getRank() != 2 || !recurrent.hasStaticShape() ||
        recurrent.getDimSize(0) % gates != 0 || recurrent.getDimSize(0) != input.getDimSize(2))
      return emitOptionalError(loc, op, ": C1: an input [T, B, ", gates, " H] and recurrent weights [", gates,
                               " H, R] are needed, found ", toString(input), " and ", toString(recurrent));
    hidden = recurrent.getDimSize(0) / gates;
    state = recurrent.getDimSize(1);
    batch = getDims(input)[1];
    for (Value operand : operands) {
      Type element = cast<RankedTensorType>(operand.getType()).getElementType();
      if (operand != lengths && element != input.getElementType())
        return emitOptionalError(loc, op, ": C2: element types differ: ", elementName(input.getElementType()), ", ",
                                 elementName(element));
    }
    if (activations != wanted || (alphas && alphas != wanted) || (betas && betas != wanted))
      return emitOptionalError(loc, op, ": C3: ", wanted, " activations with none or as many alphas and betas are needed, found ",
                               activations, ", ", alphas, " and ", betas);
    if (lengths && getDims(lengths) != Dims{batch})
      return emitOptionalError(loc, op, ": C4: lengths must be [B], found ",
                               toString(cast<RankedTensorType>(lengths.getType())));
    return success();
  }

  LogicalResult shape(StringRef name, Value operand, ArrayRef<AffineExpr> dims) const {
    return checkOperandShape(loc, op, name, operand, dims);
  }
  AffineExpr dim(int64_t size) const { return getAffineConstantExpr(size, input.getContext()); }
  Type sequence() const { return makeTensor({getDims(input)[0], batch, dim(state)}, input.getElementType()); }
  Type step(int64_t size) const { return makeTensor({batch, dim(size)}, input.getElementType()); }
};

template <typename Adaptor> LogicalResult checkCell(CellCheck &check, Adaptor adaptor, size_t activations) {
  return check.run(adaptor.getOperands(), adaptor.getLengths(), adaptor.getActivations().size(), activations,
                   adaptor.getAlphas().size(), adaptor.getBetas().size());
}

} // namespace

LogicalResult RnnOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  CellCheck check(loc, "nn.rnn", adaptor, 1);
  if (failed(checkCell(check, adaptor, 1)))
    return failure();
  AffineExpr hidden = check.dim(check.hidden);
  if (failed(check.shape("recurrent", adaptor.getRecurrent(), {hidden, hidden})) ||
      failed(check.shape("initial", adaptor.getInitial(), {check.batch, hidden})))
    return failure();
  types.append({check.sequence(), check.step(check.hidden)});
  return success();
}

LogicalResult GruOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  CellCheck check(loc, "nn.gru", adaptor, 3);
  if (failed(checkCell(check, adaptor, 2)))
    return failure();
  AffineExpr hidden = check.dim(check.hidden);
  if (failed(check.shape("recurrent", adaptor.getRecurrent(), {hidden * 3, hidden})) ||
      failed(check.shape("candidate_bias", adaptor.getCandidateBias(), {hidden})) ||
      failed(check.shape("initial", adaptor.getInitial(), {check.batch, hidden})))
    return failure();
  types.append({check.sequence(), check.step(check.hidden)});
  return success();
}

LogicalResult LstmOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  CellCheck check(loc, "nn.lstm", adaptor, 4);
  if (failed(checkCell(check, adaptor, 3)))
    return failure();
  AffineExpr hidden = check.dim(check.hidden), state = check.dim(check.state);
  if (failed(check.shape("recurrent", adaptor.getRecurrent(), {hidden * 4, adaptor.getProjection() ? state : hidden})) ||
      failed(check.shape("peephole", adaptor.getPeephole(), {check.dim(3), hidden})) ||
      failed(check.shape("norm", adaptor.getNorm(), {check.dim(4), hidden})) ||
      failed(check.shape("norm_bias", adaptor.getNormBias(), {check.dim(4), hidden})) ||
      failed(check.shape("projection", adaptor.getProjection(), {state, hidden})) ||
      failed(check.shape("projection_bias", adaptor.getProjectionBias(), {state})) ||
      failed(check.shape("initial", adaptor.getInitial(), {check.batch, state})) ||
      failed(check.shape("initial_cell", adaptor.getInitialCell(), {check.batch, hidden})))
    return failure();
  types.append({check.sequence(), check.step(check.state), check.step(check.hidden)});
  return success();
}
