//===- Shape.cpp - ONNX operators that move data -----------------------------------===//
#include "Node.h"

#include <limits>

using namespace mlir;

namespace ajour::onnx_import {

namespace {

//===----------------------------------------------------------------------===//
// Reshape and its kin
//===----------------------------------------------------------------------===//

/// The quotient of two products of dimensions, cancelling equal factors; nothing when it is not whole.
std::optional<AffineExpr> divideDims(Node &n, Dims total, Dims known) {
  int64_t numerator = 1, denominator = 1;
  Dims rest;
  for (AffineExpr d : known) {
    if (std::optional<int64_t> c = nn::getConstant(d)) {
      if (llvm::MulOverflow(denominator, *c, denominator))
        return std::nullopt;
    } else if (auto *it = llvm::find(total, d); it != total.end()) {
      total.erase(it);
    } else {
      rest.push_back(d);
    }
  }
  Dims symbolic;
  for (AffineExpr d : total) {
    if (std::optional<int64_t> c = nn::getConstant(d)) {
      if (llvm::MulOverflow(numerator, *c, numerator))
        return std::nullopt;
    } else {
      symbolic.push_back(d);
    }
  }
  if (denominator == 0)
    return std::nullopt;
  if (rest.empty() && numerator % denominator == 0)
    return n.product(symbolic) * (numerator / denominator);
  if (symbolic.empty() && rest.empty())
    return std::nullopt;
  if (!rest.empty())
    return n.product(total).floorDiv(n.product(known));
  int64_t common = std::gcd(numerator, denominator);
  return (n.product(symbolic) * (numerator / common)).floorDiv(denominator / common);
}

void reshape(Node &n) {
  Value x = n.in(0);
  Dims in = Node::dimsOf(x), target = n.exprs(1, "shape");
  bool allowZero = n.opset >= 14 && n.attrInt("allowzero", 0);
  std::optional<size_t> inferred;
  Dims known;
  for (size_t i = 0; i < target.size(); ++i) {
    std::optional<int64_t> size = nn::getConstant(target[i]);
    if (size == 0 && !allowZero) {
      if (i >= in.size())
        n.refuse("its shape copies dimension " + Twine(i) + " of " + n.text(x) + ", which has none");
      target[i] = in[i];
    } else if (size == -1) {
      if (inferred)
        n.refuse("its shape " + n.text(target) + " holds -1 twice");
      inferred = i;
      continue;
    } else if (size && *size < -1) {
      n.refuse("its shape " + n.text(target) + " holds a negative size");
    }
    known.push_back(target[i]);
  }
  if (inferred) {
    std::optional<AffineExpr> size = divideDims(n, in, known);
    if (!size)
      n.refuse("its shape " + n.text(target) + " does not fit " + n.text(x) + " with a whole number for -1");
    target[*inferred] = *size;
  }
  n.set(0, n.reshape(x, target), n.onnxType(0));
}

void flatten(Node &n) {
  Value x = n.in(0);
  Dims dims = Node::dimsOf(x);
  int64_t rank = int64_t(dims.size()), axis = n.attrInt("axis", 1);
  if (axis != rank)
    axis = n.axis(axis, rank);
  n.set(0, n.reshape(x, {n.product(ArrayRef(dims).take_front(axis)), n.product(ArrayRef(dims).drop_front(axis))}));
}

/// axes: an attribute before opset 13, an input since.
std::optional<Ints> squeezeAxes(Node &n) {
  if (n.opset < 13)
    return n.hasAttr("axes") ? std::optional(n.attrInts("axes")) : std::nullopt;
  return n.has(1) ? std::optional(n.ints(1, "axes")) : std::nullopt;
}

void squeeze(Node &n) {
  Value x = n.in(0);
  Dims dims = Node::dimsOf(x), out;
  std::optional<Ints> given = squeezeAxes(n);
  Ints axes = given ? n.axes(*given, Node::rankOf(x)) : Ints();
  for (auto [i, d] : llvm::enumerate(dims)) {
    bool one = nn::getConstant(d) == 1;
    bool named = llvm::is_contained(axes, int64_t(i));
    if (named && !one)
      n.refuse("dimension " + Twine(i) + " of " + n.text(x) + " is not 1");
    if (!(given ? named : one))
      out.push_back(d);
  }
  n.set(0, n.reshape(x, out), n.onnxType(0));
}

void unsqueeze(Node &n) {
  Value x = n.in(0);
  std::optional<Ints> given = squeezeAxes(n);
  if (!given)
    n.refuse("needs axes, which are missing");
  int64_t rank = Node::rankOf(x) + int64_t(given->size());
  Dims dims = Node::dimsOf(x);
  for (int64_t axis : n.axes(*given, rank))
    dims.insert(dims.begin() + axis, n.dim(1));
  n.set(0, n.reshape(x, dims), n.onnxType(0));
}

void transpose(Node &n) {
  Value x = n.in(0);
  Ints reversed;
  for (int64_t i = Node::rankOf(x); i-- > 0;)
    reversed.push_back(i);
  n.set(0, n.transpose(x, n.attrInts("perm", reversed)), n.onnxType(0));
}

void expand(Node &n) {
  Value x = n.in(0);
  Dims target = n.exprs(1, "shape");
  for (AffineExpr d : target)
    if (nn::getConstant(d).value_or(0) < 0)
      n.refuse("its shape " + n.text(target) + " holds a negative size");
  std::optional<Dims> joined = nn::broadcastDims(Node::dimsOf(x), target);
  if (!joined)
    n.refuse("expands " + n.text(x) + " to " + n.text(target) + ", which does not broadcast");
  n.set(0, n.broadcast(x, *joined));
}

/// Each dimension is split into (repeats, size); the repeated ones are broadcast.
void tile(Node &n) {
  Value x = n.in(0);
  Dims repeats = n.exprs(1, "repeats"), dims = Node::dimsOf(x), split, wide, out;
  if (repeats.size() != dims.size())
    n.refuse("has " + Twine(repeats.size()) + " repeats for " + n.text(x));
  for (auto [repeat, d] : llvm::zip_equal(repeats, dims)) {
    if (nn::getConstant(repeat).value_or(0) < 0)
      n.refuse("its repeats " + n.text(repeats) + " hold a negative number");
    out.push_back(d * repeat);
    if (nn::getConstant(repeat) != 1) {
      split.push_back(n.dim(1));
      wide.push_back(repeat);
    }
    split.push_back(d);
    wide.push_back(d);
  }
  n.set(0, n.reshape(n.broadcast(n.reshape(x, split), wide), out));
}

//===----------------------------------------------------------------------===//
// Concat, Split, Slice, Pad
//===----------------------------------------------------------------------===//

void concat(Node &n) {
  SmallVector<Value> values;
  for (size_t i = 0; i < n.numInputs(); ++i)
    values.push_back(n.in(i));
  if (values.empty())
    n.refuse("has no inputs");
  int64_t axis = n.axis(n.attrInt("axis"), Node::rankOf(values[0]));
  // Empty tensors add nothing, and an empty list of another rank stands for "none" in some exports.
  n.set(0, n.concat(values, axis));
}

void split(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.attrInt("axis", 0), Node::rankOf(x));
  Ints sizes;
  if (n.opset < 13)
    sizes = n.attrInts("split");
  else if (n.has(1))
    sizes = n.ints(1, "split");
  int64_t total = n.staticDims(x, axis, axis + 1, "a split dimension")[0];
  int64_t count = int64_t(n.numOutputs());
  if (sizes.empty()) {
    if (n.opset >= 18 && n.attrInt("num_outputs", count) != count)
      n.refuse("attribute 'num_outputs' is " + Twine(n.attrInt("num_outputs", 0)) + " for " + Twine(count) + " outputs");
    if (n.opset < 18 && total % count)
      n.refuse("splits " + Twine(total) + " into " + Twine(count) + " equal parts");
    int64_t part = llvm::divideCeil(total, count);
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::max<int64_t>(0, std::min(part, total - i * part)));
  }
  int64_t sum = 0;
  for (int64_t size : sizes)
    sum = size < 0 || size > total ? total + 1 : std::min(sum + size, total + 1);
  if (int64_t(sizes.size()) != count || sum != total)
    n.refuse("has " + Twine(sizes.size()) + " sizes for " + Twine(count) + " outputs, expected sizes that sum to " +
             Twine(total));
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    n.set(i, n.sliceAxis(x, axis, start, n.dim(size)));
    start += size;
  }
}

/// Start, step and size of one dimension of Slice.
struct Range {
  int64_t start, step;
  AffineExpr size;
};

/// Slice's rule on a dimension of known size; ends beyond it are cut.
Range sliceKnown(Node &n, int64_t start, int64_t end, int64_t step, int64_t size) {
  // Steps beyond the size read one element, whatever they are.
  step = std::clamp(step, -std::max<int64_t>(size, 1), std::max<int64_t>(size, 1));
  auto fromEnd = [&](int64_t v) { return v < 0 ? (v < -size ? -1 - size : v) + size : v; };
  start = fromEnd(start);
  end = fromEnd(end);
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
    return {count ? start : 0, step, n.dim(count)};
  }
  start = std::clamp<int64_t>(start, -1, size - 1);
  end = std::clamp<int64_t>(end, -1, size - 1);
  int64_t count = start > end ? (start - end - 1) / -step + 1 : 0;
  return {count ? start : 0, step, n.dim(count)};
}

/// Slice's rule on a symbolic dimension, where the bounds allow it: a start from the front, an end that is
/// symbolic, open, or counted from the end. Sizes are taken to be large enough for the bounds that the model
/// names.
Range sliceSymbolic(Node &n, AffineExpr startExpr, AffineExpr endExpr, int64_t step, AffineExpr size, Value x) {
  std::optional<int64_t> start = nn::getConstant(startExpr), end = nn::getConstant(endExpr);
  if (!start || *start < 0 || step < 1 || (end && *end >= 0 && *end < (int64_t(1) << 31) - 1))
    n.refuse("slices a symbolic dimension of " + n.text(x) + " from " + n.text({startExpr}) + " to " +
             n.text({endExpr}) + ", expected a start from the front and an end that is open, negative or an expression "
             "of the sizes; fix the dimension with --dim NAME=SIZE");
  AffineExpr stop = !end ? endExpr : *end < 0 ? size + *end : size;
  AffineExpr count = stop - *start;
  if (step > 1)
    count = (count + (step - 1)).floorDiv(step);
  return {*start, step, count};
}

void slice(Node &n) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x);
  Dims starts, ends;
  Ints axes, steps;
  if (n.opset < 10) {
    starts = n.dimsFrom(n.attrInts("starts"));
    ends = n.dimsFrom(n.attrInts("ends"));
    axes = n.attrInts("axes");
  } else {
    starts = n.exprs(1, "starts");
    ends = n.exprs(2, "ends");
    if (n.has(3))
      axes = n.ints(3, "axes");
    if (n.has(4))
      steps = n.ints(4, "steps");
  }
  if (axes.empty())
    for (size_t i = 0; i < starts.size(); ++i)
      axes.push_back(int64_t(i));
  if (steps.empty())
    steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    n.refuse("has " + Twine(starts.size()) + " starts, " + Twine(ends.size()) + " ends, " + Twine(axes.size()) +
             " axes and " + Twine(steps.size()) + " steps, expected as many of each");
  for (int64_t &axis : axes)
    axis = n.axis(axis, rank);
  Ints sorted = n.axes(axes, rank);
  Dims dims = Node::dimsOf(x);
  Ints firsts(rank, 0), strides(rank, 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0)
      n.refuse("has a step of 0");
    // Beyond every size a step reaches no second element; the lowest has no positive counterpart.
    steps[i] = std::clamp<int64_t>(steps[i], -mostElements, mostElements);
    AffineExpr &d = dims[axes[i]];
    std::optional<int64_t> size = nn::getConstant(d), start = nn::getConstant(starts[i]), end = nn::getConstant(ends[i]);
    Range range = size && start && end ? sliceKnown(n, *start, *end, steps[i], *size)
                                       : sliceSymbolic(n, starts[i], ends[i], steps[i], d, x);
    firsts[axes[i]] = range.start;
    strides[axes[i]] = range.step;
    d = range.size;
  }
  n.set(0, n.slice(x, firsts, strides, dims));
}

nn::PadMode padMode(Node &n) {
  std::string mode = n.attrString("mode", "constant");
  if (mode == "constant")
    return nn::PadMode::constant;
  if (mode == "reflect")
    return nn::PadMode::reflect;
  if (mode == "edge")
    return nn::PadMode::edge;
  if (mode == "wrap")
    return nn::PadMode::wrap;
  n.refuse("attribute 'mode' is '" + mode + "', expected 'constant', 'reflect', 'edge' or 'wrap'");
}

void pad(Node &n) {
  Value x = n.in(0), value;
  int64_t rank = Node::rankOf(x);
  nn::PadMode mode = padMode(n);
  Ints pads, axes;
  if (n.opset < 11) {
    pads = n.attrInts("pads");
    value = n.like(n.attrFloat("value", 0), x);
  } else {
    pads = n.ints(1, "pads");
    value = n.inOrNull(2);
    if (n.has(3))
      axes = n.ints(3, "axes");
  }
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i)
      axes.push_back(i);
  if (pads.size() != 2 * axes.size())
    n.refuse("has " + Twine(pads.size()) + " pads for " + Twine(axes.size()) + " axes, expected two for each");
  Ints low(rank, 0), high(rank, 0);
  n.axes(axes, rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = n.axis(axes[i], rank);
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
    constexpr int64_t most = int64_t(1) << 31;
    if (std::min(low[axis], high[axis]) < -most || std::max(low[axis], high[axis]) > most)
      n.refuse("has pads of " + Twine(low[axis]) + " and " + Twine(high[axis]));
  }
  if (mode != nn::PadMode::constant)
    value = {};
  else if (value)
    value = n.reshape(value, ArrayRef<int64_t>());
  n.set(0, n.pad(x, low, high, mode, value));
}

void centerCropPad(Node &n) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x);
  Ints shape = n.ints(1, "shape"), axes = n.attrInts("axes");
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i)
      axes.push_back(i);
  if (axes.size() != shape.size())
    n.refuse("has " + Twine(shape.size()) + " sizes for " + Twine(axes.size()) + " axes");
  Ints low(rank, 0), high(rank, 0);
  for (auto [value, size] : llvm::zip_equal(axes, shape)) {
    int64_t axis = n.axis(value, rank), in = n.staticDims(x, axis, axis + 1, "a cropped dimension")[0];
    if (size < 0 || size > (int64_t(1) << 31))
      n.refuse("has size " + Twine(size));
    if (size >= in) {
      low[axis] = (size - in) / 2;
      high[axis] = size - in - low[axis];
    } else {
      int64_t start = (in - size) / 2;
      low[axis] = -start;
      high[axis] = start + size - in;
    }
  }
  n.set(0, n.pad(x, low, high));
}

void depthToSpace(Node &n) {
  Value x = n.in(0);
  int64_t block = n.attrInt("blocksize");
  std::string mode = n.attrString("mode", "DCR");
  if (Node::rankOf(x) != 4 || block < 1 || block > (1 << 20) || (mode != "DCR" && mode != "CRD"))
    n.refuse("has block " + Twine(block) + ", mode '" + mode + "' and input " + n.text(x) +
             ", expected rank 4 and mode 'DCR' or 'CRD'");
  Dims d = Node::dimsOf(x);
  int64_t channels = n.staticDims(x, 1, 2, "this operator")[0];
  if (channels % (block * block))
    n.refuse("has block " + Twine(block) + " for " + Twine(channels) + " channels");
  AffineExpr b = n.dim(block), c = n.dim(channels / (block * block));
  Value split = mode == "DCR" ? n.transpose(n.reshape(x, {d[0], b, b, c, d[2], d[3]}), {0, 3, 4, 1, 5, 2})
                              : n.transpose(n.reshape(x, {d[0], c, b, b, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  n.set(0, n.reshape(split, {d[0], c, d[2] * block, d[3] * block}));
}

void spaceToDepth(Node &n) {
  Value x = n.in(0);
  int64_t block = n.attrInt("blocksize");
  if (Node::rankOf(x) != 4 || block < 1 || block > (1 << 20))
    n.refuse("has block " + Twine(block) + " and input " + n.text(x) + ", expected rank 4");
  Dims d = Node::dimsOf(x);
  Ints hw = n.staticDims(x, 2, 4, "this operator");
  if (hw[0] % block || hw[1] % block)
    n.refuse("has block " + Twine(block) + " for input " + n.text(x));
  AffineExpr b = n.dim(block), h = n.dim(hw[0] / block), w = n.dim(hw[1] / block);
  Value split = n.transpose(n.reshape(x, {d[0], d[1], h, b, w, b}), {0, 3, 5, 1, 2, 4});
  n.set(0, n.reshape(split, {d[0], d[1] * (block * block), h, w}));
}

//===----------------------------------------------------------------------===//
// Shapes as values
//===----------------------------------------------------------------------===//

void shape(Node &n) {
  Dims dims = Node::dimsOf(n.in(0));
  int64_t rank = int64_t(dims.size());
  auto position = [&](const char *attr, int64_t otherwise) {
    int64_t value = n.opset >= 15 ? n.attrInt(attr, otherwise) : otherwise;
    return std::clamp<int64_t>(value < 0 ? std::max(value, -rank) + rank : value, 0, rank);
  };
  int64_t start = position("start", 0), end = position("end", rank);
  n.setExprs(0, end > start ? Dims(dims.begin() + start, dims.begin() + end) : Dims(), false, n.i64Type());
}

void size(Node &n) { n.setExprs(0, {n.product(Node::dimsOf(n.in(0)))}, true, n.i64Type()); }

void constantOfShape(Node &n) {
  Dims dims = n.exprs(0, "shape");
  for (AffineExpr d : dims)
    if (nn::getConstant(d).value_or(0) < 0)
      n.refuse("its shape " + n.text(dims) + " holds a negative size");
  Value value = n.attrTensor("value");
  if (!value)
    value = n.scalar(0, n.f32());
  if (Node::typeOf(value).getNumElements() != 1)
    n.refuse("attribute 'value' is " + n.text(value) + ", expected one element");
  n.set(0, n.broadcast(n.reshape(value, ArrayRef<int64_t>()), dims));
}

/// start + i * delta.
void range(Node &n) {
  Type element = Node::elementOf(n.in(0));
  const char *const what[] = {"start", "limit", "delta"};
  for (size_t i = 0; i < 3; ++i)
    if (!n.isConstant(i) && !n.entry(i).exprs)
      n.refuseRuntime(i, what[i]);
  std::optional<Dims> start = n.exprsOrNone(0), limit = n.exprsOrNone(1), delta = n.exprsOrNone(2);
  AffineExpr count;
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1) {
    std::optional<int64_t> step = nn::getConstant((*delta)[0]), first = nn::getConstant((*start)[0]),
                           last = nn::getConstant((*limit)[0]);
    if (!step || *step == 0 || *step == std::numeric_limits<int64_t>::min())
      n.refuse("has a step of 0 or a symbolic one, expected a number");
    if (first && last) {
      int64_t span = 0;
      if (llvm::SubOverflow(*last, *first, span) || span == std::numeric_limits<int64_t>::min())
        n.refuse("counts from " + Twine(*first) + " to " + Twine(*last));
      int64_t magnitude = std::abs(*step), distance = *step > 0 ? span : -span;
      count = n.dim(distance > 0 ? (distance - 1) / magnitude + 1 : 0);
    } else {
      AffineExpr span = *step > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
      count = (span + (std::abs(*step) - 1)).floorDiv(std::abs(*step));
    }
  } else {
    std::vector<float> a = n.floats(0, "start"), b = n.floats(1, "limit"), c = n.floats(2, "delta");
    if (a.size() != 1 || b.size() != 1 || c.size() != 1 || c[0] == 0)
      n.refuse("needs one start, limit and delta other than 0");
    double steps = std::ceil((double(b[0]) - a[0]) / c[0]);
    if (!(steps < 1e9))
      n.refuse("has " + numberText(steps) + " elements");
    count = n.dim(int64_t(std::max(steps, 0.0)));
  }
  auto flat = [&](size_t i) { return n.reshape(n.in(i), ArrayRef<int64_t>()); };
  n.set(0, n.add(n.mul(n.iota(ArrayRef<AffineExpr>(count), 0, element), flat(2)), flat(0)));
}

/// A square mask, true where column - row compares with k.
Value diagonalMask(Node &n, ArrayRef<AffineExpr> dims, nn::CompareKind kind, Value k) {
  Dims mask(dims.size(), n.dim(1)), rows = mask, columns = mask;
  rows[dims.size() - 2] = dims[dims.size() - 2];
  columns[dims.size() - 1] = dims.back();
  Value difference = n.sub(n.iota(columns, int64_t(dims.size()) - 1, n.i64Type()),
                           n.iota(rows, int64_t(dims.size()) - 2, n.i64Type()));
  return n.compare(kind, difference, k);
}

void eyeLike(Node &n) {
  Value x = n.in(0);
  if (Node::rankOf(x) != 2)
    n.refuse("its input is " + n.text(x) + ", expected a matrix");
  int64_t type = n.attrInt("dtype", 0);
  Type element = type ? elementTypeOf(int32_t(type), n.context()) : Node::elementOf(x);
  if (!element || type >= OnnxFloat8E4M3FN)
    n.refuse("attribute 'dtype' is " + onnxTypeName(int32_t(type)));
  Value k = n.scalar(double(n.attrInt("k", 0)), n.i64Type());
  n.set(0, n.cast(diagonalMask(n, Node::dimsOf(x), nn::CompareKind::eq, k), element));
}

void trilu(Node &n) {
  Value x = n.in(0);
  if (Node::rankOf(x) < 2)
    n.refuse("its input is " + n.text(x) + ", expected at least rank 2");
  Value k = n.has(1) ? n.reshape(n.in(1), ArrayRef<int64_t>()) : n.scalar(0, n.i64Type());
  nn::CompareKind kind = n.attrInt("upper", 1) ? nn::CompareKind::ge : nn::CompareKind::le;
  n.set(0, n.select(diagonalMask(n, Node::dimsOf(x), kind, k), x, n.like(0, x)));
}

constexpr OpRow rows[] = {
    {"", "Reshape", reshape},
    {"", "Flatten", flatten},
    {"", "Squeeze", squeeze},
    {"", "Unsqueeze", unsqueeze},
    {"", "Transpose", transpose},
    {"", "Expand", expand},
    {"", "Tile", tile},
    {"", "Concat", concat},
    {"", "Split", split},
    {"", "Slice", slice},
    {"", "Pad", pad},
    {"", "CenterCropPad", centerCropPad},
    {"", "DepthToSpace", depthToSpace},
    {"", "SpaceToDepth", spaceToDepth},
    {"", "Shape", shape},
    {"", "Size", size},
    {"", "ConstantOfShape", constantOfShape},
    {"", "Range", range},
    {"", "EyeLike", eyeLike},
    {"", "Trilu", trilu},
};

} // namespace

ArrayRef<OpRow> shapeRows() { return rows; }

} // namespace ajour::onnx_import
