//===- ShapeTest.cpp - data movement ------------------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;

static std::string slice(int64_t size, int64_t start, int64_t step, int64_t count) {
  std::string in = std::to_string(size), out = std::to_string(count);
  return "nn.slice %0 {starts = array<i64: " + std::to_string(start) + ">, steps = array<i64: " + std::to_string(step) +
         ">} : (tensor<" + in + "xf32>) -> tensor<" + out + "xf32>";
}

TEST(Slice, NegativeSteps) {
  HostTensor ten = range<float>({10});
  EXPECT_EQ(eval<float>(slice(10, 9, -1, 9), {ten}), (Floats{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(eval<float>(slice(10, 7, -1, 7), {ten}), (Floats{7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(eval<float>(slice(10, 9, -1, 7), {ten}), (Floats{9, 8, 7, 6, 5, 4, 3}));
  EXPECT_EQ(eval<float>(slice(10, 9, -3, 3), {ten}), (Floats{9, 6, 3}));
  EXPECT_EQ(eval<float>(slice(20, 19, -3, 7), {range<float>({20})}), (Floats{19, 16, 13, 10, 7, 4, 1}));
}

TEST(Slice, BothAxesReversed) {
  EXPECT_EQ(eval<float>("nn.slice %0 {starts = array<i64: 2, 3>, steps = array<i64: -1, -1>} : (tensor<3x4xf32>) -> "
                        "tensor<2x3xf32>",
                        {range<float>({3, 4})}),
            (Floats{11, 10, 9, 7, 6, 5}));
}

TEST(Slice, EmptyResult) { EXPECT_TRUE(eval<float>(slice(10, 99, 1, 0), {range<float>({10})}).empty()); }

TEST(Slice, DynamicRangeIsChecked) {
  std::string text = "func.func @main(%0: tensor<?xf32, #nn.dims<()[s0] -> (s0)>>) -> tensor<3xf32> {\n"
                     "%r = nn.slice %0 {starts = array<i64: 1>, steps = array<i64: 2>} : (tensor<?xf32, "
                     "#nn.dims<()[s0] -> (s0)>>) -> tensor<3xf32>\nreturn %r : tensor<3xf32>\n}";
  Outcome fits = runModule(text, {range<float>({6})}, {6});
  ASSERT_EQ(fits.results.size(), 1u) << fits.message;
  EXPECT_EQ(values<float>(fits.results[0]), (Floats{1, 3, 5}));
  Outcome exceeds = runModule(text, {range<float>({5})}, {5});
  EXPECT_TRUE(exceeds.results.empty());
  EXPECT_NE(exceeds.message.find("dimension 0 has 5 elements, read from 1 in steps of 2 for 3 elements"),
            std::string::npos)
      << exceeds.message;
}

TEST(Transpose, MovesDimensions) {
  EXPECT_EQ(eval<float>("nn.transpose %0 {perm = array<i64: 2, 0, 1>} : (tensor<1x2x3xf32>) -> tensor<3x1x2xf32>",
                        {range<float>({1, 2, 3})}),
            (Floats{0, 3, 1, 4, 2, 5}));
}

TEST(Reshape, KeepsOrderAndEmptyShapes) {
  EXPECT_EQ(eval<int64_t>("nn.reshape %0 : (tensor<2x3xi64>) -> tensor<3x2xi64>", {range<int64_t>({2, 3})}),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  Outcome empty = runOp("nn.reshape %0 : (tensor<2x0xf32>) -> tensor<1x2x0xf32>", {range<float>({2, 0})});
  ASSERT_EQ(empty.results.size(), 1u) << empty.message;
  EXPECT_EQ(empty.results[0].shape, (std::vector<int64_t>{1, 2, 0}));
}

TEST(Reshape, DynamicCountIsChecked) {
  Outcome outcome = runModule("func.func @main(%0: tensor<?xf32, #nn.dims<()[s0] -> (s0)>>) -> tensor<2x2xf32> {\n"
                              "%r = nn.reshape %0 : (tensor<?xf32, #nn.dims<()[s0] -> (s0)>>) -> tensor<2x2xf32>\n"
                              "return %r : tensor<2x2xf32>\n}",
                              {range<float>({5})}, {5});
  EXPECT_TRUE(outcome.results.empty());
  EXPECT_NE(outcome.message.find("5 elements cannot take a shape of 4"), std::string::npos) << outcome.message;
}

TEST(Broadcast, RepeatsAlignedAtTheRight) {
  EXPECT_EQ(eval<float>("nn.broadcast %0 : (tensor<2x1xf32>) -> tensor<2x2x2xf32>", {range<float>({2, 1}, 1)}),
            (Floats{1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST(Concat, JoinsAlongAnInnerAxis) {
  EXPECT_EQ(eval<float>("nn.concat %0, %1 {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>",
                        {range<float>({2, 1}), range<float>({2, 2}, 10)}),
            (Floats{0, 10, 11, 1, 12, 13}));
}

TEST(Concat, EmptyOperand) {
  EXPECT_EQ(eval<float>("nn.concat %0, %1 {axis = 0 : i64} : (tensor<0x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>",
                        {range<float>({0, 2}), range<float>({1, 2})}),
            (Floats{0, 1}));
}

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

static Floats pad(const std::string &mode, int64_t low, int64_t high, int64_t size = 3) {
  std::string out = std::to_string(size + low + high);
  return eval<float>("nn.pad %0 {low = array<i64: " + std::to_string(low) +
                         ">, high = array<i64: " + std::to_string(high) + ">, mode = #nn.pad_mode<" + mode +
                         ">} : (tensor<" + std::to_string(size) + "xf32>) -> tensor<" + out + "xf32>",
                     {range<float>({size}, 1)});
}

TEST(Pad, Modes) {
  EXPECT_EQ(pad("constant", 1, 2), (Floats{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(pad("reflect", 2, 2), (Floats{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(pad("symmetric", 3, 2), (Floats{3, 2, 1, 1, 2, 3, 3, 2}));
  EXPECT_EQ(pad("edge", 4, 1), (Floats{1, 1, 1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(pad("wrap", 2, 3), (Floats{2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(Pad, NegativeAmountsCropFirst) {
  EXPECT_EQ(pad("constant", -1, 1), (Floats{2, 3, 0}));
  EXPECT_EQ(pad("reflect", -1, 1), (Floats{2, 3, 2}));
  EXPECT_EQ(pad("edge", -2, 2, 5), (Floats{3, 4, 5, 5, 5}));
  EXPECT_EQ(pad("constant", -1, -2), (Floats{}));
}

TEST(Pad, GivenValue) {
  EXPECT_EQ(eval<int8_t>("nn.pad %0, %1 {low = array<i64: 1>, high = array<i64: 1>} : (tensor<2xi8>, tensor<i8>) -> "
                         "tensor<4xi8>",
                         {tensor<int8_t>({2}, {1, 2}), tensor<int8_t>({}, {-7})}),
            (std::vector<int8_t>{-7, 1, 2, -7}));
}

TEST(Pad, ReflectOnOneAxisKeepsRowsInOrder) {
  EXPECT_EQ(eval<float>("nn.pad %0 {low = array<i64: 1, 0>, high = array<i64: 1, 0>, mode = #nn.pad_mode<reflect>} : "
                        "(tensor<2x3xf32>) -> tensor<4x3xf32>",
                        {range<float>({2, 3})}),
            (Floats{3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2}));
}

TEST(Pad, ReflectAcrossColumns) {
  EXPECT_EQ(eval<float>("nn.pad %0 {low = array<i64: 0, 1>, high = array<i64: 0, 1>, mode = #nn.pad_mode<reflect>} : "
                        "(tensor<3x2xf32>) -> tensor<3x4xf32>",
                        {range<float>({3, 2}, 1)}),
            (Floats{2, 1, 2, 1, 4, 3, 4, 3, 6, 5, 6, 5}));
}

TEST(Pad, DynamicReflectIsChecked) {
  Outcome outcome = runModule(
      "func.func @main(%0: tensor<?xf32, #nn.dims<()[s0] -> (s0)>>) -> tensor<?xf32, #nn.dims<()[s0] -> (s0 + 3)>> {\n"
      "%r = nn.pad %0 {low = array<i64: 3>, high = array<i64: 0>, mode = #nn.pad_mode<reflect>} : (tensor<?xf32, "
      "#nn.dims<()[s0] -> (s0)>>) -> tensor<?xf32, #nn.dims<()[s0] -> (s0 + 3)>>\n"
      "return %r : tensor<?xf32, #nn.dims<()[s0] -> (s0 + 3)>>\n}",
      {range<float>({3})}, {3});
  EXPECT_TRUE(outcome.results.empty());
  EXPECT_NE(outcome.message.find("'reflect' padding of 3 and 0 is not possible for dimension 0 of 3"),
            std::string::npos)
      << outcome.message;
}

//===----------------------------------------------------------------------===//
// gather, scatter
//===----------------------------------------------------------------------===//

TEST(Gather, NegativeIndicesCountFromTheEnd) {
  EXPECT_EQ(eval<float>("nn.gather %0, %1 {axis = 0 : i64} : (tensor<5xf32>, tensor<3xi64>) -> tensor<3xf32>",
                        {range<float>({5}, 1), tensor<int64_t>({3}, {-1, -3, 0})}),
            (Floats{5, 3, 1}));
  EXPECT_EQ(eval<float>("nn.gather %0, %1 {axis = 0 : i64} : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>",
                        {range<float>({3, 4}, 1), tensor<int32_t>({2}, {0, -1})}),
            (Floats{1, 2, 3, 4, 9, 10, 11, 12}));
}

TEST(Gather, AnyIndexIsClamped) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(eval<float>("nn.gather %0, %1 {axis = 0 : i64} : (tensor<5xf32>, tensor<4xi64>) -> tensor<4xf32>",
                        {range<float>({5}), tensor<int64_t>({4}, {most, least, 5, -6})}),
            (Floats{4, 0, 4, 0}));
  EXPECT_EQ(eval<float>("nn.gather %0, %1 {axis = 0 : i64} : (tensor<5xf32>, tensor<1xui64>) -> tensor<1xf32>",
                        {range<float>({5}), tensor<uint64_t>({1}, {~uint64_t(0)})}),
            (Floats{4}));
}

TEST(Gather, BatchDimensionsAndInnerAxis) {
  EXPECT_EQ(eval<float>("nn.gather %0, %1 {axis = 2 : i64, batch_dims = 1 : i64} : (tensor<2x1x3xf32>, "
                        "tensor<2x2xi32>) -> tensor<2x1x2xf32>",
                        {range<float>({2, 1, 3}), tensor<int32_t>({2, 2}, {2, 0, 1, 1})}),
            (Floats{2, 0, 4, 4}));
}

TEST(Gather, EmptyAxisHasNothingToTake) {
  expectError("nn.gather %0, %1 {axis = 0 : i64} : (tensor<0xf32>, tensor<1xi64>) -> tensor<1xf32>",
              {range<float>({0}), tensor<int64_t>({1}, {0})}, "dimension 0 of the indexed operand is empty");
}

TEST(GatherElements, TakesAlongAxis) {
  EXPECT_EQ(eval<float>("nn.gather_elements %0, %1 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x2xi64>) -> "
                        "tensor<2x2xf32>",
                        {range<float>({2, 3}), tensor<int64_t>({2, 2}, {2, 0, -1, 99})}),
            (Floats{2, 0, 5, 5}));
}

static const char *growingGather = R"(
  func.func @main(%0: tensor<?x2xf32, #nn.dims<()[s0] -> (s0, 2)>>, %1: tensor<?x2xi64, #nn.dims<()[s0, s1] -> (s1, 2)>>)
      -> tensor<?x2xf32, #nn.dims<()[s0, s1] -> (s1, 2)>> {
    %r = nn.gather_elements %0, %1 {axis = 1 : i64} : (tensor<?x2xf32, #nn.dims<()[s0] -> (s0, 2)>>,
      tensor<?x2xi64, #nn.dims<()[s0, s1] -> (s1, 2)>>) -> tensor<?x2xf32, #nn.dims<()[s0, s1] -> (s1, 2)>>
    return %r : tensor<?x2xf32, #nn.dims<()[s0, s1] -> (s1, 2)>>
  })";

TEST(GatherElements, DynamicSizesAreChecked) {
  HostTensor one = tensor<int64_t>({1, 2}, {1, 0}), two = tensor<int64_t>({2, 2}, {0, 0, 0, 0});
  Outcome fits = runModule(growingGather, {range<float>({1, 2}), one}, {1, 1});
  ASSERT_EQ(fits.results.size(), 1u) << fits.message;
  EXPECT_EQ(values<float>(fits.results[0]), (Floats{1, 0}));
  Outcome exceeds = runModule(growingGather, {range<float>({1, 2}), two}, {1, 2});
  EXPECT_TRUE(exceeds.results.empty());
  EXPECT_NE(exceeds.message.find("dimension 0 of the indices has 2 elements, that of data 1"), std::string::npos)
      << exceeds.message;
}

TEST(GatherND, TuplesAndBatches) {
  EXPECT_EQ(eval<float>("nn.gather_nd %0, %1 : (tensor<2x2xf32>, tensor<2x2xi64>) -> tensor<2xf32>",
                        {range<float>({2, 2}), tensor<int64_t>({2, 2}, {0, 0, 1, -1})}),
            (Floats{0, 3}));
  EXPECT_EQ(eval<float>("nn.gather_nd %0, %1 {batch_dims = 1 : i64} : (tensor<2x2x2xf32>, tensor<2x1xi64>) -> "
                        "tensor<2x2xf32>",
                        {range<float>({2, 2, 2}), tensor<int64_t>({2, 1}, {1, 0})}),
            (Floats{2, 3, 4, 5}));
}

static std::vector<float> scatterElements(const std::string &kind) {
  return eval<float>("nn.scatter_elements %0, %1, %2 {axis = 0 : i64, kind = #nn.scatter_kind<" + kind +
                         ">} : (tensor<4xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<4xf32>",
                     {range<float>({4}, 1), tensor<int64_t>({3}, {1, 1, -1}), tensor<float>({3}, {5, 1, 3})});
}

TEST(ScatterElements, Kinds) {
  EXPECT_EQ(scatterElements("set"), (Floats{1, 1, 3, 3}));
  EXPECT_EQ(scatterElements("add"), (Floats{1, 8, 3, 7}));
  EXPECT_EQ(scatterElements("mul"), (Floats{1, 10, 3, 12}));
  EXPECT_EQ(scatterElements("max"), (Floats{1, 5, 3, 4}));
  EXPECT_EQ(scatterElements("min"), (Floats{1, 1, 3, 3}));
}

TEST(ScatterElements, IndicesAreClamped) {
  EXPECT_EQ(eval<float>("nn.scatter_elements %0, %1, %2 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xi32>, "
                        "tensor<2x1xf32>) -> tensor<2x3xf32>",
                        {range<float>({2, 3}), tensor<int32_t>({2, 1}, {100, -100}), tensor<float>({2, 1}, {-1, -2})}),
            (Floats{0, 1, -1, -2, 4, 5}));
}

TEST(ScatterElements, SumOfBooleansIsRefused) {
  expectError("nn.scatter_elements %0, %1, %2 {axis = 0 : i64, kind = #nn.scatter_kind<add>} : (tensor<1xi1>, "
              "tensor<1xi64>, tensor<1xi1>) -> tensor<1xi1>",
              {booleans({1}, {1}), tensor<int64_t>({1}, {0}), booleans({1}, {1})}, "'add' has no meaning for bool");
}

TEST(ScatterND, SlicesInOrder) {
  EXPECT_EQ(eval<float>("nn.scatter_nd %0, %1, %2 {kind = #nn.scatter_kind<add>} : (tensor<3x2xf32>, tensor<2x1xi64>, "
                        "tensor<2x2xf32>) -> tensor<3x2xf32>",
                        {range<float>({3, 2}), tensor<int64_t>({2, 1}, {2, 2}), tensor<float>({2, 2}, {10, 20, 1, 2})}),
            (Floats{0, 1, 2, 3, 15, 27}));
}

//===----------------------------------------------------------------------===//
// reverse_sequence, iota
//===----------------------------------------------------------------------===//

TEST(ReverseSequence, LengthsAreClamped) {
  EXPECT_EQ(eval<float>("nn.reverse_sequence %0, %1 {batch_axis = 0 : i64, time_axis = 1 : i64} : (tensor<3x3xf32>, "
                        "tensor<3xi64>) -> tensor<3x3xf32>",
                        {range<float>({3, 3}), tensor<int64_t>({3}, {2, 99, -1})}),
            (Floats{1, 0, 2, 5, 4, 3, 6, 7, 8}));
}

TEST(Iota, AxisAndTypes) {
  EXPECT_EQ(eval<int32_t>("nn.iota {axis = 1 : i64} : () -> tensor<2x3xi32>", {}),
            (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(eval<float>("nn.iota {axis = 0 : i64} : () -> tensor<2x2xf32>", {}), (Floats{0, 0, 1, 1}));
}
