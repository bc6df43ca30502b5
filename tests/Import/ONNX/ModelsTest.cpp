//===- ModelsTest.cpp - published models are read ----------------------------------------===//
#include "ModelBuilder.h"

#include <filesystem>
#include <fstream>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

/// The path of a model that is kept beside the repository; skips the test when it is absent.
#define MODEL(variable, name)                                                                                          \
  std::string variable = std::string(AJOUR_TEST_MODELS "/") + name;                                                    \
  if (!std::filesystem::exists(variable))                                                                              \
  GTEST_SKIP() << "absent: " << name

class Published : public testing::TestWithParam<const char *> {};

TEST_P(Published, IsRead) {
  MODEL(path, GetParam());
  EXPECT_EQ(importFile(path), "");
}
INSTANTIATE_TEST_SUITE_P(ONNX, Published,
                         testing::Values("ort_examples/mnist.onnx", "samplenet/samplenet.onnx",
                                         "ultraface/version-RFB-320.onnx", "yunet/yunet_n_320_320.onnx",
                                         "yunet/yunet_s_320_320.onnx", "yunet/yunet_n_dynamic.onnx",
                                         "fastestdet/FastestDet.onnx",
                                         "squeezenet_dc/squeezenet_v10_pruned_clustered_decoded.onnx",
                                         "npm_blazeface/ONNX/face_detection_front_128x128_barracuda.onnx",
                                         "latent_dit_mnist/dit_mnist_b10.onnx", "latent_dit_mnist/vae_decoder_b4.onnx"));

TEST(Published, OldFileWithoutOperatorSet) {
  MODEL(path, "onnx_tutorials/super_resolution.onnx");
  std::string error = importFile(path);
  EXPECT_NE(error.find("IR version 1 and no operator set import"), std::string::npos) << error;
}

TEST(Published, ForeignDomainsAreNamed) {
  MODEL(path, "ort_examples/pytorch_superresolution_with_pre_post_processing_op18.onnx");
  std::string error = importFile(path);
  EXPECT_NE(error.find("DecodeImage of com.microsoft.extensions 1"), std::string::npos) << error;
  EXPECT_NE(error.find("node 'post_process_52' (EncodeImage, #103)"), std::string::npos) << error;
}

} // namespace
