//===- ChannelMajor.cpp - which convolutions are computed over pixels ------------===//
#include "ajour/Conversion/Encode.h"

using namespace mlir;

namespace ajour {

/// The time of the fastest kernel over pixels for a product, as a multiple of the dense one's; nothing: there is none.
static std::optional<double> timeOverPixels(const EncodedWeight &weight, ajour_cpu_level level) {
  std::optional<double> best, dense = estimateCost(weight.use, KernelFamily::Dense, 1, weight.rows, level);
  for (KernelFamily family : {KernelFamily::Spmm, KernelFamily::Spconv})
    for (int64_t group : {1, 2, 4, 8})
      if (auto cost = estimateCost(weight.use, family, group, weight.rows, level); cost && (!best || *cost / *dense < *best))
        best = *cost / *dense;
  return best;
}

/// Dense weights take the kernels for zeros only where there are hardly any: in a first layer, which reads planes as the user passes them
/// and would else write every channel apart. With strides (ResNet-50's 7x7) the dense kernel is the faster one all the same.
static bool isDenseEntry(const WeightUse &use) {
  constexpr int64_t mostInputs = 4;
  return use.shape.channels() <= mostInputs && use.stride == 1;
}

/// The convolutions that are computed over pixels where the network is channel-major.
static llvm::SmallDenseSet<Operation *> convolutionsOverPixels(ArrayRef<EncodedWeight> weights, ajour_cpu_level level) {
  // Where this share of the multiply-adds is channel-major anyway, a dense kernel in between must be faster by more than this,
  // since its operand and result are transposed.
  constexpr double leastShare = 0.25, transposedGain = 1.5;
  llvm::SmallDenseSet<Operation *> chosen;
  double all = 0, sparse = 0;
  for (const EncodedWeight &weight : weights) {
    double macs = weight.use.isConv ? double(weight.use.shape.elements()) * double(std::max<int64_t>(weight.rows, 0)) : 0;
    all += macs;
    if (!isOverPixels(selectKernel(weight.use, weight.rows, level).family))
      continue;
    chosen.insert(weight.op);
    sparse += macs;
  }
  if (!chosen.empty() && sparse >= leastShare * all)
    for (const EncodedWeight &weight : weights)
      if (auto time = timeOverPixels(weight, level);
          time && (weight.use.density() < 1 || isDenseEntry(weight.use)) && *time < transposedGain)
        chosen.insert(weight.op);
  return chosen;
}

llvm::SmallDenseSet<Operation *> chooseChannelMajor(ArrayRef<EncodedWeight> weights, ajour_cpu_level level) {
  // Giga multiply-adds a second of depthwise convolutions in f32, and what transposes and short vectors may cost.
  constexpr double overChannels = 28, overPlanes = 12, leastGain = 1.03;
  llvm::SmallDenseSet<Operation *> chosen = convolutionsOverPixels(weights, level);
  double pixels = 0, channels = 0;
  for (const EncodedWeight &weight : weights) {
    if (!weight.use.isConv || weight.rows < 1)
      continue;
    if (weight.use.isDepthwise) {
      double macs = double(weight.use.shape.elements()) * double(weight.rows);
      pixels += macs / overPlanes, channels += macs / overChannels;
      continue;
    }
    double dense = *estimateCost(weight.use, KernelFamily::Dense, 1, weight.rows, level);
    double time = dense / selectKernel(weight.use, weight.rows, level, /*overPixels=*/false).gain;
    channels += time;
    pixels += chosen.contains(weight.op) ? dense * *timeOverPixels(weight, level) : time;
  }
  if (channels <= pixels * leastGain)
    chosen.clear();
  return chosen;
}

} // namespace ajour
