//===- Selection.cpp - which kernel serves a weight -----------------------------===//
#include "ajour/Conversion/Selection.h"

#include <algorithm>
#include <cstdio>

namespace ajour {

using encoding::StructureKind;
using encoding::ValuesKind;

static constexpr int64_t groupSizes[] = {1, 2, 4, 8, 16};
/// A sparse kernel must be expected to be this much faster.
static constexpr double leastGain = 1.03;
/// Rows from which on a kernel that runs over pixels fills its vectors.
static constexpr int64_t leastPixels = 16;
/// Most rows of a matrix-vector kernel.
static constexpr int64_t mostTokens = 4;

double WeightUse::groupDensity(int64_t rows) const {
  for (size_t i = 0; i < std::size(groupSizes); ++i)
    if (groupSizes[i] == rows)
      return densities[i];
  return 1;
}

std::string_view name(KernelFamily family) {
  constexpr std::string_view names[] = {"dense", "gemv_c4n", "gemv_columns", "spmm", "spconv"};
  return names[static_cast<int>(family)];
}

static std::string text(const char *format, double a, double b = 0) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, a, b);
  return buffer;
}

namespace {
/// The time of a family is (fixed + slope * executed density) of the dense kernel's. Rules, where nothing has been measured: conservative.
struct Rule {
  KernelFamily family;
  int64_t group;
  double fixed, slope;
};
constexpr Rule rules[] = {
    {KernelFamily::GemvC4n, 4, 0.10, 1.15},    {KernelFamily::GemvC4n, 8, 0.06, 1.10},     {KernelFamily::GemvC4n, 16, 0.04, 1.05},
    {KernelFamily::GemvColumns, 4, 0.20, 1.2}, {KernelFamily::GemvColumns, 8, 0.15, 1.15}, {KernelFamily::GemvColumns, 16, 0.1, 1.1},
    {KernelFamily::Spmm, 1, 0.1, 2.6},         {KernelFamily::Spmm, 2, 0.1, 1.8},          {KernelFamily::Spmm, 4, 0.1, 1.4},
    {KernelFamily::Spmm, 8, 0.1, 1.25},        {KernelFamily::Spconv, 1, 0.1, 1.6},
};
} // namespace

/// Why a family cannot compute a product; empty: it can.
static std::string unsuitable(const WeightUse &use, KernelFamily family, int64_t group, int64_t rows) {
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

KernelChoice selectKernel(const WeightUse &use, int64_t rows, ajour_cpu_level level) {
  KernelChoice best;
  double closest = 0;
  std::string obstacle;
  if (use.density() > 0.9) {
    best.reason = text("%.0f %% zeros", 100 * (1 - use.density()));
    return best;
  }
  for (const Rule &rule : rules) {
    if (std::string reason = unsuitable(use, rule.family, rule.group, rows); !reason.empty()) {
      obstacle = reason;
      continue;
    }
    const double gain = 1 / (rule.fixed + rule.slope * use.groupDensity(rule.group));
    closest = std::max(closest, gain);
    if (gain < leastGain || gain <= best.gain)
      continue;
    best.family = rule.family;
    best.group = rule.group;
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
  // A dense kernel at 50 GMAC/s in f32 and four times that in 8 bits; the cost table replaces it where it has rows.
  const double dense =
      double(use.shape.elements()) * double(std::max<int64_t>(rows, 1)) / (use.lhs == AJOUR_F32 ? 50.0 : 200.0);
  if (family == KernelFamily::Dense)
    return dense;
  for (const Rule &rule : rules)
    if (rule.family == family && rule.group == group && unsuitable(use, family, group, rows).empty())
      return dense * (rule.fixed + rule.slope * use.groupDensity(group));
  return std::nullopt;
}

} // namespace ajour
