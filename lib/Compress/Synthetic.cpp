//===- Synthetic.cpp - inputs for a model without data --------------------------===//
#include "ajour/Compress/Compress.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;

namespace ajour::compress {

namespace {

/// A sum of a few waves along all dimensions with falling strengths, which has the spectrum of pictures and sounds rather
/// than that of noise, brought to [0, 1].
std::vector<double> waveField(const std::vector<int64_t> &shape, std::mt19937_64 &random) {
  constexpr int waves = 12;
  constexpr double most = 6; // periods over a dimension
  std::uniform_real_distribution<double> unit(0, 1);
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  std::vector<double> field(elements, 0);
  for (int w = 0; w < waves; ++w) {
    std::vector<double> turns;
    double length = 0.25;
    for (int64_t size : shape) {
      double periods = size > 1 ? (2 * unit(random) - 1) * most : 0;
      turns.push_back(2 * M_PI * periods / double(size));
      length += periods * periods;
    }
    double strength = 1 / std::sqrt(length), phase = 2 * M_PI * unit(random);
    std::vector<int64_t> at(shape.size(), 0);
    for (double &value : field) {
      double angle = phase;
      for (size_t d = 0; d < at.size(); ++d)
        angle += turns[d] * double(at[d]);
      value += strength * std::cos(angle);
      for (size_t d = at.size(); d-- > 0 && ++at[d] == shape[d];)
        at[d] = 0;
    }
  }
  double low = 0, high = 0;
  for (double value : field) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  for (double &value : field)
    value = (value - low) / std::max(high - low, 1e-9);
  return field;
}

/// Values in [0, 1): waves over all of the tensor, or things made of waves before an empty ground, and a little noise.
std::vector<float> smoothField(const std::vector<int64_t> &shape, std::mt19937_64 &random) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<double> field = waveField(shape, random), outline = waveField(shape, random);
  bool hasGround = unit(random) < 2. / 3;
  double edge = 0.3 + 0.4 * unit(random), strength = 0.4 + 0.6 * unit(random);
  std::vector<float> values;
  for (size_t i = 0; i < field.size(); ++i) {
    double value = hasGround && outline[i] < edge ? 0 : strength * field[i] + 0.05 * unit(random);
    values.push_back(float(std::clamp(value, 0., 0.999999)));
  }
  return values;
}

HostTensor makeInput(RankedTensorType type, const std::vector<int64_t> &shape, std::mt19937_64 &random) {
  Type element = type.getElementType();
  HostTensor tensor;
  tensor.elementType = nn::getElementTypeId(element);
  tensor.shape = shape;
  std::vector<float> field = smoothField(shape, random);
  if (element.isF32()) {
    tensor.data.assign(reinterpret_cast<const char *>(field.data()), reinterpret_cast<const char *>(field.data() + field.size()));
    return tensor;
  }
  int64_t bytes = nn::elementBytes(element);
  tensor.data.assign(size_t(tensor.numElements() * bytes), 0);
  for (size_t i = 0; i < field.size(); ++i) {
    char *to = tensor.data.data() + i * bytes;
    if (auto real = dyn_cast<FloatType>(element)) {
      llvm::APFloat value(field[i]);
      bool loses;
      value.convert(real.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
      uint64_t bits = value.bitcastToAPInt().getZExtValue();
      std::memcpy(to, &bits, bytes);
    } else if (bytes == 1 && !element.isInteger(1)) {
      *to = char(int(field[i] * 256) - (nn::isUnsigned(element) ? 0 : 128));
    } else {
      *to = char(random() & 1); // wide integers often are indices
    }
  }
  return tensor;
}

} // namespace

std::vector<Sample> syntheticSamples(ModuleOp module, const std::vector<std::vector<int64_t>> &shapes, int64_t count,
                                     uint64_t seed) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  std::mt19937_64 random(seed);
  std::vector<Sample> samples(count);
  for (Sample &sample : samples)
    for (auto [argument, shape] : llvm::zip_equal(nn::inputArguments(main), shapes))
      sample.inputs.push_back(makeInput(cast<RankedTensorType>(main.getArgumentTypes()[argument]), shape, random));
  return samples;
}

} // namespace ajour::compress
