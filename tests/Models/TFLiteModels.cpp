//===- TFLiteModels.cpp - right answers of trained TFLite models ----------------===//
#include "Models/TFLiteModels.h"
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Support/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mlir;

namespace ajour::test {

namespace {

/// A model, imported and prepared.
struct Model {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  Run run;

  Model(const std::string &path, const Prepare &prepare) {
    DiagnosticCollector diagnostics(&context, path);
    module = importTFLite(&context, path, {});
    EXPECT_TRUE(module) << diagnostics.text();
    if (module)
      run = prepare(*module);
    EXPECT_TRUE(diagnostics.errors().empty()) << diagnostics.text();
  }
  func::FuncOp main() { return module->lookupSymbol<func::FuncOp>("main"); }
  float inputScale() { return main().getArgAttrOfType<FloatAttr>(0, "nn.scale").getValue().convertToFloat(); }
  float outputScale() { return main().getResultAttrOfType<FloatAttr>(0, "nn.scale").getValue().convertToFloat(); }
  int inputZero() { return int(main().getArgAttrOfType<IntegerAttr>(0, "nn.zero_point").getInt()); }
  int outputZero() { return int(main().getResultAttrOfType<IntegerAttr>(0, "nn.zero_point").getInt()); }
  /// The only output for one input; empty after a failure.
  HostTensor operator()(const HostTensor &input) {
    std::vector<HostTensor> outputs;
    if (run)
      outputs = run({input});
    EXPECT_EQ(outputs.size(), 1u);
    return outputs.empty() ? HostTensor() : outputs[0];
  }
};

template <typename T> int argMax(const HostTensor &tensor) {
  return int(std::max_element(tensor.as<T>(), tensor.as<T>() + tensor.numElements()) - tensor.as<T>());
}

void checkMobileNet(const Prepare &prepare, const std::string &name, int expectedClass) {
  AJOUR_MODEL_FILE(path, "coral/" + name + ".tflite");
  AJOUR_MODEL_FILE(golden, "golden/" + name + "_cat_nearest.npz");
  Model model(path, prepare);
  std::map<std::string, HostTensor> arrays = readNpz(golden);
  HostTensor input = arrays["input"], expected = arrays["output"];
  input.shape.insert(input.shape.begin(), 1);
  HostTensor found = model(input);
  ASSERT_EQ(found.elementType, uint32_t(AJOUR_U8));
  ASSERT_EQ(found.numElements(), expected.numElements());
  EXPECT_EQ(argMax<uint8_t>(found), expectedClass);
  for (int64_t i = 0; i < expected.numElements(); ++i)
    EXPECT_LE(std::abs(int(found.as<uint8_t>()[i]) - int(expected.as<uint8_t>()[i])), 1)
        << "class " << i << " found " << int(found.as<uint8_t>()[i]);
}

} // namespace

void checkMobileNetV2(const Prepare &prepare) { checkMobileNet(prepare, "mobilenet_v2_1.0_224_quant", 286); }
void checkMobileNetV1(const Prepare &prepare) { checkMobileNet(prepare, "mobilenet_v1_0.25_128_quant", 283); }

int countResNet8(const Prepare &prepare, int count, bool quantized) {
  Model model(findModelFile(quantized ? "mlperf_tiny/pretrainedResnet_quant.tflite"
                                      : "mlperf_tiny/pretrainedResnet.tflite"),
              prepare);
  std::vector<Picture> pictures = readCifar(findModelFile("data_cifar10/cifar10_test2000.bin.gz"));
  int right = 0;
  for (int i = 0; i < count && size_t(i) * 4 < pictures.size(); ++i) {
    const Picture &picture = pictures[i * 4];
    HostTensor found;
    if (quantized) {
      std::vector<int8_t> input;
      for (uint8_t pixel : picture.pixels)
        input.push_back(int8_t(int(pixel) - 128));
      found = model(makeTensor(AJOUR_I8, {1, 32, 32, 3}, input));
      right += found.numElements() == 10 && argMax<int8_t>(found) == picture.label;
    } else {
      found = model(makeTensor(AJOUR_F32, {1, 32, 32, 3},
                               std::vector<float>(picture.pixels.begin(), picture.pixels.end())));
      right += found.numElements() == 10 && argMax<float>(found) == picture.label;
    }
  }
  return right;
}

int checkKeywordSpotting(const Prepare &prepare, int stride, int &total) {
  Model model(findModelFile("mlperf_tiny/kws_ref_model.tflite"), prepare);
  std::map<std::string, std::string> files = readTarGz(findModelFile("energyrunner_kws/kws01_1000.tar.gz"));
  HostTensor golden = readNpy(findModelFile("golden/kws_int8_armnn2008_cpuref_1000x12.npy"));
  std::stringstream labels(files["datasets/kws01/y_labels.csv"]);
  int right = 0, row = 0;
  total = 0;
  for (std::string line; std::getline(labels, line); ++row) {
    if (row % stride)
      continue;
    std::string name = line.substr(0, line.find(','));
    int label = std::stoi(line.substr(line.rfind(',') + 1));
    const std::string &bytes = files["datasets/kws01/" + name];
    HostTensor found = model(makeTensor(AJOUR_I8, {1, 49, 10, 1}, std::vector<char>(bytes.begin(), bytes.end())));
    if (found.numElements() != 12)
      return right;
    for (int i = 0; i < 12; ++i)
      EXPECT_LE(std::abs(int(found.as<int8_t>()[i]) - int(golden.as<int8_t>()[row * 12 + i])), 2)
          << name << " output " << i;
    right += argMax<int8_t>(found) == label;
    ++total;
  }
  return right;
}

void checkHelloWorld(const Prepare &prepare) {
  AJOUR_MODEL_FILE(floatPath, "tflm/hello_world_float.tflite");
  AJOUR_MODEL_FILE(intPath, "tflm/hello_world_int8.tflite");
  Model real(floatPath, prepare), integer(intPath, prepare);
  for (auto [x, y] : {std::pair(1.57f, 0.996f), std::pair(3.0f, 0.128f)}) {
    EXPECT_NEAR(real(makeTensor(AJOUR_F32, {1, 1}, std::vector<float>{x})).as<float>()[0], y, 6e-4f);
    auto q = int8_t(std::lround(x / integer.inputScale()) + integer.inputZero());
    HostTensor found = integer(makeTensor(AJOUR_I8, {1, 1}, std::vector<int8_t>{q}));
    float value = float(found.as<int8_t>()[0] - integer.outputZero()) * integer.outputScale();
    EXPECT_NEAR(value, std::sin(x), 0.06f) << x;
  }
}

void checkVisualWakeWords(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "mlperf_tiny/vww_96_int8.tflite");
  AJOUR_MODEL_FILE(picture, "coral/cat.bmp");
  Model model(path, prepare);
  std::vector<int8_t> input;
  for (uint8_t pixel : readImage(picture, 96, 96))
    input.push_back(int8_t(int(pixel) - 128));
  HostTensor found = model(makeTensor(AJOUR_I8, {1, 96, 96, 3}, input));
  ASSERT_EQ(found.numElements(), 2);
  EXPECT_EQ(int(found.as<int8_t>()[1]), -116);
}

//===----------------------------------------------------------------------===//
// Operator models
//===----------------------------------------------------------------------===//

/// Comma-separated numbers as a tensor of an element type.
static HostTensor parseCsv(const std::string &text, uint32_t type, std::vector<int64_t> shape) {
  std::vector<int16_t> narrow;
  std::vector<int32_t> wide;
  std::stringstream stream(text);
  for (std::string number; std::getline(stream, number, ',');)
    if (number.find_first_of("0123456789") != std::string::npos) {
      narrow.push_back(int16_t(std::stol(number)));
      wide.push_back(int32_t(std::stol(number)));
    }
  return type == AJOUR_I16 ? makeTensor(type, shape, narrow) : makeTensor(type, shape, wide);
}

/// One operator model with its inputs and golden output.
static void checkOperator(const Prepare &prepare, std::map<std::string, std::string> &files, const std::string &stem,
                          int &exact) {
  SCOPED_TRACE(stem);
  // The importer reads files.
  std::string path = (std::filesystem::temp_directory_path() /
                      ("ajour-" + std::to_string(getpid()) + "-" + stem.substr(stem.rfind('/') + 1) + ".tflite"))
                         .string();
  std::ofstream(path, std::ios::binary) << files[stem + ".tflite"];
  Model model(path, prepare);
  std::filesystem::remove(path);
  if (!model.run)
    return;
  std::vector<HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(model.main().getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    bool narrow = tensor.getElementType().isInteger(16);
    const std::string name = stem + "_input" + std::to_string(i) + (narrow ? "_int16.csv" : "_int32.csv");
    ASSERT_TRUE(files.count(name)) << name;
    inputs.push_back(parseCsv(files[name], narrow ? AJOUR_I16 : AJOUR_I32, tensor.getShape().vec()));
    ASSERT_EQ(int64_t(inputs.back().data.size()), inputs.back().numElements() * (narrow ? 2 : 4)) << name;
  }
  std::vector<HostTensor> outputs = model.run(inputs);
  ASSERT_EQ(outputs.size(), 1u);
  bool narrow = outputs[0].elementType == AJOUR_I16;
  const std::string golden = stem + (narrow ? "_golden_int16.csv" : "_golden_int32.csv");
  ASSERT_TRUE(files.count(golden)) << golden;
  HostTensor expected = parseCsv(files[golden], outputs[0].elementType, outputs[0].shape);
  ASSERT_EQ(expected.data.size(), outputs[0].data.size());
  int64_t worst = 0;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    int64_t found = narrow ? outputs[0].as<int16_t>()[i] : outputs[0].as<int32_t>()[i];
    int64_t wanted = narrow ? expected.as<int16_t>()[i] : expected.as<int32_t>()[i];
    worst = std::max(worst, std::abs(found - wanted));
  }
  EXPECT_LE(worst, 1);
  exact += worst == 0;
}

int checkSeanetOperators(const Prepare &prepare, const char *part, int &exact) {
  std::map<std::string, std::string> files = readTarGz(findModelFile("tflm_seanet/seanet_int16_op_goldens.tar.gz"));
  int count = 0;
  exact = 0;
  std::vector<std::string> stems;
  for (const auto &[name, bytes] : files)
    if (name.ends_with(".tflite") && name.find(std::string("/") + part + "/") != std::string::npos)
      stems.push_back(name.substr(0, name.size() - 7));
  for (const std::string &stem : stems) {
    checkOperator(prepare, files, stem, exact);
    ++count;
  }
  return count;
}

} // namespace ajour::test
