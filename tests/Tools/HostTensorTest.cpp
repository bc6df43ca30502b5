//===- HostTensorTest.cpp - Element types and their conversions -----------===//

#include "Tools/TempDirectory.h"

#include "ajour/Encoding/Half.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ajour::tools;
using namespace ajour::encoding;

namespace {

HostTensor makeReal(uint32_t type, const std::vector<double> &values) {
  HostTensor tensor = makeTensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    setReal(tensor, static_cast<int64_t>(i), values[i]);
  return tensor;
}

std::vector<double> toReal(const HostTensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    values.push_back(getReal(tensor, i));
  return values;
}

TEST(HostTensor, ByteSizeRefusesOverflowAndNegativeSizes) {
  EXPECT_EQ(byteSize({2, 3}, 4), 24u);
  EXPECT_EQ(byteSize({}, 4), 4u);
  EXPECT_EQ(byteSize({0, int64_t(1) << 58}, 8), 0u);
  EXPECT_FALSE(byteSize({0, int64_t(1) << 61}, 8));
  EXPECT_FALSE(byteSize({int64_t(1) << 40, int64_t(1) << 40}, 1));
  EXPECT_FALSE(byteSize({-1}, 4));
}

TEST(HostTensor, NamesOfTypes) {
  EXPECT_EQ(elementTypeFromName("f32"), uint32_t(AJOUR_F32));
  EXPECT_EQ(elementTypeFromName("ui8"), uint32_t(AJOUR_U8));
  EXPECT_EQ(elementTypeFromName("u8"), uint32_t(AJOUR_U8));
  EXPECT_EQ(elementTypeFromName("uiui8"), 0u);
  EXPECT_EQ(elementTypeFromName(""), 0u);
  EXPECT_EQ(elementTypeFromName("u"), 0u);
}

TEST(HostTensor, HalfPrecisionRoundsToNearestEven) {
  EXPECT_EQ(floatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(floatToHalf(-2.0f), 0xc000);
  EXPECT_EQ(floatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(0x1p-24f), 1);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0);       // Half of the smallest: a tie, to even.
  EXPECT_EQ(floatToHalf(0x1.8p-24f), 2);     // 1.5 times: a tie, to even.
  EXPECT_EQ(floatToHalf(1 + 0x1p-11f), 0x3c00); // A tie between 1 and the next.
  EXPECT_EQ(floatToHalf(1 + 0x3p-11f), 0x3c02);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = halfToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(value))
      ASSERT_EQ(floatToHalf(value), bits);
    else
      ASSERT_TRUE(std::isnan(halfToFloat(floatToHalf(value))));
  }
}

TEST(HostTensor, BFloatRoundsToNearestEven) {
  EXPECT_EQ(floatToBFloat(1.0f), 0x3f80);
  EXPECT_EQ(floatToBFloat(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBFloat(1 + 0x3p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBFloat(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(HostTensor, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(toReal(makeReal(AJOUR_I8, {0.5, 1.5, -0.5, 200, -200, NAN})), (std::vector<double>{0, 2, 0, 127, -128, 0}));
  EXPECT_EQ(toReal(makeReal(AJOUR_U8, {-3, 256})), (std::vector<double>{0, 255}));
  EXPECT_EQ(toReal(makeReal(AJOUR_I64, {1e30})), (std::vector<double>{static_cast<double>(INT64_MAX)}));
}

TEST(HostTensor, ConvertKeepsValues) {
  TensorInfo f32{"x", AJOUR_F32, {-1}};
  EXPECT_EQ(toReal(convertTensor(makeReal(AJOUR_F64, {0.5, 3}), f32, "f")), (std::vector<double>{0.5, 3}));
  TensorInfo i8{"x", AJOUR_I8, {-1}};
  EXPECT_EQ(toReal(convertTensor(makeReal(AJOUR_I64, {-128, 127}), i8, "f")), (std::vector<double>{-128, 127}));
  EXPECT_EQ(messageOf([&] { convertTensor(makeReal(AJOUR_I64, {0, 128}), i8, "a.npy"); }),
            "a.npy: element 1 is 128, which input 'x' of type i8 cannot hold; give the file in that type");
  EXPECT_EQ(messageOf([&] { convertTensor(makeReal(AJOUR_F32, {0.25}), i8, "a.npy"); }),
            "a.npy: element 0 is 0.25, which input 'x' of type i8 cannot hold; give the file in that type");
}

TEST(HostTensor, ConvertQuantisesRealNumbers) {
  TensorInfo quantized{"x", AJOUR_U8, {-1}, 0.5f, 10};
  HostTensor stored = convertTensor(makeReal(AJOUR_F32, {0, 1, -100, 1000}), quantized, "f");
  EXPECT_EQ(toReal(stored), (std::vector<double>{10, 12, 0, 255}));
  EXPECT_EQ(dequantize(quantized, 12), 1.0);
}

TEST(HostTensor, ConvertTakesUnsignedBitsAsBFloat) {
  HostTensor bits = makeTensor(AJOUR_U16, {1});
  setInteger(bits, 0, 0x3f80);
  HostTensor tensor = convertTensor(bits, {"x", AJOUR_BF16, {1}}, "f");
  EXPECT_EQ(tensor.type, uint32_t(AJOUR_BF16));
  EXPECT_EQ(getReal(tensor, 0), 1.0);
}

TEST(HostTensor, ConvertKeepsLargeUnsignedValues) {
  HostTensor large = makeTensor(AJOUR_U64, {1});
  setInteger(large, 0, -1);
  EXPECT_NE(messageOf([&] { convertTensor(large, {"x", AJOUR_I64, {1}}, "f"); }), "nothing thrown");
}

} // namespace
