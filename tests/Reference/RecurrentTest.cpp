//===- RecurrentTest.cpp - recurrences over time ---------------------------------------------===//
//
// With functions that leave their operand as it is (affine), and gates of sigmoid(0) = 1/2, every number can be
// worked out by hand.
//
//===----------------------------------------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;

static std::string cells(const std::string &names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i)
    list += (i ? ", #nn.cell_activation<" : "#nn.cell_activation<") +
            std::string(names[i] == 's' ? "sigmoid" : names[i] == 't' ? "tanh" : "affine") + ">";
  std::string ones = "array<f32: 1.0";
  for (size_t i = 1; i < names.size(); ++i)
    ones += ", 1.0";
  return "activations = [" + list + "], alphas = " + ones + ">";
}

TEST(Rnn, SumsOverTimeInBothDirections) {
  HostTensor x = tensor<float>({3, 2, 1}, {1, 1, 2, 2, 4, 4}), one = tensor<float>({1, 1}, {1});
  std::string types = " : (tensor<3x2x1xf32>, tensor<1x1xf32>) -> (tensor<3x2x1xf32>, tensor<2x1xf32>)";
  std::vector<Floats> forward = evalAll("nn.rnn %0, %1 {" + cells("a") + "}" + types, {x, one});
  EXPECT_EQ(forward[0], (Floats{1, 1, 3, 3, 7, 7}));
  EXPECT_EQ(forward[1], (Floats{7, 7}));
  std::vector<Floats> backward = evalAll("nn.rnn %0, %1 {" + cells("a") + ", reverse}" + types, {x, one});
  EXPECT_EQ(backward[0], (Floats{7, 7, 6, 6, 4, 4}));
  EXPECT_EQ(backward[1], (Floats{7, 7}));
}

TEST(Rnn, RowsEndEarly) {
  HostTensor x = tensor<float>({3, 2, 1}, {1, 1, 2, 2, 4, 4}), one = tensor<float>({1, 1}, {1});
  HostTensor lengths = tensor<int32_t>({2}, {3, 2});
  std::string types =
      " : (tensor<3x2x1xf32>, tensor<1x1xf32>, tensor<2xi32>) -> (tensor<3x2x1xf32>, tensor<2x1xf32>)";
  std::vector<Floats> forward = evalAll("nn.rnn %0, %1 lengths %2 {" + cells("a") + "}" + types, {x, one, lengths});
  EXPECT_EQ(forward[0], (Floats{1, 1, 3, 3, 7, 0}));
  EXPECT_EQ(forward[1], (Floats{7, 3}));
  std::vector<Floats> backward = evalAll("nn.rnn %0, %1 lengths %2 {" + cells("a") + ", reverse}" + types, {x, one, lengths});
  EXPECT_EQ(backward[0], (Floats{7, 3, 6, 2, 4, 0}));
  EXPECT_EQ(backward[1], (Floats{7, 3}));
  // Lengths beyond the sequence are its length, negative ones none.
  std::vector<Floats> odd =
      evalAll("nn.rnn %0, %1 lengths %2 {" + cells("a") + "}" + types, {x, one, tensor<int32_t>({2}, {9, -1})});
  EXPECT_EQ(odd[0], (Floats{1, 0, 3, 0, 7, 0}));
  EXPECT_EQ(odd[1], (Floats{7, 0}));
}

TEST(Rnn, FunctionsAndTheirParameters) {
  HostTensor x = tensor<float>({1, 1, 3}, {-2, .5f, 8}), zero = range<float>({3, 3});
  zero.data.assign(zero.data.size(), 0);
  auto apply = [&](const std::string &kind, const std::string &rest = "") {
    return evalAll("nn.rnn %0, %1 {activations = [#nn.cell_activation<" + kind + ">]" + rest +
                   "} : (tensor<1x1x3xf32>, tensor<3x3xf32>) -> (tensor<1x1x3xf32>, tensor<1x3xf32>)",
               {x, zero})[0];
  };
  const std::string alpha = ", alphas = array<f32: 2.0>", beta = ", betas = array<f32: 0.5>";
  expectNear(apply("sigmoid"), {.11920292f, .62245933f, .99966465f}, 1e-6f);
  expectNear(apply("tanh"), {-.96402758f, .46211716f, .99999977f}, 1e-6f);
  EXPECT_EQ(apply("relu"), (Floats{0, .5f, 8}));
  EXPECT_EQ(apply("relu6"), (Floats{0, .5f, 6}));
  EXPECT_EQ(apply("affine", alpha + beta), (Floats{-3.5f, 1.5f, 16.5f}));
  EXPECT_EQ(apply("leaky_relu", alpha), (Floats{-4, .5f, 8}));
  EXPECT_EQ(apply("thresholded_relu", alpha), (Floats{0, 0, 8}));
  expectNear(apply("scaled_tanh", alpha + beta), {-1.5231883f, .48983732f, 1.9986586f}, 1e-6f);
  EXPECT_EQ(apply("hard_sigmoid", alpha + beta), (Floats{0, 1, 1}));
  expectNear(apply("elu", alpha), {-1.7293294f, .5f, 8}, 1e-6f);
  expectNear(apply("softsign"), {-.66666667f, .33333333f, .88888889f}, 1e-6f);
  expectNear(apply("softplus"), {.12692801f, .97407698f, 8.0003354f}, 1e-6f);
  EXPECT_EQ(apply("affine", alpha + ", clip = 1.0 : f32"), (Floats{-2, 1, 2}));
}

TEST(Gru, ResetBeforeAndAfterTheProduct) {
  // z = r = 1/2, R_n = 2, b = 1, h = 4; x_n = 1, then 0.
  HostTensor x = tensor<float>({2, 1, 3}, {0, 0, 1, 0, 0, 0}), r = tensor<float>({3, 1}, {0, 0, 2});
  HostTensor b = tensor<float>({1}, {1}), h = tensor<float>({1, 1}, {4});
  std::string types = " : (tensor<2x1x3xf32>, tensor<3x1xf32>, tensor<1xf32>, tensor<1x1xf32>) -> (tensor<2x1x1xf32>, "
                      "tensor<1x1xf32>)";
  std::string op = "nn.gru %0, %1 candidate_bias %2 initial %3 {" + cells("sa");
  // n = 1 + (2 * 4 + 1) / 2, then (2 * 4.75 + 1) / 2.
  std::vector<Floats> after = evalAll(op + ", linear_before_reset}" + types, {x, r, b, h});
  EXPECT_EQ(after[0], (Floats{4.75f, 5}));
  EXPECT_EQ(after[1], (Floats{5}));
  // n = 1 + 2 * 2 + 1, then 2 * 2.5 + 1.
  std::vector<Floats> before = evalAll(op + "}" + types, {x, r, b, h});
  EXPECT_EQ(before[0], (Floats{5, 5.5f}));
  EXPECT_EQ(before[1], (Floats{5.5f}));
}

TEST(Gru, UpdateGateComesFirst) {
  // z = 1 keeps the state, z = 0 takes the candidate.
  HostTensor x = tensor<float>({1, 2, 3}, {1, 0, 7, 0, 0, 7}), r = tensor<float>({3, 1}, {0, 0, 0});
  HostTensor h = tensor<float>({2, 1}, {3, 3});
  std::vector<Floats> y = evalAll("nn.gru %0, %1 initial %2 {" + cells("aa") + "} : (tensor<1x2x3xf32>, tensor<3x1xf32>, "
                              "tensor<2x1xf32>) -> (tensor<1x2x1xf32>, tensor<2x1xf32>)",
                              {x, r, h});
  EXPECT_EQ(y[0], (Floats{3, 7}));
}

TEST(Lstm, CarriesItsCell) {
  // All gates 1/2: c = 2/2 + 4/2 = 3, h = 3/2; then c = 3/2 + 1/2, h = 1.
  HostTensor x = tensor<float>({2, 1, 4}, {0, 0, 0, 4, 0, 0, 0, 1}), r = tensor<float>({4, 1}, {0, 0, 0, 0});
  std::vector<Floats> y =
      evalAll("nn.lstm %0, %1 initial_cell %2 {" + cells("saa") + "} : (tensor<2x1x4xf32>, tensor<4x1xf32>, "
          "tensor<1x1xf32>) -> (tensor<2x1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>)",
          {x, r, tensor<float>({1, 1}, {2})});
  EXPECT_EQ(y[0], (Floats{1.5f, 1}));
  EXPECT_EQ(y[1], (Floats{1}));
  EXPECT_EQ(y[2], (Floats{2}));
}

TEST(Lstm, PeepholesCoupledGatesClipAndProjection) {
  // x = 1, 2, 3, 4 for i, o, f, c; peepholes 1, 2, 3; c = 2: i = 3, f = 9, c' = 18 + 12, o = 2 + 60.
  HostTensor x = tensor<float>({1, 1, 4}, {1, 2, 3, 4}), r = tensor<float>({4, 1}, {0, 0, 0, 0});
  HostTensor p = tensor<float>({3, 1}, {1, 2, 3}), c = tensor<float>({1, 1}, {2});
  auto one = [&](const std::string &attributes) {
    return evalAll("nn.lstm %0, %1 peephole %2 initial_cell %3 {" + cells("aaa") + attributes +
                   "} : (tensor<1x1x4xf32>, tensor<4x1xf32>, tensor<3x1xf32>, tensor<1x1xf32>) -> (tensor<1x1x1xf32>, "
                   "tensor<1x1xf32>, tensor<1x1xf32>)",
               {x, r, p, c});
  };
  EXPECT_EQ(one("")[1], (Floats{1860}));
  EXPECT_EQ(one("")[2], (Floats{30}));
  EXPECT_EQ(one(", input_forget")[1], (Floats{144})); // f = -2, c' = 8, o = 18
  EXPECT_EQ(one(", cell_clip = 5.0 : f32")[1], (Floats{60}));
  std::vector<Floats> y =
      evalAll("nn.lstm %0, %1 peephole %2 projection %3 projection_bias %4 initial_cell %5 {" + cells("aaa") +
              ", cell_clip = 5.0 : f32, projection_clip = 60.5 : f32} : (tensor<1x1x4xf32>, tensor<4x2xf32>, "
              "tensor<3x1xf32>, tensor<2x1xf32>, tensor<2xf32>, tensor<1x1xf32>) -> (tensor<1x1x2xf32>, "
              "tensor<1x2xf32>, tensor<1x1xf32>)",
          {x, tensor<float>({4, 2}, Floats(8, 0)), p, tensor<float>({2, 1}, {1, -1}), tensor<float>({2}, {1, 0}), c});
  EXPECT_EQ(y[0], (Floats{60.5f, -60}));
  EXPECT_EQ(y[2], (Floats{5}));
}

TEST(Lstm, NormalisesEachGate) {
  // Gates without variance become their bias: i = 1, o = 3, f = 0; the candidate is (-1, 1) * 2.
  HostTensor x = tensor<float>({1, 1, 8}, {5, 5, 6, 6, 7, 7, 1, 3}), r = tensor<float>({8, 2}, Floats(16, 0));
  HostTensor norm = tensor<float>({4, 2}, {9, 9, 9, 9, 9, 9, 2, 2});
  HostTensor bias = tensor<float>({4, 2}, {1, 1, 3, 3, 0, 0, 0, 0});
  std::vector<Floats> y = evalAll("nn.lstm %0, %1 norm %2 norm_bias %3 {" + cells("aaa") +
                                  "} : (tensor<1x1x8xf32>, tensor<8x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> "
                                  "(tensor<1x1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>)",
                              {x, r, norm, bias});
  expectNear(y[0], {-6, 6}, 1e-5f);
  expectNear(y[2], {-2, 2}, 1e-5f);
}

TEST(Lookup, BetweenTwoEntriesOfSixteenBits) {
  std::vector<int16_t> table(513);
  for (int i = 0; i <= 512; ++i)
    table[i] = static_cast<int16_t>(i * 64 - 16384); // half of the operand
  table[512] = 32767;
  std::vector<int16_t> y =
      eval<int16_t>("nn.lookup %0, %1 : (tensor<6xi16>, tensor<513xi16>) -> tensor<6xi16>",
                    {tensor<int16_t>({6}, {-32768, -1, 0, 1, 100, 32767}), tensor<int16_t>({513}, table)});
  // 32767 is 127/128 of the way from 16320 to the last entry, 32767: 16320 + (16447 * 127 + 64) / 128.
  EXPECT_EQ(y, (std::vector<int16_t>{-16384, 0, 0, 1, 50, 32639}));
}
