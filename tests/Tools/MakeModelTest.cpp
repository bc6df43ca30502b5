//===- MakeModelTest.cpp - Benchmark networks, and a peer that runs them --===//

#include "GraphBuilder.h"
#include "Peers/Engine.h"
#include "ToolSupport/Inputs.h"
#include "Tools/TempDirectory.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

using namespace ajour::tools;

namespace {

std::string bytesOfNetwork(const std::string &name, bool quantized, uint64_t seed = 1) {
  GraphBuilder builder(name, quantized, seed);
  buildArchitecture(name, builder, 32);
  return builder.model().SerializeAsString();
}

int64_t weightCount(const onnx::GraphProto &graph) {
  int64_t count = 0;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    int64_t size = 1;
    for (int64_t dim : tensor.dims())
      size *= dim;
    count += tensor.dims_size() > 1 ? size : 0;
  }
  return count;
}

TEST(MakeModel, WeightsAreThoseOfTheArchitectures) {
  // Convolution and linear weights without biases and norms, as the papers' tables give them.
  const std::pair<const char *, int64_t> expected[] = {
      {"efficientnet_b0", 5236192}, {"mobilenet_v1", 4209088}, {"mobilenet_v2", 3469760}, {"mobilenet_v3_large", 5451272},
      {"resnet18", 11678912},     {"resnet50", 25502912},    {"squeezenet1_1", 1231552}};
  for (const auto &[name, count] : expected) {
    for (bool quantized : {false, true}) {
      GraphBuilder builder(name, quantized, 1);
      buildArchitecture(name, builder, 32);
      EXPECT_EQ(weightCount(builder.model().graph()), count) << name;
    }
  }
}

TEST(MakeModel, RecurrentNetworksKeepTheirStates) {
  for (auto [name, gates, states] : {std::tuple("gru_2x1024", 3, 2), {"lstm_2x1024", 4, 4}}) {
    GraphBuilder builder(name, false, 1);
    builder.setPruning({.blockFilters = 16, .linearSparsity = 0.75});
    buildArchitecture(name, builder, 32);
    const onnx::GraphProto &graph = builder.model().graph();
    EXPECT_EQ(graph.input_size(), 1 + states);
    EXPECT_EQ(graph.output_size(), 1 + states);
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      if (tensor.dims_size() != 3)
        continue;
      ASSERT_EQ(tensor.dims(1), gates * 1024) << tensor.name();
      const auto *weights = reinterpret_cast<const float *>(tensor.raw_data().data());
      for (int64_t block = 0; block < gates * 1024; block += 16) {
        int64_t removed = 0;
        for (int64_t column = 0; column < 1024; ++column) {
          bool isRemoved = true;
          for (int64_t row = block; row < block + 16; ++row)
            isRemoved &= weights[row * 1024 + column] == 0;
          removed += isRemoved;
        }
        ASSERT_EQ(removed, 768) << tensor.name() << ", row " << block;
      }
    }
  }
}

TEST(MakeModel, EveryValueIsMadeBeforeItIsUsed) {
  for (const std::string &name : {"mobilenet_v2", "resnet18", "efficientnet_b0", "squeezenet1_1"}) {
    for (bool quantized : {false, true}) {
      GraphBuilder builder(name, quantized, 1);
      buildArchitecture(name, builder, 32);
      const onnx::GraphProto &graph = builder.model().graph();
      std::set<std::string> known = {graph.input(0).name()};
      for (const onnx::TensorProto &tensor : graph.initializer())
        EXPECT_TRUE(known.insert(tensor.name()).second) << tensor.name();
      for (const onnx::NodeProto &node : graph.node()) {
        for (const std::string &input : node.input())
          EXPECT_TRUE(known.count(input)) << name << " " << input;
        EXPECT_TRUE(known.insert(node.output(0)).second) << node.output(0);
      }
      EXPECT_TRUE(known.count(graph.output(0).name()));
    }
  }
}

TEST(MakeModel, TheSeedDecidesTheBytes) {
  EXPECT_EQ(bytesOfNetwork("mobilenet_v1", true), bytesOfNetwork("mobilenet_v1", true));
  EXPECT_NE(bytesOfNetwork("mobilenet_v1", true), bytesOfNetwork("mobilenet_v1", true, 2));
}

TEST(OnnxRuntime, RunsBothFormsWithLikeAnswers) {
  const char *library = std::getenv("AJOUR_ONNXRUNTIME");
  if (!library)
    GTEST_SKIP() << "no ONNX Runtime: AJOUR_ONNXRUNTIME names its library or a directory with it";
  TempDirectory directory;
  HostTensor image = randomInput({"image", AJOUR_F32, {1, 3, 32, 32}}, 1);
  std::vector<HostTensor> scores;
  for (bool quantized : {false, true}) {
    std::string path = directory.file("m.onnx");
    writeFile(path, std::string_view(bytesOfNetwork("mobilenet_v2", quantized)));
    std::unique_ptr<Engine> engine = createOnnxRuntime({path, library, 1, {{"image", image}}});
    EXPECT_FALSE(engine->version().empty());
    engine->run();
    engine->run();
    scores.push_back(engine->outputs().at(0));
    EXPECT_EQ(scores.back().shape, (std::vector<int64_t>{1, 1000}));
  }
  double product = 0, square[2] = {};
  for (int64_t i = 0; i < 1000; ++i) {
    product += getReal(scores[0], i) * getReal(scores[1], i);
    for (int k = 0; k < 2; ++k)
      square[k] += getReal(scores[static_cast<size_t>(k)], i) * getReal(scores[static_cast<size_t>(k)], i);
  }
  EXPECT_GT(square[0], 0);
  EXPECT_GT(product / std::sqrt(square[0] * square[1]), 0.9);
}

TEST(OnnxRuntime, ErrorsNameTheFile) {
  const char *library = std::getenv("AJOUR_ONNXRUNTIME");
  if (!library)
    GTEST_SKIP() << "no ONNX Runtime: AJOUR_ONNXRUNTIME names its library or a directory with it";
  TempDirectory directory;
  writeFile(directory.file("bad.onnx"), "no model");
  EXPECT_EQ(messageOf([&] { createOnnxRuntime({directory.file("bad.onnx"), library, 1, {}}); })
                .find(directory.file("bad.onnx") + ": onnxruntime: "),
            0u);
}

} // namespace
