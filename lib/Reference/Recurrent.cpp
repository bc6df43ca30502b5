//===- Recurrent.cpp - recurrences over time ------------------------------------===//
#include "Linear.h"

#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

namespace {

using Vector = Eigen::VectorXd;

/// The functions of a cell and the limit of their operands.
class Activations {
public:
  template <typename Op>
  explicit Activations(Op op) : alphas(op.getAlphas()), betas(op.getBetas()), clip(op.getClip().convertToDouble()) {
    for (Attribute kind : op.getActivations())
      kinds.push_back(cast<CellActivationAttr>(kind).getValue());
  }

  /// Function `i` of each element; its operand is clipped if `limited`.
  Vector operator()(size_t i, const Vector &x, bool limited = true) const {
    return x.unaryExpr([&](double v) { return apply(i, limited ? limit(v, clip) : v); });
  }
  static double limit(double x, double bound) { return bound == 0 ? x : std::clamp(x, -bound, bound); }

private:
  double apply(size_t i, double x) const {
    double alpha = alphas.empty() ? 0 : alphas[i], beta = betas.empty() ? 0 : betas[i];
    switch (kinds[i]) {
    case CellActivation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case CellActivation::tanh:
      return std::tanh(x);
    case CellActivation::relu:
      return x < 0 ? 0 : x;
    case CellActivation::affine:
      return alpha * x + beta;
    case CellActivation::leaky_relu:
      return x < 0 ? alpha * x : x;
    case CellActivation::thresholded_relu:
      return x > alpha || std::isnan(x) ? x : 0;
    case CellActivation::scaled_tanh:
      return alpha * std::tanh(beta * x);
    case CellActivation::hard_sigmoid:
      return std::clamp(alpha * x + beta, 0.0, 1.0);
    case CellActivation::elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case CellActivation::softsign:
      return x / (1 + std::fabs(x));
    case CellActivation::softplus:
      return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    case CellActivation::relu6:
      return std::clamp(x, 0.0, 6.0);
    }
    llvm_unreachable("an unknown activation");
  }

  SmallVector<CellActivation> kinds;
  ArrayRef<float> alphas, betas;
  double clip;
};

/// The operands of a cell, by name, and the way through time. Results are in the order output, final, other states.
class Cell {
public:
  template <typename Op>
  Cell(Op op, Evaluation &e)
      : e(e), op(op), f(op), input(loadWidened<double>(e.operand(0), 0)), recurrent(matrix(op.getRecurrent())),
        steps(e.operand(0).shape[0]), batch(e.operand(0).shape[1]), width(e.operand(0).shape[2]),
        reverse(op.getReverse()) {}

  /// Calls `step(x, states)` for each row and each of its steps; the first state is the output.
  void run(ArrayRef<Value> initial, ArrayRef<int64_t> sizes, Value lengths,
           function_ref<void(const Vector &, MutableArrayRef<Vector>)> step) {
    HostTensor &output = e.result(0);
    for (int64_t row = 0; row < batch; ++row) {
      SmallVector<Vector> states;
      for (auto [value, size] : llvm::zip_equal(initial, sizes))
        states.push_back(value ? Vector(matrix(value).row(row)) : Vector(Vector::Zero(size)));
      int64_t count = lengths ? std::clamp<int64_t>(integer(lengths, row), 0, steps) : steps;
      for (int64_t i = 0; i < count; ++i) {
        int64_t t = reverse ? count - 1 - i : i;
        step(Eigen::Map<const Vector>(input.data() + (t * batch + row) * width, width), states);
        for (Vector &state : states)
          round(state);
        storeSums(output, (t * batch + row) * sizes[0], states[0].data(), sizes[0]);
      }
      for (size_t i = 0; i < states.size(); ++i)
        storeSums(e.result(1 + i), row * sizes[i], states[i].data(), sizes[i]);
    }
  }

  /// An operand as a matrix; a vector is a column.
  Matrix<double> matrix(Value value) const {
    const HostTensor &tensor = operand(value);
    std::vector<double> values = loadWidened<double>(tensor, 0);
    int64_t columns = tensor.shape.size() == 1 ? 1 : tensor.shape[1];
    return Eigen::Map<const Matrix<double>>(values.data(), tensor.shape[0], columns);
  }
  Vector vector(Value value) const { return matrix(value).col(0); }

private:
  const HostTensor &operand(Value value) const {
    return e.operand(llvm::find(op->getOperands(), value) - op->getOperands().begin());
  }
  int64_t integer(Value value, int64_t i) const {
    const HostTensor &tensor = operand(value);
    return dispatchInt(tensor.elementType,
                       [&](auto tag) { return int64_t(tensor.as<typename decltype(tag)::type>()[i]); });
  }
  /// To the element type: that is what the next step reads.
  void round(Vector &state) const {
    dispatchFloat(e.operand(0).elementType, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (double &x : state)
        x = static_cast<double>(static_cast<Compute<T>>(static_cast<T>(x)));
    });
  }

  Evaluation &e;
  Operation *op;

public:
  Activations f;
  std::vector<double> input;
  Matrix<double> recurrent;
  int64_t steps, batch, width;
  bool reverse;
};

} // namespace

LogicalResult evaluate(RnnOp op, Evaluation &e) {
  Cell cell(op, e);
  cell.run({op.getInitial()}, {cell.width}, op.getLengths(), [&](const Vector &x, MutableArrayRef<Vector> states) {
    states[0] = cell.f(0, x + cell.recurrent * states[0]);
  });
  return success();
}

LogicalResult evaluate(GruOp op, Evaluation &e) {
  Cell cell(op, e);
  int64_t hidden = cell.width / 3;
  Vector bias = op.getCandidateBias() ? cell.vector(op.getCandidateBias()) : Vector(Vector::Zero(hidden));
  auto gate = [&](int64_t i) { return cell.recurrent.middleRows(i * hidden, hidden); };
  cell.run({op.getInitial()}, {hidden}, op.getLengths(), [&](const Vector &x, MutableArrayRef<Vector> states) {
    Vector h = states[0];
    Vector z = cell.f(0, x.segment(0, hidden) + gate(0) * h);
    Vector r = cell.f(0, x.segment(hidden, hidden) + gate(1) * h);
    Vector sum = x.segment(2 * hidden, hidden);
    if (op.getLinearBeforeReset())
      sum += r.cwiseProduct(gate(2) * h + bias);
    else
      sum += gate(2) * r.cwiseProduct(h) + bias;
    Vector n = cell.f(1, sum);
    states[0] = (1 - z.array()) * n.array() + z.array() * h.array();
  });
  return success();
}

LogicalResult evaluate(LstmOp op, Evaluation &e) {
  Cell cell(op, e);
  int64_t hidden = cell.width / 4;
  auto optional = [&](Value value) { return value ? cell.matrix(value) : Matrix<double>(); };
  Matrix<double> peephole = optional(op.getPeephole()), norm = optional(op.getNorm()),
                 normBias = optional(op.getNormBias()), projection = optional(op.getProjection()),
                 projectionBias = optional(op.getProjectionBias());
  double cellClip = op.getCellClip().convertToDouble(), projectionClip = op.getProjectionClip().convertToDouble();
  /// Gate `i` before its function: i, o, f, c.
  auto gate = [&](int64_t i, const Vector &x, const Vector &h, const Vector &c) {
    Vector sum = x.segment(i * hidden, hidden) + cell.recurrent.middleRows(i * hidden, hidden) * h;
    if (op.getPeephole() && i < 3)
      sum += peephole.row(i).transpose().cwiseProduct(c);
    if (op.getNorm()) {
      double mean = sum.mean(), variance = (sum.array() - mean).square().mean();
      sum = (sum.array() - mean) / std::sqrt(variance + 1e-8) * norm.row(i).transpose().array();
    }
    if (op.getNormBias())
      sum += normBias.row(i).transpose();
    return sum;
  };
  auto limited = [](Vector x, double bound) {
    return Vector(x.unaryExpr([bound](double v) { return Activations::limit(v, bound); }));
  };
  int64_t state = cell.recurrent.cols();
  cell.run({op.getInitial(), op.getInitialCell()}, {state, hidden}, op.getLengths(),
           [&](const Vector &x, MutableArrayRef<Vector> states) {
             Vector &h = states[0], &c = states[1];
             Vector i = cell.f(0, gate(0, x, h, c));
             Vector f = op.getInputForget() ? Vector(1 - i.array()) : cell.f(0, gate(2, x, h, c));
             Vector g = cell.f(1, gate(3, x, h, c));
             Vector next = limited(f.cwiseProduct(c) + i.cwiseProduct(g), cellClip);
             Vector o = cell.f(0, gate(1, x, h, next));
             Vector m = o.cwiseProduct(cell.f(2, next, /*limited=*/false));
             if (op.getProjection())
               m = projection * m;
             if (op.getProjectionBias())
               m += projectionBias.col(0);
             h = limited(m, op.getProjection() ? projectionClip : 0);
             c = next;
           });
  return success();
}

} // namespace ajour::reference
