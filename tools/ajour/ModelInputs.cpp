//===- ModelInputs.cpp - inputs of an imported module --------------------------===//
#include "ModelInputs.h"
#include "ToolSupport/Files.h"
#include "ToolSupport/Npy.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Pipeline/CompiledModel.h"
#include "ajour/Reference/State.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace ajour::tools {

std::vector<TensorInfo> inputsOf(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<TensorInfo> infos;
  for (unsigned i : nn::inputArguments(main)) {
    auto type = llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
    TensorInfo info;
    info.name = "input" + std::to_string(i);
    if (auto name = main.getArgAttrOfType<mlir::StringAttr>(i, "nn.name"))
      info.name = name.str();
    if (auto scale = main.getArgAttrOfType<mlir::FloatAttr>(i, "nn.scale"))
      info.scale = static_cast<float>(scale.getValueAsDouble());
    if (auto zeroPoint = main.getArgAttrOfType<mlir::IntegerAttr>(i, "nn.zero_point"))
      info.zeroPoint = static_cast<int32_t>(zeroPoint.getInt());
    info.type = nn::getElementTypeId(type.getElementType());
    for (mlir::AffineExpr dim : nn::getDims(type))
      info.shape.push_back(nn::getConstant(dim).value_or(-1));
    infos.push_back(std::move(info));
  }
  return infos;
}

namespace {

/// A size of a symbolic dimension for random inputs: small, and within the bounds.
int64_t sizeForRandom(mlir::ModuleOp module, mlir::AffineExpr dim) {
  constexpr int64_t wanted = 4;
  auto symbol = nn::matchSymbol(dim);
  auto symbols = module->getAttrOfType<mlir::ArrayAttr>("nn.symbols");
  if (!symbol || !symbols)
    return 1;
  auto bounds = llvm::cast<nn::SymbolAttr>(symbols[symbol->position]);
  int64_t high = bounds.getMax() < 0 ? std::max(wanted, bounds.getMin()) : bounds.getMax();
  return std::clamp(wanted, bounds.getMin(), high) * symbol->multiple;
}

} // namespace

void fixFreeSizes(mlir::ModuleOp module, std::vector<TensorInfo> &infos) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<unsigned> arguments = nn::inputArguments(main);
  for (size_t i = 0; i < infos.size(); ++i) {
    nn::Dims dims = nn::getDims(llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[arguments[i]]));
    for (size_t d = 0; d < dims.size(); ++d)
      if (infos[i].shape[d] < 0)
        infos[i].shape[d] = sizeForRandom(module, dims[d]);
  }
}

ajour::HostTensor toCompilerTensor(const HostTensor &tensor) {
  const char *bytes = reinterpret_cast<const char *>(tensor.data.data());
  return {tensor.type, tensor.shape, {bytes, bytes + tensor.data.size()}};
}

//===----------------------------------------------------------------------===//
// Calibration
//===----------------------------------------------------------------------===//

namespace {

/// The files that a name stands for: itself, or all that are in the folder, by name.
std::vector<std::string> filesOf(const std::string &path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path))
    return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry &entry : fs::directory_iterator(path))
    if (std::string extension = extensionOf(entry.path().string());
        extension == "npy" || extension == "png" || extension == "jpg" || extension == "jpeg" || extension == "bmp" ||
        extension == "wav")
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw ToolError(path + ": the folder holds no .npy, picture or .wav");
  return files;
}

/// Cuts an array that holds several inputs along its first dimension; one that is an input stays whole.
std::vector<HostTensor> splitArray(HostTensor array, const TensorInfo &info, const std::string &file) {
  std::optional<uint64_t> one = byteSize(info.shape, 1);
  bool fixed = std::find(info.shape.begin(), info.shape.end(), -1) == info.shape.end();
  int64_t elements = array.numElements();
  if (!fixed || !one || *one == 0 || elements == 0 || elements == int64_t(*one) || elements % int64_t(*one) || array.shape.empty() ||
      array.shape[0] % (elements / int64_t(*one))) {
    fitShape(array, info, file);
    return {convertTensor(std::move(array), info, file)};
  }
  array = convertTensor(std::move(array), info, file);
  std::vector<HostTensor> parts;
  size_t bytes = array.data.size() / size_t(elements / int64_t(*one));
  for (size_t at = 0; at < array.data.size(); at += bytes)
    parts.push_back({array.type, info.shape, {array.data.begin() + at, array.data.begin() + at + bytes}});
  return parts;
}

std::vector<HostTensor> loadMany(const InputFile &input, const TensorInfo &info, const CalibrationArguments &arguments) {
  std::vector<HostTensor> tensors;
  for (const std::string &file : filesOf(input.path)) {
    if (int64_t(tensors.size()) >= arguments.samples)
      break;
    if (extensionOf(file) != "npy")
      tensors.push_back(loadInput({input.input, file, input.rawType}, info, arguments.image));
    else
      for (HostTensor &part : splitArray(readNpy(file), info, file))
        tensors.push_back(std::move(part));
  }
  if (int64_t(tensors.size()) > arguments.samples)
    tensors.resize(size_t(arguments.samples));
  // One of them would spread into every sum over the inputs.
  for (const HostTensor &tensor : tensors)
    for (int64_t i = 0, e = isIntegerType(tensor.type) ? 0 : tensor.numElements(); i < e; ++i)
      if (!std::isfinite(getReal(tensor, i)))
        throw ToolError(input.path + ": holds a value that is not finite, which says nothing of what weights are used for; give inputs as the model gets them");
  return tensors;
}

} // namespace

std::vector<compress::Sample> calibrationSamples(mlir::ModuleOp module, const CalibrationArguments &arguments) {
  std::vector<TensorInfo> infos = inputsOf(module);
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<compress::Sample> samples;
  if (arguments.files.empty()) {
    fixFreeSizes(module, infos);
    std::vector<std::vector<int64_t>> shapes;
    for (const TensorInfo &info : infos)
      shapes.push_back(info.shape);
    samples = compress::syntheticSamples(module, shapes, arguments.samples, arguments.seed);
  } else {
    std::vector<InputFile> files = resolveInputFiles(arguments.files, infos);
    for (size_t i = 0; i < infos.size(); ++i) {
      std::vector<HostTensor> tensors = loadMany(files[i], infos[i], arguments);
      if (i && tensors.size() != samples.size())
        throw ToolError(files[i].path + ": holds " + std::to_string(tensors.size()) + " inputs, but there are " +
                        std::to_string(samples.size()) + " of '" + infos[0].name + "'");
      samples.resize(tensors.size());
      for (size_t s = 0; s < tensors.size(); ++s)
        samples[s].inputs.push_back(toCompilerTensor(tensors[s]));
    }
  }
  for (compress::Sample &sample : samples) {
    sample.inputs = withInitialStates(main, sample.inputs);
    sample.symbols = readSymbols(main, sample.inputs);
  }
  return samples;
}

void addCalibrationOptions(CLI::App &command, CalibrationArguments &arguments) {
  command
      .add_option("--calibration", arguments.files,
                  "NAME=FILE or FILE: .npy with one input or many, picture, .wav, or a folder of them; default synthetic")
      ->type_name("NAME=FILE");
  command.add_option("--samples", arguments.samples, "Most inputs to use; default 128")->check(CLI::Range(1, 100000));
  command.add_option("--seed", arguments.seed, "Of synthetic inputs")->check(wholeNumber(0, UINT64_MAX));
  addImageOptions(command, arguments.image);
}

} // namespace ajour::tools
