//===- TFLiteTest.cpp - compressed TFLite files -----------------------------------===//
#include "Import/ONNX/ModelBuilder.h"
#include "Import/TFLite/Builder.h"
#include "Support/ModelFiles.h"

#include "ajour/Compress/Compress.h"
#include "ajour/Pipeline/Compile.h"

#include <gtest/gtest.h>

#include <random>

using namespace ajour;
using namespace ajour::test;
using tflite::Builtin;
using tflite::TensorType;

namespace {

template <typename T> std::vector<T> noise(size_t count, uint64_t seed, double scale) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(T(scale * std::normal_distribution<double>()(random)));
  return values;
}

/// x[1,5,5,8] -> conv 3x3 to 8 -> depthwise 3x3 -> fully connected to 6; floats, or 8-bit with a scale for each output.
std::string smallNet(bool integer) {
  TFLiteBuilder b;
  TensorType type = integer ? TensorType::INT8 : TensorType::FLOAT32;
  auto activation = [&](const char *name, std::vector<int32_t> shape, float scale) {
    int index = b.tensor(name, type, std::move(shape));
    if (integer)
      b.quantize(index, {scale}, {3});
    return index;
  };
  auto weight = [&](const char *name, std::vector<int32_t> shape, size_t outputs, int axis, uint64_t seed) {
    size_t count = 1;
    for (int32_t size : shape)
      count *= size_t(size);
    if (!integer)
      return b.constant(name, type, shape, noise<float>(count, seed, 1));
    std::vector<int> steps = noise<int>(count, seed, 40);
    std::vector<int8_t> values;
    for (int step : steps)
      values.push_back(int8_t(std::clamp(step, -127, 127)));
    int index = b.constant(name, type, shape, values);
    std::vector<float> scales;
    for (size_t o = 0; o < outputs; ++o)
      scales.push_back(0.01f + 0.001f * float(o));
    b.quantize(index, scales, std::vector<int64_t>(outputs, 0), axis);
    return index;
  };
  int x = activation("x", {1, 5, 5, 8}, 0.02f), c = activation("c", {1, 5, 5, 8}, 0.1f),
      d = activation("d", {1, 5, 5, 8}, 0.3f), y = activation("y", {1, 6}, 3.f);
  int cw = weight("cw", {8, 3, 3, 8}, 8, 0, 1), dw = weight("dw", {1, 3, 3, 8}, 8, 3, 2), fw = weight("fw", {6, 200}, 6, 0, 3);
  tflite::Conv2DT conv;
  conv.stride_w = conv.stride_h = 1;
  b.op(Builtin::CONV_2D, {x, cw, -1}, {c}, conv);
  tflite::DepthwiseConv2DT depthwise;
  depthwise.stride_w = depthwise.stride_h = depthwise.depth_multiplier = 1;
  b.op(Builtin::DEPTHWISE_CONV_2D, {c, dw, -1}, {d}, depthwise);
  b.op(Builtin::FULLY_CONNECTED, {d, fw, -1}, {y}, tflite::FullyConnectedT());
  b.io({x}, {y});
  return b.bytes();
}

struct Result {
  compress::CompressReport report;
  std::string bytes, error;
};

Result compressBytes(const std::string &bytes, const std::string &recipe) {
  onnx_test::TempDir directory;
  onnx_test::writeFile(directory / "net.tflite", bytes);
  compress::CompressOptions options;
  options.samples = [](mlir::ModuleOp module) {
    return compress::syntheticSamples(module, {{1, 5, 5, 8}}, 48, 1);
  };
  auto context = makeContext();
  Result result;
  try {
    options.recipe = compress::parseRecipe(recipe, "recipe");
    compress::CompressedModel made = compress::compressModel(context.get(), directory / "net.tflite", options);
    result.report = made.report;
    result.bytes = made.bytes;
  } catch (const compress::CompressError &problem) {
    result.error = problem.what();
    for (size_t at; (at = result.error.find(directory.path)) != std::string::npos;)
      result.error.erase(at, directory.path.size() + 1);
  }
  return result;
}

TEST(CompressTFLite, WeightsAreReplacedInPlace) {
  for (bool integer : {false, true}) {
    SCOPED_TRACE(integer ? "8-bit" : "float");
    std::string before = smallNet(integer);
    Result result = compressBytes(before, "rules: [{op: depthwise}, {structure: c4n, n: 2}]");
    ASSERT_EQ(result.error, "");
    ASSERT_EQ(result.bytes.size(), before.size());
    ASSERT_EQ(result.report.layers.size(), 3u);
    EXPECT_EQ(result.report.layers[0].type, "CONV_2D");
    EXPECT_EQ(result.report.layers[1].zeros, 0);
    for (size_t l : {size_t(0), size_t(2)}) {
      const compress::LayerReport &layer = result.report.layers[l];
      EXPECT_GE(layer.zeros, layer.elements / 2);
      EXPECT_LT(layer.error, 0.9 * layer.errorMagnitude);
      EXPECT_EQ(layer.why, "");
    }
    // Of each four inputs of the convolution two are zero, in the file as it is.
    const tflite::Model &model = *tflite::GetModel(result.bytes.data());
    size_t size = integer ? 1 : 4, runs = 0;
    for (const auto *tensor : *model.subgraphs()->Get(0)->tensors())
      if (tensor->name()->str() == "cw") {
        const auto *data = model.buffers()->Get(tensor->buffer())->data();
        ASSERT_EQ(data->size(), 576 * size);
        for (; runs < 144; ++runs) {
          int zeros = 0;
          for (size_t i = 0; i < 4; ++i) {
            uint32_t bits = 0;
            std::memcpy(&bits, data->data() + (runs * 4 + i) * size, size);
            zeros += bits == 0;
          }
          ASSERT_GE(zeros, 2);
        }
      }
    EXPECT_EQ(runs, 144u);
  }
}

TEST(CompressTFLite, Refusals) {
  EXPECT_EQ(compressBytes(smallNet(false), "rules: [{bits: 8}]").error,
            "recipe 'recipe': rule 1: no layer that it fits can become dense, int8: node 'c': a TFLite file keeps its element "
            "types, so 'bits' is not for it");
  EXPECT_NE(compressBytes("abc", "rules: [{structure: nm}]").error.find("net.tflite: error: "), std::string::npos);
}

/// The keyword model of MLPerf Tiny at 2:4: what is written is imported again, and its layers stay near what they gave.
TEST(CompressTFLite, KeywordModel) {
  AJOUR_MODEL_FILE(path, "mlperf_tiny/kws_ref_model.tflite");
  compress::CompressOptions options;
  options.recipe = compress::parseRecipe("rules: [{op: depthwise}, {structure: nm, kept: 2, of: 4, first: false}]", "recipe");
  options.samples = [](mlir::ModuleOp module) { return compress::syntheticSamples(module, {{1, 49, 10, 1}}, 24, 1); };
  auto context = makeContext();
  compress::CompressedModel made = compress::compressModel(context.get(), path, options);
  int64_t pruned = 0;
  for (const compress::LayerReport &layer : made.report.layers)
    if (layer.plan.changes()) {
      ++pruned;
      EXPECT_GE(2 * layer.zeros, layer.elements) << layer.node;
      EXPECT_LE(layer.error, layer.errorMagnitude) << layer.node;
    }
  EXPECT_EQ(pruned, 5); // four pointwise convolutions and the last layer
  onnx_test::TempDir directory;
  onnx_test::writeFile(directory / "small.tflite", made.bytes);
  EXPECT_TRUE(importTFLite(context.get(), directory / "small.tflite", {}));
}

} // namespace
