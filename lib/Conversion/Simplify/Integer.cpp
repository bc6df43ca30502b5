//===- Integer.cpp - nn-integer: quantised tensors stay quantised ---------------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace {

struct IntegerPass : PassWrapper<IntegerPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IntegerPass)

  StringRef getArgument() const override { return "nn-integer"; }
  StringRef getDescription() const override { return "dequantise - compute - quantise becomes integer arithmetic"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    // A model may be a simulation on purpose (ImportOptions::floatProducts).
    bool products = !getOperation()->getParentOfType<ModuleOp>()->hasAttr("nn.float_products");
    RewritePatternSet patterns(&getContext());
    simplify::populateMovementPatterns(patterns);
    simplify::populateElementwisePatterns(patterns);
    simplify::populateQuantizationMotion(patterns);
    if (products)
      simplify::populateIntegerProducts(patterns);
    if (failed(simplify::applyPatterns(getOperation(), std::move(patterns))))
      return signalPassFailure();
    simplify::eraseDeadOps(getOperation());
    if (!products)
      return;
    getOperation().walk([](Operation *op) {
      if (!isa<ConvOp, ConvTransposeOp, MatmulOp>(op))
        return;
      if (std::string reason = simplify::whyNotInteger(op); !reason.empty())
        op->emitRemark() << "stays in floating point: " << reason;
    });
  }
};

} // namespace

std::unique_ptr<Pass> createIntegerPass() { return std::make_unique<IntegerPass>(); }

} // namespace ajour
