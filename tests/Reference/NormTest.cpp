//===- NormTest.cpp - reductions and normalisations ------------------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;
using Int8s = std::vector<int8_t>;
using Int64s = std::vector<int64_t>;
static const float notANumber = std::numeric_limits<float>::quiet_NaN();

static std::string reduce(const std::string &kind, const std::string &axes, const std::string &in,
                          const std::string &out) {
  return "nn.reduce <" + kind + "> %0 {axes = array<i64" + (axes.empty() ? "" : ": " + axes) + ">} : (tensor<" + in +
         ">) -> tensor<" + out + ">";
}

TEST(Reduce, KindsOverOuterAndInnerAxes) {
  HostTensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, -6});
  EXPECT_EQ(eval<float>(reduce("sum", "0", "2x3xf32", "3xf32"), {x}), (Floats{5, 7, -3}));
  EXPECT_EQ(eval<float>(reduce("mean", "1", "2x3xf32", "2xf32"), {x}), (Floats{2, 1}));
  EXPECT_EQ(eval<float>(reduce("prod", "0, 1", "2x3xf32", "f32"), {x}), (Floats{-720}));
  EXPECT_EQ(eval<float>(reduce("max", "1", "2x3xf32", "2xf32"), {x}), (Floats{3, 5}));
  EXPECT_EQ(eval<float>(reduce("min", "0", "2x3xf32", "3xf32"), {x}), (Floats{1, 2, -6}));
  EXPECT_EQ(eval<float>(reduce("sum", "", "2x3xf32", "2x3xf32"), {x}), (Floats{1, 2, 3, 4, 5, -6}));
  EXPECT_EQ(
      eval<float>("nn.reduce <sum> %0 {axes = array<i64: 1>, keep_dims} : (tensor<2x3xf32>) -> tensor<2x1xf32>", {x}),
      (Floats{6, 3}));
}

TEST(Reduce, EmptyReductions) {
  HostTensor x = range<float>({0, 2}), i = range<int8_t>({0});
  float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(eval<float>(reduce("sum", "0", "0x2xf32", "2xf32"), {x}), (Floats{0, 0}));
  EXPECT_EQ(eval<float>(reduce("mean", "0", "0x2xf32", "2xf32"), {x}), (Floats{0, 0}));
  EXPECT_EQ(eval<float>(reduce("prod", "0", "0x2xf32", "2xf32"), {x}), (Floats{1, 1}));
  EXPECT_EQ(eval<float>(reduce("max", "0", "0x2xf32", "2xf32"), {x}), (Floats{-inf, -inf}));
  EXPECT_EQ(eval<int8_t>(reduce("min", "0", "0xi8", "i8"), {i}), (Int8s{127}));
}

TEST(Reduce, IntegersWrapAndMeansTruncate) {
  EXPECT_EQ(eval<int8_t>(reduce("sum", "0", "2xi8", "i8"), {tensor<int8_t>({2}, {100, 100})}), (Int8s{-56}));
  EXPECT_EQ(eval<int32_t>(reduce("mean", "0", "2xi32", "i32"), {tensor<int32_t>({2}, {-3, -4})}),
            (std::vector<int32_t>{-3}));
  EXPECT_EQ(eval<uint64_t>(reduce("mean", "0", "2xui64", "ui64"), {tensor<uint64_t>({2}, {uint64_t(1) << 63, 6})}),
            (std::vector<uint64_t>{(uint64_t(1) << 62) + 3}));
}

TEST(Reduce, BooleansAnyAllAndNoSum) {
  HostTensor x = booleans({2, 2}, {0, 1, 1, 1});
  EXPECT_EQ(eval<uint8_t>(reduce("max", "1", "2x2xi1", "2xi1"), {x}), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(eval<uint8_t>(reduce("min", "1", "2x2xi1", "2xi1"), {x}), (std::vector<uint8_t>{0, 1}));
  expectError(reduce("sum", "1", "2x2xi1", "2xi1"), {x}, "'sum' has no meaning for bool");
}

TEST(Reduce, HalfSumsWide) {
  // 4096 times 16 = 65536 exceeds f16 on the way, its mean does not; 65536 - 65536 + 1 is exact.
  EXPECT_EQ(eval<uint16_t>(reduce("mean", "0", "4096xf16", "f16"),
                           {tensor({4096}, std::vector<uint16_t>(4096, 0x4c00), AJOUR_F16)}),
            (std::vector<uint16_t>{0x4c00}));
}

TEST(Reduce, NaNWinsExtremes) {
  Floats y = eval<float>(reduce("max", "0", "2xf32", "f32"), {tensor<float>({2}, {notANumber, 1})});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST(ArgReduce, FirstOrLast) {
  HostTensor x = tensor<float>({2, 3}, {1, 3, 3, -2, -2, 0});
  auto run = [&](const std::string &kind, const std::string &flags) {
    return eval<int64_t>(
        "nn.arg_reduce <" + kind + "> %0 {axis = 1 : i64" + flags + "} : (tensor<2x3xf32>) -> tensor<2xi64>", {x});
  };
  EXPECT_EQ(run("max", ""), (Int64s{1, 2}));
  EXPECT_EQ(run("max", ", select_last"), (Int64s{2, 2}));
  EXPECT_EQ(run("min", ""), (Int64s{0, 0}));
  EXPECT_EQ(run("min", ", select_last"), (Int64s{0, 1}));
  EXPECT_EQ(
      eval<int64_t>("nn.arg_reduce <max> %0 {axis = 0 : i64, keep_dims} : (tensor<2x3xf32>) -> tensor<1x3xi64>", {x}),
      (Int64s{0, 0, 0}));
}

TEST(ArgReduce, EmptyDynamicAxisIsRefused) {
  Outcome outcome = runModule("func.func @main(%0: tensor<?xf32, #nn.dims<()[s0] -> (s0)>>) -> tensor<i64> {\n"
                              "%r = nn.arg_reduce <max> %0 {axis = 0 : i64} : (tensor<?xf32, #nn.dims<()[s0] -> "
                              "(s0)>>) -> tensor<i64>\nreturn %r : tensor<i64>\n}",
                              {range<float>({0})}, {0});
  EXPECT_TRUE(outcome.results.empty());
  EXPECT_NE(outcome.message.find("axis 0 is empty, it has no extreme"), std::string::npos) << outcome.message;
}

TEST(Softmax, LastAxis) {
  Floats x(24);
  for (int i = 0; i < 24; ++i)
    x[i] = i / 10.0f;
  Floats y = eval<float>("nn.softmax %0 {axis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
                         {tensor<float>({2, 3, 4}, x)});
  y.resize(4);
  expectNear(y, {0.2138f, 0.2363f, 0.2612f, 0.2887f});
  // As one axis of 12 (what older operator sets mean).
  Floats flat = eval<float>("nn.softmax %0 {axis = 1 : i64} : (tensor<2x12xf32>) -> tensor<2x12xf32>",
                            {tensor<float>({2, 12}, x)});
  flat.resize(4);
  expectNear(flat, {0.0453f, 0.0501f, 0.0554f, 0.0612f}, 5e-5f);
}

TEST(Softmax, LargeValuesAndLogarithm) {
  EXPECT_EQ(eval<float>("nn.softmax %0 {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>",
                        {tensor<float>({2}, {1000, 1000})}),
            (Floats{0.5f, 0.5f}));
  expectNear(eval<float>("nn.softmax %0 {axis = 0 : i64, log} : (tensor<2x1xf32>) -> tensor<2x1xf32>",
                         {tensor<float>({2, 1}, {0, -1000})}),
             {0, -1000});
}

TEST(LayerNorm, ScaleBiasAndRms) {
  HostTensor x = tensor<float>({2, 2}, {1, 3, -2, 2});
  expectNear(eval<float>("nn.layer_norm %0 scale %1 bias %2 {axis = 1 : i64, epsilon = 0.0 : f32} : (tensor<2x2xf32>, "
                         "tensor<2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>",
                         {x, tensor<float>({2}, {1, 2}), tensor<float>({2, 1}, {10, 20})}),
             {9, 12, 19, 22});
  expectNear(eval<float>("nn.layer_norm %0 bias %1 {axis = 1 : i64, epsilon = 3.0 : f32} : (tensor<2x2xf32>, "
                         "tensor<1xf32>) -> tensor<2x2xf32>",
                         {x, tensor<float>({1}, {1})}),
             {0.5f, 1.5f, 1 - 2 / std::sqrt(7.0f), 1 + 2 / std::sqrt(7.0f)});
  expectNear(eval<float>("nn.layer_norm %0 {axis = 0 : i64, epsilon = 0.0 : f32, rms} : (tensor<2x2xf32>) -> "
                         "tensor<2x2xf32>",
                         {x}),
             {0.4714045f, 1.4142135f, -0.942809f, 0.942809f});
}

TEST(LayerNorm, HalfSquaresStayFinite) {
  // 4096 elements of 16: squares of 256 sum to 2^20, beyond f16.
  std::vector<uint16_t> y = eval<uint16_t>(
      "nn.layer_norm %0 {axis = 0 : i64, epsilon = 0.0 : f32, rms} : (tensor<4096xf16>) -> tensor<4096xf16>",
      {tensor({4096}, std::vector<uint16_t>(4096, 0x4c00), AJOUR_F16)});
  EXPECT_EQ(y, std::vector<uint16_t>(4096, 0x3c00));
}

TEST(Cumsum, ExclusiveAndReverse) {
  HostTensor x = range<float>({2, 3}, 1);
  auto run = [&](const std::string &flags) {
    return eval<float>("nn.cumsum %0 {axis = 1 : i64" + flags + "} : (tensor<2x3xf32>) -> tensor<2x3xf32>", {x});
  };
  EXPECT_EQ(run(""), (Floats{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(run(", exclusive"), (Floats{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(run(", reverse"), (Floats{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(run(", exclusive, reverse"), (Floats{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(eval<float>("nn.cumsum %0 {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>", {x}),
            (Floats{1, 2, 3, 5, 7, 9}));
  expectError("nn.cumsum %0 {axis = 0 : i64} : (tensor<1xi1>) -> tensor<1xi1>", {booleans({1}, {1})},
              "a running sum has no meaning for bool");
}

TEST(TopK, OrderAndTies) {
  HostTensor x = tensor<float>({2, 4}, {1, 3, 3, 2, 5, notANumber, 7, 5});
  auto run = [&](const std::string &flags) {
    return runOp("nn.top_k %0 {k = 3 : i64, axis = 1 : i64" + flags +
                     "} : (tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)",
                 {x});
  };
  Outcome largest = run("");
  ASSERT_EQ(largest.results.size(), 2u) << largest.message;
  EXPECT_EQ(values<int64_t>(largest.results[1]), (Int64s{1, 2, 3, 1, 2, 0}));
  EXPECT_EQ(largest.results[0].as<float>()[4], 7);
  Outcome smallest = run(", smallest");
  ASSERT_EQ(smallest.results.size(), 2u) << smallest.message;
  EXPECT_EQ(values<float>(smallest.results[0]), (Floats{1, 2, 3, 5, 5, 7}));
  EXPECT_EQ(values<int64_t>(smallest.results[1]), (Int64s{0, 3, 1, 0, 3, 2}));
}

TEST(TopK, OuterAxis) {
  Outcome outcome = runOp("nn.top_k %0 {k = 1 : i64, axis = 0 : i64} : (tensor<2x2xi32>) -> (tensor<1x2xi32>, "
                          "tensor<1x2xi64>)",
                          {tensor<int32_t>({2, 2}, {1, 9, 2, 8})});
  ASSERT_EQ(outcome.results.size(), 2u) << outcome.message;
  EXPECT_EQ(values<int32_t>(outcome.results[0]), (std::vector<int32_t>{2, 9}));
  EXPECT_EQ(values<int64_t>(outcome.results[1]), (Int64s{1, 0}));
}

TEST(TopK, DynamicAxisIsChecked) {
  Outcome outcome = runModule("func.func @main(%0: tensor<?xf32, #nn.dims<()[s0] -> (s0)>>) -> tensor<3xf32> {\n"
                              "%r:2 = nn.top_k %0 {k = 3 : i64, axis = 0 : i64} : (tensor<?xf32, #nn.dims<()[s0] -> "
                              "(s0)>>) -> (tensor<3xf32>, tensor<3xi64>)\nreturn %r#0 : tensor<3xf32>\n}",
                              {range<float>({2})}, {2});
  EXPECT_TRUE(outcome.results.empty());
  EXPECT_NE(outcome.message.find("k = 3 exceeds the 2 elements along axis 0"), std::string::npos) << outcome.message;
}
