//===- FloatProducts.cpp - products in f32, one after the other --------------===//
//
// Where a result is rounded to 8 bits, the order of a sum in f32 may decide a step, and later layers amplify it. So products
// under ImportOptions::floatProducts have an order: channels outermost, then rows and columns of the window; each product and each
// sum is rounded to f32, and the bias comes last. nn.conv leaves the order open; a reduction along one axis does not.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

/// For each tap of a window and each place of the output the place in the padded input.
static Value tapPlaces(Node &node, int64_t taps, int64_t places, int64_t stride, int64_t dilation) {
  std::vector<int64_t> index;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t place = 0; place < places; ++place)
      index.push_back(place * stride + tap * dilation);
  if (failed(node.spend(taps * places, sizeof(int64_t))))
    return {};
  return node.constant(RankedTensorType::get({taps, places}, node.b.getI64Type()),
                       ArrayRef(reinterpret_cast<const char *>(index.data()), index.size() * sizeof(int64_t)));
}

/// The sum over the first axis of lhs * rhs.
static Value sumInOrder(Node &node, Value lhs, Value rhs) {
  return node.reduce(ReduceKind::sum, node.binary(BinaryKind::mul, lhs, rhs), {0}, false);
}

Value matmulInOrder(Node &node, Value rows, Value weights) {
  AffineExpr one = node.b.getAffineConstantExpr(1);
  Dims row = getDims(rows), weight = getDims(weights);
  return sumInOrder(node, node.reshape(node.transpose(rows, {1, 0}), {row[1], row[0], one}),
                    node.reshape(node.transpose(weights, {1, 0}), {weight[1], one, weight[0]}));
}

Value convInOrder(Node &node, const ConvOp::Properties &p, Value input, Value filter) {
  auto expr = [&](int64_t value) { return node.b.getAffineConstantExpr(value); };
  Dims in = getDims(input), taken = getDims(filter); // [N, H, W, C], [O, kh, kw, I]
  ArrayRef<int64_t> low = p.pads_low.asArrayRef(), high = p.pads_high.asArrayRef();
  int64_t groups = p.groups.getInt(), outputs = *getConstant(taken[0]), channels = *getConstant(taken[3]), taps[2], places[2];
  Value x = input;
  if (llvm::any_of(low, [](int64_t n) { return n != 0; }) || llvm::any_of(high, [](int64_t n) { return n != 0; }))
    x = node.pad(x, Value(), {0, low[0], low[1], 0}, {0, high[0], high[1], 0});
  // [N, kh, H', kw, W', C]
  for (int d = 0; d < 2; ++d) {
    taps[d] = *getConstant(taken[d + 1]);
    int64_t stride = p.strides.asArrayRef()[d], dilation = p.dilations.asArrayRef()[d];
    places[d] = (*getConstant(in[d + 1]) + low[d] + high[d] - dilation * (taps[d] - 1) - 1) / stride + 1;
    if (places[d] < 1)
      return node.error() << "the window is larger than the padded input", Value();
    GatherOp::Properties gather;
    gather.setAxis(node.b.getI64IntegerAttr(d == 0 ? 1 : 3));
    x = node.create<GatherOp>(gather, {x, tapPlaces(node, taps[d], places[d], stride, dilation)});
  }
  AffineExpr kh = expr(taps[0]), kw = expr(taps[1]), h = expr(places[0]), w = expr(places[1]), i = expr(channels), g = expr(groups);
  AffineExpr one = expr(1), perGroup = expr(outputs / groups), sums = kh * kw * i;
  x = node.transpose(node.reshape(x, {in[0], kh, h, kw, w, g, i}), {6, 1, 3, 0, 2, 4, 5});
  Value weights = node.transpose(node.reshape(filter, {g, perGroup, kh, kw, i}), {4, 2, 3, 0, 1});
  // [taps, N, H', W', g, O / g]; dimensions of 1 at the end would make slow loops.
  Dims left{sums, in[0], h, w}, right{sums, one, one, one};
  bool both = groups > 1 && outputs > groups;
  left.append(both ? Dims{g, one} : Dims{groups > 1 ? g : one});
  right.append(both ? Dims{g, perGroup} : Dims{expr(outputs)});
  return node.reshape(sumInOrder(node, node.reshape(x, left), node.reshape(weights, right)), {in[0], h, w, expr(outputs)});
}

} // namespace ajour::tflite
