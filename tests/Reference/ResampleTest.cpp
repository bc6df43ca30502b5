//===- ResampleTest.cpp - resize and grid_sample -------------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;

/// Resizes a matrix.
static Floats resize(HostTensor x, std::vector<int64_t> out, const std::string &mode, const std::string &coordinates,
                     const std::string &nearest = "round_prefer_floor", const std::string &scales = "",
                     const std::string &extra = "") {
  auto type = [](const std::vector<int64_t> &shape) {
    return "tensor<" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "xf32>";
  };
  std::string scaleText = scales.empty() ? "array<f32>" : "array<f32: " + scales + ">";
  return eval<float>("nn.resize %0 {mode = #nn.resize_mode<" + mode + ">, coordinate_mode = #nn.coordinate_mode<" +
                         coordinates + ">, nearest_mode = #nn.nearest_mode<" + nearest + ">, scales = " + scaleText +
                         extra + "} : (" + type(x.shape) + ") -> " + type(out),
                     {x});
}

TEST(Resize, LinearCoordinateModes) {
  HostTensor x = tensor<float>({2, 2}, {6, 7, 11, 12});
  auto firstRow = [&](const std::string &mode) {
    Floats y = resize(x, {4, 4}, "linear", mode);
    y.resize(4);
    return y;
  };
  expectNear(firstRow("half_pixel"), {6, 6.25f, 6.75f, 7});
  expectNear(firstRow("align_corners"), {6, 6.33333f, 6.66667f, 7});
  expectNear(firstRow("asymmetric"), {6, 6.5f, 7, 7});
  expectNear(resize(x, {4, 4}, "linear", "half_pixel"),
             {6, 6.25f, 6.75f, 7, 7.25f, 7.5f, 8, 8.25f, 9.75f, 10, 10.5f, 10.75f, 11, 11.25f, 11.75f, 12});
}

TEST(Resize, DownwardWithScales) {
  HostTensor x = range<float>({2, 4}, 1);
  expectNear(resize(x, {1, 2}, "linear", "half_pixel", "round_prefer_floor", "0.6, 0.6"), {2.6666667f, 4.3333333f});
  expectNear(resize(x, {1, 2}, "linear", "align_corners", "round_prefer_floor", "0.6, 0.6"), {1, 3.142857f});
  EXPECT_EQ(resize(x, {1, 3}, "nearest", "half_pixel"), (Floats{1, 2, 4}));
}

TEST(Resize, NearestModes) {
  // Asymmetric 2 -> 4 reads coordinates 0, 0.5, 1, 1.5.
  HostTensor x = range<float>({1, 2}, 1);
  EXPECT_EQ(resize(x, {1, 4}, "nearest", "asymmetric", "round_prefer_floor"), (Floats{1, 1, 2, 2}));
  EXPECT_EQ(resize(x, {1, 4}, "nearest", "asymmetric", "round_prefer_ceil"), (Floats{1, 2, 2, 2}));
  EXPECT_EQ(resize(x, {1, 4}, "nearest", "asymmetric", "floor"), (Floats{1, 1, 2, 2}));
  EXPECT_EQ(resize(x, {1, 4}, "nearest", "asymmetric", "ceil"), (Floats{1, 2, 2, 2}));
}

TEST(Resize, HalfPixelForNearest) {
  // floor((i + 0.5) in / out) = 0, 1, 3 for 5 -> 3.
  EXPECT_EQ(resize(range<float>({1, 5}), {1, 3}, "nearest", "tf_half_pixel_for_nn", "floor"), (Floats{0, 2, 4}));
  EXPECT_EQ(resize(range<float>({1, 4}), {1, 3}, "nearest", "tf_half_pixel_for_nn", "floor"), (Floats{0, 2, 3}));
}

TEST(Resize, SizesGiveExactCoordinates) {
  // 6 -> 10: index 5 reads 5 * 6 / 10 = 3 exactly, though 6/10 and 10/6 are not numbers of any format.
  Floats y = resize(range<float>({1, 6}), {1, 10}, "nearest", "asymmetric", "floor");
  EXPECT_EQ(y, (Floats{0, 0, 1, 1, 2, 3, 3, 4, 4, 5}));
}

TEST(Resize, LengthOneReadsTheStart) {
  HostTensor x = range<float>({1, 4}, 1);
  EXPECT_EQ(resize(x, {1, 1}, "linear", "pytorch_half_pixel"), (Floats{1}));
  EXPECT_EQ(resize(x, {1, 1}, "cubic", "pytorch_half_pixel"), (Floats{1}));
  EXPECT_EQ(resize(x, {1, 1}, "linear", "align_corners"), (Floats{1}));
  EXPECT_EQ(resize(x, {1, 1}, "linear", "half_pixel"), (Floats{2.5f}));
}

TEST(Resize, CubicKeepsLinesInside) {
  // Keys' kernel reproduces straight lines away from the border: coordinate 3.25 and 3.75 of 0 1 2 ... 7.
  Floats y = resize(range<float>({1, 8}), {1, 16}, "cubic", "half_pixel", "floor", "", ", cubic_a = -0.5 : f32");
  EXPECT_NEAR(y[7], 3.25f, 1e-5f);
  EXPECT_NEAR(y[8], 3.75f, 1e-5f);
}

TEST(Resize, CubicAtTheBorder) {
  // Coordinate -0.25 of 1 2 3 4: weights of -2 .. 1 at fraction 0.75 with a = -0.75.
  HostTensor x = range<float>({1, 4}, 1);
  float w0 = -0.03515625f, w1 = 0.26171875f, w2 = 0.87890625f, w3 = -0.10546875f;
  EXPECT_NEAR(resize(x, {1, 8}, "cubic", "half_pixel")[0], w0 + w1 + w2 + 2 * w3, 1e-6f);
  EXPECT_NEAR(resize(x, {1, 8}, "cubic", "half_pixel", "floor", "", ", exclude_outside")[0], (w2 + 2 * w3) / (w2 + w3),
              1e-6f);
}

TEST(Resize, CropAndExtrapolate) {
  // Width: coordinates from -0.5 * 3 to 1 * 3 in 4 steps of 1.5: -1.5, 0, 1.5, 3.
  EXPECT_EQ(resize(range<float>({1, 4}), {1, 4}, "linear", "tf_crop_and_resize", "floor", "",
                   ", roi = array<f32: 0.0, -0.5, 1.0, 1.0>, extrapolation = 9.0 : f32"),
            (Floats{9, 0, 1.5f, 3}));
}

TEST(Resize, SymmetricHalfPixel) {
  // 5 * 0.5 = 2.5 rounded down to 2: half of what is cut goes to each end. Coordinates 1 and 3.
  expectNear(resize(range<float>({1, 5}), {1, 2}, "linear", "half_pixel_symmetric", "floor", "1.0, 0.5"), {1, 3});
}

TEST(Resize, IntegersRoundHalvesToEvenAndSaturate) {
  EXPECT_EQ(eval<uint8_t>("nn.resize %0 {mode = #nn.resize_mode<linear>, coordinate_mode = "
                          "#nn.coordinate_mode<asymmetric>, nearest_mode = #nn.nearest_mode<floor>, scales = "
                          "array<f32>} : (tensor<4xui8>) -> tensor<8xui8>",
                          {tensor<uint8_t>({4}, {0, 1, 2, 255})}),
            (std::vector<uint8_t>{0, 0, 1, 2, 2, 128, 255, 255}));
  EXPECT_EQ(eval<uint8_t>("nn.resize %0 {mode = #nn.resize_mode<cubic>, coordinate_mode = "
                          "#nn.coordinate_mode<half_pixel>, nearest_mode = #nn.nearest_mode<floor>, scales = "
                          "array<f32>} : (tensor<2xui8>) -> tensor<4xui8>",
                          {tensor<uint8_t>({2}, {0, 255})}),
            (std::vector<uint8_t>{0, 58, 197, 255}));
}

TEST(Resize, NearestCopiesWideIntegers) {
  EXPECT_EQ(eval<int64_t>("nn.resize %0 {mode = #nn.resize_mode<nearest>, coordinate_mode = "
                          "#nn.coordinate_mode<asymmetric>, nearest_mode = #nn.nearest_mode<floor>, scales = "
                          "array<f32>} : (tensor<1xi64>) -> tensor<2xi64>",
                          {tensor<int64_t>({1}, {INT64_MAX})}),
            (std::vector<int64_t>{INT64_MAX, INT64_MAX}));
}

TEST(Resize, EmptyOperandIsRefused) {
  expectError("nn.resize %0 {mode = #nn.resize_mode<nearest>, coordinate_mode = #nn.coordinate_mode<asymmetric>, "
              "nearest_mode = #nn.nearest_mode<floor>, scales = array<f32>} : (tensor<0xf32>) -> tensor<2xf32>",
              {range<float>({0})}, "an empty operand has nothing to resample");
}

//===----------------------------------------------------------------------===//
// grid_sample
//===----------------------------------------------------------------------===//

/// Samples the row 0 1 2 3 at the given x.
static Floats sample(const std::string &mode, const std::string &padding, Floats x, bool alignCorners = false) {
  Floats grid;
  for (float value : x) {
    grid.push_back(value);
    grid.push_back(0);
  }
  std::string count = std::to_string(x.size());
  return eval<float>("nn.grid_sample %0, %1 {mode = #nn.resize_mode<" + mode + ">, padding = #nn.sample_padding<" +
                         padding + ">" + (alignCorners ? ", align_corners" : "") +
                         "} : (tensor<1x1x4x1xf32>, tensor<1x1x" + count + "x2xf32>) -> tensor<1x1x" + count +
                         "x1xf32>",
                     {range<float>({1, 1, 4, 1}), tensor<float>({1, 1, int64_t(x.size()), 2}, grid)});
}

TEST(GridSample, LinearAndAlignment) {
  // Half-pixel: coordinate 2 x + 1.5; aligned: 1.5 x + 1.5.
  EXPECT_EQ(sample("linear", "zeros", {0, 0.5f, -1}), (Floats{1.5f, 2.5f, 0}));
  EXPECT_EQ(sample("linear", "zeros", {1}), (Floats{1.5f}));
  EXPECT_EQ(sample("linear", "zeros", {-1, 0, 1}, true), (Floats{0, 1.5f, 3}));
}

TEST(GridSample, PaddingModes) {
  Floats far{-2, 2}; // coordinates -2.5 and 5.5
  EXPECT_EQ(sample("linear", "zeros", far), (Floats{0, 0}));
  EXPECT_EQ(sample("linear", "border", far), (Floats{0, 3}));
  EXPECT_EQ(sample("linear", "reflection", far), (Floats{1.5f, 1.5f}));
  EXPECT_EQ(sample("linear", "reflection", far, true), (Floats{1.5f, 1.5f}));
}

TEST(GridSample, NearestRoundsHalvesToEven) {
  // Coordinates 0.5, 1.5, 2.5, 3.5; the last lies on the edge of the image.
  EXPECT_EQ(sample("nearest", "border", {-0.5f, 0, 0.5f, 1}), (Floats{0, 2, 2, 3}));
  EXPECT_EQ(sample("nearest", "zeros", {1}), (Floats{0}));
}

TEST(GridSample, CubicReproducesTheElements) { expectNear(sample("cubic", "border", {-0.25f, 0.25f}), {1, 2}, 1e-6f); }

TEST(GridSample, NoCoordinateReadsOutside) {
  float inf = std::numeric_limits<float>::infinity(), notANumber = std::numeric_limits<float>::quiet_NaN();
  for (const char *mode : {"nearest", "linear", "cubic"})
    for (const char *padding : {"zeros", "border", "reflection"})
      EXPECT_EQ(sample(mode, padding, {inf, -inf, notANumber, 1e38f, -1e38f}).size(), 5u) << mode << padding;
}

TEST(GridSample, RowsChannelsAndBatches) {
  // Two images of 2 x 1 x 2; y = -1 and 1 are the rows when corners are aligned.
  EXPECT_EQ(eval<float>("nn.grid_sample %0, %1 {mode = #nn.resize_mode<linear>, padding = #nn.sample_padding<zeros>, "
                        "align_corners} : (tensor<2x2x1x2xf32>, tensor<2x1x1x2xf32>) -> tensor<2x1x1x2xf32>",
                        {range<float>({2, 2, 1, 2}), tensor<float>({2, 1, 1, 2}, {0, -1, 0, 1})}),
            (Floats{0, 1, 6, 7}));
}

TEST(GridSample, EmptyImageIsRefused) {
  expectError("nn.grid_sample %0, %1 {mode = #nn.resize_mode<linear>, padding = #nn.sample_padding<zeros>} : "
              "(tensor<1x0x1x1xf32>, tensor<1x1x1x2xf32>) -> tensor<1x1x1x1xf32>",
              {range<float>({1, 0, 1, 1}), range<float>({1, 1, 1, 2})}, "an empty image has nothing to sample");
}
