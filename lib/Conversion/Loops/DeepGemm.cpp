//===- DeepGemm.cpp - large products, a stretch of the depth at a time ------------------===//
//
// Where rows are so long that a tile of them does not stay in the first-level cache, the depth is cut into stretches (K. Goto
// and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008). Of a stretch, the piece of a panel stays in
// the first-level cache while all row tiles of a block pass by, and the rows in the second-level cache while all panels of a
// work item do; so a panel comes from far away once for each block of rows. Sums wait in scratch memory until the last stretch.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

#include "ajour/ABI/Dispatch.h"

using namespace mlir;

namespace ajour::loops {

/// Bytes of a piece of a panel, and of the sums of a work item.
static constexpr int64_t pieceBytes = 32 << 10, sumBytes = 1 << 20;
/// Row tiles of a block.
static constexpr int64_t mostBlockTiles = 10;
/// Bytes of a row tile that stays in the first-level cache beside what passes by.
static constexpr int64_t shallowTileBytes = 48 << 10;

/// How a product is cut, if it is one that gains from stretches.
std::optional<DeepSchedule> DispatchLowering::planDeep(const GemmPlan &plan) {
  const ajour_kernel_row &kernel = *plan.kernel;
  auto matmul = dyn_cast<nn::MatmulOp>(plan.root);
  std::optional<int64_t> rows = known(plan.rows);
  int64_t elementSize = kernel.lhs == AJOUR_F32 ? 4 : 1, k = llvm::alignTo(plan.k, kernel.kr);
  if (!matmul || !rows || !plan.source || plan.sparse || plan.unpack || plan.needsRowSums || k != plan.k ||
      llvm::divideCeil(*rows, kernel.mr) <= 4 || k * elementSize * kernel.mr <= shallowTileBytes)
    return std::nullopt;
  DeepSchedule deep;
  int64_t tiles = llvm::divideCeil(*rows, kernel.mr), panels = llvm::divideCeil(plan.n, kernel.nr);
  // Rows are shared evenly: from 4 on a row costs the same at every height of a tile.
  int64_t blocks = llvm::divideCeil(tiles, mostBlockTiles);
  deep.tiles = llvm::divideCeil(tiles, blocks);
  deep.tileRows = llvm::divideCeil(*rows, blocks * deep.tiles);
  int64_t most = pieceBytes / (kernel.nr * elementSize);
  deep.depth = llvm::alignTo(llvm::divideCeil(k, llvm::divideCeil(k, most)), kernel.kr);
  int64_t blockSums = deep.tiles * deep.tileRows * kernel.nr * 4;
  int64_t groups = std::max(llvm::divideCeil(wantedCopyingItems, blocks), llvm::divideCeil(panels * blockSums, sumBytes));
  deep.panelsPerItem = llvm::divideCeil(panels, std::min(groups, panels));
  return deep;
}

/// Elements of a C array added to another: the sums of a stretch.
void DispatchLowering::addTile(Value to, Value from, Value count, Type type) {
  e->loop(e->i64(0), count, [&](Value i) {
    Value a = e->loadAt(to, i, type), b = e->loadAt(from, i, type);
    Value sum = isa<FloatType>(type) ? arith::AddFOp::create(e->b, e->loc, a, b).getResult() : e->add(a, b);
    e->storeAt(sum, to, i, type);
  });
}

void DispatchLowering::lowerDeep(const GemmPlan &plan, const DeepSchedule &deep) {
  const ajour_kernel_row &kernel = *plan.kernel;
  int64_t rows = *known(plan.rows), panels = llvm::divideCeil(plan.n, kernel.nr), blockRows = deep.tiles * deep.tileRows;
  int64_t groups = llvm::divideCeil(panels, deep.panelsPerItem), blocks = llvm::divideCeil(rows, blockRows);
  Type type = lhsType(plan), sumType = accType(plan);
  int64_t elementSize = nn::elementBytes(type), tileSums = deep.tileRows * kernel.nr;
  // Rows of a stretch keep clear of each other's cache sets.
  int64_t stride = llvm::alignTo(deep.depth * elementSize, 64) / elementSize;
  if (stride * elementSize % 1024 == 0)
    stride += 64 / elementSize;
  int64_t panelSums = deep.tiles * tileSums, sums = deep.panelsPerItem * panelSums * 4;
  lowered.scratchBytes =
      getAffineConstantExpr(llvm::alignTo(sums, 64) + blockRows * stride * elementSize + AJOUR_BUFFER_SLACK, context);
  lowered.copyKind = "rows";
  lowered.copyBytes = getAffineConstantExpr(groups * rows * plan.k * elementSize, context);
  canFinishRuns = reorders.empty();

  items(getAffineConstantExpr(blocks * groups, context), [&](Value item) {
    Value block = e->div(item, e->i64(groups)), group = e->rem(item, e->i64(groups));
    Value first = e->mul(block, e->i64(blockRows)), last = e->min(e->i64(rows), e->add(first, e->i64(blockRows)));
    Value firstPanel = e->mul(group, e->i64(deep.panelsPerItem));
    Value lastPanel = e->min(e->i64(panels), e->add(firstPanel, e->i64(deep.panelsPerItem)));
    Value copy = e->pointer(scratch, e->i64(llvm::alignTo(sums, 64)), e->b.getI8Type());
    Value acc = e->frameArray(sumType, tileSums);
    Value source = e->pointer(e->buffer(plan.source), e->i64(plan.offset), type);
    auto sumsOf = [&](Value panel, Value row) {
      Value tile = e->mul(e->div(e->sub(row, first), e->i64(deep.tileRows)), e->i64(tileSums));
      return e->pointer(scratch, e->add(e->mul(e->sub(panel, firstPanel), e->i64(panelSums)), tile), sumType);
    };
    auto forTiles = [&](function_ref<void(Value, Value)> body) {
      e->loop(
          first, last,
          [&](Value row) {
            Value room = e->sub(last, row);
            if (rows % deep.tileRows == 0)
              return body(row, e->i64(deep.tileRows));
            Value isWhole = e->compare(arith::CmpIPredicate::sge, room, e->i64(deep.tileRows));
            e->ifThenElse(
                isWhole, [&] { body(row, e->i64(deep.tileRows)); }, [&] { body(row, e->i64(rows % deep.tileRows)); });
          },
          deep.tileRows);
    };
    e->loop(e->i64(0), e->mul(e->sub(lastPanel, firstPanel), e->i64(panelSums)),
            [&](Value i) { e->storeAt(e->constant(sumType, 0), scratch, i, sumType); });
    auto stretch = [&](Value from, int64_t depth) {
      emitStretchCopy(plan, source, copy, from, depth, stride, first, e->sub(last, first));
      e->loop(firstPanel, lastPanel, [&](Value panel) {
        Value packed = operandPointer(OperandSpec::Packed, plan.weightsPack);
        Value at = e->add(e->mul(panel, e->i64(panelElements(plan))), e->mul(from, e->i64(kernel.nr)));
        Value rhs = e->pointer(packed, at, type);
        forTiles([&](Value row, Value count) {
          Value lhs = e->pointer(copy, e->mul(e->sub(row, first), e->i64(stride)), type);
          callKernel(kernel.symbol, {lhs, e->i64(stride), rhs, acc, count, e->i64(depth)});
          addTile(sumsOf(panel, row), acc, e->mul(count, e->i64(kernel.nr)), sumType);
        });
      });
    };
    int64_t whole = plan.k / deep.depth * deep.depth;
    e->loop(e->i64(0), e->i64(whole), [&](Value from) { stretch(from, deep.depth); }, deep.depth);
    if (whole < plan.k)
      stretch(e->i64(whole), plan.k - whole);
    e->loop(firstPanel, lastPanel, [&](Value panel) {
      forTiles([&](Value row, Value count) { emitTileEpilogue(plan, {sumsOf(panel, row)}, Value(), panel, row, count); });
    });
  });
}

/// Copies columns [from, from + depth) of `count` rows from row `first` on, `stride` apart.
void DispatchLowering::emitStretchCopy(const GemmPlan &plan, Value source, Value copy, Value from, int64_t depth,
                                       int64_t stride, Value first, Value count) {
  Type type = lhsType(plan);
  Value start = e->add(e->mul(first, e->i64(plan.pixelStride)), from);
  e->loop(e->i64(0), count, [&](Value r) {
    Value in = e->add(start, e->mul(r, e->i64(plan.pixelStride))), out = e->mul(r, e->i64(stride));
    e->loop(e->i64(0), e->i64(depth), [&](Value p) {
      Value x = e->loadAt(source, e->add(in, p), type);
      if (plan.flip)
        x = e->b.createOrFold<arith::XOrIOp>(e->loc, x, e->integer(x.getType(), int8_t(plan.flip)));
      e->storeAt(x, copy, e->add(out, p), type);
    });
  });
}

} // namespace ajour::loops
