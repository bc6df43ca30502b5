//===- Linear.cpp - types and checks of matrix products -----------------------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "Accumulator.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::nn {

FailureOr<Type> inferAccumulator(std::optional<Location> loc, StringRef op, Type lhs, Type rhs, Type bias) {
  MLIRContext *context = lhs.getContext();
  if (isa<FloatType>(lhs)) {
    if (lhs != rhs || (bias && bias != lhs))
      return emitOptionalError(loc, op, ": element types differ: ", elementName(lhs), ", ", elementName(rhs));
    return lhs;
  }
  unsigned width = cast<IntegerType>(lhs).getWidth(), rhsWidth = cast<IntegerType>(rhs).getWidth();
  if (isa<FloatType>(rhs) || width == 1 || width > 32 || (rhsWidth != 8 && lhs != rhs))
    return emitOptionalError(loc, op, ": unsupported element types ", elementName(lhs), " and ", elementName(rhs));
  Type acc = IntegerType::get(context, width == 16 ? 64 : 32);
  if (bias && bias != acc && !bias.isSignlessInteger(32))
    return emitOptionalError(loc, op, ": a bias of ", elementName(bias), " for an accumulator of ", elementName(acc));
  return acc;
}

} // namespace ajour::nn

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  if (lhs.getRank() < 2 || rhs.getRank() < 2)
    return emitOptionalError(loc, "nn.matmul: C1: ranks of at least 2 are needed, found ", toString(lhs), " and ",
                             toString(rhs));
  Dims a = getDims(lhs), b = getDims(rhs);
  if (adaptor.getTransposeLhs())
    std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (adaptor.getTransposeRhs())
    std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2])
    return emitOptionalError(loc, "nn.matmul: C2: inner dimensions differ: ", toString(lhs), " and ", toString(rhs));
  std::optional<Dims> dims = broadcastDims(ArrayRef(a).drop_back(2), ArrayRef(b).drop_back(2));
  if (!dims)
    return emitOptionalError(loc, "nn.matmul: batch dimensions do not broadcast: ", toString(lhs), " and ",
                             toString(rhs));
  AffineExpr n = b.back();
  dims->push_back(a[a.size() - 2]);
  dims->push_back(n);
  Type biasElement;
  if (Value bias = adaptor.getBias()) {
    auto type = cast<RankedTensorType>(bias.getType());
    biasElement = type.getElementType();
    if (type.getRank() != 1 || getDims(type)[0] != n)
      return emitOptionalError(loc, "nn.matmul: C3: bias ", toString(type), " for N = ", toString({n}));
  }
  size_t zeroPoints = adaptor.getRhsZeroPoints().size();
  if (zeroPoints > 1 && getConstant(n) != int64_t(zeroPoints))
    return emitOptionalError(loc, "nn.matmul: C4: ", zeroPoints, " zero points for N = ", toString({n}));
  if (int64_t group = adaptor.getLhsGroup(); group || adaptor.getLhsHalfScales())
    if (group < 1 || !lhs.getElementType().isF32() || adaptor.getTransposeLhs())
      return emitOptionalError(loc, "nn.matmul: C5: groups of ", group, " of ", adaptor.getTransposeLhs() ? "a transposed " : "", toString(lhs));
  FailureOr<Type> acc =
      inferAccumulator(loc, "nn.matmul", lhs.getElementType(), rhs.getElementType(), biasElement);
  if (failed(acc))
    return failure();
  types.push_back(makeTensor(*dims, *acc));
  return success();
}

LogicalResult ExpertMatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType()), rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  auto experts = cast<RankedTensorType>(adaptor.getExperts().getType());
  if (lhs.getRank() != 3 || rhs.getRank() != 3 || experts.getRank() != 2 || !isa<FloatType>(lhs.getElementType()) ||
      lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc, "nn.expert_matmul: C1: factors [T, S, K] and [E, N, K] of one floating point type and experts [T, S] are needed, found ",
                             toString(lhs), ", ", toString(rhs), " and ", toString(experts));
  Dims a = getDims(lhs), b = getDims(rhs), chosen = getDims(experts);
  if (a[2] != b[2])
    return emitOptionalError(loc, "nn.expert_matmul: C2: inner dimensions differ: ", toString(lhs), " and ", toString(rhs));
  if (a[0] != chosen[0] || (a[1] != chosen[1] && getConstant(a[1]) != 1))
    return emitOptionalError(loc, "nn.expert_matmul: C3: rows ", toString(lhs), " for experts ", toString(experts));
  types.push_back(makeTensor({chosen[0], chosen[1], b[1]}, lhs.getElementType()));
  return success();
}
