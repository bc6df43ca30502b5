//===- WeightsTest.cpp - weights stored in few bits --------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;
static const std::string grouped = "nn.dequantize_grouped ", codebook = "nn.dequantize_codebook ";

TEST(DequantizeGrouped, TheLastGroupIsShort) {
  EXPECT_EQ(eval<float>(grouped + "%0, %1, %2 {axis = 1 : i64, group = 2 : i64, bits = 4 : i64} : (tensor<2x3xi8>, "
                                  "tensor<2x2xf32>, tensor<2x2xi8>) -> tensor<2x3xf32>",
                        {tensor<int8_t>({2, 3}, {1, 1, 1, 1, 1, 1}), tensor<float>({2, 2}, {1, 2, 3, 4}),
                         tensor<int8_t>({2, 2}, {0, 0, 0, 1})}),
            (Floats{1, 1, 2, 3, 3, 0}));
}

TEST(DequantizeGrouped, AlongTheFirstAxis) {
  EXPECT_EQ(eval<float>(grouped + "%0, %1 {axis = 0 : i64, group = 2 : i64} : (tensor<3x2xi8>, tensor<2x2xf32>) -> "
                                  "tensor<3x2xf32>",
                        {tensor<int8_t>({3, 2}, {1, 1, 1, 1, -1, 1}), tensor<float>({2, 2}, {1, 2, 3, 4})}),
            (Floats{1, 2, 1, 2, -3, 4}));
}

TEST(DequantizeGrouped, PerChannelAndPerTensor) {
  // Dimensions of 1 among the parameters are shared.
  EXPECT_EQ(eval<float>(grouped + "%0, %1, %2 {axis = 0 : i64, group = 1 : i64} : (tensor<2x2xui8>, tensor<2x1xf32>, "
                                  "tensor<2x1xui8>) -> tensor<2x2xf32>",
                        {tensor<uint8_t>({2, 2}, {0, 255, 128, 129}), tensor<float>({2, 1}, {0.5f, 10}),
                         tensor<uint8_t>({2, 1}, {1, 128})}),
            (Floats{-0.5f, 127, 0, 10}));
  EXPECT_EQ(eval<float>(grouped + "%0, %1 {axis = 0 : i64, group = 2 : i64, bits = 2 : i64} : (tensor<2x2xi8>, "
                                  "tensor<1x1xf32>) -> tensor<2x2xf32>",
                        {tensor<int8_t>({2, 2}, {-2, -1, 0, 1}), tensor<float>({1, 1}, {3})}),
            (Floats{-6, -3, 0, 3}));
}

TEST(DequantizeGrouped, RealZeroPointsAndHalfPrecision) {
  // Scales 0.5 and 2, zero points 1.5 and -0.25, as f16.
  EXPECT_EQ(eval<float>(grouped + "%0, %1, %2 {axis = 1 : i64, group = 1 : i64} : (tensor<1x2xui8>, tensor<1x2xf16>, "
                                  "tensor<1x2xf16>) -> tensor<1x2xf32>",
                        {tensor<uint8_t>({1, 2}, {3, 7}), tensor<uint16_t>({1, 2}, {0x3800, 0x4000}, AJOUR_F16),
                         tensor<uint16_t>({1, 2}, {0x3e00, 0xb400}, AJOUR_F16)}),
            (Floats{0.75f, 14.5f}));
  // 3 * 0.333251953125 lies halfway between 1 - 2^-11 and 1, which is even; 7 * it rounds to 2.33203125.
  EXPECT_EQ(eval<uint16_t>(grouped + "%0, %1 {axis = 0 : i64, group = 2 : i64} : (tensor<2xi8>, tensor<1xf16>) -> "
                                     "tensor<2xf16>",
                           {tensor<int8_t>({2}, {3, 7}), tensor<uint16_t>({1}, {0x3555}, AJOUR_F16)}),
            (std::vector<uint16_t>{0x3c00, 0x40aa}));
}

TEST(DequantizeGrouped, OffsetsAreAdded) {
  EXPECT_EQ(eval<float>(grouped + "%0, %1, %2 {axis = 1 : i64, group = 2 : i64, offsets} : (tensor<1x3xui8>, tensor<1x2xf32>, "
                                  "tensor<1x2xf32>) -> tensor<1x3xf32>",
                        {tensor<uint8_t>({1, 3}, {1, 2, 3}), tensor<float>({1, 2}, {2, 0}), tensor<float>({1, 2}, {-0.5f, 7})}),
            (Floats{1.5f, 3.5f, 7}));
}

TEST(DequantizeCodebook, EntriesOfTheTensorAndPerChannel) {
  EXPECT_EQ(eval<float>(codebook + "%0, %1 : (tensor<2x2xui8>, tensor<3xf32>) -> tensor<2x2xf32>",
                        {tensor<uint8_t>({2, 2}, {0, 1, 2, 200}), tensor<float>({3}, {-1, 0, 5})}),
            (Floats{-1, 0, 5, 5}));
  EXPECT_EQ(eval<float>(codebook + "%0, %1 : (tensor<2x2xui8>, tensor<1x2x2xf32>) -> tensor<2x2xf32>",
                        {tensor<uint8_t>({2, 2}, {0, 1, 1, 0}), tensor<float>({1, 2, 2}, {1, 2, 10, 20})}),
            (Floats{1, 20, 2, 10}));
}

TEST(DequantizeCodebook, ScalesInGroups) {
  EXPECT_EQ(eval<float>(codebook + "%0, %1, %2 {axis = 1 : i64, group = 2 : i64} : (tensor<1x3xui8>, tensor<2xf32>, "
                                   "tensor<1x2xf32>) -> tensor<1x3xf32>",
                        {tensor<uint8_t>({1, 3}, {1, 0, 1}), tensor<float>({2}, {-1, 3}), tensor<float>({1, 2}, {2, 0.5f})}),
            (Floats{6, -2, 1.5f}));
}
