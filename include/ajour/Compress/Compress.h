//===- Compress.h - compressed models from dense ones ---------*- C++ -*-===//
#ifndef AJOUR_COMPRESS_COMPRESS_H
#define AJOUR_COMPRESS_COMPRESS_H

#include "ajour/Compress/Recipe.h"
#include "ajour/Import/Import.h"

#include <functional>

namespace ajour::compress {

/// One run of the model with data: a tensor for each argument (a state's is its initial value), and the values of the symbolic dimensions.
struct Sample {
  std::vector<HostTensor> inputs;
  std::vector<int64_t> symbols;
};

/// Inputs for a model without data: floats are smooth random fields in [0, 1) with a little noise, many with an empty ground,
/// as pictures are; other values are uniform. `shapes` are those of the inputs, without states; `symbols` are left empty. The same seed gives the same inputs.
std::vector<Sample> syntheticSamples(mlir::ModuleOp module, const std::vector<std::vector<int64_t>> &shapes, int64_t count,
                                     uint64_t seed);

/// A product with weights as a plan makes them, for estimates of time.
struct ProductUse {
  int64_t outputs = 1, groups = 1, channels = 1; ///< channels: of a group
  std::vector<int64_t> window;                   ///< of a convolution
  int64_t rows = 1;                              ///< output pixels, tokens
  int64_t stride = 1;
  bool isDilated = false, isInteger = false; ///< isInteger: 8-bit activations as well
  LayerPlan plan;
};

struct CompressOptions {
  Recipe recipe;
  ImportOptions import;
  /// Makes the calibration data when the model's inputs are known.
  std::function<std::vector<Sample>(mlir::ModuleOp)> samples;
  /// The data is made up: weights then stay nearer to the model's, since what is true of that data may not be of real inputs.
  bool synthetic = false;
  /// Expected time of a product in nanoseconds, for a target and for the report; null: none.
  std::function<double(const ProductUse &)> cost;
  /// Called now and then with the phase, what is done and the total.
  std::function<void(const std::string &phase, int64_t done, int64_t total)> progress;
};

/// A model that cannot be imported; the message is the importer's, one whole line for each problem.
struct ImportFailure : CompressError {
  using CompressError::CompressError;
};

/// What became of one layer. Errors are relative: the mean square of the change of the layer's output, divided by the
/// variance of its output, square root taken. The layer's inputs are those that compressed layers before it give; the output is
/// compared with that of the model as it was. -1: no calibration data reached the layer.
struct LayerReport {
  std::string node, type, weight;
  std::vector<int64_t> shape; ///< as in the file
  LayerPlan plan;
  std::string why;            ///< why nothing was done, or less than asked for; may be empty
  double errorMagnitude = -1; ///< of the same zeros and bits, chosen by magnitude and without compensation
  double error = -1;          ///< of what was written
  int64_t elements = 0, zeros = 0;
  int64_t bytesBefore = 0, bytesAfter = 0; ///< by arithmetic: kept weights, their places, scales
  double timeBefore = -1, timeAfter = -1;  ///< expected, in nanoseconds; -1: not known
};

struct CompressReport {
  std::vector<LayerReport> layers;
  int64_t samples = 0;
  std::vector<std::string> notes;
};

/// The report as a table for people.
std::string toText(const CompressReport &report);

/// A model in its file's format.
struct CompressedModel {
  std::string bytes;
  CompressReport report;
};

/// Compresses the weights of a model file as the recipe says. Layers are taken in the order in which they are
/// computed, each with the inputs that it gets from the compressed layers before it. Throws CompressError, for a model that
/// cannot be imported ImportFailure.
CompressedModel compressModel(mlir::MLIRContext *context, const std::string &path, const CompressOptions &options);

} // namespace ajour::compress

#endif
