//===- ModelTest.cpp - trained models, interpreted ------------------------------===//
#include "Models/TFLiteModels.h"
#include "Support/ModelFiles.h"

#include "ajour/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace ajour;
using namespace ajour::test;

namespace {

/// Runs main by the reference interpreter.
Run interpreted(mlir::ModuleOp module) {
  return [module](const std::vector<HostTensor> &inputs) mutable -> std::vector<HostTensor> {
    auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
    mlir::FailureOr<std::vector<HostTensor>> outputs = interpret(main, inputs);
    EXPECT_TRUE(mlir::succeeded(outputs));
    return mlir::succeeded(outputs) ? *outputs : std::vector<HostTensor>();
  };
}

TEST(TFLiteModel, MobileNetV2) { checkMobileNetV2(interpreted); }
TEST(TFLiteModel, MobileNetV1) { checkMobileNetV1(interpreted); }
TEST(TFLiteModel, MobileNetV1InFloat) { checkMobileNetV1InFloat(interpreted); }
TEST(TFLiteModel, MobileNetV2InFloat) { checkMobileNetV2InFloat(interpreted); }
TEST(TFLiteModel, HelloWorld) { checkHelloWorld(interpreted); }
TEST(TFLiteModel, VisualWakeWords) { checkVisualWakeWords(interpreted); }

// AJOUR_ALL_PICTURES runs all 500 (the interpreter takes minutes); the compiled model always runs them.
TEST(TFLiteModel, ResNet8) {
  AJOUR_MODEL_FILE(pictures, "data_cifar10/cifar10_test2000.bin.gz");
  AJOUR_MODEL_FILE(model, "mlperf_tiny/pretrainedResnet.tflite");
  AJOUR_MODEL_FILE(quantizedModel, "mlperf_tiny/pretrainedResnet_quant.tflite");
  bool all = getenv("AJOUR_ALL_PICTURES") != nullptr;
  EXPECT_EQ(countResNet8(interpreted, all ? 500 : 10, false), all ? 386 : 8);
  EXPECT_EQ(countResNet8(interpreted, all ? 500 : 10, true), all ? 387 : 8);
}

TEST(TFLiteModel, KeywordSpotting) {
  AJOUR_MODEL_FILE(model, "mlperf_tiny/kws_ref_model.tflite");
  AJOUR_MODEL_FILE(words, "energyrunner_kws/kws01_1000.tar.gz");
  AJOUR_MODEL_FILE(golden, "golden/kws_int8_armnn2008_cpuref_1000x12.npy");
  bool all = getenv("AJOUR_ALL_PICTURES") != nullptr;
  int total = 0, right = checkKeywordSpotting(interpreted, all ? 1 : 50, total);
  EXPECT_EQ(total, all ? 1000 : 20);
  EXPECT_GE(right, all ? 902 : 18);
}

void seanet(const char *part, int expected) {
  AJOUR_MODEL_FILE(archive, "tflm_seanet/seanet_int16_op_goldens.tar.gz");
  int exact = 0;
  EXPECT_EQ(checkSeanetOperators(interpreted, part, exact), expected);
  ::testing::Test::RecordProperty("exact", exact);
  printf("%s: %d of %d exact\n", part, exact, expected);
}
TEST(TFLiteSeanet, Add) { seanet("add", 17); }
TEST(TFLiteSeanet, Sub) { seanet("sub", 5); }
TEST(TFLiteSeanet, Conv) { seanet("conv", 22); }
TEST(TFLiteSeanet, LeakyRelu) { seanet("leaky_relu", 23); }
TEST(TFLiteSeanet, Pad) { seanet("pad", 19); }
TEST(TFLiteSeanet, Quantize) { seanet("quantize", 2); }
TEST(TFLiteSeanet, StridedSlice) { seanet("strided_slice", 34); }
TEST(TFLiteSeanet, TransposeConv) { seanet("transpose_conv", 5); }

} // namespace
