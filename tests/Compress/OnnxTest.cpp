//===- OnnxTest.cpp - compressed ONNX files -------------------------------------===//
#include "Import/ONNX/ModelBuilder.h"

#include "ajour/Compress/Compress.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Pipeline/Compile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <random>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

HostTensor noise(Shape shape, uint64_t seed) {
  HostTensor tensor = ramp(shape);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.as<float>()[i] = float(std::normal_distribution<double>()(random));
  return tensor;
}

/// x[1,4,6,6] -> conv 3x3 to 8 channels, relu, depthwise, 1x1 in two groups, mean, two products.
ModelBuilder smallNet(int64_t opset = 13) {
  ModelBuilder m(opset);
  m.input("x", {1, 4, 6, 6});
  m.initializer("c.w", noise({8, 4, 3, 3}, 1)).initializer("c.b", noise({8}, 2));
  m.initializer("d.w", noise({8, 1, 3, 3}, 3)).initializer("p.w", noise({16, 4, 1, 1}, 4));
  m.initializer("f.w", noise({12, 16}, 5)).initializer("f.b", noise({12}, 6)).initializer("g.w", noise({12, 10}, 7));
  m.node("Conv", {"x", "c.w", "c.b"}, {"c"}, {{"pads", Int64s{1, 1, 1, 1}}}).lastNode().set_name("conv");
  m.node("Relu", {"c"}, {"r"});
  m.node("Conv", {"r", "d.w"}, {"d"}, {{"group", int64_t(8)}, {"strides", Int64s{2, 2}}}).lastNode().set_name("depthwise");
  m.node("Conv", {"d", "p.w"}, {"p"}, {{"group", int64_t(2)}}).lastNode().set_name("grouped");
  m.node("GlobalAveragePool", {"p"}, {"a"}).node("Flatten", {"a"}, {"l"});
  m.node("Gemm", {"l", "f.w", "f.b"}, {"f"}, {{"transB", int64_t(1)}}).lastNode().set_name("gemm");
  m.node("MatMul", {"f", "g.w"}, {"y"}).lastNode().set_name("matmul");
  m.output("y");
  return m;
}

std::vector<compress::Sample> samples(int64_t count) {
  std::vector<compress::Sample> list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back({{noise({1, 4, 6, 6}, 100 + uint64_t(i))}, {}});
  return list;
}

struct Result {
  compress::CompressReport report;
  ::onnx::ModelProto proto;
  std::string error;

  const compress::LayerReport &layer(const std::string &node) const {
    for (const compress::LayerReport &layer : report.layers)
      if (layer.node == node)
        return layer;
    ADD_FAILURE() << "no layer " << node;
    return report.layers[0];
  }
  const ::onnx::TensorProto &tensor(const std::string &name) const {
    for (const ::onnx::TensorProto &tensor : proto.graph().initializer())
      if (tensor.name() == name)
        return tensor;
    ADD_FAILURE() << "no initializer " << name;
    return proto.graph().initializer(0);
  }
  std::vector<float> floats(const std::string &name) const {
    const std::string &raw = tensor(name).raw_data();
    return {reinterpret_cast<const float *>(raw.data()), reinterpret_cast<const float *>(raw.data() + raw.size())};
  }
  nlohmann::json encodings() const {
    for (const auto &entry : proto.metadata_props())
      if (entry.key() == "ajour.encoding")
        return nlohmann::json::parse(entry.value());
    return {};
  }
};

/// Time as if every weight that is left took a nanosecond for each row.
double timeByWeights(const compress::ProductUse &use) {
  double taps = 1;
  for (int64_t size : use.window)
    taps *= double(size);
  const compress::LayerPlan &plan = use.plan;
  double kept = plan.structure == compress::Structure::Pattern ? double(plan.entries) / taps * (1 - plan.connectivity)
                : plan.structure == compress::Structure::Block ? 1 - plan.ratio
                                                               : 1;
  return kept * taps * double(use.outputs * use.channels * use.rows);
}

Result compressNet(const ModelBuilder &model, const std::string &recipe, int64_t count = 16, bool timed = false) {
  TempDir directory;
  writeFile(directory / "net.onnx", model.proto.SerializeAsString());
  compress::CompressOptions options;
  options.samples = [&](mlir::ModuleOp) { return samples(count); };
  if (timed)
    options.cost = timeByWeights;
  auto context = makeContext();
  Result result;
  try {
    options.recipe = compress::parseRecipe(recipe, "recipe");
    compress::CompressedModel made = compress::compressModel(context.get(), directory / "net.onnx", options);
    result.report = made.report;
    EXPECT_TRUE(result.proto.ParseFromString(made.bytes));
  } catch (const compress::CompressError &problem) {
    result.error = problem.what();
    // The folder has another name each time.
    for (size_t at; (at = result.error.find(directory.path)) != std::string::npos;)
      result.error.erase(at, directory.path.size() + 1);
  }
  return result;
}

/// What the compressed model computes for one of the samples.
std::vector<float> outputOf(const ::onnx::ModelProto &proto, int64_t sample) {
  ModelBuilder model(13);
  model.proto = proto;
  Outcome outcome = run(model, {samples(sample + 1).back().inputs[0]});
  EXPECT_EQ(outcome.error, "");
  if (outcome.outputs.empty())
    return {};
  const HostTensor &tensor = outcome.outputs[0];
  return {tensor.as<float>(), tensor.as<float>() + tensor.numElements()};
}

double distance(const ::onnx::ModelProto &a, const ::onnx::ModelProto &b) {
  double sum = 0, size = 0;
  for (int64_t s = 0; s < 8; ++s) {
    std::vector<float> left = outputOf(a, s), right = outputOf(b, s);
    if (left.size() != right.size() || left.empty())
      return 1e9;
    for (size_t i = 0; i < left.size(); ++i) {
      sum += std::pow(double(left[i]) - right[i], 2);
      size += std::pow(double(left[i]), 2);
    }
  }
  return std::sqrt(sum / size);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Each layer in the place where its format has the inputs: C4^2 along channels of convolutions, along the rows of a
/// MatMul's weight and along the columns of a transposed Gemm's.
TEST(CompressOnnx, ZerosLieAlongTheInputs) {
  Result result = compressNet(smallNet(), "rules: [{op: depthwise}, {structure: c4n, n: 2}]");
  ASSERT_EQ(result.error, "");
  auto runs = [&](const std::string &name, int64_t outputs, int64_t outputStride, int64_t inputs, int64_t inputStride,
                  int64_t taps) {
    SCOPED_TRACE(name);
    std::vector<float> w = result.floats(name);
    ASSERT_EQ(int64_t(w.size()), outputs * inputs * taps);
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t run = 0; run < inputs; run += 4) {
          int zeros = 0;
          for (int64_t i = run; i < run + 4; ++i)
            zeros += w[o * outputStride + i * inputStride + t] == 0;
          ASSERT_EQ(zeros, 2);
        }
  };
  runs("c.w", 8, 36, 4, 9, 9);
  runs("p.w", 16, 4, 4, 1, 1);
  runs("f.w", 12, 16, 16, 1, 1);
  runs("g.w", 10, 1, 12, 10, 1);
  EXPECT_EQ(result.layer("conv").zeros, 144);
  EXPECT_EQ(result.layer("depthwise").zeros, 0);
  EXPECT_EQ(result.encodings()["f.w"], nlohmann::json::parse(R"({"structure": "c4n", "n": 2, "share": 1})"));
  EXPECT_EQ(result.encodings().count("d.w"), 0u);
  // Of 6 channels at each of 9 taps the second run of a tap ends where a reader of one long row does not expect it.
  ModelBuilder ragged(13);
  ragged.input("x", {1, 4, 6, 6}).initializer("a", noise({6, 4, 3, 3}, 1)).initializer("b", noise({8, 6, 3, 3}, 2));
  ragged.node("Conv", {"x", "a"}, {"h"}).node("Conv", {"h", "b"}, {"y"}).output("y");
  Result short_ = compressNet(ragged, "rules: [{structure: c4n, n: 2}]");
  ASSERT_EQ(short_.error, "");
  EXPECT_EQ(short_.encodings().count("a"), 1u);
  EXPECT_EQ(short_.encodings().count("b"), 0u);
}

TEST(CompressOnnx, EverythingElseStays) {
  ModelBuilder before = smallNet();
  before.proto.set_producer_name("someone");
  auto &entry = *before.proto.add_metadata_props();
  entry.set_key("licence");
  entry.set_value("free");
  Result result = compressNet(before, "rules: [{layers: gemm, structure: 4x1, ratio: 0.5}]");
  ASSERT_EQ(result.error, "");
  // With the old weight and bias, and without the new entry, it is the old file.
  ::onnx::ModelProto after = result.proto;
  for (auto &tensor : *after.mutable_graph()->mutable_initializer())
    for (const auto &old : before.proto.graph().initializer())
      if (tensor.name() == old.name() && (old.name() == "f.w" || old.name() == "f.b"))
        tensor = old;
  after.mutable_metadata_props()->RemoveLast();
  EXPECT_EQ(after.SerializeAsString(), before.proto.SerializeAsString());
  EXPECT_EQ(result.encodings(), nlohmann::json::parse(R"({"f.w": {"structure": "block", "rows": 4, "cols": 1}})"));
}

/// What the report says of the last layer is what comes out of the model, since its inputs are those of the
/// compressed layers before it.
TEST(CompressOnnx, CompensationHelpsTheWholeModel) {
  for (const char *structure : {"c4n, n: 2", "nm, kept: 1", "block_punched, ratio: 0.5", "4x1, ratio: 0.5",
                                "unstructured, ratio: 0.6"}) {
    SCOPED_TRACE(structure);
    std::string rule = "rules: [{op: depthwise}, {structure: " + std::string(structure);
    ModelBuilder net = smallNet();
    Result plain = compressNet(net, rule + ", method: magnitude}]", 64), better = compressNet(net, rule + "}]", 64);
    ASSERT_EQ(plain.error + better.error, "");
    EXPECT_LT(distance(net.proto, better.proto), 0.9 * distance(net.proto, plain.proto));
    for (const compress::LayerReport &layer : better.report.layers)
      EXPECT_LE(layer.error, layer.errorMagnitude) << layer.node;
  }
}

TEST(CompressOnnx, Integers) {
  for (int64_t opset : {11, 13, 21})
    for (const char *values : {"bits: 8", "bits: 4", "bits: 4, group: 4", "structure: c4n, n: 1, bits: 8"}) {
      SCOPED_TRACE(std::string(values) + ", opset " + std::to_string(opset));
      ModelBuilder net = smallNet(opset);
      std::string rule = std::string(values).find("c4n") == std::string::npos ? "" : "{op: depthwise}, ";
      Result result = compressNet(net, "rules: [" + rule + "{op: [conv, linear], " + values + "}]");
      ASSERT_EQ(result.error, "");
      bool four = std::string(values).find("4,") != std::string::npos || std::string(values) == "bits: 4";
      EXPECT_EQ(result.tensor("f.w_quantized").data_type(), four ? 22 : 3);
      EXPECT_EQ(result.tensor("f.w_quantized").raw_data().size(), four ? 96u : 192u);
      bool microsoft = false;
      for (const auto &node : result.proto.graph().node())
        microsoft |= node.domain() == "com.microsoft";
      EXPECT_EQ(microsoft, opset < (four ? 21 : 13));
      // Steps of 8 bits are 1 / 127 of the largest weight, of 4 bits 1 / 7, in each of four layers; a quarter of the
      // weights gone costs more.
      EXPECT_LT(distance(net.proto, result.proto), std::string(values) == "bits: 8" ? 0.03 : four ? 0.3 : 0.6);
    }
}

//===----------------------------------------------------------------------===//
// Integers throughout
//===----------------------------------------------------------------------===//

/// Products of a model by the type of their left operand, after the compiler's passes.
std::map<std::string, int> productsOf(const ::onnx::ModelProto &proto) {
  TempDir directory;
  writeFile(directory / "net.onnx", proto.SerializeAsString());
  auto context = makeContext();
  auto module = importONNX(context.get(), directory / "net.onnx", {});
  std::map<std::string, int> counts;
  if (!module || failed(simplify(*module))) {
    ADD_FAILURE() << "the model is not compiled";
    return counts;
  }
  module->walk([&](mlir::Operation *op) {
    if (llvm::isa<nn::ConvOp, nn::MatmulOp>(op))
      ++counts[nn::elementName(llvm::cast<mlir::RankedTensorType>(op->getOperand(0).getType()).getElementType())];
  });
  return counts;
}

TEST(CompressOnnx, ActivationsOfEightBits) {
  ModelBuilder net = smallNet();
  Result result = compressNet(net, "rules: [{bits: 8}]\nactivations: 8\n", 32);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(productsOf(net.proto)["f32"], 5);
  EXPECT_EQ(productsOf(result.proto), (std::map<std::string, int>{{"ui8", 5}}));
  // The relu is part of the convolution: one pair behind both.
  int pairs = 0;
  for (const auto &node : result.proto.graph().node())
    if (node.op_type() == "QuantizeLinear") {
      ++pairs;
      EXPECT_NE(node.input(0), "c");
      EXPECT_NE(node.input(0), "y");
    }
  EXPECT_EQ(pairs, 7); // x, r, d, p, a, l, f
  EXPECT_LT(distance(net.proto, result.proto), 0.05);
  // Layers of other kinds keep float inputs.
  Result part = compressNet(net, "rules: [{layers: [conv, gemm], bits: 8}]\nactivations: 8\n", 32);
  ASSERT_EQ(part.error, "");
  EXPECT_EQ(productsOf(part.proto), (std::map<std::string, int>{{"f32", 3}, {"ui8", 2}}));
}

TEST(CompressOnnx, ActivationsThatCannotBe) {
  EXPECT_EQ(compressNet(smallNet(), "rules: [{bits: 4, group: 4}]\nactivations: 8\n").error,
            "recipe 'recipe': 'activations' is for layers with 'bits' and without 'group', and there is none");
  EXPECT_EQ(compressNet(smallNet(), "rules: [{bits: 8}]\nactivations: 8\n", 0).error,
            "recipe 'recipe': 'activations' needs calibration data");
  EXPECT_EQ(compressNet(smallNet(11), "rules: [{bits: 8}]\nactivations: 8\n").error,
            "'net.onnx': its operator set is older than 13, with which quantised activations came; convert it to a newer one");
}

/// A dense layer behind a pruned one makes up for some of what was lost.
TEST(CompressOnnx, DenseLayersAdjust) {
  ModelBuilder net = smallNet();
  const char *pruned = "{layers: [conv, grouped], structure: nm}";
  Result without = compressNet(net, std::string("rules: [") + pruned + "]", 128);
  Result with = compressNet(net, std::string("rules: [") + pruned + ", {op: [depthwise, linear], adjust: true}]", 128);
  ASSERT_EQ(without.error + with.error, "");
  EXPECT_LT(distance(net.proto, with.proto), 0.95 * distance(net.proto, without.proto));
  EXPECT_EQ(with.layer("matmul").zeros, 0);
}

//===----------------------------------------------------------------------===//
// A target
//===----------------------------------------------------------------------===//

TEST(CompressOnnx, SharesForATarget) {
  const char *rules = "rules: [{layers: conv, structure: pattern, connectivity: 0.8}, {op: [linear, conv], structure: 4x1, ratio: 0.9}]\n";
  double last = 0;
  for (double target : {0.7, 0.4}) {
    SCOPED_TRACE(target);
    Result result = compressNet(smallNet(), rules + ("target: " + std::to_string(target)), 32, true);
    ASSERT_EQ(result.error, "");
    double before = 0, after = 0, error = 0;
    for (const compress::LayerReport &layer : result.report.layers) {
      before += layer.timeBefore;
      after += layer.timeAfter;
      error += std::max(layer.error, 0.);
    }
    EXPECT_EQ(result.layer("conv").timeBefore, 8 * 4 * 9 * 36);
    EXPECT_LE(after, target * before);
    // Not much less than is needed: the largest step is that from dense to patterns, which takes 5 of 9 weights.
    EXPECT_GT(after, 0.6 * target * before);
    EXPECT_GT(error, last);
    last = error;
  }
  EXPECT_EQ(compressNet(smallNet(), "rules: [{layers: gemm, structure: 4x1, ratio: 0.5}]\ntarget: 0.5\n", 16, true).error,
            "recipe 'recipe': 'target' cannot be reached: with the shares that rules allow, products take at least 99 % of their "
            "dense time; allow more zeros, or name more layers");
  EXPECT_EQ(compressNet(smallNet(), "rules: [{layers: gemm, structure: 4x1, ratio: 0.5}]\ntarget: 0.5\n").error,
            "recipe 'recipe': 'target' needs calibration data and estimates of time");
}

//===----------------------------------------------------------------------===//
// What is left alone, and errors
//===----------------------------------------------------------------------===//

TEST(CompressOnnx, SharedWeightsAreLeftAlone) {
  ModelBuilder n(13);
  n.input("x", {1, 4, 6, 6}).initializer("s", noise({6, 6}, 3)).initializer("v", noise({6, 8}, 2));
  n.node("MatMul", {"x", "s"}, {"a"}).lastNode().set_name("one");
  n.node("MatMul", {"a", "s"}, {"b"}).lastNode().set_name("two");
  n.node("MatMul", {"b", "v"}, {"y"}).lastNode().set_name("three");
  n.output("y");
  Result result = compressNet(n, "rules: [{structure: nm}]");
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.layer("one").why, "its weights are used in 2 places, expected one");
  EXPECT_EQ(result.layer("two").zeros, 0);
  EXPECT_EQ(result.layer("three").zeros, 8 * 2); // of runs of 4 and 2
}

TEST(CompressOnnx, RulesThatDoNothing) {
  EXPECT_EQ(compressNet(smallNet(), "rules: [{layers: fc*, structure: nm}]").error,
            "recipe 'recipe': rule 1: fits no layer of 'net.onnx' that an earlier rule has not taken; there are 'conv', "
            "'depthwise', 'grouped', 'gemm', 'matmul'");
  EXPECT_EQ(compressNet(smallNet(), "rules: [{bits: 8}, {layers: gemm, structure: nm}]").error,
            "recipe 'recipe': rule 2: fits no layer of 'net.onnx' that an earlier rule has not taken; there are 'conv', "
            "'depthwise', 'grouped', 'gemm', 'matmul'");
  EXPECT_EQ(compressNet(smallNet(), "rules: [{op: linear, structure: pattern}]").error,
            "recipe 'recipe': rule 1: no layer that it fits can become pattern of 4: node 'gemm': its kernel has 1 taps, a "
            "pattern keeps 4");
  EXPECT_EQ(compressNet(smallNet(), "rules: [{layers: matmul, bits: 4, group: 8}]").error,
            "recipe 'recipe': rule 1: no layer that it fits can become dense, int4 in groups of 8: node 'matmul': its 12 "
            "inputs are no multiple of the group of 8");
}

TEST(CompressOnnx, FilesThatCannotBe) {
  auto context = makeContext();
  auto errorOf = [&](const std::string &path) -> std::string {
    try {
      compress::compressModel(context.get(), path, {});
    } catch (const compress::CompressError &problem) {
      return problem.what();
    }
    return "";
  };
  TempDir directory;
  writeFile(directory / "net.bin", "abc");
  EXPECT_EQ(errorOf(directory / "net.bin"), "'" + (directory / "net.bin") + "' cannot be compressed: expected an ONNX (.onnx) or TFLite (.tflite) file, or a folder with model.safetensors and config.json");
  writeFile(directory / "net.onnx", "abc");
  EXPECT_NE(errorOf(directory / "net.onnx").find("is not an ONNX model or is damaged"), std::string::npos);
  ModelBuilder m(13);
  m.input("x", {4}).node("Relu", {"x"}, {"y"}).output("y");
  writeFile(directory / "relu.onnx", m.proto.SerializeAsString());
  EXPECT_EQ(errorOf(directory / "relu.onnx"),
            "'" + (directory / "relu.onnx") + "' has no layer with constant weights (Conv, Gemm or MatMul)");
}

} // namespace
