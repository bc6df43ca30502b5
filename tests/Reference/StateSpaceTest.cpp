//===- StateSpaceTest.cpp - state-space operations --------------------------------------------===//
//
// Numbers that can be worked out by hand: decays are powers of 1/2, which d = 1 and a = -log 2 give.
//
//===----------------------------------------------------------------------===//
#include "Reference/Harness.h"

#include <cmath>

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;

TEST(CausalConv, BeginsWithItsState) {
  HostTensor x = tensor<float>({3, 2}, {1, 10, 2, 20, 3, 30}), filter = tensor<float>({3, 2}, {100, 1, 10, 0, 1, 2});
  std::vector<Floats> fresh =
      evalAll("nn.causal_conv %0, %1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<2x2xf32>)", {x, filter});
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[0], (Floats{1, 20, 12, 40, 123, 70}));
  EXPECT_EQ(fresh[1], (Floats{2, 20, 3, 30}));
  std::vector<Floats> later = evalAll("nn.causal_conv %0, %1 bias %2 initial %3 : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<2xf32>, "
                                  "tensor<2x2xf32>) -> (tensor<3x2xf32>, tensor<2x2xf32>)",
                                  {x, filter, tensor<float>({2}, {0.5f, 0}), tensor<float>({2, 2}, {8, 80, 9, 90})});
  EXPECT_EQ(later[0], (Floats{891.5f, 100, 912.5f, 130, 123.5f, 70}));
  EXPECT_EQ(later[1], fresh[1]);
}

TEST(CausalConv, OneTokenShiftsTheState) {
  std::vector<Floats> y = evalAll("nn.causal_conv %0, %1 initial %2 {silu} : (tensor<1x1xf32>, tensor<3x1xf32>, tensor<2x1xf32>) -> "
                              "(tensor<1x1xf32>, tensor<2x1xf32>)",
                              {tensor<float>({1, 1}, {3}), tensor<float>({3, 1}, {1, 1, -1}), tensor<float>({2, 1}, {1, 2})});
  EXPECT_EQ(y[0], Floats{0});
  EXPECT_EQ(y[1], (Floats{2, 3}));
  // No token leaves the state as it is.
  y = evalAll("nn.causal_conv %0, %1 initial %2 : (tensor<0x1xf32>, tensor<3x1xf32>, tensor<2x1xf32>) -> (tensor<0x1xf32>, tensor<2x1xf32>)",
          {tensor<float>({0, 1}, {}), tensor<float>({3, 1}, {1, 1, -1}), tensor<float>({2, 1}, {1, 2})});
  EXPECT_EQ(y[1], (Floats{1, 2}));
}

static const float halving = -std::log(2.0f);

TEST(SelectiveScan, DecaysAndAdds) {
  // One head of one channel, two states: the first halves at each token, the second stays.
  HostTensor x = tensor<float>({3, 1, 1}, {4, 0, 1}), delta = tensor<float>({3, 1}, {1, 1, 1}), a = tensor<float>({2, 1}, {halving, 0});
  HostTensor b = tensor<float>({3, 1, 2}, {1, 2, 1, 2, 1, 0}), c = tensor<float>({3, 1, 2}, {1, 0, 1, 1, 2, 1});
  std::string types = "(tensor<3x1x1xf32>, tensor<3x1xf32>, tensor<2x1xf32>, tensor<3x1x2xf32>, tensor<3x1x2xf32>";
  std::vector<Floats> y =
      evalAll("nn.selective_scan %0, %1, %2, %3, %4 : " + types + ") -> (tensor<3x1x1xf32>, tensor<2x1x1xf32>)", {x, delta, a, b, c});
  ASSERT_EQ(y.size(), 2u);
  // States: (4, 8), (2, 8), (1 + 1, 8).
  expectNear(y[0], {4, 10, 12});
  expectNear(y[1], {2, 8});
  y = evalAll("nn.selective_scan %0, %1, %2, %3, %4 skip %5 initial %6 : " + types +
              ", tensor<1xf32>, tensor<2x1x1xf32>) -> (tensor<3x1x1xf32>, tensor<2x1x1xf32>)",
          {x, delta, a, b, c, tensor<float>({1}, {10}), tensor<float>({2, 1, 1}, {8, 1})});
  // States: (4 + 4, 9), (4, 9), (3, 9).
  expectNear(y[0], {48, 13, 25});
  expectNear(y[1], {3, 9});
}

TEST(SelectiveScan, StepIsBiasedSoftAndLimited) {
  HostTensor x = tensor<float>({2, 1, 1}, {1, 1}), zero = tensor<float>({1, 1}, {0}), one = tensor<float>({2, 1, 1}, {1, 1});
  std::string types = "(tensor<2x1x1xf32>, tensor<2x1xf32>, tensor<1x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xf32>, tensor<1xf32>) -> "
                      "(tensor<2x1x1xf32>, tensor<1x1x1xf32>)";
  std::vector<HostTensor> inputs = {x, tensor<float>({2, 1}, {-1, 3}), zero, one, one, tensor<float>({1}, {1})};
  // Without decay the state is the sum of the steps.
  expectNear(evalAll("nn.selective_scan %0, %1, %2, %3, %4 delta_bias %5 : " + types, inputs)[0], {0, 4});
  float soft0 = std::log(2.0f), soft4 = std::log(1 + std::exp(4.0f));
  expectNear(evalAll("nn.selective_scan %0, %1, %2, %3, %4 delta_bias %5 {softplus} : " + types, inputs)[0], {soft0, soft0 + soft4});
  expectNear(evalAll("nn.selective_scan %0, %1, %2, %3, %4 delta_bias %5 {softplus, delta_min = 1.0 : f32, delta_max = 2.0 : f32} : " + types,
                 inputs)[0],
             {1, 3});
}

TEST(SelectiveScan, HeadsShareGroupsAndDecays) {
  // Four heads of two channels; heads 0 and 1 take group 0, heads 2 and 3 group 1; one decay for both states.
  HostTensor x = tensor<float>({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), delta = tensor<float>({1, 4}, {1, 1, 2, 1});
  HostTensor a = tensor<float>({1, 4}, {halving, 0, halving, 0});
  HostTensor b = tensor<float>({1, 2, 2}, {1, 0, 0, 1}), c = tensor<float>({1, 2, 2}, {1, 1, 1, 10});
  HostTensor gate = tensor<float>({1, 4, 2}, {100, 100, 100, 100, 100, 100, 100, 0}), initial = tensor<float>({2, 4, 2}, Floats(16, 4));
  std::vector<Floats> y =
      evalAll("nn.selective_scan %0, %1, %2, %3, %4 gate %5 initial %6 : (tensor<1x4x2xf32>, tensor<1x4xf32>, tensor<1x4xf32>, "
          "tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x4x2xf32>, tensor<2x4x2xf32>) -> (tensor<1x4x2xf32>, tensor<2x4x2xf32>)",
          {x, delta, a, b, c, gate, initial});
  expectNear(y[1], {3, 4, 7, 8, 1, 1, 4, 4, 2, 2, 4, 4, 11, 13, 11, 12});
  expectNear(y[0], {500, 600, 1100, 1200, 11100, 13100, 11400, 0});
}
