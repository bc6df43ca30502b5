//===- Resample.cpp - ONNX resizing and sampling --------------------------------------===//
#include "Node.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

/// The value that a string attribute names in a list of pairs.
template <typename T>
T choose(Node &n, StringRef attr, StringRef otherwise, ArrayRef<std::pair<const char *, T>> choices) {
  std::string value = n.attrString(attr, otherwise);
  std::string known;
  for (auto [name, result] : choices) {
    if (value == name)
      return result;
    known += (known.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  n.refuse("attribute '" + attr + "' is '" + value + "', expected " + known);
}

using Mode = nn::ResizeMode;
using Coordinate = nn::CoordinateMode;

constexpr std::pair<const char *, Coordinate> coordinateModes[] = {
    {"half_pixel", Coordinate::half_pixel},
    {"pytorch_half_pixel", Coordinate::pytorch_half_pixel},
    {"align_corners", Coordinate::align_corners},
    {"asymmetric", Coordinate::asymmetric},
    {"tf_crop_and_resize", Coordinate::tf_crop_and_resize},
    {"half_pixel_symmetric", Coordinate::half_pixel_symmetric},
    {"tf_half_pixel_for_nn", Coordinate::tf_half_pixel_for_nn},
};
constexpr std::pair<const char *, Mode> resizeModes[] = {
    {"nearest", Mode::nearest}, {"linear", Mode::linear}, {"cubic", Mode::cubic}, {"bilinear", Mode::linear}};
constexpr std::pair<const char *, nn::NearestMode> nearestModes[] = {
    {"round_prefer_floor", nn::NearestMode::round_prefer_floor},
    {"round_prefer_ceil", nn::NearestMode::round_prefer_ceil},
    {"floor", nn::NearestMode::floor},
    {"ceil", nn::NearestMode::ceil}};

/// What Upsample and Resize say about each dimension.
struct Sampling {
  Mode mode = Mode::nearest;
  Coordinate coordinate = Coordinate::asymmetric;
  nn::NearestMode nearest = nn::NearestMode::floor;
  std::vector<float> scales; ///< empty, or one for each dimension
  Dims sizes;
  std::vector<float> roi;
};

/// floor(size * scale), for a symbolic size with a whole scale or the inverse of one.
AffineExpr scaled(Node &n, AffineExpr size, float scale, Value x) {
  if (std::optional<int64_t> known = nn::getConstant(size)) {
    double result = std::floor(double(*known) * double(scale));
    if (!(result <= double(1 << 30)))
      n.refuse("scales dimension " + Twine(*known) + " by " + numberText(scale));
    // f32 arithmetic may say otherwise right at a whole number; exact products come first.
    return n.dim(int64_t(result));
  }
  if (scale == std::floor(scale))
    return size * int64_t(scale);
  float inverse = 1 / scale;
  if (inverse == std::floor(inverse) && inverse <= float(1 << 30))
    return size.floorDiv(int64_t(inverse));
  n.refuse("scales a symbolic dimension of " + n.text(x) + " by " + numberText(scale) +
           ", expected a whole number or the inverse of one; fix the dimension with --dim NAME=SIZE");
}

Value resample(Node &n, Value x, const Sampling &s) {
  nn::ResizeOp::Properties p;
  p.mode = nn::ResizeModeAttr::get(n.context(), s.mode);
  p.coordinate_mode = nn::CoordinateModeAttr::get(n.context(), s.coordinate);
  p.nearest_mode = nn::NearestModeAttr::get(n.context(), s.nearest);
  p.scales = n.builder().getDenseF32ArrayAttr(s.scales);
  p.roi = n.builder().getDenseF32ArrayAttr(s.roi);
  p.cubic_a = n.builder().getF32FloatAttr(n.attrFloat("cubic_coeff_a", -0.75f));
  p.extrapolation = n.builder().getF32FloatAttr(n.attrFloat("extrapolation_value", 0));
  if (n.attrInt("exclude_outside", 0))
    p.exclude_outside = n.builder().getUnitAttr();
  return n.make1<nn::ResizeOp>(x, p, nn::makeTensor(s.sizes, Node::elementOf(x)));
}

void checkScales(Node &n, const std::vector<float> &scales, size_t count) {
  if (scales.size() != count)
    n.refuse("has " + Twine(scales.size()) + " scales, expected " + Twine(count));
  for (float scale : scales)
    if (!(scale > 0) || scale > float(1 << 24))
      n.refuse("has scale " + numberText(scale) + ", expected a positive number");
}

void upsample(Node &n) {
  Value x = n.in(0);
  Sampling s;
  s.mode = choose<Mode>(n, "mode", "nearest", resizeModes);
  s.scales = n.opset < 9 ? n.attrFloats("scales") : n.floats(1, "scales");
  checkScales(n, s.scales, Node::rankOf(x));
  for (auto [d, scale] : llvm::zip_equal(Node::dimsOf(x), s.scales))
    s.sizes.push_back(scaled(n, d, scale, x));
  n.set(0, resample(n, x, s));
}

/// keep_aspect_ratio_policy: one scale for all resized axes.
void keepAspect(Node &n, Value x, Sampling &s, const Ints &axes, const Dims &wanted) {
  std::string policy = n.opset >= 18 ? n.attrString("keep_aspect_ratio_policy", "stretch") : "stretch";
  if (policy == "stretch")
    return;
  if (policy != "not_larger" && policy != "not_smaller")
    n.refuse("attribute 'keep_aspect_ratio_policy' is '" + policy + "', expected 'stretch', 'not_larger' or 'not_smaller'");
  double best = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
  for (auto [axis, want] : llvm::zip_equal(axes, wanted)) {
    int64_t in = n.staticDims(x, axis, axis + 1, "keep_aspect_ratio_policy")[0];
    std::optional<int64_t> size = nn::getConstant(want);
    if (!size || in == 0)
      n.refuse("keep_aspect_ratio_policy needs fixed sizes");
    double scale = double(*size) / double(in);
    best = policy == "not_larger" ? std::min(best, scale) : std::max(best, scale);
  }
  s.scales.assign(Node::rankOf(x), 1);
  for (int64_t axis : axes) {
    int64_t in = n.staticDims(x, axis, axis + 1, "keep_aspect_ratio_policy")[0];
    s.scales[axis] = float(best);
    double size = std::floor(best * double(in) + 0.5);
    if (!(size <= double(1 << 30)))
      n.refuse("scales dimension " + Twine(in) + " by " + numberText(best));
    s.sizes[axis] = n.dim(int64_t(size));
  }
}

void resize(Node &n) {
  Value x = n.in(0);
  int64_t rank = Node::rankOf(x);
  Sampling s;
  s.mode = choose<Mode>(n, "mode", "nearest", resizeModes);
  s.sizes = Node::dimsOf(x);
  if (n.opset < 11) {
    s.scales = n.floats(1, "scales");
    checkScales(n, s.scales, rank);
    for (auto [i, scale] : llvm::enumerate(s.scales))
      s.sizes[i] = scaled(n, s.sizes[i], scale, x);
    return n.set(0, resample(n, x, s));
  }
  s.coordinate = choose<Coordinate>(n, "coordinate_transformation_mode", "half_pixel", coordinateModes);
  s.nearest = choose<nn::NearestMode>(n, "nearest_mode", "round_prefer_floor", nearestModes);
  if (n.opset >= 18 && n.attrInt("antialias", 0))
    n.refuse("attribute 'antialias' is 1, expected 0");
  Ints axes = n.opset >= 18 ? n.attrInts("axes") : Ints();
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i)
      axes.push_back(i);
  n.axes(axes, rank);
  for (int64_t &axis : axes)
    axis = n.axis(axis, rank);
  // An empty list stands for an absent one; opset 11 has no other way to leave scales out.
  bool bySizes = n.has(3);
  if (bySizes) {
    Dims wanted = n.exprs(3, "sizes");
    if (wanted.size() != axes.size())
      n.refuse("has " + Twine(wanted.size()) + " sizes, expected " + Twine(axes.size()));
    for (auto [axis, size] : llvm::zip_equal(axes, wanted)) {
      if (nn::getConstant(size).value_or(1) < 1)
        n.refuse("its sizes " + n.text(wanted) + " hold a number that is not positive");
      s.sizes[axis] = size;
    }
    keepAspect(n, x, s, axes, wanted);
  } else {
    if (!n.has(2))
      n.refuse("needs scales or sizes");
    std::vector<float> scales = n.floats(2, "scales");
    checkScales(n, scales, axes.size());
    s.scales.assign(rank, 1);
    for (auto [axis, scale] : llvm::zip_equal(axes, scales)) {
      s.scales[axis] = scale;
      s.sizes[axis] = scaled(n, s.sizes[axis], scale, x);
    }
  }
  if (s.coordinate == Coordinate::tf_crop_and_resize) {
    std::vector<float> roi = n.floats(1, "roi");
    if (roi.size() != 2 * axes.size())
      n.refuse("has " + Twine(roi.size()) + " roi values, expected " + Twine(2 * axes.size()));
    s.roi.assign(2 * rank, 0);
    std::fill(s.roi.begin() + rank, s.roi.end(), 1.0f);
    for (size_t i = 0; i < axes.size(); ++i) {
      s.roi[axes[i]] = roi[i];
      s.roi[rank + axes[i]] = roi[axes.size() + i];
    }
    // The region's size counts: floor(size * (end - start) * scale).
    if (!bySizes)
      for (int64_t axis : axes) {
        int64_t in = n.staticDims(x, axis, axis + 1, "tf_crop_and_resize")[0];
        double size = std::floor(float(in) * (s.roi[rank + axis] - s.roi[axis]) * s.scales[axis]);
        constexpr double most = 1e18; // fits an integer, and no tensor
        s.sizes[axis] = n.dim(size > 0 ? int64_t(std::min(size, most)) : 0);
      }
  }
  n.set(0, resample(n, x, s));
}

void gridSample(Node &n) {
  Value x = n.in(0), grid = n.in(1);
  if (Node::rankOf(x) != 4)
    n.refuse("its input is " + n.text(x) + ", expected rank 4");
  nn::GridSampleOp::Properties p;
  constexpr std::pair<const char *, Mode> modes[] = {{"bilinear", Mode::linear}, {"linear", Mode::linear},
                                                     {"nearest", Mode::nearest}, {"bicubic", Mode::cubic},
                                                     {"cubic", Mode::cubic}};
  constexpr std::pair<const char *, nn::SamplePadding> paddings[] = {{"zeros", nn::SamplePadding::zeros},
                                                                     {"border", nn::SamplePadding::border},
                                                                     {"reflection", nn::SamplePadding::reflection}};
  p.mode = nn::ResizeModeAttr::get(n.context(), choose<Mode>(n, "mode", n.opset < 20 ? "bilinear" : "linear", modes));
  p.padding = nn::SamplePaddingAttr::get(n.context(), choose<nn::SamplePadding>(n, "padding_mode", "zeros", paddings));
  if (n.attrInt("align_corners", 0))
    p.align_corners = n.builder().getUnitAttr();
  n.set(0, toChannelsFirst(n, n.make1<nn::GridSampleOp>({toChannelsLast(n, x), n.cast(grid, Node::elementOf(x))}, p)));
}

constexpr OpRow rows[] = {
    {"", "Upsample", upsample},
    {"", "Resize", resize},
    {"", "GridSample", gridSample},
};

} // namespace

ArrayRef<OpRow> resampleRows() { return rows; }

} // namespace ajour::onnx_import
