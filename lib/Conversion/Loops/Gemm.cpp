//===- Gemm.cpp - products by micro-kernel ---------------------------------------------===//
//
// A convolution is the product of its output pixels' patches with the filter matrix. Rows are taken in
// blocks that stay in the second-level cache; each block meets one packed panel after the other, over the
// whole depth, so that accumulators never leave their tile before the epilogue.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

#include <numeric>

using namespace mlir;

namespace ajour::loops {

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// Whether the arguments' element types and zero points fit an 8-bit kernel, and what they become.
bool DispatchLowering::planZeroPoints(GemmPlan &plan, Value lhs, Value rhs, Value bias, int32_t lhsZeroPoint,
                                      ArrayRef<int32_t> rhsZeroPoints, PackSpec weights) {
  Type lhsType = Emitter::elementType(lhs), rhsType = Emitter::elementType(rhs);
  auto is8 = [](Type type) { return type.isInteger(8); };
  std::optional<unsigned> weightsArgument = constantArgument(rhs);
  if (!weightsArgument && lhsType.isF32() && rhsType.isF32()) {
    plan.bias = bias;
    return planUnpack(plan, rhs, weights);
  }
  if (!weightsArgument)
    return false;
  weights.weights = *weightsArgument;
  if (lhsType.isF32() && rhsType.isF32()) {
    plan.kernel = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level);
    weights.kind = PackSpec::GemmF32;
    plan.bias = bias;
  } else if (is8(lhsType) && is8(rhsType)) {
    plan.kernel = ajour_find_kernel(AJOUR_KERNEL_gemm_8bit, level);
    weights.kind = PackSpec::Gemm8;
  } else {
    return false;
  }
  if (!plan.kernel)
    return false;
  weights.nr = plan.kernel->nr;
  weights.kr = plan.kernel->kr;
  if (weights.kind == PackSpec::GemmF32) {
    planSparsePanels(plan, weights);
    if (!plan.sparse)
      plan.weightsPack = addPack(weights);
    return true;
  }
  std::optional<unsigned> biasArgument = bias ? constantArgument(bias) : std::nullopt;
  if (bias && (!biasArgument || !Emitter::elementType(bias).isInteger(32)))
    return false;
  bool lhsSigned = !nn::isUnsigned(lhsType), wantsSigned = plan.kernel->lhs == AJOUR_I8;
  if (lhsSigned != wantsSigned)
    plan.flip = 0x80;
  plan.lhsZeroPoint = lhsZeroPoint + (lhsSigned == wantsSigned ? 0 : lhsSigned ? 128 : -128);
  // Unsigned weights become signed by the same shift; what is left of their zero points costs row sums.
  int32_t shift = nn::isUnsigned(rhsType) ? -128 : 0;
  for (int32_t zeroPoint : rhsZeroPoints)
    weights.rhsZeroPoints.push_back(zeroPoint + shift);
  if (rhsZeroPoints.empty())
    weights.rhsZeroPoints.push_back(shift);
  plan.needsRowSums = llvm::any_of(weights.rhsZeroPoints, [](int32_t z) { return z != 0; });
  weights.lhsZeroPoint = plan.lhsZeroPoint;
  if (!plan.needsRowSums)
    planSparsePanels(plan, weights);
  if (!plan.sparse)
    plan.weightsPack = addPack(weights);
  PackSpec biasSpec = weights;
  biasSpec.kind = PackSpec::GemmBias;
  biasSpec.bias = biasArgument ? int(*biasArgument) : -1;
  plan.biasPack = addPack(biasSpec);
  return true;
}

/// Where the lhs's rows are: an argument, channels of one, or scattered. False when they cannot be had.
bool DispatchLowering::planLhs(GemmPlan &plan, Value lhs) {
  plan.lhs = lhs;
  auto channels = nn::getConstant(nn::getDims(lhs).back());
  if (!channels)
    return false;
  plan.pixelStride = *channels;
  if (isa<BlockArgument>(lhs)) {
    plan.source = lhs;
    return true;
  }
  if (auto slice = lhs.getDefiningOp<nn::SliceOp>(); slice && isa<BlockArgument>(slice.getInput())) {
    nn::Dims in = nn::getDims(slice.getInput()), out = nn::getDims(lhs);
    bool onlyChannels = ArrayRef(in).drop_back() == ArrayRef(out).drop_back() &&
                        llvm::all_of(slice.getStarts().drop_back(), [](int64_t start) { return start == 0; }) &&
                        llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
    if (auto stride = nn::getConstant(in.back()); onlyChannels && stride) {
      plan.source = slice.getInput();
      plan.offset = slice.getStarts().back();
      plan.pixelStride = *stride;
      return true;
    }
  }
  return true;
}

std::optional<GemmPlan> DispatchLowering::planMatmul(nn::MatmulOp op) {
  nn::Dims lhs = nn::getDims(op.getLhs()), rhs = nn::getDims(op.getRhs());
  bool isConstant = constantArgument(op.getRhs()) || storedForm(op.getRhs());
  if (rhs.size() != 2 || op.getTransposeLhs() || !isConstant || op.getLhsGroup() > 0)
    return std::nullopt;
  auto k = nn::getConstant(lhs.back()), n = nn::getConstant(nn::getDims(op.getResult()).back());
  if (!k || !n || *k == 0 || *n == 0)
    return std::nullopt;
  GemmPlan plan{};
  plan.root = op;
  if (!planLhs(plan, op.getLhs()))
    return std::nullopt;
  plan.result = op.getResult();
  plan.k = *k;
  plan.n = *n;
  plan.images = getAffineConstantExpr(1, context);
  plan.rows = nn::numElements(ArrayRef(lhs).drop_back(), context);
  PackSpec weights{};
  weights.k = *k;
  weights.n = *n;
  weights.transposed = op.getTransposeRhs();
  if (!planZeroPoints(plan, op.getLhs(), op.getRhs(), op.getBias(), op.getLhsZeroPoint(), op.getRhsZeroPoints(),
                      weights))
    return std::nullopt;
  // A last partial tile of an unknown number of rows is computed whole, so its rows must be in scratch.
  plan.direct = plan.source && plan.flip == 0 && known(plan.rows).has_value();
  return plan;
}

std::optional<GemmPlan> DispatchLowering::planConv(nn::ConvOp op) {
  nn::Dims in = nn::getDims(op.getInput()), out = nn::getDims(op.getResult());
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  bool isConstant = constantArgument(op.getFilter()) || storedForm(op.getFilter());
  if (op.getGroups() != 1 || in.size() > 4 || !isConstant)
    return std::nullopt;
  GemmPlan plan{};
  plan.root = op;
  if (!planLhs(plan, op.getInput()))
    return std::nullopt;
  plan.result = op.getResult();
  plan.n = filter.getDimSize(0);
  plan.k = filter.getNumElements() / std::max<int64_t>(plan.n, 1);
  if (plan.n == 0 || plan.k == 0)
    return std::nullopt;
  bool isPointwise = plan.k == *nn::getConstant(in.back()) &&
                     llvm::all_of(op.getStrides(), [](int64_t s) { return s == 1; }) &&
                     llvm::all_of(op.getPadsLow(), [](int64_t p) { return p == 0; }) &&
                     llvm::all_of(op.getPadsHigh(), [](int64_t p) { return p == 0; });
  if (!plan.source && !isPointwise)
    return std::nullopt;
  PackSpec weights{};
  weights.k = plan.k;
  weights.n = plan.n;
  weights.transposed = true;
  if (!planZeroPoints(plan, op.getInput(), op.getFilter(), op.getBias(), op.getLhsZeroPoint(), op.getRhsZeroPoints(),
                      weights))
    return std::nullopt;
  AffineExpr pixels = nn::numElements(ArrayRef(out).drop_front().drop_back(), context);
  plan.direct = plan.source && isPointwise && plan.flip == 0 && known(pixels * out[0]).has_value();
  plan.images = plan.direct ? getAffineConstantExpr(1, context) : out[0];
  plan.rows = plan.direct ? pixels * out[0] : pixels;
  if (!plan.sparse)
    plan.winograd = planWinograd(plan);
  if (plan.winograd) {
    PackSpec &pack = lowered.packs[plan.weightsPack];
    pack.kind = PackSpec::WinogradF32;
    pack.tile = plan.winograd->t;
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Type DispatchLowering::lhsType(const GemmPlan &plan) {
  return plan.kernel->lhs == AJOUR_F32 ? Type(Float32Type::get(context)) : Type(IntegerType::get(context, 8));
}

Type DispatchLowering::accType(const GemmPlan &plan) {
  return plan.kernel->acc == AJOUR_F32 ? Type(Float32Type::get(context)) : Type(IntegerType::get(context, 32));
}

/// Copies `count` rows from row `first` of an image into scratch.
static void emitRowCopy(Emitter &e, const GemmPlan &plan, Value source, Value target, Value lda, Value first,
                        Value count, Value paddedK, function_ref<void(StringRef, ArrayRef<Value>)> call) {
  auto c = [&](int64_t value) { return e.i64(value); };
  bool is8 = plan.kernel->lhs != AJOUR_F32;
  auto conv = dyn_cast<nn::ConvOp>(plan.root);
  nn::Dims in = nn::getDims(plan.lhs);
  // A matrix is an image of one row; a sequence too.
  int64_t kh = 1, kw = 1, sy = 1, sx = 1, dy = 1, dx = 1, top = 0, left = 0;
  Value ih = c(1), iw, ow, channels = e.size(in.back()), pixelStride = c(plan.pixelStride);
  if (conv && in.size() == 4) {
    auto filter = cast<RankedTensorType>(conv.getFilter().getType());
    kh = filter.getDimSize(1), kw = filter.getDimSize(2);
    sy = conv.getStrides()[0], sx = conv.getStrides()[1];
    dy = conv.getDilations()[0], dx = conv.getDilations()[1];
    top = conv.getPadsLow()[0], left = conv.getPadsLow()[1];
    ih = e.size(in[1]), iw = e.size(in[2]), ow = e.size(nn::getDims(plan.result)[2]);
  } else if (conv) {
    kw = cast<RankedTensorType>(conv.getFilter().getType()).getDimSize(1);
    sx = conv.getStrides()[0], dx = conv.getDilations()[0], left = conv.getPadsLow()[0];
    iw = e.size(in[1]), ow = e.size(nn::getDims(plan.result)[1]);
  } else {
    iw = ow = e.size(plan.rows);
  }
  SmallVector<Value> operands = {source, ih,    iw,    channels, pixelStride, target, lda,    first,   count,  ow,
                                 c(kh),  c(kw), c(sy), c(sx),    c(dy),    c(dx),  c(top), c(left), paddedK};
  if (is8) {
    // Padding reads the zero point; plan.lhsZeroPoint is what it becomes after the flip, so undo it for `fill`.
    int64_t fill = (plan.lhsZeroPoint & 0xff) ^ plan.flip;
    operands.push_back(c(fill));
    operands.push_back(c(plan.flip));
  }
  call(is8 ? "ajour_im2col_8bit" : "ajour_im2col_f32", operands);
}

/// How the work items of a product are made and walked.
GemmSchedule DispatchLowering::scheduleGemm(const GemmPlan &plan) {
  const ajour_kernel_row &kernel = *plan.kernel;
  int64_t elementSize = kernel.lhs != AJOUR_F32 ? 1 : 4, mr = kernel.mr;
  int64_t paddedK = llvm::alignTo(plan.k, kernel.kr), panels = llvm::divideCeil(plan.n, kernel.nr);
  int64_t tileBytes = paddedK * elementSize * mr, weightBytes = panels * kernel.nr * paddedK * elementSize;
  if (plan.sparse)
    weightBytes = int64_t(double(weightBytes) * plan.sparse->density);
  std::optional<int64_t> rows = known(plan.rows), images = known(plan.images);
  // Weights far beyond the caches are read once for each block: blocks are then as large as the second level lets them.
  int64_t budget = weightBytes > 32 * blockBudget(level) ? 5 * blockBudget(level) / 2 : blockBudget(level);
  int64_t maxTiles = std::clamp<int64_t>(budget / tileBytes, 1, plan.sparse ? 16 : 8);
  GemmSchedule schedule;
  if (!rows || !images) {
    schedule.tiles = maxTiles;
    return schedule;
  }
  int64_t rowTiles = llvm::divideCeil(std::max<int64_t>(*rows, 1), mr);
  if (rowTiles * std::max<int64_t>(*images, 1) >= leastRowItems && weightBytes <= residentBytes(level) &&
      tileBytes <= residentTileBytes) {
    schedule.rowsOuter = true;
    schedule.tiles = std::clamp<int64_t>(rowTiles * *images / wantedRowItems, 1, maxTiles);
    return schedule;
  }
  // Few rows stay together whatever they weigh: each block reads all weights.
  if (rowTiles <= 4)
    maxTiles = rowTiles;
  Blocking blocking = chooseBlocking(rowTiles, std::max<int64_t>(*images, 1), panels, maxTiles, tileBytes, weightBytes,
                                     !plan.direct);
  // Few rows of great depth: a stretch of the depth meets all rows before the next, so that its weights come from far
  // away only once.
  if (!plan.needsRowSums && !plan.sparse && rowTiles <= 4 && tileBytes > deepTileBytes) {
    blocking = {rowTiles, std::min(panels, plan.direct ? wantedItems : wantedCopyingItems)};
    schedule.stretches = llvm::divideCeil(tileBytes, deepTileBytes);
  }
  schedule.tiles = blocking.tiles;
  schedule.panelsPerItem = llvm::divideCeil(panels, blocking.groups);
  return schedule;
}

void DispatchLowering::lowerGemm(const GemmPlan &plan) {
  canFinishRuns = reorders.empty();
  if (plan.winograd)
    return lowerWinograd(plan);
  if (std::optional<BandPlan> band = planBand(plan))
    return lowerBands(plan, *band);
  if (std::optional<DeepSchedule> deep = planDeep(plan))
    return lowerDeep(plan, *deep);
  const ajour_kernel_row &kernel = *plan.kernel;
  int64_t paddedK = llvm::alignTo(plan.k, kernel.kr), panels = llvm::divideCeil(plan.n, kernel.nr);
  int64_t elementSize = nn::elementBytes(lhsType(plan));
  GemmSchedule schedule = scheduleGemm(plan);
  scheduleUnpack(plan, schedule);
  int64_t panelsPerItem = schedule.panelsPerItem ? schedule.panelsPerItem : panels;
  int64_t groups = llvm::divideCeil(panels, panelsPerItem), blockRows = schedule.tiles * kernel.mr;
  AffineExpr blocks = plan.rows.ceilDiv(blockRows);
  // Rows of the scratch copy keep clear of 4 KiB strides, which fall into the same cache sets.
  int64_t scratchStride = llvm::alignTo(paddedK * elementSize, 64) / elementSize;
  if (scratchStride * elementSize % 4096 == 0)
    scratchStride += 64 / elementSize;
  if (!plan.direct) {
    int64_t bytes = blockRows * scratchStride * elementSize + 64;
    lowered.scratchBytes = getAffineConstantExpr(bytes, context);
    bool isWindowed = isa<nn::ConvOp>(plan.root) && plan.k != nn::getConstant(nn::getDims(plan.lhs).back());
    lowered.copyKind = !plan.source ? "gather" : isWindowed ? "im2col" : "rows";
    lowered.copyBytes = plan.images * plan.rows * (groups * paddedK * elementSize);
  }

  items(plan.images * blocks * groups, [&](Value item) {
    auto [group, block] = splitItem(item, plan.images * blocks, groups, schedule.unpackAll);
    Value blockCount = e->size(blocks), rowCount = e->size(plan.rows);
    GemmBlock part;
    part.image = e->div(block, blockCount);
    part.first = e->mul(e->rem(block, blockCount), e->i64(blockRows));
    part.last = e->min(rowCount, e->add(part.first, e->i64(blockRows)));
    part.lda = e->i64(plan.pixelStride);
    if (plan.source)
      part.lhs = e->pointer(e->buffer(plan.source), e->i64(plan.offset), lhsType(plan));
    part.firstPanel = e->mul(group, e->i64(panelsPerItem));
    part.lastPanel = e->min(e->i64(panels), e->add(part.firstPanel, e->i64(panelsPerItem)));
    if (plan.unpack)
      reserveUnpacked(plan, part, schedule.unpackAll ? panelsPerItem : 1);
    if (schedule.unpackAll)
      unpackOnce(plan, part, item, block);
    if (!plan.direct)
      copyRows(plan, part, scratchStride);
    part.acc = e->frameArray(accType(plan), kernel.mr * kernel.nr);
    part.rowSums = plan.needsRowSums ? e->frameArray(e->b.getI32Type(), kernel.mr) : Value();
    if (schedule.stretches > 1) {
      emitPanels(plan, schedule, part, [&](Value panel) { emitStretches(plan, schedule, part, panel); });
    } else if (schedule.rowsOuter) {
      emitRowTiles(plan, part, [&](Value row, Value count) {
        e->loop(part.firstPanel, part.lastPanel, [&](Value panel) { emitGemmTile(plan, part, row, count, panel); });
      });
    } else {
      emitPanels(plan, schedule, part, [&](Value panel) {
        emitRowTiles(plan, part, [&](Value row, Value count) { emitGemmTile(plan, part, row, count, panel); });
      });
    }
  });
}

/// Copies the rows of a block into scratch, and makes them its lhs.
void DispatchLowering::copyRows(const GemmPlan &plan, GemmBlock &part, int64_t stride) {
  Value source = part.lhs;
  if (!source) {
    part.lhs = scratch;
    part.lda = e->i64(stride);
    return gatherRows(plan, part);
  }
  if (isa<nn::ConvOp>(plan.root)) {
    Value pixels = e->product(ArrayRef(nn::getDims(plan.lhs)).drop_front().drop_back());
    Value imageSize = e->mul(pixels, e->i64(plan.pixelStride));
    source = e->pointer(source, e->mul(part.image, imageSize), lhsType(plan));
  }
  part.lhs = scratch;
  part.lda = e->i64(stride);
  emitRowCopy(*e, plan, source, scratch, part.lda, part.first, e->sub(part.last, part.first),
              e->i64(llvm::alignTo(plan.k, plan.kernel->kr)),
              [&](StringRef symbol, ArrayRef<Value> operands) { callKernel(symbol, operands); });
}

/// The row tiles of a block: their first row and the number of rows.
void DispatchLowering::emitRowTiles(const GemmPlan &plan, const GemmBlock &part,
                                    function_ref<void(Value row, Value count)> tile) {
  int64_t mr = plan.kernel->mr;
  std::optional<int64_t> rows = known(plan.rows);
  e->loop(
      part.first, part.last,
      [&](Value row) {
        Value room = e->sub(part.last, row);
        // Unknown sizes: the tile is computed whole (from scratch) and stored in part.
        if (!rows || *rows % mr == 0)
          return tile(row, rows ? e->i64(mr) : e->min(room, e->i64(mr)));
        Value isWhole = e->compare(arith::CmpIPredicate::sge, room, e->i64(mr));
        e->ifThenElse(isWhole, [&] { tile(row, e->i64(mr)); }, [&] { tile(row, e->i64(*rows % mr)); });
      },
      mr);
}

/// Copies the rows of a block that nothing stores as rows into scratch, element by element; what joins channels is taken
/// part by part.
void DispatchLowering::gatherRows(const GemmPlan &plan, const GemmBlock &part) {
  Type type = Emitter::elementType(plan.lhs);
  size_t rank = nn::getDims(plan.lhs).size();
  e->loop(part.first, part.last, [&](Value row) {
    Value start = e->mul(e->sub(row, part.first), part.lda);
    auto concat = plan.lhs.getDefiningOp<nn::ConcatOp>();
    if (!concat || concat.getAxis() + 1 != rank) {
      gatherRow(plan, plan.lhs, part.image, row, start);
    } else {
      for (Value operand : concat.getInputs()) {
        gatherRow(plan, operand, part.image, row, start);
        start = e->add(start, e->size(nn::getDims(operand).back()));
      }
      start = e->mul(e->sub(row, part.first), part.lda);
    }
    for (int64_t k = plan.k; k < int64_t(llvm::alignTo(plan.k, plan.kernel->kr)); ++k)
      e->storeAt(e->constant(e->scalarType(type), 0), scratch, e->add(start, e->i64(k)), type);
  });
}

/// One row of a value, to scratch element `start`.
void DispatchLowering::gatherRow(const GemmPlan &plan, Value value, Value image, Value row, Value start) {
  Type type = Emitter::elementType(value);
  nn::Dims dims = nn::getDims(value), parts;
  Factors factors(dims);
  factors.followOperands(value);
  // A convolution's rows are those of one image, a product's are all.
  size_t leading = isa<nn::ConvOp>(plan.root) ? 1 : 0, rank = dims.size();
  for (size_t i = leading; i + 1 < rank; ++i)
    parts.append(factors.of(i));
  Index rowParts = leading ? e->delinearize(image, factors.of(0)) : Index();
  rowParts.append(e->delinearize(row, parts));
  e->nest(factors.of(rank - 1), [&](ArrayRef<Value> columnParts) {
    Index all = rowParts;
    all.append(columnParts.begin(), columnParts.end());
    Index index = joinParts(all, factors, rank);
    Value scalar = e->element(value, index);
    if (plan.flip)
      scalar = e->b.createOrFold<arith::XOrIOp>(e->loc, scalar, e->integer(scalar.getType(), int8_t(plan.flip)));
    e->storeAt(scalar, scratch, e->add(start, index.back()), type);
  });
}

/// All row tiles of one panel, a stretch of the depth at a time.
void DispatchLowering::emitStretches(const GemmPlan &plan, const GemmSchedule &schedule, const GemmBlock &part,
                                     Value panel) {
  const ajour_kernel_row &kernel = *plan.kernel;
  Type type = lhsType(plan), accType = this->accType(plan);
  int64_t rows = *known(plan.rows), paddedK = llvm::alignTo(plan.k, kernel.kr);
  int64_t depth = llvm::alignTo(llvm::divideCeil(paddedK, schedule.stretches), kernel.kr);
  Value weights = panelPointer(plan, part, panel);
  int64_t tiles = llvm::divideCeil(rows, kernel.mr);
  std::vector<SmallVector<Value>> accs(tiles);
  for (int64_t from = 0; from < paddedK; from += depth)
    for (int64_t t = 0; t < tiles; ++t) {
      accs[t].push_back(e->frameArray(accType, kernel.mr * kernel.nr));
      Value lhsTile = e->pointer(part.lhs, e->add(e->mul(part.lda, e->i64(t * kernel.mr)), e->i64(from)), type);
      Value rhs = e->pointer(weights, e->i64(from * kernel.nr), type);
      int64_t count = std::min<int64_t>(kernel.mr, rows - t * kernel.mr);
      callKernel(kernel.symbol,
                 {lhsTile, part.lda, rhs, accs[t].back(), e->i64(count), e->i64(std::min(depth, paddedK - from))});
    }
  Value firstRow = e->mul(part.image, e->i64(rows));
  for (int64_t t = 0; t < tiles; ++t)
    emitTileEpilogue(plan, accs[t], Value(), panel, e->add(firstRow, e->i64(t * kernel.mr)),
                     e->i64(std::min<int64_t>(kernel.mr, rows - t * kernel.mr)));
}

/// The product of `count` rows from `row` of the block's image with one panel, and what follows it.
void DispatchLowering::emitGemmTile(const GemmPlan &plan, const GemmBlock &part, Value row, Value count, Value panel) {
  const ajour_kernel_row &kernel = *plan.kernel;
  Value paddedK = e->i64(llvm::alignTo(plan.k, kernel.kr));
  Value scratchRow = plan.direct ? row : e->sub(row, part.first);
  Value lhs = e->pointer(part.lhs, e->mul(scratchRow, part.lda), lhsType(plan));
  Value firstRow = !plan.direct && isa<nn::ConvOp>(plan.root)
                       ? e->add(row, e->mul(part.image, e->size(plan.rows)))
                       : row;
  prefetchEpilogue(plan, panel, firstRow, count);
  Value rhs = plan.sparse ? Value() : panelPointer(plan, part, panel);
  // An unknown number of rows: a whole tile, or a low one for a token or a few.
  constexpr int64_t lowTile = 4;
  Value computed = count;
  if (!matchPattern(count, m_Constant()))
    computed = e->select(e->compare(arith::CmpIPredicate::sle, count, e->i64(lowTile)), e->i64(std::min<int64_t>(lowTile, kernel.mr)),
                         e->i64(kernel.mr));
  callGemm(plan, panel, 0, lhs, part.lda, rhs, part.acc, computed, paddedK);
  if (part.rowSums)
    e->loop(e->i64(0), count, [&](Value r) {
      Value start = e->mul(r, part.lda);
      Value sum = e->reduce(e->i64(0), e->i64(plan.k), {e->i32(0)}, [&](Value p, ArrayRef<Value> carried) -> Index {
        auto signedness = kernel.lhs == AJOUR_I8 ? IntegerType::Signless : IntegerType::Unsigned;
        Type type = IntegerType::get(context, 8, signedness);
        Value x = e->convert(e->loadAt(lhs, e->add(start, p), type), type, e->b.getI32Type());
        return {e->add(carried[0], x)};
      })[0];
      e->storeAt(sum, part.rowSums, r, e->b.getI32Type());
    });
  emitTileEpilogue(plan, {part.acc}, part.rowSums, panel, firstRow, count);
}

/// Asks for what the epilogue of a tile reads besides the accumulators, so that it arrives while these are computed.
void DispatchLowering::prefetchEpilogue(const GemmPlan &plan, Value panel, Value firstRow, Value rows) {
  constexpr int64_t lineBytes = 64;
  nn::Dims dims = nn::getDims(plan.result);
  for (auto [i, spec] : llvm::enumerate(lowered.operands)) {
    if (spec.kind != OperandSpec::Argument)
      continue;
    Value argument = callee.getArgument(spec.index);
    if (argument == plan.source || constantArgument(argument) || nn::getDims(argument) != dims)
      continue;
    Type type = Emitter::elementType(argument);
    int64_t bytes = nn::elementBytes(type);
    Value column = e->mul(panel, e->i64(plan.kernel->nr));
    e->loop(e->i64(0), rows, [&](Value r) {
      Value start = e->add(e->mul(e->add(firstRow, r), e->i64(plan.n)), column);
      for (int64_t at = 0; at < plan.kernel->nr * bytes; at += lineBytes)
        e->prefetch(e->pointer(pointers[i], e->add(start, e->i64(at / bytes)), type));
    });
  }
}

/// What follows the product of a tile: `accs` are added, then comes everything up to the results. `firstRow` counts
/// rows of all images. What is stored side by side is walked along innermost.
void DispatchLowering::emitTileEpilogue(const GemmPlan &plan, ArrayRef<Value> accs, Value rowSums, Value panel,
                                        Value firstRow, Value rows) {
  nn::Dims out = nn::getDims(plan.result);
  auto pixel = [&](Value r) { return e->delinearize(e->add(firstRow, r), ArrayRef(out).drop_back()); };
  auto rowSum = [&](Value r) { return rowSums ? e->loadAt(rowSums, r, e->b.getI32Type()) : Value(); };
  Factors factors(out);
  factors.followReaders(reorders);
  if (factors.endsWith(out.size() - 1)) {
    e->loop(e->i64(0), rows, [&](Value r) { emitRowEpilogue(plan, accs, rowSum(r), r, panel, pixel(r)); });
    return;
  }
  forColumns(plan, panel, [&](Value j, Value n) {
    e->loop(e->i64(0), rows, [&](Value r) { emitElement(plan, accs, rowSum(r), r, pixel(r), j, n); });
  });
}

/// The same for one row of the tile, whose results have the leading indices `pixel`.
void DispatchLowering::emitRowEpilogue(const GemmPlan &plan, ArrayRef<Value> accs, Value rowSum, Value row, Value panel,
                                       const Index &pixel) {
  forColumns(plan, panel, [&](Value j, Value n) { emitElement(plan, accs, rowSum, row, pixel, j, n); });
  Index first = pixel;
  first.push_back(e->mul(panel, e->i64(plan.kernel->nr)));
  finishRun(first, panelColumns(plan, panel));
}

/// The same for one element, in column `j` of the tile and `n` of the result.
void DispatchLowering::emitElement(const GemmPlan &plan, ArrayRef<Value> accs, Value rowSum, Value row,
                                   const Index &pixel, Value j, Value n) {
  Type accType = this->accType(plan);
  Value at = e->add(e->mul(row, e->i64(plan.kernel->nr)), j), value;
  for (Value acc : accs) {
    Value part = e->loadAt(acc, at, accType);
    value = !value                     ? part
            : isa<FloatType>(accType) ? arith::AddFOp::create(e->b, e->loc, value, part).getResult()
                                       : e->add(value, part);
  }
  if (plan.biasPack >= 0)
    value = e->add(value, e->loadAt(operandPointer(OperandSpec::Packed, plan.biasPack), n, accType));
  if (plan.bias)
    value = arith::AddFOp::create(e->b, e->loc, value, e->element(plan.bias, {n}));
  if (rowSum)
    value = e->sub(value, e->mul(rowSum, rhsZeroPoint(lowered.packs[plan.weightsPack].rhsZeroPoints, n)));
  e->bindElement(plan.result, [=](ArrayRef<Value>) { return value; });
  Index index = pixel;
  index.push_back(n);
  storeResults(index);
}

/// How many columns of a panel the result has.
Value DispatchLowering::panelColumns(const GemmPlan &plan, Value panel) {
  int64_t nr = plan.kernel->nr;
  return plan.n % nr == 0 ? e->i64(nr) : e->min(e->i64(nr), e->sub(e->i64(plan.n), e->mul(panel, e->i64(nr))));
}

/// A loop over the columns of a panel: in the tile and in the result. Where the result's reader takes them apart (into
/// heads), they come in runs that do not cross such a boundary.
void DispatchLowering::forColumns(const GemmPlan &plan, Value panel,
                                  function_ref<void(Value column, Value n)> body) {
  int64_t nr = plan.kernel->nr;
  Value firstColumn = e->mul(panel, e->i64(nr)), columns = panelColumns(plan, panel);
  nn::Dims out = nn::getDims(plan.result);
  Factors factors(out);
  factors.followReaders(reorders);
  nn::Dims parts = factors.of(out.size() - 1);
  if (parts.size() == 1) {
    e->loop(e->i64(0), columns, [&](Value j) { body(j, e->add(firstColumn, j)); });
    return;
  }
  int64_t inner = *nn::getConstant(parts.back()), run = std::gcd(inner, nr);
  auto emitRun = [&](Value from) {
    Value base = e->add(firstColumn, from), start = e->rem(base, e->i64(inner));
    Index index = e->delinearize(e->div(base, e->i64(inner)), ArrayRef(parts).drop_back());
    e->loop(e->i64(0), e->i64(run), [&](Value j) {
      Value n = e->add(base, j);
      Index whole = index;
      whole.push_back(e->add(start, j));
      e->noteJoin(n, whole, parts);
      body(e->add(from, j), n);
    });
  };
  e->loop(e->i64(0), columns, emitRun, run);
}

} // namespace ajour::loops
