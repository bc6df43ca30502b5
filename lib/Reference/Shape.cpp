//===- Shape.cpp - data movement ------------------------------------------------===//
#include "Evaluation.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

/// result[index] = operand[offset + index . strides], in elements.
static void readStrided(Evaluation &e, int64_t offset, const Shape &strides) {
  dispatchSize(e.result().elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *in = e.operand(0).as<T>();
    T *out = e.result().as<T>();
    forEachIndex<1>(e.result().shape, {strides}, [&](int64_t i, auto &offsets) { out[i] = in[offset + offsets[0]]; });
  });
}

LogicalResult evaluate(TransposeOp op, Evaluation &e) {
  Shape own = stridesOf(e.operand(0).shape), strides;
  for (int64_t p : op.getPerm())
    strides.push_back(own[p]);
  readStrided(e, 0, strides);
  return success();
}

LogicalResult evaluate(ReshapeOp op, Evaluation &e) {
  if (e.operand(0).data.size() != e.result().data.size())
    return op.emitError() << e.operand(0).numElements() << " elements cannot take a shape of "
                          << e.result().numElements();
  e.result().data = e.operand(0).data;
  return success();
}

LogicalResult evaluate(BroadcastOp op, Evaluation &e) {
  readStrided(e, 0, broadcastStrides(e.operand(0).shape, e.result().shape));
  return success();
}

LogicalResult evaluate(SliceOp op, Evaluation &e) {
  Shape strides = stridesOf(e.operand(0).shape);
  int64_t offset = 0;
  if (e.result().data.empty())
    return success();
  for (size_t d = 0; d < strides.size(); ++d) {
    int64_t start = op.getStarts()[d], step = op.getSteps()[d], size = e.operand(0).shape[d];
    // The last index start + (n - 1) step is inside, tested without overflow; step is not 0.
    int64_t more = e.result().shape[d] - 1;
    bool inside = start >= 0 && start < size &&
                  (step > 0            ? more <= (size - 1 - start) / step
                   : step == INT64_MIN ? more == 0
                                       : more <= start / -step);
    if (!inside)
      return op.emitError() << "dimension " << d << " has " << size << " elements, read from " << start
                            << " in steps of " << step << " for " << more + 1 << " elements";
    offset += start * strides[d];
    strides[d] = more == 0 ? 0 : strides[d] * step;
  }
  readStrided(e, offset, strides);
  return success();
}

LogicalResult evaluate(ConcatOp op, Evaluation &e) {
  int64_t axis = op.getAxis();
  ArrayRef<int64_t> shape = e.result().shape;
  size_t element = ajour_element_size(e.result().elementType);
  int64_t outer = sizeOf(shape, 0, axis), inner = sizeOf(shape, axis + 1, shape.size()) * element;
  char *out = e.result().data.data();
  for (int64_t o = 0; o < outer; ++o)
    for (const HostTensor *operand : e.operands) {
      int64_t bytes = operand->shape[axis] * inner;
      if (bytes)
        memcpy(out, operand->data.data() + o * bytes, bytes);
      out += bytes;
    }
  return success();
}

/// The index of the (cropped) operand that stands at `position` relative to its first element; -1: none.
static int64_t paddedIndex(PadMode mode, int64_t position, int64_t size) {
  if (position >= 0 && position < size)
    return position;
  switch (mode) {
  case PadMode::constant:
    return -1;
  case PadMode::reflect:
    return position < 0 ? -position : 2 * (size - 1) - position;
  case PadMode::edge:
    return position < 0 ? 0 : size - 1;
  case PadMode::wrap:
    return position < 0 ? position + size : position - size;
  case PadMode::symmetric:
    return position < 0 ? -position - 1 : 2 * size - 1 - position;
  }
  llvm_unreachable("all modes are handled");
}

/// For each index of dimension `d` of the result the operand's index, -1 outside.
static FailureOr<std::vector<int64_t>> paddedIndices(PadOp op, Evaluation &e, size_t d) {
  int64_t low = op.getLow()[d], high = op.getHigh()[d], size = e.operand(0).shape[d];
  int64_t first = std::max<int64_t>(-low, 0), cropped = size - first - std::max<int64_t>(-high, 0);
  int64_t most = std::max(low, high);
  int64_t allowed = op.getMode() == PadMode::reflect ? cropped - 1 : cropped;
  bool repeats = op.getMode() != PadMode::constant && op.getMode() != PadMode::edge;
  if (cropped < 0 || (repeats && most > 0 && most > allowed) ||
      (op.getMode() == PadMode::edge && most > 0 && cropped == 0))
    return op.emitError() << "'" << stringifyPadMode(op.getMode()) << "' padding of " << low << " and " << high
                          << " is not possible for dimension " << d << " of " << size;
  std::vector<int64_t> indices(e.result().shape[d]);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t index = paddedIndex(op.getMode(), int64_t(i) - std::max<int64_t>(low, 0), cropped);
    indices[i] = index < 0 ? -1 : first + index;
  }
  return indices;
}

LogicalResult evaluate(PadOp op, Evaluation &e) {
  ArrayRef<int64_t> shape = e.result().shape;
  SmallVector<std::vector<int64_t>> sources;
  for (size_t d = 0; d < shape.size(); ++d) {
    FailureOr<std::vector<int64_t>> indices = paddedIndices(op, e, d);
    if (failed(indices))
      return failure();
    sources.push_back(std::move(*indices));
  }
  Shape in = stridesOf(e.operand(0).shape), out = stridesOf(shape);
  dispatchSize(e.result().elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T outside = op.getValue() ? *e.operand(1).as<T>() : T(0);
    const T *from = e.operand(0).as<T>();
    T *to = e.result().as<T>();
    for (int64_t i = 0, count = e.result().numElements(); i < count; ++i) {
      int64_t offset = 0;
      for (size_t d = 0; d < shape.size() && offset >= 0; ++d) {
        int64_t source = sources[d][i / out[d] % shape[d]];
        offset = source < 0 ? -1 : offset + source * in[d];
      }
      to[i] = offset < 0 ? outside : from[offset];
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// gather, scatter
//===----------------------------------------------------------------------===//

/// The elements of an index tensor; unsigned values beyond i64 become its highest value.
static std::vector<int64_t> readIndices(const HostTensor &tensor) {
  std::vector<int64_t> indices(tensor.numElements());
  dispatchInt(tensor.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < indices.size(); ++i) {
      T value = tensor.as<T>()[i];
      if constexpr (std::is_same_v<T, uint64_t>)
        indices[i] = value > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(value);
      else
        indices[i] = value;
    }
  });
  return indices;
}

/// Negative indices count from the end; then they are clamped.
static int64_t resolveIndex(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1);
}

/// An index into an empty dimension has no element to clamp to.
static LogicalResult checkNotEmpty(Operation *op, const HostTensor &data, const HostTensor &indices, size_t first,
                                   size_t count) {
  if (indices.data.empty())
    return success();
  for (size_t d = first; d < first + count; ++d)
    if (data.shape[d] == 0)
      return op->emitError() << "dimension " << d << " of the indexed operand is empty, there is nothing to take";
  return success();
}

LogicalResult evaluate(GatherOp op, Evaluation &e) {
  const HostTensor &data = e.operand(0), &indices = e.operand(1);
  size_t axis = op.getAxis(), batchDims = op.getBatchDims();
  if (failed(checkNotEmpty(op, data, indices, axis, 1)))
    return failure();
  std::vector<int64_t> index = readIndices(indices);
  int64_t batches = sizeOf(data.shape, 0, batchDims), outer = sizeOf(data.shape, batchDims, axis);
  int64_t inner = sizeOf(data.shape, axis + 1, data.shape.size()) * ajour_element_size(data.elementType);
  int64_t size = data.shape[axis], perBatch = sizeOf(indices.shape, batchDims, indices.shape.size());
  char *out = e.result().data.data();
  if (e.result().data.empty())
    return success();
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < perBatch; ++i, out += inner) {
        int64_t at = resolveIndex(index[b * perBatch + i], size);
        memcpy(out, data.data.data() + ((b * outer + o) * size + at) * inner, inner);
      }
  return success();
}

LogicalResult evaluate(GatherElementsOp op, Evaluation &e) {
  const HostTensor &data = e.operand(0), &indices = e.operand(1);
  size_t axis = op.getAxis();
  if (failed(checkNotEmpty(op, data, indices, axis, 1)))
    return failure();
  for (size_t d = 0; d < data.shape.size(); ++d)
    if (d != axis && indices.shape[d] > data.shape[d])
      return op.emitError() << "dimension " << d << " of the indices has " << indices.shape[d]
                            << " elements, that of data " << data.shape[d];
  std::vector<int64_t> index = readIndices(indices);
  Shape strides = stridesOf(data.shape);
  int64_t along = strides[axis];
  strides[axis] = 0;
  dispatchSize(data.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *out = e.result().as<T>();
    forEachIndex<1>(indices.shape, {strides}, [&](int64_t i, auto &offsets) {
      out[i] = data.as<T>()[offsets[0] + resolveIndex(index[i], data.shape[axis]) * along];
    });
  });
  return success();
}

/// The offset, in slices of data[first + tuple:], that an index tuple names.
static int64_t tupleOffset(const int64_t *tuple, size_t count, ArrayRef<int64_t> shape, size_t first) {
  int64_t offset = 0;
  for (size_t t = 0; t < count; ++t)
    offset = offset * shape[first + t] + resolveIndex(tuple[t], shape[first + t]);
  return offset;
}

LogicalResult evaluate(GatherNDOp op, Evaluation &e) {
  const HostTensor &data = e.operand(0), &indices = e.operand(1);
  size_t batchDims = op.getBatchDims(), tuple = indices.shape.back();
  if (failed(checkNotEmpty(op, data, indices, batchDims, tuple)))
    return failure();
  std::vector<int64_t> index = readIndices(indices);
  int64_t batches = sizeOf(data.shape, 0, batchDims);
  int64_t perBatch = sizeOf(indices.shape, batchDims, indices.shape.size() - 1);
  int64_t slice = sizeOf(data.shape, batchDims + tuple, data.shape.size()) * ajour_element_size(data.elementType);
  int64_t slices = sizeOf(data.shape, batchDims, batchDims + tuple);
  if (e.result().data.empty())
    return success();
  for (int64_t i = 0; i < batches * perBatch; ++i) {
    int64_t at = i / perBatch * slices + tupleOffset(&index[i * tuple], tuple, data.shape, batchDims);
    memcpy(e.result().data.data() + i * slice, data.data.data() + at * slice, slice);
  }
  return success();
}

/// How an update meets what is there. `set` has no binary kind.
static std::optional<BinaryKind> binaryKindOf(ScatterKind kind) {
  switch (kind) {
  case ScatterKind::set:
    return std::nullopt;
  case ScatterKind::add:
    return BinaryKind::add;
  case ScatterKind::mul:
    return BinaryKind::mul;
  case ScatterKind::max:
    return BinaryKind::max;
  case ScatterKind::min:
    return BinaryKind::min;
  }
  llvm_unreachable("all kinds are handled");
}

template <typename T> static void update(std::optional<BinaryKind> kind, T &value, T with) {
  value = kind ? applyBinary<T>(*kind, value, with) : with;
}

/// Starts a scatter: the result is a copy of data.
static LogicalResult startScatter(Operation *op, ScatterKind kind, Evaluation &e) {
  std::optional<BinaryKind> binary = binaryKindOf(kind);
  if (binary && !hasBinary(*binary, e.result().elementType))
    return op->emitError() << "'" << stringifyScatterKind(kind) << "' has no meaning for "
                           << ajour_element_name(e.result().elementType);
  e.result().data = e.operand(0).data;
  return success();
}

LogicalResult evaluate(ScatterElementsOp op, Evaluation &e) {
  const HostTensor &data = e.operand(0), &indices = e.operand(1), &updates = e.operand(2);
  size_t axis = op.getAxis();
  if (failed(startScatter(op, op.getKind(), e)) || failed(checkNotEmpty(op, data, indices, axis, 1)))
    return failure();
  for (size_t d = 0; d < data.shape.size(); ++d)
    if (d != axis && indices.shape[d] > data.shape[d])
      return op.emitError() << "dimension " << d << " of the indices has " << indices.shape[d]
                            << " elements, that of data " << data.shape[d];
  std::vector<int64_t> index = readIndices(indices);
  Shape strides = stridesOf(data.shape);
  int64_t along = strides[axis];
  strides[axis] = 0;
  std::optional<BinaryKind> kind = binaryKindOf(op.getKind());
  dispatch(data.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *out = e.result().as<T>();
    forEachIndex<1>(indices.shape, {strides}, [&](int64_t i, auto &offsets) {
      update(kind, out[offsets[0] + resolveIndex(index[i], data.shape[axis]) * along], updates.as<T>()[i]);
    });
  });
  return success();
}

LogicalResult evaluate(ScatterNDOp op, Evaluation &e) {
  const HostTensor &data = e.operand(0), &indices = e.operand(1), &updates = e.operand(2);
  size_t tuple = indices.shape.back();
  if (failed(startScatter(op, op.getKind(), e)) || failed(checkNotEmpty(op, data, indices, 0, tuple)))
    return failure();
  std::vector<int64_t> index = readIndices(indices);
  int64_t count = sizeOf(indices.shape, 0, indices.shape.size() - 1);
  int64_t slice = sizeOf(data.shape, tuple, data.shape.size());
  std::optional<BinaryKind> kind = binaryKindOf(op.getKind());
  dispatch(data.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      T *out = e.result().as<T>() + tupleOffset(&index[i * tuple], tuple, data.shape, 0) * slice;
      for (int64_t k = 0; k < slice; ++k)
        update(kind, out[k], updates.as<T>()[i * slice + k]);
    }
  });
  return success();
}

LogicalResult evaluate(ReverseSequenceOp op, Evaluation &e) {
  size_t batchAxis = op.getBatchAxis(), timeAxis = op.getTimeAxis();
  ArrayRef<int64_t> shape = e.result().shape;
  std::vector<int64_t> lengths = readIndices(e.operand(1));
  Shape strides = stridesOf(shape);
  dispatchSize(e.result().elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0, count = e.result().numElements(); i < count; ++i) {
      int64_t time = i / strides[timeAxis] % shape[timeAxis], batch = i / strides[batchAxis] % shape[batchAxis];
      int64_t length = std::clamp<int64_t>(lengths[batch], 0, shape[timeAxis]);
      int64_t from = time < length ? length - 1 - time : time;
      e.result().as<T>()[i] = e.operand(0).as<T>()[i + (from - time) * strides[timeAxis]];
    }
  });
  return success();
}

LogicalResult evaluate(IotaOp op, Evaluation &e) {
  ArrayRef<int64_t> shape = e.result().shape;
  int64_t inner = sizeOf(shape, op.getAxis() + 1, shape.size());
  dispatch(e.result().elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0, count = e.result().numElements(); i < count; ++i)
      e.result().as<T>()[i] = convert<T>(i / inner % shape[op.getAxis()]);
  });
  return success();
}

} // namespace ajour::reference
