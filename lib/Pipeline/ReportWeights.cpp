//===- ReportWeights.cpp - the report's section on weights -----------------------------------===//
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Pipeline/Report.h"
#include "ajour/Support/NodeLocation.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace ajour {

/// Columns of the table `layers` that are filled in later.
static const char *const layerColumns[] = {"node",   "shape", "rows",   "zeros_percent", "structure", "values",
                                           "kernel", "gain",  "bytes",  "encoded_bytes",  "why"};
static constexpr size_t kernelColumn = 6, gainColumn = 7;

static std::string shapeText(const encoding::WeightShape &shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << shape.n << "x" << shape.k;
  if (shape.window() > 1)
    os << " (" << shape.channels() << " in " << shape.kh << "x" << shape.kw << ")";
  return text;
}

/// To one decimal.
static double percent(double share) { return std::round(share * 1000) / 10; }

/// Why the layer has the kernel that it has.
static std::string reasonOf(const EncodedWeight &weight, const KernelChoice &choice) {
  bool isIgnored = weight.found.zeros() > 0 && weight.use.density() == 1;
  std::string text = isIgnored ? "zeros are computed with, as asked" : choice.reason;
  if (weight.found.zeroRows > 0)
    text += "; " + std::to_string(weight.found.zeroRows) + " outputs have no weights";
  if (weight.found.zeroColumns > 0)
    text += "; " + std::to_string(weight.found.zeroColumns) + " inputs are not read";
  if (weight.isDeclared)
    text += "; as the model declares";
  return text;
}

/// Of the structures that are not the one, the closest of each kind.
static std::vector<const encoding::Candidate *> closestOthers(const encoding::Detected &found) {
  std::vector<const encoding::Candidate *> closest;
  for (const encoding::Candidate &candidate : ArrayRef(found.candidates).drop_front()) {
    auto same = llvm::find_if(closest, [&](const encoding::Candidate *other) {
      return other->structure.kind == candidate.structure.kind;
    });
    if (same == closest.end())
      closest.push_back(&candidate);
    else if (candidate.executed < (*same)->executed)
      *same = &candidate;
  }
  return closest;
}

void reportWeights(ArrayRef<EncodedWeight> weights, ajour_cpu_level level, CompileReport &report) {
  ReportTable layers{"layers", {std::begin(layerColumns), std::end(layerColumns)}, {}};
  ReportTable others{"other_structures", {"node", "structure", "products_percent", "why_not"}, {}};
  int64_t elements = 0, nonzero = 0, given = 0, stored = 0;
  double expected = 0, dense = 0;
  llvm::SmallDenseSet<Operation *> channelMajor = chooseChannelMajor(weights, level);
  for (const EncodedWeight &weight : weights) {
    const encoding::Detected &found = weight.found;
    std::string node = reportNodes(weight.op->getLoc());
    KernelChoice choice = selectKernel(weight.use, weight.rows, level, channelMajor.contains(weight.op));
    if (channelMajor.contains(weight.op) && choice.family == KernelFamily::Dense)
      choice.reason += "; over pixels, since the layers around it are";
    elements += found.shape.elements();
    nonzero += found.nonzero;
    given += weight.givenBytes;
    stored += std::min(weight.givenBytes, found.stored.totalBytes);
    double cost = estimateCost(weight.use, KernelFamily::Dense, 1, std::max<int64_t>(weight.rows, 1), level).value_or(0);
    dense += cost;
    expected += cost / choice.gain;
    layers.rows.push_back({node, shapeText(found.shape), weight.rows, percent(found.zeros()),
                           encoding::describe(found.encoding.structure, found.shape),
                           encoding::describe(found.encoding.values), std::string(name(choice.family)),
                           std::round(choice.gain * 100) / 100, weight.givenBytes,
                           std::min(weight.givenBytes, found.stored.totalBytes), reasonOf(weight, choice)});
    for (const encoding::Candidate *other : closestOthers(found))
      others.rows.push_back(
          {node, encoding::describe(other->structure, found.shape), percent(other->executed), other->reason});
  }
  ReportSection &section = report.section("weights");
  section.values.push_back({"layers", int64_t(weights.size())});
  section.values.push_back({"zeros_percent", percent(elements ? 1 - double(nonzero) / double(elements) : 0)});
  section.values.push_back({"bytes", given});
  section.values.push_back({"encoded_bytes", stored});
  section.values.push_back({"expected_gain", expected > 0 ? std::round(dense / expected * 100) / 100 : 1.0});
  section.tables.push_back(std::move(layers));
  section.tables.push_back(std::move(others));
}

void reportWeightKernels(ModuleOp module, function_ref<const LoweredDispatch *(StringRef callee)> lowered,
                         CompileReport &report) {
  ReportSection &section = report.section("weights");
  if (section.tables.empty())
    return;
  // Dispatches have the locations of all that runs in them; a product is told by its own.
  std::map<std::string, std::string> kernels;
  for (auto dispatch : module.lookupSymbol<func::FuncOp>("main").getOps<exec::DispatchOp>()) {
    const LoweredDispatch *code = lowered(dispatch.getCallee());
    auto callee = module.lookupSymbol<func::FuncOp>(dispatch.getCallee());
    bool hasProduct = !callee.getOps<nn::MatmulOp>().empty() || !callee.getOps<nn::ConvOp>().empty() ||
                      !callee.getOps<nn::ConvTransposeOp>().empty();
    if (!code || !hasProduct)
      continue;
    for (const NodeInfo &node : getNodes(dispatch.getLoc()))
      kernels[node.name] = code->kernel.empty() ? "scalar code" : StringRef(code->kernel).drop_front(strlen("ajour_")).str();
  }
  for (std::vector<ReportValue> &row : section.tables[0].rows) {
    StringRef node = std::get<std::string>(row[0]);
    auto found = kernels.find(node.split(',').first.str());
    if (found == kernels.end())
      continue;
    StringRef expected = std::get<std::string>(row[kernelColumn]);
    // "gemv_c4n" is served by kernels that begin with "gemv".
    if (expected != StringRef(name(KernelFamily::Dense)) && !StringRef(found->second).starts_with(expected.split('_').first)) {
      row[gainColumn] = 1.0;
      std::get<std::string>(row.back()) += "; there is no code for " + expected.str() + " here yet";
    }
    row[kernelColumn] = found->second;
  }
}

} // namespace ajour
