//===- QuantizedLstm.cpp - LSTM of 8-bit activations and 16-bit cells -------------===//
//
// The arithmetic of the format's published reference kernels for 8-bit activations and 16-bit cells: gates are sums in
// steps of 2^-12, functions have results in steps of 2^-15, and the cell's step is a power of two. Every step is
// written as integer operations, so that compiled code agrees with the reference to the last bit. The functions are read
// from tables and interpolated, in the reference kernels they are other approximations of the same 16 bits.
//
//===----------------------------------------------------------------------===//
#include "Recurrent.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

namespace {

/// Steps are written one after the other; more than this many would make a model of no use on a device.
constexpr int64_t maxSteps = 1024;

double scaleOf(const TensorData &tensor) { return double(tensor.quant->scales[0]); }

class QuantizedLstm {
public:
  QuantizedLstm(Node &node, const LstmOperands &at, const LstmOptions &options)
      : node(node), at(at), options(options), i16(node.b.getIntegerType(16)), i32(node.b.getI32Type()) {}

  Value run();

private:
  bool check();
  bool readScales();
  Value step(Value x);

  /// Rounds halves away from zero; x >> count.
  Value shiftRight(Value x, int64_t count);
  Value limited(Value x, double low, double high) { return node.cast(node.clamp(x, {low, high}), i16); }
  Value saturated(Value x) { return limited(x, -32768, 32767); }
  Value times(Value x, Value y) { return node.binary(BinaryKind::mul, node.cast(x, i32), node.cast(y, i32)); }
  Value function(Value x, double step, double (*of)(double));
  Value gateSum(int gate, Value x, Value h, Value c);
  Value normalised(int gate, Value sum);
  Value stacked(int first, bool &good);
  /// What products with the input's, or the state's, weights are rescaled by for each row of the stacked gates.
  std::vector<FixedPoint> gateFactors(int first, double inputScale);
  Value columns(Value x, int position) {
    return node.slice(x, {0, position * hidden}, {1, 1}, {getDims(x)[0], node.b.getAffineConstantExpr(hidden)});
  }
  int positionOf(int gate) const { return int(llvm::find(gates, gate) - gates.begin()); }
  const TensorData *intermediate(size_t i) const {
    if (i >= node.op.intermediates.size() || node.op.intermediates[i] < 0)
      return nullptr;
    const TensorData &tensor = node.graph.tensors[node.op.intermediates[i]];
    return tensor.quant && tensor.quant->isPerTensor() && tensor.quant->scales[0] > 0 ? &tensor : nullptr;
  }

  Node &node;
  const LstmOperands &at;
  const LstmOptions &options;
  Type i16, i32;
  SmallVector<int> gates; ///< that have weights: input (unless coupled to forget), forget, cell, output
  bool normalises = false;
  int64_t hidden = 0;
  double gateScale[4] = {}, stateScale = 0, hiddenScale = 0;
  int32_t hiddenZero = 0, stateZero = 0;
  int cellBits = 0; ///< the cell's step is 2^cellBits
  Value h, c, recurrent;
  std::vector<FixedPoint> recurrentFactors;
  std::map<std::pair<double, double (*)(double)>, Value> tables; ///< by step and function
};

bool QuantizedLstm::check() {
  auto need = [&](int i, unsigned width, const char *what) {
    bool good = node.has(i) && node.in(i).elementType && node.in(i).elementType.isSignlessInteger(width) &&
                node.isQuantized(i) && node.in(i).quant->isPerTensor() && node.in(i).problem.empty();
    if (!good)
      node.error() << what << " (operand " << i << ") must be INT" << width << " with one scale"
                   << (node.has(i) ? ", found " + typeName(node.in(i).format) : ", but is missing");
    return good;
  };
  if (options.reverse || options.activation != Activation::TANH) {
    node.error() << "fused activation " << EnumNameActivation(options.activation) << " is not supported on integers, expected TANH";
    return false;
  }
  if (!need(at.input, 8, "the input") || !need(at.state, 8, "the output state") || !need(at.cell, 16, "the cell state"))
    return false;
  for (int gate : {0, 1, 2, 3})
    if (gate != 0 || node.has(at.weights)) {
      if (!need(at.weights + gate, 8, "weights") || !need(at.recurrent + gate, 8, "recurrent weights"))
        return false;
      gates.push_back(gate);
    }
  hidden = node.in(at.weights + 1).shape.empty() ? 0 : node.in(at.weights + 1).shape[0];
  for (int gate : gates)
    if (node.in(at.weights + gate).shape.size() != 2 || node.in(at.recurrent + gate).shape.size() != 2 ||
        node.in(at.weights + gate).shape[0] != hidden || node.in(at.recurrent + gate).shape[0] != hidden ||
        !node.in(at.weights + gate).isConstant || !node.in(at.recurrent + gate).isConstant ||
        node.in(at.weights + gate).quant->zeroPoints[0] != 0 || node.in(at.recurrent + gate).quant->zeroPoints[0] != 0) {
      node.error() << "the weights of all gates must be constant symmetric matrices of " << hidden << " rows";
      return false;
    }
  return true;
}

bool QuantizedLstm::readScales() {
  normalises = at.norm >= 0 && node.has(at.norm + 1);
  for (int gate : gates) {
    const TensorData *own = normalises ? intermediate(gate) : nullptr;
    if (normalises && !own) {
      node.error() << "the scale of the sums of gate " << gate << " is missing: the operator has no intermediate tensor for it";
      return false;
    }
    gateScale[gate] = own ? scaleOf(*own) : std::ldexp(1, -12);
  }
  stateScale = scaleOf(node.in(at.state));
  stateZero = node.in(at.state).quant->zeroPoints[0];
  const TensorData *own = intermediate(4);
  hiddenScale = own ? scaleOf(*own) : stateScale;
  hiddenZero = own ? own->quant->zeroPoints[0] : stateZero;
  double bits = std::log2(scaleOf(node.in(at.cell)));
  cellBits = int(std::lround(bits));
  if (std::fabs(bits - cellBits) > 1e-3 || cellBits > 0 || cellBits < -15) {
    node.error() << "the cell state's scale " << scaleOf(node.in(at.cell)) << " must be a power of two from 2^-15 to 1";
    return false;
  }
  return true;
}

Value QuantizedLstm::shiftRight(Value x, int64_t count) {
  if (count <= 0)
    return x;
  Value sign = node.binary(BinaryKind::shift_right, x, node.intScalar(i32, 31)); // -1 for negative values
  Value half = node.binary(BinaryKind::add, x, node.intScalar(i32, int64_t(1) << (count - 1)));
  return node.binary(BinaryKind::shift_right, node.binary(BinaryKind::add, half, sign), node.intScalar(i32, count));
}

/// A function of x in steps of `step`, in steps of 2^-15.
Value QuantizedLstm::function(Value x, double step, double (*of)(double)) {
  if (!x)
    return {};
  Value &entries = tables[{step, of}];
  if (entries)
    return node.createAs<LookupOp>(cast<RankedTensorType>(x.getType()), {}, {x, entries});
  std::vector<int16_t> table(513);
  for (int i = 0; i <= 512; ++i)
    table[i] = int16_t(std::clamp<double>(std::nearbyint(of((i - 256) * 128 * step) * 32768), -32768, 32767));
  entries = node.constant(makeTensor({513}, i16), ArrayRef(reinterpret_cast<const char *>(table.data()), 2 * 513));
  return node.createAs<LookupOp>(cast<RankedTensorType>(x.getType()), {}, {x, entries});
}

Value QuantizedLstm::stacked(int first, bool &good) {
  SmallVector<Value> parts;
  for (int gate : gates)
    parts.push_back(node.value(first + gate));
  good = !llvm::is_contained(parts, Value());
  return good ? node.concat(parts, 0) : Value();
}

std::vector<FixedPoint> QuantizedLstm::gateFactors(int first, double inputScale) {
  std::vector<FixedPoint> factors;
  for (int gate : gates)
    factors.insert(factors.end(), hidden,
                   quantizeMultiplier(inputScale * scaleOf(node.in(first + gate)) / gateScale[gate]));
  return factors;
}

/// Sum of a gate before its function, i16 in steps of 2^-12. x and h are the products, i16 and i32.
Value QuantizedLstm::gateSum(int gate, Value x, Value h, Value c) {
  int position = positionOf(gate);
  Value sum = saturated(node.binary(BinaryKind::add, columns(h, position), node.cast(columns(x, position), i32)));
  int peephole = at.peephole + (gate == 3 ? 2 : gate);
  if (at.peephole >= 0 && gate != 2 && node.has(peephole) && sum) {
    Value weights = node.value(peephole);
    FixedPoint factor = quantizeMultiplier(std::ldexp(scaleOf(node.in(peephole)), cellBits) / gateScale[gate]);
    Value product = node.requantize(times(c, weights), factor, 0, i32);
    sum = saturated(node.binary(BinaryKind::add, product, node.cast(sum, i32)));
  }
  return normalises ? normalised(gate, sum) : sum;
}

/// In floating point: its integer form has no exact definition to follow.
Value QuantizedLstm::normalised(int gate, Value sum) {
  QuantInfo sums{{float(gateScale[gate])}, {0}};
  LayerNormOp::Properties p;
  p.setAxis(node.b.getI64IntegerAttr(1));
  p.setEpsilon(node.b.getF32FloatAttr(1e-8f));
  p.operandSegmentSizes = {1, 1, 1};
  Value real = node.create<LayerNormOp>(p, {node.dequantize(sum, sums), node.floatValue(at.norm + gate),
                                            node.floatValue(at.bias + gate)});
  TensorData as;
  as.elementType = i16;
  as.quant = QuantInfo{{std::ldexp(1.0f, -12)}, {0}};
  return node.quantize(real, as);
}

/// One step from the products with the input, [B, gates H] of i16; sets h and c.
Value QuantizedLstm::step(Value x) {
  const double q12 = std::ldexp(1, -12), q15 = std::ldexp(1, -15);
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  auto tangent = [](double v) { return std::tanh(v); };
  MatmulOp::Properties p;
  p.setTransposeRhs(node.b.getUnitAttr());
  p.setLhsZeroPoint(node.b.getI32IntegerAttr(stateZero));
  Value products = node.requantize(node.create<MatmulOp>(p, {h, recurrent}), recurrentFactors, 0, i32);
  if (!products)
    return {};
  auto activated = [&](int gate, Value cell, double (*of)(double)) {
    Value sum = gateSum(gate, x, products, cell);
    return sum ? function(sum, q12, of) : Value();
  };
  Value forget = activated(1, c, sigmoid), candidate = activated(2, c, tangent);
  Value input;
  if (node.has(at.weights))
    input = activated(0, c, sigmoid);
  else if (forget)
    input = node.cast(node.binary(BinaryKind::sub, node.intScalar(i32, 32767), node.cast(forget, i32)), i16);
  if (!forget || !candidate || !input)
    return {};
  Value kept = saturated(shiftRight(times(forget, c), 15));
  Value added = saturated(shiftRight(times(input, candidate), 30 + cellBits));
  c = saturated(node.binary(BinaryKind::add, node.cast(kept, i32), node.cast(added, i32)));
  if (options.cellClip > 0) {
    double clip = std::clamp(std::round(double(options.cellClip) / std::ldexp(1, cellBits)), 0.0, 32767.0);
    c = node.clamp(c, {-clip, clip});
  }
  Value output = activated(3, c, sigmoid);
  if (!output)
    return {};
  Value memory = times(output, function(c, std::ldexp(1, cellBits), tangent));
  Type i8 = node.b.getIntegerType(8);
  h = node.requantize(memory, quantizeMultiplier(q15 * q15 / hiddenScale), hiddenZero, i8);
  if (at.projection >= 0 && node.has(at.projection)) {
    SmallVector<Value> operands{h, node.value(at.projection)};
    if (node.has(at.projectionBias))
      operands.push_back(node.value(at.projectionBias));
    p.setLhsZeroPoint(node.b.getI32IntegerAttr(hiddenZero));
    FixedPoint factor = quantizeMultiplier(hiddenScale * scaleOf(node.in(at.projection)) / stateScale);
    h = node.requantize(node.create<MatmulOp>(p, operands), factor, stateZero, i8);
    if (options.projectionClip > 0 && h) {
      double clip = std::clamp(std::round(double(options.projectionClip) / stateScale), 0.0, 127.0);
      h = node.clamp(h, {-clip, clip});
    }
  }
  return h;
}

Value QuantizedLstm::run() {
  if (!check() || !readScales())
    return {};
  Value x = timeMajorInput(node, node.value(at.input), options.timeMajor);
  std::optional<int64_t> steps = x ? node.staticSize(x, 0) : std::nullopt;
  if (!steps)
    return {};
  if (*steps < 1 || *steps > maxSteps) {
    node.error() << *steps << " steps, from 1 to " << maxSteps << " are supported on integers; the nearest supported is a "
                 << "model of fewer steps that is called several times";
    return {};
  }
  // Each step is some dozens of operations.
  constexpr int64_t stepBytes = 4096;
  if (failed(node.spend(*steps, stepBytes)))
    return {};
  bool goodWeights, goodRecurrent;
  Value weights = stacked(at.weights, goodWeights);
  recurrent = stacked(at.recurrent, goodRecurrent);
  h = node.value(at.state);
  c = node.value(at.cell);
  if (!goodWeights || !goodRecurrent || !h || !c)
    return {};
  MatmulOp::Properties p;
  p.setTransposeRhs(node.b.getUnitAttr());
  p.setLhsZeroPoint(node.b.getI32IntegerAttr(node.in(at.input).quant->zeroPoints[0]));
  SmallVector<Value> operands{x, weights};
  if (!normalises) {
    SmallVector<Value> biases;
    for (int gate : gates)
      biases.push_back(node.value(at.bias + gate));
    if (llvm::is_contained(biases, Value()))
      return {};
    operands.push_back(node.concat(biases, 0));
  }
  Value products = node.requantize(node.create<MatmulOp>(p, operands),
                                   gateFactors(at.weights, scaleOf(node.in(at.input))), 0, i16);
  recurrentFactors = gateFactors(at.recurrent, stateScale);
  if (!products)
    return {};
  Dims dims = getDims(products);
  AffineExpr one = node.b.getAffineConstantExpr(1);
  SmallVector<Value> outputs;
  for (int64_t t = 0; t < *steps; ++t) {
    Value own = node.slice(products, {t, 0, 0}, {1, 1, 1}, {one, dims[1], dims[2]});
    Value y = step(node.reshape(own, {dims[1], dims[2]}));
    if (!y)
      return {};
    Dims sequence = getDims(y);
    sequence.insert(sequence.begin(), one);
    outputs.push_back(node.reshape(y, sequence));
  }
  if (failed(node.setVariable(at.state, h)) || failed(node.setVariable(at.cell, c)))
    return {};
  return outputs.size() == 1 ? outputs[0] : node.concat(outputs, 0);
}

} // namespace

Value importQuantizedLstm(Node &node, const LstmOperands &at, const LstmOptions &options) {
  return QuantizedLstm(node, at, options).run();
}

} // namespace ajour::tflite
