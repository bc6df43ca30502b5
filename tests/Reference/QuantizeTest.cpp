//===- QuantizeTest.cpp - quantised integers ---------------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;
using Int8s = std::vector<int8_t>;
using Int32s = std::vector<int32_t>;
static const float notANumber = std::numeric_limits<float>::quiet_NaN();

TEST(Quantize, HalvesToEvenAndSaturation) {
  EXPECT_EQ(eval<int8_t>("nn.quantize %0 {scales = array<f32: 0.5>, zero_points = array<i32: 3>} : (tensor<7xf32>) -> "
                         "tensor<7xi8>",
                         {tensor<float>({7}, {0.25f, 0.75f, -0.25f, -0.75f, 1000, -1000, notANumber})}),
            (Int8s{3, 5, 3, 1, 127, -128, -128}));
}

TEST(Quantize, HalfPrecisionOperand) {
  // 0.05001831 / 0.09997559 is above one half; 2.5 is a tie.
  auto quantize = [](const std::string &scale, std::vector<uint16_t> bits) {
    std::string type = "tensor<" + std::to_string(bits.size());
    return eval<int8_t>("nn.quantize %0 {scales = array<f32: " + scale + ">, zero_points = array<i32: 0>} : (" + type +
                            "xf16>) -> " + type + "xi8>",
                        {tensor<uint16_t>({int64_t(bits.size())}, bits, AJOUR_F16)});
  };
  EXPECT_EQ(quantize("0.0999755859375", {0x2a67, 0xaa67}), (Int8s{1, -1}));
  EXPECT_EQ(quantize("1.0", {0x4100, 0xc100}), (Int8s{2, -2}));
}

TEST(Quantize, PerChannel) {
  EXPECT_EQ(eval<uint8_t>("nn.quantize %0 {scales = array<f32: 1.0, 0.5>, zero_points = array<i32: 0, 128>, axis = 0 : "
                          "i64} : (tensor<2x2xf32>) -> tensor<2x2xui8>",
                          {tensor<float>({2, 2}, {1, 2, 1, -2})}),
            (std::vector<uint8_t>{1, 2, 130, 124}));
}

TEST(Quantize, WideResultsSaturate) {
  EXPECT_EQ(eval<int32_t>("nn.quantize %0 {scales = array<f32: 1.0>, zero_points = array<i32: 0>} : (tensor<2xf32>) -> "
                          "tensor<2xi32>",
                          {tensor<float>({2}, {1e20f, -1e20f})}),
            (Int32s{INT32_MAX, INT32_MIN}));
}

TEST(Dequantize, PerTensorAndPerChannel) {
  EXPECT_EQ(eval<float>("nn.dequantize %0 {scales = array<f32: 0.5>, zero_points = array<i32: -1>} : (tensor<3xi8>) -> "
                        "tensor<3xf32>",
                        {tensor<int8_t>({3}, {-128, -1, 127})}),
            (Floats{-63.5f, 0, 64}));
  // A channel that is not the first dimension (depthwise filters).
  EXPECT_EQ(eval<float>("nn.dequantize %0 {scales = array<f32: 1.0, 10.0>, zero_points = array<i32: 0, 1>, axis = -1 : "
                        "i64} : (tensor<2x2xui8>) -> tensor<2x2xf32>",
                        {range<uint8_t>({2, 2}, 1)}),
            (Floats{1, 10, 3, 30}));
}

//===----------------------------------------------------------------------===//
// requantize
//===----------------------------------------------------------------------===//

/// The fixed-point form of a 32-bit accumulator without limits of its own.
static Int32s requantize32(Int32s x, int32_t multiplier, int32_t shift) {
  std::string type = "tensor<" + std::to_string(x.size()) + "xi32>";
  return eval<int32_t>("nn.requantize %0 {multipliers = array<i32: " + std::to_string(multiplier) +
                           ">, shifts = array<i32: " + std::to_string(shift) +
                           ">, qmin = -2147483648 : i32, qmax = 2147483647 : i32} : (" + type + ") -> " + type,
                       {tensor<int32_t>({int64_t(x.size())}, x)});
}

TEST(Requantize, FixedPoint32) {
  // Worked out from the definition with exact integers.
  Int32s x{0, 1, -1, 5, -5, 1000, -1000, 123456, -123456, INT32_MAX, INT32_MIN, 3, -3};
  EXPECT_EQ(requantize32(x, 1 << 30, 0),
            (Int32s{0, 1, 0, 3, -2, 500, -500, 61728, -61728, 1073741824, -1073741824, 2, -1}));
  EXPECT_EQ(requantize32(x, 1 << 30, -1),
            (Int32s{0, 1, 0, 2, -1, 250, -250, 30864, -30864, 536870912, -536870912, 1, -1}));
  EXPECT_EQ(requantize32(x, 1518500250, -7), (Int32s{0, 0, 0, 0, 0, 6, -6, 682, -682, 11863283, -11863283, 0, 0}));
  EXPECT_EQ(requantize32(x, INT32_MAX, 3), (Int32s{0, 8, -8, 40, -40, 8000, -8000, 987648, -987648, -8, 0, 24, -24}));
}

TEST(Requantize, RightShiftRoundsHalvesAwayFromZero) {
  EXPECT_EQ(requantize32({6, -6, 10, -10, 12, -12}, INT32_MAX, -2), (Int32s{2, -2, 3, -3, 3, -3}));
}

TEST(Requantize, LowestTimesLowestSaturates) {
  EXPECT_EQ(requantize32({INT32_MIN}, INT32_MIN, 0), (Int32s{INT32_MAX}));
}

static Int32s requantize64(std::vector<int64_t> x, int32_t multiplier, int32_t shift, const char *limits) {
  std::string size = std::to_string(x.size());
  return eval<int32_t>("nn.requantize %0 {multipliers = array<i32: " + std::to_string(multiplier) +
                           ">, shifts = array<i32: " + std::to_string(shift) + ">, " + limits + "} : (tensor<" + size +
                           "xi64>) -> tensor<" + size + "xi32>",
                       {tensor<int64_t>({int64_t(x.size())}, x)});
}

TEST(Requantize, FixedPoint64) {
  const char *limits = "qmin = -2147483648 : i32, qmax = 2147483647 : i32";
  std::vector<int64_t> x{0, 1, -1, 5, -5, 1000, -1000, 1000000000, -1000000000};
  EXPECT_EQ(requantize64(x, 1 << 30, 0, limits), (Int32s{0, 1, 0, 3, -2, 500, -500, 500000000, -500000000}));
  EXPECT_EQ(requantize64(x, 1518500250, -7, limits), (Int32s{0, 0, 0, 0, 0, 6, -6, 5524158, -5524158}));
  EXPECT_EQ(requantize64({int64_t(1) << 40, -(int64_t(1) << 40)}, INT32_MAX, -31, limits), (Int32s{512, -512}));
  // Multipliers that would round up to 2^15 stay below.
  EXPECT_EQ(requantize64({1, 1000, -1000}, 0x7fff0000, 7, limits), (Int32s{128, 127996, -127996}));
  EXPECT_EQ(
      requantize64({int64_t(1) << 40, -(int64_t(1) << 40)}, 1 << 30, 0, "qmin = -32768 : i32, qmax = 32767 : i32"),
      (Int32s{32767, -32768}));
}

TEST(Requantize, FloatForm) {
  EXPECT_EQ(
      eval<int8_t>("nn.requantize %0 {scales = array<f32: 0.5>, zero_point = 1 : i32, qmin = -128 : i32, qmax = 6 "
                   ": i32} : (tensor<6xi32>) -> tensor<6xi8>",
                   {tensor<int32_t>({6}, {1, 3, -1, 100, -1000, 5})}),
      (Int8s{1, 3, 1, 6, -128, 3}));
}

TEST(Requantize, QuotientForm) {
  // Halves to even after the division: .5, 1.5, -.5 and 2.5 (5 * .25 / .5).
  EXPECT_EQ(eval<int8_t>("nn.requantize %0 {scales = array<f32: 0.25>, divisor = 0.5 : f32, zero_point = 1 : i32, qmin "
                         "= -128 : i32, qmax = 6 : i32} : (tensor<6xi32>) -> tensor<6xi8>",
                         {tensor<int32_t>({6}, {1, 3, -1, 5, -1000, 100})}),
            (Int8s{1, 3, 1, 3, -128, 6}));
  // Each step is rounded to f32: 5 * 0.1f is .5 and .5 / 0.2f is 2.5, halfway, though neither factor is exact.
  EXPECT_EQ(eval<int8_t>("nn.requantize %0 {scales = array<f32: 0.1>, divisor = 0.2 : f32, qmin = -128 : i32, qmax = "
                         "127 : i32} : (tensor<3xi32>) -> tensor<3xi8>",
                         {tensor<int32_t>({3}, {5, 15, -25})}),
            (Int8s{2, 8, -12}));
}

TEST(Requantize, PerChannelOfTheLastAxisAndZeroPoint) {
  EXPECT_EQ(eval<int8_t>("nn.requantize %0 {multipliers = array<i32: 1073741824, 1073741824>, shifts = array<i32: 1, "
                         "2>, zero_point = -5 : i32, qmin = -128 : i32, qmax = 127 : i32} : (tensor<2x2xi32>) -> "
                         "tensor<2x2xi8>",
                         {tensor<int32_t>({2, 2}, {1, 1, 10, 100})}),
            (Int8s{-4, -3, 5, 127}));
}

TEST(Requantize, ShiftsOutsideTheWordAreRefused) {
  expectError("nn.requantize %0 {multipliers = array<i32: 1>, shifts = array<i32: 40>, qmin = -128 : i32, qmax = 127 : "
              "i32} : (tensor<1xi32>) -> tensor<1xi8>",
              {range<int32_t>({1})}, "shift 40 is outside [-31, 31]");
  expectError("nn.requantize %0 {multipliers = array<i32: 1>, shifts = array<i32: 15>, qmin = -128 : i32, qmax = 127 : "
              "i32} : (tensor<1xi64>) -> tensor<1xi8>",
              {range<int64_t>({1})}, "shift 15 is outside [-31, 14]");
}

TEST(Lookup, SignedAndUnsignedOperands) {
  HostTensor table = range<int8_t>({256}, -128);
  EXPECT_EQ(eval<int8_t>("nn.lookup %0, %1 : (tensor<3xi8>, tensor<256xi8>) -> tensor<3xi8>",
                         {tensor<int8_t>({3}, {-128, 0, 127}), table}),
            (Int8s{-128, 0, 127}));
  EXPECT_EQ(eval<float>("nn.lookup %0, %1 : (tensor<2xui8>, tensor<256xf32>) -> tensor<2xf32>",
                        {tensor<uint8_t>({2}, {0, 255}), range<float>({256})}),
            (Floats{0, 255}));
}
