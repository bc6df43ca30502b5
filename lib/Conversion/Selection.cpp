//===- Selection.cpp - which kernel serves a weight -----------------------------===//
#include "ajour/Conversion/Selection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ajour {

using encoding::StructureKind;
using encoding::ValuesKind;

static constexpr int64_t groupSizes[] = {1, 2, 4, 8, 16};
/// A sparse kernel must be expected to be this much faster.
static constexpr double leastGain = 1.03;
/// Rows from which on a kernel that runs over pixels fills its vectors.
static constexpr int64_t leastPixels = 16;
/// Inputs from which on interleaving the results of a sparse product with columns in lanes is little beside the product.
static constexpr int64_t leastInputsF32 = 32, leastInputs8 = 64;
/// Spconv is measured with patterns, whose taps are neighbours that share loads. ResNet-50's layers with taps at random took so much longer.
static constexpr double scatteredTaps = 1.2;
/// Layers of VGG-16 took 1.9 to 2.7 times what winogradShare counts.
static constexpr double winogradOverhead = 1.5;
/// Most rows of a matrix-vector kernel.
static constexpr int64_t mostTokens = 4;

double WeightUse::groupDensity(int64_t rows) const {
  for (size_t i = 0; i < std::size(groupSizes); ++i)
    if (groupSizes[i] == rows)
      return densities[i];
  return 1;
}

std::string_view name(KernelFamily family) {
  constexpr std::string_view names[] = {"dense", "gemv_c4n", "gemv_columns", "spmm", "spconv", "gemm_sparse"};
  return names[static_cast<int>(family)];
}

static std::string text(const char *format, double a, double b = 0) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, a, b);
  return buffer;
}

namespace {
/// Rows of Costs.def. Level 0: a rule.
struct Cost {
  int level;
  KernelFamily family;
  int64_t group;
  unsigned bits;
  int64_t channels; ///< at least
  double fixed, slope;
};
struct DenseRate {
  int level;
  double f32, int8; ///< GMAC/s
  double memory;    ///< GB/s
};
constexpr int AJOUR_LEVEL_any = 0;
constexpr Cost costs[] = {
#define COST(level, family, group, bits, channels, fixed, slope)                                                       \
  {AJOUR_LEVEL_##level, KernelFamily::family, group, bits, channels, fixed, slope},
#define DENSE(level, f32, int8, memory)
#include "Costs.def"
#undef DENSE
};
constexpr DenseRate denseRates[] = {
#define DENSE(level, f32, int8, memory) {AJOUR_LEVEL_##level, f32, int8, memory},
#undef COST
#define COST(level, family, group, bits, channels, fixed, slope)
#include "Costs.def"
#undef COST
#undef DENSE
};
} // namespace

/// Whether a row of one level serves another: the same architecture and not above. Ids of x86-64 lie below those of AArch64.
static bool serves(int row, ajour_cpu_level level) {
  return row == AJOUR_LEVEL_any || (row <= level && (row < AJOUR_LEVEL_neon) == (level < AJOUR_LEVEL_neon));
}

/// Bits of a stored weight as kernels read it: a power of two from 4 to 32.
static unsigned weightBits(const WeightUse &use) {
  if (use.lhs != AJOUR_F32)
    return 8;
  const encoding::Values &values = use.encoding.values;
  if (values.kind == ValuesKind::Float)
    return values.type == AJOUR_F32 ? 32 : 16;
  return values.kind == ValuesKind::Int && values.granularity == encoding::Granularity::Group ? (values.bits <= 4 ? 4 : 8)
                                                                                               : 32;
}

/// The row of the highest level that serves one, and of the most channels there; null: there is none.
static const Cost *findCost(const WeightUse &use, KernelFamily family, int64_t group, ajour_cpu_level level) {
  const Cost *best = nullptr;
  const unsigned bits = weightBits(use);
  for (const Cost &cost : costs)
    if (cost.family == family && cost.group == group && (cost.bits == 0 || cost.bits == bits) &&
        cost.channels <= use.shape.channels() && serves(cost.level, level) &&
        (!best || cost.level > best->level || (cost.level == best->level && cost.channels >= best->channels)))
      best = &cost;
  return best;
}

static const DenseRate &denseRate(ajour_cpu_level level) {
  const DenseRate *best = &denseRates[0];
  for (const DenseRate &rate : denseRates)
    if (serves(rate.level, level))
      best = &rate;
  return *best;
}

/// The share of the direct form's time that Winograd's method may take at best for a dense 3x3 convolution (decision 8): products of all
/// points of a tile, transforms, and weights that come from far away. 1 where it cannot be used. Sparse kernels compete with the better.
static double winogradShare(const WeightUse &use, int64_t rows) {
  if (use.shape.kh != 3 || use.shape.kw != 3 || use.stride != 1 || use.isDilated || use.isDepthwise ||
      use.lhs != AJOUR_F32 || rows < 1)
    return 1;
  const double channels = double(use.shape.channels()), n = double(use.shape.n), side = std::sqrt(double(rows));
  double best = 1;
  for (const double t : {2.0, 4.0}) {
    const double points = (t + 2) * (t + 2), tiles = std::ceil(side / t) * std::ceil(side / t);
    const double direct = double(rows) * 9 * channels * n;
    // Nothing is taken off for tiles that do not fill the kernel's rows: that would only favour the sparse kernel.
    const double weights = points * channels * n * 4 > (2 << 20) ? 2 * points * channels * n * 4 : 0;
    best = std::min(best, winogradOverhead * (points * tiles * (channels * n + 4 * channels + 5 * n) + weights) / direct);
  }
  return best;
}

static const ajour_kernel_row *findDenseGemm(bool isFloat, ajour_cpu_level level) {
  return ajour_find_kernel(isFloat ? AJOUR_KERNEL_gemm_f32 : AJOUR_KERNEL_gemm_8bit, level);
}

const ajour_kernel_row *findSparseGemm(int64_t group, bool isFloat, ajour_cpu_level level) {
  constexpr ajour_kernel_op ops[][2] = {{AJOUR_KERNEL_gemm_sparse1_8bit, AJOUR_KERNEL_gemm_sparse1_f32},
                                        {AJOUR_KERNEL_gemm_sparse2_8bit, AJOUR_KERNEL_gemm_sparse2_f32},
                                        {AJOUR_KERNEL_gemm_sparse4_8bit, AJOUR_KERNEL_gemm_sparse4_f32}};
  if (group != 1 && group != 2 && group != 4)
    return nullptr;
  const ajour_kernel_row *row = ajour_find_kernel(ops[group / 2][isFloat], level);
  // One for narrower vectors or slower products than the dense kernel's has no chance.
  return row && row->level >= findDenseGemm(isFloat, level)->level ? row : nullptr;
}

/// How much more of its last panel a sparse product leaves empty than the dense one does.
static double panelFill(const WeightUse &use, int64_t group, ajour_cpu_level level) {
  const bool isFloat = use.lhs == AJOUR_F32;
  const ajour_kernel_row *sparse = findSparseGemm(group, isFloat, level), *dense = findDenseGemm(isFloat, level);
  auto columns = [&](int64_t nr) { return double((use.shape.n + nr - 1) / nr * nr); };
  return std::max(1.0, columns(sparse->nr / 4 * group) / columns(dense->nr));
}

/// Time of a family's kernel / time of the dense one. Results are written even where no product is left.
static double relativeCost(const WeightUse &use, const Cost &cost, int64_t rows, ajour_cpu_level level) {
  constexpr double least = 0.02;
  double time = cost.fixed + cost.slope * use.groupDensity(cost.group);
  if (cost.family == KernelFamily::GemmSparse)
    time *= panelFill(use, cost.group, level);
  if (cost.family == KernelFamily::Spconv && use.encoding.structure.kind != StructureKind::Pattern)
    time *= scatteredTaps;
  return std::max(time, least) / winogradShare(use, rows);
}

/// Why a family cannot compute a product; empty: it can.
static std::string unsuitable(const WeightUse &use, KernelFamily family, int64_t group, int64_t rows, ajour_cpu_level level) {
  const bool isGemv = family == KernelFamily::GemvC4n || family == KernelFamily::GemvColumns;
  const encoding::Structure &structure = use.encoding.structure;
  if (use.isDepthwise)
    return "grouped convolutions have no sparse kernel";
  if (isGemv && (use.isConv || rows < 0 || rows > mostTokens))
    return "more than 4 rows";
  if (family == KernelFamily::GemvC4n &&
      (structure.kind != StructureKind::C4n || structure.columnBlock != 0 || structure.share < group))
    return "no C4^n pattern that 4 or more rows share";
  if (isGemv)
    return "";
  if (family == KernelFamily::GemmSparse) {
    auto is8 = [](uint32_t type) { return type == AJOUR_I8 || type == AJOUR_U8; };
    if (!(use.lhs == AJOUR_F32 && use.rhs == AJOUR_F32) && !(is8(use.lhs) && is8(use.rhs)))
      return "sparse products are for f32 or 8 bits";
    if (!findSparseGemm(group, use.lhs == AJOUR_F32, level))
      return "this CPU level has a dense kernel only";
    if (rows < leastPixels)
      return rows < 0 ? "the number of rows is not known" : "fewer than 16 rows";
    if (use.shape.k < (use.lhs == AJOUR_F32 ? leastInputsF32 : leastInputs8))
      return "too few inputs for each column";
    if (use.shape.k > 0x10000)
      return "too many inputs for each column";
    return "";
  }
  if (!use.isConv)
    return "more than 4 rows of a matrix product";
  if (use.lhs != AJOUR_F32 || use.rhs != AJOUR_F32)
    return "sparse kernels over pixels are for f32";
  if (rows >= 0 && rows < leastPixels)
    return "fewer than 16 rows";
  if (rows < 0)
    return "the number of rows is not known";
  // Single filters with windows have a kernel of their own.
  if (family == KernelFamily::Spmm && use.shape.window() > 1 && group < 4)
    return "a window";
  if (family == KernelFamily::Spconv && use.shape.window() == 1)
    return "no window";
  return "";
}

KernelChoice selectKernel(const WeightUse &use, int64_t rows, ajour_cpu_level level, bool overPixels) {
  KernelChoice best;
  double closest = 0;
  std::string obstacle;
  if (use.density() > 0.9) {
    best.reason = text("%.0f %% zeros", 100 * (1 - use.density()));
    return best;
  }
  for (const Cost &rule : costs) {
    if (rule.level != AJOUR_LEVEL_any || (isOverPixels(rule.family) && !overPixels))
      continue;
    const Cost &cost = *findCost(use, rule.family, rule.group, level);
    if (std::string reason = unsuitable(use, cost.family, cost.group, rows, level); !reason.empty()) {
      obstacle = reason;
      continue;
    }
    const double gain = 1 / relativeCost(use, cost, rows, level);
    closest = std::max(closest, gain);
    if (gain < leastGain || gain <= best.gain)
      continue;
    best.family = cost.family;
    best.group = cost.group;
    best.gain = gain;
  }
  if (best.family != KernelFamily::Dense)
    best.reason = text("computes %.0f %% of the products", 100 * use.groupDensity(best.group));
  else if (closest > 0)
    best.reason = text("the best sparse kernel would take %.2f of the dense time", 1 / closest);
  else
    best.reason = "no sparse kernel: " + obstacle;
  return best;
}

std::optional<double> estimateCost(const WeightUse &use, KernelFamily family, int64_t group, int64_t rows,
                                   ajour_cpu_level level) {
  const DenseRate &rate = denseRate(level);
  const double elements = double(use.shape.elements()), products = elements * double(std::max<int64_t>(rows, 1));
  // A weight that is used once comes from memory.
  const double dense = std::max(products / (use.lhs == AJOUR_F32 ? rate.f32 : rate.int8) * winogradShare(use, rows),
                                elements * weightBits(use) / 8 / rate.memory);
  if (family == KernelFamily::Dense)
    return dense;
  const Cost *cost = findCost(use, family, group, level);
  if (!cost || !unsuitable(use, family, group, rows, level).empty())
    return std::nullopt;
  return dense * relativeCost(use, *cost, rows, level);
}

} // namespace ajour
