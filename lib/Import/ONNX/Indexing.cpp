//===- Indexing.cpp - ONNX gathers, scatters and their kin ---------------------------===//
#include "Node.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

/// Constant indices are checked against the axis; the others are clamped when the model runs.
void checkIndices(Node &n, Value indices, AffineExpr dim) {
  ElementsAttr attr = nn::getConstantValue(indices);
  std::optional<int64_t> size = nn::getConstant(dim);
  if (!attr || !size)
    return;
  if (std::optional<std::vector<int64_t>> values = nn::constantInts(attr))
    for (int64_t value : *values)
      if (value < -*size || value >= *size)
        n.refuse("takes index " + Twine(value) + " of a dimension of " + Twine(*size));
}

void gather(Node &n) {
  Value data = n.in(0), indices = n.in(1);
  int64_t axis = n.axis(n.attrInt("axis", 0), Node::rankOf(data));
  checkIndices(n, indices, Node::dimsOf(data)[axis]);
  n.set(0, n.gather(data, indices, axis));
}

void gatherElements(Node &n) {
  Value data = n.in(0), indices = n.in(1);
  nn::GatherElementsOp::Properties p;
  int64_t axis = n.axis(n.attrInt("axis", 0), Node::rankOf(data));
  checkIndices(n, indices, Node::dimsOf(data)[axis]);
  p.axis = n.i64(axis);
  n.set(0, n.make1<nn::GatherElementsOp>({data, indices}, p));
}

void gatherND(Node &n) {
  nn::GatherNDOp::Properties p;
  p.batch_dims = n.i64(n.attrInt("batch_dims", 0));
  n.set(0, n.make1<nn::GatherNDOp>({n.in(0), n.in(1)}, p));
}

nn::ScatterKind scatterKind(Node &n) {
  std::string kind = n.attrString("reduction", "none");
  for (auto [name, value] : {std::pair("none", nn::ScatterKind::set), std::pair("add", nn::ScatterKind::add),
                             std::pair("mul", nn::ScatterKind::mul), std::pair("max", nn::ScatterKind::max),
                             std::pair("min", nn::ScatterKind::min)})
    if (kind == name)
      return value;
  n.refuse("attribute 'reduction' is '" + kind + "', expected 'none', 'add', 'mul', 'max' or 'min'");
}

void scatterElements(Node &n) {
  Value data = n.in(0), indices = n.in(1);
  nn::ScatterElementsOp::Properties p;
  int64_t axis = n.axis(n.attrInt("axis", 0), Node::rankOf(data));
  checkIndices(n, indices, Node::dimsOf(data)[axis]);
  p.axis = n.i64(axis);
  p.kind = nn::ScatterKindAttr::get(n.context(), scatterKind(n));
  n.set(0, n.make1<nn::ScatterElementsOp>({data, indices, n.in(2)}, p));
}

void scatterND(Node &n) {
  nn::ScatterNDOp::Properties p;
  p.kind = nn::ScatterKindAttr::get(n.context(), scatterKind(n));
  n.set(0, n.make1<nn::ScatterNDOp>({n.in(0), n.in(1), n.in(2)}, p));
}

/// off where the index does not match, on where it does; indices count from the end when negative.
void oneHot(Node &n) {
  Value indices = n.in(0), values = n.in(2);
  // Depth may be a float.
  int64_t depth = Node::isFloat(n.in(1)) ? 0 : n.oneInt(1, "depth");
  if (Node::isFloat(n.in(1))) {
    std::vector<float> floats = n.floats(1, "depth");
    depth = floats.size() == 1 && std::abs(floats[0]) <= float(1 << 30) ? int64_t(floats[0]) : -1;
  }
  if (depth < 1 || depth > (1 << 30))
    n.refuse("has depth " + Twine(depth) + ", expected a positive number");
  int64_t rank = Node::rankOf(indices), axis = n.axis(n.attrInt("axis", -1), rank + 1);
  Value wide = n.cast(indices, n.i64Type());
  wide = n.select(n.compare(nn::CompareKind::lt, wide, n.like(0, wide)), n.add(wide, n.like(double(depth), wide)), wide);
  Dims at = Node::dimsOf(indices), line(rank + 1, n.dim(1));
  at.insert(at.begin() + axis, n.dim(1));
  line[axis] = n.dim(depth);
  Value hit = n.compare(nn::CompareKind::eq, n.iota(line, axis, n.i64Type()), n.reshape(wide, at));
  if (Node::rankOf(values) != 1 || nn::getConstant(Node::dimsOf(values)[0]) != 2)
    n.refuse("its values are " + n.text(values) + ", expected [off, on]");
  auto element = [&](int64_t i) { return n.reshape(n.sliceAxis(values, 0, i, n.dim(1)), ArrayRef<int64_t>()); };
  n.set(0, n.select(hit, element(1), element(0)));
}

void compress(Node &n) {
  Value x = n.in(0);
  Ints condition = n.ints(1, "condition"), indices;
  int64_t axis = 0;
  if (n.hasAttr("axis"))
    axis = n.axis(n.attrInt("axis", 0), Node::rankOf(x));
  else
    x = n.reshape(x, {n.product(Node::dimsOf(x))});
  int64_t size = n.staticDims(x, axis, axis + 1, "a compressed dimension")[0];
  for (auto [i, keep] : llvm::enumerate(condition))
    if (keep && int64_t(i) < size)
      indices.push_back(int64_t(i));
  n.set(0, n.gather(x, n.constantInts(indices, n.i64Type()), axis));
}

void reverseSequence(Node &n) {
  Value x = n.in(0);
  nn::ReverseSequenceOp::Properties p;
  p.batch_axis = n.i64(n.axis(n.attrInt("batch_axis", 1), Node::rankOf(x)));
  p.time_axis = n.i64(n.axis(n.attrInt("time_axis", 0), Node::rankOf(x)));
  n.set(0, n.make1<nn::ReverseSequenceOp>({x, n.in(1)}, p));
}

constexpr OpRow rows[] = {
    {"", "Gather", gather},
    {"", "GatherElements", gatherElements},
    {"", "GatherND", gatherND},
    {"", "Scatter", scatterElements},
    {"", "ScatterElements", scatterElements},
    {"", "ScatterND", scatterND},
    {"", "OneHot", oneHot},
    {"", "Compress", compress},
    {"", "ReverseSequence", reverseSequence},
};

} // namespace

ArrayRef<OpRow> indexingRows() { return rows; }

} // namespace ajour::onnx_import
