//===- RecurrentTest.cpp - nn-recurrent --------------------------------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::test;

namespace {

struct RecurrentPass : SimplifyTest {};

// One step of each cell; sums are taken in f32 instead of f64, so within some roundings of 2^-24.
constexpr Tolerance rounding{1e-5, 0};

TEST_F(RecurrentPass, SingleStepsBecomeProducts) {
  parse(R"(func.func @main(%x: tensor<1x2x12xf32>, %h: tensor<2x4xf32>, %r: tensor<12x4xf32>, %b: tensor<4xf32>)
      -> (tensor<1x2x4xf32>, tensor<2x4xf32>) {
    %y:2 = nn.gru %x, %r candidate_bias %b initial %h
      {activations = [#nn.cell_activation<sigmoid>, #nn.cell_activation<tanh>], linear_before_reset}
      : (tensor<1x2x12xf32>, tensor<12x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<1x2x4xf32>, tensor<2x4xf32>)
    return %y#0, %y#1 : tensor<1x2x4xf32>, tensor<2x4xf32>
  })");
  check([] { return createRecurrentPass(); }, rounding);
  EXPECT_EQ(count<nn::GruOp>(), 0);
  EXPECT_EQ(count<nn::MatmulOp>(), 1);
}

TEST_F(RecurrentPass, WithoutAStateThereIsNoProduct) {
  parse(R"(func.func @main(%x: tensor<1x2x16xf32>, %r: tensor<16x4xf32>) -> (tensor<1x2x4xf32>, tensor<2x4xf32>) {
    %y:3 = nn.lstm %x, %r {activations = [#nn.cell_activation<sigmoid>, #nn.cell_activation<tanh>,
                                          #nn.cell_activation<tanh>]}
      : (tensor<1x2x16xf32>, tensor<16x4xf32>) -> (tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
    return %y#0, %y#2 : tensor<1x2x4xf32>, tensor<2x4xf32>
  })");
  check([] { return createRecurrentPass(); }, rounding);
  EXPECT_EQ(count<nn::LstmOp>(), 0);
  EXPECT_EQ(count<nn::MatmulOp>(), 0);
}

TEST_F(RecurrentPass, EveryFunction) {
  for (const char *kind : {"sigmoid", "tanh", "relu", "affine", "leaky_relu", "thresholded_relu", "scaled_tanh",
                           "hard_sigmoid", "elu", "softsign", "softplus", "relu6"}) {
    SCOPED_TRACE(kind);
    parse(R"(func.func @main(%x: tensor<1x2x4xf32>, %h: tensor<2x4xf32>, %r: tensor<4x4xf32>) -> tensor<2x4xf32> {
      %y:2 = nn.rnn %x, %r initial %h {activations = [#nn.cell_activation<)" + std::string(kind) + R"(>],
          alphas = array<f32: 0.3>, betas = array<f32: 0.7>, clip = 2.0 : f32}
        : (tensor<1x2x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) -> (tensor<1x2x4xf32>, tensor<2x4xf32>)
      return %y#1 : tensor<2x4xf32>
    })");
    check([] { return createRecurrentPass(); }, rounding);
    EXPECT_EQ(count<nn::RnnOp>(), 0);
  }
}

TEST_F(RecurrentPass, StepsWithLargeWeightsBecomeProducts) {
  for (const char *reverse : {"", ", reverse"}) {
    parse(R"(func.func @main(%x: tensor<3x1x1024xf32>, %h: tensor<1x1024xf32>) -> (tensor<3x1x1024xf32>, tensor<1x1024xf32>) {
      %r = nn.constant {value = dense<0.001> : tensor<1024x1024xf32>} : tensor<1024x1024xf32>
      %y:2 = nn.rnn %x, %r initial %h {activations = [#nn.cell_activation<tanh>])" + std::string(reverse) + R"(}
        : (tensor<3x1x1024xf32>, tensor<1024x1024xf32>, tensor<1x1024xf32>) -> (tensor<3x1x1024xf32>, tensor<1x1024xf32>)
      return %y#0, %y#1 : tensor<3x1x1024xf32>, tensor<1x1024xf32>
    })");
    check([] { return createRecurrentPass(); }, rounding);
    EXPECT_EQ(count<nn::RnnOp>(), 0);
    EXPECT_EQ(count<nn::MatmulOp>(), 3);
  }
}

TEST_F(RecurrentPass, SeveralStepsAndLengthsStay) {
  parse(R"(func.func @main(%x: tensor<1x2x4xf32>, %z: tensor<2x2x4xf32>, %n: tensor<2xi32>, %r: tensor<4x4xf32>)
      -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %y:2 = nn.rnn %x, %r lengths %n {activations = [#nn.cell_activation<tanh>]}
      : (tensor<1x2x4xf32>, tensor<4x4xf32>, tensor<2xi32>) -> (tensor<1x2x4xf32>, tensor<2x4xf32>)
    %w:2 = nn.rnn %z, %r {activations = [#nn.cell_activation<tanh>]}
      : (tensor<2x2x4xf32>, tensor<4x4xf32>) -> (tensor<2x2x4xf32>, tensor<2x4xf32>)
    return %y#1, %w#1 : tensor<2x4xf32>, tensor<2x4xf32>
  })");
  check([] { return createRecurrentPass(); });
  EXPECT_EQ(count<nn::RnnOp>(), 2);
}

} // namespace
