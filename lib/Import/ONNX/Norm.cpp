//===- Norm.cpp - ONNX reductions and normalisations -------------------------------===//
#include "Node.h"

#include <cmath>

using namespace mlir;

namespace ajour::onnx_import {

namespace {

using R = nn::ReduceKind;
using U = nn::UnaryKind;
using B = nn::BinaryKind;

/// Everything from `axis` on as one dimension, everything before as another (softmax before opset 13).
Value flattenAt(Node &n, Value x, int64_t axis) {
  Dims dims = Node::dimsOf(x);
  return n.reshape(x, {n.product(ArrayRef(dims).take_front(axis)), n.product(ArrayRef(dims).drop_front(axis))});
}

Value softmaxAlong(Node &n, Value x, int64_t axis, bool log) {
  nn::SoftmaxOp::Properties p;
  p.axis = n.i64(axis);
  if (log)
    p.log = n.builder().getUnitAttr();
  return n.make1<nn::SoftmaxOp>(x, p);
}

Value hardmaxAlong(Node &n, Value x, int64_t axis) {
  Value first = n.argReduce(nn::ArgKind::max, x, axis, /*keepDims=*/true, /*last=*/false);
  Dims line(Node::rankOf(x), n.dim(1));
  line[axis] = Node::dimsOf(x)[axis];
  Value hit = n.compare(nn::CompareKind::eq, n.iota(line, axis, n.i64Type()), first);
  return n.cast(hit, Node::elementOf(x));
}

/// Softmax and its kin: along one axis since opset 13, over the flattened tail before.
template <typename Along> void alongAxis(Node &n, Along along) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x);
  if (n.opset >= 13)
    return n.set(0, along(x, n.axis(n.attrInt("axis", -1), rank)));
  int64_t axis = n.attrInt("axis", 1);
  if (axis != rank)
    axis = n.axis(axis, rank);
  if (axis == rank - 1)
    return n.set(0, along(x, axis));
  n.set(0, n.reshape(along(flattenAt(n, x, axis), 1), Node::dimsOf(x)));
}

void softmax(Node &n) {
  alongAxis(n, [&](Value x, int64_t axis) { return softmaxAlong(n, x, axis, false); });
}
void logSoftmax(Node &n) {
  alongAxis(n, [&](Value x, int64_t axis) { return softmaxAlong(n, x, axis, true); });
}
void hardmax(Node &n) {
  alongAxis(n, [&](Value x, int64_t axis) { return hardmaxAlong(n, x, axis); });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The axes of a reduction: an attribute, or an input since `inputSince`. Nothing: no reduction at all.
std::optional<Ints> reduceAxes(Node &n, int64_t rank, int64_t inputSince) {
  Ints axes;
  bool given = false;
  if (n.opset >= inputSince) {
    if (n.has(1)) {
      axes = n.ints(1, "axes");
      given = !axes.empty();
    }
    if (!given && n.attrInt("noop_with_empty_axes", 0))
      return std::nullopt;
  } else if (n.hasAttr("axes")) {
    axes = n.attrInts("axes");
    given = true;
  }
  if (given)
    return n.axes(axes, rank);
  for (int64_t i = 0; i < rank; ++i)
    axes.push_back(i);
  return axes;
}

/// log(sum(exp x)) without overflow.
Value logSumExp(Node &n, Value x, const Ints &axes, bool keep) {
  Value most = n.reduce(R::max, x, axes, /*keepDims=*/true);
  most = n.select(n.unary(U::is_inf, most, 1, 1), n.like(0, most), most);
  Value sum = n.reduce(R::sum, n.unary(U::exp, n.sub(x, most)), axes, keep);
  Value back = keep ? most : n.reshape(most, Node::dimsOf(sum));
  return n.add(n.unary(U::log, sum), back);
}

template <typename Make> void reduction(Node &n, int64_t inputSince, Make make) {
  Value x = n.in(0);
  std::optional<Ints> axes = reduceAxes(n, Node::rankOf(x), inputSince);
  n.set(0, make(x, axes.value_or(Ints()), bool(n.attrInt("keepdims", 1))));
}

template <R kind, int64_t since> void reduce(Node &n) {
  reduction(n, since, [&](Value x, const Ints &axes, bool keep) { return n.reduce(kind, x, axes, keep); });
}
void reduceL1(Node &n) {
  reduction(n, 18, [&](Value x, const Ints &axes, bool keep) {
    return n.reduce(R::sum, nn::isUnsigned(Node::elementOf(x)) ? x : n.unary(U::abs, x), axes, keep);
  });
}
void reduceL2(Node &n) {
  reduction(n, 18, [&](Value x, const Ints &axes, bool keep) {
    Value f = Node::isFloat(x) ? x : n.cast(x, Float64Type::get(n.context()));
    return n.cast(n.unary(U::sqrt, n.reduce(R::sum, n.unary(U::square, f), axes, keep)), Node::elementOf(x));
  });
}
void reduceSumSquare(Node &n) {
  reduction(n, 18, [&](Value x, const Ints &axes, bool keep) {
    return n.reduce(R::sum, n.unary(U::square, x), axes, keep);
  });
}
void reduceLogSum(Node &n) {
  reduction(n, 18, [&](Value x, const Ints &axes, bool keep) {
    return n.unary(U::log, n.reduce(R::sum, x, axes, keep));
  });
}
void reduceLogSumExp(Node &n) {
  reduction(n, 18, [&](Value x, const Ints &axes, bool keep) { return logSumExp(n, x, axes, keep); });
}

template <nn::ArgKind kind> void argReduce(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.attrInt("axis", 0), Node::rankOf(x));
  n.set(0, n.argReduce(kind, x, axis, n.attrInt("keepdims", 1), n.attrInt("select_last_index", 0)));
}

void cumSum(Node &n) {
  Value x = n.in(0);
  nn::CumsumOp::Properties p;
  p.axis = n.i64(n.axis(n.oneInt(1, "axis"), Node::rankOf(x)));
  if (n.attrInt("exclusive", 0))
    p.exclusive = n.builder().getUnitAttr();
  if (n.attrInt("reverse", 0))
    p.reverse = n.builder().getUnitAttr();
  n.set(0, n.make1<nn::CumsumOp>(x, p));
}

void topK(Node &n) {
  Value x = n.in(0);
  nn::TopKOp::Properties p;
  p.axis = n.i64(n.axis(n.attrInt("axis", -1), Node::rankOf(x)));
  p.k = n.i64(n.opset < 10 ? n.attrInt("k") : n.oneInt(1, "k"));
  if (!n.attrInt("largest", 1))
    p.smallest = n.builder().getUnitAttr();
  SmallVector<Value> results = n.make<nn::TopKOp>(x, p);
  n.set(0, results[0]);
  n.set(1, results[1]);
}

//===----------------------------------------------------------------------===//
// Normalisations
//===----------------------------------------------------------------------===//

/// A [C] tensor along dimension 1 of a tensor of this rank.
Value perChannel(Node &n, Value v, int64_t rank) {
  if (Node::rankOf(v) != 1)
    n.refuse("a parameter for each channel is " + n.text(v) + ", expected one dimension");
  Dims dims{Node::dimsOf(v)[0]};
  for (int64_t i = 2; i < rank; ++i)
    dims.push_back(n.dim(1));
  return n.reshape(v, dims);
}

void batchNormalization(Node &n) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x);
  if (rank < 2)
    n.refuse("its input is " + n.text(x) + ", expected at least rank 2");
  if (n.opset < 9 && n.attrInt("spatial", 1) == 0)
    n.refuse("attribute 'spatial' is 0, expected 1");
  if (n.opset < 7 && !n.attrInt("is_test", 0))
    n.refuse("attribute 'is_test' is 0, expected a model for inference");
  if (n.opset >= 14 && n.attrInt("training_mode", 0))
    n.refuse("attribute 'training_mode' is 1, expected a model for inference");
  for (size_t i = 1; i < 5; ++i)
    if (n.wants(i))
      n.refuse("its output " + Twine(i) + " is used, which only training needs");
  for (size_t i = 1; i < 5; ++i)
    if (Node::rankOf(n.in(i)) != 1)
      n.refuse(n.inputName(i) + " is " + n.text(n.in(i)) + ", expected one value for each channel");
  // f32 arithmetic for narrow types; the parameters fold into one scale and one shift.
  Type element = Node::elementOf(x);
  Type compute = element.isF64() ? element : n.f32();
  auto param = [&](size_t i) { return n.cast(n.in(i), compute); };
  Value deviation = n.unary(U::sqrt, n.add(param(4), n.scalar(n.attrFloat("epsilon", 1e-5f), compute)));
  Value scale = n.div(param(1), deviation);
  Value shift = n.sub(param(2), n.mul(param(3), scale));
  Value scaled = n.mul(n.cast(x, compute), perChannel(n, scale, rank));
  n.set(0, n.cast(n.add(scaled, perChannel(n, shift, rank)), element));
}

Value layerNorm(Node &n, Value x, Value scale, Value bias, int64_t axis, float epsilon, bool rms) {
  nn::LayerNormOp::Properties p;
  p.axis = n.i64(axis);
  p.epsilon = n.builder().getF32FloatAttr(epsilon);
  if (rms)
    p.rms = n.builder().getUnitAttr();
  p.operandSegmentSizes = {1, scale ? 1 : 0, bias ? 1 : 0};
  SmallVector<Value> operands{x};
  if (scale)
    operands.push_back(scale);
  if (bias)
    operands.push_back(bias);
  return n.make1<nn::LayerNormOp>(operands, p);
}

/// The dimensions of x, normalised over each of `groups` groups of channels with all that follows.
Value groupNormalized(Node &n, Value x, int64_t groups, float epsilon) {
  Dims dims = Node::dimsOf(x);
  if (dims.size() < 3)
    n.refuse("its input is " + n.text(x) + ", expected [N, C, spatial...]");
  int64_t channels = n.staticDims(x, 1, 2, "this operator")[0];
  if (groups < 1 || channels % groups)
    n.refuse("has " + Twine(groups) + " groups for " + Twine(channels) + " channels");
  Dims tail(dims.begin() + 2, dims.end());
  Value grouped = n.reshape(x, {dims[0], n.dim(groups), n.product(tail) * (channels / groups)});
  return n.reshape(layerNorm(n, grouped, {}, {}, 2, epsilon, false), dims);
}

void instanceNormalization(Node &n) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x);
  if (rank < 3)
    n.refuse("its input is " + n.text(x) + ", expected [N, C, spatial...]");
  int64_t channels = n.staticDims(x, 1, 2, "this operator")[0];
  Value y = groupNormalized(n, x, channels, n.attrFloat("epsilon", 1e-5f));
  n.set(0, n.add(n.mul(y, perChannel(n, n.in(1), rank)), perChannel(n, n.in(2), rank)));
}

/// scale and bias: one for each group in opset 18, for each channel since 21.
void groupNormalization(Node &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  int64_t rank = Node::rankOf(x), groups = n.attrInt("num_groups");
  Value y = groupNormalized(n, x, groups, n.attrFloat("epsilon", 1e-5f));
  int64_t channels = n.staticDims(x, 1, 2, "this operator")[0];
  auto expand = [&](Value v) {
    if (n.opset >= 21)
      return perChannel(n, v, rank);
    Value each = n.broadcast(n.reshape(v, {groups, 1}), n.dimsFrom({groups, channels / groups}));
    return perChannel(n, n.reshape(each, {channels}), rank);
  };
  n.set(0, n.add(n.mul(y, expand(scale)), expand(bias)));
}

void layerNormalization(Node &n) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x), axis = n.axis(n.attrInt("axis", -1), rank);
  float epsilon = n.attrFloat("epsilon", 1e-5f);
  n.set(0, layerNorm(n, x, n.in(1), n.inOrNull(2), axis, epsilon, false));
  if (!n.wants(1) && !n.wants(2))
    return;
  Ints axes;
  for (int64_t i = axis; i < rank; ++i)
    axes.push_back(i);
  Value wide = Node::elementOf(x).isF64() ? x : n.cast(x, n.f32());
  Value mean = n.reduce(R::mean, wide, axes, true);
  n.set(1, mean);
  Value variance = n.reduce(R::mean, n.unary(U::square, n.sub(wide, mean)), axes, true);
  n.set(2, n.unary(U::rsqrt, n.add(variance, n.like(epsilon, variance))));
}

void rmsNormalization(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.attrInt("axis", -1), Node::rankOf(x));
  n.set(0, layerNorm(n, x, n.in(1), {}, axis, n.attrFloat("epsilon", 1e-5f), true));
}

/// Local response normalisation: the mean of squares over a window of channels is an average pool whose
/// spatial dimensions are (C, rest) with one channel.
void lrn(Node &n) {
  Value x = n.in(0);
  int64_t size = n.attrInt("size");
  if (size < 1 || size > (1 << 20) || Node::rankOf(x) < 3)
    n.refuse("has size " + Twine(size) + " and input " + n.text(x) + ", expected a positive size and [N, C, spatial...]");
  Dims dims = Node::dimsOf(x);
  Value square = n.unary(U::square, x);
  nn::AvgPoolOp::Properties p;
  p.window = n.i64s({size, 1});
  p.strides = n.i64s({1, 1});
  p.dilations = n.i64s({1, 1});
  p.pads_low = n.i64s({(size - 1) / 2, 0});
  p.pads_high = n.i64s({size / 2, 0});
  p.count_include_pad = n.builder().getUnitAttr();
  Dims flat{dims[0], dims[1], n.product(ArrayRef(dims).drop_front(2)), n.dim(1)};
  Value mean = n.reshape(n.make1<nn::AvgPoolOp>(n.reshape(square, flat), p), dims);
  Value base = n.add(n.mul(mean, n.like(n.attrFloat("alpha", 1e-4f), x)), n.like(n.attrFloat("bias", 1), x));
  n.set(0, n.div(x, n.binary(B::pow, base, n.like(n.attrFloat("beta", 0.75f), x))));
}

void meanVarianceNormalization(Node &n) {
  Value x = n.in(0);
  Ints axes = n.axes(n.attrInts("axes", {0, 2, 3}), Node::rankOf(x));
  Value centred = n.sub(x, n.reduce(R::mean, x, axes, true));
  Value deviation = n.unary(U::sqrt, n.reduce(R::mean, n.unary(U::square, centred), axes, true));
  n.set(0, n.div(centred, n.add(deviation, n.like(1e-9, x))));
}

/// A vector of norm 0 stays 0.
void lpNormalization(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.attrInt("axis", -1), Node::rankOf(x)), p = n.attrInt("p", 2);
  if (p != 1 && p != 2)
    n.refuse("attribute 'p' is " + Twine(p) + ", expected 1 or 2");
  Value norm = p == 1 ? n.reduce(R::sum, n.unary(U::abs, x), {axis}, true)
                      : n.unary(U::sqrt, n.reduce(R::sum, n.unary(U::square, x), {axis}, true));
  Value zero = n.like(0, x);
  n.set(0, n.select(n.compare(nn::CompareKind::eq, norm, zero), zero, n.div(x, norm)));
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// The negative log likelihood of log probabilities [N, C, d...] for targets [N, d...].
Value logLikelihoodLoss(Node &n, Value logProb, Value target, Value weight) {
  std::string reduction = n.attrString("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    n.refuse("attribute 'reduction' is '" + reduction + "', expected 'none', 'mean' or 'sum'");
  Dims classes(Node::rankOf(logProb), n.dim(1)), at = Node::dimsOf(target);
  if (Node::rankOf(logProb) < 2 || at.size() + 1 != classes.size())
    n.refuse("its inputs are " + n.text(logProb) + " and " + n.text(target) + ", expected [N, C, d...] and [N, d...]");
  classes[1] = Node::dimsOf(logProb)[1];
  at.insert(at.begin() + 1, n.dim(1));
  Value wide = n.cast(n.reshape(target, at), n.i64Type());
  Value hit = n.compare(nn::CompareKind::eq, n.iota(classes, 1, n.i64Type()), wide);
  if (n.hasAttr("ignore_index")) {
    Value keep = n.compare(nn::CompareKind::ne, wide, n.like(double(n.attrInt("ignore_index", 0)), wide));
    hit = n.binary(B::bit_and, hit, keep);
  }
  Value zero = n.like(0, logProb), one = n.like(1, logProb);
  Value perClass = weight ? perChannel(n, weight, Node::rankOf(logProb)) : one;
  Value weights = n.reduce(R::sum, n.select(hit, perClass, zero), {1}, false);
  Value picked = n.reduce(R::sum, n.select(hit, n.mul(logProb, perClass), zero), {1}, false);
  Value loss = n.unary(U::neg, picked);
  if (reduction == "none")
    return loss;
  Ints all;
  for (int64_t i = 0; i < Node::rankOf(loss); ++i)
    all.push_back(i);
  Value sum = n.reduce(R::sum, loss, all, false);
  return reduction == "sum" ? sum : n.div(sum, n.reduce(R::sum, weights, all, false));
}

void negativeLogLikelihoodLoss(Node &n) { n.set(0, logLikelihoodLoss(n, n.in(0), n.in(1), n.inOrNull(2))); }

void softmaxCrossEntropyLoss(Node &n) {
  Value x = n.in(0);
  if (Node::rankOf(x) < 2)
    n.refuse("its scores are " + n.text(x) + ", expected [N, C, d...]");
  Value logProb = softmaxAlong(n, x, 1, /*log=*/true);
  n.set(0, logLikelihoodLoss(n, logProb, n.in(1), n.inOrNull(2)));
  n.set(1, logProb);
}

constexpr OpRow rows[] = {
    {"", "Softmax", softmax},
    {"", "LogSoftmax", logSoftmax},
    {"", "Hardmax", hardmax},
    {"", "ReduceSum", reduce<R::sum, 13>},
    {"", "ReduceMean", reduce<R::mean, 18>},
    {"", "ReduceProd", reduce<R::prod, 18>},
    {"", "ReduceMax", reduce<R::max, 18>},
    {"", "ReduceMin", reduce<R::min, 18>},
    {"", "ReduceL1", reduceL1},
    {"", "ReduceL2", reduceL2},
    {"", "ReduceSumSquare", reduceSumSquare},
    {"", "ReduceLogSum", reduceLogSum},
    {"", "ReduceLogSumExp", reduceLogSumExp},
    {"", "ArgMax", argReduce<nn::ArgKind::max>},
    {"", "ArgMin", argReduce<nn::ArgKind::min>},
    {"", "CumSum", cumSum},
    {"", "TopK", topK},
    {"", "BatchNormalization", batchNormalization},
    {"", "InstanceNormalization", instanceNormalization},
    {"", "GroupNormalization", groupNormalization},
    {"", "LayerNormalization", layerNormalization},
    {"", "RMSNormalization", rmsNormalization},
    {"", "SimplifiedLayerNormalization", rmsNormalization},
    {"", "LRN", lrn},
    {"", "MeanVarianceNormalization", meanVarianceNormalization},
    {"", "LpNormalization", lpNormalization},
    {"", "NegativeLogLikelihoodLoss", negativeLogLikelihoodLoss},
    {"", "SoftmaxCrossEntropyLoss", softmaxCrossEntropyLoss},
};

} // namespace

ArrayRef<OpRow> normRows() { return rows; }

} // namespace ajour::onnx_import
