//===- Ranges.cpp - what activations lie between ---------------------------------===//
#include "Ranges.h"

#include "ajour/Support/NodeLocation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ajour::compress {

ActivationRanges::Range chooseRange(const std::vector<float> &values) {
  double low = 0, high = 0;
  for (float value : values)
    if (std::isfinite(value)) {
      low = std::min(low, double(value));
      high = std::max(high, double(value));
    }
  ActivationRanges::Range best;
  double least = std::numeric_limits<double>::max();
  for (int step = 0; step < 16; ++step) {
    double share = 1 - 0.04 * step, from = low * share, to = high * share;
    double scale = std::max((to - from) / 255, 1e-20), zero = std::nearbyint(-from / scale), sum = 0;
    for (float value : values) {
      double rounded = (std::clamp(std::nearbyint(value / scale) + zero, 0., 255.) - zero) * scale;
      sum += (value - rounded) * (value - rounded);
    }
    if (sum < least) {
      least = sum;
      best = {float(from), float(to)};
    }
  }
  return best;
}

std::vector<float> sampleValues(const std::vector<HostTensor> &tensors) {
  constexpr int64_t wanted = 1 << 15;
  int64_t total = 0;
  for (const HostTensor &tensor : tensors)
    total += tensor.numElements();
  // Odd, so that it does not follow a power of two's worth of channels.
  int64_t stride = std::max<int64_t>(total / wanted, 1) | 1;
  std::vector<float> values;
  float low = 0, high = 0;
  int64_t next = 0;
  for (const HostTensor &tensor : tensors) {
    const float *data = tensor.as<float>();
    for (int64_t i = 0; i < tensor.numElements(); ++i, --next) {
      low = std::min(low, data[i]);
      high = std::max(high, data[i]);
      if (next == 0) {
        values.push_back(data[i]);
        next = stride;
      }
    }
  }
  values.push_back(low);
  values.push_back(high);
  return values;
}

void noteRange(mlir::Value value, const std::vector<HostTensor> &tensors, ActivationRanges &ranges) {
  if (tensors.empty() || tensors[0].elementType != AJOUR_F32)
    return;
  llvm::SmallVector<NodeInfo> nodes = getNodes(value.getLoc());
  if (nodes.size() == 1)
    ranges.nodes[nodes[0].index] = chooseRange(sampleValues(tensors));
}

} // namespace ajour::compress
