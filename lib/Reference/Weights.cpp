//===- Weights.cpp - meaning of weights stored in few bits ---------------------===//
#include "Evaluation.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

namespace {

/// A parameter for each group of elements along an axis, or the same for all of a dimension.
class Grouped {
public:
  Grouped(const HostTensor &parameters, ArrayRef<int64_t> shape, int64_t axis, int64_t group)
      : parameters(parameters), shape(shape), axis(axis), group(group), strides(stridesOf(parameters.shape)) {}

  /// Position of the parameter of the element at a row-major position.
  int64_t position(int64_t element) const {
    int64_t at = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t i = element % shape[d];
      element /= shape[d];
      if (int64_t(d) == axis)
        i /= group;
      at += strides[d] * (parameters.shape[d] == 1 ? 0 : i);
    }
    return at;
  }

private:
  const HostTensor &parameters;
  ArrayRef<int64_t> shape;
  int64_t axis, group;
  Shape strides;
};

/// An element of a floating point tensor as f32.
float real(const HostTensor &tensor, int64_t position) {
  return dispatchFloat(tensor.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<float>(tensor.as<T>()[position]);
  });
}

void store(HostTensor &tensor, int64_t position, float value) {
  dispatchFloat(tensor.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    tensor.as<T>()[position] = T(value);
  });
}

float byteAt(const HostTensor &tensor, int64_t position) {
  return tensor.elementType == AJOUR_U8 ? float(tensor.as<uint8_t>()[position]) : float(tensor.as<int8_t>()[position]);
}

} // namespace

LogicalResult evaluate(DequantizeGroupedOp op, Evaluation &e) {
  const HostTensor &x = e.operand(0), &scales = e.operand(1);
  const HostTensor *zeroPoints = op.getZeroPoints() ? &e.operand(2) : nullptr;
  bool realZeros = zeroPoints && isa<FloatType>(cast<RankedTensorType>(op.getZeroPoints().getType()).getElementType());
  Grouped groups(scales, x.shape, op.getAxis(), op.getGroup());
  for (int64_t i = 0, count = x.numElements(); i < count; ++i) {
    int64_t g = groups.position(i);
    float zero = !zeroPoints ? 0 : realZeros ? real(*zeroPoints, g) : byteAt(*zeroPoints, g);
    float scale = real(scales, g);
    if (op.getOffsets()) {
      float product = byteAt(x, i) * scale;
      store(e.result(), i, product + zero);
    } else {
      float difference = byteAt(x, i) - zero;
      store(e.result(), i, difference * scale);
    }
  }
  return success();
}

LogicalResult evaluate(DequantizeCodebookOp op, Evaluation &e) {
  const HostTensor &x = e.operand(0), &table = e.operand(1);
  const HostTensor *scales = op.getScales() ? &e.operand(2) : nullptr;
  int64_t entries = table.shape.back(), count = x.numElements();
  std::vector<int64_t> all(x.shape.begin(), x.shape.end());
  // The table's own dimensions are those of one entry: a row of entries for each.
  HostTensor rows;
  rows.shape.assign(table.shape.begin(), table.shape.end() - 1);
  if (rows.shape.empty())
    rows.shape.assign(all.size(), 1);
  Grouped tables(rows, all, /*axis=*/-1, 1), groups(scales ? *scales : rows, all, op.getAxis(), op.getGroup());
  for (int64_t i = 0; i < count; ++i) {
    int64_t entry = std::min<int64_t>(x.as<uint8_t>()[i], entries - 1);
    float value = real(table, tables.position(i) * entries + entry);
    store(e.result(), i, scales ? value * real(*scales, groups.position(i)) : value);
  }
  return success();
}

} // namespace ajour::reference
