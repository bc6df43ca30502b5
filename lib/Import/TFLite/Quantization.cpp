//===- Quantization.cpp - QUANTIZE, DEQUANTIZE, DENSIFY and integer arithmetic ----===//
#include "Importer.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

FixedPoint quantizeMultiplier(double factor) {
  if (!(factor > 0) || !std::isfinite(factor))
    return {};
  int exponent;
  double fraction = std::frexp(factor, &exponent);
  int64_t multiplier = std::llround(fraction * double(int64_t(1) << 31));
  if (multiplier == int64_t(1) << 31) {
    multiplier /= 2;
    ++exponent;
  }
  if (exponent < -31)
    return {};
  if (exponent > 30)
    return {std::numeric_limits<int32_t>::max(), 30};
  return {int32_t(multiplier), exponent};
}

int32_t multiplyByQuantized(int32_t x, FixedPoint factor) {
  int32_t left = std::max(factor.shift, 0), right = std::max(-factor.shift, 0);
  int64_t shifted = int32_t(uint32_t(x) << left);
  int64_t product = shifted * factor.multiplier;
  int64_t high = (product + (product >= 0 ? int64_t(1) << 30 : 1 - (int64_t(1) << 30))) / (int64_t(1) << 31);
  int64_t mask = (int64_t(1) << right) - 1, remainder = high & mask;
  int64_t threshold = (mask >> 1) + (high < 0 ? 1 : 0);
  return int32_t((high >> right) + (remainder > threshold ? 1 : 0));
}

std::vector<int32_t> weightZeroPoints(const TensorData &weights) {
  if (!weights.quant || llvm::all_of(weights.quant->zeroPoints, [](int32_t z) { return z == 0; }))
    return {};
  return weights.quant->zeroPoints;
}

LogicalResult setAccumulator(Node &node, Value accumulator, size_t lhs, size_t weights, Activation activation,
                             int64_t channels) {
  if (!accumulator)
    return failure();
  const TensorData &in = node.in(lhs), &filter = node.in(weights), &out = node.out();
  std::optional<Range> range = node.activationRange(activation, out);
  if (!range || failed(node.needPerTensor(in)))
    return failure();
  size_t count = filter.quant->scales.size();
  if (count != 1 && int64_t(count) != channels)
    return node.error() << count << " weight scales for " << channels << " output channels";
  // Accumulators of 32 bits are dequantised and quantised: the two roundings of the 31-bit multiplier move some
  // results by a step, which deep networks amplify (docs/decisions/0007-requantisation.md). Those of 64 bits follow
  // the reference kernels exactly.
  float inScale = in.quant->scales[0], outScale = out.quant->scales[0];
  if (cast<RankedTensorType>(accumulator.getType()).getElementType().isInteger(32)) {
    std::vector<float> scales;
    for (float scale : filter.quant->scales)
      scales.push_back(float(double(inScale) * double(scale)));
    return node.set(node.requantizeQuotient(accumulator, scales, outScale, out.quant->zeroPoints[0], out.elementType,
                                            *range));
  }
  std::vector<FixedPoint> factors;
  for (float scale : filter.quant->scales)
    factors.push_back(quantizeMultiplier(double(inScale) * double(scale) / double(outScale)));
  return node.set(node.requantize(accumulator, factors, out.quant->zeroPoints[0], out.elementType, range));
}

namespace {

LogicalResult importQuantize(Node &node) {
  Value x = node.value(0);
  if (!x)
    return failure();
  if (!node.out().isQuantized())
    return node.error() << "result '" << node.out().name << "' of type " << typeName(node.out().format)
                        << " has no quantisation";
  if (node.isQuantized(0))
    return node.set(node.rescale(x, node.in(0), node.out()));
  return node.setFloat(node.floatValue(0));
}

LogicalResult importDequantize(Node &node) { return node.setFloat(node.floatValue(0)); }

/// The reader has expanded the constant already.
LogicalResult importDensify(Node &node) {
  Value x = node.value(0);
  if (x && !getConstantValue(x))
    return node.error() << "the operand of DENSIFY must be a constant";
  return node.set(x);
}

const OpRow rows[] = {
    {Builtin::QUANTIZE, 4, 1, 1, importQuantize},
    {Builtin::DEQUANTIZE, 6, 1, 1, importDequantize},
    {Builtin::DENSIFY, 1, 1, 1, importDensify},
};

} // namespace

ArrayRef<OpRow> quantizationRows() { return rows; }

} // namespace ajour::tflite
