//===- TFLiteModels.h - right answers of trained TFLite models --*- C++ -*-===//
//
// The checks do not know how a model is executed: the importer's tests interpret it, others compile it.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_MODELS_TFLITEMODELS_H
#define AJOUR_TESTS_MODELS_TFLITEMODELS_H

#include "Models/Executor.h"

namespace ajour::test {

/// cat.bmp through the uint8 MobileNets: the leading classes, and how far the 1001 outputs may be from a simulation's.
void checkMobileNetV2(const Prepare &prepare);
void checkMobileNetV1(const Prepare &prepare);

/// The MobileNets with products in f32 (ImportOptions::floatProducts), as the golden outputs were made: classes 286 and 283, all outputs
/// equal and within one step.
void checkMobileNetV2InFloat(const Prepare &prepare);
void checkMobileNetV1InFloat(const Prepare &prepare);

/// CIFAR-10 pictures 0, 4, 8, ... (`count` of them; 500 are all) through ResNet-8. Returns how many are right.
int countResNet8(const Prepare &prepare, int count, bool quantized);

/// Recorded words through the int8 DS-CNN: every `stride`-th of 1000, outputs within 2 steps of another
/// runtime's. Returns how many of them are recognised; `total` receives how many there were. `hybrid` takes the model
/// of f32 activations and int8 weights, and only counts.
int checkKeywordSpotting(const Prepare &prepare, int stride, int &total, bool hybrid = false);

/// sin x by hello_world: 1.57 gives .996 and 3.0 gives .128, in float, and within two steps in int8.
void checkHelloWorld(const Prepare &prepare);

/// cat.bmp through the visual wake words models, int8 and f32: no person.
void checkVisualWakeWords(const Prepare &prepare);

/// Frames of a machine's sound through the auto-encoders: both reconstruct it, int8 as f32 does.
void checkAnomalyDetection(const Prepare &prepare);

/// The first `count` test digits through LeNet-300-100, its weights of 8 bits. Returns how many are right.
int countLeNetDigits(const Prepare &prepare, int count);

/// Ten handwritten digits, row by row, through an LSTM in floating point or on integers. Returns how many are right.
int countLstmDigits(const Prepare &prepare, bool quantized);

/// A nine, row by row, through an int8 LSTM: 9 above .7.
void checkKerasLstm(const Prepare &prepare);

/// Runs a model `count` times on random inputs, the state going on, for executors that compare with another.
void runOnNoise(const Prepare &prepare, const std::string &name, int count = 1);

/// The int16 operator models whose names contain `part`; each output within one step of its golden one.
/// Returns how many models there were; `exact` counts those without any difference.
int checkSeanetOperators(const Prepare &prepare, const char *part, int &exact);

} // namespace ajour::test

#endif
