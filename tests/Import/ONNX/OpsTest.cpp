//===- OpsTest.cpp - meanings that depend on versions, and inputs that are easy to get wrong ---===//
#include "ModelBuilder.h"

#include <cmath>
#include <limits>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max();

Outcome slice(const HostTensor &x, Int64s starts, Int64s ends, Int64s axes, Int64s steps) {
  ModelBuilder m(13);
  std::vector<Dim> shape(x.shape.begin(), x.shape.end());
  int64_t n = int64_t(starts.size());
  m.input("x", shape).initializer("s", int64s({n}, starts)).initializer("e", int64s({n}, ends));
  m.initializer("a", int64s({n}, axes)).initializer("t", int64s({n}, steps));
  m.node("Slice", {"x", "s", "e", "a", "t"}, {"y"}).output("y");
  return run(m, {x});
}

TEST(Slice, NegativeSteps) {
  HostTensor ten = ramp({10});
  expectFloats(slice(ten, {9}, {0}, {0}, {-1}), {9}, {9, 8, 7, 6, 5, 4, 3, 2, 1});
  expectFloats(slice(ten, {7}, {0}, {0}, {-1}), {7}, {7, 6, 5, 4, 3, 2, 1});
  expectFloats(slice(ten, {9}, {2}, {0}, {-1}), {7}, {9, 8, 7, 6, 5, 4, 3});
  expectFloats(slice(ten, {9}, {0}, {0}, {-3}), {3}, {9, 6, 3});
  expectFloats(slice(ramp({20}), {19}, {0}, {0}, {-3}), {7}, {19, 16, 13, 10, 7, 4, 1});
  expectFloats(slice(ramp({3, 4}), {2, 3}, {0, 0}, {0, 1}, {-1, -1}), {2, 3}, {11, 10, 9, 7, 6, 5});
}

TEST(Slice, LargestEndIsOpen) {
  expectFloats(slice(ramp({4}), {1}, {most}, {0}, {1}), {3}, {1, 2, 3});
  expectFloats(slice(ramp({4}), {most}, {-most - 1}, {0}, {-1}), {4}, {3, 2, 1, 0});
  expectFloats(slice(ramp({4}), {0}, {most}, {0}, {most}), {1}, {0});
}

TEST(Slice, AttributesBeforeOpset10) {
  ModelBuilder m(9);
  m.input("x", {4}).node("Slice", {"x"}, {"y"}, {{"starts", Int64s{1}}, {"ends", Int64s{-1}}}).output("y");
  expectFloats(run(m, {ramp({4})}), {2}, {1, 2});
}

TEST(Gather, NegativeIndices) {
  ModelBuilder m(13);
  m.input("x", {5}).input("i", {3}, ::onnx::TensorProto::INT64).node("Gather", {"x", "i"}, {"y"}).output("y");
  expectFloats(run(m, {ramp({5}, 1), int64s({3}, {-1, -3, 0})}), {3}, {5, 3, 1});
  ModelBuilder rows(13);
  rows.input("x", {3, 4}).initializer("i", int64s({2}, {0, -1})).node("Gather", {"x", "i"}, {"y"}).output("y");
  expectFloats(run(rows, {ramp({3, 4}, 1)}), {2, 4}, {1, 2, 3, 4, 9, 10, 11, 12});
}

TEST(AveragePool, CeilModeAndPadding) {
  auto pool = [](int64_t include) {
    ModelBuilder m(11);
    m.input("x", {1, 1, 4, 4});
    m.node("AveragePool", {"x"}, {"y"},
           {{"kernel_shape", Int64s{3, 3}}, {"strides", Int64s{2, 2}}, {"pads", Int64s{1, 1, 1, 1}},
            {"ceil_mode", int64_t(1)}, {"count_include_pad", include}});
    m.output("y");
    return run(m, {ramp({1, 1, 4, 4}, 1)});
  };
  expectFloats(pool(1), {1, 1, 3, 3}, {1.5556f, 3.3333f, 2, 6.3333f, 11, 6, 4.5f, 7.5f, 4}, 1e-3f);
  expectFloats(pool(0), {1, 1, 3, 3}, {3.5f, 5, 6, 9.5f, 11, 12, 13.5f, 15, 16});
}

TEST(AveragePool, PaddingAtOneEndAndBeyondTheWindow) {
  ModelBuilder m(11);
  m.input("x", {1, 1, 2, 2});
  m.node("AveragePool", {"x"}, {"y"}, {{"kernel_shape", Int64s{2, 2}}, {"pads", Int64s{0, 0, 1, 1}}, {"count_include_pad", int64_t(1)}});
  m.output("y");
  expectFloats(run(m, {ramp({1, 1, 2, 2}, 1, 0)}), {1, 1, 2, 2}, {1, .5f, .5f, .25f});
  ModelBuilder wide(11);
  wide.input("x", {1, 1, 5});
  wide.node("AveragePool", {"x"}, {"y"}, {{"kernel_shape", Int64s{2}}, {"strides", Int64s{2}}, {"pads", Int64s{2, 3}}, {"count_include_pad", int64_t(1)}});
  wide.output("y");
  expectFloats(run(wide, {ramp({1, 1, 5}, 1)}), {1, 1, 5}, {0, 1.5f, 3.5f, 2.5f, 0});
}

Outcome reflect(Shape shape, Int64s pads) {
  ModelBuilder m(13);
  m.input("x", std::vector<Dim>(shape.begin(), shape.end())).initializer("p", int64s({int64_t(pads.size())}, pads));
  m.node("Pad", {"x", "p"}, {"y"}, {{"mode", std::string("reflect")}}).output("y");
  return run(m, {ramp(shape)});
}

TEST(Pad, Reflect) {
  expectError(reflect({3, 2}, {0, 2, 0, 0}), {"Pad", "reflect", "at most 1"});
  expectFloats(reflect({3, 2}, {0, 1, 0, 1}), {3, 4}, {1, 0, 1, 0, 3, 2, 3, 2, 5, 4, 5, 4});
  expectError(reflect({8, 20, 17, 13}, {3, 0, 4, 1, 11, 1, 8, 0}), {"reflect", "11", "at most 7"});
  expectError(reflect({3}, {-5, 0}), {"remove more"});
  expectError(reflect({5}, {-4, 4}), {"at most 0"});
  expectFloats(reflect({3, 2}, {1, 0, 0, 0}), {4, 2}, {2, 3, 0, 1, 2, 3, 4, 5});
}

TEST(ConvTranspose, SamePaddingGivesStrideTimesTheSize) {
  ModelBuilder m(11);
  m.input("x", {1, 1, 2, 2}).initializer("w", ramp({1, 1, 3, 3}, 2));
  m.node("ConvTranspose", {"x", "w"}, {"y"}, {{"auto_pad", std::string("SAME_UPPER")}}).output("y");
  expectFloats(run(m, {ramp({1, 1, 2, 2}, 2)}), {1, 1, 2, 2}, {49, 63, 91, 105});
}

TEST(ConvTranspose, OutputShapeCutsTheEnd) {
  // One row: 2 inputs, window 3, stride 2 give 5; output_shape 4 drops the last.
  ModelBuilder m(11);
  m.input("x", {1, 1, 2}).initializer("w", floats({1, 1, 3}, {1, 10, 100}));
  m.node("ConvTranspose", {"x", "w"}, {"y"}, {{"strides", Int64s{2}}, {"output_shape", Int64s{4}}}).output("y");
  expectFloats(run(m, {floats({1, 1, 2}, {1, 2})}), {1, 1, 4}, {1, 10, 102, 20});
}

Outcome resize(std::vector<Attr> attrs, Floats scales, Int64s sizes, HostTensor x) {
  ModelBuilder m(13);
  m.input("x", std::vector<Dim>(x.shape.begin(), x.shape.end()));
  m.initializer("scales", floats({int64_t(scales.size())}, scales)).initializer("sizes", int64s({int64_t(sizes.size())}, sizes));
  m.node("Resize", {"x", "", scales.empty() ? "" : "scales", sizes.empty() ? "" : "sizes"}, {"y"}, attrs).output("y");
  return run(m, {x});
}
Attr mode(const char *value) { return {"mode", std::string(value)}; }
Attr coordinates(const char *value) { return {"coordinate_transformation_mode", std::string(value)}; }

TEST(Resize, CoordinateModes) {
  HostTensor x = ramp({1, 1, 2, 4}, 1);
  expectFloats(resize({mode("linear"), coordinates("half_pixel")}, {1, 1, .6f, .6f}, {}, x), {1, 1, 1, 2}, {2.6667f, 4.3333f});
  expectFloats(resize({mode("linear"), coordinates("align_corners")}, {1, 1, .6f, .6f}, {}, x), {1, 1, 1, 2}, {1, 3.142857f});
  expectFloats(resize({mode("nearest")}, {}, {1, 1, 1, 3}, x), {1, 1, 1, 3}, {1, 2, 4});
  HostTensor square = floats({1, 1, 2, 2}, {6, 7, 11, 12});
  auto row = [&](const char *coordinate, Floats expected) {
    Outcome o = resize({mode("linear"), coordinates(coordinate)}, {}, {1, 1, 4, 4}, square);
    ASSERT_EQ(o.error, "");
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(o.outputs[0].as<float>()[i], expected[i], 1e-3) << coordinate;
  };
  row("half_pixel", {6, 6.25f, 6.75f, 7});
  row("align_corners", {6, 6.3333f, 6.6667f, 7});
  row("asymmetric", {6, 6.5f, 7, 7});
}

TEST(Resize, CubicOfLengthOneReadsCoordinateZero) {
  expectFloats(resize({mode("cubic"), coordinates("pytorch_half_pixel")}, {}, {1, 1, 1, 1}, ramp({1, 1, 4, 4}, 1)),
               {1, 1, 1, 1}, {1});
}

TEST(Softmax, FlattensBeforeOpset13) {
  auto softmax = [](int64_t opset) {
    ModelBuilder m(opset);
    m.input("x", {2, 3, 4}).node("Softmax", {"x"}, {"y"}).output("y");
    return run(m, {ramp({2, 3, 4}, 0, .1f)});
  };
  Outcome flat = softmax(11), along = softmax(13);
  ASSERT_EQ(flat.error + along.error, "");
  Floats expectedFlat{.0453f, .0501f, .0554f, .0612f}, expectedAlong{.2138f, .2363f, .2612f, .2887f};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(flat.outputs[0].as<float>()[i], expectedFlat[i], 1e-4);
    EXPECT_NEAR(along.outputs[0].as<float>()[i], expectedAlong[i], 1e-4);
  }
}

Outcome reshape(Shape in, Int64s shape, int64_t allowZero = 0) {
  ModelBuilder m(14);
  m.input("x", std::vector<Dim>(in.begin(), in.end())).initializer("s", int64s({int64_t(shape.size())}, shape));
  m.node("Reshape", {"x", "s"}, {"y"}, {{"allowzero", allowZero}}).output("y");
  return run(m, {ramp(in)});
}

TEST(Reshape, Zeros) {
  expectFloats(reshape({2, 0}, {1, 2, 0}, 1), {1, 2, 0}, {});
  expectFloats(reshape({2, 3}, {0, 3, 1}), {2, 3, 1}, {0, 1, 2, 3, 4, 5});
  expectError(reshape({0, 10}, {0, 1, -1}, 0), {"Reshape", "-1"});
  expectError(reshape({2, 3}, {0, 0, 0}), {"copies dimension 2"});
  expectError(reshape({2, 3}, {-1, -1}), {"-1 twice"});
  expectError(reshape({2, 3}, {4, -1}), {"does not fit"});
  expectError(reshape({2, 3}, {-2, 3}), {"negative"});
}

TEST(Clip, MissingLimits) {
  ModelBuilder m(11);
  m.input("x", {4}).initializer("max", floats({}, {7})).node("Clip", {"x", "", "max"}, {"y"}).output("y");
  expectFloats(run(m, {floats({4}, {-5, 0, 7, 9})}), {4}, {-5, 0, 7, 7});
  ModelBuilder old(6);
  old.input("x", {3}).node("Clip", {"x"}, {"y"}, {{"min", -1.0f}}).output("y");
  expectFloats(run(old, {floats({3}, {-5, 0, 9})}), {3}, {-1, 0, 9});
  ModelBuilder crossed(13);
  crossed.input("x", {2}).initializer("lo", floats({}, {3})).initializer("hi", floats({}, {1}));
  crossed.node("Clip", {"x", "lo", "hi"}, {"y"}).output("y");
  expectFloats(run(crossed, {floats({2}, {0, 5})}), {2}, {1, 1});
}

TEST(BatchNormalization, UsesRunningStatistics) {
  ModelBuilder m(14);
  m.input("x", {1, 2, 1}).initializer("s", floats({2}, {1, 2})).initializer("b", floats({2}, {0, 1}));
  m.initializer("m", floats({2}, {1, 1})).initializer("v", floats({2}, {4, 1}));
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {{"training_mode", int64_t(0)}, {"epsilon", 0.0f}});
  m.output("y");
  expectFloats(run(m, {floats({1, 2, 1}, {3, 3})}), {1, 2, 1}, {1, 5});
  m.lastNode().mutable_attribute(0)->set_i(1);
  expectError(run(m, {}), {"training_mode", "inference"});
}

TEST(Gelu, TanhForm) {
  auto gelu = [](const char *form) {
    ModelBuilder m(20);
    m.input("x", {1}).node("Gelu", {"x"}, {"y"}, {{"approximate", std::string(form)}}).output("y");
    return run(m, {floats({1}, {2})});
  };
  expectFloats(gelu("none"), {1}, {1.9544997f}, 1e-6f);
  expectFloats(gelu("tanh"), {1}, {1.9545977f}, 1e-6f);
}

TEST(Folding, SubtractionIsNotAssociative) {
  ModelBuilder m(13);
  m.input("x", {1}).initializer("one", floats({1}, {1}));
  m.node("Add", {"x", "one"}, {"t"}).node("Sub", {"x", "t"}, {"y"}).output("y");
  expectFloats(run(m, {floats({1}, {5})}), {1}, {-1});
}

TEST(GroupNormalization, ScaleForEachChannelSinceOpset21) {
  auto groupNorm = [](int64_t opset, int64_t count) {
    ModelBuilder m(opset);
    m.input("x", {1, 4, 1, 1, 2}).initializer("s", ramp({count}, 1)).initializer("b", ramp({count}, 0, 0));
    m.node("GroupNormalization", {"x", "s", "b"}, {"y"}, {{"num_groups", int64_t(2)}, {"epsilon", 0.0f}}).output("y");
    return run(m, {floats({1, 4, 1, 1, 2}, {0, 0, 2, 2, 0, 2, 0, 2})});
  };
  expectFloats(groupNorm(21, 4), {1, 4, 1, 1, 2}, {-1, -1, 2, 2, -3, 3, -4, 4});
  expectFloats(groupNorm(18, 2), {1, 4, 1, 1, 2}, {-1, -1, 1, 1, -2, 2, -2, 2});
}

TEST(LayerNormalization, BroadcastsScaleOfHigherRank) {
  ModelBuilder m(17);
  m.input("x", {2, 2, 2}).initializer("s", floats({1, 2, 2}, {1, 2, 3, 4})).initializer("b", floats({2, 1, 2}, {0, 0, 1, 1}));
  m.node("LayerNormalization", {"x", "s", "b"}, {"y"}, {{"axis", int64_t(2)}, {"epsilon", 0.0f}}).output("y");
  expectFloats(run(m, {floats({2, 2, 2}, {0, 2, 0, 2, 0, 2, 0, 2})}), {2, 2, 2}, {-1, 2, -3, 4, 0, 3, -2, 5});
}

TEST(Squeeze, AxesAsInputSinceOpset13) {
  ModelBuilder old(11), now(13);
  old.input("x", {1, 2, 1}).node("Squeeze", {"x"}, {"y"}, {{"axes", Int64s{0}}}).output("y");
  now.input("x", {1, 2, 1}).initializer("a", int64s({1}, {-1})).node("Squeeze", {"x", "a"}, {"y"}).output("y");
  expectFloats(run(old, {ramp({1, 2, 1})}), {2, 1}, {0, 1});
  expectFloats(run(now, {ramp({1, 2, 1})}), {1, 2}, {0, 1});
}

TEST(Split, UnevenSinceOpset18) {
  ModelBuilder m(18);
  m.input("x", {5}).node("Split", {"x"}, {"a", "b"}, {{"num_outputs", int64_t(2)}}).output("b");
  expectFloats(run(m, {ramp({5})}), {2}, {3, 4});
  ModelBuilder old(13);
  old.input("x", {5}).node("Split", {"x"}, {"a", "b"}).output("b");
  expectError(run(old, {}), {"splits 5 into 2 equal parts"});
}

TEST(Einsum, Equations) {
  auto einsum = [](const char *equation, HostTensor a, HostTensor b) {
    ModelBuilder m(13);
    m.input("a", std::vector<Dim>(a.shape.begin(), a.shape.end())).input("b", std::vector<Dim>(b.shape.begin(), b.shape.end()));
    m.node("Einsum", {"a", "b"}, {"y"}, {{"equation", std::string(equation)}}).output("y");
    return run(m, {a, b});
  };
  expectFloats(einsum("ij,jk->ik", ramp({2, 2}, 1), ramp({2, 2}, 1)), {2, 2}, {7, 10, 15, 22});
  expectFloats(einsum("ij,jk->ki", ramp({2, 2}, 1), ramp({2, 2}, 1)), {2, 2}, {7, 15, 10, 22});
  expectFloats(einsum("i,j", ramp({2}, 1), ramp({2}, 1)), {2, 2}, {1, 2, 2, 4});
  expectFloats(einsum("...ij,...jk", ramp({1, 1, 2}, 1), ramp({2, 2, 1}, 1)), {2, 1, 1}, {5, 11});
  expectError(einsum("ij,jk->z", ramp({2, 2}), ramp({2, 2})), {"'z' in its result only"});
  expectError(einsum("ij->i", ramp({2, 2}), ramp({2, 2})), {"1 terms for 2 inputs"});
}

//===----------------------------------------------------------------------===//
// Quantisation
//===----------------------------------------------------------------------===//

TEST(QuantizeLinear, HalfsRoundToEven) {
  ModelBuilder m(13);
  m.input("x", {5}).initializer("s", floats({}, {1})).initializer("z", bytes({}, {0}, true));
  m.node("QuantizeLinear", {"x", "s", "z"}, {"y"}).output("y");
  Outcome o = run(m, {floats({5}, {.5f, 1.5f, -2.5f, 200, -200})});
  expectInts(o, {5}, {0, 2, -2, 127, -128});
  EXPECT_NE(o.ir.find("nn.quantize"), std::string::npos);
}

TEST(DequantizeLinear, StaysAnOperationOnIntegers) {
  ModelBuilder m(13);
  m.input("x", {1, 2}).initializer("w", bytes({2, 2}, {1, 2, 3, 4})).initializer("s", floats({2}, {.5f, 2}));
  m.initializer("z", bytes({2}, {1, 2}));
  m.node("DequantizeLinear", {"w", "s", "z"}, {"wf"}, {{"axis", int64_t(0)}});
  m.node("Transpose", {"wf"}, {"wt"}).node("MatMul", {"x", "wt"}, {"y"}).output("y");
  Outcome o = run(m, {floats({1, 2}, {1, 10})});
  expectFloats(o, {1, 2}, {5, 42});
  EXPECT_NE(o.ir.find("nn.dequantize"), std::string::npos) << "the weight must stay quantised";
  EXPECT_EQ(o.ir.find("nn.transpose"), std::string::npos) << "the transpose must have moved into the constant";
}

TEST(DequantizeLinear, Blocked) {
  ModelBuilder m(21);
  m.input("x", {4}).initializer("w", bytes({4}, {1, 2, 3, 4})).initializer("s", floats({2}, {1, 10}));
  m.node("DequantizeLinear", {"w", "s"}, {"wf"}, {{"axis", int64_t(0)}, {"block_size", int64_t(2)}});
  m.node("Add", {"x", "wf"}, {"y"}).output("y");
  expectFloats(run(m, {ramp({4}, 0, 0)}), {4}, {1, 2, 30, 40});
}

TEST(DequantizeLinear, Int4Constant) {
  ModelBuilder m(21);
  m.input("x", {3}).initializer("w", bytes({3}, {})).initializer("s", floats({}, {2}));
  auto *w = m.proto.mutable_graph()->mutable_initializer(0);
  w->set_data_type(22);
  w->set_raw_data(std::string("\x8f\x07", 2)); // -1, -8, 7
  m.node("DequantizeLinear", {"w", "s"}, {"wf"}).node("Add", {"x", "wf"}, {"y"}).output("y");
  expectFloats(run(m, {ramp({3}, 0, 0)}), {3}, {-2, -16, 14});
}

TEST(QLinearMatMul, Saturates) {
  ModelBuilder m(10);
  m.input("a", {1, 1}, ::onnx::TensorProto::INT8).initializer("b", bytes({1, 3}, {1, -75, -100}, true));
  m.initializer("one", floats({}, {1})).initializer("zero", bytes({}, {0}, true));
  m.node("QLinearMatMul", {"a", "one", "zero", "b", "one", "zero", "one", "zero"}, {"y"}).output("y");
  expectInts(run(m, {bytes({1, 1}, {2}, true)}), {1, 3}, {2, -128, -128});
}

TEST(QLinearConv, PerChannelWithZeroPoints) {
  ModelBuilder m(10);
  m.input("x", {1, 1, 2, 2}, ::onnx::TensorProto::UINT8).initializer("w", bytes({2, 1, 1, 1}, {3, 5}));
  m.initializer("xs", floats({}, {.5f})).initializer("xz", bytes({}, {1})).initializer("ws", floats({2}, {1, 2}));
  m.initializer("wz", bytes({2}, {1, 1})).initializer("ys", floats({}, {1})).initializer("yz", bytes({}, {10}));
  m.initializer("b", int32s({2}, {4, 0}));
  m.node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, {"y"}).output("y");
  // (x - 1) * 2 + 4 scaled by .5; (x - 1) * 4 scaled by 1.
  expectInts(run(m, {bytes({1, 1, 2, 2}, {1, 2, 3, 101})}), {1, 2, 2, 2}, {12, 13, 14, 112, 10, 14, 18, 255});
}

TEST(MatMulNBits, FourBitBlocks) {
  ModelBuilder m(17);
  m.input("a", {1, 2048}).initializer("b", bytes({4, 4, 256}, std::vector<int>(4096, 0x22)));
  m.initializer("s", ramp({16}, .5f, 0)).initializer("z", bytes({8}, std::vector<int>(8, 0x33)));
  m.node("MatMulNBits", {"a", "b", "s", "z"}, {"y"},
         {{"K", int64_t(2048)}, {"N", int64_t(4)}, {"bits", int64_t(4)}, {"block_size", int64_t(512)}}, "com.microsoft");
  m.output("y");
  expectFloats(run(m, {ramp({1, 2048}, 1, 0)}), {1, 4}, {-1024, -1024, -1024, -1024});
}

TEST(MatMulNBits, ShortLastBlockAndAbsentZeroPoint) {
  // K = 24 in blocks of 16: the second block is half padding, and the zero point is 8.
  ModelBuilder m(17);
  m.input("a", {1, 24}).initializer("b", bytes({1, 2, 8}, std::vector<int>(16, 0x99))).initializer("s", floats({2}, {1, 10}));
  m.node("MatMulNBits", {"a", "b", "s"}, {"y"}, {{"K", int64_t(24)}, {"N", int64_t(1)}, {"bits", int64_t(4)}, {"block_size", int64_t(16)}},
         "com.microsoft");
  m.output("y");
  expectFloats(run(m, {ramp({1, 24}, 1, 0)}), {1, 1}, {16 + 80});
}

TEST(MatMulNBits, AccuracyLevel4RoundsToEightBits) {
  // In blocks of 16: 127 and 0.4 are rounded to 127 and 0, and -254 and 1.5 (of a factor 0.5) to -254 and 2.
  ModelBuilder m(17);
  std::vector<float> a(32);
  a[0] = 127, a[1] = 0.4f, a[16] = -254, a[17] = 1.5f;
  m.input("a", {1, 32}).initializer("b", bytes({1, 2, 8}, std::vector<int>(16, 0x99))).initializer("s", floats({2}, {1, 10}));
  m.node("MatMulNBits", {"a", "b", "s"}, {"y"},
         {{"K", int64_t(32)}, {"N", int64_t(1)}, {"bits", int64_t(4)}, {"block_size", int64_t(16)}, {"accuracy_level", int64_t(4)}},
         "com.microsoft");
  m.output("y");
  expectFloats(run(m, {floats({1, 32}, a)}), {1, 1}, {127 + 10 * (-254 + 2)});
}

//===----------------------------------------------------------------------===//
// Symbolic dimensions, bindings, subgraphs, functions
//===----------------------------------------------------------------------===//

ModelBuilder flattening() {
  // x[N, 2, 3] reshaped to [N, 6] by Shape, Gather, Unsqueeze, Concat.
  ModelBuilder m(13);
  m.input("x", {std::string("N"), 2, 3}).initializer("zero", int64s({}, {0})).initializer("axis", int64s({1}, {0}));
  m.initializer("rest", int64s({1}, {-1}));
  m.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"n"}).node("Unsqueeze", {"n", "axis"}, {"n1"});
  m.node("Concat", {"n1", "rest"}, {"target"}, {{"axis", int64_t(0)}}).node("Reshape", {"x", "target"}, {"y"}).output("y");
  return m;
}

TEST(Symbols, FollowShapeArithmetic) {
  Outcome o = run(flattening(), {ramp({4, 2, 3})});
  ASSERT_EQ(o.error, "");
  EXPECT_EQ(o.outputs[0].shape, (Shape{4, 6}));
  EXPECT_NE(o.ir.find("#nn.symbol<\"N\", 1, -1>"), std::string::npos) << o.ir;
  ImportOptions fixed;
  fixed.dims["N"] = {4, 4};
  Outcome f = run(flattening(), {ramp({4, 2, 3})}, fixed);
  EXPECT_EQ(f.outputs.at(0).shape, (Shape{4, 6}));
  EXPECT_EQ(f.ir.find("#nn.symbol<"), std::string::npos);
  ImportOptions bounded;
  bounded.dims["N"] = {1, 8};
  EXPECT_NE(importOnly(flattening(), bounded).ir.find("#nn.symbol<\"N\", 1, 8>"), std::string::npos);
}

TEST(Symbols, UnnamedDimensionsAreNamedAfterTheInput) {
  ModelBuilder m(13);
  m.input("x", {std::string(), 2}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_NE(importOnly(m).ir.find("#nn.symbol<\"x.0\", 1, -1>"), std::string::npos);
}

TEST(Symbols, DimensionsBecomeMultiplesWherePyramidsNeedIt) {
  // Halved twice, doubled once, and added to what was halved once: H must be a multiple of 4.
  ModelBuilder m(13);
  std::vector<Attr> half{{"kernel_shape", Int64s{1}}, {"strides", Int64s{2}}};
  m.input("x", {1, 1, std::string("H")}).initializer("scales", floats({3}, {1, 1, 2}));
  m.node("MaxPool", {"x"}, {"a"}, half).node("MaxPool", {"a"}, {"b"}, half);
  m.node("Resize", {"b", "", "scales"}, {"c"}, {{"mode", std::string("nearest")}}).node("Add", {"a", "c"}, {"y"}).output("y");
  Outcome o = run(m, {ramp({1, 1, 8})});
  expectFloats(o, {1, 1, 4}, {0, 2, 8, 10});
  EXPECT_NE(o.ir.find("s0 * 4"), std::string::npos) << o.ir;
  ImportOptions options;
  options.dims["H"] = {9, 11};
  expectError(importOnly(m, options), {"dimension 'H' must be a multiple of 4, and 9..11 holds none"});
}

TEST(Symbols, ShapeAsAResult) {
  ModelBuilder m(15);
  m.input("x", {std::string("N"), 3}).node("Shape", {"x"}, {"y"}).output("y");
  expectInts(run(m, {ramp({5, 3})}), {2}, {5, 3});
}

TEST(Bindings, TurnAnInputIntoAConstant) {
  ModelBuilder m(13);
  m.input("x", {2, 3}).input("shape", {1}, ::onnx::TensorProto::INT64).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  expectError(importOnly(m), {"'Reshape_0' (Reshape, #0)", "shape", "--bind shape=FILE"});
  ImportOptions options;
  options.bindings["shape"] = int64s({1}, {6});
  expectFloats(run(m, {ramp({2, 3})}, options), {6}, {0, 1, 2, 3, 4, 5});
}

::onnx::GraphProto branchOf(const char *op) {
  ::onnx::GraphProto graph;
  auto *node = graph.add_node();
  node->set_op_type(op);
  node->add_input("x");
  node->add_output("r");
  graph.add_output()->set_name("r");
  return graph;
}

ModelBuilder branching(bool constant) {
  ModelBuilder m(13);
  m.input("x", {2});
  if (constant)
    m.initializer("c", booleans({}, {0}));
  else
    m.input("c", {}, ::onnx::TensorProto::BOOL);
  m.node("If", {"c"}, {"y"}).output("y");
  for (auto [name, op] : {std::pair("then_branch", "Relu"), std::pair("else_branch", "Neg")}) {
    auto *attr = m.lastNode().add_attribute();
    attr->set_name(name);
    attr->set_type(::onnx::AttributeProto::GRAPH);
    *attr->mutable_g() = branchOf(op);
  }
  return m;
}

TEST(If, ConstantConditionLeavesOneBranch) {
  Outcome o = run(branching(true), {floats({2}, {-1, 2})});
  expectFloats(o, {2}, {1, -2});
  EXPECT_EQ(o.ir.find("relu"), std::string::npos);
}

TEST(If, ConditionAtRunTimeSelects) {
  expectFloats(run(branching(false), {floats({2}, {-1, 2}), booleans({}, {1})}), {2}, {0, 2});
  expectFloats(run(branching(false), {floats({2}, {-1, 2}), booleans({}, {0})}), {2}, {1, -2});
}

TEST(Functions, AreExpandedWithTheirAttributes) {
  ModelBuilder m(13);
  m.input("x", {2}).node("Leaky", {"x"}, {"y"}, {{"slope", 0.5f}}, "custom").output("y");
  auto *f = m.proto.add_functions();
  f->set_name("Leaky");
  f->set_domain("custom");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("slope");
  f->add_opset_import()->set_version(13);
  auto *node = f->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("a");
  node->add_output("b");
  auto *attr = node->add_attribute();
  attr->set_name("alpha");
  attr->set_ref_attr_name("slope");
  attr->set_type(::onnx::AttributeProto::FLOAT);
  expectFloats(run(m, {floats({2}, {-4, 4})}), {2}, {-2, 4});
  // A function that calls itself has no end.
  node->set_op_type("Leaky");
  node->set_domain("custom");
  auto *import = f->add_opset_import();
  import->set_domain("custom");
  import->set_version(1);
  expectError(importOnly(m), {"functions call each other deeper than 16"});
}

} // namespace
