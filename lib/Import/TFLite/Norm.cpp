//===- Norm.cpp - reductions and normalisations ----------------------------------===//
#include "Importer.h"

#include "llvm/ADT/SmallSet.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The axes of a reduction: ascending and distinct; an empty list reduces nothing.
std::optional<std::vector<int64_t>> reductionAxes(Node &node, int64_t rank) {
  std::optional<std::vector<int64_t>> raw = node.ints(1, "the axes");
  if (!raw)
    return std::nullopt;
  std::set<int64_t> axes;
  for (int64_t value : *raw) {
    std::optional<int64_t> axis = node.axis(value, rank);
    if (!axis)
      return std::nullopt;
    axes.insert(*axis);
  }
  return std::vector<int64_t>(axes.begin(), axes.end());
}

/// Mean or sum of stored integers. Source: the reference kernels: the sum of the centred values times
/// scale / (result scale * count), with the count divided into the multiplier.
LogicalResult setQuantizedSum(Node &node, Value x, ArrayRef<int64_t> axes, bool keepDims, bool mean) {
  const TensorData &in = node.in(0), &out = node.out();
  if (failed(node.needPerTensor(in)) || failed(node.needPerTensor(out)))
    return failure();
  FixedPoint factor = quantizeMultiplier(double(in.quant->scales[0]) / double(out.quant->scales[0]));
  if (mean) {
    int64_t count = 1;
    for (int64_t axis : axes) {
      std::optional<int64_t> size = node.staticSize(x, axis);
      if (!size)
        return failure();
      count *= *size;
    }
    if (count < 1)
      return node.error() << "the mean of no elements";
    int shift = std::min({63 - __builtin_clzll(uint64_t(count)), 32, 31 + factor.shift});
    factor.multiplier = int32_t((int64_t(factor.multiplier) << std::max(shift, 0)) / count);
    factor.shift -= std::max(shift, 0);
  }
  Value sum = node.reduce(ReduceKind::sum, node.centered(x, in.quant->zeroPoints[0]), axes, keepDims);
  return node.set(node.requantize(sum, factor, out.quant->zeroPoints[0], out.elementType));
}

template <ReduceKind kind> LogicalResult importReduce(Node &node) {
  Value x = node.value(0);
  if (!x)
    return failure();
  std::optional<std::vector<int64_t>> axes = reductionAxes(node, typeOf(x).getRank());
  if (!axes)
    return failure();
  const Reducer *o = node.options<Reducer>();
  bool keepDims = o && o->keep_dims(), quantized = node.isQuantized(0) && node.out().isQuantized();
  if (quantized && (kind == ReduceKind::sum || kind == ReduceKind::mean))
    return setQuantizedSum(node, x, *axes, keepDims, kind == ReduceKind::mean);
  if (quantized && kind == ReduceKind::prod) {
    node.remarkFloatFallback();
    return node.setFloat(node.reduce(kind, node.floatValue(0), *axes, keepDims));
  }
  Value result = node.reduce(kind, x, *axes, keepDims);
  return node.set(quantized && result ? node.rescale(result, node.in(0), node.out()) : result);
}

/// REDUCE_ANY and REDUCE_ALL.
template <ReduceKind kind> LogicalResult importReduceBool(Node &node) {
  if (node.has(0) && node.in(0).format != TensorType::BOOL)
    return node.unsupportedType(0, "BOOL");
  return importReduce<kind>(node);
}

template <ArgKind kind> LogicalResult importArg(Node &node) {
  Value x = node.value(0);
  std::optional<int64_t> raw = node.scalarInt(1, "the axis");
  std::optional<int64_t> axis = x && raw ? node.axis(*raw, typeOf(x).getRank()) : std::nullopt;
  if (!axis)
    return failure();
  ArgReduceOp::Properties p;
  p.setKind(ArgKindAttr::get(node.b.getContext(), kind));
  p.setAxis(node.b.getI64IntegerAttr(*axis));
  Value index = node.create<ArgReduceOp>(p, x);
  return index && node.out().elementType ? node.set(node.cast(index, node.out().elementType)) : failure();
}

LogicalResult importSoftmaxLike(Node &node, bool log, float beta) {
  Value x = node.floatValue(0);
  if (!x)
    return failure();
  if (typeOf(x).getRank() < 1)
    return node.error() << "a rank of at least 1 is needed, found " << nn::toString(typeOf(x));
  if (beta != 1.0f)
    x = node.binary(BinaryKind::mul, x, node.scalar(node.b.getF32Type(), beta));
  if (!x)
    return failure();
  SoftmaxOp::Properties p;
  p.setAxis(node.b.getI64IntegerAttr(typeOf(x).getRank() - 1));
  if (log)
    p.setLog(node.b.getUnitAttr());
  return node.setFloat(node.create<SoftmaxOp>(p, x));
}

LogicalResult importSoftmax(Node &node) {
  const Softmax *o = node.options<Softmax>();
  return importSoftmaxLike(node, false, o ? o->beta() : 1.0f);
}
LogicalResult importLogSoftmax(Node &node) { return importSoftmaxLike(node, true, 1.0f); }

/// x / max(norm, 1e-6) over the last dimension.
LogicalResult importL2Norm(Node &node) {
  Value x = node.floatValue(0);
  if (!x)
    return failure();
  if (typeOf(x).getRank() < 1)
    return node.error() << "a rank of at least 1 is needed, found " << nn::toString(typeOf(x));
  const L2Norm *o = node.options<L2Norm>();
  Value sum = node.reduce(ReduceKind::sum, node.unary(UnaryKind::square, x), {typeOf(x).getRank() - 1}, true);
  Value norm = node.binary(BinaryKind::max, node.unary(UnaryKind::sqrt, sum), node.scalar(node.b.getF32Type(), 1e-6));
  Value result = node.binary(BinaryKind::div, x, norm);
  return node.setFloat(node.activate(result, o ? o->activation() : Activation::NONE));
}

/// x * (bias + alpha * sum of squares of the channels within radius)^-beta. The windowed sum is a pool over
/// channels.
LogicalResult importLocalResponseNorm(Node &node) {
  Value x = node.floatValue(0);
  const LocalResponseNormalization *o = node.options<LocalResponseNormalization>();
  if (!x)
    return failure();
  std::optional<std::vector<int64_t>> shape = node.staticShape(x);
  if (!shape)
    return failure();
  if (!o || o->radius() < 0 || o->radius() > 1 << 16 || shape->empty())
    return node.error() << "a radius from 0 to 65536 is needed, found " << (o ? o->radius() : 0);
  int64_t rows = 1, channels = shape->back(), window = 2 * int64_t(o->radius()) + 1;
  for (int64_t dim : ArrayRef(*shape).drop_back())
    rows *= dim;
  Value squares = node.reshape(node.unary(UnaryKind::square, x), {rows, channels, 1});
  AvgPoolOp::Properties p;
  p.setWindow(node.b.getDenseI64ArrayAttr({window}));
  p.setStrides(node.b.getDenseI64ArrayAttr({1}));
  p.setDilations(node.b.getDenseI64ArrayAttr({1}));
  p.setPadsLow(node.b.getDenseI64ArrayAttr({o->radius()}));
  p.setPadsHigh(node.b.getDenseI64ArrayAttr({o->radius()}));
  p.setCountIncludePad(node.b.getUnitAttr());
  Value mean = node.reshape(node.create<AvgPoolOp>(p, squares), *shape);
  Type f32 = node.b.getF32Type();
  Value base = node.binary(BinaryKind::add, node.binary(BinaryKind::mul, mean, node.scalar(f32, o->alpha() * window)),
                           node.scalar(f32, o->bias()));
  return node.setFloat(
      node.binary(BinaryKind::mul, x, node.binary(BinaryKind::pow, base, node.scalar(f32, -o->beta()))));
}

LogicalResult importCumsum(Node &node) {
  Value x = node.value(0);
  std::optional<int64_t> raw = node.scalarInt(1, "the axis");
  std::optional<int64_t> axis = x && raw ? node.axis(*raw, typeOf(x).getRank()) : std::nullopt;
  if (!axis)
    return failure();
  const Cumsum *o = node.options<Cumsum>();
  CumsumOp::Properties p;
  p.setAxis(node.b.getI64IntegerAttr(*axis));
  if (o && o->exclusive())
    p.setExclusive(node.b.getUnitAttr());
  if (o && o->reverse())
    p.setReverse(node.b.getUnitAttr());
  return node.set(node.create<CumsumOp>(p, x));
}

LogicalResult importTopK(Node &node) {
  Value x = node.value(0);
  std::optional<int64_t> k = node.scalarInt(1, "k");
  if (!x || !k)
    return failure();
  if (typeOf(x).getRank() < 1)
    return node.error() << "a rank of at least 1 is needed, found " << nn::toString(typeOf(x));
  TopKOp::Properties p;
  p.setK(node.b.getI64IntegerAttr(*k));
  p.setAxis(node.b.getI64IntegerAttr(typeOf(x).getRank() - 1));
  SmallVector<Type> types;
  if (!node.createMany<TopKOp>(p, x, types))
    return failure();
  Value best = node.last[0], indices = node.last[1];
  if (failed(node.set(best)))
    return failure();
  if (node.numOutputs() < 2 || !node.out(1).elementType)
    return node.error() << "two results are needed";
  return node.set(node.cast(indices, node.out(1).elementType), 1);
}

const OpRow rows[] = {
    {Builtin::MEAN, 3, 2, 2, importReduce<ReduceKind::mean>},
    {Builtin::SUM, 2, 2, 2, importReduce<ReduceKind::sum>},
    {Builtin::REDUCE_PROD, 2, 2, 2, importReduce<ReduceKind::prod>},
    {Builtin::REDUCE_MAX, 3, 2, 2, importReduce<ReduceKind::max>},
    {Builtin::REDUCE_MIN, 3, 2, 2, importReduce<ReduceKind::min>},
    {Builtin::REDUCE_ANY, 2, 2, 2, importReduceBool<ReduceKind::max>},
    {Builtin::REDUCE_ALL, 1, 2, 2, importReduceBool<ReduceKind::min>},
    {Builtin::ARG_MAX, 3, 2, 2, importArg<ArgKind::max>},
    {Builtin::ARG_MIN, 3, 2, 2, importArg<ArgKind::min>},
    {Builtin::SOFTMAX, 3, 1, 1, importSoftmax},
    {Builtin::LOG_SOFTMAX, 2, 1, 1, importLogSoftmax},
    {Builtin::L2_NORMALIZATION, 2, 1, 1, importL2Norm},
    {Builtin::LOCAL_RESPONSE_NORMALIZATION, 1, 1, 1, importLocalResponseNorm},
    {Builtin::CUMSUM, 1, 2, 2, importCumsum},
    {Builtin::TOPK_V2, 3, 2, 2, importTopK},
};

} // namespace

ArrayRef<OpRow> normRows() { return rows; }

} // namespace ajour::tflite
