//===- SimplifyPipelineTest.cpp - all stages in order ------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::nn;

namespace {

struct SimplifyPipelineTest : test::SimplifyTest {};

/// A residual block with batch normalisation, channels first, flattened into a dense layer.
const char *const network = R"(func.func @main(%x: tensor<1x2x5x4xf32>) -> tensor<1x3xf32> {
    %i0 = nn.iota {axis = 1} : () -> tensor<2x18xi32>
    %i1 = nn.cast %i0 : (tensor<2x18xi32>) -> tensor<2x18xf32>
    %i2 = nn.unary <sin> %i1 : (tensor<2x18xf32>) -> tensor<2x18xf32>
    %i3 = nn.reshape %i2 : (tensor<2x18xf32>) -> tensor<2x2x3x3xf32>
    %w = nn.transpose %i3 {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x2x3x3xf32>) -> tensor<2x3x3x2xf32>
    %s = nn.constant {value = dense<[[[0.5]], [[-2.0]]]> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
    %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x7x6xf32>
    %t = nn.transpose %p {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x7x6xf32>) -> tensor<1x7x6x2xf32>
    %c = nn.conv %t, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x7x6x2xf32>, tensor<2x3x3x2xf32>) -> tensor<1x5x4x2xf32>
    %u = nn.transpose %c {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x5x4x2xf32>) -> tensor<1x2x5x4xf32>
    %m = nn.binary <mul> %u, %s : (tensor<1x2x5x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5x4xf32>
    %n = nn.binary <add> %m, %s : (tensor<1x2x5x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5x4xf32>
    %r = nn.unary <relu> %n : (tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
    %v = nn.transpose %r {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x5x4xf32>) -> tensor<1x5x4x2xf32>
    %d = nn.conv %v, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x5x4x2xf32>, tensor<2x3x3x2xf32>) -> tensor<1x5x4x2xf32>
    %e = nn.transpose %d {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x5x4x2xf32>) -> tensor<1x2x5x4xf32>
    %a = nn.binary <add> %e, %r : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
    %f = nn.reshape %a : (tensor<1x2x5x4xf32>) -> tensor<1x40xf32>
    %k0 = nn.iota {axis = 0} : () -> tensor<40x3xi32>
    %k1 = nn.cast %k0 : (tensor<40x3xi32>) -> tensor<40x3xf32>
    %k = nn.unary <cos> %k1 : (tensor<40x3xf32>) -> tensor<40x3xf32>
    %y = nn.matmul %f, %k : (tensor<1x40xf32>, tensor<40x3xf32>) -> tensor<1x3xf32>
    return %y : tensor<1x3xf32>
  })";

TEST_F(SimplifyPipelineTest, residualBlock) {
  parse(network);
  checkPipeline({1e-5});
  LayoutReport report = countLayoutOps(main());
  EXPECT_EQ(report.transposes, 0) << text();
  EXPECT_EQ(report.borderTransposes, 1);
  EXPECT_EQ(count<PadOp>(), 0);
  EXPECT_EQ(only<BinaryOp>().getKind(), BinaryKind::add) << "the residual one";
}

TEST_F(SimplifyPipelineTest, everyPrefixKeepsTheMeaning) {
  for (size_t stages = 0; stages <= simplifyStages().size(); ++stages) {
    parse(network);
    SimplifyOptions options;
    options.stages = stages;
    checkStages(options, {1e-5});
    // The layouts' own stage leaves the turned weight of the dense layer, the next one computes it.
    EXPECT_EQ(countLayoutOps(main()).transposes == 0, stages >= 9) << stages;
  }
  EXPECT_EQ(simplifyStages()[8], "nn-fold-layout");
}

} // namespace
