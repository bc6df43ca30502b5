//===- Shape.cpp - data movement ----------------------------------------------------===//
#include "Importer.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

LogicalResult setMoved(Node &node, Value x, size_t operand, size_t result) {
  if (!x || result >= node.numOutputs())
    return failure();
  const TensorData &from = node.in(operand), &to = node.out(result);
  if (from.isQuantized() && to.isQuantized() && from.quant->isPerTensor() && to.quant->isPerTensor())
    x = node.rescale(x, from, to);
  return node.set(x, result);
}

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Other shapes of the same elements
//===----------------------------------------------------------------------===//

/// Resolves the -1 of a reshape.
LogicalResult resolveReshape(Node &node, Value x, std::vector<int64_t> wanted, Dims &dims) {
  MLIRContext *context = node.b.getContext();
  int64_t known = 1, open = -1;
  for (auto [i, size] : llvm::enumerate(wanted)) {
    if (size == -1) {
      if (open >= 0)
        return node.error() << "the new shape has more than one -1";
      open = int64_t(i);
    } else if (size < 0 || llvm::MulOverflow(known, size, known)) {
      return node.error() << "the new shape's dimension " << i << " is " << size;
    }
    dims.push_back(getAffineConstantExpr(size, context));
  }
  AffineExpr count = numElements(getDims(x), context);
  std::optional<int64_t> elements = getConstant(count);
  if (open >= 0) {
    if (known == 0 || (elements && *elements % known))
      return node.error() << nn::toString(typeOf(x)) << " cannot be divided among the other dimensions of the new shape";
    dims[open] = elements ? getAffineConstantExpr(*elements / known, context) : count.floorDiv(known);
  } else if (elements && *elements != known) {
    return node.error() << nn::toString(typeOf(x)) << " has " << *elements << " elements, the new shape "
                        << nn::toString(ArrayRef<AffineExpr>(dims)) << " needs " << known;
  }
  return success();
}

LogicalResult importReshape(Node &node) {
  Value x = node.value(0);
  if (!x)
    return failure();
  std::vector<int64_t> wanted;
  const Reshape *o = node.options<Reshape>();
  if (node.has(1)) {
    std::optional<std::vector<int64_t>> shape = node.ints(1, "the new shape");
    if (!shape)
      return failure();
    wanted = *shape;
  } else if (o && o->new_shape()) {
    wanted.assign(o->new_shape()->begin(), o->new_shape()->end());
  } else {
    return node.error() << "the new shape is missing";
  }
  if (int64_t(wanted.size()) > Limits::rank)
    return node.error() << "the new shape has rank " << wanted.size() << ", at most " << Limits::rank
                        << " is supported";
  Dims dims;
  if (failed(resolveReshape(node, x, wanted, dims)))
    return failure();
  return setMoved(node, node.reshape(x, dims));
}

LogicalResult importSqueeze(Node &node) {
  Value x = node.value(0);
  if (!x)
    return failure();
  const Squeeze *o = node.options<Squeeze>();
  Dims dims = getDims(x), kept;
  std::vector<bool> drop(dims.size(), false);
  bool all = !o || !o->squeeze_dims() || o->squeeze_dims()->size() == 0;
  for (size_t i = 0; all && i < dims.size(); ++i)
    drop[i] = getConstant(dims[i]) == 1;
  if (!all)
    for (int32_t raw : *o->squeeze_dims()) {
      std::optional<int64_t> axis = node.axis(raw, dims.size());
      if (!axis)
        return failure();
      if (getConstant(dims[*axis]) != 1)
        return node.error() << "dimension " << *axis << " of " << nn::toString(typeOf(x)) << " is not 1";
      drop[*axis] = true;
    }
  for (size_t i = 0; i < dims.size(); ++i)
    if (!drop[i])
      kept.push_back(dims[i]);
  return setMoved(node, node.reshape(x, kept));
}

LogicalResult importExpandDims(Node &node) {
  Value x = node.value(0);
  std::optional<int64_t> raw = node.scalarInt(1, "the axis");
  std::optional<int64_t> axis = x && raw ? node.axis(*raw, typeOf(x).getRank() + 1) : std::nullopt;
  if (!axis)
    return failure();
  Dims dims = getDims(x);
  dims.insert(dims.begin() + *axis, node.b.getAffineConstantExpr(1));
  return setMoved(node, node.reshape(x, dims));
}

LogicalResult importTranspose(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> perm = node.ints(1, "the permutation");
  if (!x || !perm)
    return failure();
  for (int64_t &p : *perm)
    p = p < 0 ? p + typeOf(x).getRank() : p;
  return setMoved(node, node.transpose(x, *perm));
}

//===----------------------------------------------------------------------===//
// Padding, repetition
//===----------------------------------------------------------------------===//

struct Amounts {
  SmallVector<int64_t> low, high;
};

std::optional<Amounts> readAmounts(Node &node, Value x, size_t operand) {
  std::optional<std::vector<int64_t>> flat = node.ints(operand, "the paddings");
  if (!x || !flat)
    return std::nullopt;
  if (int64_t(flat->size()) != 2 * typeOf(x).getRank()) {
    node.error() << flat->size() << " paddings for " << nn::toString(typeOf(x)) << ", two for each dimension are "
                 << "needed";
    return std::nullopt;
  }
  Amounts amounts;
  for (size_t i = 0; i < flat->size(); i += 2) {
    for (size_t k = 0; k < 2; ++k)
      if ((*flat)[i + k] < 0 || (*flat)[i + k] > Limits::elements) {
        node.error() << "padding " << (*flat)[i + k] << " of dimension " << i / 2;
        return std::nullopt;
      }
    amounts.low.push_back((*flat)[i]);
    amounts.high.push_back((*flat)[i + 1]);
  }
  return amounts;
}

LogicalResult importPad(Node &node) {
  Value x = node.value(0);
  std::optional<Amounts> amounts = readAmounts(node, x, 1);
  if (!amounts)
    return failure();
  Value fill;
  if (node.has(2)) {
    fill = node.value(2);
    if (!fill)
      return failure();
  } else if (node.isQuantized(0)) {
    // A padded real 0 is stored as the zero point.
    if (failed(node.needPerTensor(node.in(0))))
      return failure();
    fill = node.intScalar(typeOf(x).getElementType(), node.in(0).quant->zeroPoints[0]);
  }
  return setMoved(node, node.pad(x, fill, amounts->low, amounts->high));
}

LogicalResult importMirrorPad(Node &node) {
  const MirrorPad *o = node.options<MirrorPad>();
  Value x = node.value(0);
  std::optional<Amounts> amounts = readAmounts(node, x, 1);
  if (!amounts)
    return failure();
  PadMode mode = o && o->mode() == MirrorMode::SYMMETRIC ? PadMode::symmetric : PadMode::reflect;
  return setMoved(node, node.pad(x, Value(), amounts->low, amounts->high, mode));
}

/// Dimensions as [1, d0, 1, d1, ...], repeated, and joined again.
LogicalResult importTile(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> repeats = node.ints(1, "the multiples");
  std::optional<std::vector<int64_t>> shape = x ? node.staticShape(x) : std::nullopt;
  if (!repeats || !shape)
    return failure();
  if (repeats->size() != shape->size())
    return node.error() << repeats->size() << " multiples for " << nn::toString(typeOf(x));
  SmallVector<int64_t> split, repeated, joined;
  int64_t total = 1;
  for (size_t i = 0; i < shape->size(); ++i) {
    if ((*repeats)[i] < 0 || (*repeats)[i] > Limits::elements)
      return node.error() << "multiple " << (*repeats)[i] << " of dimension " << i;
    split.append({1, (*shape)[i]});
    repeated.append({(*repeats)[i], (*shape)[i]});
    int64_t size;
    if (llvm::MulOverflow((*repeats)[i], (*shape)[i], size) || llvm::MulOverflow(total, size, total) ||
        total > Limits::elements)
      return node.error() << "the result has more than " << Limits::elements << " elements";
    joined.push_back(size);
  }
  return setMoved(node, node.reshape(node.broadcast(node.reshape(x, split), repeated), joined));
}

LogicalResult checkShape(Node &node, ArrayRef<int64_t> shape) {
  int64_t total = 1;
  for (int64_t size : shape)
    if (size < 0 || llvm::MulOverflow(total, size, total) || total > Limits::elements)
      return node.error() << "dimension " << size << " of the result's shape";
  if (int64_t(shape.size()) > Limits::rank)
    return node.error() << "a result of rank " << shape.size() << ", at most " << Limits::rank << " is supported";
  return success();
}

LogicalResult importBroadcastTo(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> shape = node.ints(1, "the shape");
  if (!x || !shape || failed(checkShape(node, *shape)))
    return failure();
  return setMoved(node, node.broadcast(x, *shape));
}

LogicalResult importFill(Node &node) {
  std::optional<std::vector<int64_t>> shape = node.ints(0, "the shape");
  Value x = node.value(1);
  if (!x || !shape || failed(checkShape(node, *shape)))
    return failure();
  return setMoved(node, node.broadcast(x, *shape), 1);
}

LogicalResult importZerosLike(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> shape = x ? node.staticShape(x) : std::nullopt;
  if (!shape)
    return failure();
  return node.set(node.broadcast(node.scalar(typeOf(x).getElementType(), 0), *shape));
}

//===----------------------------------------------------------------------===//
// Shapes and ranges as values
//===----------------------------------------------------------------------===//

Value integerVector(Node &node, ArrayRef<int64_t> shape, ArrayRef<int64_t> elements) {
  Type type = node.out().elementType;
  auto integer = dyn_cast_or_null<IntegerType>(type);
  if (!integer || integer.getWidth() < 32) {
    node.error() << "result type " << typeName(node.out().format) << ", supported: INT32, INT64";
    return {};
  }
  int64_t width = elementBytes(type);
  std::vector<char> bytes(elements.size() * width);
  for (auto [i, element] : llvm::enumerate(elements))
    memcpy(bytes.data() + i * width, &element, width);
  return node.constant(makeTensor(shape, type), bytes);
}

LogicalResult importShape(Node &node) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> shape = x ? node.staticShape(x) : std::nullopt;
  return shape ? node.set(integerVector(node, {int64_t(shape->size())}, *shape)) : failure();
}

LogicalResult importRank(Node &node) {
  Value x = node.value(0);
  return x ? node.set(integerVector(node, {}, {typeOf(x).getRank()})) : failure();
}

LogicalResult importRange(Node &node) {
  Value operands[3] = {node.value(0), node.value(1), node.value(2)};
  std::vector<float> reals;
  std::vector<int64_t> integers;
  for (Value operand : operands) {
    ElementsAttr attr = operand ? getConstantValue(operand) : ElementsAttr();
    if (!operand)
      return failure();
    if (!attr || typeOf(operand).getNumElements() != 1)
      return node.error() << "start, limit and delta must be constants with one element";
    if (auto ints = constantInts(attr))
      integers.push_back((*ints)[0]);
    else if (auto floats = constantFloats(attr))
      reals.push_back((*floats)[0]);
  }
  if (integers.size() == 3) {
    int64_t start = integers[0], limit = integers[1], delta = integers[2];
    if (delta == 0 || (limit > start) != (delta > 0 && limit != start))
      return node.error() << "a range from " << start << " to " << limit << " by " << delta;
    int64_t span;
    constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
    if (llvm::SubOverflow(limit, start, span) || span == lowest || delta == lowest)
      return node.error() << "a range from " << start << " to " << limit << " overflows";
    int64_t count = int64_t(llvm::divideCeil(std::abs(span), std::abs(delta)));
    if (failed(node.spend(count, sizeof(int64_t))))
      return failure();
    std::vector<int64_t> elements(count);
    for (int64_t i = 0; i < count; ++i)
      elements[i] = start + i * delta;
    return node.set(integerVector(node, {count}, elements));
  }
  if (reals.size() != 3)
    return node.error() << "start, limit and delta must have equal types";
  double count = std::ceil(std::fabs((double(reals[1]) - reals[0]) / reals[2]));
  if (!(count >= 0 && count <= 1 << 24) || ((reals[1] > reals[0]) != (reals[2] > 0) && reals[1] != reals[0]))
    return node.error() << "a range from " << reals[0] << " to " << reals[1] << " by " << reals[2];
  if (failed(node.spend(int64_t(count), sizeof(float))))
    return failure();
  std::vector<float> elements(static_cast<size_t>(count), 0.0f);
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = reals[0] + float(i) * reals[2];
  return node.set(node.floats(elements));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

LogicalResult setGather(Node &node, size_t data, size_t indices, int64_t rawAxis, int64_t batch) {
  Value x = node.value(data), at = node.value(indices);
  if (!x || !at)
    return failure();
  if (!isa<IntegerType>(typeOf(at).getElementType()))
    return node.unsupportedType(indices, "INT16, INT32, INT64");
  std::optional<int64_t> axis = node.axis(rawAxis, typeOf(x).getRank());
  if (!axis)
    return failure();
  GatherOp::Properties p;
  p.setAxis(node.b.getI64IntegerAttr(*axis));
  p.setBatchDims(node.b.getI64IntegerAttr(batch < 0 ? batch + typeOf(at).getRank() : batch));
  return setMoved(node, node.create<GatherOp>(p, {x, at}), data);
}

LogicalResult importGather(Node &node) {
  const Gather *o = node.options<Gather>();
  return setGather(node, 0, 1, o ? o->axis() : 0, o ? o->batch_dims() : 0);
}

LogicalResult importEmbeddingLookup(Node &node) {
  if (!node.has(0) || !node.has(1))
    return node.error() << "operands 0 and 1 are needed";
  if (node.isQuantized(1) && !node.out().isQuantized()) {
    Value x = node.floatValue(1), at = node.value(0);
    if (!x || !at)
      return failure();
    GatherOp::Properties p;
    p.setAxis(node.b.getI64IntegerAttr(0));
    return node.setFloat(node.create<GatherOp>(p, {x, at}));
  }
  return setGather(node, 1, 0, 0, 0);
}

LogicalResult importGatherND(Node &node) {
  Value x = node.value(0), at = node.value(1);
  if (!x || !at)
    return failure();
  if (!isa<IntegerType>(typeOf(at).getElementType()))
    return node.unsupportedType(1, "INT16, INT32, INT64");
  return setMoved(node, node.create<GatherNDOp>({}, {x, at}));
}

LogicalResult importScatterND(Node &node) {
  Value at = node.value(0), updates = node.value(1);
  std::optional<std::vector<int64_t>> shape = node.ints(2, "the shape");
  if (!at || !updates || !shape || failed(checkShape(node, *shape)))
    return failure();
  if (!isa<IntegerType>(typeOf(at).getElementType()))
    return node.unsupportedType(0, "INT32, INT64");
  Value zeros = node.broadcast(node.scalar(typeOf(updates).getElementType(), 0), *shape);
  ScatterNDOp::Properties p;
  p.setKind(ScatterKindAttr::get(node.b.getContext(), ScatterKind::add)); // updates of one place add up
  return setMoved(node, node.create<ScatterNDOp>(p, {zeros, at, updates}), 1);
}

LogicalResult importOneHot(Node &node) {
  const OneHot *o = node.options<OneHot>();
  Value at = node.value(0), on = node.value(2), off = node.value(3);
  std::optional<int64_t> depth = node.scalarInt(1, "the depth");
  if (!at || !on || !off || !depth)
    return failure();
  if (!isa<IntegerType>(typeOf(at).getElementType()) || *depth < 0 || *depth > Limits::elements)
    return node.error() << "indices " << nn::toString(typeOf(at)) << " and depth " << *depth;
  Dims dims = getDims(at);
  int64_t rank = dims.size() + 1, raw = o ? o->axis() : -1;
  std::optional<int64_t> axis = node.axis(raw, rank);
  if (!axis)
    return failure();
  dims.insert(dims.begin() + *axis, node.b.getAffineConstantExpr(1));
  SmallVector<int64_t> counts(rank, 1);
  counts[*axis] = *depth;
  IotaOp::Properties p;
  p.setAxis(node.b.getI64IntegerAttr(*axis));
  Value numbers = node.createAs<IotaOp>(makeTensor(counts, typeOf(at).getElementType()), p, ValueRange());
  return node.set(node.select(node.compare(CompareKind::eq, node.reshape(at, dims), numbers), on, off));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// [N, H, W, C] between spatial blocks and channels.
template <bool toDepth> LogicalResult setBlocks(Node &node, int64_t block) {
  Value x = node.value(0);
  std::optional<std::vector<int64_t>> shape = x ? node.staticShape(x) : std::nullopt;
  if (!shape)
    return failure();
  auto &s = *shape;
  bool fits = s.size() == 4 && block >= 1 &&
              (toDepth ? s[1] % block == 0 && s[2] % block == 0 : block < 1 << 15 && s[3] % (block * block) == 0);
  if (!fits)
    return node.error() << "block size " << block << " does not fit " << nn::toString(typeOf(x));
  if (toDepth) {
    x = node.reshape(x, {s[0], s[1] / block, block, s[2] / block, block, s[3]});
    x = node.transpose(x, {0, 1, 3, 2, 4, 5});
    return setMoved(node, node.reshape(x, {s[0], s[1] / block, s[2] / block, s[3] * block * block}));
  }
  int64_t depth = s[3] / (block * block);
  x = node.reshape(x, {s[0], s[1], s[2], block, block, depth});
  x = node.transpose(x, {0, 1, 3, 2, 4, 5});
  return setMoved(node, node.reshape(x, {s[0], s[1] * block, s[2] * block, depth}));
}

LogicalResult importSpaceToDepth(Node &node) {
  const SpaceToDepth *o = node.options<SpaceToDepth>();
  return setBlocks<true>(node, o ? o->block_size() : 0);
}
LogicalResult importDepthToSpace(Node &node) {
  const DepthToSpace *o = node.options<DepthToSpace>();
  return setBlocks<false>(node, o ? o->block_size() : 0);
}

/// The block shape and the pairs (paddings or crops) of the batch operators.
struct BatchBlocks {
  std::vector<int64_t> block, pairs;
  size_t spatial() const { return block.size(); }
};

std::optional<BatchBlocks> readBlocks(Node &node, Value x) {
  std::optional<std::vector<int64_t>> block = node.ints(1, "the block shape"), pairs = node.ints(2, "the paddings");
  if (!x || !block || !pairs)
    return std::nullopt;
  bool good = int64_t(block->size()) + 1 <= typeOf(x).getRank() && pairs->size() == 2 * block->size() && !block->empty();
  for (int64_t size : *block)
    good &= size >= 1 && size <= 1 << 20;
  for (int64_t amount : *pairs)
    good &= amount >= 0 && amount <= Limits::elements;
  if (good)
    return BatchBlocks{*block, *pairs};
  node.error() << block->size() << " block sizes and " << pairs->size() << " paddings or crops for "
               << nn::toString(typeOf(x));
  return std::nullopt;
}

LogicalResult importSpaceToBatch(Node &node) {
  Value x = node.value(0);
  std::optional<BatchBlocks> blocks = readBlocks(node, x);
  if (!blocks)
    return failure();
  SmallVector<int64_t> low(typeOf(x).getRank(), 0), high(typeOf(x).getRank(), 0);
  for (size_t i = 0; i < blocks->spatial(); ++i) {
    low[i + 1] = blocks->pairs[2 * i];
    high[i + 1] = blocks->pairs[2 * i + 1];
  }
  Value fill;
  if (node.isQuantized(0) && node.in(0).quant->isPerTensor())
    fill = node.intScalar(typeOf(x).getElementType(), node.in(0).quant->zeroPoints[0]);
  x = node.pad(x, fill, low, high);
  std::optional<std::vector<int64_t>> shape = x ? node.staticShape(x) : std::nullopt;
  if (!shape)
    return failure();
  // [N, H/b, b, W/b, b, rest...] to [b, b, N, H/b, W/b, rest...].
  SmallVector<int64_t> split{(*shape)[0]}, perm, outer{0}, joined{(*shape)[0]};
  for (size_t i = 0; i < blocks->spatial(); ++i) {
    int64_t size = (*shape)[i + 1], block = blocks->block[i];
    if (size % block)
      return node.error() << "block size " << block << " does not divide the padded dimension of " << size;
    outer.push_back(split.size());
    perm.push_back(split.size() + 1);
    split.append({size / block, block});
    joined[0] *= block;
    joined.push_back(size / block);
  }
  for (size_t i = blocks->spatial() + 1; i < shape->size(); ++i) {
    outer.push_back(split.size());
    split.push_back((*shape)[i]);
    joined.push_back((*shape)[i]);
  }
  perm.append(outer);
  return setMoved(node, node.reshape(node.transpose(node.reshape(x, split), perm), joined));
}

LogicalResult importBatchToSpace(Node &node) {
  Value x = node.value(0);
  std::optional<BatchBlocks> blocks = readBlocks(node, x);
  std::optional<std::vector<int64_t>> shape = blocks ? node.staticShape(x) : std::nullopt;
  if (!shape)
    return failure();
  // [b, b, N, H, W, rest...] to [N, H, b, W, b, rest...].
  size_t spatial = blocks->spatial();
  int64_t batch = (*shape)[0];
  SmallVector<int64_t> split, perm{int64_t(spatial)}, joined;
  for (int64_t block : blocks->block) {
    if (batch % block)
      return node.error() << "block size " << block << " does not divide the batch of " << (*shape)[0];
    batch /= block;
    split.push_back(block);
  }
  split.push_back(batch);
  joined.push_back(batch);
  for (size_t i = 1; i < shape->size(); ++i) {
    perm.push_back(split.size());
    if (i <= spatial)
      perm.push_back(i - 1);
    split.push_back((*shape)[i]);
    joined.push_back(i <= spatial ? (*shape)[i] * blocks->block[i - 1] : (*shape)[i]);
  }
  x = node.reshape(node.transpose(node.reshape(x, split), perm), joined);
  SmallVector<int64_t> low(joined.size(), 0), high(joined.size(), 0);
  for (size_t i = 0; i < spatial; ++i) {
    low[i + 1] = -blocks->pairs[2 * i];
    high[i + 1] = -blocks->pairs[2 * i + 1];
  }
  return setMoved(node, node.pad(x, Value(), low, high));
}

const OpRow rows[] = {
    {Builtin::RESHAPE, 1, 1, 2, importReshape},
    {Builtin::SQUEEZE, 2, 1, 1, importSqueeze},
    {Builtin::EXPAND_DIMS, 1, 2, 2, importExpandDims},
    {Builtin::TRANSPOSE, 6, 2, 2, importTranspose},
    {Builtin::PAD, 4, 2, 2, importPad},
    {Builtin::PADV2, 4, 3, 3, importPad},
    {Builtin::MIRROR_PAD, 3, 2, 2, importMirrorPad},
    {Builtin::TILE, 3, 2, 2, importTile},
    {Builtin::BROADCAST_TO, 3, 2, 2, importBroadcastTo},
    {Builtin::FILL, 4, 2, 2, importFill},
    {Builtin::ZEROS_LIKE, 1, 1, 1, importZerosLike},
    {Builtin::SHAPE, 1, 1, 1, importShape},
    {Builtin::RANK, 1, 1, 1, importRank},
    {Builtin::RANGE, 2, 3, 3, importRange},
    {Builtin::GATHER, 7, 2, 2, importGather},
    {Builtin::EMBEDDING_LOOKUP, 4, 2, 2, importEmbeddingLookup},
    {Builtin::GATHER_ND, 5, 2, 2, importGatherND},
    {Builtin::SCATTER_ND, 1, 3, 3, importScatterND},
    {Builtin::ONE_HOT, 1, 4, 4, importOneHot},
    {Builtin::SPACE_TO_DEPTH, 2, 1, 1, importSpaceToDepth},
    {Builtin::DEPTH_TO_SPACE, 2, 1, 1, importDepthToSpace},
    {Builtin::SPACE_TO_BATCH_ND, 4, 3, 3, importSpaceToBatch},
    {Builtin::BATCH_TO_SPACE_ND, 4, 3, 3, importBatchToSpace},
};

} // namespace

ArrayRef<OpRow> shapeRows() { return rows; }

} // namespace ajour::tflite
