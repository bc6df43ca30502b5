//===- OnnxModelsTest.cpp - trained ONNX models, compiled and run ------------------===//
//
// AJOUR_ALL_PICTURES checks every picture and every model at every code level of this machine (minutes, most of them
// compiling); otherwise a part of them. AJOUR_CPU, if set, is the only level.
//
//===----------------------------------------------------------------------===//
#include "Import/ONNX/ModelBuilder.h"
#include "Models/Comparison.h"
#include "Models/OnnxModels.h"
#include "Support/CompiledModel.h"
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include <malloc.h>
#include <sys/wait.h>

using namespace ajour;
using namespace ajour::test;

namespace {

/// Small models compile for every level in a second or two; of the others only the best.
Prepare smallModel(int references = 3) { return compiledAndCompared(references, /*everyLevel=*/true); }
Prepare largeModel(int references = 1) { return compiledAndCompared(checksAll() ? references : 0); }

#define ONLY_WITH_ALL()  \
  if (!checksAll())      \
  GTEST_SKIP() << "takes long; set AJOUR_ALL_PICTURES"

//===----------------------------------------------------------------------===//
// Right answers
//===----------------------------------------------------------------------===//

TEST(OnnxModel, Digits) {
  AJOUR_MODEL_FILE(model, "ort_examples/mnist.onnx");
  AJOUR_MODEL_FILE(pictures, "data_mnist/t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(countDigits(smallModel(), 1000), 987);
}

TEST(OnnxModel, SampleNet) {
  AJOUR_MODEL_FILE(model, "samplenet/samplenet.onnx");
  AJOUR_MODEL_FILE(pictures, "data_cifar10/cifar10_test2000.bin.gz");
  EXPECT_EQ(countSampleNet(smallModel(), 1000), 690);
}

TEST(OnnxModel, Fashion) {
  std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "absent: " << folder << " (package dataset-fashion-mnist)";
  std::string model = AJOUR_SOURCE_DIR "/tools/quickstart/fashion.onnx";
  if (checksAll())
    EXPECT_EQ(countFashion(smallModel(), model, folder, 10000), 9144);
  else
    EXPECT_GE(countFashion(smallModel(1), model, folder, 1000), 900);
}

TEST(OnnxModel, UltraFace) { checkUltraFace(largeModel()); }
TEST(OnnxModel, DiffusionStep) { checkDiffusionStep(smallModel()); }
TEST(OnnxModel, VaeDecoder) { checkVaeDecoder(smallModel()); }
TEST(OnnxModel, CharacterGru) { checkCharacterGru(smallModel()); }

// 14 GRUs and three caches that the caller passes on. 71 dB is what another runtime has against the published sound,
// whose samples are of 16 bits.
TEST(OnnxModel, SpeechEnhancement) {
  AJOUR_MODEL_FILE(model, "gtcrn/gtcrn_simple.onnx");
  AJOUR_MODEL_FILE(noisy, "gtcrn/mix.wav");
  AJOUR_MODEL_FILE(published, "gtcrn/enh.wav");
  double ratio = enhanceSpeech(compiledAndCompared(3), checksAll() ? 60 : 4);
  printf("speech enhancement: %.1f dB\n", ratio);
  EXPECT_GT(ratio, 70);
}

TEST(OnnxModel, NoiseSuppressionInBothFormats) {
  AJOUR_MODEL_FILE(floatPath, "dtln/model_1.onnx");
  AJOUR_MODEL_FILE(quantizedPath, "dtln/model_quant_1.tflite");
  AJOUR_MODEL_FILE(noisy, "gtcrn/mix.wav");
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> onnx = importONNX(&context, floatPath, {}), tflite = importTFLite(&context, quantizedPath, {});
  ASSERT_TRUE(onnx && tflite);
  Masks masks = suppressNoise(compiledAndCompared(2)(*onnx), compiledAndCompared(2)(*tflite), 100);
  ASSERT_EQ(masks.onnx.size(), 100u * 257u);
  ASSERT_EQ(masks.tflite.size(), masks.onnx.size());
  double error = 0, product = 0, onnxEnergy = 0, tfliteEnergy = 0, worst = 0;
  for (size_t i = 0; i < masks.onnx.size(); ++i) {
    double difference = masks.onnx[i] - masks.tflite[i];
    error += difference * difference;
    worst = std::max(worst, std::fabs(difference));
    product += double(masks.onnx[i]) * masks.tflite[i];
    onnxEnergy += double(masks.onnx[i]) * masks.onnx[i];
    tfliteEnergy += double(masks.tflite[i]) * masks.tflite[i];
  }
  printf("masks: cosine %.5f, mean square %.2g, worst %.3f\n", product / std::sqrt(onnxEnergy * tfliteEnergy),
         error / double(masks.onnx.size()), worst);
  // Weights of 8 bits are what lies between them.
  EXPECT_GT(product / std::sqrt(onnxEnergy * tfliteEnergy), .99);
}

TEST(OnnxModel, FastestDet) {
  ONLY_WITH_ALL();
  checkFastestDet(largeModel());
}
TEST(OnnxModel, YuNet) {
  ONLY_WITH_ALL();
  checkYuNet(largeModel());
}
TEST(OnnxModel, DynamicYuNet) {
  ONLY_WITH_ALL();
  checkDynamicYuNet(largeModel(8));
}
TEST(OnnxModel, SqueezeNet) {
  ONLY_WITH_ALL();
  checkSqueezeNet(largeModel());
}
TEST(OnnxModel, BlazeFace) {
  ONLY_WITH_ALL();
  checkBlazeFace(largeModel(2));
}

TEST(OnnxModel, DrawnDigits) {
  ONLY_WITH_ALL();
  AJOUR_MODEL_FILE(model, "latent_dit_mnist/dit_mnist_b10.onnx");
  AJOUR_MODEL_FILE(reader, "ort_examples/mnist.onnx");
  for (unsigned seed : {0, 1, 2}) {
    int right = countDrawnDigits(compiledAndCompared(0, /*everyLevel=*/false), seed);
    printf("drawn digits, seed %u: %d of 100 as asked\n", seed, right);
    EXPECT_GE(right, 98);
  }
}

//===----------------------------------------------------------------------===//
// Any number of pictures at once
//===----------------------------------------------------------------------===//

/// What a command prints, and its exit status.
struct CommandResult {
  int status;
  std::string text;
};
CommandResult command(const std::string &arguments) {
  onnx_test::TempDir directory;
  int status = std::system((AJOUR_PROGRAM " " + arguments + " > " + (directory / "out") + " 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(directory / "out")};
}

/// The repository's net with a batch of any size.
std::string fashionForBatches() {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(readFile(AJOUR_SOURCE_DIR "/tools/quickstart/fashion.onnx")));
  for (onnx::ValueInfoProto *value : {model.mutable_graph()->mutable_input(0), model.mutable_graph()->mutable_output(0)})
    value->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  return model.SerializeAsString();
}

HostTensor patterns(int64_t batch, int first = 0) {
  std::vector<float> pixels;
  for (int64_t n = 0; n < batch; ++n)
    for (int i = 0; i < 784; ++i)
      pixels.push_back(.5f + .5f * std::sin(float(i % 28) * .11f * float(first + n + 1) + float(i / 28) * .07f));
  return makeTensor(AJOUR_F32, {batch, 1, 28, 28}, pixels);
}

/// A session of one thread that fails the test rather than returning errors.
struct Session {
  ajour_session *session = nullptr;
  explicit Session(ajour_model *model, uint32_t threads = 1) {
    ajour_session_options options = AJOUR_INIT(ajour_session_options);
    options.threads = threads;
    EXPECT_EQ(ajour_session_create(model, &options, &session), AJOUR_OK) << ajour_last_message();
  }
  ~Session() { ajour_session_destroy(session); }
  Session(const Session &) = delete;
  HostTensor run(const HostTensor &input) {
    EXPECT_EQ(ajour_session_set_input(session, 0, input.data.data(), input.shape.data(), input.shape.size()), AJOUR_OK)
        << ajour_last_message();
    EXPECT_EQ(ajour_session_run(session), AJOUR_OK) << ajour_last_message();
    ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
    EXPECT_EQ(ajour_session_output(session, 0, &view), AJOUR_OK) << ajour_last_message();
    auto data = static_cast<const char *>(view.data);
    return {view.element_type, {view.dims, view.dims + view.rank}, {data, data + view.bytes}};
  }
};

/// A compiled file, loaded.
struct Loaded {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< as imported
  std::shared_ptr<CompiledModel> compiled;
  ajour_model *model = nullptr;

  explicit Loaded(const std::string &path, const ImportOptions &options = {}) {
    module = importONNX(context.get(), path, options);
    EXPECT_TRUE(module);
    if (module)
      compiled = compileClone(*module);
  }
  ~Loaded() { ajour_model_destroy(model); }
  bool load() {
    if (compiled)
      EXPECT_EQ(ajour_model_load_file(compiled->path().c_str(), nullptr, &model), AJOUR_OK) << ajour_last_message();
    return model;
  }
};

TEST(DynamicBatch, OneSessionRunsEverySize) {
  onnx_test::TempDir directory;
  onnx_test::writeFile(directory / "net.onnx", fashionForBatches());
  ImportOptions options;
  options.dims["N"] = {0, -1};
  Loaded net(directory / "net.onnx", options);
  ASSERT_TRUE(net.load());
  Session session(net.model, 2), single(net.model);
  auto main = net.module->lookupSymbol<mlir::func::FuncOp>("main");
  for (int64_t batch : {1, 3, 0, 7, 64, 2}) {
    SCOPED_TRACE(batch);
    HostTensor input = patterns(batch), found = session.run(input);
    ASSERT_EQ(found.shape, (std::vector<int64_t>{batch, 10}));
    if (batch > 0 && batch < 8) {
      auto expected = interpret(main, {input}, {batch});
      ASSERT_TRUE(succeeded(expected));
      expectAgreement({found}, *expected);
    }
    // Every picture gets what it gets alone.
    for (int64_t n = 0; n < batch; ++n) {
      HostTensor alone = single.run(patterns(1, int(n)));
      HostTensor row{AJOUR_F32, {1, 10}, {found.data.begin() + n * 40, found.data.begin() + (n + 1) * 40}};
      expectAgreement({row}, {alone});
    }
  }
}

void writeNpy(const std::string &path, const HostTensor &tensor) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.shape)
    header += std::to_string(size) + ",";
  header += "), }";
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size() & 255);
  bytes += char(header.size() >> 8);
  onnx_test::writeFile(path, bytes + header + std::string(tensor.data.begin(), tensor.data.end()));
}

TEST(DynamicBatch, FromTheCommandLine) {
  onnx_test::TempDir directory;
  onnx_test::writeFile(directory / "net.onnx", fashionForBatches());
  writeNpy(directory / "three.npy", patterns(3));
  writeNpy(directory / "nine.npy", patterns(9));
  CommandResult compiled = command("compile " + (directory / "net.onnx") + " --dim N=1..8 --cpu " + ajour_cpu_level_name() + " -o " + (directory / "net.ajour"));
  ASSERT_EQ(compiled.status, 0) << compiled.text;
  CommandResult three = command("run " + (directory / "net.ajour") + " -i " + (directory / "three.npy") + " -o " +
                                (directory / "out"));
  ASSERT_EQ(three.status, 0) << three.text;
  EXPECT_EQ(readNpy(directory / "out/probabilities.npy").shape, (std::vector<int64_t>{3, 10}));
  CommandResult nine = command("run " + (directory / "net.ajour") + " -i " + (directory / "nine.npy"));
  EXPECT_EQ(nine.status, 1);
  EXPECT_NE(nine.text.find("is 9, allowed 1 to 8"), std::string::npos) << nine.text;
  CommandResult contradiction = command("run " + (directory / "net.ajour") + " --dim N=4 -i " + (directory / "three.npy"));
  EXPECT_EQ(contradiction.status, 1);
  EXPECT_NE(contradiction.text.find("has shape 3x1x28x28, expected 4x1x28x28"), std::string::npos) << contradiction.text;
  CommandResult missing = command("run " + (directory / "net.ajour") + " --dim N=4");
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.text.find("input 'image' (f32 4x1x28x28) has no file"), std::string::npos) << missing.text;
}

//===----------------------------------------------------------------------===//
// Sessions of one model
//===----------------------------------------------------------------------===//

/// Anonymous memory of this process in bytes.
int64_t anonymousBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("Anonymous:", 0) == 0)
      return std::stoll(line.substr(10)) * 1024;
  return -1;
}

TEST(ModelSessions, ShareWeights) {
  AJOUR_MODEL_FILE(path, "squeezenet_dc/squeezenet_v10_pruned_clustered_decoded.onnx");
  Loaded net(path);
  malloc_trim(0);
  int64_t before = anonymousBytes();
  ASSERT_TRUE(net.load());
  int64_t loaded = anonymousBytes() - before;
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ASSERT_EQ(ajour_model_get_info(net.model, &info), AJOUR_OK);
  EXPECT_TRUE(info.mapped);
  EXPECT_GT(info.weight_bytes, 4'800'000u);
  EXPECT_LT(loaded, int64_t(info.weight_bytes) / 20 + int64_t(info.code_bytes));

  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = 1;
  ajour_memory_info planned = AJOUR_INIT(ajour_memory_info);
  ASSERT_EQ(ajour_model_memory(net.model, &options, nullptr, &planned), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(planned.session_bytes, planned.arena_bytes + planned.io_bytes + planned.scratch_bytes);
  std::vector<float> pixels;
  for (int i = 0; i < 3 * 227 * 227; ++i)
    pixels.push_back(100 * std::sin(float(i % 227) * .05f + float(i / 227) * .03f));
  HostTensor input = makeTensor(AJOUR_F32, {1, 3, 227, 227}, pixels);
  Session first(net.model);
  HostTensor expected = first.run(input);
  int64_t one = anonymousBytes();
  Session second(net.model);
  EXPECT_EQ(second.run(input).data, expected.data);
  int64_t grown = anonymousBytes() - one;
  EXPECT_EQ(Session(net.model, 4).run(input).data, expected.data) << "with four threads";
  // No more than was planned, but for the session's own small structures.
  EXPECT_LT(grown, int64_t(planned.session_bytes) + (256 << 10));
  // And all of it but 5 %: what is planned is used.
  EXPECT_GT(grown * 100, int64_t(planned.session_bytes) * 95);
  ajour_memory_info held = AJOUR_INIT(ajour_memory_info);
  ASSERT_EQ(ajour_session_memory(second.session, &held), AJOUR_OK);
  // Inputs are planned in whole alignments.
  EXPECT_LE(held.session_bytes, planned.session_bytes);
  EXPECT_GT(held.session_bytes + 64, planned.session_bytes);
  EXPECT_EQ(held.weight_bytes, info.weight_bytes);
  printf("weights %lld, anonymous after load %lld (code %lld), session planned %lld, second session %lld bytes\n",
         (long long)info.weight_bytes, (long long)loaded, (long long)info.code_bytes, (long long)planned.session_bytes,
         (long long)grown);
}

TEST(ModelSessions, ComeAndGoInManyThreads) {
  AJOUR_MODEL_FILE(path, "samplenet/samplenet.onnx");
  Loaded net(path);
  ASSERT_TRUE(net.load());
  std::vector<HostTensor> inputs, expected;
  for (int i = 0; i < 8; ++i) {
    std::vector<float> pixels;
    for (int k = 0; k < 3072; ++k)
      pixels.push_back(std::sin(float(k * (i + 1)) * .01f));
    inputs.push_back(makeTensor(AJOUR_F32, {1, 3, 32, 32}, pixels));
    expected.push_back(Session(net.model).run(inputs.back()));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        Session session(net.model, 1 + round % 3);
        for (int k : {i, (i + round) % 8})
          wrong += session.run(inputs[k]).data != expected[k].data;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// The model is refused with one line for each node of which `isBeyond` holds, naming it, and leaves no file.
void expectRefusal(const std::string &path, const std::function<bool(const onnx::NodeProto &)> &isBeyond) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(readFile(path)));
  std::vector<std::string> expected;
  for (const onnx::NodeProto &node : model.graph().node())
    if (isBeyond(node))
      expected.push_back("node '" + node.name() + "' (" + node.op_type() + ", #");
  ASSERT_FALSE(expected.empty());
  onnx_test::TempDir directory;
  CommandResult result = command("compile " + path + " -o " + (directory / "net.ajour"));
  EXPECT_EQ(result.status, 1);
  EXPECT_FALSE(std::filesystem::exists(directory / "net.ajour"));
  for (const std::string &node : expected)
    EXPECT_NE(result.text.find(node), std::string::npos) << node << " is missing in\n" << result.text;
  size_t errors = 0;
  for (size_t at = 0; (at = result.text.find("error: node '", at)) != std::string::npos; ++at)
    ++errors;
  EXPECT_EQ(errors, expected.size()) << result.text;
}

TEST(Refusal, ForeignDomains) {
  AJOUR_MODEL_FILE(path, "ort_examples/pytorch_superresolution_with_pre_post_processing_op18.onnx");
  expectRefusal(path, [](const onnx::NodeProto &node) { return !node.domain().empty(); });
}

TEST(Refusal, NoOperatorSet) {
  AJOUR_MODEL_FILE(path, "onnx_tutorials/super_resolution.onnx");
  onnx_test::TempDir directory;
  CommandResult result = command("compile " + path + " -o " + (directory / "net.ajour"));
  EXPECT_EQ(result.status, 1);
  EXPECT_FALSE(std::filesystem::exists(directory / "net.ajour"));
  EXPECT_NE(result.text.find("IR version 1 and no operator set import"), std::string::npos) << result.text;
}

} // namespace
