//===- OnnxModels.h - right answers of trained ONNX models ------*- C++ -*-===//
//
// As TFLiteModels.h: the checks do not know how a model is executed. Checks skip where
// a file is absent; of those that count, the caller looks for the files.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_MODELS_ONNXMODELS_H
#define AJOUR_TESTS_MODELS_ONNXMODELS_H

#include "Models/Executor.h"

#include <string>

namespace ajour::test {

/// The first `count` handwritten digits, pixels 0 to 255, through mnist.onnx. Returns how many are read right:
/// 987 of 1000.
int countDigits(const Prepare &prepare, int count);

/// CIFAR-10 pictures 0, 2, 4, ... (`count` of them) through SampleNet, blue first, normalised by the constants of its
/// configuration in reverse order. Returns how many are right: 690 of 1000.
int countSampleNet(const Prepare &prepare, int count);

/// 28 x 28 grey pictures of Fashion-MNIST's test set, pixels divided by 255, through a net of the repository. Returns
/// how many of the first `count` are right.
int countFashion(const Prepare &prepare, const std::string &model, const std::string &folder, int count);

/// Faces in a photograph: greatest score .999, 85 priors above .7.
void checkUltraFace(const Prepare &prepare);

/// Persons in a photograph, up to .90; and a bus in another.
void checkFastestDet(const Prepare &prepare);

/// Faces in a photograph by both sizes of YuNet; none in a street with a bus.
void checkYuNet(const Prepare &prepare);

/// The net with dynamic height and width gives what the fixed one gives at 320 x 320; other sizes find faces too, and
/// two pictures at once give what each gives alone.
void checkDynamicYuNet(const Prepare &prepare);

/// The pruned and clustered SqueezeNet sees a cat in cat.bmp.
void checkSqueezeNet(const Prepare &prepare);

/// A face where there is one, none where there is not.
void checkBlazeFace(const Prepare &prepare);

/// One step of the diffusion transformer, and one decoding by the auto-encoder, against another runtime's.
void checkDiffusionStep(const Prepare &prepare);
void checkVaeDecoder(const Prepare &prepare);

/// Ten digits of each kind, drawn in 50 Euler steps from noise with guidance 2 where .3 < t < .7, and read by
/// mnist.onnx. Returns how many of the 100 are read as they were asked for.
int countDrawnDigits(const Prepare &prepare, unsigned seed);

/// 255 characters of a story through the GRU's step, against another runtime's logits; .392 nats a character.
void checkCharacterGru(const Prepare &prepare);

/// A noisy recording through the streaming speech enhancer, frame by frame with its caches, and back to sound. Returns
/// the signal-to-noise ratio in dB against the enhanced recording that its authors publish; about the first `seconds` of it.
double enhanceSpeech(const Prepare &prepare, double seconds);

/// The first network of a noise suppressor in both formats, on the frames of a noisy recording with its state: the
/// masks of the first `frames`, one of float weights and one of 8-bit weights.
struct Masks {
  std::vector<float> onnx, tflite;
};
Masks suppressNoise(const Run &onnx, const Run &tflite, int frames);

} // namespace ajour::test

#endif
