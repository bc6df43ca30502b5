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
#include "ajour/Encoding/PackStored.h"

using namespace mlir;

namespace ajour::loops {

/// Bytes of a piece of a panel, beside which a row tile of the stretch has room, and of the sums of a work item.
static constexpr int64_t pieceBytes = 16 << 10, sumBytes = 1 << 20, lineBytes = 64;
/// Row tiles of a block.
static constexpr int64_t mostBlockTiles = 10;
/// Bytes of a row tile that stays in the first-level cache beside what passes by.
static constexpr int64_t shallowTileBytes = 48 << 10;

/// Whether rows of the result are rows of the argument: a product, or a convolution of single pixels of one image.
bool DispatchLowering::hasPlainRows(const GemmPlan &plan) {
  auto conv = dyn_cast<nn::ConvOp>(plan.root);
  if (!conv)
    return isa<nn::MatmulOp>(plan.root);
  auto are = [](ArrayRef<int64_t> values, int64_t value) { return llvm::all_of(values, [=](int64_t v) { return v == value; }); };
  return !plan.winograd && known(plan.images) == 1 && plan.k == *nn::getConstant(nn::getDims(plan.lhs).back()) &&
         are(conv.getStrides(), 1) && are(conv.getPadsLow(), 0) && are(conv.getPadsHigh(), 0);
}

/// How a product is cut, if it is one that gains from stretches. Where the number of rows is a symbol, that is one of stored
/// weights, which few rows do not meet in this form.
std::optional<DeepSchedule> DispatchLowering::planDeep(const GemmPlan &plan) {
  const ajour_kernel_row &kernel = *plan.kernel;
  std::optional<int64_t> rows = known(plan.rows);
  int64_t elementSize = kernel.lhs == AJOUR_F32 ? 4 : 1, k = llvm::alignTo(plan.k, kernel.kr);
  if (!hasPlainRows(plan) || plan.sparse || plan.needsRowSums || k != plan.k ||
      (rows && llvm::divideCeil(*rows, kernel.mr) <= 4) || k * elementSize * kernel.mr <= shallowTileBytes)
    return std::nullopt;
  bool unpacks = plan.unpack && plan.unpack->depthBytes > 0 && kernel.nr % encoding::storedColumns == 0;
  if (unpacks ? rows.has_value() : plan.unpack || !rows)
    return std::nullopt;
  DeepSchedule deep;
  int64_t tiles = rows ? llvm::divideCeil(*rows, kernel.mr) : mostBlockTiles, panels = llvm::divideCeil(plan.n, kernel.nr);
  // Rows are shared evenly: from 4 on a row costs the same at every height of a tile.
  int64_t blocks = llvm::divideCeil(tiles, mostBlockTiles);
  deep.tiles = llvm::divideCeil(tiles, blocks);
  deep.tileRows = rows ? llvm::divideCeil(*rows, blocks * deep.tiles) : kernel.mr;
  int64_t most = pieceBytes / (kernel.nr * elementSize);
  deep.depth = llvm::alignTo(llvm::divideCeil(k, llvm::divideCeil(k, most)), kernel.kr);
  int64_t blockSums = deep.tiles * deep.tileRows * kernel.nr * 4;
  bool staysNear = deep.tiles * deep.tileRows * k * elementSize <= sumBytes;
  int64_t groups = std::max(llvm::divideCeil(staysNear ? wantedItems : wantedCopyingItems, blocks),
                            llvm::divideCeil(panels * blockSums, sumBytes));
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

/// The row tiles of rows [first, last): their first row and the number of rows.
void DispatchLowering::forDeepTiles(const GemmPlan &plan, const DeepSchedule &deep, Value first, Value last,
                                    function_ref<void(Value row, Value count)> body) {
  std::optional<int64_t> rows = known(plan.rows);
  e->loop(
      first, last,
      [&](Value row) {
        Value room = e->sub(last, row), whole = e->i64(deep.tileRows);
        if (!rows)
          return body(row, e->min(room, whole));
        if (*rows % deep.tileRows == 0)
          return body(row, whole);
        Value isWhole = e->compare(arith::CmpIPredicate::sge, room, whole);
        e->ifThenElse(isWhole, [&] { body(row, whole); }, [&] { body(row, e->i64(*rows % deep.tileRows)); });
      },
      deep.tileRows);
}

/// Where the weights of a panel from row `from` of the depth on are: as the kernel reads them, or as they are stored.
Value DispatchLowering::weightsPiece(const GemmPlan &plan, Value panel, Value from) {
  int64_t nr = plan.kernel->nr, bytes = plan.unpack ? 1 : nn::elementBytes(lhsType(plan));
  int64_t panelBytes = plan.unpack ? nr / encoding::storedColumns * plan.unpack->blockBytes : panelElements(plan) * bytes;
  int64_t depthBytes = plan.unpack ? plan.unpack->depthBytes : nr * bytes;
  Value packed = operandPointer(OperandSpec::Packed, plan.weightsPack);
  Value at = e->add(e->mul(panel, e->i64(panelBytes)), e->mul(from, e->i64(depthBytes)));
  return e->pointer(packed, at, IntegerType::get(context, 8));
}

void DispatchLowering::lowerDeep(const GemmPlan &plan, const DeepSchedule &deep) {
  const ajour_kernel_row &kernel = *plan.kernel;
  std::optional<int64_t> rows = known(plan.rows);
  int64_t panels = llvm::divideCeil(plan.n, kernel.nr), blockRows = deep.tiles * deep.tileRows;
  int64_t groups = llvm::divideCeil(panels, deep.panelsPerItem);
  Type type = lhsType(plan), sumType = accType(plan);
  int64_t elementSize = nn::elementBytes(type), tileSums = deep.tileRows * kernel.nr;
  // Rows of a stretch keep clear of each other's cache sets.
  int64_t stride = llvm::alignTo(deep.depth * elementSize, 64) / elementSize;
  if (stride * elementSize % 1024 == 0)
    stride += 64 / elementSize;
  Type i8 = IntegerType::get(context, 8), i64 = IntegerType::get(context, 64);
  int64_t shareBytes = plan.unpack ? 0 : llvm::alignTo(llvm::divideCeil(deep.depth * kernel.nr * elementSize, deep.tiles), lineBytes);
  int64_t panelSums = deep.tiles * tileSums, pieceRows = blockRows * stride;
  // The first word of scratch says which block of rows the copy holds: number of the block + 1.
  int64_t sumsAt = 64, copyAt = sumsAt + llvm::alignTo(deep.panelsPerItem * panelSums * 4, 64);
  int64_t copyBytes = llvm::divideCeil(plan.k, deep.depth) * pieceRows * elementSize;
  int64_t unpackedAt = llvm::alignTo(copyAt + copyBytes, 64);
  int64_t unpackedBytes = plan.unpack ? deep.depth * kernel.nr * 4 : 0;
  lowered.scratchBytes = getAffineConstantExpr(unpackedAt + unpackedBytes + AJOUR_BUFFER_SLACK, context);
  lowered.copyKind = plan.source ? "rows" : "gather";
  lowered.copyBytes = plan.rows * (plan.k * elementSize);
  canFinishRuns = reorders.empty();

  items(plan.rows.ceilDiv(blockRows) * groups, [&](Value item) {
    Value block = e->div(item, e->i64(groups)), group = e->rem(item, e->i64(groups));
    Value first = e->mul(block, e->i64(blockRows)), last = e->min(e->size(plan.rows), e->add(first, e->i64(blockRows)));
    Value firstPanel = e->mul(group, e->i64(deep.panelsPerItem));
    Value lastPanel = e->min(e->i64(panels), e->add(firstPanel, e->i64(deep.panelsPerItem)));
    Value sums = e->pointer(scratch, e->i64(sumsAt), i8), copy = e->pointer(scratch, e->i64(copyAt), i8);
    Value acc = e->frameArray(sumType, tileSums), number = e->add(block, e->i64(1));
    e->ifThenElse(
        e->compare(arith::CmpIPredicate::ne, e->loadAt(scratch, e->i64(0), i64), number),
        [&] {
          e->storeAt(number, scratch, e->i64(0), i64);
          emitStretchCopies(plan, deep, copy, stride, pieceRows, first, e->sub(last, first));
        },
        [] {});
    auto sumsOf = [&](Value panel, Value row) {
      Value tile = e->mul(e->div(e->sub(row, first), e->i64(deep.tileRows)), e->i64(tileSums));
      return e->pointer(sums, e->add(e->mul(e->sub(panel, firstPanel), e->i64(panelSums)), tile), sumType);
    };
    auto forTiles = [&](function_ref<void(Value, Value)> body) { forDeepTiles(plan, deep, first, last, body); };
    e->loop(e->i64(0), e->mul(e->sub(lastPanel, firstPanel), e->i64(panelSums)),
            [&](Value i) { e->storeAt(e->constant(sumType, 0), sums, i, sumType); });
    auto stretch = [&](Value from, int64_t depth) {
      Value piece = e->pointer(copy, e->mul(e->div(from, e->i64(deep.depth)), e->i64(pieceRows)), type);
      e->loop(firstPanel, lastPanel, [&](Value panel) {
        Value rhs = weightsPiece(plan, panel, from);
        if (plan.unpack)
          rhs = unpackPiece(plan, rhs, e->pointer(scratch, e->i64(unpackedAt), i8), panel, depth);
        // The next panel's piece arrives a share at a time.
        Value next = weightsPiece(plan, e->add(panel, e->i64(1)), from);
        forTiles([&](Value row, Value count) {
          Value share = e->mul(e->div(e->sub(row, first), e->i64(deep.tileRows)), e->i64(shareBytes));
          e->loop(e->i64(0), e->i64(shareBytes), [&](Value at) { e->prefetch(e->pointer(next, e->add(share, at), i8), 2); }, lineBytes);
          Value lhs = e->pointer(piece, e->mul(e->sub(row, first), e->i64(stride)), type);
          // A last tile of an unknown number of rows is computed whole; what lies in the copy's other rows does not matter.
          Value computed = rows ? count : e->i64(kernel.mr);
          callKernel(kernel.symbol, {lhs, e->i64(stride), rhs, acc, computed, e->i64(depth)});
          addTile(sumsOf(panel, row), acc, e->mul(computed, e->i64(kernel.nr)), sumType);
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

/// Unpacks a stretch of the depth of a panel, which begins at `from` in its first block, to `to`.
Value DispatchLowering::unpackPiece(const GemmPlan &plan, Value from, Value to, Value panel, int64_t depth) {
  int64_t nr = plan.kernel->nr, columns = encoding::storedColumns;
  Value blocks = e->i64(llvm::divideCeil(plan.n, columns)), first = e->mul(panel, e->i64(nr / columns));
  e->loop(e->i64(0), e->min(e->i64(nr / columns), e->sub(blocks, first)), [&](Value block) {
    Value source = e->pointer(from, e->mul(block, e->i64(plan.unpack->blockBytes)), e->b.getI8Type());
    Value target = e->pointer(to, e->mul(block, e->i64(columns)), lhsType(plan));
    callKernel(plan.unpack->symbol, {source, target, e->i64(nr), e->i64(columns / 2), e->i64(depth)});
  });
  return to;
}

/// Copies `count` rows from row `first` on, stretch by stretch of the depth, `pieceRows` elements apart; rows of a stretch lie `stride` apart.
void DispatchLowering::emitStretchCopies(const GemmPlan &plan, const DeepSchedule &deep, Value copy, int64_t stride,
                                         int64_t pieceRows, Value first, Value count) {
  Type type = lhsType(plan);
  nn::Dims dims = nn::getDims(plan.lhs);
  Value source = plan.source ? e->pointer(e->buffer(plan.source), e->i64(plan.offset), type) : Value();
  auto copyOne = [&](Value r, Value p, Value to) {
    Value row = e->add(first, r), x;
    if (source) {
      x = e->loadAt(source, e->add(e->mul(row, e->i64(plan.pixelStride)), p), type);
    } else {
      Index index = e->delinearize(row, ArrayRef(dims).drop_back());
      index.push_back(p);
      x = e->element(plan.lhs, index);
    }
    if (plan.flip)
      x = e->b.createOrFold<arith::XOrIOp>(e->loc, x, e->integer(x.getType(), int8_t(plan.flip)));
    e->storeAt(x, copy, to, type);
  };
  e->loop(
      e->i64(0), e->i64(plan.k),
      [&](Value from) {
        Value piece = e->mul(e->div(from, e->i64(deep.depth)), e->i64(pieceRows));
        Value depth = e->min(e->i64(deep.depth), e->sub(e->i64(plan.k), from));
        // Rows that lie as such are walked along; what is gathered is more often stored by columns.
        if (source)
          e->loop(e->i64(0), count, [&](Value r) {
            Value start = e->add(piece, e->mul(r, e->i64(stride)));
            e->loop(e->i64(0), depth, [&](Value p) { copyOne(r, e->add(from, p), e->add(start, p)); });
          });
        else
          e->loop(e->i64(0), depth, [&](Value p) {
            e->loop(e->i64(0), count, [&](Value r) {
              copyOne(r, e->add(from, p), e->add(e->add(piece, p), e->mul(r, e->i64(stride))));
            });
          });
      },
      deep.depth);
}

} // namespace ajour::loops
