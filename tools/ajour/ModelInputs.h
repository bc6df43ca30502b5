//===- ModelInputs.h - inputs of an imported module ------------*- C++ -*-===//
#ifndef AJOUR_TOOLS_AJOUR_MODELINPUTS_H
#define AJOUR_TOOLS_AJOUR_MODELINPUTS_H

#include "Commands.h"
#include "ToolSupport/Inputs.h"
#include "ajour/Compress/Compress.h"

namespace ajour::tools {

/// The module's inputs (states aside) as the tools describe tensors; a symbolic size is -1.
std::vector<TensorInfo> inputsOf(mlir::ModuleOp module);

/// Gives symbolic sizes small values within their bounds.
void fixFreeSizes(mlir::ModuleOp module, std::vector<TensorInfo> &infos);

ajour::HostTensor toCompilerTensor(const HostTensor &tensor);

/// Data that a model is tried with.
struct CalibrationArguments {
  std::vector<std::string> files;
  ImageOptions image;
  int64_t samples = 128;
  uint64_t seed = 1;
};
void addCalibrationOptions(CLI::App &command, CalibrationArguments &arguments);

/// Reads the files, or makes inputs where there are none. Throws ToolError.
std::vector<compress::Sample> calibrationSamples(mlir::ModuleOp module, const CalibrationArguments &arguments);

/// Expected nanoseconds of a product with the weights that a plan makes, on a code level (empty: this machine's). Throws ToolError for a
/// name that is none.
std::function<double(const compress::ProductUse &)> productCost(const std::string &cpu);

} // namespace ajour::tools

#endif
