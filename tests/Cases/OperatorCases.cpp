//===- OperatorCases.cpp - operators on inputs that other systems got wrong ----------===//
//
// One test for each report, named by its row in the list of cases; values follow from the operator's definition.
//
//===----------------------------------------------------------------------===//
#include "Import/ONNX/ModelBuilder.h"

#include <cmath>
#include <limits>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

std::vector<Dim> dims(const HostTensor &tensor) { return {tensor.shape.begin(), tensor.shape.end()}; }
Attr text(const char *name, const char *value) { return {name, std::string(value)}; }
Attr integer(const char *name, int64_t value) { return {name, value}; }

/// One node on one input.
Outcome unary(int64_t opset, const char *type, const HostTensor &x, std::vector<Attr> attrs) {
  ModelBuilder m(opset);
  m.input("x", dims(x)).node(type, {"x"}, {"y"}, std::move(attrs)).output("y");
  return run(m, {x});
}

Outcome slice(const HostTensor &x, Int64s starts, Int64s ends, Int64s axes, Int64s steps) {
  ModelBuilder m(13);
  int64_t n = int64_t(starts.size());
  m.input("x", dims(x)).initializer("s", int64s({n}, starts)).initializer("e", int64s({n}, ends));
  m.initializer("a", int64s({n}, axes)).initializer("t", int64s({n}, steps));
  m.node("Slice", {"x", "s", "e", "a", "t"}, {"y"}).output("y");
  return run(m, {x});
}

TEST(OperatorCases, O1_SliceBackwards) {
  HostTensor ten = ramp({10});
  expectFloats(slice(ten, {9}, {0}, {0}, {-1}), {9}, {9, 8, 7, 6, 5, 4, 3, 2, 1});
  expectFloats(slice(ten, {7}, {0}, {0}, {-1}), {7}, {7, 6, 5, 4, 3, 2, 1});
  expectFloats(slice(ten, {9}, {2}, {0}, {-1}), {7}, {9, 8, 7, 6, 5, 4, 3});
  expectFloats(slice(ten, {9}, {0}, {0}, {-3}), {3}, {9, 6, 3});
  expectFloats(slice(ramp({20}), {19}, {0}, {0}, {-3}), {7}, {19, 16, 13, 10, 7, 4, 1});
  expectFloats(slice(ramp({3, 4}), {2, 3}, {0, 0}, {0, 1}, {-1, -1}), {2, 3}, {11, 10, 9, 7, 6, 5});
}

TEST(OperatorCases, O3_LargestEndAndWideIndices) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  expectFloats(slice(ramp({4}), {1}, {most}, {0}, {1}), {3}, {1, 2, 3});
  expectFloats(slice(ramp({4}), {most}, {-most - 1}, {0}, {-1}), {4}, {3, 2, 1, 0});
  ModelBuilder m(13);
  m.input("x", {10, 200}).input("i", {35, 1}, ::onnx::TensorProto::INT64).node("Gather", {"x", "i"}, {"y"}).output("y");
  Int64s rows;
  Floats expected;
  for (int64_t i = 0; i < 35; ++i) {
    rows.push_back(i % 3 == 2 ? i % 10 - 10 : i % 10);
    for (int64_t k = 0; k < 200; ++k)
      expected.push_back(float((i % 10) * 200 + k));
  }
  expectFloats(run(m, {ramp({10, 200}), int64s({35, 1}, rows)}), {35, 1, 200}, expected);
}

TEST(OperatorCases, O4_NegativeIndices) {
  ModelBuilder m(13);
  m.input("x", {5}).input("i", {3}, ::onnx::TensorProto::INT64).node("Gather", {"x", "i"}, {"y"}).output("y");
  expectFloats(run(m, {ramp({5}, 1), int64s({3}, {-1, -3, 0})}), {3}, {5, 3, 1});
  ModelBuilder rows(13);
  rows.input("x", {3, 4}).initializer("i", int64s({2}, {0, -1})).node("Gather", {"x", "i"}, {"y"}, {integer("axis", 0)});
  rows.output("y");
  expectFloats(run(rows, {ramp({3, 4}, 1)}), {2, 4}, {1, 2, 3, 4, 9, 10, 11, 12});
}

Outcome averagePool(const HostTensor &x, Int64s kernel, Int64s strides, Int64s pads, int64_t ceil, int64_t include) {
  return unary(11, "AveragePool", x,
               {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, integer("ceil_mode", ceil),
                integer("count_include_pad", include)});
}

TEST(OperatorCases, O6_AveragePoolCutWindows) {
  HostTensor x = ramp({1, 1, 4, 4}, 1);
  expectFloats(averagePool(x, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, 1), {1, 1, 3, 3},
               {1.555556f, 3.333333f, 2, 6.333333f, 11, 6, 4.5f, 7.5f, 4}, 1e-6f);
  expectFloats(averagePool(x, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, 0), {1, 1, 3, 3},
               {3.5f, 5, 6, 9.5f, 11, 12, 13.5f, 15, 16}, 1e-6f);
}

TEST(OperatorCases, O8_AveragePoolPaddedAtTheEnd) {
  expectFloats(averagePool(ramp({1, 1, 2, 2}, 1, 0), {2, 2}, {1, 1}, {0, 0, 1, 1}, 0, 1), {1, 1, 2, 2},
               {1, .5f, .5f, .25f}, 1e-6f);
}

TEST(OperatorCases, O10_AveragePoolPaddedByMoreThanTheWindow) {
  expectFloats(averagePool(ramp({1, 1, 5}, 1), {2}, {2}, {2, 3}, 0, 1), {1, 1, 5}, {0, 1.5f, 3.5f, 2.5f, 0}, 1e-6f);
}

TEST(OperatorCases, O11_WindowsThatHoldNothingAreDropped) {
  expectFloats(averagePool(ramp({1, 1, 5}, 1), {2}, {5}, {0, 1}, 1, 0), {1, 1, 1}, {1.5f}, 1e-6f);
  expectFloats(averagePool(ramp({1, 1, 5}, 1), {2}, {5}, {0, 1}, 1, 1), {1, 1, 1}, {1.5f}, 1e-6f);
  expectFloats(unary(11, "MaxPool", ramp({1, 1, 5}, 1),
                     {{"kernel_shape", Int64s{2}}, {"strides", Int64s{5}}, {"pads", Int64s{0, 1}}, integer("ceil_mode", 1)}),
               {1, 1, 1}, {2});
}

Outcome reflect(Shape shape, Int64s pads) {
  ModelBuilder m(13);
  m.input("x", std::vector<Dim>(shape.begin(), shape.end())).initializer("p", int64s({int64_t(pads.size())}, pads));
  m.node("Pad", {"x", "p"}, {"y"}, {text("mode", "reflect")}).output("y");
  return run(m, {ramp(shape)});
}

TEST(OperatorCases, O13_ReflectOfAsManyAsThereAre) {
  expectError(reflect({3, 2}, {0, 2, 0, 0}), {"Pad", "reflect", "at most 1"});
  expectFloats(reflect({3, 2}, {0, 1, 0, 1}), {3, 4}, {1, 0, 1, 0, 3, 2, 3, 2, 5, 4, 5, 4});
}

TEST(OperatorCases, O14_ReflectBeyondTheAxis) {
  expectError(reflect({8, 20, 17, 13}, {3, 0, 4, 1, 11, 1, 8, 0}), {"reflect", "11", "at most 7"});
}

TEST(OperatorCases, O15_ReflectOfWhatIsCropped) {
  expectError(reflect({5}, {-4, 4}), {"at most 0"});
  expectError(reflect({3}, {-5, 0}), {"remove more"});
  // Cropping comes first: of 0 1 2 3 4 remain 1 2 3 4.
  expectFloats(reflect({5}, {-1, 2}), {6}, {1, 2, 3, 4, 3, 2});
}

TEST(OperatorCases, O16_ReflectOfRows) {
  expectFloats(reflect({3, 4}, {2, 0, 1, 0}), {6, 4}, {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 6, 7});
}

TEST(OperatorCases, O17_ConvTransposeSame) {
  ModelBuilder m(11);
  m.input("x", {1, 1, 2, 2}).initializer("w", ramp({1, 1, 3, 3}, 2));
  m.node("ConvTranspose", {"x", "w"}, {"y"}, {text("auto_pad", "SAME_UPPER")}).output("y");
  expectFloats(run(m, {ramp({1, 1, 2, 2}, 2)}), {1, 1, 2, 2}, {49, 63, 91, 105});
}

TEST(OperatorCases, O19_ConvTransposeOutputShapeCutsTheEnd) {
  ModelBuilder m(11);
  m.input("x", {1, 1, 16, 16}).initializer("w", ramp({1, 1, 3, 3}, 1));
  m.node("ConvTranspose", {"x", "w"}, {"y"}, {{"strides", Int64s{2, 2}}, {"output_shape", Int64s{32, 32}}}).output("y");
  HostTensor x = ramp({1, 1, 16, 16}, -8, .125f);
  Floats expected(32 * 32);
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 16; ++j)
      for (int64_t k = 0; k < 3; ++k)
        for (int64_t l = 0; l < 3; ++l)
          if (i * 2 + k < 32 && j * 2 + l < 32)
            expected[(i * 2 + k) * 32 + j * 2 + l] += x.as<float>()[i * 16 + j] * float(k * 3 + l + 1);
  expectFloats(run(m, {x}), {1, 1, 32, 32}, expected);
}

Outcome resize(std::vector<Attr> attrs, Floats scales, Int64s sizes, const HostTensor &x) {
  ModelBuilder m(13);
  m.input("x", dims(x));
  m.initializer("scales", floats({int64_t(scales.size())}, scales)).initializer("sizes", int64s({int64_t(sizes.size())}, sizes));
  m.node("Resize", {"x", "", scales.empty() ? "" : "scales", sizes.empty() ? "" : "sizes"}, {"y"}, attrs).output("y");
  return run(m, {x});
}
Attr mode(const char *value) { return text("mode", value); }
Attr coordinates(const char *value) { return text("coordinate_transformation_mode", value); }

TEST(OperatorCases, O20_ResizeToFewer) {
  HostTensor x = ramp({1, 1, 2, 4}, 1);
  expectFloats(resize({mode("linear"), coordinates("half_pixel")}, {1, 1, .6f, .6f}, {}, x), {1, 1, 1, 2}, {2.666667f, 4.333333f}, 1e-5f);
  expectFloats(resize({mode("linear"), coordinates("align_corners")}, {1, 1, .6f, .6f}, {}, x), {1, 1, 1, 2}, {1, 3.142857f}, 1e-5f);
  expectFloats(resize({mode("nearest"), coordinates("half_pixel")}, {}, {1, 1, 1, 3}, x), {1, 1, 1, 3}, {1, 2, 4});
}

TEST(OperatorCases, O21_ResizeCubicToLengthOne) {
  // The source coordinate of a single output is 0.
  expectFloats(resize({mode("cubic"), coordinates("pytorch_half_pixel")}, {}, {1, 1, 1, 1}, ramp({1, 1, 4, 4}, 1)), {1, 1, 1, 1}, {1});
}

TEST(OperatorCases, O23_ResizeAlignCornersWithChannelsLast) {
  HostTensor x = ramp({1, 15, 20, 2}, 0, .01f);
  for (int64_t i = 0; i < x.numElements(); ++i)
    x.as<float>()[i] = std::sin(x.as<float>()[i] * 37);
  auto expected = [&](bool align) {
    Floats values;
    auto source = [&](int64_t i, int64_t in, int64_t out) {
      return std::min(align ? double(i) * double(in - 1) / double(out - 1) : double(i) / 2, double(in - 1));
    };
    for (int64_t i = 0; i < 30; ++i)
      for (int64_t j = 0; j < 40; ++j)
        for (int64_t c = 0; c < 2; ++c) {
          double y = source(i, 15, 30), z = source(j, 20, 40);
          int64_t y0 = int64_t(y), z0 = int64_t(z), y1 = std::min<int64_t>(y0 + 1, 14), z1 = std::min<int64_t>(z0 + 1, 19);
          auto at = [&](int64_t a, int64_t b) { return double(x.as<float>()[(a * 20 + b) * 2 + c]); };
          double fy = y - double(y0), fz = z - double(z0);
          values.push_back(float((1 - fy) * ((1 - fz) * at(y0, z0) + fz * at(y0, z1)) + fy * ((1 - fz) * at(y1, z0) + fz * at(y1, z1))));
        }
    return values;
  };
  Floats aligned = expected(true), asymmetric = expected(false);
  EXPECT_NE(aligned, asymmetric);
  expectFloats(resize({mode("linear"), coordinates("align_corners")}, {1, 2, 2, 1}, {}, x), {1, 30, 40, 2}, aligned, 1e-4f);
  expectFloats(resize({mode("linear"), coordinates("asymmetric")}, {1, 2, 2, 1}, {}, x), {1, 30, 40, 2}, asymmetric, 1e-4f);
}

TEST(OperatorCases, O24_ResizeModesOnTwoByTwo) {
  HostTensor square = floats({1, 1, 2, 2}, {6, 7, 11, 12});
  auto firstRow = [&](const char *coordinate, Floats expected) {
    Outcome o = resize({mode("linear"), coordinates(coordinate)}, {}, {1, 1, 4, 4}, square);
    ASSERT_EQ(o.error, "");
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(o.outputs[0].as<float>()[i], expected[i], 1e-3) << coordinate;
  };
  firstRow("half_pixel", {6, 6.25f, 6.75f, 7});
  firstRow("align_corners", {6, 6.333333f, 6.666667f, 7});
  firstRow("asymmetric", {6, 6.5f, 7, 7});
}

TEST(OperatorCases, O25_SoftmaxFlattensBeforeOpset13) {
  HostTensor x = ramp({2, 3, 4}, 0, .1f);
  Outcome flat = unary(11, "Softmax", x, {}), along = unary(13, "Softmax", x, {});
  ASSERT_EQ(flat.error + along.error, "");
  Floats expectedFlat{.0453f, .0501f, .0554f, .0612f}, expectedAlong{.2138f, .2363f, .2612f, .2887f};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(flat.outputs[0].as<float>()[i], expectedFlat[i], 5e-5);
    EXPECT_NEAR(along.outputs[0].as<float>()[i], expectedAlong[i], 5e-5);
  }
}

TEST(OperatorCases, O27_ReshapeOfNothing) {
  auto reshape = [](Shape in, Int64s shape, int64_t allowZero) {
    ModelBuilder m(14);
    m.input("x", std::vector<Dim>(in.begin(), in.end())).initializer("s", int64s({int64_t(shape.size())}, shape));
    m.node("Reshape", {"x", "s"}, {"y"}, {integer("allowzero", allowZero)}).output("y");
    return run(m, {ramp(in)});
  };
  expectFloats(reshape({2, 0}, {1, 2, 0}, 1), {1, 2, 0}, {});
  // Without allowzero the 0 copies dimension 2, which the input does not have.
  expectError(reshape({2, 0}, {1, 2, 0}, 0), {"copies dimension 2"});
  expectError(reshape({0, 10}, {0, 1, -1}, 0), {"Reshape", "-1"});
}

TEST(OperatorCases, O28_ClipWithoutLowerLimit) {
  ModelBuilder m(11);
  m.input("x", {4}).initializer("max", floats({}, {7})).node("Clip", {"x", "", "max"}, {"y"}).output("y");
  expectFloats(run(m, {floats({4}, {-5, 0, 7, 9})}), {4}, {-5, 0, 7, 7}, 0);
}

TEST(OperatorCases, O30_BatchNormalizationOfInference) {
  ModelBuilder m(14);
  m.input("x", {1, 2, 1}).initializer("s", floats({2}, {1, 2})).initializer("b", floats({2}, {0, 1}));
  m.initializer("m", floats({2}, {1, 1})).initializer("v", floats({2}, {4, 1}));
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {integer("training_mode", 0), {"epsilon", 0.0f}}).output("y");
  expectFloats(run(m, {floats({1, 2, 1}, {3, 3})}), {1, 2, 1}, {1, 5}, 1e-6f);
}

TEST(OperatorCases, O31_GeluByTanh) {
  HostTensor x = floats({4}, {2, -2, .5f, 0});
  expectFloats(unary(20, "Gelu", x, {text("approximate", "none")}), {4}, {1.9544997f, -.0455003f, .3457312f, 0}, 1e-6f);
  expectFloats(unary(20, "Gelu", x, {text("approximate", "tanh")}), {4}, {1.9545977f, -.0454023f, .3457140f, 0}, 1e-6f);
}

/// Values between -1/2 and 1/2 in no order.
HostTensor scattered(Shape shape) {
  HostTensor tensor = ramp(std::move(shape));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.as<float>()[i] = float(i * 7919 % 127) / 127 - .5f;
  return tensor;
}

Floats valuesOf(const HostTensor &tensor) { return Floats(tensor.as<float>(), tensor.as<float>() + tensor.numElements()); }

TEST(OperatorCases, O32_GruRowsAreIndependentWithoutABias) {
  HostTensor x = scattered({5, 3, 4}), w = scattered({1, 6, 4}), r = scattered({1, 6, 2});
  auto gru = [&](const HostTensor &input, bool bias) {
    ModelBuilder m(14);
    m.input("x", dims(input)).initializer("w", w).initializer("r", r);
    std::vector<std::string> operands{"x", "w", "r"};
    if (bias) {
      m.initializer("b", floats({1, 12}, Floats(12, 0)));
      operands.push_back("b");
    }
    m.node("GRU", operands, {"y", "h"}, {integer("hidden_size", 2), integer("linear_before_reset", 1)}).output("y").output("h");
    return run(m, {input});
  };
  Outcome all = gru(x, false);
  ASSERT_TRUE(all.error.empty()) << all.error;
  EXPECT_EQ(all.outputs[0].shape, (Shape{5, 1, 3, 2}));
  EXPECT_EQ(all.outputs[1].shape, (Shape{1, 3, 2}));
  expectFloats(gru(x, true), {5, 1, 3, 2}, valuesOf(all.outputs[0]), 1e-6f);
  for (int64_t row = 0; row < 3; ++row) {
    HostTensor own = floats({5, 1, 4}, Floats(20));
    Floats expected;
    for (int64_t t = 0; t < 5; ++t) {
      std::copy_n(x.as<float>() + (t * 3 + row) * 4, 4, own.as<float>() + t * 4);
      expected.insert(expected.end(), {all.outputs[0].as<float>()[(t * 3 + row) * 2], all.outputs[0].as<float>()[(t * 3 + row) * 2 + 1]});
    }
    expectFloats(gru(own, false), {5, 1, 1, 2}, expected, 1e-6f);
  }
}

TEST(OperatorCases, O34_LstmOfManyStepsStaysInTheOrderOfTime) {
  HostTensor x = scattered({7, 48, 224}), turned = x, w = scattered({1, 8, 224}), r = scattered({1, 8, 2});
  for (int64_t t = 0; t < 7; ++t)
    std::copy_n(x.as<float>() + t * 48 * 224, 48 * 224, turned.as<float>() + (6 - t) * 48 * 224);
  auto lstm = [&](const HostTensor &input, const char *direction, std::vector<std::string> operands) {
    ModelBuilder m(14);
    m.input("x", {7, 48, 224}).initializer("w", w).initializer("r", r).initializer("zero", floats({1, 48, 2}, Floats(96, 0)));
    m.node("LSTM", operands, {"y"}, {integer("hidden_size", 2), text("direction", direction)}).output("y");
    return run(m, {input});
  };
  Outcome forward = lstm(x, "forward", {"x", "w", "r"}), backward = lstm(turned, "reverse", {"x", "w", "r"});
  ASSERT_TRUE(forward.error.empty()) << forward.error;
  ASSERT_TRUE(backward.error.empty()) << backward.error;
  Floats y = valuesOf(forward.outputs[0]), expected(y.size());
  for (int64_t t = 0; t < 7; ++t)
    std::copy_n(y.data() + t * 96, 96, expected.data() + (6 - t) * 96);
  expectFloats(backward, {7, 1, 48, 2}, expected, 1e-5f);
  // Optional operands may be blank, and zeros are what absent states are.
  expectFloats(lstm(x, "forward", {"x", "w", "r", "", "", "zero", "zero"}), {7, 1, 48, 2}, y, 1e-6f);
  // The first step, from zeros: sigmoid(o) tanh(sigmoid(i) tanh(c)) in the gates' order i, o, f, c.
  auto gate = [&](int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < 224; ++k)
      sum += double(x.as<float>()[k]) * w.as<float>()[n * 224 + k];
    return sum;
  };
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int64_t u = 0; u < 2; ++u)
    EXPECT_NEAR(y[u], sigmoid(gate(2 + u)) * std::tanh(sigmoid(gate(u)) * std::tanh(gate(6 + u))), 1e-5);
}

TEST(OperatorCases, P12_LstmThenFullyConnected) {
  HostTensor x = scattered({4, 2, 3}), w = scattered({1, 20, 3}), r = scattered({1, 20, 5}), f = scattered({5, 3});
  ModelBuilder m(14);
  m.input("x", {4, 2, 3}).initializer("w", w).initializer("r", r).initializer("f", f).initializer("axes", int64s({1}, {1}));
  m.node("LSTM", {"x", "w", "r"}, {"y"}, {integer("hidden_size", 5)}).node("Squeeze", {"y", "axes"}, {"s"});
  m.node("MatMul", {"s", "f"}, {"z"}).output("z").output("s");
  Outcome outcome = run(m, {x});
  ASSERT_TRUE(outcome.error.empty()) << outcome.error;
  Floats s = valuesOf(outcome.outputs[1]), expected;
  for (int64_t row = 0; row < 8; ++row)
    for (int64_t n = 0; n < 3; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < 5; ++k)
        sum += double(s[row * 5 + k]) * f.as<float>()[k * 3 + n];
      expected.push_back(float(sum));
    }
  outcome.outputs.resize(1);
  expectFloats(outcome, {4, 2, 3}, expected, 1e-5f);
}

TEST(OperatorCases, O36_SubtractionIsNotAssociative) {
  ModelBuilder m(13);
  m.input("x", {3}).initializer("one", floats({1}, {1}));
  m.node("Add", {"x", "one"}, {"t"}).node("Sub", {"x", "t"}, {"y"}).output("y");
  // 1e8 + 1 is 1e8 in single precision.
  expectFloats(run(m, {floats({3}, {5, -2, 1e8f})}), {3}, {-1, -1, 0}, 0);
}

TEST(OperatorCases, O37_QLinearMatMulSaturatesAndGridSampleAtTheBorder) {
  ModelBuilder m(10);
  m.input("a", {1, 1}, ::onnx::TensorProto::INT8).initializer("b", bytes({1, 3}, {1, -75, -100}, true));
  m.initializer("one", floats({}, {1})).initializer("zero", bytes({}, {0}, true));
  m.node("QLinearMatMul", {"a", "one", "zero", "b", "one", "zero", "one", "zero"}, {"y"}).output("y");
  expectInts(run(m, {bytes({1, 1}, {1}, true)}), {1, 3}, {1, -75, -100});
  expectInts(run(m, {bytes({1, 1}, {2}, true)}), {1, 3}, {2, -128, -128});
  // Coordinates 0.5 and 1.5 round to the even neighbours 0 and 2; 2 is moved to the border, 1.
  ModelBuilder grid(16);
  grid.input("x", {1, 1, 2, 2}).input("g", {1, 2, 2, 2});
  grid.node("GridSample", {"x", "g"}, {"y"}, {mode("nearest"), text("padding_mode", "border"), integer("align_corners", 0)}).output("y");
  expectFloats(run(grid, {ramp({1, 1, 2, 2}), floats({1, 2, 2, 2}, {-1, -1, 0, -1, -1, 1, 0, 1})}), {1, 1, 2, 2}, {0, 0, 2, 2});
}

TEST(OperatorCases, O39_NormalizationsOfHigherRank) {
  ModelBuilder group(21);
  group.input("x", {1, 4, 1, 1, 2}).initializer("s", ramp({4}, 1)).initializer("b", ramp({4}, 0, 0));
  group.node("GroupNormalization", {"x", "s", "b"}, {"y"}, {integer("num_groups", 2), {"epsilon", 0.0f}}).output("y");
  expectFloats(run(group, {floats({1, 4, 1, 1, 2}, {0, 0, 2, 2, 0, 2, 0, 2})}), {1, 4, 1, 1, 2}, {-1, -1, 2, 2, -3, 3, -4, 4});
  ModelBuilder layer(17);
  layer.input("x", {2, 2, 2}).initializer("s", floats({1, 2, 2}, {1, 2, 3, 4})).initializer("b", floats({2, 1, 2}, {0, 0, 1, 1}));
  layer.node("LayerNormalization", {"x", "s", "b"}, {"y"}, {integer("axis", 2), {"epsilon", 0.0f}}).output("y");
  expectFloats(run(layer, {floats({2, 2, 2}, {0, 2, 0, 2, 0, 2, 0, 2})}), {2, 2, 2}, {-1, 2, -3, 4, 0, 3, -2, 5});
}

TEST(OperatorCases, O40_ExternalDataStaysInItsFolderAndFile) {
  auto external = [](const char *location, const char *offset) {
    ModelBuilder m(13);
    m.input("x", {2}).initializer("w", floats({2}, {0, 0})).node("Add", {"x", "w"}, {"y"}).output("y");
    auto *w = m.proto.mutable_graph()->mutable_initializer(0);
    w->clear_raw_data();
    w->set_data_location(::onnx::TensorProto::EXTERNAL);
    for (auto [key, value] : {std::pair("location", location), std::pair("offset", offset)}) {
      auto *entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return m;
  };
  expectError(importOnly(external("../../../etc/passwd", "0")), {"expected a file inside the model's folder"});
  expectError(importOnly(external("*/_ORT_MEM_ADDR_/*", "0")), {"not a file next to the model"});
  // The model itself is a file of that folder.
  expectError(importOnly(external("model.onnx", "-8")), {"offset '-8'"});
  expectError(importOnly(external("model.onnx", "1000000")), {"at offset 1000000 of 'model.onnx'"});
}

TEST(OperatorCases, O41_ArrayFeatureExtractorIsRefused) {
  ModelBuilder m(13);
  m.input("x", {1, 4}).initializer("i", int64s({1}, {-1}));
  m.node("ArrayFeatureExtractor", {"x", "i"}, {"y"}, {}, "ai.onnx.ml").output("y");
  expectError(run(m, {}), {"(ArrayFeatureExtractor, #0)", "ai.onnx.ml"});
}

TEST(OperatorCases, O42_NewerOpset) {
  ModelBuilder m(99);
  m.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  expectError(run(m, {}), {"operator set ai.onnx 99", "--allow-newer-opset"});
  ImportOptions options;
  options.allowNewerOpset = true;
  expectFloats(run(m, {floats({2}, {-1, 2})}, options), {2}, {0, 2});
}

} // namespace
