//===- Resample.cpp - resize and grid_sample ---------------------------------------===//
#include "ajour/Reference/Resample.h"

#include "Evaluation.h"
#include "ajour/Dialect/NN/Shapes.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace ajour::nn;

namespace ajour {

//===----------------------------------------------------------------------===//
// resize
//===----------------------------------------------------------------------===//

namespace {
/// One dimension of a resize operation.
struct ResizeAxis {
  ResizeAxis(ResizeOp op, unsigned dim, int64_t in, int64_t out) : mode(op.getCoordinateMode()), in(in), out(out) {
    if (!op.getScales().empty())
      scale = op.getScales()[dim];
    ArrayRef<float> roi = op.getRoi();
    if (!roi.empty()) {
      start = roi[dim];
      end = roi[roi.size() / 2 + dim];
    }
  }
  /// x / (out / in).
  double unscale(double x) const { return scale ? double(static_cast<float>(x) / *scale) : x * in / out; }
  /// The result's length before it was rounded down to a whole number.
  double length() const { return scale ? double(in) * *scale : double(out); }
  double coordinate(int64_t i) const;

  CoordinateMode mode;
  int64_t in, out;
  std::optional<float> scale;
  double start = 0, end = 1;
};
} // namespace

double ResizeAxis::coordinate(int64_t i) const {
  switch (mode) {
  case CoordinateMode::half_pixel:
    return unscale(i + 0.5) - 0.5;
  case CoordinateMode::pytorch_half_pixel:
    return out == 1 ? 0 : unscale(i + 0.5) - 0.5;
  case CoordinateMode::align_corners:
    return out == 1 ? 0 : i * double(in - 1) / (length() - 1);
  case CoordinateMode::asymmetric:
    return unscale(i);
  case CoordinateMode::tf_crop_and_resize:
    return out == 1 ? (start + end) / 2 * (in - 1) : start * (in - 1) + i * (end - start) * (in - 1) / (length() - 1);
  case CoordinateMode::half_pixel_symmetric: {
    // What rounding the length down removes is taken from both ends alike.
    double adjustment = out / length();
    return in / 2.0 * (1 - adjustment) + unscale(i + 0.5) - 0.5;
  }
  case CoordinateMode::tf_half_pixel_for_nn:
    return unscale(i + 0.5);
  }
  llvm_unreachable("all modes are handled");
}

static double nearestIndex(NearestMode mode, double x) {
  switch (mode) {
  case NearestMode::round_prefer_floor:
    return std::ceil(x - 0.5);
  case NearestMode::round_prefer_ceil:
    return std::floor(x + 0.5);
  case NearestMode::floor:
    return std::floor(x);
  case NearestMode::ceil:
    return std::ceil(x);
  }
  llvm_unreachable("all modes are handled");
}

/// Keys' cubic convolution kernel at distance `x` >= 0 (IEEE Trans. ASSP 29(6), 1981), with coefficient a.
static double cubicWeight(double x, double a) {
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// An index inside [0, size), for any finite or infinite value; NaN gives 0.
static int64_t clampIndex(double x, int64_t size) {
  return x >= 0 ? static_cast<int64_t>(std::min(x, double(size - 1))) : 0;
}

/// The taps of a coordinate; `add` receives an unclamped index and its weight.
template <typename Add> static void interpolate(ResizeMode mode, double x, double cubicA, Add &&add) {
  double floor = std::floor(x), fraction = x - floor;
  if (mode == ResizeMode::linear) {
    add(floor, 1 - fraction);
    add(floor + 1, fraction);
    return;
  }
  for (int offset = -1; offset <= 2; ++offset)
    add(floor + offset, cubicWeight(std::fabs(fraction - offset), cubicA));
}

std::vector<ResizeSource> resizeSources(ResizeOp op, unsigned dim, int64_t in, int64_t out) {
  ResizeAxis axis(op, dim, in, out);
  bool drops = op.getExcludeOutside() && op.getMode() == ResizeMode::cubic;
  std::vector<ResizeSource> sources(out);
  for (int64_t i = 0; i < out; ++i) {
    ResizeSource &source = sources[i];
    double x = axis.coordinate(i), sum = 0;
    source.outside = axis.mode == CoordinateMode::tf_crop_and_resize && !(x >= 0 && x <= in - 1);
    if (op.getMode() == ResizeMode::nearest) {
      source.taps.push_back({clampIndex(nearestIndex(op.getNearestMode(), x), in), 1.0});
      continue;
    }
    interpolate(op.getMode(), x, op.getCubicA().convertToFloat(), [&](double index, double weight) {
      if (weight == 0 || (drops && !(index >= 0 && index < in)))
        return;
      source.taps.push_back({clampIndex(index, in), weight});
      sum += weight;
    });
    if (source.taps.empty())
      source.taps.push_back({clampIndex(x, in), 1.0});
    else if (drops)
      for (auto &tap : source.taps)
        tap.second /= sum;
  }
  return sources;
}

namespace reference {

/// Replaces dimension `dim` of `values` (row-major, `shape`) by its resampling.
static void resampleDimension(std::vector<double> &values, Shape &shape, size_t dim,
                              const std::vector<ResizeSource> &sources) {
  int64_t outer = sizeOf(shape, 0, dim), in = shape[dim], inner = sizeOf(shape, dim + 1, shape.size());
  int64_t out = sources.size();
  std::vector<double> result(outer * out * inner, 0.0);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < out; ++i)
      for (auto [index, weight] : sources[i].taps)
        for (int64_t k = 0; k < inner; ++k)
          result[(o * out + i) * inner + k] += weight * values[(o * in + index) * inner + k];
  values = std::move(result);
  shape[dim] = out;
}

/// Linear and cubic: every dimension after another. Only those that change are touched.
template <typename T>
static void resizeInterpolating(const HostTensor &input, const std::vector<std::vector<ResizeSource>> &sources,
                                HostTensor &result) {
  std::vector<double> values(input.numElements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(static_cast<Compute<T>>(input.as<T>()[i]));
  Shape shape(ArrayRef<int64_t>(input.shape));
  // Dimensions that shrink come first, so that no step has more elements than the input or the result.
  SmallVector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](size_t d) { return int64_t(sources[d].size()) < shape[d]; });
  for (size_t d : order) {
    bool same = shape[d] == int64_t(sources[d].size());
    for (size_t i = 0; i < sources[d].size() && same; ++i)
      same = sources[d][i].taps.size() == 1 && sources[d][i].taps[0] == std::pair<int64_t, double>(i, 1.0);
    if (!same)
      resampleDimension(values, shape, d, sources[d]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (isFloat<T>)
      result.as<T>()[i] = T(values[i]);
    else if constexpr (isInt<T>)
      result.as<T>()[i] = saturate<T>(std::nearbyint(static_cast<float>(values[i])));
    else
      result.as<T>()[i] = Boolean(std::nearbyint(values[i]) != 0);
  }
}

/// Nearest: each element is a copy.
template <typename T>
static void resizeNearest(const HostTensor &input, const std::vector<std::vector<ResizeSource>> &sources,
                          HostTensor &result) {
  Shape in = stridesOf(input.shape), out = stridesOf(result.shape);
  for (int64_t i = 0, count = result.numElements(); i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < sources.size(); ++d)
      offset += sources[d][i / out[d] % result.shape[d]].taps[0].first * in[d];
    result.as<T>()[i] = input.as<T>()[offset];
  }
}

LogicalResult evaluate(ResizeOp op, Evaluation &e) {
  const HostTensor &input = e.operand(0);
  HostTensor &result = e.result();
  if (result.data.empty())
    return success();
  if (input.data.empty())
    return op.emitError() << "an empty operand has nothing to resample";
  std::vector<std::vector<ResizeSource>> sources;
  for (size_t d = 0; d < input.shape.size(); ++d)
    sources.push_back(resizeSources(op, d, input.shape[d], result.shape[d]));
  Shape strides = stridesOf(result.shape);
  dispatch(input.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (op.getMode() == ResizeMode::nearest)
      resizeNearest<T>(input, sources, result);
    else
      resizeInterpolating<T>(input, sources, result);
    if (op.getCoordinateMode() != CoordinateMode::tf_crop_and_resize)
      return;
    T extrapolation = convert<T>(op.getExtrapolation().convertToFloat());
    for (int64_t i = 0, count = result.numElements(); i < count; ++i)
      for (size_t d = 0; d < sources.size(); ++d)
        if (sources[d][i / strides[d] % result.shape[d]].outside)
          result.as<T>()[i] = extrapolation;
  });
  return success();
}

//===----------------------------------------------------------------------===//
// grid_sample
//===----------------------------------------------------------------------===//

/// Mirrors a coordinate at both ends until it lies in [low, high].
static double reflect(double x, double low, double high) {
  double range = high - low;
  if (range <= 0)
    return low;
  double distance = std::fmod(std::fabs(x - low), 2 * range);
  return low + (distance > range ? 2 * range - distance : distance);
}

namespace {
/// One axis of the sampled image.
struct SampleAxis {
  int64_t size;
  SamplePadding padding;
  bool alignCorners;

  /// The coordinate of a grid value: -1 and 1 are the centres of the corner elements, or their outer edges.
  double coordinate(double grid) const {
    return alignCorners ? (grid + 1) / 2 * (size - 1) : ((grid + 1) * size - 1) / 2;
  }
  /// Where a whole index reads; -1: outside, contributes 0.
  int64_t resolve(double index) const {
    if (padding == SamplePadding::zeros)
      return index >= 0 && index < size ? static_cast<int64_t>(index) : -1;
    if (padding == SamplePadding::reflection && std::isfinite(index))
      index = alignCorners ? reflect(index, 0, size - 1) : reflect(index, -0.5, size - 0.5);
    return clampIndex(index, size);
  }
  llvm::SmallVector<std::pair<int64_t, double>, 4> taps(ResizeMode mode, double grid) const {
    llvm::SmallVector<std::pair<int64_t, double>, 4> result;
    double x = coordinate(grid);
    // Nearest and linear bring the coordinate itself inside; cubic does so for each of its taps.
    if (padding == SamplePadding::reflection && mode != ResizeMode::cubic && std::isfinite(x))
      x = alignCorners ? reflect(x, 0, size - 1) : reflect(x, -0.5, size - 0.5);
    if (padding != SamplePadding::zeros && mode != ResizeMode::cubic)
      x = x >= 0 ? std::min(x, double(size - 1)) : 0;
    if (mode == ResizeMode::nearest)
      result.push_back({resolve(std::nearbyint(x)), 1.0});
    else
      interpolate(mode, x, -0.75, [&](double index, double weight) { result.push_back({resolve(index), weight}); });
    return result;
  }
};
} // namespace

LogicalResult evaluate(GridSampleOp op, Evaluation &e) {
  const HostTensor &input = e.operand(0), &grid = e.operand(1);
  if (e.result().data.empty())
    return success();
  if (input.data.empty())
    return op.emitError() << "an empty image has nothing to sample";
  int64_t height = input.shape[1], width = input.shape[2], channels = input.shape[3];
  int64_t pixels = grid.shape[1] * grid.shape[2];
  SampleAxis rows{height, op.getPadding(), op.getAlignCorners()}, columns{width, op.getPadding(), op.getAlignCorners()};
  std::vector<double> coordinates(grid.numElements());
  dispatchFloat(grid.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < coordinates.size(); ++i)
      coordinates[i] = Compute<T>(grid.as<T>()[i]);
  });
  dispatchFloat(input.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<double> sums(channels);
    for (int64_t p = 0; p < grid.shape[0] * pixels; ++p) {
      const T *image = input.as<T>() + p / pixels * height * width * channels;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (auto [y, yWeight] : rows.taps(op.getMode(), coordinates[p * 2 + 1]))
        for (auto [x, xWeight] : columns.taps(op.getMode(), coordinates[p * 2]))
          for (int64_t c = 0; c < channels && x >= 0 && y >= 0; ++c)
            sums[c] += yWeight * xWeight * Compute<T>(image[(y * width + x) * channels + c]);
      for (int64_t c = 0; c < channels; ++c)
        e.result().as<T>()[p * channels + c] = T(sums[c]);
    }
  });
  return success();
}

} // namespace reference
} // namespace ajour
