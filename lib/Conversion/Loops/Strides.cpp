//===- Strides.cpp - views of buffers as strides -----------------------------------===//
#include "Strides.h"

using namespace mlir;

namespace ajour::loops {

namespace {

AffineExpr constant(int64_t value, Value of) { return getAffineConstantExpr(value, of.getContext()); }

StridedView wholeBuffer(Value value) {
  nn::Dims dims = nn::getDims(value);
  StridedView view{value, constant(0, value), nn::Dims(dims.size(), constant(1, value))};
  AffineExpr stride = constant(1, value);
  for (size_t i = dims.size(); i-- > 0;) {
    view.strides[i] = stride;
    stride = stride * dims[i];
  }
  return view;
}

/// The strides of the same elements in other dimensions. From the innermost dimension on, each takes its size from those before the
/// reshape; one that takes from several needs them to lie as one.
std::optional<nn::Dims> reshapeStrides(const nn::Dims &from, const nn::Dims &strides, const nn::Dims &to, MLIRContext *context) {
  AffineExpr one = getAffineConstantExpr(1, context), left = one, stride = one;
  size_t next = from.size();
  // What is left of a dimension before the reshape, and the distance of its elements.
  auto take = [&] {
    while (next > 0 && from[next - 1] == one)
      --next;
    if (next == 0)
      return false;
    --next;
    left = from[next], stride = strides[next];
    return true;
  };
  nn::Dims result(to.size(), one);
  for (size_t i = to.size(); i-- > 0;) {
    if (to[i] == one)
      continue;
    if (left == one && !take())
      return std::nullopt;
    result[i] = stride;
    AffineExpr need = to[i];
    while (left != need) {
      std::optional<int64_t> needed = nn::getConstant(need), had = nn::getConstant(left);
      if (needed && *needed > 0 && nn::getConstant(left % *needed) == 0) {
        left = left.floorDiv(*needed), stride = stride * *needed;
        need = one;
        break;
      }
      if (!had || *had <= 0 || nn::getConstant(need % *had) != 0)
        return std::nullopt;
      need = need.floorDiv(*had);
      AffineExpr joined = stride * left;
      if (!take() || stride != joined)
        return std::nullopt;
    }
    if (left == need)
      left = one;
  }
  return left == one && !take() ? std::optional(result) : std::nullopt;
}

} // namespace

std::optional<StridedView> findStridedView(Value value, Value base) {
  Operation *op = value.getDefiningOp();
  if (value == base || (!base && !isa_and_nonnull<nn::TransposeOp, nn::SliceOp, nn::ReshapeOp>(op)))
    return wholeBuffer(value);
  if (!isa_and_nonnull<nn::TransposeOp, nn::SliceOp, nn::ReshapeOp>(op))
    return std::nullopt;
  std::optional<StridedView> view = findStridedView(op->getOperand(0), base);
  if (!view)
    return std::nullopt;
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    nn::Dims strides;
    for (int64_t dim : transpose.getPerm())
      strides.push_back(view->strides[dim]);
    view->strides = strides;
  } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    for (size_t i = 0; i < view->strides.size(); ++i) {
      view->offset = view->offset + view->strides[i] * slice.getStarts()[i];
      view->strides[i] = view->strides[i] * slice.getSteps()[i];
    }
  } else {
    std::optional<nn::Dims> strides = reshapeStrides(nn::getDims(op->getOperand(0)), view->strides, nn::getDims(value), value.getContext());
    if (!strides)
      return std::nullopt;
    view->strides = *strides;
  }
  return view;
}

std::optional<StridedView> findAttentionView(nn::AttentionOp op, unsigned operand, Value base) {
  Value value = op->getOperand(operand);
  std::optional<StridedView> view = findStridedView(value, base);
  nn::Dims dims = nn::getDims(value), key = nn::getDims(op.getKey());
  size_t rank = dims.size();
  AffineExpr one = constant(1, value);
  if (!view || (dims.back() != one && view->strides.back() != one))
    return std::nullopt;
  bool sharesKeys = operand == 0 && dims[rank - 2] != key[rank - 2];
  if (sharesKeys && view->strides[rank - 2] != dims.back())
    return std::nullopt;
  return view;
}

} // namespace ajour::loops
