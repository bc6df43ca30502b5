//===- ElementwiseTest.cpp - operations on elements -----------------------------------===//
#include "Reference/Harness.h"

using namespace ajour;
using namespace ajour::test;

using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;
using Int8s = std::vector<int8_t>;
using Int32s = std::vector<int32_t>;

static constexpr float inf = std::numeric_limits<float>::infinity();
static const float notANumber = std::numeric_limits<float>::quiet_NaN();

/// nn.unary over f32 values.
static Floats unary(const std::string &kind, Floats x, const std::string &attributes = "") {
  std::string type = "tensor<" + std::to_string(x.size()) + "xf32>";
  return eval<float>("nn.unary <" + kind + "> %0 " + attributes + " : (" + type + ") -> " + type,
                     {tensor<float>({int64_t(x.size())}, x)});
}

/// nn.binary over two equally long lists.
template <typename T> static std::vector<T> binary(const std::string &kind, std::vector<T> x, std::vector<T> y) {
  std::vector<int64_t> shape{int64_t(x.size())};
  std::string type = "tensor<" + std::to_string(x.size()) + "x" + ajour_element_name(elementTypeOf<T>()) + ">";
  return eval<T>("nn.binary <" + kind + "> %0, %1 : (" + type + ", " + type + ") -> " + type,
                 {tensor<T>(shape, x), tensor<T>(shape, y)});
}

//===----------------------------------------------------------------------===//
// constant, unary
//===----------------------------------------------------------------------===//

TEST(Constant, SplatsAndBooleansExpand) {
  EXPECT_EQ(eval<int16_t>("nn.constant {value = dense<7> : tensor<3xi16>} : tensor<3xi16>"
                          "// -> tensor<3xi16>",
                          {}),
            (std::vector<int16_t>{7, 7, 7}));
  EXPECT_EQ(eval<uint8_t>("nn.constant {value = dense<[true, false, true]> : tensor<3xi1>} : tensor<3xi1>"
                          "// -> tensor<3xi1>",
                          {}),
            (Bytes{1, 0, 1}));
}

TEST(Unary, ExactKinds) {
  Floats x{-2.5f, -0.5f, 0.5f, 1.5f, 2.5f};
  EXPECT_EQ(unary("neg", x), (Floats{2.5f, 0.5f, -0.5f, -1.5f, -2.5f}));
  EXPECT_EQ(unary("abs", x), (Floats{2.5f, 0.5f, 0.5f, 1.5f, 2.5f}));
  EXPECT_EQ(unary("sign", {-2, 0, 3}), (Floats{-1, 0, 1}));
  EXPECT_EQ(unary("ceil", x), (Floats{-2, -0.0f, 1, 2, 3}));
  EXPECT_EQ(unary("floor", x), (Floats{-3, -1, 0, 1, 2}));
  EXPECT_EQ(unary("round", x), (Floats{-2, -0.0f, 0, 2, 2}));
  EXPECT_EQ(unary("trunc", x), (Floats{-2, -0.0f, 0, 1, 2}));
  EXPECT_EQ(unary("square", x), (Floats{6.25f, 0.25f, 0.25f, 2.25f, 6.25f}));
  EXPECT_EQ(unary("relu", x), (Floats{0, 0, 0.5f, 1.5f, 2.5f}));
}

TEST(Unary, ElementaryFunctions) {
  // Values of the functions at 0.5 to seven digits.
  struct Row {
    const char *kind;
    float value;
  } rows[] = {{"sqrt", 0.70710678f},      {"rsqrt", 1.4142136f},   {"reciprocal", 2},        {"exp", 1.6487213f},
              {"log", -0.6931472f},       {"sin", 0.4794255f},     {"cos", 0.8775826f},      {"tan", 0.5463025f},
              {"asin", 0.5235988f},       {"acos", 1.0471976f},    {"atan", 0.4636476f},     {"sinh", 0.5210953f},
              {"cosh", 1.1276260f},       {"tanh", 0.4621172f},    {"asinh", 0.4812118f},    {"atanh", 0.5493061f},
              {"erf", 0.5204999f},        {"sigmoid", 0.6224593f}, {"softplus", 0.9740770f}, {"softsign", 0.3333333f},
              {"hard_swish", 0.2916667f}, {"mish", 0.3752447f},    {"gelu", 0.3457312f},     {"gelu_tanh", 0.3457140f},
              {"silu", 0.3112297f}};
  for (const Row &row : rows) {
    SCOPED_TRACE(row.kind);
    expectNear(unary(row.kind, {0.5f}), {row.value}, 3e-6f);
  }
  expectNear(unary("acosh", {2}), {1.3169579f}, 1e-6f);
}

TEST(Unary, GeluFormsDiffer) {
  expectNear(unary("gelu", {2}), {1.9544997f}, 1e-6f);
  expectNear(unary("gelu_tanh", {2}), {1.9545977f}, 1e-6f);
}

TEST(Unary, ParametricKinds) {
  Floats x{-2, -0.5f, 0, 0.5f, 2};
  expectNear(unary("elu", x, "{alpha = 2.0 : f32}"), {-1.7293294f, -0.7869387f, 0, 0.5f, 2}, 1e-6f);
  expectNear(unary("leaky_relu", x, "{alpha = 0.1 : f32}"), {-0.2f, -0.05f, 0, 0.5f, 2}, 1e-6f);
  expectNear(unary("selu", x, "{alpha = 2.0 : f32, beta = 3.0 : f32}"), {-5.1879883f, -2.3608160f, 0, 1.5f, 6}, 1e-6f);
  expectNear(unary("celu", x, "{alpha = 2.0 : f32}"), {-1.2642411f, -0.4423984f, 0, 0.5f, 2}, 1e-6f);
  EXPECT_EQ(unary("thresholded_relu", x, "{alpha = 0.5 : f32}"), (Floats{0, 0, 0, 0, 2}));
  expectNear(unary("hard_sigmoid", x, "{alpha = 0.5 : f32, beta = 0.5 : f32}"), {0, 0.25f, 0.5f, 0.75f, 1}, 1e-6f);
  EXPECT_EQ(unary("shrink", x, "{alpha = 1.0 : f32, beta = 0.25 : f32}"), (Floats{-1.75f, 0, 0, 0, 1.75f}));
}

TEST(Unary, LargeOperandsStayFinite) {
  EXPECT_EQ(unary("softplus", {100, -200}), (Floats{100, 0}));
  EXPECT_EQ(unary("mish", {100}), (Floats{100}));
  EXPECT_EQ(unary("sigmoid", {-200, 200}), (Floats{0, 1}));
  EXPECT_EQ(unary("hard_swish", {-10, 10}), (Floats{0, 10}));
}

TEST(Unary, NaNStaysNaN) {
  for (const char *kind : {"neg", "abs", "sign", "relu", "softplus", "mish", "hard_swish", "hard_sigmoid", "shrink",
                           "thresholded_relu", "elu", "celu", "selu", "round", "square"}) {
    Floats y = unary(kind, {notANumber}, "{alpha = 1.0 : f32, beta = 1.0 : f32}");
    ASSERT_EQ(y.size(), 1u);
    EXPECT_TRUE(std::isnan(y[0])) << kind;
  }
}

TEST(Unary, Predicates) {
  auto predicate = [](const std::string &kind, const std::string &attributes) {
    return eval<uint8_t>("nn.unary <" + kind + "> %0 " + attributes + " : (tensor<4xf32>) -> tensor<4xi1>",
                         {tensor<float>({4}, {notANumber, inf, -inf, 1})});
  };
  EXPECT_EQ(predicate("is_nan", ""), (Bytes{1, 0, 0, 0}));
  EXPECT_EQ(predicate("is_inf", "{alpha = 1.0 : f32, beta = 1.0 : f32}"), (Bytes{0, 1, 1, 0}));
  EXPECT_EQ(predicate("is_inf", "{alpha = 1.0 : f32}"), (Bytes{0, 0, 1, 0}));
  EXPECT_EQ(predicate("is_inf", "{beta = 1.0 : f32}"), (Bytes{0, 1, 0, 0}));
}

TEST(Unary, IntegersWrap) {
  auto run = [](const std::string &kind) {
    return eval<int8_t>("nn.unary <" + kind + "> %0 : (tensor<4xi8>) -> tensor<4xi8>",
                        {tensor<int8_t>({4}, {-128, -3, 0, 100})});
  };
  EXPECT_EQ(run("neg"), (Int8s{-128, 3, 0, -100}));
  EXPECT_EQ(run("abs"), (Int8s{-128, 3, 0, 100}));
  EXPECT_EQ(run("sign"), (Int8s{-1, -1, 0, 1}));
  EXPECT_EQ(run("relu"), (Int8s{0, 0, 0, 100}));
  EXPECT_EQ(run("square"), (Int8s{0, 9, 0, 16}));
  EXPECT_EQ(run("bitwise_not"), (Int8s{127, 2, -1, -101}));
  EXPECT_EQ(eval<uint8_t>("nn.unary <sign> %0 : (tensor<2xui8>) -> tensor<2xui8>", {tensor<uint8_t>({2}, {0, 200})}),
            (Bytes{0, 1}));
  EXPECT_EQ(eval<uint8_t>("nn.unary <logical_not> %0 : (tensor<2xi1>) -> tensor<2xi1>", {booleans({2}, {0, 1})}),
            (Bytes{1, 0}));
}

//===----------------------------------------------------------------------===//
// binary, compare, select
//===----------------------------------------------------------------------===//

TEST(Binary, FloatKinds) {
  Floats x{7, -7, 7, -7}, y{2, 2, -2, -2};
  EXPECT_EQ(binary("add", x, y), (Floats{9, -5, 5, -9}));
  EXPECT_EQ(binary("sub", x, y), (Floats{5, -9, 9, -5}));
  EXPECT_EQ(binary("mul", x, y), (Floats{14, -14, -14, 14}));
  EXPECT_EQ(binary("div", x, y), (Floats{3.5f, -3.5f, -3.5f, 3.5f}));
  EXPECT_EQ(binary("pow", x, y), (Floats{49, 49, 1 / 49.0f, 1 / 49.0f}));
  EXPECT_EQ(binary("floor_mod", x, y), (Floats{1, 1, -1, -1}));
  EXPECT_EQ(binary("trunc_mod", x, y), (Floats{1, -1, 1, -1}));
  EXPECT_EQ(binary("floor_div", x, y), (Floats{3, -4, -4, 3}));
  EXPECT_EQ(binary("min", x, y), (Floats{2, -7, -2, -7}));
  EXPECT_EQ(binary("max", x, y), (Floats{7, 2, 7, -2}));
  EXPECT_EQ(binary("squared_difference", x, y), (Floats{25, 81, 81, 25}));
  EXPECT_EQ(binary("prelu", x, y), (Floats{7, -14, 7, 14}));
  expectNear(binary<float>("atan2", {1, -1}, {-1, -1}), {2.3561945f, -2.3561945f}, 1e-6f);
}

TEST(Binary, MinAndMaxPropagateNaN) {
  for (const char *kind : {"min", "max"})
    for (float value : binary<float>(kind, {notANumber, 1, notANumber}, {1, notANumber, notANumber}))
      EXPECT_TRUE(std::isnan(value)) << kind;
}

TEST(Binary, SignedDivision) {
  Int32s x{7, -7, 7, -7, 5, -5}, y{2, 2, -2, -2, 0, 0};
  EXPECT_EQ(binary("div", x, y), (Int32s{3, -3, -3, 3, 0, 0}));
  EXPECT_EQ(binary("floor_div", x, y), (Int32s{3, -4, -4, 3, 0, 0}));
  EXPECT_EQ(binary("floor_mod", x, y), (Int32s{1, 1, -1, -1, 0, 0}));
  EXPECT_EQ(binary("trunc_mod", x, y), (Int32s{1, -1, 1, -1, 0, 0}));
}

TEST(Binary, LowestDividedByMinusOneWraps) {
  int32_t lowest = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(binary<int32_t>("div", {lowest}, {-1}), (Int32s{lowest}));
  EXPECT_EQ(binary<int32_t>("trunc_mod", {lowest}, {-1}), (Int32s{0}));
  int64_t lowest64 = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(binary<int64_t>("floor_div", {lowest64}, {-1}), (std::vector<int64_t>{lowest64}));
}

TEST(Binary, IntegerArithmeticWraps) {
  EXPECT_EQ(binary<int8_t>("add", {100, -100}, {100, -100}), (Int8s{-56, 56}));
  EXPECT_EQ(binary<uint8_t>("sub", {1}, {2}), (Bytes{255}));
  EXPECT_EQ(binary<uint16_t>("mul", {65535}, {65535}), (std::vector<uint16_t>{1}));
  EXPECT_EQ(binary<uint8_t>("squared_difference", {1}, {21}), (Bytes{144}));
  EXPECT_EQ(binary<uint64_t>("div", {~uint64_t(0)}, {2}), (std::vector<uint64_t>{~uint64_t(0) / 2}));
}

TEST(Binary, IntegerPower) {
  EXPECT_EQ(binary<int32_t>("pow", {3, -2, 2, 0, 7, 1, -1, -1, 0, 2}, {4, 3, 31, 0, -1, -5, -2, -3, -1, 32}),
            (Int32s{81, -8, std::numeric_limits<int32_t>::min(), 1, 0, 1, 1, -1, 0, 0}));
}

TEST(Binary, BitsAndShifts) {
  EXPECT_EQ(binary<int8_t>("bit_and", {-1}, {0x0f}), (Int8s{0x0f}));
  EXPECT_EQ(binary<int8_t>("bit_or", {0x10}, {0x0f}), (Int8s{0x1f}));
  EXPECT_EQ(binary<int8_t>("bit_xor", {-1}, {0x0f}), (Int8s{-16}));
  EXPECT_EQ(binary<int8_t>("shift_left", {1, 1, 1, 3}, {7, 8, -1, 1}), (Int8s{-128, 0, 0, 6}));
  EXPECT_EQ(binary<int8_t>("shift_right", {-128, -128, 64, 64}, {7, 100, 2, -1}), (Int8s{-1, -1, 16, 0}));
  EXPECT_EQ(binary<uint8_t>("shift_right", {128, 128}, {7, 8}), (Bytes{1, 0}));
}

TEST(Binary, Booleans) {
  HostTensor x = booleans({4}, {0, 0, 1, 1}), y = booleans({4}, {0, 1, 0, 1});
  auto run = [&](const std::string &kind) {
    return eval<uint8_t>("nn.binary <" + kind + "> %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>", {x, y});
  };
  EXPECT_EQ(run("bit_and"), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(run("bit_or"), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(run("bit_xor"), (Bytes{0, 1, 1, 0}));
  EXPECT_EQ(run("min"), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(run("max"), (Bytes{0, 1, 1, 1}));
}

TEST(Binary, KindsThatATypeHasNotAreRefused) {
  expectError("nn.binary <add> %0, %0 : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>", {booleans({1}, {1})},
              "'add' has no meaning for bool");
  expectError("nn.binary <bit_and> %0, %0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>", {range<float>({1})},
              "'bit_and' has no meaning for f32");
  expectError("nn.binary <atan2> %0, %0 : (tensor<1xi8>, tensor<1xi8>) -> tensor<1xi8>", {range<int8_t>({1})},
              "'atan2' has no meaning for i8");
}

TEST(Binary, Broadcasts) {
  EXPECT_EQ(eval<float>("nn.binary <sub> %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>",
                        {tensor<float>({2, 1}, {10, 20}), range<float>({3})}),
            (Floats{10, 9, 8, 20, 19, 18}));
}

TEST(Binary, DifferenceOfSumIsExact) {
  // x - (x + 1), which must not become +1.
  Outcome outcome = runModule("func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                              "%one = nn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>\n"
                              "%s = nn.binary <add> %x, %one : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>\n"
                              "%d = nn.binary <sub> %x, %s : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>\n"
                              "return %d : tensor<1xf32>\n}",
                              {tensor<float>({1}, {4})});
  ASSERT_EQ(outcome.results.size(), 1u) << outcome.message;
  EXPECT_EQ(values<float>(outcome.results[0]), (Floats{-1}));
}

TEST(Compare, KindsAndNaN) {
  HostTensor x = tensor<float>({4}, {1, 2, 3, notANumber}), y = tensor<float>({4}, {2, 2, 2, notANumber});
  auto run = [&](const std::string &kind) {
    return eval<uint8_t>("nn.compare <" + kind + "> %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>", {x, y});
  };
  EXPECT_EQ(run("eq"), (Bytes{0, 1, 0, 0}));
  EXPECT_EQ(run("ne"), (Bytes{1, 0, 1, 1}));
  EXPECT_EQ(run("lt"), (Bytes{1, 0, 0, 0}));
  EXPECT_EQ(run("le"), (Bytes{1, 1, 0, 0}));
  EXPECT_EQ(run("gt"), (Bytes{0, 0, 1, 0}));
  EXPECT_EQ(run("ge"), (Bytes{0, 1, 1, 0}));
}

TEST(Compare, UnsignedValuesAreNotSigned) {
  EXPECT_EQ(eval<uint8_t>("nn.compare <gt> %0, %1 : (tensor<1xui8>, tensor<1xui8>) -> tensor<1xi1>",
                          {tensor<uint8_t>({1}, {200}), tensor<uint8_t>({1}, {100})}),
            (Bytes{1}));
}

TEST(Select, BroadcastsAllOperands) {
  EXPECT_EQ(eval<float>("nn.select %0, %1, %2 : (tensor<2x1xi1>, tensor<2xf32>, tensor<f32>) -> tensor<2x2xf32>",
                        {booleans({2, 1}, {1, 0}), range<float>({2}, 5), tensor<float>({}, {-1})}),
            (Floats{5, 6, -1, -1}));
}

//===----------------------------------------------------------------------===//
// cast, clamp
//===----------------------------------------------------------------------===//

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  HostTensor x = tensor<float>({8}, {1.9f, -1.9f, 300, -300, notANumber, inf, -inf, 127.5f});
  EXPECT_EQ(eval<int8_t>("nn.cast %0 : (tensor<8xf32>) -> tensor<8xi8>", {x}),
            (Int8s{1, -1, 127, -128, 0, 127, -128, 127}));
  EXPECT_EQ(eval<uint8_t>("nn.cast %0 : (tensor<8xf32>) -> tensor<8xui8>", {x}), (Bytes{1, 0, 255, 0, 0, 255, 0, 127}));
  EXPECT_EQ(eval<int64_t>("nn.cast %0 : (tensor<3xf32>) -> tensor<3xi64>", {tensor<float>({3}, {inf, -inf, 1e30f})}),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MAX}));
  EXPECT_EQ(eval<uint64_t>("nn.cast %0 : (tensor<3xf32>) -> tensor<3xui64>", {tensor<float>({3}, {inf, -1, 1e19f})}),
            (std::vector<uint64_t>{UINT64_MAX, 0, uint64_t(1e19f)}));
}

TEST(Cast, IntegersWrapAndBooleansCompare) {
  EXPECT_EQ(eval<int8_t>("nn.cast %0 : (tensor<2xi32>) -> tensor<2xi8>", {tensor<int32_t>({2}, {300, -129})}),
            (Int8s{44, 127}));
  EXPECT_EQ(eval<int32_t>("nn.cast %0 : (tensor<1xui8>) -> tensor<1xi32>", {tensor<uint8_t>({1}, {200})}),
            (Int32s{200}));
  EXPECT_EQ(
      eval<uint8_t>("nn.cast %0 : (tensor<4xf32>) -> tensor<4xi1>", {tensor<float>({4}, {0, -0.0f, 0.1f, notANumber})}),
      (Bytes{0, 0, 1, 1}));
  EXPECT_EQ(eval<float>("nn.cast %0 : (tensor<2xi1>) -> tensor<2xf32>", {booleans({2}, {0, 1})}), (Floats{0, 1}));
  EXPECT_EQ(eval<uint8_t>("nn.cast %0 : (tensor<1xi32>) -> tensor<1xi1>", {tensor<int32_t>({1}, {256})}), (Bytes{1}));
}

TEST(Cast, ToHalfRoundsToEven) {
  Floats x{1,          65504,   65519.99f,    65520,        -65520,       0x1p-24f,    0x1p-25f,
           0x1.8p-24f, -0x0p0f, 1 + 0x1p-11f, 1 + 0x3p-11f, 0x1.ffcp-15f, 0x1.ffep-15f};
  EXPECT_EQ(eval<uint16_t>("nn.cast %0 : (tensor<13xf32>) -> tensor<13xf16>", {tensor<float>({13}, x)}),
            (std::vector<uint16_t>{0x3c00, 0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x0001, 0x0000, 0x0002, 0x8000, 0x3c00,
                                   0x3c02, 0x03ff + 1, 0x0400}));
}

TEST(Cast, ToBFloatRoundsToEven) {
  Floats x{1, 1 + 0x1p-8f, 1 + 0x3p-8f, 3.4e38f, std::numeric_limits<float>::max(), -inf};
  EXPECT_EQ(eval<uint16_t>("nn.cast %0 : (tensor<6xf32>) -> tensor<6xbf16>", {tensor<float>({6}, x)}),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x7f80, 0x7f80, 0xff80}));
}

TEST(Cast, DoubleToHalfRoundsOnce) {
  // Rounding to f32 first would give a tie, then 1.
  EXPECT_EQ(
      eval<uint16_t>("nn.cast %0 : (tensor<1xf64>) -> tensor<1xf16>", {tensor<double>({1}, {1 + 0x1p-11 + 0x1p-40})}),
      (std::vector<uint16_t>{0x3c01}));
}

/// Every finite or infinite value of a 16-bit type survives the way to f32 and back.
static void roundTrip(uint32_t type, const std::string &name, int exponentMask) {
  std::vector<uint16_t> bits;
  for (int i = 0; i < 65536; ++i)
    if ((i & exponentMask) != exponentMask || (i & 0x7fff) == exponentMask)
      bits.push_back(i);
  std::string size = std::to_string(bits.size());
  std::string wide = "tensor<" + size + "xf32>", narrow = "tensor<" + size + "x" + name + ">";
  HostTensor x = tensor<uint16_t>({int64_t(bits.size())}, bits, type);
  Outcome wider = runOp("nn.cast %0 : (" + narrow + ") -> " + wide, {x});
  ASSERT_EQ(wider.results.size(), 1u) << wider.message;
  EXPECT_EQ(eval<uint16_t>("nn.cast %0 : (" + wide + ") -> " + narrow, {wider.results[0]}), bits);
}
TEST(Cast, HalfRoundTrip) { roundTrip(AJOUR_F16, "f16", 0x7c00); }
TEST(Cast, BFloatRoundTrip) { roundTrip(AJOUR_BF16, "bf16", 0x7f80); }

TEST(Clamp, LimitsAndNaN) {
  Floats y = eval<float>("nn.clamp %0 {low = -1.0 : f64, high = 7.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>",
                         {tensor<float>({4}, {-5, 3, 9, notANumber})});
  ASSERT_EQ(y.size(), 4u);
  EXPECT_EQ((Floats{y[0], y[1], y[2]}), (Floats{-1, 3, 7}));
  EXPECT_TRUE(std::isnan(y[3]));
  // No lower limit: -5 stays.
  EXPECT_EQ(eval<float>("nn.clamp %0 {low = 0xFFF0000000000000 : f64, high = 7.0 : f64} : (tensor<2xf32>) -> "
                        "tensor<2xf32>",
                        {tensor<float>({2}, {-5, 8})}),
            (Floats{-5, 7}));
  EXPECT_EQ(eval<uint8_t>("nn.clamp %0 {low = -5.0 : f64, high = 200.0 : f64} : (tensor<2xui8>) -> tensor<2xui8>",
                          {tensor<uint8_t>({2}, {0, 250})}),
            (Bytes{0, 200}));
}
