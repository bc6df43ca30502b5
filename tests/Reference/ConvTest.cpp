//===- ConvTest.cpp - matrix products, convolutions, pooling -------------------------------===//
#include "Reference/Harness.h"

#include <random>

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;
using Int32s = std::vector<int32_t>;

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

TEST(Matmul, BiasAndTransposes) {
  HostTensor a = range<float>({2, 3}), b = range<float>({3, 2}), bias = tensor<float>({2}, {100, 200});
  Floats expected{110, 213, 128, 240};
  EXPECT_EQ(eval<float>("nn.matmul %0, %1, %2 : (tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>",
                        {a, b, bias}),
            expected);
  EXPECT_EQ(eval<float>("nn.matmul %0, %1, %2 {transpose_lhs, transpose_rhs} : (tensor<3x2xf32>, tensor<2x3xf32>, "
                        "tensor<2xf32>) -> tensor<2x2xf32>",
                        {tensor<float>({3, 2}, {0, 3, 1, 4, 2, 5}), tensor<float>({2, 3}, {0, 2, 4, 1, 3, 5}), bias}),
            expected);
}

TEST(Matmul, BatchesBroadcast) {
  EXPECT_EQ(eval<float>("nn.matmul %0, %1 : (tensor<2x1x1x2xf32>, tensor<2x2x1xf32>) -> tensor<2x2x1x1xf32>",
                        {range<float>({2, 1, 1, 2}), range<float>({2, 2, 1})}),
            (Floats{1, 3, 3, 13}));
}

TEST(Matmul, EmptySumIsTheBias) {
  EXPECT_EQ(eval<float>("nn.matmul %0, %1, %2 : (tensor<1x0xf32>, tensor<0x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>",
                        {range<float>({1, 0}), range<float>({0, 2}), range<float>({2}, 1)}),
            (Floats{1, 2}));
}

// Two rows of two values; experts 0, 1, 2 add, subtract and double the first; -1 is clamped to 0, 7 to 2.
TEST(ExpertMatmul, RowsMeetTheirExperts) {
  HostTensor weights = tensor<float>({3, 1, 2}, {1, 1, 1, -1, 2, 0}), chosen = tensor<int64_t>({2, 2}, {1, 7, -1, 2});
  EXPECT_EQ(eval<float>("nn.expert_matmul %0, %1, %2 : (tensor<2x1x2xf32>, tensor<3x1x2xf32>, tensor<2x2xi64>) -> "
                        "tensor<2x2x1xf32>",
                        {tensor<float>({2, 1, 2}, {1, 2, 5, 8}), weights, chosen}),
            (Floats{-1, 2, 13, 10}));
  EXPECT_EQ(eval<float>("nn.expert_matmul %0, %1, %2 : (tensor<2x2x2xf32>, tensor<3x1x2xf32>, tensor<2x2xi64>) -> "
                        "tensor<2x2x1xf32>",
                        {tensor<float>({2, 2, 2}, {1, 2, 3, 4, 5, 8, 7, 9}), weights, chosen}),
            (Floats{-1, 6, 13, 14}));
}

TEST(Matmul, HalfAccumulatesWide) {
  // 1024 products of 18 x 18 = 331776 exceed f16; half of them with the other sign leave 0.
  std::vector<uint16_t> x(1024, 0x4c80), y(1024, 0x4c80);
  for (size_t i = 512; i < y.size(); ++i)
    y[i] |= 0x8000;
  EXPECT_EQ(eval<uint16_t>("nn.matmul %0, %1 : (tensor<1x1024xf16>, tensor<1024x1xf16>) -> tensor<1x1xf16>",
                           {tensor({1, 1024}, x, AJOUR_F16), tensor({1024, 1}, y, AJOUR_F16)}),
            (std::vector<uint16_t>{0}));
}

TEST(Matmul, GroupsOfLhsAreRoundedToEightBits) {
  // The first group: factor 127 / 254, 3 * 0.5 and 1 * 0.5 lie halfway and go to 2 and 0, which stand for 4 and 0. The second: 127 and -63.5 / 127 * 127.
  HostTensor eye = tensor<float>({5, 5}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(eval<float>("nn.matmul %0, %1 {lhs_group = 3 : i64} : (tensor<2x5xf32>, tensor<5x5xf32>) -> tensor<2x5xf32>",
                        {tensor<float>({2, 5}, {254, 3, 1, 127, -63.6f, 0, 0, 0, 0x1p-121f, 0}), eye}),
            (Floats{254, 4, 0, 127, -64, 0, 0, 0, 0, 0}));
  // 1 / 127 as f16 is 0x2008 = 0.0078735..., so 1 becomes 127 * 0x2008.
  EXPECT_EQ(eval<float>("nn.matmul %0, %1 {lhs_group = 5 : i64, lhs_half_scales} : (tensor<1x5xf32>, tensor<5x5xf32>) -> tensor<1x5xf32>",
                        {tensor<float>({1, 5}, {1, -1, 0, 0, 0}), eye}),
            (Floats{127 * 0x1.02p-7f, -127 * 0x1.02p-7f, 0, 0, 0}));
}

TEST(Matmul, IntegersWithZeroPoints) {
  // (1+1, 2+1) x ((10-1, 20-5), (30-1, 40-5)), per-column zero points.
  EXPECT_EQ(eval<int32_t>("nn.matmul %0, %1, %2 {lhs_zero_point = -1 : i32, rhs_zero_points = array<i32: 1, 5>} : "
                          "(tensor<1x2xi8>, tensor<2x2xui8>, tensor<2xi32>) -> tensor<1x2xi32>",
                          {tensor<int8_t>({1, 2}, {1, 2}), tensor<uint8_t>({2, 2}, {10, 20, 30, 40}),
                           tensor<int32_t>({2}, {1000, -1000})}),
            (Int32s{1105, -865}));
}

TEST(Matmul, SixteenBitsSumIn64) {
  std::vector<int16_t> x(70000, -32768);
  std::vector<int8_t> y(70000, -128);
  EXPECT_EQ(eval<int64_t>("nn.matmul %0, %1 : (tensor<1x70000xi16>, tensor<70000x1xi8>) -> tensor<1x1xi64>",
                          {tensor({1, 70000}, x), tensor({70000, 1}, y)}),
            (std::vector<int64_t>{int64_t(70000) * 32768 * 128}));
}

TEST(Matmul, ThirtyTwoBitSumsWrap) {
  EXPECT_EQ(eval<int32_t>("nn.matmul %0, %0 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>",
                          {tensor<int32_t>({1, 1}, {65537})}),
            (Int32s{131073}));
}

//===----------------------------------------------------------------------===//
// conv against the seven loops of its definition
//===----------------------------------------------------------------------===//

namespace {
struct ConvCase {
  std::vector<int64_t> in, filter; ///< [N, spatial, C] and [O, window, C/groups]
  std::vector<int64_t> strides, dilations, low, high;
  int64_t groups = 1;
  std::vector<int64_t> outputPads; ///< not empty: transposed
};
} // namespace

static std::string join(const std::vector<int64_t> &values, const char *separator) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? separator : "") + std::to_string(values[i]);
  return text;
}
static std::string typeOf(const std::vector<int64_t> &shape, const std::string &element) {
  return "tensor<" + join(shape, "x") + "x" + element + ">";
}

static std::vector<int64_t> resultShape(const ConvCase &c) {
  std::vector<int64_t> shape = c.in;
  shape.back() = c.filter[0];
  for (size_t d = 0; d < c.strides.size(); ++d) {
    int64_t extent = c.dilations[d] * (c.filter[d + 1] - 1) + 1;
    shape[d + 1] = c.outputPads.empty()
                       ? (c.in[d + 1] + c.low[d] + c.high[d] - extent) / c.strides[d] + 1
                       : c.strides[d] * (c.in[d + 1] - 1) + extent - c.low[d] - c.high[d] + c.outputPads[d];
  }
  return shape;
}

static int64_t product(const std::vector<int64_t> &shape) {
  int64_t size = 1;
  for (int64_t s : shape)
    size *= s;
  return size;
}

/// The index of a flat position.
static std::vector<int64_t> indexOf(int64_t position, const std::vector<int64_t> &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d])
    index[d] = position % shape[d];
  return index;
}

/// Every (result, input, filter) triple that meets, straight from the definition.
template <typename Function> static void forEachProduct(const ConvCase &c, Function &&function) {
  std::vector<int64_t> out = resultShape(c);
  for (int64_t f = 0; f < product(c.filter); ++f)
    for (int64_t i = 0; i < product(c.in); ++i) {
      std::vector<int64_t> k = indexOf(f, c.filter), x = indexOf(i, c.in);
      int64_t group = k[0] / (c.filter[0] / c.groups);
      if (x.back() != group * c.filter.back() + k.back())
        continue;
      int64_t position = x[0];
      bool meets = true;
      for (size_t d = 0; d < c.strides.size() && meets; ++d) {
        int64_t y;
        if (c.outputPads.empty()) {
          int64_t scaled = x[d + 1] + c.low[d] - c.dilations[d] * k[d + 1]; // = stride y
          meets = scaled >= 0 && scaled % c.strides[d] == 0;
          y = scaled / c.strides[d];
        } else {
          y = c.strides[d] * x[d + 1] + c.dilations[d] * k[d + 1] - c.low[d];
        }
        meets = meets && y >= 0 && y < out[d + 1];
        position = position * out[d + 1] + y;
      }
      if (meets)
        function(position * out.back() + k[0], i, f);
    }
}

static std::string convText(const ConvCase &c, const std::string &in, const std::string &filter, const std::string &out,
                            const std::string &extra) {
  bool transposed = !c.outputPads.empty();
  std::string text = transposed ? "nn.conv_transpose" : "nn.conv";
  text += " %0, %1, %2 {strides = array<i64: " + join(c.strides, ", ") +
          ">, dilations = array<i64: " + join(c.dilations, ", ") + ">, pads_low = array<i64: " + join(c.low, ", ") +
          ">, pads_high = array<i64: " + join(c.high, ", ") + ">, groups = " + std::to_string(c.groups) + " : i64" +
          extra;
  if (transposed)
    text += ", output_pads = array<i64: " + join(c.outputPads, ", ") + ">";
  return text + "} : (" + typeOf(c.in, in) + ", " + typeOf(c.filter, filter) + ", " + typeOf({c.filter[0]}, out) +
         ") -> " + typeOf(resultShape(c), out);
}

template <typename T> static std::vector<T> randomValues(std::mt19937 &random, int64_t count, int low, int high) {
  std::uniform_int_distribution<int> distribution(low, high);
  std::vector<T> values(count);
  for (T &value : values)
    value = static_cast<T>(distribution(random));
  return values;
}

class ConvDefinition : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvDefinition, Float) {
  const ConvCase &c = GetParam();
  std::mt19937 random(1);
  // Small whole numbers: every sum is exact in f32.
  auto x = randomValues<float>(random, product(c.in), -9, 9), w = randomValues<float>(random, product(c.filter), -9, 9);
  auto bias = randomValues<float>(random, c.filter[0], -9, 9);
  Floats expected(product(resultShape(c)));
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = bias[i % bias.size()];
  forEachProduct(c, [&](int64_t y, int64_t i, int64_t f) { expected[y] += x[i] * w[f]; });
  EXPECT_EQ(eval<float>(convText(c, "f32", "f32", "f32", ""),
                        {tensor(c.in, x), tensor(c.filter, w), tensor({c.filter[0]}, bias)}),
            expected);
}

TEST_P(ConvDefinition, IntegersWithZeroPoints) {
  const ConvCase &c = GetParam();
  std::mt19937 random(2);
  auto x = randomValues<uint8_t>(random, product(c.in), 0, 255);
  auto w = randomValues<int8_t>(random, product(c.filter), -128, 127);
  auto bias = randomValues<int32_t>(random, c.filter[0], -999, 999);
  std::vector<int64_t> zeroPoints = randomValues<int64_t>(random, c.filter[0], -9, 9);
  Int32s expected(product(resultShape(c)));
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = bias[i % bias.size()];
  forEachProduct(c, [&](int64_t y, int64_t i, int64_t f) {
    expected[y] += (x[i] - 128) * (w[f] - int32_t(zeroPoints[y % zeroPoints.size()]));
  });
  std::string extra = ", lhs_zero_point = 128 : i32, rhs_zero_points = array<i32: " + join(zeroPoints, ", ") + ">";
  EXPECT_EQ(eval<int32_t>(convText(c, "ui8", "i8", "i32", extra),
                          {tensor(c.in, x), tensor(c.filter, w), tensor({c.filter[0]}, bias)}),
            expected);
}

INSTANTIATE_TEST_SUITE_P(
    Conv, ConvDefinition,
    testing::Values(ConvCase{{1, 5, 5, 3}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                    ConvCase{{2, 7, 6, 4}, {6, 3, 2, 2}, {2, 1}, {1, 2}, {0, 1}, {2, 0}, 2},
                    ConvCase{{1, 8, 8, 2}, {2, 3, 1, 1}, {2, 2}, {1, 1}, {0, 0}, {1, 0}, 2}, // depthwise, SAME
                    ConvCase{{1, 6, 6, 3}, {6, 3, 3, 1}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, 3}, // multiplier 2
                    ConvCase{{1, 7, 6, 3}, {32, 3, 3, 3}, {1, 1}, {2, 1}, {2, 1}, {2, 1}},   // dilation (2, 1)
                    ConvCase{{1, 5, 5, 4}, {4, 3, 3, 1}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, 4},
                    ConvCase{{1, 20, 4}, {3, 5, 4}, {3}, {2}, {4}, {1}},
                    ConvCase{{1, 4, 3, 5, 2}, {3, 2, 3, 2, 2}, {1, 1, 2}, {1, 1, 1}, {0, 1, 1}, {1, 1, 0}},
                    ConvCase{{3, 16, 16, 8}, {8, 1, 1, 8}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
                    ConvCase{{1, 12, 8}, {16, 3, 4}, {1}, {1}, {1}, {1}, 2}));
INSTANTIATE_TEST_SUITE_P(
    ConvTranspose, ConvDefinition,
    testing::Values(ConvCase{{1, 4, 4, 2}, {3, 3, 3, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1, {1, 1}},
                    ConvCase{{2, 3, 5, 4}, {4, 2, 3, 2}, {2, 3}, {2, 1}, {0, 1}, {1, 0}, 2, {0, 0}},
                    ConvCase{{1, 6, 3}, {6, 4, 1}, {2}, {1}, {1}, {1}, 3, {0}},
                    ConvCase{
                        {1, 2, 3, 2, 2}, {2, 2, 2, 2, 2}, {1, 2, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 1, {0, 1, 0}}));

TEST(Conv, PerChannelIntegerExample) {
  EXPECT_EQ(eval<int32_t>("nn.conv %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = "
                          "array<i64: 0, 0>, pads_high = array<i64: 0, 0>, lhs_zero_point = -1 : i32} : "
                          "(tensor<2x2x4x1xi8>, tensor<3x2x2x1xi8>) -> tensor<2x1x3x3xi32>",
                          {tensor<int8_t>({2, 2, 4, 1}, {1, 1, 1, 1, 3, 3, 3, 3, 1, 3, 5, 7, 1, 3, 5, 7}),
                           tensor<int8_t>({3, 2, 2, 1}, {2, 4, 6, 8, -2, 2, -2, 2, -2, -2, 2, 2})}),
            (Int32s{68, 0, 8, 68, 0, 8, 68, 0, 8, 64, 8, 0, 104, 8, 0, 144, 8, 0}));
}

TEST(ConvTranspose, SameUpperExample) {
  EXPECT_EQ(eval<float>("nn.conv_transpose %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low "
                        "= array<i64: 1, 1>, pads_high = array<i64: 1, 1>, output_pads = array<i64: 0, 0>} : "
                        "(tensor<1x2x2x1xf32>, tensor<1x3x3x1xf32>) -> tensor<1x2x2x1xf32>",
                        {tensor<float>({1, 2, 2, 1}, {2, 3, 4, 5}), range<float>({1, 3, 3, 1}, 2)}),
            (Floats{49, 63, 91, 105}));
}

TEST(ConvTranspose, OddPaddingAtTheEnd) {
  // 16 -> 32 with a window of 3 and stride 2: the one element too many is cut at the end.
  ConvCase c{{1, 16, 16, 1}, {1, 3, 3, 1}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}};
  Outcome outcome = runOp(convText(c, "f32", "f32", "f32", ""),
                          {range<float>(c.in, 1), range<float>(c.filter, 1), tensor<float>({1}, {0})});
  ASSERT_EQ(outcome.results.size(), 1u) << outcome.message;
  EXPECT_EQ(outcome.results[0].shape, (std::vector<int64_t>{1, 32, 32, 1}));
  EXPECT_EQ(outcome.results[0].as<float>()[0], 1); // x[0] w[0], nothing cut at the start
}

//===----------------------------------------------------------------------===//
// pooling
//===----------------------------------------------------------------------===//

/// A pooling over [1, spatial, 1]; `size` is the result's spatial shape.
template <typename T>
static std::vector<T> pool(const std::string &op, HostTensor x, std::vector<int64_t> window,
                           std::vector<int64_t> strides, std::vector<int64_t> low, std::vector<int64_t> high,
                           const std::string &flags, std::vector<int64_t> size) {
  std::vector<int64_t> ones(window.size(), 1), out{1};
  out.insert(out.end(), size.begin(), size.end());
  out.push_back(1);
  std::string element = ajour_element_name(x.elementType), type = typeOf(x.shape, element);
  return eval<T>("nn." + op + " %0 {window = array<i64: " + join(window, ", ") + ">, strides = array<i64: " +
                     join(strides, ", ") + ">, dilations = array<i64: " + join(ones, ", ") +
                     ">, pads_low = array<i64: " + join(low, ", ") + ">, pads_high = array<i64: " + join(high, ", ") +
                     ">" + flags + "} : (" + type + ") -> " + typeOf(out, element),
                 {std::move(x)});
}

TEST(AvgPool, CeilModeDividesByWhatThePaddedInputHas) {
  HostTensor x = range<float>({1, 4, 4, 1}, 1);
  expectNear(pool<float>("avg_pool", x, {3, 3}, {2, 2}, {1, 1}, {1, 1}, ", ceil_mode, count_include_pad", {3, 3}),
             {1.5556f, 3.3333f, 2, 6.3333f, 11, 6, 4.5f, 7.5f, 4});
  expectNear(pool<float>("avg_pool", x, {3, 3}, {2, 2}, {1, 1}, {1, 1}, ", ceil_mode", {3, 3}),
             {3.5f, 5, 6, 9.5f, 11, 12, 13.5f, 15, 16});
}

TEST(AvgPool, PaddingAtTheEnd) {
  EXPECT_EQ(pool<float>("avg_pool", tensor<float>({1, 2, 2, 1}, {1, 1, 1, 1}), {2, 2}, {1, 1}, {0, 0}, {1, 1},
                        ", count_include_pad", {2, 2}),
            (Floats{1, 0.5f, 0.5f, 0.25f}));
}

TEST(AvgPool, PaddingWiderThanTheWindow) {
  HostTensor x = range<float>({1, 5, 1}, 1);
  EXPECT_EQ(pool<float>("avg_pool", x, {2}, {2}, {2}, {3}, ", count_include_pad", {5}),
            (Floats{0, 1.5f, 3.5f, 2.5f, 0}));
  // Windows without an element give 0 rather than 0 / 0.
  EXPECT_EQ(pool<float>("avg_pool", x, {2}, {2}, {2}, {3}, "", {5}), (Floats{0, 1.5f, 3.5f, 5, 0}));
}

TEST(AvgPool, WindowBeyondTheInputIsDropped) {
  // ceil would give 3 windows; the third would start at 4, outside.
  EXPECT_EQ(pool<float>("avg_pool", range<float>({1, 3, 1}, 1), {1}, {2}, {0}, {0}, ", ceil_mode", {2}),
            (Floats{1, 3}));
}

TEST(AvgPool, IntegerHalvesRoundAwayFromZero) {
  EXPECT_EQ(pool<int8_t>("avg_pool", tensor<int8_t>({1, 6, 1}, {1, 2, -1, -2, 127, 127}), {2}, {2}, {0}, {0}, "", {3}),
            (std::vector<int8_t>{2, -2, 127}));
  EXPECT_EQ(pool<uint8_t>("avg_pool", tensor<uint8_t>({1, 4, 1}, {255, 254, 0, 1}), {2}, {2}, {0}, {0}, "", {2}),
            (std::vector<uint8_t>{255, 1}));
}

TEST(AvgPool, BooleansAreRefused) {
  expectError("nn.avg_pool %0 {window = array<i64: 1>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = "
              "array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x1xi1>) -> tensor<1x1x1xi1>",
              {booleans({1, 1, 1}, {1})}, "a mean has no meaning for bool");
}

TEST(MaxPool, PaddingNeverWins) {
  EXPECT_EQ(pool<float>("max_pool", tensor<float>({1, 3, 1}, {-5, -7, -3}), {2}, {2}, {1}, {0}, "", {2}),
            (Floats{-5, -3}));
  EXPECT_EQ(pool<int8_t>("max_pool", tensor<int8_t>({1, 2, 1}, {-128, -100}), {2}, {1}, {1}, {0}, "", {2}),
            (std::vector<int8_t>{-128, -100}));
}

TEST(MaxPool, DilationSkips) {
  EXPECT_EQ(eval<float>("nn.max_pool %0 {window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 2>, "
                        "pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x1xf32>) -> "
                        "tensor<1x2x1xf32>",
                        {tensor<float>({1, 4, 1}, {1, 9, 2, 3})}),
            (Floats{2, 9}));
}
