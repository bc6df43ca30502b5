//===- Pipeline.cpp - the order of the simplifying passes -----------------------===//
#include "ajour/Conversion/Simplify.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>

using namespace mlir;

namespace ajour {
namespace {

struct Stage {
  std::string name;
  std::function<std::unique_ptr<Pass>()> make;
};

/// Quantised arithmetic is recognised before dequantisations of weights are computed, attention when it is known what stays in
/// floating point; layouts are chosen
/// last, when it is known what remains, and followed by folding of what they turned around.
const std::vector<Stage> &stages() {
  static const std::vector<Stage> all = {
      {"nn-recurrent", [] { return createRecurrentPass(); }},
      {"nn-fold", [] { return createFoldPass(); }},
      {"nn-integer", [] { return createIntegerPass(); }},
      {"nn-weights", [] { return createWeightsPass(); }},
      {"nn-fold-weights", [] { return createFoldPass({/*foldDequantize=*/true}); }},
      {"nn-attention", [] { return createAttentionPass(); }},
      {"nn-fold-affine", [] { return createFoldAffinePass(); }},
      {"nn-layout", [] { return createLayoutPass(); }},
      {"nn-fold-layout", [] { return createFoldPass({/*foldDequantize=*/true}); }},
      {"nn-fold-affine-2", [] { return createFoldAffinePass(); }},
      {"nn-matmul-shape", [] { return createMatmulShapePass(); }},
      {"nn-layout-2", [] { return createLayoutPass(); }},
      {"nn-fold-last", [] { return createFoldPass({/*foldDequantize=*/true, /*foldIntoProducts=*/true}); }},
      {"nn-dead-channels", [] { return createDeadChannelsPass(); }},
  };
  return all;
}

} // namespace

const std::vector<std::string> &simplifyStages() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Stage &stage : stages())
      result.push_back(stage.name);
    return result;
  }();
  return names;
}

void buildSimplifyPipeline(OpPassManager &manager, const SimplifyOptions &options) {
  int count = 0;
  for (const Stage &stage : stages()) {
    if (options.stages >= 0 && count++ >= options.stages)
      return;
    manager.addNestedPass<func::FuncOp>(stage.make());
  }
}

} // namespace ajour
