//===- FoldAffineTest.cpp - nn-fold-affine ----------------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::nn;

namespace {

struct FoldAffineTest : test::SimplifyTest {
  void fold(test::Tolerance tolerance = {1e-5}) {
    check([] { return createFoldPass(); });
    check([] { return createFoldAffinePass(); }, tolerance);
  }
};

const char *const weights = R"(
    %w0 = nn.iota {axis = 1} : () -> tensor<3x8xi32>
    %w1 = nn.cast %w0 : (tensor<3x8xi32>) -> tensor<3x8xf32>
    %w2 = nn.unary <sin> %w1 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %r0 = nn.iota {axis = 0} : () -> tensor<3x8xi32>
    %r1 = nn.cast %r0 : (tensor<3x8xi32>) -> tensor<3x8xf32>
    %w3 = nn.binary <add> %w2, %r1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %w = nn.reshape %w3 : (tensor<3x8xf32>) -> tensor<3x2x2x2xf32>
    %m = nn.slice %w3 {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<3x8xf32>) -> tensor<3x2xf32>
    %s = nn.constant {value = dense<[[[0.5]], [[-2.0]], [[3.0]]]> : tensor<3x1x1xf32>} : tensor<3x1x1xf32>
    %o = nn.constant {value = dense<[[[0.1]], [[0.2]], [[0.3]]]> : tensor<3x1x1xf32>} : tensor<3x1x1xf32>
    %c2 = nn.constant {value = dense<[1.5, -0.5]> : tensor<2xf32>} : tensor<2xf32>
)";

TEST_F(FoldAffineTest, batchNormalisationAfterConv) {
  parse(std::string("func.func @main(%x: tensor<1x5x6x2xf32>) -> tensor<1x3x4x5xf32> {") + weights + R"(
    %a = nn.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x5x6x2xf32>, tensor<3x2x2x2xf32>) -> tensor<1x4x5x3xf32>
    %t = nn.transpose %a {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
    %b = nn.binary <sub> %t, %o : (tensor<1x3x4x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x5xf32>
    %c = nn.binary <mul> %b, %s : (tensor<1x3x4x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x5xf32>
    %d = nn.binary <add> %c, %o : (tensor<1x3x4x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x5xf32>
    %e = nn.binary <div> %d, %s : (tensor<1x3x4x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x5xf32>
    %f = nn.binary <sub> %o, %e : (tensor<3x1x1xf32>, tensor<1x3x4x5xf32>) -> tensor<1x3x4x5xf32>
    return %f : tensor<1x3x4x5xf32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 0);
  EXPECT_TRUE(only<ConvOp>().getBias());
}

TEST_F(FoldAffineTest, scaleBeforePaddedConvButNotOffset) {
  parse(std::string("func.func @main(%x: tensor<1x5x6x2xf32>) -> tensor<1x6x7x3xf32> {") + weights + R"(
    %u = nn.binary <add> %x, %c2 : (tensor<1x5x6x2xf32>, tensor<2xf32>) -> tensor<1x5x6x2xf32>
    %v = nn.binary <mul> %u, %c2 : (tensor<1x5x6x2xf32>, tensor<2xf32>) -> tensor<1x5x6x2xf32>
    %a = nn.conv %v, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>}
         : (tensor<1x5x6x2xf32>, tensor<3x2x2x2xf32>) -> tensor<1x6x7x3xf32>
    return %a : tensor<1x6x7x3xf32>
  })");
  fold();
  EXPECT_EQ(only<BinaryOp>().getKind(), BinaryKind::add);
}

TEST_F(FoldAffineTest, offsetBeforeUnpaddedConvAndMatmul) {
  parse(std::string("func.func @main(%x: tensor<1x5x6x2xf32>, %y: tensor<4x2xf32>) -> (tensor<1x4x5x3xf32>, tensor<4x3xf32>) {") + weights + R"(
    %u = nn.binary <add> %x, %c2 : (tensor<1x5x6x2xf32>, tensor<2xf32>) -> tensor<1x5x6x2xf32>
    %a = nn.conv %u, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x5x6x2xf32>, tensor<3x2x2x2xf32>) -> tensor<1x4x5x3xf32>
    %v = nn.binary <sub> %y, %c2 : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
    %z = nn.binary <mul> %v, %c2 : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
    %p = nn.matmul %z, %m {transpose_rhs} : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x3xf32>
    return %a, %p : tensor<1x4x5x3xf32>, tensor<4x3xf32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 0);
}

TEST_F(FoldAffineTest, groupsScaleTheirOwnChannels) {
  parse(std::string("func.func @main(%x: tensor<1x5x6x6xf32>) -> tensor<1x4x5x3xf32> {") + weights + R"(
    %c6 = nn.constant {value = dense<[1.5, -0.5, 2.0, 3.0, -4.0, 5.0]> : tensor<6xf32>} : tensor<6xf32>
    %u = nn.binary <mul> %x, %c6 : (tensor<1x5x6x6xf32>, tensor<6xf32>) -> tensor<1x5x6x6xf32>
    %a = nn.conv %u, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 3}
         : (tensor<1x5x6x6xf32>, tensor<3x2x2x2xf32>) -> tensor<1x4x5x3xf32>
    return %a : tensor<1x4x5x3xf32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 0);
}

TEST_F(FoldAffineTest, keepsWhatOthersRead) {
  parse(std::string("func.func @main(%x: tensor<1x5x6x2xf32>) -> (tensor<1x4x5x3xf32>, tensor<1x4x5x3xf32>) {") + weights + R"(
    %a = nn.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x5x6x2xf32>, tensor<3x2x2x2xf32>) -> tensor<1x4x5x3xf32>
    %c3 = nn.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
    %b = nn.binary <mul> %a, %c3 : (tensor<1x4x5x3xf32>, tensor<3xf32>) -> tensor<1x4x5x3xf32>
    return %a, %b : tensor<1x4x5x3xf32>, tensor<1x4x5x3xf32>
  })");
  fold({});
  EXPECT_EQ(count<BinaryOp>(), 1);
}

TEST_F(FoldAffineTest, scaleAfterConvTranspose) {
  parse(std::string("func.func @main(%x: tensor<1x5x6x2xf32>) -> tensor<1x10x12x3xf32> {") + weights + R"(
    %c3 = nn.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
    %a = nn.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, output_pads = array<i64: 0, 0>}
         : (tensor<1x5x6x2xf32>, tensor<3x2x2x2xf32>) -> tensor<1x10x12x3xf32>
    %b = nn.binary <mul> %a, %c3 : (tensor<1x10x12x3xf32>, tensor<3xf32>) -> tensor<1x10x12x3xf32>
    return %b : tensor<1x10x12x3xf32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 0);
}

TEST_F(FoldAffineTest, paddingBeforeConvAndPools) {
  parse(std::string("func.func @main(%x: tensor<1x2x5x6xf32>) -> (tensor<1x6x8x3xf32>, tensor<1x6x7x2xf32>, tensor<1x6x7x2xf32>, tensor<1x6x7x2xf32>) {") + weights + R"(
    %p = nn.pad %x {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 1, 1>} : (tensor<1x2x5x6xf32>) -> tensor<1x2x7x9xf32>
    %t = nn.transpose %p {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x7x9xf32>) -> tensor<1x7x9x2xf32>
    %a = nn.conv %t, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x7x9x2xf32>, tensor<3x2x2x2xf32>) -> tensor<1x6x8x3xf32>
    %n = nn.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x5x6xf32>) -> tensor<1x5x6x2xf32>
    %q = nn.pad %n {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>} : (tensor<1x5x6x2xf32>) -> tensor<1x7x8x2xf32>
    %b = nn.avg_pool %q {window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x7x8x2xf32>) -> tensor<1x6x7x2xf32>
    %inf = nn.constant {value = dense<0xFF800000> : tensor<f32>} : tensor<f32>
    %i = nn.pad %n, %inf {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>} : (tensor<1x5x6x2xf32>, tensor<f32>) -> tensor<1x7x8x2xf32>
    %c = nn.max_pool %i {window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x7x8x2xf32>) -> tensor<1x6x7x2xf32>
    %r = nn.unary <relu> %n : (tensor<1x5x6x2xf32>) -> tensor<1x5x6x2xf32>
    %z = nn.pad %r {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>} : (tensor<1x5x6x2xf32>) -> tensor<1x7x8x2xf32>
    %d = nn.max_pool %z {window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x7x8x2xf32>) -> tensor<1x6x7x2xf32>
    return %a, %b, %c, %d : tensor<1x6x8x3xf32>, tensor<1x6x7x2xf32>, tensor<1x6x7x2xf32>, tensor<1x6x7x2xf32>
  })");
  fold();
  EXPECT_EQ(count<PadOp>(), 0);
}

TEST_F(FoldAffineTest, keepsZeroPaddingThatMayWin) {
  parse(R"(func.func @main(%x: tensor<1x5x6x2xf32>) -> tensor<1x6x7x2xf32> {
    %z = nn.pad %x {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>} : (tensor<1x5x6x2xf32>) -> tensor<1x7x8x2xf32>
    %d = nn.max_pool %z {window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<1x7x8x2xf32>) -> tensor<1x6x7x2xf32>
    return %d : tensor<1x6x7x2xf32>
  })");
  fold({});
  EXPECT_EQ(count<PadOp>(), 1);
}

TEST_F(FoldAffineTest, integerBiasAndPadding) {
  parse(R"(func.func @main(%x: tensor<1x5x6x2xui8>) -> tensor<1x6x7x1xi32> {
    %z = nn.constant {value = dense<3> : tensor<ui8>} : tensor<ui8>
    %p = nn.pad %x, %z {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>} : (tensor<1x5x6x2xui8>, tensor<ui8>) -> tensor<1x7x8x2xui8>
    %w = nn.constant {value = dense<[[[[1, 2], [3, 4]], [[-5, 6], [7, -8]]]]> : tensor<1x2x2x2xi8>} : tensor<1x2x2x2xi8>
    %a = nn.conv %p, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, lhs_zero_point = 3 : i32}
         : (tensor<1x7x8x2xui8>, tensor<1x2x2x2xi8>) -> tensor<1x6x7x1xi32>
    %b = nn.constant {value = dense<1000> : tensor<1xi32>} : tensor<1xi32>
    %y = nn.binary <add> %a, %b : (tensor<1x6x7x1xi32>, tensor<1xi32>) -> tensor<1x6x7x1xi32>
    return %y : tensor<1x6x7x1xi32>
  })");
  fold({});
  EXPECT_EQ(count<PadOp>() + count<BinaryOp>(), 0);
}

} // namespace
