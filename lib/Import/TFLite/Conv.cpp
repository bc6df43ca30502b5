//===- Conv.cpp - convolutions, pooling, resampling --------------------------===//
#include "Importer.h"

#include <cstring>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

std::pair<int64_t, int64_t> windowPadding(Padding padding, int64_t in, int64_t window, int64_t stride,
                                          int64_t dilation) {
  if (padding == Padding::VALID)
    return {0, 0};
  int64_t out = (in + stride - 1) / stride, extent = (window - 1) * dilation + 1;
  int64_t needed = std::max<int64_t>(0, (out - 1) * stride + extent - in);
  return {needed / 2, needed - needed / 2};
}

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What the options of windowed operators say, by spatial dimension.
struct Window {
  Padding padding = Padding::SAME;
  SmallVector<int64_t> size, strides, dilations, low, high;
};

/// Checks a window and computes its padding for `input` [N, spatial..., C].
LogicalResult resolveWindow(Node &node, Value input, Window &window) {
  if (window.padding != Padding::SAME && window.padding != Padding::VALID)
    return node.error() << "padding " << int(window.padding) << " is not SAME (0) or VALID (1)";
  if (typeOf(input).getRank() != int64_t(window.size.size()) + 2)
    return node.error() << "an input of rank " << window.size.size() + 2 << " is needed, found "
                        << nn::toString(typeOf(input));
  for (size_t i = 0; i < window.size.size(); ++i) {
    if (window.strides[i] < 1 || window.dilations[i] < 1 || window.size[i] < 1)
      return node.error() << "window " << window.size[i] << ", stride " << window.strides[i] << " and dilation "
                          << window.dilations[i] << " must be at least 1";
    int64_t in = 1;
    if (window.padding == Padding::SAME) {
      std::optional<int64_t> size = node.staticSize(input, i + 1);
      if (!size)
        return failure();
      in = *size;
    }
    auto [low, high] = windowPadding(window.padding, in, window.size[i], window.strides[i], window.dilations[i]);
    window.low.push_back(low);
    window.high.push_back(high);
  }
  return success();
}

/// The two factors of a product and its bias.
struct Factors {
  Value input, weights, bias;
};

FailureOr<Factors> readFactors(Node &node, size_t input, size_t weights, size_t bias, bool integer) {
  Factors f{integer ? node.value(input) : node.floatValue(input),
            integer ? node.value(weights) : node.floatValue(weights), Value()};
  if (!f.input || !f.weights)
    return failure();
  if (!integer && !node.floatProducts && node.isQuantized(input) && node.out().isQuantized())
    node.remarkFloatFallback();
  if (node.has(bias)) {
    f.bias = integer ? node.value(bias) : node.floatValue(bias);
    if (!f.bias)
      return failure();
    // A bias of [1, 1, 1, O] is stored by some converters.
    f.bias = node.reshape(f.bias, {typeOf(f.bias).hasStaticShape() ? typeOf(f.bias).getNumElements() : 0});
    if (!f.bias)
      return failure();
  }
  if (integer && failed(node.needPerTensor(node.in(input))))
    return failure();
  return f;
}

/// The axis of per-channel weights must be the one of output channels.
LogicalResult checkChannelAxis(Node &node, size_t weights, int64_t expected) {
  const TensorData &tensor = node.in(weights);
  if (tensor.isQuantized() && !tensor.quant->isPerTensor() && tensor.quant->axis != expected)
    return node.error() << "weights '" << tensor.name << "' are quantised along dimension " << tensor.quant->axis
                        << ", expected " << expected;
  return success();
}

template <typename Properties> void setWindow(Node &node, Properties &p, const Window &window) {
  p.setStrides(node.b.getDenseI64ArrayAttr(window.strides));
  p.setDilations(node.b.getDenseI64ArrayAttr(window.dilations));
  p.setPadsLow(node.b.getDenseI64ArrayAttr(window.low));
  p.setPadsHigh(node.b.getDenseI64ArrayAttr(window.high));
}

template <typename Properties>
void setZeroPoints(Node &node, Properties &p, size_t input, size_t weights) {
  p.setLhsZeroPoint(node.b.getI32IntegerAttr(node.in(input).quant->zeroPoints[0]));
  p.setRhsZeroPoints(node.b.getDenseI32ArrayAttr(weightZeroPoints(node.in(weights))));
}

/// Builds nn.conv and what follows it.
LogicalResult finishConv(Node &node, Factors f, const Window &window, int64_t groups, Activation activation,
                         bool integer) {
  ConvOp::Properties p;
  setWindow(node, p, window);
  p.setGroups(node.b.getI64IntegerAttr(groups));
  if (integer)
    setZeroPoints(node, p, 0, 1);
  if (node.isFloatProduct() && window.size.size() == 2 && getConstant(getDims(f.input)[1]) && getConstant(getDims(f.input)[2])) {
    Value sum = convInOrder(node, p, f.input, f.weights);
    return node.setFloatProduct(node.activate(f.bias ? node.binary(BinaryKind::add, sum, f.bias) : sum, activation));
  }
  SmallVector<Value> operands{f.input, f.weights};
  if (f.bias)
    operands.push_back(f.bias);
  Value result = node.create<ConvOp>(p, operands);
  if (!integer)
    return node.setFloatProduct(node.activate(result, activation));
  return setAccumulator(node, result, 0, 1, activation, typeOf(f.weights).getDimSize(0));
}

LogicalResult needFilterRank(Node &node, Value filter, int64_t rank) {
  if (typeOf(filter).getRank() == rank && typeOf(filter).hasStaticShape())
    return success();
  return node.error() << "a filter of rank " << rank << " is needed, found " << nn::toString(typeOf(filter));
}

LogicalResult importConv2D(Node &node) {
  bool integer = node.isIntegerProduct(0, 1);
  FailureOr<Factors> f = readFactors(node, 0, 1, 2, integer);
  const Conv2D *o = node.options<Conv2D>();
  if (failed(f) || failed(needFilterRank(node, f->weights, 4)) || failed(checkChannelAxis(node, 1, 0)))
    return failure();
  if (!o)
    return node.error() << "the options are missing";
  ArrayRef<int64_t> shape = typeOf(f->weights).getShape();
  Window window{o->padding(), {shape[1], shape[2]}, {o->stride_h(), o->stride_w()},
                {o->dilation_h(), o->dilation_w()}, {}, {}};
  if (failed(resolveWindow(node, f->input, window)))
    return failure();
  std::optional<int64_t> channels = node.staticSize(f->input, 3);
  if (!channels)
    return failure();
  // Grouped convolutions are told by the filter's channels alone.
  if (shape[3] < 1 || *channels % shape[3] || *channels < 1)
    return node.error() << "filter " << nn::toString(typeOf(f->weights)) << " does not fit " << *channels
                        << " input channels";
  return finishConv(node, *f, window, *channels / shape[3], o->activation(), integer);
}

LogicalResult importDepthwiseConv2D(Node &node) {
  bool integer = node.isIntegerProduct(0, 1);
  FailureOr<Factors> f = readFactors(node, 0, 1, 2, integer);
  const DepthwiseConv2D *o = node.options<DepthwiseConv2D>();
  if (failed(f) || failed(needFilterRank(node, f->weights, 4)) || failed(checkChannelAxis(node, 1, 3)))
    return failure();
  if (!o)
    return node.error() << "the options are missing";
  SmallVector<int64_t> shape(typeOf(f->weights).getShape());
  Window window{o->padding(), {shape[1], shape[2]}, {o->stride_h(), o->stride_w()},
                {o->dilation_h(), o->dilation_w()}, {}, {}};
  if (failed(resolveWindow(node, f->input, window)))
    return failure();
  std::optional<int64_t> channels = node.staticSize(f->input, 3);
  if (!channels)
    return failure();
  if (shape[0] != 1 || *channels < 1 || shape[3] % *channels || shape[3] < 1)
    return node.error() << "filter " << nn::toString(typeOf(f->weights)) << " does not fit " << *channels
                        << " input channels, expected [1, height, width, channels * multiplier]";
  // [1, kh, kw, O] to [O, kh, kw, 1].
  f->weights = node.transpose(f->weights, {3, 1, 2, 0});
  if (!f->weights)
    return failure();
  return finishConv(node, *f, window, *channels, o->activation(), integer);
}

LogicalResult importConv3D(Node &node) {
  FailureOr<Factors> f = readFactors(node, 0, 1, 2, /*integer=*/false);
  const Conv3D *o = node.options<Conv3D>();
  if (failed(f) || failed(needFilterRank(node, f->weights, 5)))
    return failure();
  if (!o)
    return node.error() << "the options are missing";
  SmallVector<int64_t> shape(typeOf(f->weights).getShape()); // [kd, kh, kw, I, O]
  Window window{o->padding(),
                {shape[0], shape[1], shape[2]},
                {o->stride_d(), o->stride_h(), o->stride_w()},
                {o->dilation_d(), o->dilation_h(), o->dilation_w()},
                {},
                {}};
  if (failed(resolveWindow(node, f->input, window)))
    return failure();
  f->weights = node.transpose(f->weights, {4, 0, 1, 2, 3});
  if (!f->weights)
    return failure();
  return finishConv(node, *f, window, 1, o->activation(), false);
}

//===----------------------------------------------------------------------===//
// Transposed convolution
//===----------------------------------------------------------------------===//

/// Padding and output padding of one dimension that give `out`. Source: the padding of the forward
/// convolution from `out` to `in`; what does not fit is cut off, what is missing is empty.
struct TransposedPadding {
  int64_t low, high, extra;
};
TransposedPadding transposedPadding(Padding padding, int64_t in, int64_t out, int64_t window, int64_t stride) {
  int64_t low = windowPadding(padding, out, window, stride, 1).first;
  int64_t rest = stride * (in - 1) + window - low - out;
  return {low, std::max<int64_t>(rest, 0), std::max<int64_t>(-rest, 0)};
}

LogicalResult finishTransposeConv(Node &node, Factors f, ArrayRef<int64_t> outShape, Padding padding,
                                  ArrayRef<int64_t> strides, size_t input, size_t weights, Activation activation,
                                  bool integer) {
  if (typeOf(f.input).getRank() != 4)
    return node.error() << "an input of rank 4 is needed, found " << nn::toString(typeOf(f.input));
  if (padding != Padding::SAME && padding != Padding::VALID)
    return node.error() << "padding " << int(padding) << " is not SAME (0) or VALID (1)";
  ArrayRef<int64_t> filter = typeOf(f.weights).getShape();
  Window window{padding, {}, {strides.begin(), strides.end()}, {1, 1}, {}, {}};
  SmallVector<int64_t> extra;
  for (size_t i = 0; i < 2; ++i) {
    std::optional<int64_t> in = node.staticSize(f.input, i + 1);
    if (!in)
      return failure();
    if (strides[i] < 1 || outShape[i] < 1 || outShape[i] > Limits::elements || filter[i + 1] < 1)
      return node.error() << "stride " << strides[i] << ", window " << filter[i + 1] << " and output size "
                          << outShape[i] << " must be at least 1 and at most " << Limits::elements;
    TransposedPadding p = transposedPadding(padding, *in, outShape[i], filter[i + 1], strides[i]);
    window.low.push_back(p.low);
    window.high.push_back(p.high);
    extra.push_back(p.extra);
  }
  ConvTransposeOp::Properties p;
  setWindow(node, p, window);
  p.setOutputPads(node.b.getDenseI64ArrayAttr(extra));
  if (integer)
    setZeroPoints(node, p, input, weights);
  SmallVector<Value> operands{f.input, f.weights};
  if (f.bias)
    operands.push_back(f.bias);
  int64_t channels = filter[0];
  Value result = node.create<ConvTransposeOp>(p, operands);
  if (!integer)
    return node.setFloatProduct(node.activate(result, activation));
  return setAccumulator(node, result, input, weights, activation, channels);
}

/// The output shape: a constant operand, or where it is computed, what the file says of the result.
std::optional<std::vector<int64_t>> outputShape(Node &node) {
  Value operand = node.value(0);
  if (!operand)
    return std::nullopt;
  if (!getConstantValue(operand) && llvm::none_of(node.out().isDynamic, [](bool open) { return open; }))
    return node.out().shape;
  return node.ints(0, "the output shape");
}

LogicalResult importTransposeConv(Node &node) {
  bool integer = node.isIntegerProduct(2, 1);
  FailureOr<Factors> f = readFactors(node, 2, 1, 3, integer);
  const TransposeConv *o = node.options<TransposeConv>();
  std::optional<std::vector<int64_t>> shape = outputShape(node);
  if (failed(f) || !shape || failed(needFilterRank(node, f->weights, 4)) || failed(checkChannelAxis(node, 1, 0)))
    return failure();
  if (!o)
    return node.error() << "the options are missing";
  if (shape->size() != 4)
    return node.error() << "the output shape must have 4 elements, found " << shape->size();
  if ((*shape)[3] != typeOf(f->weights).getDimSize(0))
    return node.error() << "the output shape has " << (*shape)[3] << " channels, the filter "
                        << typeOf(f->weights).getDimSize(0);
  return finishTransposeConv(node, *f, ArrayRef(*shape).slice(1, 2), o->padding(), {o->stride_h(), o->stride_w()}, 2,
                             1, o->activation(), integer);
}

/// The transposed convolution with bias of MediaPipe's models: input, filter [O, kh, kw, I], bias; its
/// options are three little-endian 32-bit numbers: padding (1 SAME, 2 VALID), stride width, stride height.
LogicalResult importTransposeConvBias(Node &node) {
  FailureOr<Factors> f = readFactors(node, 0, 1, 2, /*integer=*/false);
  if (failed(f) || failed(needFilterRank(node, f->weights, 4)))
    return failure();
  const auto *bytes = node.op.table->custom_options();
  if (!bytes || bytes->size() < 12)
    return node.error() << "the custom options need 12 bytes, have " << (bytes ? bytes->size() : 0);
  int32_t fields[3];
  for (int i = 0; i < 3; ++i)
    fields[i] = flatbuffers::ReadScalar<int32_t>(bytes->data() + 4 * i);
  if (fields[0] != 1 && fields[0] != 2)
    return node.error() << "padding " << fields[0] << " is not SAME (1) or VALID (2)";
  bool same = fields[0] == 1;
  std::array<int64_t, 2> strides{fields[2], fields[1]}, out;
  if (typeOf(f->input).getRank() != 4)
    return node.error() << "an input of rank 4 is needed, found " << nn::toString(typeOf(f->input));
  for (size_t i = 0; i < 2; ++i) {
    std::optional<int64_t> in = node.staticSize(f->input, i + 1);
    if (!in)
      return failure();
    out[i] = same ? *in * strides[i] : (*in - 1) * strides[i] + typeOf(f->weights).getDimSize(i + 1);
  }
  return finishTransposeConv(node, *f, out, same ? Padding::SAME : Padding::VALID, strides, 0, 1, Activation::NONE,
                             false);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

enum class PoolKind { average, maximum, l2 };

template <PoolKind kind> LogicalResult importPool(Node &node) {
  const Pool2D *o = node.options<Pool2D>();
  bool integer = node.has(0) && node.isQuantized(0);
  Value x = integer ? node.value(0) : node.floatValue(0);
  if (!x)
    return failure();
  if (!o)
    return node.error() << "the options are missing";
  if (integer && kind == PoolKind::l2)
    return node.unsupportedType(0, "FLOAT32");
  Window window{o->padding(), {o->filter_height(), o->filter_width()}, {o->stride_h(), o->stride_w()}, {1, 1}, {}, {}};
  if (failed(resolveWindow(node, x, window)))
    return failure();
  auto build = [&](auto properties, Value operand, auto tag) {
    setWindow(node, properties, window);
    properties.setWindow(node.b.getDenseI64ArrayAttr(window.size));
    return node.create<decltype(tag)>(properties, operand);
  };
  if (kind == PoolKind::l2)
    x = node.unary(UnaryKind::square, x);
  Value result = kind == PoolKind::maximum ? build(MaxPoolOp::Properties(), x, MaxPoolOp())
                                           : build(AvgPoolOp::Properties(), x, AvgPoolOp());
  if (kind == PoolKind::l2)
    result = node.unary(UnaryKind::sqrt, result);
  if (!integer)
    return node.setFloat(node.activate(result, o->activation()));
  // Computed on the stored integers; the file's two scales agree, else the result is rescaled.
  result = node.rescale(result, node.in(0), node.out());
  std::optional<Range> range = node.activationRange(o->activation(), node.out());
  return range ? node.set(node.clamp(result, *range)) : failure();
}

//===----------------------------------------------------------------------===//
// Resampling
//===----------------------------------------------------------------------===//

LogicalResult importResize(Node &node, ResizeMode mode, bool alignCorners, bool halfPixel) {
  if (alignCorners && halfPixel)
    return node.error() << "align_corners and half_pixel_centers are both set, which contradict each other; "
                           "clear one of them";
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> size = node.ints(1, "the size");
  if (!x || !size)
    return failure();
  if (typeOf(x).getRank() != 4 || size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)
    return node.error() << "an input of rank 4 and two positive sizes are needed, found "
                        << nn::toString(typeOf(x)) << " and " << size->size() << " sizes";
  Dims dims = getDims(x);
  for (size_t i = 0; i < 2; ++i)
    dims[i + 1] = node.b.getAffineConstantExpr((*size)[i]);
  ResizeOp::Properties p;
  bool nearest = mode == ResizeMode::nearest;
  CoordinateMode coordinates = alignCorners  ? CoordinateMode::align_corners
                               : !halfPixel  ? CoordinateMode::asymmetric
                               : nearest     ? CoordinateMode::tf_half_pixel_for_nn
                                             : CoordinateMode::half_pixel;
  MLIRContext *context = node.b.getContext();
  p.setMode(ResizeModeAttr::get(context, mode));
  p.setCoordinateMode(CoordinateModeAttr::get(context, coordinates));
  p.setNearestMode(
      NearestModeAttr::get(context, alignCorners ? NearestMode::round_prefer_ceil : NearestMode::floor));
  p.setScales(node.b.getDenseF32ArrayAttr({}));
  Value result = node.createAs<ResizeOp>(makeTensor(dims, typeOf(x).getElementType()), p, x);
  if (result && node.isQuantized(0))
    result = node.rescale(result, node.in(0), node.out());
  return node.set(result);
}

LogicalResult importResizeBilinear(Node &node) {
  const ResizeBilinear *o = node.options<ResizeBilinear>();
  return importResize(node, ResizeMode::linear, o && o->align_corners(), o && o->half_pixel_centers());
}

LogicalResult importResizeNearest(Node &node) {
  const ResizeNearestNeighbor *o = node.options<ResizeNearestNeighbor>();
  return importResize(node, ResizeMode::nearest, o && o->align_corners(), o && o->half_pixel_centers());
}

const OpRow rows[] = {
    {Builtin::CONV_2D, 8, 2, 3, importConv2D},
    {Builtin::DEPTHWISE_CONV_2D, 7, 2, 3, importDepthwiseConv2D},
    {Builtin::CONV_3D, 1, 2, 3, importConv3D},
    {Builtin::TRANSPOSE_CONV, 5, 3, 4, importTransposeConv},
    {Builtin::CUSTOM, 1, 3, 3, importTransposeConvBias, "Convolution2DTransposeBias"},
    {Builtin::AVERAGE_POOL_2D, 3, 1, 1, importPool<PoolKind::average>},
    {Builtin::MAX_POOL_2D, 3, 1, 1, importPool<PoolKind::maximum>},
    {Builtin::L2_POOL_2D, 1, 1, 1, importPool<PoolKind::l2>},
    {Builtin::RESIZE_BILINEAR, 4, 2, 2, importResizeBilinear},
    {Builtin::RESIZE_NEAREST_NEIGHBOR, 4, 2, 2, importResizeNearest},
};

} // namespace

ArrayRef<OpRow> convRows() { return rows; }

} // namespace ajour::tflite
