//===- Inputs.cpp - Files as model inputs ---------------------------------===//

#include "ToolSupport/Inputs.h"
#include "ToolSupport/Checks.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Wav.h"

#include <algorithm>

namespace ajour::tools {

namespace {

std::string describe(const TensorInfo &info) {
  return "'" + info.name + "' (" + ajour_element_name(info.type) + " " + shapeText(info.shape) + ")";
}

std::string listNames(const std::vector<TensorInfo> &inputs) {
  std::string text;
  for (const TensorInfo &info : inputs)
    text += (text.empty() ? "" : ", ") + describe(info);
  return text;
}

/// Splits at the '=' whose left side is the name of an input; names and paths may contain more of them.
InputFile parseSpec(const std::string &spec, const std::vector<TensorInfo> &inputs) {
  InputFile file;
  bool named = false;
  for (size_t equals = spec.find('='); equals != std::string::npos && !named; equals = spec.find('=', equals + 1)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].name == spec.substr(0, equals)) {
        file = {i, spec.substr(equals + 1), 0};
        named = true;
        break;
      }
    }
  }
  if (!named) {
    if (inputs.size() != 1 || (spec.find('=') != std::string::npos && fileBytes(spec) == 0))
      throw ToolError("--input " + spec + ": expected NAME=FILE with one of the model's inputs " + listNames(inputs));
    file = {0, spec, 0};
  }
  if (file.path.empty())
    throw ToolError("--input '" + spec + "': names no file; expected NAME=FILE");
  size_t colon = file.path.rfind(':');
  if (colon != std::string::npos)
    if (uint32_t type = elementTypeFromName(file.path.substr(colon + 1))) {
      file.rawType = type;
      file.path.resize(colon);
    }
  return file;
}

} // namespace

std::vector<InputFile> resolveInputFiles(const std::vector<std::string> &specs, const std::vector<TensorInfo> &inputs) {
  std::vector<InputFile> files(inputs.size());
  std::vector<bool> seen(inputs.size());
  for (const std::string &spec : specs) {
    InputFile file = parseSpec(spec, inputs);
    if (seen[file.input])
      throw ToolError("--input " + spec + ": input " + describe(inputs[file.input]) + " already has a file");
    seen[file.input] = true;
    files[file.input] = file;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!seen[i])
      throw ToolError("input " + describe(inputs[i]) + " has no file; give --input " + inputs[i].name + "=FILE");
  return files;
}

std::vector<int64_t> fillFreeSizes(const TensorInfo &info, int64_t numElements, const std::string &file) {
  std::vector<int64_t> shape = info.shape;
  int64_t known = 1, free = -1;
  bool fits = true;
  for (size_t i = 0; i < shape.size() && fits; ++i) {
    if (shape[i] >= 0)
      fits = !__builtin_mul_overflow(known, shape[i], &known);
    else if (free < 0)
      free = static_cast<int64_t>(i);
    else
      shape[i] = 1;
  }
  if (fits && free >= 0 && known > 0 && numElements % known == 0) {
    shape[static_cast<size_t>(free)] = numElements / known;
    return shape;
  }
  if (fits && free < 0 && known == numElements)
    return shape;
  throw ToolError(file + ": has " + std::to_string(numElements) + " elements, input " + describe(info) + " takes " +
                  (free < 0 ? std::to_string(known) : "a multiple of " + std::to_string(known)));
}

void fitShape(HostTensor &tensor, const TensorInfo &info, const std::string &file) {
  std::vector<int64_t> shape = tensor.shape;
  while (shape.size() < info.shape.size())
    shape.insert(shape.begin(), 1);
  while (shape.size() > info.shape.size() && shape[0] == 1)
    shape.erase(shape.begin());
  bool fits = shape.size() == info.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = info.shape[i] < 0 || info.shape[i] == shape[i];
  if (!fits)
    throw ToolError(file + ": has shape " + shapeText(tensor.shape) + ", expected " + shapeText(info.shape) +
                    " for input '" + info.name + "'");
  tensor.shape = shape;
}

HostTensor loadInput(const InputFile &file, const TensorInfo &info, const ImageOptions &options) {
  std::string extension = extensionOf(file.path);
  Bytes bytes = readFile(file.path);
  if (file.rawType == 0) {
    if (extension == "png" || extension == "jpg" || extension == "jpeg" || extension == "bmp")
      return imageToTensor(bytes, info, options, file.path);
    if (extension == "wav")
      return soundToTensor(parseWav(bytes, file.path), info, file.path);
    if (extension == "npy") {
      HostTensor tensor = convertTensor(parseNpy(bytes, file.path), info, file.path);
      fitShape(tensor, info, file.path);
      return tensor;
    }
  }
  uint32_t type = file.rawType ? file.rawType : info.type;
  uint32_t size = ajour_element_size(type);
  if (bytes.size() % size != 0)
    throw ToolError(file.path + ": has " + std::to_string(bytes.size()) + " bytes, not a whole number of " +
                    ajour_element_name(type) + " elements");
  HostTensor tensor{type, fillFreeSizes(info, static_cast<int64_t>(bytes.size() / size), file.path), std::move(bytes)};
  return convertTensor(std::move(tensor), info, file.path);
}

std::vector<HostTensor> loadSequence(const InputFile &file, const TensorInfo &info, const ImageOptions &options) {
  if (file.rawType != 0 || extensionOf(file.path) != "npy")
    return {loadInput(file, info, options)};
  HostTensor all = parseNpy(readFile(file.path), file.path);
  if (all.shape.size() != info.shape.size() + 1)
    return {loadInput(file, info, options)};
  std::vector<HostTensor> parts;
  std::vector<int64_t> shape(all.shape.begin() + 1, all.shape.end());
  size_t count = static_cast<size_t>(all.shape[0]);
  if (count == 0)
    throw ToolError(file.path + ": has shape " + shapeText(all.shape) + ", a sequence of nothing; expected at least one of " +
                    shapeText(info.shape) + " for input '" + info.name + "'");
  size_t bytes = all.data.size() / count;
  for (size_t i = 0; i < count; ++i) {
    auto begin = all.data.begin() + static_cast<ptrdiff_t>(i * bytes);
    HostTensor part{all.type, shape, {}};
    part.data.assign(begin, begin + static_cast<ptrdiff_t>(bytes));
    parts.push_back(convertTensor(std::move(part), info, file.path));
    fitShape(parts.back(), info, file.path);
  }
  return parts;
}

HostTensor randomInput(const TensorInfo &info, uint64_t seed) {
  std::vector<int64_t> shape = info.shape;
  for (int64_t &size : shape)
    size = size < 0 ? 1 : size;
  HostTensor tensor = makeTensor(info.type, shape);
  uint64_t state = seed;
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i) {
    // SplitMix64 (Steele, Lea, Flood 2014).
    uint64_t word = state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    word ^= word >> 31;
    if (!isIntegerType(info.type))
      setReal(tensor, i, static_cast<double>(word >> 40) * 0x1p-24);
    else if (info.type == AJOUR_BOOL)
      setInteger(tensor, i, static_cast<int64_t>(word >> 63));
    else if (ajour_element_size(info.type) > 2)
      setInteger(tensor, i, static_cast<int64_t>(word >> 63));
    else
      setInteger(tensor, i, std::max<int64_t>(integerMin(info.type), -128) + static_cast<int64_t>(word >> 56));
  }
  return tensor;
}

void addImageOptions(CLI::App &command, ImageOptions &options) {
  command
      .add_option_function<std::string>(
          "--layout",
          [&options](const std::string &name) {
            options.layout = name == "nchw"   ? ImageLayout::NCHW
                             : name == "nhwc" ? ImageLayout::NHWC
                                              : ImageLayout::Auto;
          },
          "where a picture's channels are; default auto, by the input's shape")
      ->check(CLI::IsMember({"auto", "nchw", "nhwc"}))
      ->type_name("LAYOUT")
      ->group("Pictures");
  command
      .add_option_function<std::string>(
          "--resize",
          [&options](const std::string &name) {
            options.resize = name == "nearest" ? ResizeMethod::Nearest : ResizeMethod::Bilinear;
          },
          "how a picture gets the input's size; default bilinear")
      ->check(CLI::IsMember({"bilinear", "nearest"}))
      ->type_name("METHOD")
      ->group("Pictures");
  command.add_flag("--bgr", options.bgr, "the first channel is blue")->group("Pictures");
  command
      .add_option("--input-range", options.range,
                  "values of pixels 0 and 255; default 0,1 for floats and the raw pixel for integers (i8: pixel - 128)")
      ->delimiter(',')
      ->expected(2)
      ->check(finiteNumber())
      ->type_name("LOW,HIGH")
      ->group("Pictures");
  command.add_option("--mean", options.mean, "subtracted after --input-range, one number or one for each channel")
      ->delimiter(',')
      ->expected(1, 4)
      ->check(finiteNumber())
      ->type_name("M[,M...]")
      ->group("Pictures");
  command.add_option("--std", options.std, "divides after --mean, one number or one for each channel")
      ->delimiter(',')
      ->expected(1, 4)
      ->check(finiteNumber())
      ->type_name("S[,S...]")
      ->group("Pictures");
}

} // namespace ajour::tools
