//===- ManyRows.cpp - products whose number of rows decides while they run --------------===//
//
// A language model's weights meet one token or a few hundred, and code is made before that is known. So a dispatch has both
// forms, over the same packed weights, and the number of rows chooses one.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/PackStored.h"

#include <numeric>

using namespace mlir;

namespace ajour::loops {

using encoding::GemvFormat;

//===----------------------------------------------------------------------===//
// Activations of 8 bits
//===----------------------------------------------------------------------===//

/// Rows of a work item: they are quantised together, and weights come from far away (or are expanded) once for so many.
static constexpr int64_t itemRows = 132;
/// Bytes of their tiles, which stay in the second-level cache while one block of weights after the other passes by.
static constexpr int64_t itemTileBytes = 1 << 20;
/// Work items along the columns.
static constexpr int64_t wantedColumnItems = 16;
/// Blocks of weights that a tile of rows meets before the next tile does, so that it stays in the first-level cache and rows of
/// results are written in longer runs.
static constexpr int64_t blocksTogether = 4;
static constexpr int64_t lineBytes = 64;
/// The largest group whose integer sum is below 2^22 for all weights of 8 bits.
static constexpr int64_t mostTileGroup = 128;

static std::optional<ajour_kernel_op> tileKernel(GemvFormat::Values values) {
  switch (values) {
  case GemvFormat::Q2:
    return AJOUR_KERNEL_gemm_q2;
  case GemvFormat::Q4:
    return AJOUR_KERNEL_gemm_q4;
  case GemvFormat::Q5:
    return AJOUR_KERNEL_gemm_q5;
  case GemvFormat::Q6:
    return AJOUR_KERNEL_gemm_q6;
  case GemvFormat::Q8:
    return AJOUR_KERNEL_gemm_q8;
  default:
    return std::nullopt;
  }
}

/// The form for many rows of a product whose lhs is rounded to 8 bits: whole tiles of rows meet the blocks of the matrix-vector
/// kernels. Nothing where few rows are certain or there is no kernel for the weights.
std::optional<TilePlan> DispatchLowering::planRowTiles(const GemvPlan &plan) {
  std::optional<int64_t> rows = known(plan.product.rows);
  // Blocks of C4^n are expanded to dense ones of 8 bits first.
  bool expands = plan.compress;
  std::optional<ajour_kernel_op> op = expands ? AJOUR_KERNEL_gemm_q8 : tileKernel(plan.format.values);
  if (plan.lhsGroup == 0 || !op || (rows && *rows <= mostRowsOfRounded) ||
      (expands && (plan.format.structure != GemvFormat::C4n || plan.format.zeroPoints || plan.format.group % 8 != 0)))
    return std::nullopt;
  TilePlan tiles{};
  tiles.expands = expands;
  tiles.kernel = ajour_find_kernel(*op, level);
  if (!tiles.kernel)
    return std::nullopt;
  // A group of a tile has one scale of the lhs and one of the weights.
  int64_t group = expands ? plan.format.group : plan.sizes.groupKept;
  tiles.group = std::gcd(group, plan.lhsGroup);
  while (tiles.group > mostTileGroup && tiles.group % (2 * tiles.kernel->kr) == 0)
    tiles.group /= 2;
  if (tiles.group % tiles.kernel->kr != 0 || tiles.group > mostTileGroup)
    return std::nullopt;
  tiles.parts = group / tiles.group;
  return tiles;
}

/// Quantises `count` rows from `row` on into a tile.
void DispatchLowering::quantizeTile(const GemvPlan &plan, const TilePlan &tiles, Value row, Value count, Value tile,
                                    Value gathered) {
  const GemmPlan &product = plan.product;
  const GemvFormat &format = plan.format;
  Type f32 = e->b.getF32Type();
  Value source = gathered, stride = e->i64(product.k);
  if (product.source) {
    stride = e->i64(product.pixelStride);
    source = e->pointer(e->buffer(product.source), e->add(e->mul(row, stride), e->i64(product.offset)), f32);
  } else {
    Value base = scratch;
    scratch = gathered;
    e->loop(e->i64(0), count, [&](Value r) {
      gatherRow(product, product.lhs, e->i64(0), e->add(row, r), e->mul(r, stride));
    });
    scratch = base;
  }
  int64_t zero = format.zeroPoints || format.offsets     ? -1
                 : format.signed8 || format.isUnsigned ? 0
                                                       : int64_t(1) << (encoding::gemvBits(tiles.expands ? GemvFormat::Q8 : format.values) - 1);
  callKernel("ajour_quantize_tile_8bit",
             {source, stride, tile, count, e->i64(tiles.kernel->mr), e->i64(product.k), e->i64(plan.lhsGroup),
              e->i64(tiles.group), e->i64(zero), e->i64(plan.lhsHalfScales)});
}

void DispatchLowering::lowerTiles(const GemvPlan &plan, const TilePlan &tiles) {
  const GemmPlan &product = plan.product;
  Type i8 = IntegerType::get(context, 8), i64 = IntegerType::get(context, 64), f32 = Float32Type::get(context);
  int64_t mr = tiles.kernel->mr, tileBytes = plan.sizes.groups * tiles.parts * ajour_gemm_q_tile_bytes(mr, tiles.group);
  int64_t count = std::max<int64_t>(1, std::min(itemRows / mr, itemTileBytes / tileBytes)), blockRows = count * mr;
  int64_t blocksPerItem = llvm::divideCeil(plan.sizes.blocks, wantedColumnItems);
  int64_t columns = llvm::divideCeil(plan.sizes.blocks, blocksPerItem);
  int64_t gatheredBytes = product.source ? 0 : mr * product.k * 4;
  // The first word of scratch says which block of rows the tiles hold: number of the block + 1.
  int64_t tilesAt = 64, gatheredAt = tilesAt + llvm::alignTo(count * tileBytes, 64);
  int64_t expandedAt = llvm::alignTo(gatheredAt + gatheredBytes, 64), flags = gemvFlags(plan.format);
  int64_t expandedBytes = tiles.expands ? plan.sizes.groups * ajour_gemv_group_bytes(8, plan.format.group, flags) : 0;
  int64_t together = std::min(blocksTogether, blocksPerItem);
  int64_t shareBytes = llvm::alignTo(llvm::divideCeil(together * plan.sizes.blockBytes, count), lineBytes);
  lowered.scratchBytes = getAffineConstantExpr(expandedAt + together * expandedBytes + AJOUR_BUFFER_SLACK, context);
  lowered.copyKind = product.source ? "rows" : "gather";
  lowered.copyBytes = product.rows.ceilDiv(mr) * tileBytes;

  items(product.rows.ceilDiv(blockRows) * columns, [&](Value item) {
    Value block = e->div(item, e->i64(columns)), column = e->rem(item, e->i64(columns));
    Value first = e->mul(block, e->i64(blockRows)), last = e->min(e->size(product.rows), e->add(first, e->i64(blockRows)));
    Value gathered = e->pointer(scratch, e->i64(gatheredAt), i8);
    auto forTiles = [&](function_ref<void(Value, Value, Value)> body) {
      e->loop(
          first, last,
          [&](Value row) {
            Value at = e->mul(e->div(e->sub(row, first), e->i64(mr)), e->i64(tileBytes));
            body(row, e->min(e->i64(mr), e->sub(last, row)), e->pointer(scratch, e->add(at, e->i64(tilesAt)), i8));
          },
          mr);
    };
    Value held = e->loadAt(scratch, e->i64(0), i64), number = e->add(block, e->i64(1));
    e->ifThenElse(
        e->compare(arith::CmpIPredicate::ne, held, number),
        [&] {
          e->storeAt(number, scratch, e->i64(0), i64);
          forTiles([&](Value row, Value rows, Value tile) { quantizeTile(plan, tiles, row, rows, tile, gathered); });
        },
        [] {});
    Value firstBlock = e->mul(column, e->i64(blocksPerItem));
    Value lastBlock = e->min(e->i64(plan.sizes.blocks), e->add(firstBlock, e->i64(blocksPerItem)));
    Value packed = operandPointer(OperandSpec::Packed, product.weightsPack);
    Value acc = e->frameArray(f32, mr * AJOUR_GEMV_ROWS);
    Value expanded = e->pointer(scratch, e->i64(expandedAt), i8);
    auto weightsOf = [&](Value columnBlock) { return e->pointer(packed, e->mul(columnBlock, e->i64(plan.sizes.blockBytes)), i8); };
    e->loop(
        firstBlock, lastBlock,
        [&](Value from) {
          Value to = e->min(lastBlock, e->add(from, e->i64(together)));
          auto expandedOf = [&](Value columnBlock) {
            return e->pointer(expanded, e->mul(e->sub(columnBlock, from), e->i64(expandedBytes)), i8);
          };
          if (tiles.expands)
            e->loop(from, to, [&](Value columnBlock) { expandBlock(plan, weightsOf(columnBlock), expandedOf(columnBlock)); });
          forTiles([&](Value row, Value rows, Value tile) {
            // The blocks that come next arrive a share at a time.
            Value share = e->mul(e->div(e->sub(row, first), e->i64(mr)), e->i64(shareBytes));
            Value next = e->pointer(weightsOf(e->add(from, e->i64(together))), share, i8);
            e->loop(e->i64(0), e->i64(shareBytes), [&](Value at) { e->prefetch(e->pointer(next, at, i8), 2); }, lineBytes);
            e->loop(from, to, [&](Value columnBlock) {
              prefetchEpilogue(product, columnBlock, row, rows);
              Value weights = tiles.expands ? expandedOf(columnBlock) : weightsOf(columnBlock);
              callKernel(tiles.kernel->symbol, {tile, weights, acc, rows, e->i64(plan.sizes.groups), e->i64(tiles.parts),
                                                e->i64(tiles.group), e->i64(flags)});
              emitTileEpilogue(product, {acc}, Value(), columnBlock, row, rows);
            });
          });
        },
        together);
  });
}

/// One block of C4^n as a dense one of 8 bits.
void DispatchLowering::expandBlock(const GemvPlan &plan, Value weights, Value expanded) {
  Type i8 = IntegerType::get(context, 8);
  int64_t bits = encoding::gemvBits(plan.format.values);
  bool isSigned = plan.format.signed8;
  callKernel("ajour_expand_c4_8bit",
             {weights, e->pointer(weights, e->i64(plan.sizes.codeBytes), i8), expanded, e->i64(plan.format.kept),
              e->i64(plan.format.patterns), e->i64(plan.sizes.groups), e->i64(plan.format.group), e->i64(bits),
              e->i64(gemvFlags(plan.format)), e->i64(isSigned ? 0 : int64_t(1) << (bits - 1)), e->i64(isSigned ? 0 : 128)});
}

//===----------------------------------------------------------------------===//
// Activations of 32 bits
//===----------------------------------------------------------------------===//

/// The form for many rows of a product whose lhs is as it is: blocks of the matrix-vector kernels are unpacked into panels of the
/// dense kernel. Nothing where the number of rows is known, since then one form is enough, or there is no kernel for it.
std::optional<GemmPlan> DispatchLowering::planUnpackedRows(const GemvPlan &plan) {
  const GemvFormat &format = plan.format;
  bool isHalf = format.values == GemvFormat::F16, isInteger = format.values == GemvFormat::Q4 || format.values == GemvFormat::Q8;
  const ajour_kernel_row *kernel = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level);
  const ajour_kernel_row *unpack =
      ajour_find_kernel(isHalf ? AJOUR_KERNEL_unpack_f16_f32 : AJOUR_KERNEL_unpack_int_f32, level);
  if (plan.lhsGroup > 0 || known(plan.product.rows) || format.structure != GemvFormat::Dense || (!isHalf && !isInteger) || !kernel ||
      !unpack || kernel->kr != 1)
    return std::nullopt;
  GemmPlan many = plan.product;
  many.kernel = kernel;
  many.images = getAffineConstantExpr(1, context);
  many.direct = false;
  many.unpack = UnpackPlan{nullptr, unpack->symbol, plan.sizes.blockBytes, many.k, -1, {many.k}};
  many.unpack->depthBytes = isHalf ? encoding::storedColumns * 2 : 0;
  if (isInteger) {
    int64_t bits = encoding::gemvBits(format.values), groups = plan.sizes.groups, group = format.group;
    int64_t flags = AJOUR_UNPACK_SCALES | (format.halfScales ? 0 : AJOUR_UNPACK_F32_SCALES) |
                    (format.zeroPoints ? AJOUR_UNPACK_ZERO_POINTS : 0) | (format.signed8 ? AJOUR_UNPACK_SIGNED : 0);
    int64_t zero = format.signed8 || format.isUnsigned ? 0 : int64_t(1) << (bits - 1);
    many.unpack->rows = groups * group;
    many.unpack->arguments = {groups, group, bits, flags, zero};
  }
  return many;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Both forms of a product; `mostFew` are the most rows of the first. Each has its work items, and the other's are empty: which
/// of them run follows from the number of rows.
void DispatchLowering::lowerByRows(const GemvPlan &few, int64_t mostFew, function_ref<void()> lowerMany) {
  AffineExpr none = getAffineConstantExpr(0, context);
  Value isFew = e->compare(arith::CmpIPredicate::sle, e->size(few.product.rows), e->i64(mostFew));
  AffineExpr items, scratchBytes;
  mostFewRows = mostFew;
  auto write = [&](function_ref<void()> form, AffineExpr before) {
    itemsBefore = before;
    lowered.scratchBytes = none;
    form();
    canFinishRuns = false;
  };
  e->ifThenElse(
      isFew,
      [&] {
        write([&] { lowerGemv(few); }, none);
        items = lowered.work;
        scratchBytes = lowered.scratchBytes;
      },
      [&] { write(lowerMany, items); });
  itemsBefore = std::nullopt;
  lowered.work = items + lowered.work;
  lowered.scratchBytes = getAffineConstantExpr(std::max(*known(scratchBytes), *known(lowered.scratchBytes)), context);
}

} // namespace ajour::loops
