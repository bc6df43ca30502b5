//===- MatmulShape.cpp - nn-matmul-shape: batches of rows are rows --------------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace {

/// lhs [B..., M, K] times rhs [K, N] is one product of B M rows.
struct CollapseBatch : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    RankedTensorType lhs = simplify::tensorType(op.getLhs()), rhs = simplify::tensorType(op.getRhs());
    if (lhs.getRank() <= 2 || op.getTransposeLhs() || !isMatrix(rhs) || rhs.getRank() > lhs.getRank())
      return failure();
    Dims dims = getDims(lhs), rhsDims = getDims(rhs);
    AffineExpr rows = numElements(ArrayRef(dims).drop_back(), getContext());
    Location loc = op.getLoc();
    Value flat = ReshapeOp::create(rewriter, loc, makeTensor({rows, dims.back()}, lhs.getElementType()), op.getLhs());
    Value matrix = op.getRhs();
    if (rhs.getRank() > 2)
      matrix = ReshapeOp::create(rewriter, loc, makeTensor(ArrayRef(rhsDims).take_back(2), rhs.getElementType()), matrix);
    auto product = cast<MatmulOp>(rewriter.clone(*op));
    AffineExpr columns = getDims(op.getResult()).back();
    product.getLhsMutable().assign(flat);
    product.getRhsMutable().assign(matrix);
    product.getResult().setType(makeTensor({rows, columns}, simplify::elementType(op.getResult())));
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), product.getResult());
    return success();
  }

  /// Rank 2, leading dimensions of 1 aside.
  static bool isMatrix(RankedTensorType type) {
    return llvm::all_of(type.getShape().drop_back(2), [](int64_t size) { return size == 1; });
  }
};

struct MatmulShapePass : PassWrapper<MatmulShapePass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MatmulShapePass)

  StringRef getArgument() const override { return "nn-matmul-shape"; }
  StringRef getDescription() const override { return "collapse batch dimensions of products into rows"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<CollapseBatch>(&getContext());
    if (failed(simplify::applyPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createMatmulShapePass() { return std::make_unique<MatmulShapePass>(); }

} // namespace ajour
