//===- SparseConv.cpp - convolutions with sparse weights over pixels --------------------===//
//
// Weights that are mostly zeros are lists of what is kept (ajour/Encoding/PackSparse.h), and the kernels that walk a list
// work on vectors of pixels. So they want channel-major activations, each channel's pixels next to each other: the
// callee reads its input through a transposition, and its results go through another.
//
// Windows of one tap are products over all pixels (flat): tiles of pixels times groups of filters. Others take a tile of
// up to 16 rows of 16 lanes; chunks of channels are laid out for it (expand), and all filters of the item meet a chunk before
// the next one comes, with their accumulators in scratch. Depthwise convolutions between them, dense as a rule, go the same
// way: each filter has one channel.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Conversion/Encode.h"
#include "ajour/Conversion/Simplify.h"

using namespace mlir;

namespace ajour::loops {

/// Bytes of a chunk's expanded channels, which should stay in the first-level cache beside accumulators and weights.
static constexpr int64_t chunkBytes = 28 << 10;
/// Below this density most of a chunk is not read by a filter, and longer lists are worth more than a cache that holds all of it.
static constexpr double thinDensity = 0.3;
/// Rows of a tile. The same for all levels, so that they share packed weights.
static constexpr int64_t tileRows = 16, laneCount = 16;
/// Vectors of 16 pixels of a flat tile, by the filters that share entries.
static int64_t flatVectors(int64_t group) { return group == 1 ? 16 : group == 2 ? 12 : group == 4 ? 6 : 3; }

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// The argument that holds the input channel-major, if the input is a transposition of one.
static Value channelMajorSource(Value input) {
  auto transpose = input.getDefiningOp<nn::TransposeOp>();
  if (!transpose || !isa<BlockArgument>(transpose.getInput()) ||
      transpose.getPerm() != ArrayRef<int64_t>({0, 2, 3, 1}))
    return Value();
  return transpose.getInput();
}

/// Successive filters that share entries: as selected, or else the fastest, since the layout is decided.
static std::optional<int64_t> chooseGroup(const WeightUse &use, int64_t pixels, ajour_cpu_level level) {
  KernelChoice choice = selectKernel(use, pixels, level);
  if (isOverPixels(choice.family))
    return choice.group;
  std::optional<int64_t> group;
  double best = 0;
  for (KernelFamily family : {KernelFamily::Spmm, KernelFamily::Spconv})
    for (int64_t candidate : {1, 2, 4, 8})
      if (auto cost = estimateCost(use, family, candidate, pixels, level); cost && (!group || *cost < best)) {
        group = candidate;
        best = *cost;
      }
  return group;
}

std::optional<SparseConvPlan> DispatchLowering::planSparseConv(nn::ConvOp op) {
  nn::Dims in = nn::getDims(op.getInput()), out = nn::getDims(op.getResult());
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  Value source = channelMajorSource(op.getInput());
  bool isDepthwise = in.size() == 4 && int64_t(op.getGroups()) > 1 && known(in[3]) == int64_t(op.getGroups()) &&
                     filter.getDimSize(0) == int64_t(op.getGroups());
  if (!source || !op->hasAttr(channelMajorAttr) || in.size() != 4 || (op.getGroups() != 1 && !isDepthwise) || !constantArgument(op.getFilter()) ||
      !llvm::all_of(in, known) || !llvm::all_of(out, known) || !Emitter::elementType(op.getInput()).isF32() ||
      !filter.getElementType().isF32() || filter.getNumElements() == 0)
    return std::nullopt;
  int64_t pixels = *known(nn::numElements(ArrayRef(out).drop_back(), context));
  std::optional<WeightUse> use = getWeightUse(op);
  // Nothing is noted on dense weights, which are here since their neighbours are channel-major.
  std::optional<int64_t> group = isDepthwise || !use ? 1 : chooseGroup(*use, pixels, level);
  if (!group)
    return std::nullopt;
  SparseConvPlan plan{};
  plan.density = isDepthwise || !use ? 1 : use->groupDensity(*group);
  plan.conv = op;
  plan.source = source;
  plan.bias = op.getBias();
  plan.isDepthwise = isDepthwise;
  plan.images = *known(in[0]);
  plan.height = *known(out[1]), plan.width = *known(out[2]);
  if (plan.images * plan.height * plan.width == 0 || *known(in[1]) * *known(in[2]) == 0)
    return std::nullopt;
  encoding::SparsePlan &sparse = plan.sparse;
  sparse.filters = filter.getDimSize(0), sparse.kh = filter.getDimSize(1), sparse.kw = filter.getDimSize(2);
  sparse.channels = filter.getDimSize(3);
  sparse.group = *group;
  auto isOne = [](int64_t value) { return value == 1; };
  auto isZero = [](int64_t value) { return value == 0; };
  plan.isFlat = sparse.kh * sparse.kw == 1 && llvm::all_of(op.getStrides(), isOne) &&
                llvm::all_of(op.getPadsLow(), isZero) && llvm::all_of(op.getPadsHigh(), isZero);
  plan.isFlat ? planFlat(plan) : planWindows(plan);
  if (sparse.units() > 0x10000)
    return std::nullopt;
  plan.kernel = ajour_find_kernel(sparse.runs ? AJOUR_KERNEL_spconv_f32 : AJOUR_KERNEL_spmm_f32, level);
  if (!plan.kernel)
    return std::nullopt;
  PackSpec spec{};
  spec.weights = *constantArgument(op.getFilter());
  spec.sparse = sparse;
  spec.kind = PackSpec::SparseInputs;
  plan.inputsPack = addPack(spec);
  spec.kind = PackSpec::SparseWeights;
  plan.weightsPack = addPack(spec);
  spec.kind = PackSpec::SparseIndex;
  plan.indexPack = addPack(spec);
  return plan;
}

void DispatchLowering::planFlat(SparseConvPlan &plan) {
  int64_t pixels = plan.height * plan.width, vectors = llvm::divideCeil(pixels, laneCount);
  plan.sparse.chunk = plan.sparse.channels;
  int64_t most = flatVectors(plan.sparse.group);
  // Channels that start inside a cache line are copied to the start of one, as are those of single filters, whose loads
  // are what bounds the kernel.
  plan.copies = pixels % laneCount != 0 && plan.sparse.groups() >= 16;
  if (plan.copies)
    most = std::clamp<int64_t>((512 << 10) / (plan.sparse.channels * laneCount * 4), 1, most);
  plan.tiles = llvm::divideCeil(vectors, most);
  plan.tilePixels = llvm::divideCeil(vectors, plan.tiles) * laneCount;
  plan.tiles = llvm::divideCeil(pixels, plan.tilePixels);
  int64_t wanted = plan.copies ? wantedCopyingItems : wantedItems;
  int64_t ranges = std::min<int64_t>(llvm::divideCeil(wanted, plan.images * plan.tiles), plan.sparse.groups());
  plan.groupsPerItem = llvm::divideCeil(plan.sparse.groups(), ranges);
}

void DispatchLowering::planWindows(SparseConvPlan &plan) {
  nn::ConvOp op = plan.conv;
  encoding::SparsePlan &sparse = plan.sparse;
  sparse.strideY = op.getStrides()[0], sparse.dilationY = op.getDilations()[0];
  // Whole strips of 16 columns, then what is left in segments that share vectors.
  int64_t x = 0;
  auto addStrips = [&](int64_t width, int64_t lanes, int64_t count) {
    int64_t segments = laneCount / width, tiles = llvm::divideCeil(plan.height, tileRows * segments);
    int64_t rows = llvm::divideCeil(plan.height, tiles * segments);
    plan.strips.push_back({x, width, lanes, count, rows, int64_t(llvm::divideCeil(plan.height, rows * segments))});
    plan.tiles += plan.strips.back().tiles * count;
    x += lanes * count;
  };
  if (plan.width >= laneCount)
    addStrips(laneCount, laneCount, plan.width / laneCount);
  int64_t left = plan.width - x;
  if (left > 12)
    addStrips(16, left, 1);
  else if (left > 8)
    addStrips(8, 8, 1), addStrips(4, left - 8, 1);
  else if (left > 0)
    addStrips(left > 4 ? 8 : 4, left, 1);
  int64_t reach = (sparse.kh - 1) * sparse.dilationY, rows = 0;
  for (const SparseConvPlan::Strips &strips : plan.strips)
    rows = std::max(rows, strips.rows);
  sparse.phaseUnits = rows + reach / sparse.strideY;
  sparse.columnUnits = std::min(sparse.strideY, reach + 1) * sparse.phaseUnits;
  sparse.channelUnits = sparse.kw * sparse.columnUnits;
  sparse.runs = sparse.group == 1;
  int64_t fits = std::max<int64_t>(1, (plan.density < thinDensity ? 2 : 1) * chunkBytes / (sparse.channelUnits * laneCount * 4));
  sparse.chunk = llvm::divideCeil(sparse.channels, llvm::divideCeil(sparse.channels, fits));
  int64_t ranges = std::min<int64_t>(llvm::divideCeil(wantedCopyingItems, plan.images * plan.tiles), sparse.groups());
  // Each range expands the channels anew: not where few filters use them.
  if (plan.isDepthwise)
    ranges = std::min<int64_t>(llvm::divideCeil(wantedItems, plan.images * plan.tiles), sparse.groups());
  else
    ranges = std::min(ranges, std::max<int64_t>(2, sparse.filters / 128));
  plan.groupsPerItem = llvm::divideCeil(sparse.groups(), std::min<int64_t>(ranges, sparse.groups()));
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Value DispatchLowering::sparseIndex(const SparseConvPlan &plan, Value position) {
  Value entry = e->loadAt(operandPointer(OperandSpec::Packed, plan.indexPack), position, e->b.getI32Type());
  return arith::ExtUIOp::create(e->b, e->loc, e->b.getI64Type(), entry);
}

/// One list of a chunk: `group` filters over a tile of `pixels` pixels.
void DispatchLowering::callSparse(const SparseConvPlan &plan, Value src, Value scale, Value chunk, Value group, Value acc,
                                  int64_t lda, int64_t pixels, Value accumulate) {
  Type f32 = e->b.getF32Type(), i16 = e->b.getI16Type();
  const encoding::SparsePlan &sparse = plan.sparse;
  Value list = e->add(e->mul(chunk, e->i64(sparse.groups())), group);
  Value inputs = operandPointer(OperandSpec::Packed, plan.inputsPack);
  Value weights = operandPointer(OperandSpec::Packed, plan.weightsPack);
  if (!sparse.runs) {
    Value first = sparseIndex(plan, list), count = e->sub(sparseIndex(plan, e->add(list, e->i64(1))), first);
    callKernel(plan.kernel->symbol, {src, scale, e->pointer(inputs, first, i16),
                                     e->pointer(weights, e->mul(first, e->i64(sparse.group)), f32), acc, e->i64(lda),
                                     e->i64(sparse.group), e->i64(pixels), count, accumulate});
    return;
  }
  SmallVector<Value> row;
  for (int64_t i = 0; i < 5; ++i)
    row.push_back(sparseIndex(plan, e->add(e->mul(list, e->i64(5)), e->i64(i))));
  callKernel(plan.kernel->symbol, {src, e->pointer(inputs, row[0], i16), e->pointer(weights, row[1], f32), acc,
                                   e->i64(pixels / laneCount), row[2], row[3], row[4], accumulate});
}

/// From an accumulator to the results: `index` is the convolution's.
void DispatchLowering::storeSparse(const SparseConvPlan &plan, Value acc, Value position, ArrayRef<Value> index) {
  Value value = e->loadAt(acc, position, e->b.getF32Type());
  if (plan.bias)
    value = arith::AddFOp::create(e->b, e->loc, value, e->element(plan.bias, {index.back()}));
  nn::ConvOp conv = plan.conv;
  e->bindElement(conv.getResult(), [=](ArrayRef<Value>) { return value; });
  storeResults(index);
}

/// The filters of a group that exist: fn(position in the group, filter).
void DispatchLowering::forFilters(const SparseConvPlan &plan, Value group, function_ref<void(Value, Value)> fn) {
  const encoding::SparsePlan &sparse = plan.sparse;
  Value first = e->mul(group, e->i64(sparse.group));
  Value count = sparse.filters % sparse.group == 0 ? e->i64(sparse.group)
                                                   : e->min(e->i64(sparse.group), e->sub(e->i64(sparse.filters), first));
  e->loop(e->i64(0), count, [&](Value r) { fn(r, e->add(first, r)); });
}

void DispatchLowering::lowerSparseConv(const SparseConvPlan &plan) {
  plan.isFlat ? lowerFlat(plan) : lowerWindows(plan);
}

void DispatchLowering::lowerFlat(const SparseConvPlan &plan) {
  Type f32 = e->b.getF32Type();
  const encoding::SparsePlan &sparse = plan.sparse;
  int64_t pixels = plan.height * plan.width, n = plan.tilePixels, last = pixels - (plan.tiles - 1) * n;
  int64_t ranges = llvm::divideCeil(sparse.groups(), plan.groupsPerItem);
  nn::ConvOp conv = plan.conv;
  nn::Dims out = nn::getDims(conv.getResult());
  if (plan.copies)
    lowered.scratchBytes = getAffineConstantExpr(sparse.channels * n * 4 + AJOUR_BUFFER_SLACK, context);
  auto c = [&](int64_t value) { return e->i64(value); };
  items(getAffineConstantExpr(plan.images * plan.tiles * ranges, context), [&](Value item) {
    Value range = e->rem(item, c(ranges)), rest = e->div(item, c(ranges));
    Value image = e->div(rest, c(plan.tiles)), firstPixel = e->mul(e->rem(rest, c(plan.tiles)), c(n));
    Value firstGroup = e->mul(range, c(plan.groupsPerItem));
    Value lastGroup = e->min(c(sparse.groups()), e->add(firstGroup, c(plan.groupsPerItem)));
    Value source = e->pointer(e->buffer(plan.source),
                              e->add(e->mul(image, c(sparse.channels * pixels)), firstPixel), f32);
    Value acc = e->frameArray(f32, sparse.group * n);
    auto tile = [&](int64_t count) {
      Value src = source, scale = c(pixels);
      if (plan.copies) {
        callKernel("ajour_copy_rows_8bit", {source, c(pixels * 4), scratch, c(n * 4), c(sparse.channels), c(count * 4),
                                            c(llvm::alignTo(count, laneCount) * 4), c(0)});
        src = scratch, scale = c(n);
      }
      e->loop(firstGroup, lastGroup, [&](Value group) {
        callSparse(plan, src, scale, c(0), group, acc, n, count, c(0));
        forFilters(plan, group, [&](Value r, Value filter) {
          e->loop(c(0), c(count), [&](Value i) {
            Index at = e->delinearize(e->add(firstPixel, i), {out[1], out[2]});
            storeSparse(plan, acc, e->add(e->mul(r, c(n)), i), {image, at[0], at[1], filter});
          });
        });
      });
    };
    if (last == n) {
      tile(n);
      return;
    }
    Value isWhole = e->compare(arith::CmpIPredicate::slt, firstPixel, c((plan.tiles - 1) * n));
    e->ifThenElse(isWhole, [&] { tile(n); }, [&] { tile(last); });
  });
}

void DispatchLowering::lowerWindows(const SparseConvPlan &plan) {
  const encoding::SparsePlan &sparse = plan.sparse;
  int64_t ranges = llvm::divideCeil(sparse.groups(), plan.groupsPerItem), most = 0;
  for (const SparseConvPlan::Strips &strips : plan.strips)
    most = std::max(most, strips.rows);
  int64_t accumulators = (plan.isDepthwise ? 1 : plan.groupsPerItem) * sparse.group * most * laneCount;
  int64_t expanded = sparse.chunk * sparse.channelUnits * laneCount + 2 * laneCount;
  lowered.scratchBytes = getAffineConstantExpr((expanded + accumulators) * 4 + AJOUR_BUFFER_SLACK, context);
  auto c = [&](int64_t value) { return e->i64(value); };
  items(getAffineConstantExpr(plan.images * plan.tiles * ranges, context), [&](Value item) {
    Value range = e->rem(item, c(ranges)), rest = e->div(item, c(ranges));
    Value image = e->div(rest, c(plan.tiles)), tile = e->rem(rest, c(plan.tiles));
    Value firstGroup = e->mul(range, c(plan.groupsPerItem));
    Value lastGroup = e->min(c(sparse.groups()), e->add(firstGroup, c(plan.groupsPerItem)));
    Value acc = e->pointer(scratch, c(expanded), e->b.getF32Type());
    // Code for each kind of strip, with its sizes as constants.
    int64_t firstTile = 0;
    std::function<void(size_t)> choose = [&](size_t kind) {
      const SparseConvPlan::Strips &strips = plan.strips[kind];
      int64_t base = firstTile;
      firstTile += strips.tiles * strips.count;
      auto emit = [&, base] {
        Value own = e->sub(tile, c(base));
        // Tiles of a row of strips follow each other: what they read and write is close together.
        Value x = e->add(c(strips.x), e->mul(e->rem(own, c(strips.count)), c(strips.lanes)));
        Value y = e->mul(e->div(own, c(strips.count)), c(strips.rows * (laneCount / strips.width)));
        emitWindowTile(plan, strips, image, y, x, firstGroup, lastGroup, acc);
      };
      if (kind + 1 == plan.strips.size())
        return emit();
      Value isOwn = e->compare(arith::CmpIPredicate::slt, tile, c(firstTile));
      e->ifThenElse(isOwn, emit, [&] { choose(kind + 1); });
    };
    choose(0);
  });
}

void DispatchLowering::emitWindowTile(const SparseConvPlan &plan, const SparseConvPlan::Strips &strips, Value image,
                                      Value y, Value x, Value firstGroup, Value lastGroup, Value accs) {
  nn::ConvOp op = plan.conv;
  const encoding::SparsePlan &sparse = plan.sparse;
  Type f32 = e->b.getF32Type();
  nn::Dims in = nn::getDims(op.getInput());
  int64_t height = *known(in[1]), width = *known(in[2]), pixels = strips.rows * laneCount;
  auto c = [&](int64_t value) { return e->i64(value); };
  auto expand = [&](Value channel, Value count) {
    Value source = e->pointer(e->buffer(plan.source), e->mul(channel, c(height * width)), f32);
    callKernel("ajour_expand_f32",
               {source, c(height * width), count, c(height), c(width), scratch, y, x, c(strips.rows), c(sparse.phaseUnits),
                c(strips.width), c(sparse.kh), c(sparse.kw), c(op.getStrides()[0]), c(op.getStrides()[1]),
                c(op.getDilations()[0]), c(op.getDilations()[1]), c(op.getPadsLow()[0]), c(op.getPadsLow()[1])});
  };
  if (plan.isDepthwise) {
    e->loop(firstGroup, lastGroup, [&](Value filter) {
      expand(e->add(e->mul(image, c(sparse.filters)), filter), c(1));
      callSparse(plan, scratch, c(laneCount), c(0), filter, accs, pixels, pixels, c(0));
      storeWindowTile(plan, strips, image, y, x, filter, accs);
    });
    return;
  }
  e->loop(c(0), c(sparse.chunks()), [&](Value chunk) {
    Value first = e->mul(chunk, c(sparse.chunk));
    expand(e->add(e->mul(image, c(sparse.channels)), first), e->min(c(sparse.chunk), e->sub(c(sparse.channels), first)));
    Value accumulate = arith::ExtUIOp::create(e->b, e->loc, e->b.getI64Type(),
                                              e->compare(arith::CmpIPredicate::ne, chunk, c(0)));
    Value isLast = e->compare(arith::CmpIPredicate::eq, chunk, c(sparse.chunks() - 1));
    e->loop(firstGroup, lastGroup, [&](Value group) {
      Value acc = e->pointer(accs, e->mul(e->sub(group, firstGroup), c(sparse.group * pixels)), f32);
      callSparse(plan, scratch, c(laneCount), chunk, group, acc, pixels, pixels, accumulate);
      e->ifThenElse(isLast, [&] { storeWindowTile(plan, strips, image, y, x, group, acc); }, [] {});
    });
  });
}

void DispatchLowering::storeWindowTile(const SparseConvPlan &plan, const SparseConvPlan::Strips &strips, Value image,
                                       Value y, Value x, Value group, Value acc) {
  auto c = [&](int64_t value) { return e->i64(value); };
  int64_t pixels = strips.rows * laneCount;
  forFilters(plan, group, [&](Value r, Value filter) {
    for (int64_t segment = 0; segment < laneCount / strips.width; ++segment) {
      Value top = e->add(y, c(segment * strips.rows));
      Value rows = e->max(c(0), e->min(c(strips.rows), e->sub(c(plan.height), top)));
      e->loop(c(0), rows, [&](Value row) {
        Value start = e->add(e->mul(r, c(pixels)), e->add(e->mul(row, c(laneCount)), c(segment * strips.width)));
        e->loop(c(0), c(strips.lanes), [&](Value lane) {
          storeSparse(plan, acc, e->add(start, lane), {image, e->add(top, row), e->add(x, lane), filter});
        });
      });
    }
  });
}

} // namespace ajour::loops
