//===- OnnxModels.cpp - right answers of trained ONNX models ----------------------===//
#include "Models/OnnxModels.h"
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Support/Diagnostics.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <fstream>
#include <numbers>
#include <random>

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
    module = importONNX(&context, path, {});
    EXPECT_TRUE(module) << diagnostics.text();
    if (module)
      run = prepare(*module);
    EXPECT_TRUE(diagnostics.errors().empty()) << diagnostics.text();
  }
  /// As many outputs as the caller expects; after a failure, empty ones.
  std::vector<HostTensor> operator()(const std::vector<HostTensor> &inputs, size_t count) {
    std::vector<HostTensor> outputs;
    if (run)
      outputs = run(inputs);
    EXPECT_EQ(outputs.size(), count);
    outputs.resize(count, HostTensor{AJOUR_F32, {0}, {}});
    return outputs;
  }
  HostTensor operator()(const HostTensor &input) { return (*this)({input}, 1)[0]; }
};

std::vector<float> values(const HostTensor &tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.data.size() / sizeof(float)};
}

int argMax(const HostTensor &tensor) {
  std::vector<float> all = values(tensor);
  return all.empty() ? -1 : int(std::max_element(all.begin(), all.end()) - all.begin());
}

float maximum(const std::vector<float> &all) { return all.empty() ? -1 : *std::max_element(all.begin(), all.end()); }

/// How a picture becomes an input: (pixel - mean) / deviation for each channel, in planes or interleaved.
struct Normalization {
  std::array<float, 3> mean{0, 0, 0}, deviation{1, 1, 1};
  bool blueFirst = false; ///< channels are reversed before they are normalised
  bool planes = true;
};

HostTensor makeInput(const std::vector<uint8_t> &rgb, int width, int height, const Normalization &how) {
  std::vector<float> input(rgb.size());
  int64_t area = int64_t(width) * height;
  for (int64_t i = 0; i < area; ++i)
    for (int c = 0; c < 3; ++c)
      input[how.planes ? c * area + i : i * 3 + c] =
          (float(rgb[i * 3 + (how.blueFirst ? 2 - c : c)]) - how.mean[c]) / how.deviation[c];
  return makeTensor(AJOUR_F32, how.planes ? std::vector<int64_t>{1, 3, height, width} : std::vector<int64_t>{1, height, width, 3},
                    input);
}

/// Absolute for outputs of about one; the golden ones were made by another runtime in another order of summation.
void expectGolden(const HostTensor &found, const HostTensor &expected, float tolerance) {
  ASSERT_EQ(found.shape, expected.shape);
  for (int64_t i = 0; i < expected.numElements(); ++i)
    ASSERT_NEAR(found.as<float>()[i], expected.as<float>()[i], tolerance) << "element " << i;
}

} // namespace

//===----------------------------------------------------------------------===//
// Classifiers
//===----------------------------------------------------------------------===//

/// 28 x 28 grey pictures, multiplied by `scale`.
static int countGrey(const Prepare &prepare, const std::string &path, const std::vector<Picture> &pictures, int count,
                     float scale) {
  Model model(path, prepare);
  int right = 0;
  EXPECT_LE(size_t(count), pictures.size());
  for (int i = 0; i < count && size_t(i) < pictures.size(); ++i) {
    std::vector<float> pixels;
    for (uint8_t pixel : pictures[i].pixels)
      pixels.push_back(float(pixel) * scale);
    right += argMax(model(makeTensor(AJOUR_F32, {1, 1, 28, 28}, pixels))) == pictures[i].label;
  }
  return right;
}

int countDigits(const Prepare &prepare, int count) {
  return countGrey(prepare, findModelFile("ort_examples/mnist.onnx"),
                   readMnist(findModelFile("data_mnist/t10k-images-idx3-ubyte.gz"),
                             findModelFile("data_mnist/t10k-labels-idx1-ubyte.gz")),
                   count, 1);
}

int countFashion(const Prepare &prepare, const std::string &model, const std::string &folder, int count) {
  return countGrey(prepare, model,
                   readMnist(folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz"), count,
                   1.f / 255);
}

int countSampleNet(const Prepare &prepare, int count) {
  Model model(findModelFile("samplenet/samplenet.onnx"), prepare);
  std::vector<Picture> pictures = readCifar(findModelFile("data_cifar10/cifar10_test2000.bin.gz"));
  // The configuration gives red first.
  Normalization how{{113.8575f, 122.961f, 125.307f}, {51.255f, 50.847f, 51.5865f}, true};
  int right = 0;
  EXPECT_LE(size_t(count) * 2, pictures.size());
  for (int i = 0; i < count && size_t(i) * 2 < pictures.size(); ++i)
    right += argMax(model(makeInput(pictures[i * 2].pixels, 32, 32, how))) == pictures[i * 2].label;
  return right;
}

void checkSqueezeNet(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "squeezenet_dc/squeezenet_v10_pruned_clustered_decoded.onnx");
  AJOUR_MODEL_FILE(picture, "coral/cat.bmp");
  AJOUR_MODEL_FILE(labels, "coral/imagenet_labels.txt");
  Model model(path, prepare);
  HostTensor found = model(makeInput(readImageSmooth(picture, 227, 227), 227, 227, {{104, 117, 123}, {1, 1, 1}, true}));
  std::vector<std::string> names;
  std::ifstream lines(labels);
  for (std::string line; std::getline(lines, line);)
    names.push_back(line);
  ASSERT_EQ(names.size(), 1001u); // the first is the background's
  ASSERT_EQ(found.numElements(), 1000);
  EXPECT_EQ(argMax(found), 285);
  EXPECT_EQ(names[argMax(found) + 1], "Egyptian cat");
  EXPECT_GT(maximum(values(found)), .5f);
}

//===----------------------------------------------------------------------===//
// Detectors
//===----------------------------------------------------------------------===//

void checkUltraFace(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "ultraface/version-RFB-320.onnx");
  AJOUR_MODEL_FILE(picture, "ultraface/1.jpg");
  Model model(path, prepare);
  std::vector<HostTensor> found = model(
      {makeInput(readImageSmooth(picture, 320, 240), 320, 240, {{127, 127, 127}, {128, 128, 128}})}, 2);
  ASSERT_EQ(found[0].shape, (std::vector<int64_t>{1, 4420, 2}));
  float most = 0;
  int faces = 0;
  for (int i = 0; i < 4420; ++i) {
    float score = found[0].as<float>()[i * 2 + 1];
    most = std::max(most, score);
    faces += score > .7f;
  }
  EXPECT_NEAR(most, .999f, .0005f);
  EXPECT_EQ(faces, 85);
}

/// The greatest score of a class in FastestDet's output, as its authors compute it.
static float fastestDetScore(const HostTensor &output, int index, const std::vector<std::string> &names,
                             std::string &best) {
  constexpr int cells = 22 * 22;
  float most = 0;
  for (int i = 0; i < cells && output.numElements() == 85 * cells; ++i) {
    auto channel = [&](int c) { return output.as<float>()[c * cells + i]; };
    for (int c = 0; c < 80; ++c) {
      float score = std::pow(channel(0), .6f) * std::pow(channel(5 + c), .4f);
      if ((index < 0 || index == c) && score > most) {
        most = score;
        best = names[c];
      }
    }
  }
  return most;
}

void checkFastestDet(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "fastestdet/FastestDet.onnx");
  AJOUR_MODEL_FILE(people, "fastestdet/3.jpg");
  AJOUR_MODEL_FILE(street, "fastestdet/1.jpg");
  AJOUR_MODEL_FILE(labels, "fastestdet/coco.names");
  Model model(path, prepare);
  std::vector<std::string> names;
  std::ifstream lines(labels);
  for (std::string line; std::getline(lines, line);)
    names.push_back(line.substr(0, line.find_last_not_of("\r ") + 1));
  ASSERT_GE(names.size(), 80u);
  auto run = [&](const std::string &picture) {
    return model(makeInput(readImageSmooth(picture, 352, 352), 352, 352, {{0, 0, 0}, {255, 255, 255}, true}));
  };
  std::string best;
  float score = fastestDetScore(run(people), -1, names, best);
  EXPECT_EQ(best, "person");
  EXPECT_NEAR(score, .90f, .01f);
  EXPECT_GT(fastestDetScore(run(street), -1, names, best), .9f);
  EXPECT_EQ(best, "bus");
}

/// How many priors YuNet's twelve outputs score above `threshold`.
static int countFaces(const std::vector<HostTensor> &outputs, float threshold) {
  int faces = 0;
  for (int level = 0; level < 3; ++level)
    for (int64_t i = 0; i < outputs[level].numElements(); ++i)
      faces += std::sqrt(std::clamp(outputs[level].as<float>()[i], 0.f, 1.f) *
                         std::clamp(outputs[3 + level].as<float>()[i], 0.f, 1.f)) > threshold;
  return faces;
}

static HostTensor yunetInput(const std::string &picture, int width, int height) {
  return makeInput(readImageSmooth(picture, width, height), width, height, {{0, 0, 0}, {1, 1, 1}, true});
}

void checkYuNet(const Prepare &prepare) {
  AJOUR_MODEL_FILE(nano, "yunet/yunet_n_320_320.onnx");
  AJOUR_MODEL_FILE(small, "yunet/yunet_s_320_320.onnx");
  AJOUR_MODEL_FILE(faces, "ultraface/1.jpg");
  AJOUR_MODEL_FILE(street, "fastestdet/1.jpg");
  for (const std::string &path : {nano, small}) {
    SCOPED_TRACE(path);
    Model model(path, prepare);
    EXPECT_GT(countFaces(model({yunetInput(faces, 320, 320)}, 12), .7f), 150);
    EXPECT_EQ(countFaces(model({yunetInput(street, 320, 320)}, 12), .7f), 0);
  }
}

void checkDynamicYuNet(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "yunet/yunet_n_dynamic.onnx");
  AJOUR_MODEL_FILE(fixedPath, "yunet/yunet_n_320_320.onnx");
  AJOUR_MODEL_FILE(faces, "ultraface/1.jpg");
  AJOUR_MODEL_FILE(street, "fastestdet/1.jpg");
  Model model(path, prepare), fixed(fixedPath, prepare);
  std::vector<HostTensor> found = model({yunetInput(faces, 320, 320)}, 12),
                          expected = fixed({yunetInput(faces, 320, 320)}, 12);
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(found[i].shape, expected[i].shape);
    float largest = 1;
    for (float value : values(expected[i]))
      largest = std::max(largest, std::abs(value));
    expectGolden(found[i], expected[i], 1e-4f * largest);
  }
  for (auto [width, height] : {std::pair(640, 448), std::pair(736, 480), std::pair(352, 256)})
    EXPECT_GT(countFaces(model({yunetInput(faces, width, height)}, 12), .7f), 150) << width << " by " << height;
  // Two pictures at once give what each gives alone.
  HostTensor pair = yunetInput(faces, 96, 64), second = yunetInput(street, 96, 64);
  std::vector<HostTensor> alone = model({pair}, 12), alsoAlone = model({second}, 12);
  pair.shape[0] = 2;
  pair.data.insert(pair.data.end(), second.data.begin(), second.data.end());
  std::vector<HostTensor> both = model({pair}, 12);
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    alone[i].shape[0] = 2;
    alone[i].data.insert(alone[i].data.end(), alsoAlone[i].data.begin(), alsoAlone[i].data.end());
    expectGolden(both[i], alone[i], 1e-4f);
  }
  // As small as the pyramid allows.
  EXPECT_EQ(model({yunetInput(faces, 32, 64)}, 12)[0].shape, (std::vector<int64_t>{1, 32, 1}));
}

void checkBlazeFace(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "npm_blazeface/ONNX/face_detection_front_128x128_barracuda.onnx");
  AJOUR_MODEL_FILE(faces, "ultraface/1.jpg");
  AJOUR_MODEL_FILE(street, "fastestdet/1.jpg");
  Model model(path, prepare);
  auto score = [&](const std::string &picture, const std::array<int, 4> &part) {
    std::vector<HostTensor> found =
        model({makeInput(readImageSmooth(picture, 128, 128, part), 128, 128,
                         {{127.5f, 127.5f, 127.5f}, {127.5f, 127.5f, 127.5f}, false, false})},
              4);
    EXPECT_EQ(found[0].shape, (std::vector<int64_t>{1, 512, 1}));
    float logit = std::max(maximum(values(found[0])), maximum(values(found[1])));
    return 1 / (1 + std::exp(-logit));
  };
  EXPECT_GT(score(faces, {354, 63, 474, 183}), .9f); // a face in the middle
  EXPECT_LT(score(street, {}), .5f);
}

//===----------------------------------------------------------------------===//
// Generators
//===----------------------------------------------------------------------===//

void checkDiffusionStep(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "latent_dit_mnist/dit_mnist_b10.onnx");
  AJOUR_MODEL_FILE(golden, "golden/dit_mnist_b10.npz");
  Model model(path, prepare);
  std::map<std::string, HostTensor> arrays = readNpz(golden);
  expectGolden(model({arrays["x"], arrays["t"], arrays["y"]}, 1)[0], arrays["x1_pred"], 1e-5f);
}

void checkVaeDecoder(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "latent_dit_mnist/vae_decoder_b4.onnx");
  AJOUR_MODEL_FILE(golden, "golden/vae_decoder_b4.npz");
  Model model(path, prepare);
  std::map<std::string, HostTensor> arrays = readNpz(golden);
  expectGolden(model(arrays["z"]), arrays["image"], 1e-5f);
}

/// Normally distributed numbers, the same in every standard library (Box and Muller's method).
static std::vector<float> drawNoise(std::mt19937 &random, size_t count) {
  std::vector<float> noise;
  while (noise.size() < count) {
    double radius = std::sqrt(-2 * std::log((random() + 1.0) / 0x1p32)), angle = 2 * std::numbers::pi * random() / 0x1p32;
    noise.push_back(float(radius * std::cos(angle)));
    noise.push_back(float(radius * std::sin(angle)));
  }
  noise.resize(count);
  return noise;
}

/// One digit of each kind from noise: x moves towards the predicted end of its path, which begins at t = 0.
static void drawDigits(Model &model, std::vector<float> &x) {
  constexpr int steps = 50;
  constexpr float guidance = 2;
  constexpr int64_t anyDigit = 10;
  std::vector<int64_t> asked(10), unconditional(10, anyDigit);
  for (int i = 0; i < 10; ++i)
    asked[i] = i;
  for (int step = 0; step < steps; ++step) {
    float t = float(step) / steps;
    HostTensor time = makeTensor(AJOUR_F32, {10, 1, 1, 1}, std::vector<float>(10, t));
    HostTensor position = makeTensor(AJOUR_F32, {10, 1, 28, 28}, x);
    std::vector<float> end = values(model({position, time, makeTensor(AJOUR_I64, {10}, asked)}, 1)[0]);
    ASSERT_EQ(end.size(), x.size());
    if (t > .3f && t < .7f) {
      std::vector<float> free = values(model({position, time, makeTensor(AJOUR_I64, {10}, unconditional)}, 1)[0]);
      ASSERT_EQ(free.size(), x.size());
      for (size_t i = 0; i < x.size(); ++i)
        end[i] = free[i] + guidance * (end[i] - free[i]);
    }
    for (size_t i = 0; i < x.size(); ++i)
      x[i] += (end[i] - x[i]) / (1 - t) / steps;
  }
}

int countDrawnDigits(const Prepare &prepare, unsigned seed) {
  Model model(findModelFile("latent_dit_mnist/dit_mnist_b10.onnx"), prepare);
  Model reader(findModelFile("ort_examples/mnist.onnx"), prepare);
  std::mt19937 random(seed);
  int right = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<float> x = drawNoise(random, 10 * 784);
    drawDigits(model, x);
    for (int digit = 0; digit < 10; ++digit) {
      std::vector<float> pixels(x.begin() + digit * 784, x.begin() + (digit + 1) * 784);
      for (float &pixel : pixels)
        pixel = std::clamp(pixel, 0.f, 1.f) * 255;
      right += argMax(reader(makeTensor(AJOUR_F32, {1, 1, 28, 28}, pixels))) == digit;
    }
  }
  return right;
}

//===----------------------------------------------------------------------===//
// Speech
//===----------------------------------------------------------------------===//

namespace {

/// Samples of a mono recording of 16-bit integers, in [-1, 1).
std::vector<double> readSpeech(const std::string &path) {
  std::string file = readFile(path);
  size_t data = file.find("data");
  std::vector<double> samples;
  for (size_t at = data == std::string::npos ? file.size() : data + 8; at + 2 <= file.size(); at += 2) {
    int16_t sample;
    std::memcpy(&sample, file.data() + at, 2);
    samples.push_back(sample / 32768.0);
  }
  return samples;
}

constexpr int frameSize = 512, frameStep = 256, bins = frameSize / 2 + 1;

/// A periodic Hann window's square root, for analysis and synthesis.
double windowAt(int i) { return std::sqrt(.5 - .5 * std::cos(2 * std::numbers::pi * i / frameSize)); }

using Spectrum = std::vector<std::complex<double>>; ///< bins

/// Frame `t` of a recording whose ends are mirrored, so that the first frame's middle is the first sample.
Spectrum analyse(const std::vector<double> &samples, int t) {
  static const std::vector<std::complex<double>> turns = [] {
    std::vector<std::complex<double>> all(frameSize);
    for (int i = 0; i < frameSize; ++i)
      all[i] = std::polar(1.0, -2 * std::numbers::pi * i / frameSize);
    return all;
  }();
  std::vector<double> frame(frameSize);
  for (int i = 0; i < frameSize; ++i) {
    int64_t at = std::abs(int64_t(t) * frameStep + i - frameSize / 2), last = int64_t(samples.size()) - 1;
    frame[i] = samples[at > last ? 2 * last - at : at] * windowAt(i);
  }
  Spectrum spectrum(bins);
  for (int k = 0; k < bins; ++k)
    for (int i = 0; i < frameSize; ++i)
      spectrum[k] += frame[i] * turns[k * i % frameSize];
  return spectrum;
}

/// Adds a frame's sound to `samples`, which begin half a frame early, and its window's square to `weights`.
void synthesise(const Spectrum &spectrum, int t, std::vector<double> &samples, std::vector<double> &weights) {
  for (int i = 0; i < frameSize; ++i) {
    double sum = spectrum[0].real() + (i % 2 ? -1 : 1) * spectrum[bins - 1].real();
    for (int k = 1; k < bins - 1; ++k)
      sum += 2 * (spectrum[k] * std::polar(1.0, 2 * std::numbers::pi * (k * i % frameSize) / frameSize)).real();
    samples[t * frameStep + i] += sum / frameSize * windowAt(i);
    weights[t * frameStep + i] += windowAt(i) * windowAt(i);
  }
}

HostTensor zeroTensor(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return makeTensor(AJOUR_F32, std::move(shape), std::vector<float>(count));
}

} // namespace

double enhanceSpeech(const Prepare &prepare, double seconds) {
  Model model(findModelFile("gtcrn/gtcrn_simple.onnx"), prepare);
  std::vector<double> noisy = readSpeech(findModelFile("gtcrn/mix.wav")), published = readSpeech(findModelFile("gtcrn/enh.wav"));
  int frames = std::min(int(noisy.size() / frameStep) + 1, int(seconds * 16000) / frameStep);
  std::vector<double> samples(frameStep * (frames - 1) + frameSize), weights(samples.size());
  std::vector<HostTensor> caches{zeroTensor({2, 1, 16, 16, 33}), zeroTensor({2, 3, 1, 1, 16}), zeroTensor({2, 1, 33, 16})};
  for (int t = 0; t < frames && model.run; ++t) {
    std::vector<float> input;
    for (std::complex<double> value : analyse(noisy, t))
      input.insert(input.end(), {float(value.real()), float(value.imag())});
    std::vector<HostTensor> outputs =
        model({makeTensor(AJOUR_F32, {1, bins, 1, 2}, input), caches[0], caches[1], caches[2]}, 4);
    if (outputs[0].numElements() != 2 * bins)
      return 0;
    Spectrum spectrum;
    for (int k = 0; k < bins; ++k)
      spectrum.push_back({outputs[0].as<float>()[2 * k], outputs[0].as<float>()[2 * k + 1]});
    synthesise(spectrum, t, samples, weights);
    caches.assign(outputs.begin() + 1, outputs.end());
  }
  // Without the half frames at both ends, whose neighbours may be missing.
  double signal = 0, noise = 0;
  for (size_t i = 0; i + frameSize < samples.size() && i < published.size(); ++i) {
    double found = samples[i + frameSize / 2] / weights[i + frameSize / 2];
    signal += published[i] * published[i];
    noise += (found - published[i]) * (found - published[i]);
  }
  return 10 * std::log10(signal / noise);
}

Masks suppressNoise(const Run &onnx, const Run &tflite, int frames) {
  std::vector<double> noisy = readSpeech(findModelFile("gtcrn/mix.wav"));
  HostTensor states[2] = {zeroTensor({1, 2, 128, 2}), zeroTensor({1, 2, 128, 2})};
  Masks masks;
  for (int t = 0; t < frames; ++t) {
    std::vector<float> magnitudes;
    for (std::complex<double> value : analyse(noisy, 40 + t))
      magnitudes.push_back(float(std::abs(value)));
    HostTensor input = makeTensor(AJOUR_F32, {1, 1, bins}, magnitudes);
    for (int format : {0, 1}) {
      std::vector<HostTensor> outputs = (format ? tflite : onnx)({input, states[format]});
      EXPECT_EQ(outputs.size(), 2u);
      if (outputs.size() != 2 || outputs[0].numElements() != bins)
        return {};
      std::vector<float> mask = values(outputs[0]), &all = format ? masks.tflite : masks.onnx;
      all.insert(all.end(), mask.begin(), mask.end());
      states[format] = outputs[1];
    }
  }
  return masks;
}

void checkCharacterGru(const Prepare &prepare) {
  AJOUR_MODEL_FILE(path, "tinystoriesgru/puregru_step.onnx");
  AJOUR_MODEL_FILE(textPath, "golden/puregru.json");
  AJOUR_MODEL_FILE(golden, "golden/puregru_teacher_forced_logits_255x98.npy");
  Model model(path, prepare);
  std::vector<int64_t> ids = nlohmann::json::parse(readFile(textPath))["teacher_forced_ids"];
  HostTensor expected = readNpy(golden);
  ASSERT_EQ(ids.size(), 256u);
  ASSERT_EQ(expected.shape, (std::vector<int64_t>{255, 98}));
  HostTensor hidden = makeTensor(AJOUR_F32, {1, 124}, std::vector<float>(124)), memory = hidden;
  double nats = 0;
  for (int64_t i = 0; i < 255; ++i) {
    std::vector<HostTensor> found = model({makeTensor(AJOUR_I64, {1}, std::vector<int64_t>{ids[i]}),
                                           makeTensor(AJOUR_I64, {1}, std::vector<int64_t>{i}), hidden, memory},
                                          3);
    ASSERT_EQ(found[0].numElements(), 98);
    double sum = 0;
    for (int c = 0; c < 98; ++c) {
      ASSERT_NEAR(found[0].as<float>()[c], expected.as<float>()[i * 98 + c], 1e-4f) << "character " << i;
      sum += std::exp(double(found[0].as<float>()[c]));
    }
    nats += std::log(sum) - found[0].as<float>()[ids[i + 1]];
    hidden = found[1];
    memory = found[2];
  }
  EXPECT_NEAR(nats / 255, .39187, 1e-4);
}

} // namespace ajour::test
