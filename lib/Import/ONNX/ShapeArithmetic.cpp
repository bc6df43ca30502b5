//===- ShapeArithmetic.cpp - computing with symbolic sizes --------------------------===//
//
// Exporters write target shapes as little graphs: Shape, Gather, Mul, Concat, Reshape. Their values are followed
// as expressions over the model's symbols, so that result types keep the names of dimensions. Whatever does not fit
// becomes an ordinary tensor.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

struct Shaped {
  Dims values;
  bool isScalar = false;
  Type element;
};

/// An operand as expressions: symbolic ones, or a small constant of whole numbers.
std::optional<Shaped> operand(Node &n, size_t i) {
  if (!n.has(i))
    return std::nullopt;
  Entry &entry = n.entry(i);
  if (entry.exprs)
    return Shaped{*entry.exprs, entry.isScalar, entry.exprElement};
  Value v = n.in(i);
  if (Node::rankOf(v) > 1)
    return std::nullopt;
  Shaped result{{}, Node::rankOf(v) == 0, Node::elementOf(v)};
  if (std::optional<Dims> ints = n.exprsOrNone(i)) {
    result.values = *ints;
    return result;
  }
  ElementsAttr attr = nn::getConstantValue(v);
  if (!attr || attr.getNumElements() > 64)
    return std::nullopt;
  std::optional<std::vector<float>> floats = nn::constantFloats(attr);
  if (!floats)
    return std::nullopt;
  for (float value : *floats) {
    if (value != std::floor(value) || std::abs(value) > float(1 << 24))
      return std::nullopt;
    result.values.push_back(n.dim(int64_t(value)));
  }
  return result;
}

/// One element of a result of two operands; null when it has no expression.
AffineExpr combine(Node &n, StringRef op, AffineExpr a, AffineExpr b, Type element) {
  std::optional<int64_t> x = nn::getConstant(a), y = nn::getConstant(b);
  if (op == "Add")
    return a + b;
  if (op == "Sub")
    return a - b;
  if (op == "Mul")
    return a * b;
  if (op == "Div") {
    // Sizes are not negative, so rounding down and towards zero agree.
    if (!y || *y < 1 || (x && *x < 0))
      return nullptr;
    if (isa<FloatType>(element))
      return x && *x % *y == 0 ? n.dim(*x / *y) : *y == 1 ? a : nullptr;
    return a.floorDiv(*y);
  }
  if (op == "Mod")
    return y && *y > 0 && (!x || *x >= 0) && !isa<FloatType>(element) ? a % *y : nullptr;
  if (op == "Min" || op == "Max") {
    if (a == b)
      return a;
    if (!x || !y)
      return nullptr;
    return n.dim(op == "Min" ? std::min(*x, *y) : std::max(*x, *y));
  }
  if (op == "Equal") {
    if (x && y)
      return n.dim(*x == *y);
    if (a == b)
      return n.dim(1);
    // A size is never negative.
    if ((x && *x < 0) || (y && *y < 0))
      return n.dim(0);
  }
  return nullptr;
}

bool elementwise(Node &n) {
  std::optional<Shaped> a = operand(n, 0), b = operand(n, 1);
  if (!a || !b || n.numInputs() != 2)
    return false;
  size_t size = std::max(a->values.size(), b->values.size());
  if (a->values.size() == 0 || b->values.size() == 0 || (a->values.size() != size && a->values.size() != 1) ||
      (b->values.size() != size && b->values.size() != 1) || a->element != b->element)
    return false;
  Dims values;
  for (size_t i = 0; i < size; ++i) {
    AffineExpr value = combine(n, n.type(), a->values[a->values.size() == 1 ? 0 : i],
                               b->values[b->values.size() == 1 ? 0 : i], a->element);
    if (!value)
      return false;
    values.push_back(value);
  }
  n.setExprs(0, values, a->isScalar && b->isScalar, n.type() == "Equal" ? n.i1() : a->element);
  return true;
}

bool where(Node &n) {
  std::optional<Shaped> condition = operand(n, 0), a = operand(n, 1), b = operand(n, 2);
  if (!condition || !a || !b || a->values.empty() || b->values.empty() || condition->values.empty())
    return false;
  size_t size = std::max({condition->values.size(), a->values.size(), b->values.size()});
  auto at = [&](Shaped &s, size_t i) { return s.values[s.values.size() == 1 ? 0 : i]; };
  for (Shaped *s : {&*condition, &*a, &*b})
    if (s->values.size() != size && s->values.size() != 1)
      return false;
  Dims values;
  for (size_t i = 0; i < size; ++i) {
    std::optional<int64_t> taken = nn::getConstant(at(*condition, i));
    if (!taken)
      return false;
    values.push_back(*taken ? at(*a, i) : at(*b, i));
  }
  n.setExprs(0, values, condition->isScalar && a->isScalar && b->isScalar, a->element);
  return true;
}

bool gather(Node &n) {
  std::optional<Shaped> data = operand(n, 0), indices = operand(n, 1);
  if (!data || data->isScalar || !indices || n.attrInt("axis", 0) > 0)
    return false;
  Dims values;
  int64_t size = int64_t(data->values.size());
  for (AffineExpr expr : indices->values) {
    std::optional<int64_t> index = nn::getConstant(expr);
    if (!index || *index < -size || *index >= size)
      return false;
    values.push_back(data->values[*index < 0 ? *index + size : *index]);
  }
  n.setExprs(0, values, indices->isScalar, data->element);
  return true;
}

bool slice(Node &n) {
  std::optional<Shaped> data = operand(n, 0);
  if (!data || data->isScalar)
    return false;
  Ints starts, ends, steps{1};
  if (n.opset < 10) {
    starts = n.attrInts("starts");
    ends = n.attrInts("ends");
  } else {
    for (size_t i = 1; i < n.numInputs(); ++i)
      if (n.has(i) && !n.exprsOrNone(i))
        return false;
    starts = n.ints(1, "starts");
    ends = n.ints(2, "ends");
    if (n.has(4))
      steps = n.ints(4, "steps");
  }
  if (starts.size() != 1 || ends.size() != 1 || steps.size() != 1 || steps[0] != 1)
    return false;
  int64_t size = int64_t(data->values.size());
  auto position = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? std::max(v, -size) + size : v, 0, size); };
  int64_t start = position(starts[0]), end = std::max(position(ends[0]), start);
  n.setExprs(0, Dims(data->values.begin() + start, data->values.begin() + end), false, data->element);
  return true;
}

bool concat(Node &n) {
  Dims values;
  Type element;
  for (size_t i = 0; i < n.numInputs(); ++i) {
    std::optional<Shaped> part = operand(n, i);
    if (!part || part->isScalar || (element && part->element != element))
      return false;
    element = part->element;
    llvm::append_range(values, part->values);
  }
  n.setExprs(0, values, false, element);
  return true;
}

/// Operators that keep the elements and change the rank between 0 and 1 at most.
bool keepElements(Node &n) {
  std::optional<Shaped> data = operand(n, 0);
  if (!data)
    return false;
  bool isScalar = data->isScalar;
  if (n.type() == "Unsqueeze") {
    if (!isScalar)
      return false;
    isScalar = false;
  } else if (n.type() == "Squeeze") {
    if (isScalar || data->values.size() != 1)
      return false;
    isScalar = true;
  } else if (n.type() == "Reshape" || n.type() == "Flatten") {
    std::optional<Shaped> shape = operand(n, 1);
    if (!shape || shape->isScalar || shape->values.size() > 1)
      return false;
    if (shape->values.empty() && data->values.size() != 1)
      return false;
    if (!shape->values.empty()) {
      std::optional<int64_t> size = nn::getConstant(shape->values[0]);
      if (!size || (*size != -1 && *size != int64_t(data->values.size())))
        return false;
    }
    isScalar = shape->values.empty();
  }
  n.setExprs(0, data->values, isScalar, data->element);
  return true;
}

bool cast(Node &n) {
  std::optional<Shaped> data = operand(n, 0);
  Type target = elementTypeOf(int32_t(n.attrInt("to")), n.context());
  // Narrow types would wrap or round.
  if (!data || !target || !(target.isInteger(64) || target.isSignlessInteger(32) || target.isF32() || target.isF64()))
    return false;
  n.setExprs(0, data->values, data->isScalar, target);
  return true;
}

bool product(Node &n) {
  std::optional<Shaped> data = operand(n, 0);
  if (!data || data->isScalar)
    return false;
  n.setExprs(0, {n.product(data->values)}, !n.attrInt("keepdims", 1), data->element);
  return true;
}

} // namespace

bool importShapeArithmetic(Node &n) {
  if (!n.proto.domain().empty() && n.proto.domain() != "ai.onnx")
    return false;
  bool symbolic = false;
  for (size_t i = 0; i < n.numInputs(); ++i)
    symbolic |= n.has(i) && n.entry(i).exprs.has_value();
  if (!symbolic)
    return false;
  StringRef op = n.type();
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Mod" || op == "Min" || op == "Max" ||
      op == "Equal")
    return elementwise(n);
  if (op == "Where")
    return where(n);
  if (op == "Gather")
    return gather(n);
  if (op == "Slice")
    return slice(n);
  if (op == "Concat")
    return concat(n);
  if (op == "Cast")
    return cast(n);
  if (op == "ReduceProd")
    return product(n);
  if (op == "Identity" || op == "Unsqueeze" || op == "Squeeze" || op == "Reshape" || op == "Floor" || op == "Ceil")
    return keepElements(n);
  return false;
}

} // namespace ajour::onnx_import
