//===- Conv.cpp - ONNX convolutions and pooling ------------------------------------===//
#include "Conv.h"

using namespace mlir;

namespace ajour::onnx_import {

Value toChannelsLast(Node &n, Value x) {
  Ints perm{0};
  for (int64_t i = 2; i < Node::rankOf(x); ++i)
    perm.push_back(i);
  perm.push_back(1);
  return n.transpose(x, perm);
}

Value toChannelsFirst(Node &n, Value x) {
  int64_t rank = Node::rankOf(x);
  Ints perm{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i)
    perm.push_back(i);
  return n.transpose(x, perm);
}

/// The number of spatial dimensions; refuses ranks without any or with more than nn has.
static int64_t spatialRank(Node &n, Value x) {
  int64_t rank = Node::rankOf(x);
  if (rank < 3 || rank > 5)
    n.refuse("its input is " + n.text(x) + ", expected rank 3 to 5 (1 to 3 spatial dimensions)");
  return rank - 2;
}

/// A list attribute with one value for each spatial dimension.
static Ints spatialAttr(Node &n, StringRef name, int64_t spatial, const Ints &otherwise, int64_t lowest,
                        int64_t factor = 1) {
  Ints values = n.attrInts(name, otherwise);
  if (int64_t(values.size()) != spatial * factor)
    n.refuse("attribute '" + name + "' has " + Twine(values.size()) + " values, expected " + Twine(spatial * factor));
  for (int64_t value : values)
    if (value < lowest || value > (1 << 30))
      n.refuse("attribute '" + name + "' holds " + Twine(value) + ", expected at least " + Twine(lowest));
  return values;
}

/// Splits a total of padding as auto_pad says.
static void splitPads(bool upper, int64_t total, int64_t &low, int64_t &high) {
  total = std::max<int64_t>(total, 0);
  low = upper ? total / 2 : total - total / 2;
  high = total - low;
}

static std::string autoPad(Node &n) {
  std::string mode = n.attrString("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER" && !mode.empty())
    n.refuse("attribute 'auto_pad' is '" + mode + "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  return mode.empty() ? "NOTSET" : mode;
}

Window readWindow(Node &n, Value x, const Ints &kernel) {
  int64_t spatial = spatialRank(n, x);
  Window w;
  if (kernel.empty() && !n.hasAttr("kernel_shape"))
    n.refuse("needs attribute 'kernel_shape', which is missing");
  w.size = spatialAttr(n, "kernel_shape", spatial, kernel, 1);
  if (!kernel.empty() && w.size != kernel)
    n.refuse("attribute 'kernel_shape' does not match its filter");
  w.strides = spatialAttr(n, "strides", spatial, Ints(spatial, 1), 1);
  w.dilations = spatialAttr(n, "dilations", spatial, Ints(spatial, 1), 1);
  Ints pads = spatialAttr(n, "pads", spatial, Ints(2 * spatial, 0), 0, 2);
  w.low.assign(pads.begin(), pads.begin() + spatial);
  w.high.assign(pads.begin() + spatial, pads.end());
  std::string mode = autoPad(n);
  if (mode == "NOTSET")
    return w;
  for (int64_t i = 0; i < spatial; ++i) {
    w.low[i] = w.high[i] = 0;
    if (mode == "VALID")
      continue;
    int64_t extent = (w.size[i] - 1) * w.dilations[i] + 1, total = extent - 1;
    if (w.strides[i] > 1) {
      int64_t in = n.staticDims(x, i + 2, i + 3, "auto_pad with a stride")[0];
      total = (llvm::divideCeil(in, w.strides[i]) - 1) * w.strides[i] + extent - in;
    }
    splitPads(mode == "SAME_UPPER", total, w.low[i], w.high[i]);
  }
  return w;
}

template <typename P> static void setWindow(Node &n, P &p, const Window &w) {
  p.strides = n.i64s(w.strides);
  p.dilations = n.i64s(w.dilations);
  p.pads_low = n.i64s(w.low);
  p.pads_high = n.i64s(w.high);
}

Value convolveLast(Node &n, Value x, Value filter, Value bias, int32_t lhsZeroPoint, ArrayRef<int32_t> rhsZeroPoints) {
  int64_t spatial = spatialRank(n, x);
  if (Node::rankOf(filter) != spatial + 2)
    n.refuse("its filter is " + n.text(filter) + " for input " + n.text(x) + ", expected equal ranks");
  Window w = readWindow(n, x, n.staticDims(filter, 2, spatial + 2, "a filter"));
  nn::ConvOp::Properties p;
  setWindow(n, p, w);
  p.groups = n.i64(n.attrInt("group", 1));
  p.lhs_zero_point = n.builder().getI32IntegerAttr(lhsZeroPoint);
  p.rhs_zero_points = n.builder().getDenseI32ArrayAttr(rhsZeroPoints);
  SmallVector<Value> operands{toChannelsLast(n, x), toChannelsLast(n, filter)};
  if (bias)
    operands.push_back(bias);
  return n.make1<nn::ConvOp>(operands, p);
}

namespace {

void conv(Node &n) { n.set(0, toChannelsFirst(n, convolveLast(n, n.in(0), n.in(1), n.inOrNull(2)))); }

/// W is [C, O/groups, window...]; nn takes [O, window..., C/groups].
Value transposedFilter(Node &n, Value filter, int64_t groups) {
  int64_t rank = Node::rankOf(filter);
  Ints sizes = n.staticDims(filter, 0, rank, "a filter");
  if (groups < 1 || sizes[0] % groups)
    n.refuse("has " + Twine(groups) + " groups for a filter " + n.text(filter));
  Ints grouped{groups, sizes[0] / groups}, perm{0, 2}, out{groups * sizes[1]};
  grouped.insert(grouped.end(), sizes.begin() + 1, sizes.end());
  for (int64_t i = 3; i <= rank; ++i)
    perm.push_back(i);
  perm.push_back(1);
  out.insert(out.end(), sizes.begin() + 2, sizes.end());
  out.push_back(sizes[0] / groups);
  return n.reshape(n.transpose(n.reshape(filter, grouped), perm), out);
}

/// Sets the padding of a transposed convolution from output_shape or auto_pad. With output_shape alone the odd
/// element of padding goes to the end, as with SAME_UPPER.
void transposedPads(Node &n, Value x, Window &w, Ints &outputPads) {
  int64_t spatial = Node::rankOf(x) - 2;
  std::string mode = autoPad(n);
  Ints wanted = n.attrInts("output_shape");
  if (wanted.size() == size_t(spatial) + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && int64_t(wanted.size()) != spatial)
    n.refuse("attribute 'output_shape' has " + Twine(wanted.size()) + " values, expected " + Twine(spatial));
  for (int64_t size : wanted)
    if (size < 1 || size > (int64_t(1) << 31))
      n.refuse("attribute 'output_shape' holds " + Twine(size) + ", expected at least 1");
  if (wanted.empty() && !StringRef(mode).starts_with("SAME"))
    return;
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t extent = (w.size[i] - 1) * w.dilations[i] + 1, total;
    if (wanted.empty()) {
      total = extent + outputPads[i] - w.strides[i]; // the result has stride times the input's size
    } else {
      int64_t in = n.staticDims(x, i + 2, i + 3, "output_shape")[0];
      total = w.strides[i] * (in - 1) + outputPads[i] + extent - wanted[i];
    }
    if (total < 0)
      outputPads[i] -= total;
    splitPads(mode != "SAME_LOWER", total, w.low[i], w.high[i]);
  }
}

void convTranspose(Node &n) {
  Value x = n.in(0), filter = n.in(1);
  int64_t spatial = spatialRank(n, x), groups = n.attrInt("group", 1);
  if (Node::rankOf(filter) != spatial + 2)
    n.refuse("its filter is " + n.text(filter) + " for input " + n.text(x) + ", expected equal ranks");
  Window w;
  w.size = spatialAttr(n, "kernel_shape", spatial, n.staticDims(filter, 2, spatial + 2, "a filter"), 1);
  w.strides = spatialAttr(n, "strides", spatial, Ints(spatial, 1), 1);
  w.dilations = spatialAttr(n, "dilations", spatial, Ints(spatial, 1), 1);
  Ints pads = spatialAttr(n, "pads", spatial, Ints(2 * spatial, 0), 0, 2);
  w.low.assign(pads.begin(), pads.begin() + spatial);
  w.high.assign(pads.begin() + spatial, pads.end());
  Ints outputPads = spatialAttr(n, "output_padding", spatial, Ints(spatial, 0), 0);
  transposedPads(n, x, w, outputPads);
  nn::ConvTransposeOp::Properties p;
  setWindow(n, p, w);
  p.output_pads = n.i64s(outputPads);
  p.groups = n.i64(groups);
  SmallVector<Value> operands{toChannelsLast(n, x), transposedFilter(n, filter, groups)};
  if (n.has(2))
    operands.push_back(n.in(2));
  n.set(0, toChannelsFirst(n, n.make1<nn::ConvTransposeOp>(operands, p)));
}

template <typename Op> Value pool(Node &n, Value x, const Window &w, bool ceilMode, bool countPad) {
  typename Op::Properties p;
  setWindow(n, p, w);
  p.window = n.i64s(w.size);
  if (ceilMode)
    p.ceil_mode = n.builder().getUnitAttr();
  if constexpr (std::is_same_v<Op, nn::AvgPoolOp>)
    if (countPad)
      p.count_include_pad = n.builder().getUnitAttr();
  return toChannelsFirst(n, n.make1<Op>(toChannelsLast(n, x), p));
}

/// SAME padding fixes the size, so rounding up changes nothing there.
bool ceilMode(Node &n) { return n.attrInt("ceil_mode", 0) && !StringRef(autoPad(n)).starts_with("SAME"); }

void maxPool(Node &n) {
  if (n.wants(1))
    n.refuse("its output 'Indices' is used, which is not supported");
  Value x = n.in(0);
  n.set(0, pool<nn::MaxPoolOp>(n, x, readWindow(n, x, {}), ceilMode(n), false));
}

void averagePool(Node &n) {
  Value x = n.in(0);
  n.set(0, pool<nn::AvgPoolOp>(n, x, readWindow(n, x, {}), ceilMode(n), n.attrInt("count_include_pad", 0)));
}

/// |x|^p for a whole p.
Value absPower(Node &n, Value x, int64_t p) {
  if (p == 2)
    return n.unary(nn::UnaryKind::square, x);
  Value a = n.unary(nn::UnaryKind::abs, x);
  return p == 1 ? a : n.binary(nn::BinaryKind::pow, a, n.like(double(p), x));
}

Value root(Node &n, Value x, int64_t p) {
  if (p == 2)
    return n.unary(nn::UnaryKind::sqrt, x);
  return p == 1 ? x : n.binary(nn::BinaryKind::pow, x, n.like(1.0 / double(p), x));
}

int64_t lpOrder(Node &n) {
  int64_t p = n.attrInt("p", 2);
  if (p < 1)
    n.refuse("attribute 'p' is " + Twine(p) + ", expected at least 1");
  return p;
}

void lpPool(Node &n) {
  Value x = n.in(0);
  if (ceilMode(n))
    n.refuse("attribute 'ceil_mode' is 1, only 0 is supported for this operator");
  int64_t p = lpOrder(n);
  Window w = readWindow(n, x, {});
  int64_t count = 1;
  for (int64_t size : w.size)
    count *= size;
  Value mean = pool<nn::AvgPoolOp>(n, absPower(n, x, p), w, false, /*countPad=*/true);
  n.set(0, root(n, n.mul(mean, n.like(double(count), mean)), p));
}

Ints spatialAxes(Node &n, Value x) {
  if (Node::rankOf(x) < 2)
    n.refuse("its input is " + n.text(x) + ", expected [N, C, spatial...]");
  Ints axes;
  for (int64_t i = 2; i < Node::rankOf(x); ++i)
    axes.push_back(i);
  return axes;
}

template <nn::ReduceKind kind> void globalPool(Node &n) {
  Value x = n.in(0);
  n.set(0, n.reduce(kind, x, spatialAxes(n, x), /*keepDims=*/true));
}

void globalLpPool(Node &n) {
  Value x = n.in(0);
  int64_t p = lpOrder(n);
  n.set(0, root(n, n.reduce(nn::ReduceKind::sum, absPower(n, x, p), spatialAxes(n, x), true), p));
}

/// Scatters the values into zeros at the positions that MaxPool reported.
void maxUnpool(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  int64_t rank = Node::rankOf(x), spatial = spatialRank(n, x);
  Ints in = n.staticDims(x, 0, rank, "this operator"), out;
  Window w = readWindow(n, x, {});
  out = {in[0], in[1]};
  for (int64_t i = 0; i < spatial; ++i)
    out.push_back((in[i + 2] - 1) * w.strides[i] + w.size[i] - w.low[i] - w.high[i]);
  // Exporters and the format's own test disagree on what indices count when output_shape differs.
  if (n.has(2) && n.ints(2, "output_shape") != out)
    n.refuse("its output_shape differs from the shape that its window gives, " + n.text(n.dimsFrom(out)) +
             ", and then its indices have no agreed meaning");
  int64_t total = checkedElements(out), given = checkedElements(in);
  if (total < 0 || Node::dimsOf(indices) != Node::dimsOf(x))
    n.refuse("its indices are " + n.text(indices) + " for input " + n.text(x));
  nn::ScatterElementsOp::Properties p;
  p.axis = n.i64(0);
  Value zeros = n.broadcast(n.like(0, x), {n.dim(total)});
  n.set(0, n.reshape(n.make1<nn::ScatterElementsOp>({zeros, n.reshape(indices, {given}), n.reshape(x, {given})}, p), out));
}

constexpr OpRow rows[] = {
    {"", "Conv", conv},
    {"", "ConvTranspose", convTranspose},
    {"", "MaxPool", maxPool},
    {"", "AveragePool", averagePool},
    {"", "LpPool", lpPool},
    {"", "GlobalAveragePool", globalPool<nn::ReduceKind::mean>},
    {"", "GlobalMaxPool", globalPool<nn::ReduceKind::max>},
    {"", "GlobalLpPool", globalLpPool},
    {"", "MaxUnpool", maxUnpool},
};

} // namespace

ArrayRef<OpRow> convRows() { return rows; }

} // namespace ajour::onnx_import
