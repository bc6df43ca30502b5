//===- Attention.cpp - nn-attention: products around a softmax are attention ------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace {

/// softmax(q k^T * scale + mask) v, as models write it.
struct Written {
  MatmulOp scores, mixed;
  SoftmaxOp softmax;
  float scale = 1;
  Value mask; ///< f32, or null
};

/// Whether products, scaled or not, make a value.
bool leadsToScores(Value x) {
  while (auto binary = x.getDefiningOp<BinaryOp>())
    x = binary.getLhs();
  return bool(x.getDefiningOp<MatmulOp>());
}

std::optional<Written> match(MatmulOp mixed) {
  Written found;
  found.mixed = mixed;
  found.softmax = mixed.getLhs().getDefiningOp<SoftmaxOp>();
  if (!found.softmax || found.softmax.getLog() || !found.softmax->hasOneUse() || mixed.getBias() || mixed.getTransposeLhs() ||
      !simplify::elementType(mixed.getResult()).isF32() || int64_t(found.softmax.getAxis()) + 1 != simplify::tensorType(found.softmax.getInput()).getRank())
    return std::nullopt;
  Value x = found.softmax.getInput();
  while (!(found.scores = x.getDefiningOp<MatmulOp>())) {
    auto binary = x.getDefiningOp<BinaryOp>();
    if (!binary || !x.hasOneUse())
      return std::nullopt;
    bool isSum = binary.getKind() == BinaryKind::add, isQuotient = binary.getKind() == BinaryKind::div;
    if (!isSum && !isQuotient && binary.getKind() != BinaryKind::mul)
      return std::nullopt;
    // The scores lead through the operand that has all their dimensions.
    bool swaps = !isQuotient && !leadsToScores(binary.getLhs());
    Value inner = swaps ? binary.getRhs() : binary.getLhs(), other = swaps ? binary.getLhs() : binary.getRhs();
    if (getDims(inner) != getDims(x))
      return std::nullopt;
    if (isSum) {
      // What is added to scores comes after their scale, and once only.
      if (found.mask || found.scale != 1)
        return std::nullopt;
      found.mask = other;
    } else {
      std::optional<float> factor = simplify::floatSplat(other);
      if (!factor || *factor == 0)
        return std::nullopt;
      found.scale *= isQuotient ? 1 / *factor : *factor;
    }
    x = inner;
  }
  if (!x.hasOneUse() || found.scores.getBias() || found.scores.getTransposeLhs())
    return std::nullopt;
  return found;
}

/// Heads are the last batch dimension if their number is known, else there is one head and all of those are leading.
class Rewriter {
public:
  Rewriter(PatternRewriter &b, Written &written) : b(b), w(written), loc(b.getFusedLoc({written.scores.getLoc(), written.softmax.getLoc(), written.mixed.getLoc()})) {}

  bool run() {
    Dims q = getDims(w.scores.getLhs()), k = getDims(w.scores.getRhs()), v = getDims(w.mixed.getRhs());
    size_t rank = q.size();
    auto batch = [](const Dims &dims) { return ArrayRef(dims).drop_back(2); };
    // Weights are no keys; operands that are broadcast are left as they are.
    if (k.size() != rank || v.size() != rank || batch(q) != batch(k) || batch(q) != batch(v) || getConstantValue(w.scores.getRhs()) ||
        getConstantValue(w.mixed.getRhs()))
      return false;
    hasHeads = rank > 2 && getConstant(q[rank - 3]).value_or(0) > 0;
    if (w.mask && !hasHeads)
      return false;
    Value query = rowsFirst(w.scores.getLhs(), false), key = rowsFirst(w.scores.getRhs(), !w.scores.getTransposeRhs());
    Value value = rowsFirst(w.mixed.getRhs(), w.mixed.getTransposeRhs());
    Value attended = AttentionOp::create(b, loc, query, key, value, Value(), w.mask, Value(), Value(), Value(), Value(), APFloat(w.scale), APFloat(0.0f), 0);
    auto result = simplify::tensorType(w.mixed.getResult());
    if (hasHeads)
      b.replaceOpWithNewOp<TransposeOp>(w.mixed, attended, swapped(rank, rank - 3, rank - 2));
    else
      b.replaceOpWithNewOp<ReshapeOp>(w.mixed, result, attended);
    return true;
  }

private:
  static simplify::Perm swapped(int64_t rank, int64_t i, int64_t j) {
    simplify::Perm perm = simplify::identityPerm(rank);
    std::swap(perm[i], perm[j]);
    return perm;
  }

  /// [..., H, rows, D], or [..., H, D, rows], as [..., rows, H, D].
  Value rowsFirst(Value x, bool transposed) {
    int64_t rank = simplify::tensorType(x).getRank();
    if (!hasHeads) {
      if (transposed)
        x = TransposeOp::create(b, loc, x, swapped(rank, rank - 2, rank - 1));
      Dims dims = getDims(x);
      dims.insert(dims.end() - 1, getAffineConstantExpr(1, b.getContext()));
      return ReshapeOp::create(b, loc, makeTensor(dims, simplify::elementType(x)), x);
    }
    simplify::Perm perm = simplify::identityPerm(rank);
    perm[rank - 3] = transposed ? rank - 1 : rank - 2, perm[rank - 2] = rank - 3, perm[rank - 1] = transposed ? rank - 2 : rank - 1;
    return TransposeOp::create(b, loc, x, perm);
  }

  PatternRewriter &b;
  Written &w;
  Location loc;
  bool hasHeads = false;
};

struct Recognise : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    std::optional<Written> written = match(op);
    return success(written && Rewriter(rewriter, *written).run());
  }
};

struct AttentionPass : PassWrapper<AttentionPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AttentionPass)

  StringRef getArgument() const override { return "nn-attention"; }
  StringRef getDescription() const override { return "recognise attention that is written as products"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Recognise>(&getContext());
    if (failed(simplify::applyPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
    simplify::eraseDeadOps(getOperation());
  }
};

} // namespace

std::unique_ptr<Pass> createAttentionPass() { return std::make_unique<AttentionPass>(); }

} // namespace ajour
