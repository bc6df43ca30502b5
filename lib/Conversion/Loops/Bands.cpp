//===- Bands.cpp - windowed convolutions without patch copies ---------------------------===//
//
// Of a convolution without horizontal dilation, what one window row reads is contiguous in an input row, and the next
// output pixel reads the same further on. So once a band of input rows stands padded in scratch, each window
// row is a product of its own whose lhs rows overlap; the products of all window rows are added in the
// epilogue. Each input element is copied about once, instead of once for each tap.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"
#include "ajour/ABI/Dispatch.h"

using namespace mlir;

namespace ajour::loops {

/// Elements of a window row from which a product of its own pays.
static constexpr int64_t shortestRun = 96;
/// The share of a full tile that output rows must fill.
static constexpr double leastFill = 0.7;

std::optional<BandPlan> DispatchLowering::planBand(const GemmPlan &plan) {
  auto conv = dyn_cast<nn::ConvOp>(plan.root);
  if (!conv || plan.direct || plan.needsRowSums || !isa<BlockArgument>(plan.lhs))
    return std::nullopt;
  nn::Dims in = nn::getDims(conv.getInput()), out = nn::getDims(conv.getResult());
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  if (in.size() != 4 || !known(in[1]) || !known(in[2]) || !known(in[0]) || conv.getDilations()[1] != 1)
    return std::nullopt;
  int64_t kh = filter.getDimSize(1), kw = filter.getDimSize(2), channels = filter.getDimSize(3);
  int64_t run = kw * channels, elementSize = plan.kernel->lhs == AJOUR_F32 ? 4 : 1;
  int64_t height = *known(out[1]), width = *known(out[2]), images = *known(out[0]);
  if (height == 0 || width == 0 || images == 0 || run < shortestRun || run % plan.kernel->kr != 0)
    return std::nullopt;
  int64_t mr = plan.kernel->mr, tiles = llvm::divideCeil(width, mr);
  BandPlan band;
  band.tilePixels = llvm::divideCeil(width, tiles);
  if (double(width) / double(tiles * mr) < leastFill)
    return std::nullopt;
  // The last output pixel reads up to here; what lies behind it in the input is not needed.
  int64_t reach = (width - 1) * conv.getStrides()[1] + kw;
  band.rowElements = reach * channels;
  int64_t stride = conv.getStrides()[0];
  int64_t rowBytes = band.rowElements * elementSize * stride, panels = llvm::divideCeil(plan.n, plan.kernel->nr);
  int64_t maxRows = std::clamp<int64_t>(blockBudget(level) / std::max<int64_t>(rowBytes, 1), 1, height);
  Blocking blocking = chooseBlocking(height, images, panels, maxRows, rowBytes,
                                     panels * plan.kernel->nr * plan.k * elementSize, /*copies=*/true);
  band.outputRows = blocking.tiles;
  int64_t panelsPerItem = llvm::divideCeil(panels, blocking.groups);
  if (plan.unpack) // whole blocks of 16 columns
    panelsPerItem = llvm::alignTo(panelsPerItem, panelsOfBlock(plan));
  band.groups = llvm::divideCeil(panels, panelsPerItem);
  band.panelsPerItem = panelsPerItem;
  band.bandRows = (band.outputRows - 1) * stride + (kh - 1) * conv.getDilations()[0] + 1;
  return band;
}

/// Copies the input rows that `rows` output rows from `firstRow` read, padding included, into scratch.
void DispatchLowering::copyBand(const GemmPlan &plan, const BandPlan &band, Value image, Value firstRow, Value rows) {
  auto conv = cast<nn::ConvOp>(plan.root);
  nn::Dims in = nn::getDims(conv.getInput());
  bool is8 = plan.kernel->lhs != AJOUR_F32;
  Type type = is8 ? Type(IntegerType::get(context, 8)) : Type(Float32Type::get(context));
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  int64_t channels = filter.getDimSize(3), left = conv.getPadsLow()[1], width = *known(in[2]);
  int64_t reach = band.rowElements / channels;
  // Columns of the band that exist in the input.
  int64_t from = std::min(left, reach), to = std::clamp<int64_t>(left + width, from, reach);
  Value origin = e->sub(e->mul(firstRow, e->i64(conv.getStrides()[0])), e->i64(conv.getPadsLow()[0]));
  int64_t extra = (filter.getDimSize(1) - 1) * conv.getDilations()[0] + 1;
  Value count = e->add(e->mul(e->sub(rows, e->i64(1)), e->i64(conv.getStrides()[0])), e->i64(extra));
  Value fill = is8 ? e->integer(type, plan.lhsZeroPoint & 0xff) : e->constant(type, 0);
  Value source = e->buffer(plan.lhs), height = e->size(in[1]);
  auto fillRun = [&](Value start, int64_t elements) {
    if (elements > 0)
      e->loop(e->i64(0), e->i64(elements), [&](Value i) { e->storeAt(fill, scratch, e->add(start, i), type); });
  };
  e->loop(e->i64(0), count, [&](Value row) {
    Value start = e->mul(row, e->i64(band.rowElements));
    Value y = e->add(origin, row);
    e->ifThenElse(
        e->inRange(y, height),
        [&] {
          fillRun(start, from * channels);
          Value sourceRow = e->mul(e->add(e->mul(image, height), y), e->i64(width * channels));
          sourceRow = e->add(sourceRow, e->i64((from - left) * channels));
          Value target = e->add(start, e->i64(from * channels));
          e->loop(e->i64(0), e->i64((to - from) * channels), [&](Value i) {
            Value x = e->loadAt(source, e->add(sourceRow, i), type);
            if (plan.flip)
              x = e->b.createOrFold<arith::XOrIOp>(e->loc, x, e->integer(type, int8_t(plan.flip)));
            e->storeAt(x, scratch, e->add(target, i), type);
          });
          fillRun(e->add(start, e->i64(to * channels)), (reach - to) * channels);
        },
        [&] { fillRun(start, band.rowElements); });
  });
}

void DispatchLowering::lowerBands(const GemmPlan &plan, const BandPlan &band) {
  auto conv = cast<nn::ConvOp>(plan.root);
  const ajour_kernel_row &kernel = *plan.kernel;
  bool is8 = kernel.lhs != AJOUR_F32;
  Type type = is8 ? Type(IntegerType::get(context, 8)) : Type(Float32Type::get(context));
  Type accType = is8 ? Type(IntegerType::get(context, 32)) : Type(Float32Type::get(context));
  nn::Dims out = nn::getDims(plan.result);
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  int64_t kh = filter.getDimSize(1), run = filter.getDimSize(2) * filter.getDimSize(3);
  int64_t height = *known(out[1]), width = *known(out[2]), panels = llvm::divideCeil(plan.n, kernel.nr);
  int64_t panelsPerItem = band.panelsPerItem, blocks = llvm::divideCeil(height, band.outputRows);
  lowered.scratchBytes =
      getAffineConstantExpr(band.bandRows * band.rowElements * nn::elementBytes(type) + AJOUR_BUFFER_SLACK, context);
  lowered.copyKind = "band";
  if (plan.sparse)
    for (unsigned pack : {plan.weightsPack, plan.sparse->offsetsPack, plan.sparse->picksPack, plan.sparse->indexPack})
      lowered.packs[pack].panels.parts = kh;
  lowered.copyBytes = out[0] * blocks * band.groups * (band.bandRows * band.rowElements * nn::elementBytes(type));
  auto c = [&](int64_t value) { return e->i64(value); };

  items(out[0] * blocks * band.groups, [&](Value item) {
    auto [group, block] = splitItem(item, out[0] * blocks, band.groups, plan.unpack.has_value());
    Value image = e->div(block, c(blocks)), firstRow = e->mul(e->rem(block, c(blocks)), c(band.outputRows));
    Value rows = e->min(c(band.outputRows), e->sub(c(height), firstRow));
    GemmBlock part;
    part.firstPanel = e->mul(group, c(panelsPerItem));
    part.lastPanel = e->min(c(panels), e->add(part.firstPanel, c(panelsPerItem)));
    if (plan.unpack) {
      reserveUnpacked(plan, part, panelsPerItem);
      unpackOnce(plan, part, item, block);
    }
    copyBand(plan, band, image, firstRow, rows);
    SmallVector<Value> accs;
    for (int64_t i = 0; i < kh; ++i)
      accs.push_back(e->frameArray(accType, kernel.mr * kernel.nr));
    Value lda = c(conv.getStrides()[1] * filter.getDimSize(3));
    e->loop(part.firstPanel, part.lastPanel, [&](Value panel) {
      Value weights = plan.sparse ? Value() : panelPointer(plan, part, panel);
      e->loop(c(0), rows, [&](Value row) {
        Value y = e->add(firstRow, row);
        Value bandRow = e->mul(e->mul(row, c(conv.getStrides()[0])), c(band.rowElements));
        auto tile = [&](Value x, Value pixels) {
          Value start = e->add(bandRow, e->mul(x, lda));
          for (int64_t ky = 0; ky < kh; ++ky) {
            Value lhs = e->pointer(scratch, e->add(start, c(ky * conv.getDilations()[0] * band.rowElements)), type);
            Value rhs = weights ? e->pointer(weights, c(ky * run * kernel.nr), type) : Value();
            callGemm(plan, panel, ky, lhs, lda, rhs, accs[ky], pixels, c(run));
          }
          Value outputRow = e->add(e->mul(image, c(height)), y);
          emitTileEpilogue(plan, accs, Value(), panel, e->add(e->mul(outputRow, c(width)), x), pixels);
        };
        int64_t whole = width / band.tilePixels * band.tilePixels;
        e->loop(c(0), c(whole), [&](Value x) { tile(x, c(band.tilePixels)); }, band.tilePixels);
        if (whole < width)
          tile(c(whole), c(width - whole));
      });
    });
  });
}

} // namespace ajour::loops
