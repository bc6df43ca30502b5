//===- Winograd.cpp - 3x3 convolutions with fewer products ------------------------------===//
//
// A work item transforms a block of input tiles into scratch, for each of the transform's points a matrix of tiles by
// channels. Panel by panel of output channels these are multiplied with the transformed filters, transformed back
// and finished by the epilogue. The method and its matrices are described in ajour/Kernels/Kernels.h.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/Winograd.h"

using namespace mlir;

namespace ajour::loops {

/// What the cost model counts in, besides multiply-adds of the product: those in whose time a float of a tile is transformed
/// there, or back, and those in whose time a byte of weights comes from the third-level cache, where these do not
/// fit the second.
static constexpr double inputCost = 4, outputCost = 5, weightByteCost = 2;
/// The share of the direct form's cost that must be left.
static constexpr double leastGain = 0.9;

namespace {
/// The sizes of a convolution.
struct Sizes {
  int64_t images, height, width, channels, n;
};

/// Strides between the points of the transformed input and of the products, in floats. An odd number of cache lines:
/// the points of a tile then fall into different cache sets.
int64_t oddLines(int64_t floats) { return llvm::alignTo(floats, 32) + 16; }
} // namespace

/// How tiles of t x t outputs would be computed, and the cost in multiply-adds.
static std::pair<WinogradPlan, double> planTiles(int64_t t, const Sizes &s, const ajour_kernel_row &kernel,
                                                 ajour_cpu_level level) {
  WinogradPlan plan{};
  plan.t = t;
  plan.tilesY = llvm::divideCeil(s.height, t);
  plan.tilesX = llvm::divideCeil(s.width, t);
  int64_t points = encoding::winogradPoints(t), tiles = plan.tilesY * plan.tilesX;
  int64_t panels = llvm::divideCeil(s.n, kernel.nr), weightBytes = points * s.channels * panels * kernel.nr * 4;
  int64_t tileBytes = points * s.channels * 4;
  bool isResident = weightBytes <= 2 * residentBytes(level);
  // Weights that stay in the second-level cache leave room for a few tiles; others are read once for each block.
  int64_t budget = isResident ? blockBudget(level) : winogradBudget(level);
  int64_t most = std::max<int64_t>(budget / tileBytes, kernel.mr);
  int64_t blocks = std::max<int64_t>(llvm::divideCeil(tiles, most), 1);
  plan.blockTiles = llvm::divideCeil(tiles, blocks);
  blocks = llvm::divideCeil(tiles, plan.blockTiles);
  // Few blocks: each is shared by items that transform it once more.
  int64_t groups = std::clamp<int64_t>(wantedWinogradItems / std::max<int64_t>(blocks * s.images, 1), 1, panels);
  plan.panelsPerItem = llvm::divideCeil(panels, groups);
  groups = llvm::divideCeil(panels, plan.panelsPerItem);

  int64_t rowTiles = llvm::divideCeil(plan.blockTiles, kernel.mr);
  double fill = double(plan.blockTiles) / double(rowTiles * kernel.mr);
  double product = double(points * tiles) * double(s.channels * panels * kernel.nr) / (0.5 + 0.5 * fill);
  double transforms = double(points * tiles) * (inputCost * double(s.channels * groups) + outputCost * double(s.n));
  double weights = isResident ? 0 : weightByteCost * double(weightBytes) * double(blocks);
  return {plan, double(s.images) * (product + transforms + weights)};
}

std::optional<WinogradPlan> DispatchLowering::planWinograd(const GemmPlan &plan) {
  auto conv = cast<nn::ConvOp>(plan.root);
  nn::Dims in = nn::getDims(conv.getInput()), out = nn::getDims(conv.getResult());
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  auto areOnes = [](ArrayRef<int64_t> values) { return llvm::all_of(values, [](int64_t v) { return v == 1; }); };
  if (!options.winograd || plan.kernel->lhs != AJOUR_F32 || in.size() != 4 || filter.getDimSize(1) != 3 ||
      filter.getDimSize(2) != 3 || !areOnes(conv.getStrides()) || !areOnes(conv.getDilations()) ||
      !isa<BlockArgument>(plan.lhs))
    return std::nullopt;
  const ajour_kernel_row *input = ajour_find_kernel(AJOUR_KERNEL_winograd_input_f32, level);
  const ajour_kernel_row *output = ajour_find_kernel(AJOUR_KERNEL_winograd_output_f32, level);
  for (unsigned i = 0; i < 3; ++i)
    if (!known(in[i]) || !known(out[i]) || *known(out[i]) == 0)
      return std::nullopt;
  Sizes sizes{*known(out[0]), *known(out[1]), *known(out[2]), filter.getDimSize(3), plan.n};
  if (!input || !output || sizes.channels < input->nr || plan.kernel->nr % output->nr != 0)
    return std::nullopt;
  int64_t panels = llvm::divideCeil(plan.n, plan.kernel->nr);
  double direct = double(sizes.images * sizes.height * sizes.width) * double(plan.k * panels * plan.kernel->nr);
  direct += weightByteCost * double(plan.k * panels * plan.kernel->nr * 4);
  std::optional<WinogradPlan> best;
  double bestCost = leastGain * direct;
  for (int64_t t : {2, 4}) {
    auto [tiles, cost] = planTiles(t, sizes, *plan.kernel, level);
    if (cost >= bestCost)
      continue;
    best = tiles;
    best->input = input;
    best->output = output;
    bestCost = cost;
  }
  return best;
}

/// The products of all points of `count` tiles with one panel.
void DispatchLowering::emitWinogradProducts(const GemmPlan &plan, const WinogradLayout &layout, int64_t count,
                                            Value panel) {
  const ajour_kernel_row &kernel = *plan.kernel;
  Type f32 = Float32Type::get(context);
  int64_t points = encoding::winogradPoints(plan.winograd->t), channels = layout.channels;
  int64_t rowTiles = llvm::divideCeil(count, kernel.mr);
  Value packed = operandPointer(OperandSpec::Packed, plan.weightsPack);
  e->loop(e->i64(0), e->i64(points), [&](Value point) {
    Value weights = e->mul(e->add(e->mul(panel, e->i64(points)), point), e->i64(channels * kernel.nr));
    Value rhs = e->pointer(packed, weights, f32);
    Value lhs = e->pointer(scratch, e->mul(point, e->i64(layout.inputStride)), f32);
    Value acc = e->pointer(layout.products, e->mul(point, e->i64(layout.productStride)), f32);
    int64_t row = 0;
    for (int64_t i = 0; i < rowTiles; ++i) {
      int64_t rows = count / rowTiles + (i < count % rowTiles);
      callKernel(kernel.symbol, {e->pointer(lhs, e->i64(row * layout.lda), f32), e->i64(layout.lda), rhs,
                                 e->pointer(acc, e->i64(row * kernel.nr), f32), e->i64(rows), e->i64(channels)});
      row += rows;
    }
  });
}

/// The outputs of `count` tiles from `firstTile` of an image in one panel.
void DispatchLowering::emitWinogradOutputs(const GemmPlan &plan, const WinogradLayout &layout, Value image,
                                           Value firstTile, int64_t count, Value panel) {
  const ajour_kernel_row &kernel = *plan.kernel;
  Type f32 = Float32Type::get(context);
  auto c = [&](int64_t value) { return e->i64(value); };
  nn::Dims out = nn::getDims(plan.result);
  int64_t t = plan.winograd->t;
  Value acc = e->frameArray(f32, t * t * kernel.nr);
  e->loop(c(0), c(count), [&](Value i) {
    Value products = e->pointer(layout.products, e->mul(i, c(kernel.nr)), f32);
    callKernel(plan.winograd->output->symbol, {products, c(layout.productStride), acc, c(kernel.nr), c(t)});
    Value tile = e->add(firstTile, i);
    Value y = e->mul(e->div(tile, c(plan.winograd->tilesX)), c(t));
    Value x = e->mul(e->rem(tile, c(plan.winograd->tilesX)), c(t));
    auto inside = [&](Value from, AffineExpr size) {
      return *known(size) % t == 0 ? c(t) : e->min(c(t), e->sub(e->size(size), from));
    };
    e->loop(c(0), inside(y, out[1]), [&](Value dy) {
      e->loop(c(0), inside(x, out[2]), [&](Value dx) {
        Value row = e->add(e->mul(dy, c(t)), dx);
        emitRowEpilogue(plan, {acc}, Value(), row, panel, {image, e->add(y, dy), e->add(x, dx)});
      });
    });
  });
}

void DispatchLowering::lowerWinograd(const GemmPlan &plan) {
  const WinogradPlan &winograd = *plan.winograd;
  const ajour_kernel_row &kernel = *plan.kernel;
  auto conv = cast<nn::ConvOp>(plan.root);
  nn::Dims in = nn::getDims(conv.getInput()), out = nn::getDims(conv.getResult());
  Type f32 = Float32Type::get(context);
  int64_t points = encoding::winogradPoints(winograd.t), tiles = winograd.tilesY * winograd.tilesX;
  int64_t panels = llvm::divideCeil(plan.n, kernel.nr), groups = llvm::divideCeil(panels, winograd.panelsPerItem);
  int64_t blocks = llvm::divideCeil(tiles, winograd.blockTiles);
  WinogradLayout layout;
  layout.channels = *nn::getConstant(in.back());
  layout.lda = llvm::alignTo(layout.channels, 16);
  if (layout.lda % 1024 == 0)
    layout.lda += 16;
  layout.inputStride = oddLines(winograd.blockTiles * layout.lda);
  layout.productStride = oddLines(winograd.blockTiles * kernel.nr);
  lowered.scratchBytes = getAffineConstantExpr(
      points * (layout.inputStride + layout.productStride) * 4 + AJOUR_BUFFER_SLACK, context);
  lowered.copyKind = "winograd";
  lowered.copyBytes = out[0] * (groups * tiles * points * layout.channels * 4);

  items(out[0] * blocks * groups, [&](Value item) {
    auto c = [&](int64_t value) { return e->i64(value); };
    Value group = e->rem(item, c(groups)), block = e->div(item, c(groups));
    Value image = e->div(block, c(blocks)), firstTile = e->mul(e->rem(block, c(blocks)), c(winograd.blockTiles));
    Value source = e->pointer(e->buffer(plan.lhs), e->mul(image, e->product(ArrayRef(in).drop_front())), f32);
    layout.products = e->pointer(scratch, c(points * layout.inputStride), f32);
    Value firstPanel = e->mul(group, c(winograd.panelsPerItem));
    Value lastPanel = e->min(c(panels), e->add(firstPanel, c(winograd.panelsPerItem)));
    auto run = [&](int64_t count) {
      callKernel(winograd.input->symbol,
                 {source, e->size(in[1]), e->size(in[2]), c(layout.channels), firstTile, c(count), c(winograd.tilesX),
                  c(conv.getPadsLow()[0]), c(conv.getPadsLow()[1]), scratch, c(layout.lda), c(layout.inputStride),
                  c(winograd.t)});
      e->loop(firstPanel, lastPanel, [&](Value panel) {
        emitWinogradProducts(plan, layout, count, panel);
        emitWinogradOutputs(plan, layout, image, firstTile, count, panel);
      });
    };
    int64_t rest = tiles % winograd.blockTiles;
    if (rest == 0)
      return run(winograd.blockTiles);
    Value isWhole = e->compare(arith::CmpIPredicate::sle, e->add(firstTile, c(winograd.blockTiles)), c(tiles));
    e->ifThenElse(isWhole, [&] { run(winograd.blockTiles); }, [&] { run(rest); });
  });
}

} // namespace ajour::loops
