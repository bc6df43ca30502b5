//===- Inputs.h - Files as model inputs -------------------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_INPUTS_H
#define AJOUR_TOOLS_INPUTS_H

#include "ToolSupport/Image.h"

namespace CLI {
class App;
}

namespace ajour::tools {

/// One --input: which input of the model, from which file, and the element type of a raw file (0: the input's).
struct InputFile {
  size_t input = 0;
  std::string path;
  uint32_t rawType = 0;
};

/// Reads "NAME=FILE", "FILE" where the model has one input, each also with ":TYPE" behind a raw file, and sees that every input has
/// exactly one file. The result is in the model's order. Throws ToolError, which lists the names that there are.
std::vector<InputFile> resolveInputFiles(const std::vector<std::string> &specs, const std::vector<TensorInfo> &inputs);

/// Reads a file by its extension: .npy; .png, .jpg, .jpeg, .bmp; .wav; anything else is raw little-endian elements in C order.
/// The result has the input's element type (see convertTensor) and a shape that fits it. Throws ToolError.
HostTensor loadInput(const InputFile &file, const TensorInfo &info, const ImageOptions &options);

/// The inputs of several runs from an .npy file with one dimension more than the input, the first. A file without it is the input of
/// every run, and gives one. Throws ToolError.
std::vector<HostTensor> loadSequence(const InputFile &file, const TensorInfo &info, const ImageOptions &options);

/// The shape of an input that must hold `numElements`: one free size is worked out, further free ones are 1. Throws ToolError if
/// the elements do not fit.
std::vector<int64_t> fillFreeSizes(const TensorInfo &info, int64_t numElements, const std::string &file);

/// Gives an array the rank of the input: the same shape, or the same but for leading sizes of 1. Throws ToolError.
void fitShape(HostTensor &tensor, const TensorInfo &info, const std::string &file);

/// Uniform values: floats in [0, 1); 8- and 16-bit integers over 256 values from -128 or 0; bools and wider integers, which often
/// are indices, 0 or 1. The same seed gives the same values everywhere. Free sizes are 1.
HostTensor randomInput(const TensorInfo &info, uint64_t seed);

/// Adds --layout, --resize, --bgr, --input-range, --mean and --std to a command.
void addImageOptions(CLI::App &command, ImageOptions &options);

} // namespace ajour::tools

#endif
