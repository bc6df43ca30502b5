//===- Slices.cpp - joining, splitting, slices, reversals ---------------------------===//
#include "Importer.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Joining and splitting
//===----------------------------------------------------------------------===//

LogicalResult setJoined(Node &node, ArrayRef<Value> parts, int64_t axis, Activation activation) {
  Value result = node.concat(parts, axis);
  if (activation == Activation::NONE || !result)
    return node.set(result);
  if (!node.out().isQuantized())
    return node.set(node.activate(result, activation));
  std::optional<Range> range = node.activationRange(activation, node.out());
  return range ? node.set(node.clamp(result, *range)) : failure();
}

/// Operand i with the result's scale.
Value part(Node &node, size_t i) {
  Value x = node.value(i);
  return x && node.isQuantized(i) && node.out().isQuantized() ? node.rescale(x, node.in(i), node.out()) : x;
}

LogicalResult importConcatenation(Node &node) {
  const Concatenation *o = node.options<Concatenation>();
  SmallVector<Value> parts;
  for (size_t i = 0; i < node.numInputs(); ++i) {
    parts.push_back(part(node, i));
    if (!parts.back())
      return failure();
  }
  std::optional<int64_t> axis = node.axis(o ? o->axis() : 0, typeOf(parts[0]).getRank());
  return axis ? setJoined(node, parts, *axis, o ? o->activation() : Activation::NONE) : failure();
}

LogicalResult importPack(Node &node) {
  const PackOptions *o = node.options<PackOptions>();
  SmallVector<Value> parts;
  int64_t at = 0;
  for (size_t i = 0; i < node.numInputs(); ++i) {
    Value x = part(node, i);
    if (!x)
      return failure();
    std::optional<int64_t> axis = node.axis(o ? o->axis() : 0, typeOf(x).getRank() + 1);
    if (!axis)
      return failure();
    at = *axis;
    Dims dims = getDims(x);
    dims.insert(dims.begin() + at, node.b.getAffineConstantExpr(1));
    parts.push_back(node.reshape(x, dims));
  }
  return setJoined(node, parts, at, Activation::NONE);
}

/// Elements start to start + size of one axis.
Value sliceAxis(Node &node, Value x, int64_t axis, int64_t start, int64_t size) {
  Dims dims = getDims(x);
  SmallVector<int64_t> starts(dims.size(), 0), steps(dims.size(), 1);
  starts[axis] = start;
  dims[axis] = node.b.getAffineConstantExpr(size);
  return node.slice(x, starts, steps, dims);
}

LogicalResult setParts(Node &node, size_t operand, int64_t axis, ArrayRef<int64_t> sizes) {
  Value x = node.value(operand);
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (failed(setMoved(node, sliceAxis(node, x, axis, start, size), operand, i)))
      return failure();
    start += size;
  }
  return success();
}

LogicalResult importSplit(Node &node) {
  const Split *o = node.options<Split>();
  Value x = node.value(1);
  std::optional<int64_t> raw = node.scalarInt(0, "the axis");
  std::optional<int64_t> axis = x && raw ? node.axis(*raw, typeOf(x).getRank()) : std::nullopt;
  std::optional<int64_t> size = axis ? node.staticSize(x, *axis) : std::nullopt;
  if (!size)
    return failure();
  int64_t count = o ? o->num_splits() : int64_t(node.numOutputs());
  if (count != int64_t(node.numOutputs()) || count < 1 || *size % count)
    return node.error() << "dimension " << *axis << " of " << nn::toString(typeOf(x)) << " cannot be split into "
                        << count << " for " << node.numOutputs() << " results";
  return setParts(node, 1, *axis, SmallVector<int64_t>(count, *size / count));
}

LogicalResult importSplitV(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> sizes = node.ints(1, "the sizes");
  std::optional<int64_t> raw = node.scalarInt(2, "the axis");
  std::optional<int64_t> axis = x && raw ? node.axis(*raw, typeOf(x).getRank()) : std::nullopt;
  std::optional<int64_t> size = axis ? node.staticSize(x, *axis) : std::nullopt;
  if (!size || !sizes)
    return failure();
  int64_t known = 0, open = 0;
  for (int64_t s : *sizes) {
    open += s == -1;
    if (s < -1 || s > *size)
      return node.error() << "size " << s << " for a dimension of " << *size;
    known += std::max<int64_t>(s, 0);
  }
  for (int64_t &s : *sizes)
    s = s == -1 ? *size - known : s;
  if (open > 1 || known > *size || (open == 0 && known != *size) || sizes->size() != node.numOutputs())
    return node.error() << sizes->size() << " sizes with the sum " << known << " for a dimension of " << *size
                        << " and " << node.numOutputs() << " results";
  return setParts(node, 0, *axis, *sizes);
}

LogicalResult importUnpack(Node &node) {
  const UnpackOptions *o = node.options<UnpackOptions>();
  Value x = node.value(0);
  std::optional<int64_t> axis = x ? node.axis(o ? o->axis() : 0, typeOf(x).getRank()) : std::nullopt;
  std::optional<int64_t> size = axis ? node.staticSize(x, *axis) : std::nullopt;
  if (!size)
    return failure();
  if (*size != int64_t(node.numOutputs()))
    return node.error() << node.numOutputs() << " results for a dimension of " << *size;
  Dims dims = getDims(x);
  dims.erase(dims.begin() + *axis);
  for (int64_t i = 0; i < *size; ++i)
    if (failed(setMoved(node, node.reshape(sliceAxis(node, x, *axis, i, 1), dims), 0, i)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

LogicalResult importSlice(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> begin = node.ints(1, "the begin"), size = node.ints(2, "the size");
  if (!x || !begin || !size)
    return failure();
  Dims dims = getDims(x);
  if (begin->size() != dims.size() || size->size() != dims.size())
    return node.error() << begin->size() << " begins and " << size->size() << " sizes for "
                        << nn::toString(typeOf(x));
  for (size_t i = 0; i < dims.size(); ++i) {
    std::optional<int64_t> whole = getConstant(dims[i]);
    if ((*size)[i] < -1 || (*begin)[i] < 0 ||
        (whole && ((*begin)[i] > *whole || (*size)[i] > *whole - (*begin)[i])))
      return node.error() << "begin " << (*begin)[i] << " and size " << (*size)[i] << " in dimension " << i << " of "
                          << nn::toString(typeOf(x));
    dims[i] = (*size)[i] == -1 ? dims[i] - (*begin)[i] : node.b.getAffineConstantExpr((*size)[i]);
  }
  return setMoved(node, node.slice(x, *begin, SmallVector<int64_t>(dims.size(), 1), dims));
}

/// The dense form of a strided slice: one start, step and size for each operand dimension, and the result's
/// dimensions after new axes were added and shrunk ones removed.
struct StridedPlan {
  SmallVector<int64_t> starts, steps;
  Dims sizes, result;
};

/// One dimension: begin, end and stride as written, -1 bits of masks resolved. Source: the rules of the
/// strided_slice operator: out of range ends are clamped, negative ones count from the end.
LogicalResult planDimension(Node &node, AffineExpr dim, int64_t begin, int64_t end, int64_t stride, bool beginMasked,
                            bool endMasked, bool shrink, StridedPlan &plan) {
  std::optional<int64_t> size = getConstant(dim);
  if (!size && beginMasked && endMasked && stride == 1 && !shrink) { // the whole of an open dimension
    plan.starts.push_back(0);
    plan.steps.push_back(1);
    plan.sizes.push_back(dim);
    plan.result.push_back(dim);
    return success();
  }
  if (!size)
    return node.error() << "a slice of an open dimension must take all of it; fix it with --dim";
  if (stride == 0)
    return node.error() << "a stride of 0";
  auto resolve = [&](int64_t index, int64_t low, int64_t high) {
    return std::clamp(index < 0 ? index + *size : index, low, high);
  };
  if (shrink) {
    int64_t index = beginMasked ? 0 : begin < 0 ? begin + *size : begin;
    if (index < 0 || index >= *size)
      return node.error() << "index " << begin << " is outside a dimension of " << *size;
    plan.starts.push_back(index);
    plan.steps.push_back(1);
    plan.sizes.push_back(node.b.getAffineConstantExpr(1));
    return success();
  }
  bool forward = stride > 0;
  int64_t low = forward ? 0 : -1, high = forward ? *size : *size - 1;
  int64_t first = beginMasked ? (forward ? low : high) : resolve(begin, low, high);
  int64_t stop = endMasked ? (forward ? high : low) : resolve(end, low, high);
  int64_t span = forward ? stop - first : first - stop;
  // Steps beyond the dimension reach no second element; the lowest has no positive counterpart.
  stride = std::clamp<int64_t>(stride, -Limits::elements, Limits::elements);
  int64_t count = span > 0 ? int64_t(llvm::divideCeil(span, std::abs(stride))) : 0;
  plan.starts.push_back(count ? first : 0);
  plan.steps.push_back(stride);
  plan.sizes.push_back(node.b.getAffineConstantExpr(count));
  plan.result.push_back(plan.sizes.back());
  return success();
}

LogicalResult importStridedSlice(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> begin = node.ints(1, "the begin"), end = node.ints(2, "the end");
  std::optional<std::vector<int64_t>> stride = node.ints(3, "the strides");
  if (!x || !begin || !end || !stride)
    return failure();
  const StridedSlice *o = node.options<StridedSlice>();
  Dims dims = getDims(x);
  size_t count = begin->size();
  if (end->size() != count || stride->size() != count || count > 32)
    return node.error() << count << " begins, " << end->size() << " ends and " << stride->size() << " strides";
  auto bit = [&](int32_t mask, size_t i) { return (uint32_t(mask) >> i & 1) != 0; };
  int32_t ellipsis = o ? o->ellipsis_mask() : 0, newAxis = o ? o->new_axis_mask() : 0;
  bool relativeEnd = o && o->offset(); // ends count from the begins
  StridedPlan plan;
  AffineExpr one = node.b.getAffineConstantExpr(1);
  // Entries that name operand dimensions, without the ellipsis.
  size_t named = 0, ellipses = 0;
  for (size_t i = 0; i < count; ++i) {
    ellipses += bit(ellipsis, i);
    named += !bit(ellipsis, i) && !bit(newAxis, i);
  }
  if (ellipses > 1 || named > dims.size())
    return node.error() << named << " slices and " << ellipses << " ellipses for " << nn::toString(typeOf(x));
  size_t dim = 0;
  auto takeWhole = [&](size_t until) {
    for (; dim < until; ++dim)
      (void)planDimension(node, dims[dim], 0, 0, 1, true, true, false, plan);
  };
  for (size_t i = 0; i < count; ++i) {
    if (bit(ellipsis, i)) {
      takeWhole(dim + dims.size() - named);
    } else if (bit(newAxis, i)) {
      plan.result.push_back(one);
    } else {
      int64_t stop = (*end)[i];
      if (relativeEnd && llvm::AddOverflow((*begin)[i], (*end)[i], stop))
        return node.error() << "begin " << (*begin)[i] << " and length " << (*end)[i];
      if (failed(planDimension(node, dims[dim], (*begin)[i], stop, (*stride)[i], bit(o ? o->begin_mask() : 0, i),
                               bit(o ? o->end_mask() : 0, i), bit(o ? o->shrink_axis_mask() : 0, i), plan)))
        return failure();
      ++dim;
    }
  }
  takeWhole(dims.size());
  return setMoved(node, node.reshape(node.slice(x, plan.starts, plan.steps, plan.sizes), plan.result));
}

LogicalResult importReverseV2(Node &node) {
  std::optional<std::vector<int64_t>> axes = node.ints(1, "the axes");
  Value x = node.value(0);
  if (!x || !axes)
    return failure();
  SmallVector<int64_t> starts(typeOf(x).getRank(), 0), steps(typeOf(x).getRank(), 1);
  for (int64_t raw : *axes) {
    std::optional<int64_t> axis = node.axis(raw, typeOf(x).getRank());
    std::optional<int64_t> size = axis ? node.staticSize(x, *axis) : std::nullopt;
    if (!size)
      return failure();
    starts[*axis] = std::max<int64_t>(*size - 1, 0);
    steps[*axis] = -1;
  }
  return setMoved(node, node.slice(x, starts, steps, getDims(x)));
}

LogicalResult importReverseSequence(Node &node) {
  const ReverseSequence *o = node.options<ReverseSequence>();
  Value x = node.value(0), lengths = node.value(1);
  if (!x || !lengths)
    return failure();
  std::optional<int64_t> time = node.axis(o ? o->seq_dim() : 0, typeOf(x).getRank());
  std::optional<int64_t> batch = node.axis(o ? o->batch_dim() : 0, typeOf(x).getRank());
  if (!time || !batch)
    return failure();
  ReverseSequenceOp::Properties p;
  p.setBatchAxis(node.b.getI64IntegerAttr(*batch));
  p.setTimeAxis(node.b.getI64IntegerAttr(*time));
  return setMoved(node, node.create<ReverseSequenceOp>(p, {x, lengths}));
}

const OpRow rows[] = {
    {Builtin::CONCATENATION, 4, 1, -1, importConcatenation},
    {Builtin::PACK, 4, 1, -1, importPack},
    {Builtin::SPLIT, 4, 2, 2, importSplit},
    {Builtin::SPLIT_V, 2, 3, 3, importSplitV},
    {Builtin::UNPACK, 4, 1, 1, importUnpack},
    {Builtin::SLICE, 6, 3, 3, importSlice},
    {Builtin::STRIDED_SLICE, 8, 4, 4, importStridedSlice},
    {Builtin::REVERSE_V2, 3, 2, 2, importReverseV2},
    {Builtin::REVERSE_SEQUENCE, 1, 2, 2, importReverseSequence},
};

} // namespace

ArrayRef<OpRow> sliceRows() { return rows; }

} // namespace ajour::tflite
