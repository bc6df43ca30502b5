//===- Recurrent.cpp - nn-recurrent: steps without a loop ------------------------===//
//
// Streaming models run their cells for one time step in each call. Written as products and element-wise operations,
// a step uses the kernels, threads and weight encodings of matrix products and fuses with its neighbours. So do
// several steps where the weights are so large that the products are all that counts.
//
//===----------------------------------------------------------------------===//
#include "Utils.h"
#include "ajour/Conversion/Simplify.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace {

/// Builds the operations of one step in place of a cell. Tensors are [B, ...]; a null value stands for zeros.
class Step {
public:
  template <typename Op>
  Step(PatternRewriter &b, Op op)
      : b(b), loc(op.getLoc()), element(simplify::elementType(op.getInput())), batch(getDims(op.getInput())[1]),
        kinds(op.getActivations()), alphas(op.getAlphas()), betas(op.getBetas()),
        clip(op.getClip().convertToDouble()) {}

  PatternRewriter &b;
  Location loc;
  Type element;
  AffineExpr batch;
  Value input; ///< of the step

  /// Step `t` of a sequence.
  void take(Value sequence, int64_t t) {
    RankedTensorType whole = tensorOf(sequence);
    int64_t width = whole.getDimSize(2);
    if (whole.getDimSize(0) != 1)
      sequence = SliceOp::create(b, loc, makeTensor({one(), batch, getAffineConstantExpr(width, b.getContext())}, element),
                                 sequence, ArrayRef<int64_t>{t, 0, 0}, ArrayRef<int64_t>{1, 1, 1});
    input = ReshapeOp::create(b, loc, type(width), sequence);
  }
  AffineExpr one() { return getAffineConstantExpr(1, b.getContext()); }

  static RankedTensorType tensorOf(Value value) { return simplify::tensorType(value); }
  RankedTensorType type(int64_t width) {
    return makeTensor({batch, getAffineConstantExpr(width, b.getContext())}, element);
  }
  /// Columns [from, from + width).
  Value columns(Value x, int64_t from, int64_t width) {
    return SliceOp::create(b, loc, type(width), x, ArrayRef<int64_t>{0, from}, ArrayRef<int64_t>{1, 1});
  }
  /// Rows [from, from + count) of a matrix, as a matrix; row `from` of one as a vector.
  Value rows(Value x, int64_t from, int64_t count) {
    return SliceOp::create(b, loc, makeTensor({count, tensorOf(x).getDimSize(1)}, element), x,
                           ArrayRef<int64_t>{from, 0}, ArrayRef<int64_t>{1, 1});
  }
  Value row(Value x, int64_t i) {
    return ReshapeOp::create(b, loc, makeTensor({tensorOf(x).getDimSize(1)}, element), rows(x, i, 1));
  }
  /// h times the transposed weights.
  Value product(Value h, Value weights, Value bias = {}) {
    if (!h)
      return {};
    SmallVector<Value> operands{h, weights};
    if (bias)
      operands.push_back(bias);
    MatmulOp::Properties p;
    MatmulOp::populateDefaultProperties(OperationName(MatmulOp::getOperationName(), b.getContext()), p);
    p.setTransposeRhs(b.getUnitAttr());
    return MatmulOp::create(b, loc, TypeRange(Type(type(tensorOf(weights).getDimSize(0)))), operands, p).getResult();
  }
  Value binary(BinaryKind kind, Value x, Value y) {
    return BinaryOp::create(b, loc, kind, x, y);
  }
  Value add(Value x, Value y) { return !x ? y : !y ? x : binary(BinaryKind::add, x, y); }
  Value mul(Value x, Value y) { return x && y ? binary(BinaryKind::mul, x, y) : Value(); }
  /// 1 - x.
  Value complement(Value x) {
    Value one = constant(1);
    return binary(BinaryKind::sub, one, x);
  }
  Value constant(double value) {
    RankedTensorType scalar = makeTensor(ArrayRef<int64_t>{}, element);
    return ConstantOp::create(b, loc, scalar, DenseElementsAttr::get(scalar, b.getFloatAttr(element, value)));
  }
  Value limit(Value x, double bound) {
    return !x || bound == 0 ? x : clamp(x, -bound, bound);
  }
  /// Function `i` of the cell.
  Value activate(unsigned i, Value x, bool limited = true);
  /// (x - mean) / sqrt(variance + 1e-8) * scale over the last dimension.
  Value normalise(Value x, Value scale) {
    LayerNormOp::Properties p;
    p.setAxis(b.getI64IntegerAttr(1));
    p.setEpsilon(b.getF32FloatAttr(1e-8f));
    p.operandSegmentSizes = {1, 1, 0};
    return LayerNormOp::create(b, loc, TypeRange(x.getType()), ValueRange{x, scale}, p).getResult();
  }
  /// A state as a sequence of one step.
  Value sequence(Value state) {
    AffineExpr width = getAffineConstantExpr(tensorOf(state).getDimSize(1), b.getContext());
    return ReshapeOp::create(b, loc, makeTensor({one(), batch, width}, element), state);
  }

private:
  Value clamp(Value x, double low, double high) {
    return ClampOp::create(b, loc, x, b.getF64FloatAttr(low), b.getF64FloatAttr(high));
  }
  Value unary(UnaryKind kind, Value x, float alpha = 0, float beta = 0) {
    UnaryOp::Properties p;
    p.setKind(UnaryKindAttr::get(b.getContext(), kind));
    p.setAlpha(b.getF32FloatAttr(alpha));
    p.setBeta(b.getF32FloatAttr(beta));
    return UnaryOp::create(b, loc, TypeRange(x.getType()), ValueRange(x), p).getResult();
  }

  ArrayAttr kinds;
  ArrayRef<float> alphas, betas;
  double clip;
};

Value Step::activate(unsigned i, Value x, bool limited) {
  float alpha = alphas.empty() ? 0 : alphas[i], beta = betas.empty() ? 0 : betas[i];
  if (limited)
    x = limit(x, clip);
  switch (cast<CellActivationAttr>(kinds[i]).getValue()) {
  case CellActivation::sigmoid:
    return unary(UnaryKind::sigmoid, x);
  case CellActivation::tanh:
    return unary(UnaryKind::tanh, x);
  case CellActivation::relu:
    return unary(UnaryKind::relu, x);
  case CellActivation::affine:
    return alpha == 1 && beta == 0 ? x : add(mul(x, constant(alpha)), constant(beta));
  case CellActivation::leaky_relu:
    return unary(UnaryKind::leaky_relu, x, alpha);
  case CellActivation::thresholded_relu:
    return unary(UnaryKind::thresholded_relu, x, alpha);
  case CellActivation::scaled_tanh:
    return mul(unary(UnaryKind::tanh, mul(x, constant(beta))), constant(alpha));
  case CellActivation::hard_sigmoid:
    return unary(UnaryKind::hard_sigmoid, x, alpha, beta);
  case CellActivation::elu:
    return unary(UnaryKind::elu, x, alpha);
  case CellActivation::softsign:
    return unary(UnaryKind::softsign, x);
  case CellActivation::softplus:
    return unary(UnaryKind::softplus, x);
  case CellActivation::relu6:
    return clamp(x, 0, 6);
  }
  llvm_unreachable("an unknown activation");
}

/// At most so many steps are written out, and more than one only for at least so many recurrent weights.
constexpr int64_t maxSteps = 64, manyWeights = 1 << 20;

/// Replaces a cell by its steps. `step` makes the states after a step from those before it; the first state is the output.
template <typename Op>
LogicalResult writeSteps(Op op, PatternRewriter &rewriter, SmallVector<Value> states,
                         function_ref<void(Step &, MutableArrayRef<Value>)> step) {
  std::optional<int64_t> count = getConstant(getDims(op.getInput())[0]);
  int64_t weights = simplify::tensorType(op.getRecurrent()).getNumElements();
  if (op.getLengths() || !count || *count < 1 || *count > maxSteps || (*count > 1 && weights < manyWeights))
    return failure();
  Step s(rewriter, op);
  SmallVector<Value> outputs(*count);
  for (int64_t i = 0; i < *count; ++i) {
    int64_t t = op.getReverse() ? *count - 1 - i : i;
    s.take(op.getInput(), t);
    step(s, states);
    outputs[t] = s.sequence(states[0]);
  }
  Value output = outputs[0];
  if (*count > 1)
    output = ConcatOp::create(rewriter, op.getLoc(), op.getOutput().getType(), outputs, rewriter.getI64IntegerAttr(0));
  states.insert(states.begin(), output);
  rewriter.replaceOp(op, states);
  return success();
}

struct RnnStep : OpRewritePattern<RnnOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RnnOp op, PatternRewriter &rewriter) const override {
    return writeSteps(op, rewriter, {op.getInitial()}, [&](Step &s, MutableArrayRef<Value> states) {
      states[0] = s.activate(0, s.add(s.input, s.product(states[0], op.getRecurrent())));
    });
  }
};

struct GruStep : OpRewritePattern<GruOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GruOp op, PatternRewriter &rewriter) const override {
    return writeSteps(op, rewriter, {op.getInitial()}, [&](Step &s, MutableArrayRef<Value> states) {
      states[0] = next(op, s, states[0]);
    });
  }

  static Value next(GruOp op, Step &s, Value h) {
    Value bias = op.getCandidateBias();
    int64_t hidden = Step::tensorOf(op.getRecurrent()).getDimSize(1);
    Value x = s.columns(s.input, 0, 2 * hidden), candidate = s.columns(s.input, 2 * hidden, hidden);
    Value gates, inner;
    if (op.getLinearBeforeReset()) {
      Value all = s.product(h, op.getRecurrent());
      gates = s.add(x, all ? s.columns(all, 0, 2 * hidden) : Value());
      inner = all ? s.columns(all, 2 * hidden, hidden) : Value();
      if (!inner && bias)
        inner = BroadcastOp::create(s.b, s.loc, s.type(hidden), bias);
      else if (bias)
        inner = s.add(inner, bias);
    } else {
      gates = s.add(x, s.product(h, s.rows(op.getRecurrent(), 0, 2 * hidden)));
    }
    gates = s.activate(0, gates);
    Value z = s.columns(gates, 0, hidden), r = s.columns(gates, hidden, hidden);
    if (op.getLinearBeforeReset())
      candidate = s.add(candidate, s.mul(r, inner));
    else
      candidate = s.add(s.add(candidate, s.product(s.mul(r, h), s.rows(op.getRecurrent(), 2 * hidden, hidden))), bias);
    Value n = s.activate(1, candidate);
    return s.add(s.mul(s.complement(z), n), s.mul(z, h));
  }
};

struct LstmStep : OpRewritePattern<LstmOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LstmOp op, PatternRewriter &rewriter) const override {
    return writeSteps(op, rewriter, {op.getInitial(), op.getInitialCell()},
                      [&](Step &s, MutableArrayRef<Value> states) { advance(op, s, states[0], states[1]); });
  }

  static void advance(LstmOp op, Step &s, Value &h, Value &c) {
    int64_t hidden = Step::tensorOf(op.getRecurrent()).getDimSize(0) / 4;
    Value sums = s.add(s.input, s.product(h, op.getRecurrent()));
    auto gate = [&](int64_t i, Value cell) {
      Value x = s.columns(sums, i * hidden, hidden);
      if (op.getPeephole() && i < 3 && cell)
        x = s.add(x, s.mul(cell, s.row(op.getPeephole(), i)));
      if (op.getNorm())
        x = s.normalise(x, s.row(op.getNorm(), i));
      return op.getNormBias() ? s.add(x, s.row(op.getNormBias(), i)) : x;
    };
    Value i = s.activate(0, gate(0, c));
    Value f = op.getInputForget() ? s.complement(i) : s.activate(0, gate(2, c));
    Value g = s.activate(1, gate(3, c));
    c = s.limit(s.add(s.mul(i, g), s.mul(f, c)), op.getCellClip().convertToDouble());
    Value o = s.activate(0, gate(1, c));
    h = s.mul(o, s.activate(2, c, /*limited=*/false));
    if (op.getProjection())
      h = s.limit(s.product(h, op.getProjection(), op.getProjectionBias()), op.getProjectionClip().convertToDouble());
    else if (op.getProjectionBias())
      h = s.add(h, op.getProjectionBias());
  }
};

struct RecurrentPass : PassWrapper<RecurrentPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecurrentPass)

  StringRef getArgument() const override { return "nn-recurrent"; }
  StringRef getDescription() const override { return "write steps of recurrences as products"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RnnStep, GruStep, LstmStep>(&getContext());
    if (failed(simplify::applyPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createRecurrentPass() { return std::make_unique<RecurrentPass>(); }

} // namespace ajour
