//===- Fold.cpp - nn-fold: constants, identities, common subexpressions ---------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/NN/Weights.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace {

/// A folded constant may be this large whatever it was made from, ...
constexpr int64_t smallConstantBytes = 64 * 1024;
/// ... and otherwise this many times larger than its operands.
constexpr int64_t growthLimit = 4;

struct FoldPass : PassWrapper<FoldPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldPass)

  explicit FoldPass(const FoldOptions &options) : options(options) {}
  StringRef getArgument() const override { return "nn-fold"; }
  StringRef getDescription() const override { return "compute constants and remove identities"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    int64_t brought = 0;
    function.walk([&](ConstantOp op) { brought += bytesOf(op.getResult()); });
    FoldBudget budget = FoldBudget::forBytes(brought);
    foldAllConstants(function, budget);
    RewritePatternSet patterns(&getContext());
    simplify::populateMovementPatterns(patterns);
    simplify::populateElementwisePatterns(patterns);
    simplify::populateDilationPatterns(patterns);
    simplify::populateWeightPatterns(patterns);
    simplify::populateRollPatterns(patterns);
    simplify::populateSlicePatterns(patterns);
    if (options.foldIntoProducts) {
      // Before what reads the slices looks through them.
      RewritePatternSet split(&getContext());
      simplify::populateMovementPatterns(split);
      simplify::populateSplitPatterns(split);
      if (failed(simplify::applyPatterns(function, std::move(split))))
        return signalPassFailure();
      simplify::populateProductPatterns(patterns);
      simplify::populateChannelPatterns(patterns);
    }
    if (failed(simplify::applyPatterns(function, std::move(patterns))))
      return signalPassFailure();
    // Combined operations may stand on constants alone.
    foldAllConstants(function, budget);
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
    simplify::eraseDeadOps(function);
  }

  void foldAllConstants(func::FuncOp function, FoldBudget &budget) {
    for (Block &block : function.getBody())
      for (Operation &op : llvm::make_early_inc_range(block))
        if (mayFold(&op))
          foldConstants(&op, nullptr, /*maxBytes=*/int64_t(1) << 32, &budget);
  }

  bool mayFold(Operation *op) const {
    if (!isa<NNDialect>(op->getDialect()) || isa<ConstantOp>(op) || op->use_empty())
      return false;
    if (isStoredForm(op) && (!options.foldDequantize || simplify::isStoredWeight(op->getResult(0))))
      return false;
    int64_t in = 0, out = 0;
    for (Value operand : op->getOperands()) {
      if (!getConstantValue(operand))
        return false;
      in += bytesOf(operand);
    }
    for (Value result : op->getResults()) {
      if (!simplify::tensorType(result).hasStaticShape())
        return false;
      out += bytesOf(result);
    }
    return out <= smallConstantBytes || out <= growthLimit * in;
  }

  static int64_t bytesOf(Value value) {
    RankedTensorType type = simplify::tensorType(value);
    return type.getNumElements() * elementBytes(type.getElementType());
  }

  FoldOptions options;
};

} // namespace

std::unique_ptr<Pass> createFoldPass(const FoldOptions &options) { return std::make_unique<FoldPass>(options); }

} // namespace ajour
