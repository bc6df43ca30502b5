//===- FashionTest.cpp - the repository's own net, compressed and compiled ----------===//
//
// The first 2000 test pictures, with AJOUR_ALL_PICTURES all 10000.
//
//===----------------------------------------------------------------------===//
#include "Import/ONNX/ModelBuilder.h"
#include "Models/OnnxModels.h"
#include "Support/CompiledModel.h"
#include "Support/ModelFiles.h"

#include "ajour/Compress/Compress.h"
#include "ajour/Pipeline/Compile.h"

#include <filesystem>
#include <fstream>

using namespace ajour;
using namespace ajour::test;

namespace {

const char *folder = "/usr/share/datasets/fashion-mnist";
const char *fashion = AJOUR_SOURCE_DIR "/tools/quickstart/fashion.onnx";

struct Fashion : testing::Test {
  void SetUp() override {
    if (!std::filesystem::exists(folder))
      GTEST_SKIP() << "absent: " << folder << " (package dataset-fashion-mnist)";
  }

  /// Pictures of the training set.
  static std::vector<compress::Sample> trainingPictures(int64_t count) {
    std::vector<Picture> pictures = readMnist(std::string(folder) + "/train-images-idx3-ubyte.gz",
                                              std::string(folder) + "/train-labels-idx1-ubyte.gz");
    std::vector<compress::Sample> samples;
    for (int64_t i = 0; i < count && i < int64_t(pictures.size()); ++i) {
      std::vector<float> pixels;
      for (uint8_t pixel : pictures[i].pixels)
        pixels.push_back(float(pixel) / 255);
      samples.push_back({{onnx_test::floats({1, 1, 28, 28}, pixels)}, {}});
    }
    return samples;
  }

  int count() const { return getenv("AJOUR_ALL_PICTURES") ? 10000 : 2000; }

  /// Right answers of a model file, in percent.
  double accuracy(const std::string &model) {
    return 100. * countFashion(prepareCompiled, model, folder, count()) / count();
  }

  compress::CompressReport compressed(const std::string &recipe, const std::string &to, bool synthetic = false) {
    compress::CompressOptions options;
    options.recipe = compress::parseRecipe(recipe, "recipe");
    options.samples = [&](mlir::ModuleOp module) {
      return synthetic ? compress::syntheticSamples(module, {{1, 1, 28, 28}}, 256, 1) : trainingPictures(512);
    };
    options.synthetic = synthetic;
    auto context = makeContext();
    compress::CompressedModel model = compress::compressModel(context.get(), fashion, options);
    onnx_test::writeFile(to, model.bytes);
    std::cout << compress::toText(model.report);
    return model.report;
  }

  /// Compresses and says how many percent of the pictures are right before and after.
  double loss(const std::string &recipe, bool synthetic = false) {
    onnx_test::TempDir directory;
    compressed(recipe, directory / "small.onnx", synthetic);
    double before = accuracy(fashion), after = accuracy(directory / "small.onnx");
    std::cout << "accuracy before " << before << " %, after " << after << " %, " << count() << " pictures\n";
    return before - after;
  }
};

constexpr const char *patternAndBlocks = R"(
rules:
  - {op: depthwise, adjust: true}
  - {op: conv, kernel: 3x3, structure: pattern, connectivity: 0.25, first: false}
  - {op: conv, kernel: 1x1, structure: 4x1, ratio: 0.4}
)";

TEST_F(Fashion, PatternAndBlocks) { EXPECT_LT(loss(patternAndBlocks), 1); }

TEST_F(Fashion, C42Int8) {
  EXPECT_LT(loss(R"(
rules:
  - {op: depthwise, bits: 8}
  - {structure: c4n, n: 2, bits: 8, first: false}
  - bits: 8
)"),
            1);
}

/// The same with activations of 8 bits: no product is left in floating point.
TEST_F(Fashion, C42Int8Throughout) {
  EXPECT_LT(loss(R"(
rules:
  - {op: depthwise, bits: 8}
  - {structure: c4n, n: 2, bits: 8, first: false}
  - bits: 8
activations: 8
)"),
            1);
}

} // namespace
