//===- AttentionTest.cpp - attention ---------------------------------------------------------===//
//
// Scores that are 0 or ln of a number make weights that can be worked out by hand.
//
//===----------------------------------------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;

namespace {

constexpr float ln2 = 0.69314718f, ln3 = 1.09861229f, infinity = std::numeric_limits<float>::infinity();

HostTensor floats(std::vector<int64_t> shape, Floats values) { return tensor<float>(std::move(shape), std::move(values)); }

} // namespace

TEST(Attention, WeighsValuesByTheSoftmaxOfScores) {
  // Scores 0, ln 2 and ln 3 of one key each, weights 1/6, 2/6, 3/6.
  expectNear(eval<float>("nn.attention %0, %1, %2 {scale = 0.5 : f32} : (tensor<1x1x1xf32>, tensor<3x1x1xf32>, tensor<3x1x2xf32>) -> tensor<1x1x2xf32>",
                         {floats({1, 1, 1}, {2}), floats({3, 1, 1}, {0, ln2, ln3}), floats({3, 1, 2}, {6, 0, 6, 12, 12, 0})}),
             {9, 4}, 1e-6f);
}

TEST(Attention, LeadingDimensionsAndGroupsOfHeads) {
  // Two batches, four query heads on two key heads: with one row the result is its value.
  EXPECT_EQ(eval<float>("nn.attention %0, %1, %1 {scale = 1.0 : f32} : (tensor<2x1x4x1xf32>, tensor<2x1x2x1xf32>, tensor<2x1x2x1xf32>) -> tensor<2x1x4x1xf32>",
                        {range<float>({2, 1, 4, 1}), floats({2, 1, 2, 1}, {1, 2, 3, 4})}),
            (Floats{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(Attention, PositionsHideLaterRowsAndAWindowEarlierOnes) {
  std::string types = " : (tensor<3x1x1xf32>, tensor<4x1x1xf32>, tensor<4x1x1xf32>, tensor<3xi64>) -> tensor<3x1x1xf32>";
  float nan = std::nanf("");
  std::vector<HostTensor> inputs = {floats({3, 1, 1}, {0, 0, 0}), floats({4, 1, 1}, {1, 1, 1, nan}), floats({4, 1, 1}, {2, 4, 9, nan}),
                                    tensor<int64_t>({3}, {0, 1, 2})};
  expectNear(eval<float>("nn.attention %0, %1, %2 positions %3 {scale = 1.0 : f32}" + types, inputs), {2, 3, 5}, 1e-6f);
  expectNear(eval<float>("nn.attention %0, %1, %2 positions %3 {scale = 1.0 : f32, window = 2 : i64}" + types, inputs), {2, 3, 6.5f}, 1e-6f);
  // Positions outside: before the first row nothing is attended to, behind the last all of them.
  inputs[1] = inputs[2] = floats({4, 1, 1}, {2, 4, 6, 8});
  inputs[3] = tensor<int64_t>({3}, {-1, 9, 3});
  expectNear(eval<float>("nn.attention %0, %1, %2 positions %3 {scale = 1.0 : f32}" + types, inputs), {0, 5, 5}, 1e-6f);
  expectNear(eval<float>("nn.attention %0, %1, %2 positions %3 {scale = 1.0 : f32, window = 7 : i64}" + types, inputs), {0, 8, 5}, 1e-6f);
}

TEST(Attention, MaskSlopesSinksAndSoftCap) {
  HostTensor query = floats({1, 2, 1}, {0, 0}), key = floats({2, 1, 1}, {5, 7}), value = floats({2, 1, 1}, {3, 6});
  std::string head = "nn.attention %0, %1, %2 ", tail = " {scale = 1.0 : f32} : (tensor<1x2x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xf32>, ",
              result = ") -> tensor<1x2x1xf32>";
  expectNear(eval<float>(head + "mask %3" + tail + "tensor<2x1x2xf32>" + result, {query, key, value, floats({2, 1, 2}, {0, ln2, 0, -infinity})}),
             {5, 3}, 1e-6f);
  // Nothing left to attend to.
  EXPECT_EQ(eval<float>(head + "mask %3" + tail + "tensor<1xf32>" + result, {query, key, value, floats({1}, {-infinity})}), (Floats{0, 0}));
  // A slope of ln 2: a row one position back counts half.
  expectNear(eval<float>(head + "positions %3 slopes %4" + tail + "tensor<1xi64>, tensor<2xf32>" + result,
                         {query, key, value, tensor<int64_t>({1}, {1}), floats({2}, {ln2, 0})}),
             {5, 4.5f}, 1e-6f);
  // A sink of ln 2 takes half of the weight, one of ln 4 two thirds.
  expectNear(eval<float>(head + "sinks %3" + tail + "tensor<2xf32>" + result, {query, key, value, floats({2}, {ln2, 2 * ln2})}),
             {2.25f, 1.5f}, 1e-6f);
  // Scores of 0 and far above the cap: 0 and the cap itself.
  expectNear(eval<float>("nn.attention %0, %1, %2 {scale = 100.0 : f32, soft_cap = 0.69314718 : f32} : (tensor<1x1x1xf32>, tensor<2x1x1xf32>, "
                         "tensor<2x1x1xf32>) -> tensor<1x1x1xf32>",
                         {floats({1, 1, 1}, {1}), floats({2, 1, 1}, {0, 7}), value}),
             {5}, 1e-6f);
}

TEST(Attention, KeysAndValuesOfFewBits) {
  // f16 keys of 0; int8 values times scales; 4-bit values (low half first), 8 standing for 0.
  HostTensor query = floats({1, 1, 2}, {1, 1}), zeros = tensor<uint16_t>({2, 1, 2}, {0, 0, 0, 0}, AJOUR_F16), scales = floats({2, 1}, {.5f, 2});
  expectNear(eval<float>("nn.attention %0, %1, %2 value_scales %3 {scale = 1.0 : f32} : (tensor<1x1x2xf32>, tensor<2x1x2xf16>, tensor<2x1x2xi8>, "
                         "tensor<2x1xf32>) -> tensor<1x1x2xf32>",
                         {query, zeros, tensor<int8_t>({2, 1, 2}, {4, -8, 3, 127}), scales}),
             {4, 125}, 1e-5f);
  expectNear(eval<float>("nn.attention %0, %1, %2 value_scales %3 {scale = 1.0 : f32} : (tensor<1x1x2xf32>, tensor<2x1x2xf16>, tensor<2x1x1xui8>, "
                         "tensor<2x1xf32>) -> tensor<1x1x2xf32>",
                         {query, zeros, tensor<uint8_t>({2, 1, 1}, {0xf0, 0x8a}), scales}),
             {0, 1.75f}, 1e-6f);
  // Keys: 4-bit numbers 9 and 8 against a query of (ln 2, 5): scores ln 2 and 0.
  expectNear(eval<float>("nn.attention %0, %1, %2 key_scales %3 {scale = 1.0 : f32} : (tensor<1x1x2xf32>, tensor<2x1x1xui8>, tensor<2x1x1xf32>, "
                         "tensor<2x1xf32>) -> tensor<1x1x1xf32>",
                         {floats({1, 1, 2}, {ln2, 5}), tensor<uint8_t>({2, 1, 1}, {0x89, 0x88}), floats({2, 1, 1}, {3, 6}), floats({2, 1}, {1, 1})}),
             {4}, 1e-6f);
}
