//===- TFLiteModels.h - right answers of trained TFLite models --*- C++ -*-===//
//
// The checks do not know how a model is executed: the importer's tests interpret it, others compile it.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_MODELS_TFLITEMODELS_H
#define AJOUR_TESTS_MODELS_TFLITEMODELS_H

#include "ajour/Reference/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <vector>

namespace ajour::test {

/// Runs a prepared model once: inputs in the order of main's arguments, outputs in that of its results.
using Run = std::function<std::vector<HostTensor>(const std::vector<HostTensor> &)>;
/// Prepares a module for running; the module outlives the result.
using Prepare = std::function<Run(mlir::ModuleOp)>;

/// cat.bmp through the uint8 MobileNets: the class, and all 1001 outputs within one step.
void checkMobileNetV2(const Prepare &prepare);
void checkMobileNetV1(const Prepare &prepare);

/// CIFAR-10 pictures 0, 4, 8, ... (`count` of them; 500 are all) through ResNet-8. Returns how many are right.
int countResNet8(const Prepare &prepare, int count, bool quantized);

/// Recorded words through the int8 DS-CNN: every `stride`-th of 1000, outputs within 2 steps of another
/// runtime's. Returns how many of them are recognised; `total` receives how many there were.
int checkKeywordSpotting(const Prepare &prepare, int stride, int &total);

/// sin x by hello_world: 1.57 gives .996 and 3.0 gives .128, in float, and within two steps in int8.
void checkHelloWorld(const Prepare &prepare);

/// cat.bmp through the visual wake words model.
void checkVisualWakeWords(const Prepare &prepare);

/// The int16 operator models whose names contain `part`; each output within one step of its golden one.
/// Returns how many models there were; `exact` counts those without any difference.
int checkSeanetOperators(const Prepare &prepare, const char *part, int &exact);

} // namespace ajour::test

#endif
