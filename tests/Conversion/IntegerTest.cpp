//===- IntegerTest.cpp - nn-integer ------------------------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::nn;

namespace {

struct IntegerTest : test::SimplifyTest {
  void integer(int64_t steps = 0) {
    check([] { return createFoldPass(); }, {1e-5, steps});
    check([] { return createIntegerPass(); }, {1e-5, steps});
  }
};

/// A 3x3 filter of four outputs and two inputs, channels first as ONNX has it, per output channel.
const char *const filter = R"(
    %k0 = nn.iota {axis = 1} : () -> tensor<4x18xi32>
    %k1 = nn.iota {axis = 0} : () -> tensor<4x18xi32>
    %k2 = nn.binary <mul> %k0, %k1 : (tensor<4x18xi32>, tensor<4x18xi32>) -> tensor<4x18xi32>
    %k3 = nn.constant {value = dense<37> : tensor<i32>} : tensor<i32>
    %k4 = nn.binary <mul> %k2, %k3 : (tensor<4x18xi32>, tensor<i32>) -> tensor<4x18xi32>
    %k5 = nn.cast %k4 : (tensor<4x18xi32>) -> tensor<4x18xi8>
    %k6 = nn.reshape %k5 : (tensor<4x18xi8>) -> tensor<4x2x3x3xi8>
    %k7 = nn.dequantize %k6 {scales = array<f32: 0.011, 0.012, 0.013, 0.014>, zero_points = array<i32: 0, 0, 0, 0>, axis = 0} : (tensor<4x2x3x3xi8>) -> tensor<4x2x3x3xf32>
    %w = nn.transpose %k7 {perm = array<i64: 0, 2, 3, 1>} : (tensor<4x2x3x3xf32>) -> tensor<4x3x3x2xf32>
)";

const char *const convAttributes =
    "{strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>}";

std::string qdqConv(const std::string &middle, const std::string &biasText, const std::string &bias) {
  return std::string("func.func @main(%x: tensor<1x2x6x5xui8>) -> tensor<1x4x6x5xui8> {") + filter + biasText + R"(
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 121>} : (tensor<1x2x6x5xui8>) -> tensor<1x2x6x5xf32>
    %i = nn.transpose %d {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x6x5xf32>) -> tensor<1x6x5x2xf32>
    %c = nn.conv %i, %w)" + (bias.empty() ? "" : ", " + bias) + " " + convAttributes +
         " : (tensor<1x6x5x2xf32>, tensor<4x3x3x2xf32>" + (bias.empty() ? "" : ", tensor<4xf32>") + R"() -> tensor<1x6x5x4xf32>
    %t = nn.transpose %c {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x6x5x4xf32>) -> tensor<1x4x6x5xf32>
    )" + middle + R"(
    %q = nn.quantize %r {scales = array<f32: 0.11>, zero_points = array<i32: 30>} : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xui8>
    return %q : tensor<1x4x6x5xui8>
  })";
}

const char *const floatBias = "%b = nn.constant {value = dense<[0.5, -1.0, 2.0, 0.01]> : tensor<4xf32>} : tensor<4xf32>\n";
const char *const reluText = "%r = nn.unary <relu> %t : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>";
const char *const clampText = "%r = nn.clamp %t {low = -0.7 : f64, high = 6.0 : f64} : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>";

TEST_F(IntegerTest, convWithFloatBiasAndRelu) {
  parse(qdqConv(reluText, floatBias, "%b"));
  integer(1);
  EXPECT_TRUE(only<ConvOp>().getType().getElementType().isInteger(32));
  EXPECT_EQ(static_cast<int32_t>(only<RequantizeOp>().getQmin()), 30);
  EXPECT_EQ(count<DequantizeOp>() + count<QuantizeOp>() + count<ClampOp>() + count<UnaryOp>(), 0) << text();
  EXPECT_TRUE(remarks.empty());
}

TEST_F(IntegerTest, convWithQuantisedBiasAndClamp) {
  parse(qdqConv(clampText, R"(
    %b0 = nn.constant {value = dense<[100, -200, 300, 4000]> : tensor<4xi32>} : tensor<4xi32>
    %b = nn.dequantize %b0 {scales = array<f32: 0.00055, 0.0006, 0.00065, 0.0007>, zero_points = array<i32: 0, 0, 0, 0>} : (tensor<4xi32>) -> tensor<4xf32>
  )", "%b"));
  integer(1);
  EXPECT_EQ(only<RequantizeOp>().getScales()->size(), 4u);
  auto bias = only<ConvOp>().getBias().getDefiningOp<ConstantOp>();
  ASSERT_TRUE(bias);
  EXPECT_EQ(*cast<mlir::DenseElementsAttr>(bias.getValue()).value_begin<int32_t>(), 100);
  EXPECT_EQ(count<DequantizeOp>() + count<QuantizeOp>(), 0) << text();
}

TEST_F(IntegerTest, wholePipelineLeavesBorderTransposes) {
  parse(qdqConv(clampText, floatBias, "%b"));
  checkPipeline({1e-5, 1});
  EXPECT_EQ(countLayoutOps(main()).transposes, 0) << text();
  EXPECT_EQ(count<DequantizeOp>() + count<QuantizeOp>() + count<ClampOp>(), 0) << text();
}

TEST_F(IntegerTest, sharedResultIsRequantisedForEachReader) {
  parse(R"(func.func @main(%x: tensor<3x8xi8>) -> (tensor<3x4xi8>, tensor<3x4xf32>) {
    %k0 = nn.constant {value = dense<[[1, 2, 3, 4], [5, 6, 7, 8], [-1, -2, -3, -4], [9, 8, 7, 6], [1, 1, 1, 1], [100, -100, 50, 3], [4, 4, 4, 4], [0, 0, 2, 0]]> : tensor<8x4xi8>} : tensor<8x4xi8>
    %w = nn.dequantize %k0 {scales = array<f32: 0.1, 0.2, 0.3, 0.4>, zero_points = array<i32: 1, 2, 3, 4>, axis = 1} : (tensor<8x4xi8>) -> tensor<8x4xf32>
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<3x8xi8>) -> tensor<3x8xf32>
    %m = nn.matmul %d, %w : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
    %q = nn.quantize %m {scales = array<f32: 1.3>, zero_points = array<i32: -3>} : (tensor<3x4xf32>) -> tensor<3x4xi8>
    return %q, %m : tensor<3x4xi8>, tensor<3x4xf32>
  })");
  integer(1);
  EXPECT_EQ(only<MatmulOp>().getRhsZeroPoints().size(), 4u);
  EXPECT_EQ(count<RequantizeOp>(), 1);
  EXPECT_EQ(only<DequantizeOp>().getScales().size(), 4u);
}

TEST_F(IntegerTest, productOfTwoActivations) {
  parse(R"(func.func @main(%x: tensor<2x3x8xui8>, %y: tensor<2x8x4xi8>) -> tensor<2x3x4xi8> {
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<2x3x8xui8>) -> tensor<2x3x8xf32>
    %e = nn.dequantize %y {scales = array<f32: 0.02>, zero_points = array<i32: -4>} : (tensor<2x8x4xi8>) -> tensor<2x8x4xf32>
    %m = nn.matmul %d, %e : (tensor<2x3x8xf32>, tensor<2x8x4xf32>) -> tensor<2x3x4xf32>
    %q = nn.quantize %m {scales = array<f32: 0.3>, zero_points = array<i32: -3>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xi8>
    return %q : tensor<2x3x4xi8>
  })");
  integer(1);
  EXPECT_EQ(count<RequantizeOp>(), 1);
}

TEST_F(IntegerTest, quantisationMovesThroughMovement) {
  parse(R"(func.func @main(%x: tensor<1x6x6x2xi8>) -> tensor<2x7x6xi8> {
    %d = nn.dequantize %x {scales = array<f32: 0.1>, zero_points = array<i32: 3>} : (tensor<1x6x6x2xi8>) -> tensor<1x6x6x2xf32>
    %p = nn.max_pool %d {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x6x6x2xf32>) -> tensor<1x3x3x2xf32>
    %r = nn.resize %p {mode = #nn.resize_mode<nearest>, coordinate_mode = #nn.coordinate_mode<asymmetric>, nearest_mode = #nn.nearest_mode<floor>, scales = array<f32: 1.0, 2.0, 2.0, 1.0>} : (tensor<1x3x3x2xf32>) -> tensor<1x6x6x2xf32>
    %s = nn.slice %r {starts = array<i64: 0, 5, 0, 0>, steps = array<i64: 1, -1, 1, 1>} : (tensor<1x6x6x2xf32>) -> tensor<1x6x6x2xf32>
    %t = nn.transpose %s {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x6x6x2xf32>) -> tensor<1x2x6x6xf32>
    %h = nn.reshape %t : (tensor<1x2x6x6xf32>) -> tensor<2x6x6xf32>
    %z = nn.pad %h {low = array<i64: 0, 1, 0>, high = array<i64: 0, 0, 0>, mode = #nn.pad_mode<edge>} : (tensor<2x6x6xf32>) -> tensor<2x7x6xf32>
    %q = nn.quantize %z {scales = array<f32: 0.1>, zero_points = array<i32: 3>} : (tensor<2x7x6xf32>) -> tensor<2x7x6xi8>
    return %q : tensor<2x7x6xi8>
  })");
  integer();
  EXPECT_EQ(count<DequantizeOp>() + count<QuantizeOp>(), 0) << text();
}

TEST_F(IntegerTest, concatOfDifferentParameters) {
  parse(R"(func.func @main(%x: tensor<3x8xi8>, %y: tensor<3x8xi8>) -> tensor<3x16xi8> {
    %d = nn.dequantize %x {scales = array<f32: 0.1>, zero_points = array<i32: 3>} : (tensor<3x8xi8>) -> tensor<3x8xf32>
    %e = nn.dequantize %y {scales = array<f32: 0.2>, zero_points = array<i32: 5>} : (tensor<3x8xi8>) -> tensor<3x8xf32>
    %c = nn.concat %d, %e {axis = 1} : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x16xf32>
    %q = nn.quantize %c {scales = array<f32: 0.2>, zero_points = array<i32: 5>} : (tensor<3x16xf32>) -> tensor<3x16xi8>
    return %q : tensor<3x16xi8>
  })");
  integer();
  EXPECT_TRUE(only<ConcatOp>().getType().getElementType().isInteger(8));
  EXPECT_EQ(count<QuantizeOp>(), 1);
}

TEST_F(IntegerTest, functionsOfOneByteAreTables) {
  parse(R"(func.func @main(%x: tensor<300xi8>, %y: tensor<300xui8>) -> (tensor<300xui8>, tensor<300xi8>) {
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<300xi8>) -> tensor<300xf32>
    %s = nn.unary <sigmoid> %d : (tensor<300xf32>) -> tensor<300xf32>
    %q = nn.quantize %s {scales = array<f32: 0.00390625>, zero_points = array<i32: 0>} : (tensor<300xf32>) -> tensor<300xui8>
    %e = nn.dequantize %y {scales = array<f32: 0.05>, zero_points = array<i32: 128>} : (tensor<300xui8>) -> tensor<300xf32>
    %h = nn.unary <hard_swish> %e : (tensor<300xf32>) -> tensor<300xf32>
    %r = nn.quantize %h {scales = array<f32: 0.05>, zero_points = array<i32: 0>} : (tensor<300xf32>) -> tensor<300xi8>
    return %q, %r : tensor<300xui8>, tensor<300xi8>
  })");
  integer();
  EXPECT_EQ(count<LookupOp>(), 2);
  EXPECT_EQ(count<QuantizeOp>(), 0);
}

// x * sigmoid(x) as post-training quantisers write it, and x * clamp(x / 6 + 1/2) without quantisation in between.
TEST_F(IntegerTest, functionsThatJoinAreTables) {
  parse(R"(func.func @main(%x: tensor<300xi8>, %y: tensor<2x150xui8>) -> (tensor<300xui8>, tensor<2x150xi8>) {
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<300xi8>) -> tensor<300xf32>
    %s = nn.unary <sigmoid> %d : (tensor<300xf32>) -> tensor<300xf32>
    %q = nn.quantize %s {scales = array<f32: 0.00390625>, zero_points = array<i32: 0>} : (tensor<300xf32>) -> tensor<300xui8>
    %e = nn.dequantize %q {scales = array<f32: 0.00390625>, zero_points = array<i32: 0>} : (tensor<300xui8>) -> tensor<300xf32>
    %p = nn.binary <mul> %d, %e : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
    %r = nn.quantize %p {scales = array<f32: 0.03>, zero_points = array<i32: 20>} : (tensor<300xf32>) -> tensor<300xui8>
    %f = nn.dequantize %y {scales = array<f32: 0.05>, zero_points = array<i32: 128>} : (tensor<2x150xui8>) -> tensor<2x150xf32>
    %sixth = nn.constant {value = dense<0.16666667> : tensor<f32>} : tensor<f32>
    %half = nn.constant {value = dense<0.5> : tensor<1x1xf32>} : tensor<1x1xf32>
    %g = nn.binary <mul> %sixth, %f : (tensor<f32>, tensor<2x150xf32>) -> tensor<2x150xf32>
    %h = nn.binary <add> %g, %half : (tensor<2x150xf32>, tensor<1x1xf32>) -> tensor<2x150xf32>
    %i = nn.clamp %h {low = 0.0 : f64, high = 1.0 : f64} : (tensor<2x150xf32>) -> tensor<2x150xf32>
    %j = nn.binary <mul> %f, %i : (tensor<2x150xf32>, tensor<2x150xf32>) -> tensor<2x150xf32>
    %k = nn.unary <abs> %j : (tensor<2x150xf32>) -> tensor<2x150xf32>
    %t = nn.quantize %k {scales = array<f32: 0.05>, zero_points = array<i32: -9>} : (tensor<2x150xf32>) -> tensor<2x150xi8>
    return %r, %t : tensor<300xui8>, tensor<2x150xi8>
  })");
  integer();
  EXPECT_EQ(count<LookupOp>(), 2) << text();
  EXPECT_EQ(count<QuantizeOp>() + count<DequantizeOp>() + count<BinaryOp>(), 0) << text();
}

TEST_F(IntegerTest, functionsOfTwoTensorsAreNoTables) {
  parse(R"(func.func @main(%x: tensor<300xi8>, %y: tensor<300xi8>) -> tensor<300xi8> {
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<300xi8>) -> tensor<300xf32>
    %e = nn.dequantize %y {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<300xi8>) -> tensor<300xf32>
    %s = nn.unary <sigmoid> %e : (tensor<300xf32>) -> tensor<300xf32>
    %p = nn.binary <mul> %d, %s : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
    %q = nn.quantize %p {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<300xf32>) -> tensor<300xi8>
    return %q : tensor<300xi8>
  })");
  integer();
  EXPECT_EQ(count<LookupOp>(), 0);
}

TEST_F(IntegerTest, meanWithEqualParameters) {
  parse(R"(func.func @main(%x: tensor<1x6x6x2xi8>) -> tensor<1x5x5x2xi8> {
    %d = nn.dequantize %x {scales = array<f32: 0.1>, zero_points = array<i32: 3>} : (tensor<1x6x6x2xi8>) -> tensor<1x6x6x2xf32>
    %p = nn.avg_pool %d {window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x6x6x2xf32>) -> tensor<1x5x5x2xf32>
    %q = nn.quantize %p {scales = array<f32: 0.1>, zero_points = array<i32: 3>} : (tensor<1x5x5x2xf32>) -> tensor<1x5x5x2xi8>
    return %q : tensor<1x5x5x2xi8>
  })");
  integer(1);
  EXPECT_EQ(count<DequantizeOp>(), 0);
}

TEST_F(IntegerTest, elementwiseStaysBetweenDequantizeAndQuantize) {
  parse(R"(func.func @main(%x: tensor<300xi8>, %y: tensor<300xi8>) -> tensor<300xi8> {
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<300xi8>) -> tensor<300xf32>
    %e = nn.dequantize %y {scales = array<f32: 0.06>, zero_points = array<i32: 3>} : (tensor<300xi8>) -> tensor<300xf32>
    %a = nn.binary <add> %d, %e : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
    %q = nn.quantize %a {scales = array<f32: 0.1>, zero_points = array<i32: 3>} : (tensor<300xf32>) -> tensor<300xi8>
    return %q : tensor<300xi8>
  })");
  integer();
  EXPECT_EQ(count<BinaryOp>(), 1);
}

TEST_F(IntegerTest, saysWhyAProductStays) {
  parse(R"(func.func @main(%x: tensor<3x4xi8>, %f: tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
    %k = nn.constant {value = dense<[[1, 2], [5, 6], [-1, -2], [0, 1]]> : tensor<4x2xi8>} : tensor<4x2xi8>
    %w = nn.dequantize %k {scales = array<f32: 0.1, 0.2, 0.3, 0.4>, zero_points = array<i32: 0, 0, 0, 0>, axis = 0} : (tensor<4x2xi8>) -> tensor<4x2xf32>
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 3>} : (tensor<3x4xi8>) -> tensor<3x4xf32>
    %a = nn.matmul %d, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %b = nn.matmul %f, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    return %a, %b : tensor<3x2xf32>, tensor<3x2xf32>
  })");
  integer();
  ASSERT_GE(remarks.size(), 2u);
  EXPECT_EQ(remarks[0],
            "stays in floating point: its weight is quantised along another dimension than the output channels");
  EXPECT_EQ(remarks[1], "stays in floating point: its input is not quantised");
}

TEST_F(IntegerTest, longSumsStay) {
  parse(R"(func.func @main(%x: tensor<1x140000xi8>, %y: tensor<140000x1xi8>) -> tensor<1x1xf32> {
    %d = nn.dequantize %x {scales = array<f32: 0.05>, zero_points = array<i32: 0>} : (tensor<1x140000xi8>) -> tensor<1x140000xf32>
    %e = nn.dequantize %y {scales = array<f32: 0.05>, zero_points = array<i32: 0>} : (tensor<140000x1xi8>) -> tensor<140000x1xf32>
    %a = nn.matmul %d, %e : (tensor<1x140000xf32>, tensor<140000x1xf32>) -> tensor<1x1xf32>
    return %a : tensor<1x1xf32>
  })");
  integer();
  ASSERT_FALSE(remarks.empty());
  EXPECT_EQ(remarks[0], "stays in floating point: its sums of 140000 products may exceed 32 bits");
}

} // namespace
