//===- Norm.cpp - types and checks of reductions and normalisations ----------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

/// C1: an axis in [0, rank).
static LogicalResult checkAxis(std::optional<Location> loc, StringRef op, RankedTensorType type, int64_t axis) {
  if (axis < 0 || axis >= type.getRank())
    return emitOptionalError(loc, op, ": C1: axis ", axis, " is outside ", toString(type));
  return success();
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  Dims in = getDims(input), dims;
  ArrayRef<int64_t> axes = adaptor.getAxes();
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] < 0 || axes[i] >= input.getRank() || (i && axes[i] <= axes[i - 1]))
      return emitOptionalError(loc, "nn.reduce: C1: axes must ascend in [0, ", input.getRank(), ")");
  for (size_t i = 0; i < in.size(); ++i) {
    if (!llvm::is_contained(axes, int64_t(i)))
      dims.push_back(in[i]);
    else if (adaptor.getKeepDims())
      dims.push_back(getAffineConstantExpr(1, context));
  }
  types.push_back(makeTensor(dims, input.getElementType()));
  return success();
}

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, "nn.arg_reduce", input, axis)))
    return failure();
  Dims dims = getDims(input);
  if (getConstant(dims[axis]) == 0)
    return emitOptionalError(loc, "nn.arg_reduce: C2: axis ", axis, " of ", toString(input), " is empty");
  if (adaptor.getKeepDims())
    dims[axis] = getAffineConstantExpr(1, context);
  else
    dims.erase(dims.begin() + axis);
  types.push_back(makeTensor(dims, IntegerType::get(context, 64)));
  return success();
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  types.push_back(input);
  return checkAxis(loc, "nn.softmax", input, adaptor.getAxis());
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  if (failed(checkAxis(loc, "nn.layer_norm", input, adaptor.getAxis())))
    return failure();
  Dims dims = getDims(input);
  for (Value operand : {adaptor.getScale(), adaptor.getBias()}) {
    if (!operand)
      continue;
    std::optional<Dims> joined = broadcastDims(dims, getDims(operand));
    if (!joined || *joined != dims)
      return emitOptionalError(loc, "nn.layer_norm: C2: ", toString(cast<RankedTensorType>(operand.getType())),
                               " does not broadcast to ", toString(input));
  }
  types.push_back(input);
  return success();
}

LogicalResult CumsumOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  types.push_back(input);
  return checkAxis(loc, "nn.cumsum", input, adaptor.getAxis());
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t axis = adaptor.getAxis(), k = adaptor.getK();
  if (failed(checkAxis(loc, "nn.top_k", input, axis)))
    return failure();
  Dims dims = getDims(input);
  std::optional<int64_t> size = getConstant(dims[axis]);
  if (k < 0 || (size && k > *size))
    return emitOptionalError(loc, "nn.top_k: C2: k = ", k, " along axis ", axis, " of ", toString(input));
  dims[axis] = getAffineConstantExpr(k, context);
  types.push_back(makeTensor(dims, input.getElementType()));
  types.push_back(makeTensor(dims, IntegerType::get(context, 64)));
  return success();
}
