//===- StateSpace.cpp - state-space operations ----------------------------------===//
#include "Linear.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

namespace {

/// Operands by name as doubles; nothing for those that are absent.
class Operands {
public:
  Operands(Operation *op, const Evaluation &e) : op(op), e(e) {}
  std::vector<double> operator()(Value value) const {
    if (!value)
      return {};
    return loadWidened<double>(e.operand(llvm::find(op->getOperands(), value) - op->getOperands().begin()), 0);
  }

private:
  Operation *op;
  const Evaluation &e;
};

double silu(double x) { return x / (1 + std::exp(-x)); }

} // namespace

LogicalResult evaluate(CausalConvOp op, Evaluation &e) {
  Operands operands(op, e);
  int64_t tokens = e.operand(0).shape[0], channels = e.operand(1).shape[1], taps = e.operand(1).shape[0];
  std::vector<double> rows = operands(op.getInitial()), input = operands(op.getInput()), filter = operands(op.getFilter()),
                      bias = operands(op.getBias());
  if (rows.empty())
    rows.resize((taps - 1) * channels);
  rows.insert(rows.end(), input.begin(), input.end());
  std::vector<double> output(tokens * channels);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = bias.empty() ? 0 : bias[c];
      for (int64_t k = 0; k < taps; ++k)
        sum += filter[k * channels + c] * rows[(t + k) * channels + c];
      output[t * channels + c] = op.getSilu() ? silu(sum) : sum;
    }
  storeSums(e.result(0), 0, output.data(), int64_t(output.size()));
  storeSums(e.result(1), 0, rows.data() + tokens * channels, (taps - 1) * channels);
  return success();
}

LogicalResult evaluate(SelectiveScanOp op, Evaluation &e) {
  Operands operands(op, e);
  ArrayRef<int64_t> shape = e.operand(0).shape;
  int64_t tokens = shape[0], heads = shape[1], size = shape[2], states = e.operand(3).shape[2], groups = e.operand(3).shape[1];
  int64_t decays = e.operand(2).shape[0];
  std::vector<double> x = operands(op.getX()), delta = operands(op.getDelta()), a = operands(op.getA()), b = operands(op.getB()),
                      c = operands(op.getC()), bias = operands(op.getDeltaBias()), skip = operands(op.getSkip()),
                      gate = operands(op.getGate()), state = operands(op.getInitial());
  if (state.empty())
    state.resize(states * heads * size);
  std::vector<double> y(tokens * heads * size);
  double low = op.getDeltaMin().convertToDouble(), high = op.getDeltaMax().convertToDouble();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      double d = delta[t * heads + h] + (bias.empty() ? 0 : bias[h]);
      if (op.getSoftplus())
        d = std::fmax(d, 0.0) + std::log1p(std::exp(-std::fabs(d)));
      // A NaN stays one.
      d = d < low ? low : d > high ? high : d;
      int64_t group = (t * groups + h / (heads / groups)) * states;
      for (int64_t p = 0; p < size; ++p) {
        int64_t at = (t * heads + h) * size + p;
        double sum = skip.empty() ? 0 : skip[h] * x[at];
        for (int64_t n = 0; n < states; ++n) {
          double &value = state[(n * heads + h) * size + p];
          value = std::exp(d * a[(decays == 1 ? 0 : n) * heads + h]) * value + d * b[group + n] * x[at];
          sum += c[group + n] * value;
        }
        y[at] = gate.empty() ? sum : sum * silu(gate[at]);
      }
    }
  storeSums(e.result(0), 0, y.data(), int64_t(y.size()));
  storeSums(e.result(1), 0, state.data(), int64_t(state.size()));
  return success();
}

} // namespace ajour::reference
