//===- TFLiteModelsTest.cpp - trained TFLite models, compiled and run -----------------===//
//
// Compiled code gives the interpreter's results (integers exactly) and those that the models are known for.
// AJOUR_ALL_PICTURES checks all pictures and words, at all code levels of the machine.
//
//===----------------------------------------------------------------------===//
#include "Models/Comparison.h"
#include "Models/TFLiteModels.h"
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Import/TFLite_generated.h"
#include "ajour/Pipeline/Compile.h"
#include "ajour/Support/Diagnostics.h"

#include <filesystem>
#include <set>

using namespace ajour;
using namespace ajour::test;

namespace {

TEST(TFLiteModel, MobileNetV2) { checkMobileNetV2(compiledAndCompared(1)); }
TEST(TFLiteModel, MobileNetV1) { checkMobileNetV1(compiledAndCompared(1)); }
TEST(TFLiteModel, MobileNetV1InFloat) { checkMobileNetV1InFloat(compiledAndCompared(0)); }
TEST(TFLiteModel, MobileNetV2InFloat) { checkMobileNetV2InFloat(compiledAndCompared(0)); }
TEST(TFLiteModel, HelloWorld) { checkHelloWorld(compiledAndCompared(2)); }
TEST(TFLiteModel, VisualWakeWords) { checkVisualWakeWords(compiledAndCompared(1)); }
TEST(TFLiteModel, AnomalyDetection) { checkAnomalyDetection(compiledAndCompared(2)); }

TEST(TFLiteModel, ResNet8) {
  AJOUR_MODEL_FILE(pictures, "data_cifar10/cifar10_test2000.bin.gz");
  AJOUR_MODEL_FILE(model, "mlperf_tiny/pretrainedResnet.tflite");
  AJOUR_MODEL_FILE(quantizedModel, "mlperf_tiny/pretrainedResnet_quant.tflite");
  int real = countResNet8(compiledAndCompared(1), 500, false), integer = countResNet8(compiledAndCompared(1), 500, true);
  printf("ResNet-8: f32 %d, int8 %d of 500\n", real, integer);
  EXPECT_EQ(real, 386);
  // Measured here. Another runtime reads 387; which picture differs, and whether by rounding, was not looked into.
  EXPECT_EQ(integer, 388);
}

TEST(TFLiteModel, KeywordSpotting) {
  AJOUR_MODEL_FILE(model, "mlperf_tiny/kws_ref_model.tflite");
  AJOUR_MODEL_FILE(words, "energyrunner_kws/kws01_1000.tar.gz");
  AJOUR_MODEL_FILE(golden, "golden/kws_int8_armnn2008_cpuref_1000x12.npy");
  int total = 0, right = checkKeywordSpotting(compiledAndCompared(3), 1, total);
  EXPECT_EQ(total, 1000);
  EXPECT_EQ(right, 902);
}

TEST(TFLiteModel, HybridKeywordSpotting) {
  AJOUR_MODEL_FILE(model, "mlperf_tiny/kws_ref_model_float32.tflite");
  AJOUR_MODEL_FILE(words, "energyrunner_kws/kws01_1000.tar.gz");
  int total = 0, right = checkKeywordSpotting(compiledAndCompared(2), checksAll() ? 1 : 10, total, /*hybrid=*/true);
  printf("hybrid keyword spotting: %d of %d\n", right, total);
  EXPECT_GE(right, total * 9 / 10);
}

TEST(TFLiteModel, LeNetDigits) {
  AJOUR_MODEL_FILE(model, "tinyengine/ptq_mnist_lenet-300-100.tflite");
  AJOUR_MODEL_FILE(pictures, "data_mnist/t10k-images-idx3-ubyte.gz");
  int right = countLeNetDigits(compiledAndCompared(3), 1000);
  printf("LeNet-300-100: %d of 1000 digits\n", right);
  EXPECT_GE(right, 950);
}

TEST(TFLiteModel, LstmDigits) {
  AJOUR_MODEL_FILE(model, "tflm/trained_lstm.tflite");
  AJOUR_MODEL_FILE(quantizedModel, "tflm/trained_lstm_int8.tflite");
  AJOUR_MODEL_FILE(picture, "tflm/sample9.png");
  EXPECT_EQ(countLstmDigits(compiledAndCompared(10), false), 10);
  EXPECT_EQ(countLstmDigits(compiledAndCompared(10), true), 10);
}
TEST(TFLiteModel, KerasLstm) { checkKerasLstm(compiledAndCompared(1)); }

// Models without a published answer for an input that is at hand; those of the second list take seconds each.
struct Noise : testing::TestWithParam<const char *> {};
TEST_P(Noise, CompiledAsInterpreted) { runOnNoise(compiledAndCompared(2), GetParam(), 2); }
INSTANTIATE_TEST_SUITE_P(TFLiteModel, Noise,
                         testing::Values("mlperf_tiny/str_ww_ref_model.tflite", "tflm/micro_speech_quantized.tflite",
                                         "coral/split_concat.tflite", "dtln/model_quant_1.tflite",
                                         "tflm/dtln_noise_suppression.tflite", "micro_wake_word/alexa.tflite",
                                         "micro_wake_word/hey_jarvis.tflite", "micro_wake_word/okay_nabu.tflite",
                                         "micro_wake_word/vad.tflite",
                                         "npm_mediapipe/selfie_segmentation/selfie_segmentation.tflite"));
struct LargeNoise : testing::TestWithParam<const char *> {};
TEST_P(LargeNoise, CompiledAsInterpreted) {
  if (!checksAll())
    GTEST_SKIP() << "takes long; set AJOUR_ALL_PICTURES";
  runOnNoise(compiledAndCompared(1), GetParam());
}
INSTANTIATE_TEST_SUITE_P(TFLiteModel, LargeNoise,
                         testing::Values("tinyengine/mcunetv2_large.tflite",
                                         "npm_mediapipe/face_detection/face_detection_short_range.tflite",
                                         "npm_mediapipe/face_detection/face_detection_full_range_sparse.tflite",
                                         "ultraface/version-RFB-320_without_postprocessing.tflite"));

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

void seanet(const char *part, int expected) {
  AJOUR_MODEL_FILE(archive, "tflm_seanet/seanet_int16_op_goldens.tar.gz");
  int exact = 0;
  EXPECT_EQ(checkSeanetOperators(compiledAndCompared(1), part, exact), expected);
  printf("%s: %d of %d exact\n", part, exact, expected);
  EXPECT_EQ(exact, expected);
}
TEST(TFLiteSeanet, Add) { seanet("add", 17); }
TEST(TFLiteSeanet, Sub) { seanet("sub", 5); }
TEST(TFLiteSeanet, Conv) { seanet("conv", 22); }
TEST(TFLiteSeanet, LeakyRelu) { seanet("leaky_relu", 23); }
TEST(TFLiteSeanet, Pad) { seanet("pad", 19); }
TEST(TFLiteSeanet, Quantize) { seanet("quantize", 2); }
TEST(TFLiteSeanet, StridedSlice) { seanet("strided_slice", 34); }
TEST(TFLiteSeanet, TransposeConv) { seanet("transpose_conv", 5); }

//===----------------------------------------------------------------------===//
// Models that cannot be compiled
//===----------------------------------------------------------------------===//

/// Whether an operator is none that the importer knows.
bool isBeyond(const tflite::OperatorCode &code) {
  static const std::set<tflite::Builtin> beyond = {
      tflite::Builtin::WHILE, tflite::Builtin::CUSTOM};
  auto builtin = std::max(code.code(), tflite::Builtin(code.short_code()));
  return beyond.count(builtin);
}

struct Refused : testing::TestWithParam<const char *> {};
TEST_P(Refused, EveryOperatorIsNamed) {
  AJOUR_MODEL_FILE(path, GetParam());
  std::string bytes = readFile(path);
  const tflite::Model *file = tflite::GetModel(bytes.data());
  const tflite::SubGraph *graph = (*file->subgraphs())[0];
  std::set<std::string> expected;
  for (uint32_t i = 0; i < graph->operators()->size(); ++i)
    if (isBeyond(*(*file->operator_codes())[(*graph->operators())[i]->opcode_index()]))
      expected.insert(", #" + std::to_string(i) + "): ");
  ASSERT_FALSE(expected.empty());

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  DiagnosticCollector diagnostics(context.get(), path);
  std::string out = (std::filesystem::temp_directory_path() / ("ajour-refused-" + std::to_string(getpid()))).string();
  EXPECT_TRUE(failed(compileModel(context.get(), path, out, {})));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(diagnostics.errors().size(), expected.size()) << diagnostics.text();
  for (const std::string &error : diagnostics.errors()) {
    EXPECT_EQ(error.rfind(path + ": error: node '", 0), 0u) << error;
    size_t named = 0;
    for (const std::string &part : expected)
      named += error.find(part) != std::string::npos;
    EXPECT_EQ(named, 1u) << error;
  }
}
INSTANTIATE_TEST_SUITE_P(TFLiteModel, Refused,
                         testing::Values("coral/model_invoking_error.tflite", "tflm/audio_preprocessor_float.tflite",
                                         "tflm/audio_preprocessor_int8.tflite"));

} // namespace
