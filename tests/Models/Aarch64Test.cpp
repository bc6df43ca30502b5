//===- Aarch64Test.cpp - trained models compiled for aarch64, under emulation ---------===//
//
// The artifacts are run by ajour-run, built for aarch64, at each code level: without dot products, with them, and with
// 8-bit matrix multiplication. AJOUR_RUN_AARCH64 names the program; tests/run.sh builds it first.
//
//===----------------------------------------------------------------------===//
#include "Models/Comparison.h"
#include "Models/OnnxModels.h"
#include "Models/TFLiteModels.h"
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Pipeline/Compile.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace ajour;
using namespace ajour::test;

namespace {

struct Aarch64 : testing::Test {
  void SetUp() override {
    if (findAarch64Runner().empty())
      GTEST_SKIP() << "absent: qemu-aarch64, or ajour-run for aarch64 (cmake --build --preset aarch64)";
  }
};

TEST_F(Aarch64, MobileNetV1) { checkMobileNetV1(emulatedAndCompared()); }
TEST_F(Aarch64, HelloWorld) { checkHelloWorld(emulatedAndCompared()); }
TEST_F(Aarch64, VisualWakeWords) { checkVisualWakeWords(emulatedAndCompared()); }

TEST_F(Aarch64, ResNet8) {
  AJOUR_MODEL_FILE(pictures, "data_cifar10/cifar10_test2000.bin.gz");
  AJOUR_MODEL_FILE(model, "mlperf_tiny/pretrainedResnet.tflite");
  AJOUR_MODEL_FILE(quantizedModel, "mlperf_tiny/pretrainedResnet_quant.tflite");
  // Two of these three pictures are misread, on every machine.
  EXPECT_EQ(countResNet8(emulatedAndCompared(), 3, false), 1);
  EXPECT_EQ(countResNet8(emulatedAndCompared(), 3, true), 1);
}

TEST_F(Aarch64, KeywordSpotting) {
  AJOUR_MODEL_FILE(model, "mlperf_tiny/kws_ref_model.tflite");
  AJOUR_MODEL_FILE(words, "energyrunner_kws/kws01_1000.tar.gz");
  AJOUR_MODEL_FILE(golden, "golden/kws_int8_armnn2008_cpuref_1000x12.npy");
  int total = 0, right = checkKeywordSpotting(emulatedAndCompared(), 200, total);
  EXPECT_EQ(total, 5);
  EXPECT_GE(right, 4);
}

TEST_F(Aarch64, Digits) {
  AJOUR_MODEL_FILE(model, "ort_examples/mnist.onnx");
  AJOUR_MODEL_FILE(pictures, "data_mnist/t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(countDigits(emulatedAndCompared(), 3), 3);
}

TEST_F(Aarch64, LeNetDigits) {
  AJOUR_MODEL_FILE(model, "tinyengine/ptq_mnist_lenet-300-100.tflite");
  AJOUR_MODEL_FILE(pictures, "data_mnist/t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(countLeNetDigits(emulatedAndCompared(), 3), 3);
}

TEST_F(Aarch64, Fashion) {
  std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "absent: " << folder << " (package dataset-fashion-mnist)";
  EXPECT_GE(countFashion(emulatedAndCompared(), AJOUR_SOURCE_DIR "/tools/quickstart/fashion.onnx", folder, 3), 2);
}

// An 8-bit LSTM whose state goes on from frame to frame.
TEST_F(Aarch64, NoiseSuppression) {
  AJOUR_MODEL_FILE(path, "tflm/dtln_noise_suppression.tflite");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module = importTFLite(&context, path, {});
  ASSERT_TRUE(module);
  std::vector<int8_t> frames(4 * 257);
  for (size_t i = 0; i < frames.size(); ++i)
    frames[i] = int8_t(i * i % 251 - 125);
  expectEmulatedSequence(*module, {makeTensor(AJOUR_I8, {4, 1, 1, 257}, frames)});
}

// 14 GRUs.
TEST_F(Aarch64, SpeechEnhancement) {
  AJOUR_MODEL_FILE(model, "gtcrn/gtcrn_simple.onnx");
  AJOUR_MODEL_FILE(noisy, "gtcrn/mix.wav");
  AJOUR_MODEL_FILE(published, "gtcrn/enh.wav");
  enhanceSpeech(emulatedAndCompared(), .05);
}

// A language model with its tokenizer: the golden text, and how well it foretells it.
TEST_F(Aarch64, Stories) {
  AJOUR_MODEL_FILE(golden, "stories260k/golden_greedy200.json");
  AJOUR_MODEL_FILE(model, "stories260k/stories260K-f32.gguf");
  std::string artifact = testing::TempDir() + "ajour-stories-" + std::to_string(getpid()) + ".ajour";
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  CompileOptions options;
  options.levels = {AJOUR_LEVEL_neon, AJOUR_LEVEL_dotprod};
  ASSERT_TRUE(mlir::succeeded(compileModel(context.get(), model, artifact, options)));
  std::string expected = nlohmann::json::parse(readFile(golden))["text"].get<std::string>() + "\n";
  for (const char *level : {"neon", "dotprod"}) {
    std::string command = std::string("AJOUR_CPU=") + level + " qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu " + findAarch64Runner() + " generate " + artifact +
                          " --temperature 0 -n 200 -t 1";
    FILE *pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text;
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof(piece), pipe)) > 0;)
      text.append(piece, n);
    EXPECT_EQ(pclose(pipe), 0) << command;
    EXPECT_EQ(text, expected) << level;
  }
  std::filesystem::remove(artifact);
}

struct Aarch64Noise : testing::TestWithParam<const char *> {
  void SetUp() override {
    if (findAarch64Runner().empty())
      GTEST_SKIP() << "absent: qemu-aarch64, or ajour-run for aarch64 (cmake --build --preset aarch64)";
  }
};
TEST_P(Aarch64Noise, AsNative) { runOnNoise(emulatedAndCompared(), GetParam()); }
INSTANTIATE_TEST_SUITE_P(Models, Aarch64Noise,
                         testing::Values("mlperf_tiny/str_ww_ref_model.tflite", "tflm/micro_speech_quantized.tflite",
                                         "mlperf_tiny/ad01_int8.tflite", "mlperf_tiny/ad01_fp32.tflite",
                                         "npm_mediapipe/selfie_segmentation/selfie_segmentation.tflite"));

} // namespace
