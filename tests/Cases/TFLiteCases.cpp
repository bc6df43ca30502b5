//===- TFLiteCases.cpp - TFLite models that other systems got wrong --------------------===//
//
// One test for each report, named by its row in the list of cases, through the whole compiler and the runtime; values
// follow from the operator's definition. The importer's own cases (CaseTest.cpp) run here too, compiled.
//
//===----------------------------------------------------------------------===//
#include "Import/TFLite/Builder.h"
#include "Support/CompiledModel.h"
#include "Support/ModelFiles.h"

#include "ajour/Pipeline/Compile.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace ajour;
using namespace ajour::test;
using namespace ajour::tflite;
using testing::HasSubstr;

namespace {

/// Runs compiled code: at every level of this machine and twice each, which must give the same bytes.
bool executeOnAllLevels(mlir::ModuleOp module, const std::vector<HostTensor> &inputs,
                        std::vector<HostTensor> &outputs) {
  std::shared_ptr<CompiledModel> compiled = compileClone(module, CompileOptions());
  if (!compiled)
    return false;
  for (const std::string &level : runnableLevels())
    for (int again = 0; again < 2; ++again) {
      SCOPED_TRACE(level);
      CompiledModel::RunOptions options;
      options.level = level;
      std::vector<HostTensor> found;
      std::string error;
      if (!compiled->run(inputs, found, error, options)) {
        ADD_FAILURE() << "cannot run: " << error;
        return false;
      }
      for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].elementType != AJOUR_F32 || again)
          EXPECT_EQ(outputs[i].data, found[i].data) << "output " << i;
      outputs = std::move(found);
    }
  return true;
}

struct UseCompiledCode : testing::Environment {
  void SetUp() override { executor() = executeOnAllLevels; }
};
[[maybe_unused]] testing::Environment *environment = testing::AddGlobalTestEnvironment(new UseCompiledCode);

template <typename T> std::vector<T> elementsOf(const Outcome &outcome, size_t i = 0) {
  EXPECT_EQ(outcome.errors, "");
  if (outcome.outputs.size() <= i) {
    ADD_FAILURE() << "there is no output " << i;
    return {};
  }
  const HostTensor &t = outcome.outputs[i];
  EXPECT_EQ(ajour_element_size(t.elementType), sizeof(T));
  return std::vector<T>(t.as<T>(), t.as<T>() + t.numElements());
}

void expectNear(const std::vector<float> &found, const std::vector<float> &expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

/// Small whole numbers that repeat late.
std::vector<float> pattern(int64_t count, int spread) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(float((i * 7 + i / 5 * 3) % spread - spread / 2));
  return values;
}

/// Bits of half precision of numbers that it holds exactly, normal or zero.
std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (float value : values) {
    int exponent = 0;
    float fraction = std::frexp(std::abs(value), &exponent); // in [.5, 1)
    bits.push_back(uint16_t((value < 0 ? 0x8000 : 0) |
                            (value == 0 ? 0 : (exponent + 14) << 10 | int(std::ldexp(fraction, 11)) - 1024)));
  }
  return bits;
}

struct Geometry {
  int64_t height, width, in, out, kh, kw, stride, dh, dw, padTop, padLeft, outHeight, outWidth;
  bool depthwise = false;
};
/// A convolution by its definition; filters [O, kh, kw, I], or [1, kh, kw, O] of a depthwise one.
template <typename Product> std::vector<double> convolve(const Geometry &g, Product product) {
  std::vector<double> out;
  for (int64_t y = 0; y < g.outHeight; ++y)
    for (int64_t x = 0; x < g.outWidth; ++x)
      for (int64_t o = 0; o < g.out; ++o) {
        double sum = 0;
        for (int64_t a = 0; a < g.kh; ++a)
          for (int64_t b = 0; b < g.kw; ++b)
            for (int64_t c = 0; c < (g.depthwise ? 1 : g.in); ++c) {
              int64_t row = y * g.stride + a * g.dh - g.padTop, column = x * g.stride + b * g.dw - g.padLeft;
              if (row < 0 || column < 0 || row >= g.height || column >= g.width)
                continue;
              int64_t channel = g.depthwise ? o / (g.out / g.in) : c;
              int64_t weight = g.depthwise ? (a * g.kw + b) * g.out + o : ((o * g.kh + a) * g.kw + b) * g.in + c;
              sum += product((row * g.width + column) * g.in + channel, weight, o);
            }
        out.push_back(sum);
      }
  return out;
}

int32_t saturated(double real, double scale, int zero, int low, int high) {
  return int32_t(std::clamp(std::nearbyint(real / scale) + zero, double(low), double(high)));
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

TEST(TFLiteCompiled, T3_DilationOfOneAxisAndManyFilters) {
  Geometry g{9, 8, 3, 32, 3, 3, 1, 2, 1, 2, 1, 9, 8};
  TFLiteBuilder b;
  std::vector<float> input = pattern(9 * 8 * 3, 13), weights = pattern(32 * 9 * 3, 11);
  int x = b.tensor("x", TensorType::FLOAT32, {1, 9, 8, 3});
  int w = b.constant<float>("w", TensorType::FLOAT32, {32, 3, 3, 3}, weights);
  int y = b.tensor("y", TensorType::FLOAT32, {1, 9, 8, 32});
  Conv2DT options;
  options.padding = Padding::SAME;
  options.stride_h = options.stride_w = 1;
  options.dilation_h = 2;
  options.dilation_w = 1;
  b.op(Builtin::CONV_2D, {x, w}, {y}, options);
  b.io({x}, {y});
  std::vector<double> sums = convolve(g, [&](int64_t i, int64_t k, int64_t) { return double(input[i]) * weights[k]; });
  // Whole numbers: exact in f32.
  EXPECT_EQ(elementsOf<float>(importModel(b, {makeTensor(AJOUR_F32, {1, 9, 8, 3}, input)})),
            std::vector<float>(sums.begin(), sums.end()));
}

TEST(TFLiteCompiled, T3_DilatedDepthwise) {
  Geometry g{5, 5, 4, 4, 3, 3, 1, 2, 2, 2, 2, 5, 5, true};
  TFLiteBuilder b;
  std::vector<float> input = pattern(100, 13), weights = pattern(36, 11);
  int x = b.tensor("x", TensorType::FLOAT32, {1, 5, 5, 4});
  int w = b.constant<float>("w", TensorType::FLOAT32, {1, 3, 3, 4}, weights);
  int y = b.tensor("y", TensorType::FLOAT32, {1, 5, 5, 4});
  DepthwiseConv2DT options;
  options.padding = Padding::SAME;
  options.stride_h = options.stride_w = options.depth_multiplier = 1;
  options.dilation_h = options.dilation_w = 2;
  b.op(Builtin::DEPTHWISE_CONV_2D, {x, w}, {y}, options);
  b.io({x}, {y});
  std::vector<double> sums = convolve(g, [&](int64_t i, int64_t k, int64_t) { return double(input[i]) * weights[k]; });
  EXPECT_EQ(elementsOf<float>(importModel(b, {makeTensor(AJOUR_F32, {1, 5, 5, 4}, input)})),
            std::vector<float>(sums.begin(), sums.end()));
}

/// Weights of a depthwise convolution with a scale for each of 6 channels, along dimension `axis`.
TFLiteBuilder depthwisePerChannel(const std::vector<int8_t> &weights, const std::vector<float> &scales, int axis) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::INT8, {1, 5, 5, 3});
  int w = b.constant<int8_t>("w", TensorType::INT8, {1, 3, 3, 6}, weights);
  int y = b.tensor("y", TensorType::INT8, {1, 3, 3, 6});
  b.quantize(x, {0.5f}, {3});
  b.quantize(w, scales, std::vector<int64_t>(scales.size(), 0), axis);
  b.quantize(y, {4.0f}, {-7});
  DepthwiseConv2DT options;
  options.padding = Padding::VALID;
  options.stride_h = options.stride_w = 1;
  options.depth_multiplier = 2;
  b.op(Builtin::DEPTHWISE_CONV_2D, {x, w}, {y}, options);
  b.io({x}, {y});
  return b;
}

TEST(TFLiteCompiled, T7_ScalesAlongTheLastDimension) {
  Geometry g{5, 5, 3, 6, 3, 3, 1, 1, 1, 0, 0, 3, 3, true};
  std::vector<int8_t> input, weights;
  for (float value : pattern(75, 41))
    input.push_back(int8_t(value));
  for (float value : pattern(54, 29))
    weights.push_back(int8_t(value));
  std::vector<float> scales{0.125f, 0.25f, 0.5f, 1, 2, 4};
  std::vector<double> sums = convolve(g, [&](int64_t i, int64_t k, int64_t o) {
    return 0.5 * (input[i] - 3) * double(scales[o]) * weights[k];
  });
  std::vector<int8_t> expected;
  for (double sum : sums)
    expected.push_back(int8_t(saturated(sum, 4, -7, -128, 127)));
  HostTensor x = makeTensor(AJOUR_I8, {1, 5, 5, 3}, input);
  EXPECT_EQ(elementsOf<int8_t>(importModel(depthwisePerChannel(weights, scales, 3), {x})), expected);
  EXPECT_THAT(importModel(depthwisePerChannel(weights, {1, 2, 3}, 1), {x}).errors,
              HasSubstr("weights 'w' are quantised along dimension 1, expected 3"));
}

TEST(TFLiteCompiled, Q11_PerChannelOnEveryLevel) {
  Geometry g{2, 4, 1, 3, 2, 2, 2, 1, 1, 0, 0, 1, 2};
  std::vector<int8_t> input{1, 1, 1, 1, 3, 3, 3, 3, 1, 3, 5, 7, 1, 3, 5, 7};
  std::vector<int8_t> weights{2, 4, 6, 8, -2, 2, -2, 2, -2, -2, 2, 2};
  std::vector<float> scales{1, 0.5f, 2};
  std::vector<int32_t> bias{2, 8, 3};
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::INT8, {2, 2, 4, 1}), y = b.tensor("y", TensorType::INT8, {2, 1, 2, 3});
  int w = b.constant<int8_t>("w", TensorType::INT8, {3, 2, 2, 1}, weights);
  int c = b.constant<int32_t>("c", TensorType::INT32, {3}, bias);
  b.quantize(x, {0.5f}, {-1});
  b.quantize(w, scales, {0, 0, 0});
  b.quantize(c, {0.5f, 0.25f, 1}, {0, 0, 0});
  b.quantize(y, {0.5f}, {-1});
  Conv2DT options;
  options.padding = Padding::VALID;
  options.stride_h = options.stride_w = 2;
  b.op(Builtin::CONV_2D, {x, w, c}, {y}, options);
  b.io({x}, {y});
  std::vector<int8_t> expected;
  for (int64_t n = 0; n < 2; ++n) {
    std::vector<double> sums = convolve(g, [&](int64_t i, int64_t k, int64_t o) {
      return 0.5 * (input[n * 8 + i] + 1) * double(scales[o]) * weights[k];
    });
    for (size_t i = 0; i < sums.size(); ++i)
      expected.push_back(int8_t(saturated(sums[i] + 0.5 * scales[i % 3] * bias[i % 3], 0.5, -1, -128, 127)));
  }
  EXPECT_EQ(elementsOf<int8_t>(importModel(b, {makeTensor(AJOUR_I8, {2, 2, 4, 1}, input)})), expected);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

TEST(TFLiteCompiled, T5_ManyColumnsTwoRows) {
  std::vector<int8_t> input, weights;
  for (float value : pattern(1280, 251))
    input.push_back(int8_t(value));
  for (float value : pattern(2560, 241))
    weights.push_back(int8_t(value));
  std::vector<float> scales{0.25f, 0.03125f};
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::INT8, {1, 1280}), y = b.tensor("y", TensorType::INT8, {1, 2});
  int w = b.constant<int8_t>("w", TensorType::INT8, {2, 1280}, weights);
  b.quantize(x, {0.5f}, {-3});
  b.quantize(w, scales, {0, 0});
  b.quantize(y, {256.0f}, {5});
  b.op(Builtin::FULLY_CONNECTED, {x, w, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  std::vector<int8_t> expected;
  for (int n = 0; n < 2; ++n) {
    double sum = 0;
    for (int k = 0; k < 1280; ++k)
      sum += 0.5 * (input[k] + 3) * double(scales[n]) * weights[n * 1280 + k];
    expected.push_back(int8_t(saturated(sum, 256, 5, -128, 127)));
  }
  EXPECT_EQ(elementsOf<int8_t>(importModel(b, {makeTensor(AJOUR_I8, {1, 1280}, input)})), expected);
}

TEST(TFLiteCompiled, T6_EightBitsIntoSixteen) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::INT8, {1, 4}), y = b.tensor("y", TensorType::INT16, {1, 2});
  int w = b.constant<int8_t>("w", TensorType::INT8, {2, 4}, {100, 100, -100, 100, -128, -128, 127, -128});
  b.quantize(x, {0.5f}, {-128});
  b.quantize(w, {0.5f}, {0});
  b.quantize(y, {0.25f}, {0});
  b.op(Builtin::FULLY_CONNECTED, {x, w, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  // (q + 128) / 2 = 127.5, 100, 0, 64; times 50 and -64; in quarters, within 16 bits.
  std::vector<int16_t> expected;
  for (double sum : {127.5 * 50 + 100 * 50 + 0 + 64 * 50, 127.5 * -64 + 100 * -64 + 0 + 64 * -64})
    expected.push_back(int16_t(saturated(sum, 0.25, 0, -32768, 32767)));
  EXPECT_EQ(expected[1], -32768);
  EXPECT_EQ(elementsOf<int16_t>(importModel(b, {makeTensor<int8_t>(AJOUR_I8, {1, 4}, {127, 72, -128, 0})})), expected);
}

//===----------------------------------------------------------------------===//
// 16-bit integers and half precision
//===----------------------------------------------------------------------===//

struct Wide {
  Builtin code;
  int operands;
  double (*function)(double, double);
};
std::ostream &operator<<(std::ostream &os, const Wide &wide) { return os << int(wide.code); }
struct T12 : testing::TestWithParam<Wide> {};

TEST_P(T12, SixteenBitsInFloatingPoint) {
  const Wide &wide = GetParam();
  TFLiteBuilder b;
  std::vector<int16_t> lhs{64, 128, 300, 1024, 4096, 20000, 32767, 511}, rhs{64, 100, 200, 300, 320, 340, 400, 512};
  int x = b.tensor("x", TensorType::INT16, {8}), y = b.tensor("y", TensorType::INT16, {8});
  int z = b.tensor("z", TensorType::INT16, {8});
  b.quantize(x, {1.0f / 256}, {0});
  b.quantize(y, {1.0f / 256}, {0});
  b.quantize(z, {1.0f / 128}, {0});
  std::vector<int> operands{x};
  std::vector<HostTensor> inputs{makeTensor(AJOUR_I16, {8}, lhs)};
  if (wide.operands == 2) {
    operands.push_back(y);
    inputs.push_back(makeTensor(AJOUR_I16, {8}, rhs));
  }
  if (wide.code == Builtin::DIV)
    b.op(wide.code, operands, {z}, DivT());
  else
    b.op(wide.code, operands, {z});
  b.io(operands, {z});
  Outcome o = importModel(b, inputs);
  EXPECT_THAT(o.notes, HasSubstr("is computed in f32"));
  std::vector<int16_t> found = elementsOf<int16_t>(o);
  ASSERT_EQ(found.size(), 8u);
  for (int i = 0; i < 8; ++i)
    EXPECT_NEAR(int(found[i]), saturated(wide.function(lhs[i] / 256.0, rhs[i] / 256.0), 1.0 / 128, 0, -32768, 32767), 1)
        << i;
}
INSTANTIATE_TEST_SUITE_P(
    TFLiteCompiled, T12,
    testing::Values(Wide{Builtin::RSQRT, 1, [](double x, double) { return 1 / std::sqrt(x); }},
                    Wide{Builtin::SQRT, 1, [](double x, double) { return std::sqrt(x); }},
                    Wide{Builtin::LOG, 1, [](double x, double) { return std::log(x); }},
                    Wide{Builtin::POW, 2, [](double x, double y) { return std::pow(x, y); }},
                    Wide{Builtin::DIV, 2, [](double x, double y) { return x / y; }},
                    Wide{Builtin::FLOOR_MOD, 2, [](double x, double y) { return x - std::floor(x / y) * y; }}));

TEST(TFLiteCompiled, Q15_SumsBeyondHalfPrecision) {
  // Weights of half precision: 321 ones times 1000 is 321000, which f16 cannot hold.
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 321}), y = b.tensor("y", TensorType::FLOAT32, {1, 2});
  std::vector<float> weights(642, 1000);
  weights[641] = -1000;
  int h = b.constant<uint16_t>("h", TensorType::FLOAT16, {2, 321}, halves(weights));
  int w = b.tensor("w", TensorType::FLOAT32, {2, 321});
  b.op(Builtin::DEQUANTIZE, {h}, {w});
  b.op(Builtin::FULLY_CONNECTED, {x, w, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  EXPECT_EQ(elementsOf<float>(importModel(b, {makeTensor(AJOUR_F32, {1, 321}, std::vector<float>(321, 1))})),
            (std::vector<float>{321000, 319000}));
}

TEST(TFLiteCompiled, Q15_SumOfManyElements) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {2, 4096}), y = b.tensor("y", TensorType::FLOAT32, {2});
  int axis = b.constant<int32_t>("axis", TensorType::INT32, {1}, {1});
  b.op(Builtin::SUM, {x, axis}, {y}, ReducerT());
  b.io({x}, {y});
  std::vector<float> input(8192, 16);
  std::fill(input.begin() + 4096, input.end(), 64.0f);
  EXPECT_EQ(elementsOf<float>(importModel(b, {makeTensor(AJOUR_F32, {2, 4096}, input)})),
            (std::vector<float>{65536, 262144}));
}

//===----------------------------------------------------------------------===//
// Sparse constants
//===----------------------------------------------------------------------===//

/// [[0, 5, 0], [7, 0, 9]] as compressed rows of another element type, behind DENSIFY, times an input of ones.
template <typename T> TFLiteBuilder sparse(TensorType type, std::vector<T> stored) {
  TFLiteBuilder b;
  int s = b.constant<T>("s", type, {2, 3}, stored);
  auto sparsity = std::make_unique<SparsityT>();
  sparsity->traversal_order = {0, 1};
  auto rows = std::make_unique<DimensionMetadataT>(), columns = std::make_unique<DimensionMetadataT>();
  rows->format = DimensionKind::DENSE;
  rows->dense_size = 2;
  columns->format = DimensionKind::SPARSE_CSR;
  Int32VectorT segments;
  segments.values = {0, 1, 3};
  Uint8VectorT indices;
  indices.values = {1, 0, 2};
  columns->array_segments.Set(segments);
  columns->array_indices.Set(indices);
  sparsity->dim_metadata.push_back(std::move(rows));
  sparsity->dim_metadata.push_back(std::move(columns));
  b.at(s).sparsity = std::move(sparsity);
  return b;
}

TEST(TFLiteCompiled, T15_SparseHalfPrecision) {
  TFLiteBuilder b = sparse<uint16_t>(TensorType::FLOAT16, halves({5, 7, 9}));
  int d = b.tensor("d", TensorType::FLOAT16, {2, 3}), w = b.tensor("w", TensorType::FLOAT32, {2, 3});
  int x = b.tensor("x", TensorType::FLOAT32, {1, 3}), y = b.tensor("y", TensorType::FLOAT32, {1, 2});
  b.op(Builtin::DENSIFY, {0}, {d});
  b.op(Builtin::DEQUANTIZE, {d}, {w});
  b.op(Builtin::FULLY_CONNECTED, {x, w, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  EXPECT_EQ(elementsOf<float>(importModel(b, {makeTensor<float>(AJOUR_F32, {1, 3}, {1, 10, 100})})),
            (std::vector<float>{50, 907}));
}

TEST(TFLiteCompiled, T15_SparseEightBits) {
  TFLiteBuilder b = sparse<int8_t>(TensorType::INT8, {5, 7, 9});
  b.quantize(0, {0.5f}, {0});
  int d = b.tensor("d", TensorType::INT8, {2, 3});
  b.quantize(d, {0.5f}, {0});
  int x = b.tensor("x", TensorType::INT8, {1, 3}), y = b.tensor("y", TensorType::INT8, {1, 2});
  b.quantize(x, {2.0f}, {0});
  b.quantize(y, {1.0f}, {-1});
  b.op(Builtin::DENSIFY, {0}, {d});
  b.op(Builtin::FULLY_CONNECTED, {x, d, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  EXPECT_EQ(elementsOf<int8_t>(importModel(b, {makeTensor<int8_t>(AJOUR_I8, {1, 3}, {1, 2, 10})})),
            (std::vector<int8_t>{9, 96}));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(TFLiteCompiled, T16_EverySessionGivesTheSame) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 6, 6, 4}), last = x;
  std::vector<float> weights = pattern(4 * 9 * 4, 7);
  for (float &value : weights)
    value /= 16;
  for (int i = 0; i < 4; ++i) {
    int w = b.constant<float>("w" + std::to_string(i), TensorType::FLOAT32, {4, 3, 3, 4}, weights);
    int y = b.tensor("y" + std::to_string(i), TensorType::FLOAT32, {1, 6, 6, 4});
    Conv2DT options;
    options.padding = Padding::SAME;
    options.stride_h = options.stride_w = 1;
    b.op(Builtin::CONV_2D, {last, w}, {y}, options);
    int sum = b.tensor("s" + std::to_string(i), TensorType::FLOAT32, {1, 6, 6, 4});
    b.op(Builtin::ADD, {y, last}, {sum}, AddT());
    last = sum;
  }
  b.io({x}, {last});
  HostTensor input = makeTensor(AJOUR_F32, {1, 6, 6, 4}, pattern(144, 13));
  Outcome first = importModel(b, {input});
  for (int i = 0; i < 5; ++i) {
    Outcome again = importModel(b, {input});
    ASSERT_EQ(again.outputs.size(), 1u);
    EXPECT_EQ(again.outputs[0].data, first.outputs.at(0).data);
  }
}

} // namespace
