//===- Conv.cpp - types and checks of convolutions, pooling, resampling ------===//
#include "Accumulator.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace {

/// The window of a spatial operation: one value for each spatial dimension.
struct Window {
  ArrayRef<int64_t> strides, dilations, padsLow, padsHigh;
};

/// Strides, dilations, paddings and windows up to this leave room for sums and products of two in 64 bits.
constexpr int64_t mostInWindow = int64_t(1) << 31;

bool isOutside(int64_t value, int64_t least) { return value < least || value > mostInWindow; }

/// C1 and C3: ranks, and one sensible value for each spatial dimension.
LogicalResult checkWindow(std::optional<Location> loc, StringRef op, RankedTensorType input, const Window &window) {
  if (input.getRank() < 3 || input.getRank() > 5)
    return emitOptionalError(loc, op, ": C1: rank 3 to 5 is needed, found ", toString(input));
  size_t spatial = input.getRank() - 2;
  if (window.strides.size() != spatial || window.dilations.size() != spatial || window.padsLow.size() != spatial ||
      window.padsHigh.size() != spatial)
    return emitOptionalError(loc, op, ": C3: one stride, dilation, low and high padding is needed for each of ",
                             spatial, " spatial dimensions");
  for (size_t i = 0; i < spatial; ++i)
    if (isOutside(window.strides[i], 1) || isOutside(window.dilations[i], 1) || isOutside(window.padsLow[i], 0) ||
        isOutside(window.padsHigh[i], 0))
      return emitOptionalError(loc, op, ": C3: stride ", window.strides[i], ", dilation ", window.dilations[i],
                               ", padding ", window.padsLow[i], " and ", window.padsHigh[i]);
  return success();
}

/// The spatial size of a windowed result; C4 is checked where the size is static.
FailureOr<AffineExpr> windowedSize(std::optional<Location> loc, StringRef op, AffineExpr in, int64_t size,
                                   const Window &window, size_t i, bool ceilMode) {
  if (isOutside(size, 1))
    return emitOptionalError(loc, op, ": C3: window size ", size);
  int64_t extent = window.dilations[i] * (size - 1) + 1;
  AffineExpr room = in + (window.padsLow[i] + window.padsHigh[i] - extent);
  std::optional<int64_t> known = getConstant(room);
  if (known && *known < 0)
    return emitOptionalError(loc, op, ": C4: a window of ", extent, " exceeds the padded input of ", *known + extent);
  if (!ceilMode)
    return room.floorDiv(window.strides[i]) + 1;
  if (!known)
    return emitOptionalError(loc, op, ": ceil_mode needs a static spatial size");
  int64_t out = llvm::divideCeil(*known, window.strides[i]) + 1;
  if ((out - 1) * window.strides[i] >= *getConstant(in) + window.padsLow[i])
    --out;
  return getAffineConstantExpr(out, in.getContext());
}

template <typename Adaptor> Window windowOf(Adaptor adaptor) {
  return {adaptor.getStrides(), adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh()};
}

/// The checks that both convolutions share (C1 to C3, C5) and the result's element type.
template <typename Adaptor>
FailureOr<Type> checkConv(std::optional<Location> loc, StringRef op, Adaptor adaptor) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto filter = cast<RankedTensorType>(adaptor.getFilter().getType());
  if (failed(checkWindow(loc, op, input, windowOf(adaptor))))
    return failure();
  if (filter.getRank() != input.getRank() || !filter.hasStaticShape())
    return emitOptionalError(loc, op, ": C1: filter ", toString(filter), " for input ", toString(input));
  std::optional<int64_t> channels = getConstant(getDims(input).back());
  int64_t groups = adaptor.getGroups(), outputs = filter.getDimSize(0);
  if (!channels || groups < 1 || *channels % groups || outputs % groups ||
      filter.getShape().back() != *channels / groups)
    return emitOptionalError(loc, op, ": C2: ", groups, " groups for input ", toString(input), " and filter ",
                             toString(filter));
  for (int64_t size : filter.getShape().drop_front().drop_back())
    if (size < 1)
      return emitOptionalError(loc, op, ": C4: empty window in filter ", toString(filter));
  Type biasElement;
  if (Value bias = adaptor.getBias()) {
    auto type = cast<RankedTensorType>(bias.getType());
    biasElement = type.getElementType();
    if (type.getShape() != ArrayRef<int64_t>{outputs})
      return emitOptionalError(loc, op, ": C5: bias ", toString(type), " for ", outputs, " output channels");
  }
  size_t zeroPoints = adaptor.getRhsZeroPoints().size();
  if (zeroPoints > 1 && int64_t(zeroPoints) != outputs)
    return emitOptionalError(loc, op, ": ", zeroPoints, " filter zero points for ", outputs, " output channels");
  return inferAccumulator(loc, op, input.getElementType(), filter.getElementType(), biasElement);
}

template <typename Adaptor>
LogicalResult inferPool(std::optional<Location> loc, StringRef op, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  Window window = windowOf(adaptor);
  if (failed(checkWindow(loc, op, input, window)))
    return failure();
  Dims dims = getDims(input);
  if (adaptor.getWindow().size() != dims.size() - 2)
    return emitOptionalError(loc, op, ": C3: a window of ", adaptor.getWindow().size(), " dimensions for ",
                             toString(input));
  for (auto [i, size] : llvm::enumerate(adaptor.getWindow())) {
    FailureOr<AffineExpr> out = windowedSize(loc, op, dims[i + 1], size, window, i, adaptor.getCeilMode());
    if (failed(out))
      return failure();
    dims[i + 1] = *out;
  }
  types.push_back(makeTensor(dims, input.getElementType()));
  return success();
}

} // namespace

LogicalResult ConvOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  FailureOr<Type> element = checkConv(loc, "nn.conv", adaptor);
  if (failed(element))
    return failure();
  Dims dims = getDims(adaptor.getInput());
  auto filter = cast<RankedTensorType>(adaptor.getFilter().getType());
  for (size_t i = 0; i + 2 < dims.size(); ++i) {
    FailureOr<AffineExpr> out =
        windowedSize(loc, "nn.conv", dims[i + 1], filter.getDimSize(i + 1), windowOf(adaptor), i, false);
    if (failed(out))
      return failure();
    dims[i + 1] = *out;
  }
  dims.back() = getAffineConstantExpr(filter.getDimSize(0), filter.getContext());
  types.push_back(makeTensor(dims, *element));
  return success();
}

LogicalResult ConvTransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  FailureOr<Type> element = checkConv(loc, "nn.conv_transpose", adaptor);
  if (failed(element))
    return failure();
  Dims dims = getDims(adaptor.getInput());
  auto filter = cast<RankedTensorType>(adaptor.getFilter().getType());
  if (adaptor.getOutputPads().size() != dims.size() - 2)
    return emitOptionalError(loc, "nn.conv_transpose: C3: ", adaptor.getOutputPads().size(), " output pads");
  for (size_t i = 0; i + 2 < dims.size(); ++i) {
    if (isOutside(filter.getDimSize(i + 1), 1) || isOutside(adaptor.getOutputPads()[i], 0))
      return emitOptionalError(loc, "nn.conv_transpose: C3: window size ", filter.getDimSize(i + 1),
                               ", output padding ", adaptor.getOutputPads()[i]);
    int64_t constant = adaptor.getDilations()[i] * (filter.getDimSize(i + 1) - 1) + 1 - adaptor.getPadsLow()[i] -
                       adaptor.getPadsHigh()[i] + adaptor.getOutputPads()[i];
    dims[i + 1] = (dims[i + 1] - 1) * adaptor.getStrides()[i] + constant;
    std::optional<int64_t> known = getConstant(simplifyAffineExpr(dims[i + 1], 0, 0));
    if (known && *known < 1)
      return emitOptionalError(loc, "nn.conv_transpose: C6: result size ", *known, " of spatial dimension ", i);
  }
  dims.back() = getAffineConstantExpr(filter.getDimSize(0), filter.getContext());
  types.push_back(makeTensor(dims, *element));
  return success();
}

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferPool(loc, "nn.max_pool", adaptor, types);
}

LogicalResult AvgPoolOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferPool(loc, "nn.avg_pool", adaptor, types);
}

LogicalResult ResizeOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType()), result = cast<RankedTensorType>(getType());
  if (input.getRank() != result.getRank())
    return emitOpError() << "C1: ranks differ: " << toString(input) << " and " << toString(result);
  size_t rank = input.getRank();
  if (!getScales().empty() && getScales().size() != rank)
    return emitOpError() << "C2: " << getScales().size() << " scales for rank " << rank;
  for (float scale : getScales())
    if (!(scale > 0))
      return emitOpError() << "C2: scale " << scale << " is not positive";
  if (!getRoi().empty() && getRoi().size() != 2 * rank)
    return emitOpError() << "C2: " << getRoi().size() << " roi values for rank " << rank;
  if (input.getElementType() != result.getElementType())
    return emitOpError() << "C3: element types differ: " << toString(input) << " and " << toString(result);
  return success();
}

LogicalResult GridSampleOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto grid = cast<RankedTensorType>(adaptor.getGrid().getType());
  if (input.getRank() != 4 || grid.getRank() != 4 || getDims(input)[0] != getDims(grid)[0])
    return emitOptionalError(loc, "nn.grid_sample: C1: input ", toString(input), " and grid ", toString(grid));
  if (grid.getDimSize(3) != 2)
    return emitOptionalError(loc, "nn.grid_sample: C2: grid ", toString(grid));
  Dims dims = getDims(grid);
  dims[3] = getDims(input)[3];
  types.push_back(makeTensor(dims, input.getElementType()));
  return success();
}
