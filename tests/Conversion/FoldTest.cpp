//===- FoldTest.cpp - nn-fold and nn-matmul-shape --------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::nn;

namespace {

struct FoldTest : test::SimplifyTest {
  void fold() {
    check([] { return createFoldPass(); });
  }
};

TEST_F(FoldTest, computesConstants) {
  parse(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = nn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
    %b = nn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
    %c = nn.binary <mul> %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %d = nn.unary <exp> %c : (tensor<4xf32>) -> tensor<4xf32>
    %y = nn.binary <add> %x, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  })");
  fold();
  EXPECT_EQ(count<ConstantOp>(), 1);
  EXPECT_EQ(count<UnaryOp>(), 0);
}

TEST_F(FoldTest, keepsLargeExpansionsAndDequantizedWeights) {
  parse(R"(func.func @main(%x: tensor<1x200000xf32>) -> (tensor<1x200000xf32>, tensor<2xf32>) {
    %a = nn.constant {value = dense<1.5> : tensor<1x1xf32>} : tensor<1x1xf32>
    %b = nn.broadcast %a : (tensor<1x1xf32>) -> tensor<1x200000xf32>
    %y = nn.binary <pow> %b, %x : (tensor<1x200000xf32>, tensor<1x200000xf32>) -> tensor<1x200000xf32>
    %q = nn.constant {value = dense<[3, 4]> : tensor<2xi8>} : tensor<2xi8>
    %d = nn.dequantize %q {scales = array<f32: 0.5>, zero_points = array<i32: 1>} : (tensor<2xi8>) -> tensor<2xf32>
    return %y, %d : tensor<1x200000xf32>, tensor<2xf32>
  })");
  fold();
  EXPECT_EQ(count<DequantizeOp>(), 1);
  check([] { return createFoldPass({true}); });
  EXPECT_EQ(count<DequantizeOp>(), 0);
}

TEST_F(FoldTest, combinesTransposes) {
  parse(R"(func.func @main(%x: tensor<2x3x4x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<5x2x3x4xf32>) {
    %a = nn.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
    %b = nn.transpose %a {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x4x5x3xf32>) -> tensor<2x3x4x5xf32>
    %c = nn.transpose %a {perm = array<i64: 2, 0, 3, 1>} : (tensor<2x4x5x3xf32>) -> tensor<5x2x3x4xf32>
    return %b, %c : tensor<2x3x4x5xf32>, tensor<5x2x3x4xf32>
  })");
  fold();
  EXPECT_EQ(only<TransposeOp>().getPerm(), (llvm::ArrayRef<int64_t>{3, 0, 1, 2}));
}

TEST_F(FoldTest, transposeOfUnitsIsReshape) {
  parse(R"(func.func @main(%x: tensor<1x1x1x7xf32>) -> tensor<7xf32> {
    %a = nn.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x1x1x7xf32>) -> tensor<1x7x1x1xf32>
    %b = nn.reshape %a : (tensor<1x7x1x1xf32>) -> tensor<1x7xf32>
    %c = nn.reshape %b : (tensor<1x7xf32>) -> tensor<7xf32>
    return %c : tensor<7xf32>
  })");
  fold();
  EXPECT_EQ(count<TransposeOp>(), 0);
  EXPECT_EQ(count<ReshapeOp>(), 1);
}

TEST_F(FoldTest, slicesCompose) {
  parse(R"(func.func @main(%x: tensor<20x4xf32>) -> (tensor<4x4xf32>, tensor<3x4xf32>) {
    %a = nn.slice %x {starts = array<i64: 19, 0>, steps = array<i64: -2, 1>} : (tensor<20x4xf32>) -> tensor<9x4xf32>
    %b = nn.slice %a {starts = array<i64: 1, 3>, steps = array<i64: 2, -1>} : (tensor<9x4xf32>) -> tensor<4x4xf32>
    %p = nn.slice %x {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<20x4xf32>) -> tensor<5x4xf32>
    %q = nn.concat %p, %x {axis = 0} : (tensor<5x4xf32>, tensor<20x4xf32>) -> tensor<25x4xf32>
    %c = nn.slice %q {starts = array<i64: 7, 0>, steps = array<i64: 3, 1>} : (tensor<25x4xf32>) -> tensor<3x4xf32>
    return %b, %c : tensor<4x4xf32>, tensor<3x4xf32>
  })");
  fold();
  EXPECT_EQ(count<SliceOp>(), 2);
  EXPECT_EQ(count<ConcatOp>(), 0);
}

TEST_F(FoldTest, movementThatMovesNothing) {
  parse(R"(func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<6x3xf32>, tensor<6x6xf32>) {
    %a = nn.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %b = nn.concat %a {axis = 1} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %c = nn.concat %b, %x {axis = 0} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %d = nn.concat %c, %x {axis = 0} : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
    %e = nn.pad %x {low = array<i64: 1, 0>, high = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<3x4xf32>
    %f = nn.pad %e {low = array<i64: 1, 1>, high = array<i64: 2, 1>} : (tensor<3x4xf32>) -> tensor<6x6xf32>
    return %b, %d, %f : tensor<2x3xf32>, tensor<6x3xf32>, tensor<6x6xf32>
  })");
  fold();
  EXPECT_EQ(only<ConcatOp>().getInputs().size(), 3u);
  EXPECT_EQ(only<PadOp>().getHigh()[0], 2);
}

TEST_F(FoldTest, identitiesOfElements) {
  parse(R"(func.func @main(%x: tensor<2x3xf32>, %i: tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
    %one = nn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
    %negative_zero = nn.constant {value = dense<-0.0> : tensor<3xf32>} : tensor<3xf32>
    %zero = nn.constant {value = dense<0> : tensor<i32>} : tensor<i32>
    %a = nn.binary <mul> %one, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %b = nn.binary <add> %a, %negative_zero : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %c = nn.unary <neg> %b : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %d = nn.unary <neg> %c : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %e = nn.binary <add> %zero, %i : (tensor<i32>, tensor<2x3xi32>) -> tensor<2x3xi32>
    return %d, %e : tensor<2x3xf32>, tensor<2x3xi32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 0);
  EXPECT_EQ(count<UnaryOp>(), 0);
}

TEST_F(FoldTest, keepsAdditionOfPositiveZero) {
  parse(R"(func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %zero = nn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
    %a = nn.binary <add> %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    return %a : tensor<3xf32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 1);
}

TEST_F(FoldTest, limitsMerge) {
  parse(R"(func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
    %six = nn.constant {value = dense<6.0> : tensor<f32>} : tensor<f32>
    %a = nn.unary <relu> %x : (tensor<64xf32>) -> tensor<64xf32>
    %b = nn.unary <relu> %a : (tensor<64xf32>) -> tensor<64xf32>
    %c = nn.binary <min> %b, %six : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %d = nn.clamp %x {low = -1.0 : f64, high = 1.0 : f64} : (tensor<64xf32>) -> tensor<64xf32>
    %e = nn.clamp %d {low = 2.0 : f64, high = 3.0 : f64} : (tensor<64xf32>) -> tensor<64xf32>
    return %c, %e : tensor<64xf32>, tensor<64xf32>
  })");
  fold();
  EXPECT_EQ(count<ClampOp>(), 2);
  EXPECT_EQ(count<UnaryOp>() + count<BinaryOp>(), 0);
}

TEST_F(FoldTest, castsMergeOnlyWhereExact) {
  parse(R"(func.func @main(%x: tensor<9xi8>, %f: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xi8>, tensor<9xf32>, tensor<9xui8>) {
    %a = nn.cast %x : (tensor<9xi8>) -> tensor<9xi32>
    %b = nn.cast %a : (tensor<9xi32>) -> tensor<9xf32>
    %c = nn.cast %b : (tensor<9xf32>) -> tensor<9xi8>
    %d = nn.cast %f : (tensor<9xf32>) -> tensor<9xf16>
    %e = nn.cast %d : (tensor<9xf16>) -> tensor<9xf32>
    %g = nn.cast %b : (tensor<9xf32>) -> tensor<9xui8>
    return %b, %c, %e, %g : tensor<9xf32>, tensor<9xi8>, tensor<9xf32>, tensor<9xui8>
  })");
  fold();
  EXPECT_EQ(count<CastOp>(), 4);
}

TEST_F(FoldTest, selectOfConstantCondition) {
  parse(R"(func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %t = nn.constant {value = dense<true> : tensor<i1>} : tensor<i1>
    %f = nn.constant {value = dense<false> : tensor<3xi1>} : tensor<3xi1>
    %a = nn.select %t, %x, %y : (tensor<i1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %b = nn.select %f, %x, %y : (tensor<3xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    return %a, %b : tensor<2x3xf32>, tensor<2x3xf32>
  })");
  fold();
  EXPECT_EQ(count<SelectOp>(), 0);
  EXPECT_EQ(count<BroadcastOp>(), 1);
}

TEST_F(FoldTest, dropsBroadcastBeforeBinary) {
  parse(R"(func.func @main(%x: tensor<4x3xf32>, %y: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
    %b = nn.broadcast %y : (tensor<3xf32>) -> tensor<4x3xf32>
    %a = nn.binary <sub> %b, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %c = nn.binary <mul> %b, %y : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    return %a, %c : tensor<4x3xf32>, tensor<4x3xf32>
  })");
  fold();
  EXPECT_EQ(count<BinaryOp>(), 2);
  EXPECT_EQ(count<BroadcastOp>(), 1) << "the second one gives the shape";
}

TEST_F(FoldTest, quantizeOfDequantize) {
  parse(R"(func.func @main(%x: tensor<500xi8>) -> (tensor<500xi8>, tensor<500xi8>) {
    %d = nn.dequantize %x {scales = array<f32: 0.0173>, zero_points = array<i32: -7>} : (tensor<500xi8>) -> tensor<500xf32>
    %q = nn.quantize %d {scales = array<f32: 0.0173>, zero_points = array<i32: -7>} : (tensor<500xf32>) -> tensor<500xi8>
    %r = nn.quantize %d {scales = array<f32: 0.0173>, zero_points = array<i32: -6>} : (tensor<500xf32>) -> tensor<500xi8>
    return %q, %r : tensor<500xi8>, tensor<500xi8>
  })");
  fold();
  EXPECT_EQ(count<QuantizeOp>(), 1);
}

TEST_F(FoldTest, gatherOfNeighboursIsSlice) {
  parse(R"(func.func @main(%x: tensor<5x4xf32>) -> (tensor<4xf32>, tensor<5x2xf32>, tensor<2x4xf32>) {
    %i = nn.constant {value = dense<-2> : tensor<i64>} : tensor<i64>
    %j = nn.constant {value = dense<[3, 1]> : tensor<2xi64>} : tensor<2xi64>
    %k = nn.constant {value = dense<[1, 1]> : tensor<2xi64>} : tensor<2xi64>
    %a = nn.gather %x, %i {axis = 0} : (tensor<5x4xf32>, tensor<i64>) -> tensor<4xf32>
    %b = nn.gather %x, %j {axis = 1} : (tensor<5x4xf32>, tensor<2xi64>) -> tensor<5x2xf32>
    %c = nn.gather %x, %k {axis = 0} : (tensor<5x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    return %a, %b, %c : tensor<4xf32>, tensor<5x2xf32>, tensor<2x4xf32>
  })");
  fold();
  EXPECT_EQ(count<SliceOp>(), 2);
  EXPECT_EQ(count<GatherOp>(), 1);
}

TEST_F(FoldTest, commonSubexpressions) {
  parse(R"(func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %a = nn.unary <exp> %x : (tensor<3xf32>) -> tensor<3xf32>
    %b = nn.unary <exp> %x : (tensor<3xf32>) -> tensor<3xf32>
    %dead = nn.unary <log> %x : (tensor<3xf32>) -> tensor<3xf32>
    %c = nn.binary <add> %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %c : tensor<3xf32>
  })");
  fold();
  EXPECT_EQ(count<UnaryOp>(), 1);
}

TEST_F(FoldTest, matmulTakesTransposedOperandsAtTheEnd) {
  parse(R"(func.func @main(%x: tensor<2x3x5xf32>, %y: tensor<2x4x5xf32>) -> tensor<2x3x4xf32> {
    %t = nn.transpose %y {perm = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
    %z = nn.matmul %x, %t : (tensor<2x3x5xf32>, tensor<2x5x4xf32>) -> tensor<2x3x4xf32>
    return %z : tensor<2x3x4xf32>
  })");
  fold();
  EXPECT_EQ(count<TransposeOp>(), 1);
  check([] { return createFoldPass({/*foldDequantize=*/true, /*foldIntoProducts=*/true}); });
  EXPECT_EQ(count<TransposeOp>(), 0);
  EXPECT_TRUE(only<MatmulOp>().getTransposeRhs());
}

TEST_F(FoldTest, spaceToBatchAroundConvIsDilation) {
  parse(R"(func.func @main(%x: tensor<2x12x10x3xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<2x9x6x4xf32> {
    %a = nn.reshape %x : (tensor<2x12x10x3xf32>) -> tensor<2x4x3x5x2x3xf32>
    %b = nn.transpose %a {perm = array<i64: 2, 4, 0, 1, 3, 5>} : (tensor<2x4x3x5x2x3xf32>) -> tensor<3x2x2x4x5x3xf32>
    %c = nn.reshape %b : (tensor<3x2x2x4x5x3xf32>) -> tensor<12x4x5x3xf32>
    %d = nn.conv %c, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
         : (tensor<12x4x5x3xf32>, tensor<4x2x3x3xf32>) -> tensor<12x3x3x4xf32>
    %e = nn.unary <relu> %d : (tensor<12x3x3x4xf32>) -> tensor<12x3x3x4xf32>
    %f = nn.reshape %e : (tensor<12x3x3x4xf32>) -> tensor<3x2x2x3x3x4xf32>
    %g = nn.transpose %f {perm = array<i64: 2, 3, 0, 4, 1, 5>} : (tensor<3x2x2x3x3x4xf32>) -> tensor<2x3x3x3x2x4xf32>
    %h = nn.reshape %g : (tensor<2x3x3x3x2x4xf32>) -> tensor<2x9x6x4xf32>
    return %h : tensor<2x9x6x4xf32>
  })");
  fold();
  EXPECT_EQ(count<TransposeOp>() + count<ReshapeOp>(), 0);
  EXPECT_EQ(only<ConvOp>().getDilations(), (llvm::ArrayRef<int64_t>{3, 2}));
}

TEST_F(FoldTest, keepsBothLocations) {
  parse(R"(func.func @main(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
    %a = nn.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32> loc("first")
    %b = nn.transpose %a {perm = array<i64: 1, 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32> loc("second")
    return %b : tensor<4x3x2xf32>
  })");
  fold();
  std::string loc;
  llvm::raw_string_ostream(loc) << only<TransposeOp>().getLoc();
  EXPECT_NE(loc.find("first"), std::string::npos) << loc;
  EXPECT_NE(loc.find("second"), std::string::npos) << loc;
}

TEST_F(FoldTest, batchOfRowsIsRows) {
  parse(R"(func.func @main(%x: tensor<2x3x5xf32>, %w: tensor<1x5x4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
    %z = nn.matmul %x, %w, %b : (tensor<2x3x5xf32>, tensor<1x5x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
    return %z : tensor<2x3x4xf32>
  })");
  check([] { return createMatmulShapePass(); });
  EXPECT_EQ(only<MatmulOp>().getType().getShape(), (llvm::ArrayRef<int64_t>{6, 4}));
}

} // namespace
