//===- ProductCost.cpp - expected time of products with compressed weights --------===//
#include "ModelInputs.h"
#include "ajour/Conversion/Selection.h"
#include "ajour/Target/CpuTarget.h"
#include "ajour/ajour.h"

#include <algorithm>
#include <cmath>

namespace ajour::tools {

namespace {

/// The share of dense products that groups of 1, 2, 4, 8, 16 neighbouring outputs compute: where they do not share what is zero, a product is
/// left out only if all happen to.
std::array<double, 5> densitiesOf(const compress::ProductUse &use) {
  const compress::LayerPlan &plan = use.plan;
  double kept = 1, alike = 1, taps = 1;
  for (int64_t size : use.window)
    taps *= double(size);
  switch (plan.structure) {
  case compress::Structure::Dense:
    break;
  case compress::Structure::C4n:
    kept = double(4 - plan.pruned) / 4;
    alike = double(plan.share);
    break;
  case compress::Structure::NM:
    kept = double(plan.kept) / double(plan.of);
    break;
  case compress::Structure::Pattern:
    kept = double(plan.entries) / taps * (1 - plan.connectivity);
    break;
  case compress::Structure::Block:
    kept = 1 - plan.ratio;
    alike = double(plan.rows);
    break;
  case compress::Structure::Unstructured:
    kept = 1 - plan.ratio;
    break;
  }
  std::array<double, 5> densities;
  for (size_t i = 0; i < densities.size(); ++i)
    densities[i] = 1 - std::pow(1 - kept, std::max(1., double(1 << i) / alike));
  return densities;
}

} // namespace

std::function<double(const compress::ProductUse &)> productCost(const std::string &cpu) {
  std::string level = cpu.empty() ? ajour_cpu_level_name() : cpu, known;
  const CpuLevelInfo *info = nullptr;
  for (const CpuLevelInfo &candidate : cpuLevels()) {
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    if (level == candidate.name)
      info = &candidate;
  }
  if (!info)
    throw ToolError("'cpu' is '" + level + "', expected one of " + known);
  return [id = info->level](const compress::ProductUse &use) {
    WeightUse weight;
    int64_t taps = 1;
    for (int64_t size : use.window)
      taps *= size;
    weight.shape.n = use.outputs;
    weight.shape.k = taps * use.channels;
    if (use.window.size() == 2) {
      weight.shape.kh = use.window[0];
      weight.shape.kw = use.window[1];
    }
    weight.densities = densitiesOf(use);
    weight.isConv = !use.window.empty();
    weight.isDepthwise = use.groups > 1;
    weight.stride = use.stride;
    weight.isDilated = use.isDilated;
    if (use.isInteger) {
      weight.lhs = AJOUR_U8;
      weight.rhs = AJOUR_I8;
    }
    if (use.plan.bits) {
      weight.encoding.values.kind = encoding::ValuesKind::Int;
      weight.encoding.values.bits = use.plan.bits;
      weight.encoding.values.granularity = use.plan.group ? encoding::Granularity::Group : encoding::Granularity::Channel;
      weight.encoding.values.group = use.plan.group;
    }
    if (use.plan.structure == compress::Structure::C4n) {
      weight.encoding.structure.kind = encoding::StructureKind::C4n;
      weight.encoding.structure.pruned = {use.plan.pruned};
      weight.encoding.structure.share = use.plan.share;
    }
    int64_t rows = std::max<int64_t>(use.rows, 1);
    KernelChoice choice = selectKernel(weight, rows, id);
    std::optional<double> cost = estimateCost(weight, choice.family, choice.group, rows, id);
    return cost.value_or(-1);
  };
}

} // namespace ajour::tools
