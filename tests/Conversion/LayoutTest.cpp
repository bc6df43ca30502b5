//===- LayoutTest.cpp - nn-layout ---------------------------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::nn;

namespace {

/// A convolution of channels 4 to 4 between channels-first neighbours, as importers write it.
std::string conv(const std::string &result, const std::string &input, int height, int width) {
  std::string nchw = "tensor<1x4x" + std::to_string(height) + "x" + std::to_string(width) + "xf32>";
  std::string nhwc = "tensor<1x" + std::to_string(height) + "x" + std::to_string(width) + "x4xf32>";
  return result + "i = nn.transpose " + input + " {perm = array<i64: 0, 2, 3, 1>} : (" + nchw + ") -> " + nhwc + "\n" +
         result + "c = nn.conv " + result + "i, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (" +
         nhwc + ", tensor<4x3x3x4xf32>) -> " + nhwc + "\n" + result + " = nn.transpose " + result +
         "c {perm = array<i64: 0, 3, 1, 2>} : (" + nhwc + ") -> " + nchw + "\n";
}

const char *const header = R"(func.func @main(%x: tensor<1x4x6x5xf32>, %w: tensor<4x3x3x4xf32>) -> )";

struct LayoutTest : test::SimplifyTest {
  LayoutReport layout(test::Tolerance tolerance = {}) {
    check([] { return createLayoutPass(); }, tolerance);
    return countLayoutOps(main());
  }
};

TEST_F(LayoutTest, chainOfElementwise) {
  parse(std::string(header) + "tensor<1x4x6x5xf32> {\n" + conv("%a", "%x", 6, 5) + R"(
    %s = nn.constant {value = dense<[[[0.5]], [[-2.0]], [[3.0]], [[1.0]]]> : tensor<4x1x1xf32>} : tensor<4x1x1xf32>
    %b = nn.binary <prelu> %a, %s : (tensor<1x4x6x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x6x5xf32>
    %c = nn.clamp %b {low = -1.0 : f64, high = 6.0 : f64} : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  )" + conv("%d", "%c", 6, 5) + R"(
    %e = nn.binary <add> %d, %c : (tensor<1x4x6x5xf32>, tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
    %g = nn.compare <gt> %e, %s : (tensor<1x4x6x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x6x5xi1>
    %h = nn.select %g, %e, %s : (tensor<1x4x6x5xi1>, tensor<1x4x6x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x6x5xf32>
  )" + conv("%y", "%h", 6, 5) + "return %y : tensor<1x4x6x5xf32> }");
  LayoutReport report = layout();
  EXPECT_EQ(report.transposes, 0);
  EXPECT_EQ(report.borderTransposes, 2);
}

TEST_F(LayoutTest, movementBetweenConvs) {
  parse(std::string(header) + "tensor<1x4x6x10xf32> {\n" + conv("%a", "%x", 6, 5) + R"(
    %b = nn.pad %a {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 0, 1>} : (tensor<1x4x6x5xf32>) -> tensor<1x4x7x8xf32>
    %c = nn.slice %b {starts = array<i64: 0, 3, 1, 7>, steps = array<i64: 1, -1, 1, -1>} : (tensor<1x4x7x8xf32>) -> tensor<1x4x6x5xf32>
    %d = nn.concat %c, %a {axis = 3} : (tensor<1x4x6x5xf32>, tensor<1x4x6x5xf32>) -> tensor<1x4x6x10xf32>
    %e = nn.softmax %d {axis = 1} : (tensor<1x4x6x10xf32>) -> tensor<1x4x6x10xf32>
    %f = nn.cumsum %e {axis = 2} : (tensor<1x4x6x10xf32>) -> tensor<1x4x6x10xf32>
    %g = nn.resize %f {mode = #nn.resize_mode<nearest>, coordinate_mode = #nn.coordinate_mode<asymmetric>, nearest_mode = #nn.nearest_mode<floor>, scales = array<f32: 1.0, 1.0, 1.0, 1.0>} : (tensor<1x4x6x10xf32>) -> tensor<1x4x6x10xf32>
    %h = nn.reduce <max> %g {axes = array<i64: 2, 3>, keep_dims} : (tensor<1x4x6x10xf32>) -> tensor<1x4x1x1xf32>
    %i = nn.binary <mul> %g, %h : (tensor<1x4x6x10xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x6x10xf32>
  )" + conv("%y", "%i", 6, 10) + "return %y : tensor<1x4x6x10xf32> }");
  LayoutReport report = layout();
  EXPECT_EQ(report.transposes, 0);
  EXPECT_EQ(report.borderTransposes, 2);
}

// The last state of a recurrence has fewer dimensions than its output; both are read, one of them turned round.
TEST_F(LayoutTest, resultsOfDifferentRanks) {
  parse(R"(func.func @main(%x: tensor<2x3x15xf32>, %r: tensor<15x5xf32>) -> (tensor<3x2x5xf32>, tensor<5x3xf32>) {
    %y:2 = nn.gru %x, %r {activations = [#nn.cell_activation<sigmoid>, #nn.cell_activation<tanh>]}
      : (tensor<2x3x15xf32>, tensor<15x5xf32>) -> (tensor<2x3x5xf32>, tensor<3x5xf32>)
    %a = nn.unary <abs> %y#0 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
    %b = nn.transpose %a {perm = array<i64: 1, 0, 2>} : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
    %c = nn.unary <neg> %y#1 : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %d = nn.transpose %c {perm = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
    return %b, %d : tensor<3x2x5xf32>, tensor<5x3xf32> })");
  EXPECT_LE(layout().transposes, 2);
}

TEST_F(LayoutTest, quantisedChain) {
  parse(std::string(header) + "tensor<1x4x6x5xf32> {\n" + conv("%a", "%x", 6, 5) + R"(
    %q = nn.quantize %a {scales = array<f32: 0.1, 0.2, 0.3, 0.4>, zero_points = array<i32: 0, 1, 2, 3>, axis = 1} : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xi8>
    %d = nn.dequantize %q {scales = array<f32: 0.1, 0.2, 0.3, 0.4>, zero_points = array<i32: 0, 1, 2, 3>, axis = 1} : (tensor<1x4x6x5xi8>) -> tensor<1x4x6x5xf32>
  )" + conv("%y", "%d", 6, 5) + "return %y : tensor<1x4x6x5xf32> }");
  EXPECT_EQ(layout().transposes, 0);
}

TEST_F(LayoutTest, channelShuffle) {
  parse(std::string(header) + "tensor<1x4x6x5xf32> {\n" + conv("%a", "%x", 6, 5) + R"(
    %b = nn.reshape %a : (tensor<1x4x6x5xf32>) -> tensor<1x2x2x6x5xf32>
    %c = nn.transpose %b {perm = array<i64: 0, 2, 1, 3, 4>} : (tensor<1x2x2x6x5xf32>) -> tensor<1x2x2x6x5xf32>
    %d = nn.reshape %c : (tensor<1x2x2x6x5xf32>) -> tensor<1x4x6x5xf32>
  )" + conv("%y", "%d", 6, 5) + "return %y : tensor<1x4x6x5xf32> }");
  LayoutReport report = layout();
  EXPECT_EQ(report.transposes, 1) << "the shuffle itself";
  EXPECT_EQ(report.transposeBytes, 4 * 6 * 5 * 4);
}

TEST_F(LayoutTest, globalMeanAndDense) {
  parse(std::string(header) + "(tensor<1x3xf32>, tensor<1xi64>) {\n" + conv("%a", "%x", 6, 5) + R"(
    %m = nn.reduce <mean> %a {axes = array<i64: 2, 3>} : (tensor<1x4x6x5xf32>) -> tensor<1x4xf32>
    %k = nn.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0, 1.0, 1.0]]> : tensor<4x3xf32>} : tensor<4x3xf32>
    %y = nn.matmul %m, %k : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
    %i = nn.arg_reduce <max> %m {axis = 1} : (tensor<1x4xf32>) -> tensor<1xi64>
    return %y, %i : tensor<1x3xf32>, tensor<1xi64> })");
  EXPECT_EQ(layout({1e-6}).transposes, 0);
}

TEST_F(LayoutTest, flattenBeforeDensePermutesTheWeight) {
  for (bool transposed : {false, true}) {
    std::string shape = transposed ? "tensor<3x120xf32>" : "tensor<120x3xf32>";
    parse(std::string(header) + "tensor<1x3xf32> {\n" + conv("%a", "%x", 6, 5) +
          "%k0 = nn.iota {axis = " + (transposed ? "1" : "0") + "} : () -> " + (transposed ? "tensor<3x120xi32>" : "tensor<120x3xi32>") +
          "\n%k1 = nn.cast %k0 : (" + (transposed ? "tensor<3x120xi32>" : "tensor<120x3xi32>") + ") -> " + shape +
          "\n%k = nn.unary <sin> %k1 : (" + shape + ") -> " + shape + R"(
    %f = nn.reshape %a : (tensor<1x4x6x5xf32>) -> tensor<1x120xf32>
    %y = nn.matmul %f, %k )" + (transposed ? "{transpose_rhs}" : "") + " : (tensor<1x120xf32>, " + shape + R"() -> tensor<1x3xf32>
    return %y : tensor<1x3xf32> })");
    check([] { return createFoldPass(); });
    check([] { return createLayoutPass(); }, {1e-5});
    check([] { return createFoldPass(); }, {1e-5});
    EXPECT_EQ(countLayoutOps(main()).transposes, 0) << text();
  }
}

TEST_F(LayoutTest, argReduceOverChannels) {
  parse(std::string(header) + "tensor<1x6x5xi64> {\n" + conv("%a", "%x", 6, 5) + R"(
    %b = nn.unary <sigmoid> %a : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
    %i = nn.arg_reduce <max> %b {axis = 1} : (tensor<1x4x6x5xf32>) -> tensor<1x6x5xi64>
    return %i : tensor<1x6x5xi64> })");
  EXPECT_EQ(layout().transposes, 0);
}

TEST_F(LayoutTest, symbolicSizes) {
  parse(R"(#d0 = #nn.dims<()[s0, s1] -> (1, 4, s0, s1)>
    #d1 = #nn.dims<()[s0, s1] -> (1, s0, s1, 4)>
    func.func @main(%x: tensor<1x4x?x?xf32, #d0>) -> tensor<1x4x?x?xf32, #d0> {
      %p = nn.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x4x?x?xf32, #d0>) -> tensor<1x?x?x4xf32, #d1>
      %a = nn.max_pool %p {window = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x?x?x4xf32, #d1>) -> tensor<1x?x?x4xf32, #d1>
      %b = nn.transpose %a {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x?x?x4xf32, #d1>) -> tensor<1x4x?x?xf32, #d0>
      %c = nn.unary <relu> %b : (tensor<1x4x?x?xf32, #d0>) -> tensor<1x4x?x?xf32, #d0>
      %d = nn.transpose %c {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x4x?x?xf32, #d0>) -> tensor<1x?x?x4xf32, #d1>
      %e = nn.max_pool %d {window = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x?x?x4xf32, #d1>) -> tensor<1x?x?x4xf32, #d1>
      %f = nn.transpose %e {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x?x?x4xf32, #d1>) -> tensor<1x4x?x?xf32, #d0>
      return %f : tensor<1x4x?x?xf32, #d0>
    })");
  LayoutReport report = layout();
  EXPECT_EQ(report.transposes, 0);
  EXPECT_EQ(report.borderTransposes, 2);
}

TEST_F(LayoutTest, neverTransposesMore) {
  parse(R"(func.func @main(%x: tensor<4x5xf32>, %y: tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<4x5xf32>) {
    %a = nn.transpose %x {perm = array<i64: 1, 0>} : (tensor<4x5xf32>) -> tensor<5x4xf32>
    %b = nn.binary <add> %a, %y : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
    %c = nn.unary <exp> %x : (tensor<4x5xf32>) -> tensor<4x5xf32>
    return %b, %c : tensor<5x4xf32>, tensor<4x5xf32>
  })");
  LayoutReport before = countLayoutOps(main());
  LayoutReport after = layout();
  EXPECT_LE(after.transposeBytes + after.borderBytes, before.transposeBytes + before.borderBytes);
}

} // namespace
