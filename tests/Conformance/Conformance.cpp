//===- Conformance.cpp - the format's own test cases ------------------------------===//
#include "Conformance.h"

#define ONNX_ML 1
#include <onnx/onnx_pb.h>

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

using namespace mlir;
namespace fs = std::filesystem;

namespace ajour::conformance {

namespace {

bool parseFile(const std::string &path, google::protobuf::MessageLite &message) {
  std::ifstream stream(path, std::ios::binary);
  return stream && message.ParseFromIstream(&stream);
}

uint32_t elementTypeOf(int32_t onnxType) {
  switch (onnxType) {
  case ::onnx::TensorProto::FLOAT:
    return AJOUR_F32;
  case ::onnx::TensorProto::UINT8:
    return AJOUR_U8;
  case ::onnx::TensorProto::INT8:
    return AJOUR_I8;
  case ::onnx::TensorProto::UINT16:
    return AJOUR_U16;
  case ::onnx::TensorProto::INT16:
    return AJOUR_I16;
  case ::onnx::TensorProto::INT32:
    return AJOUR_I32;
  case ::onnx::TensorProto::INT64:
    return AJOUR_I64;
  case ::onnx::TensorProto::BOOL:
    return AJOUR_BOOL;
  case ::onnx::TensorProto::FLOAT16:
    return AJOUR_F16;
  case ::onnx::TensorProto::BFLOAT16:
    return AJOUR_BF16;
  case ::onnx::TensorProto::DOUBLE:
    return AJOUR_F64;
  case ::onnx::TensorProto::UINT32:
    return AJOUR_U32;
  case ::onnx::TensorProto::UINT64:
    return AJOUR_U64;
  default:
    return 0;
  }
}

template <typename T, typename List> void fill(std::vector<char> &bytes, const List &list) {
  for (auto value : list) {
    T element = static_cast<T>(value);
    const char *p = reinterpret_cast<const char *>(&element);
    bytes.insert(bytes.end(), p, p + sizeof(T));
  }
}

double valueAt(const HostTensor &t, int64_t i) {
  auto small = [&](const llvm::fltSemantics &semantics) {
    llvm::APFloat value(semantics, llvm::APInt(16, t.as<uint16_t>()[i]));
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  };
  switch (t.elementType) {
  case AJOUR_F32:
    return t.as<float>()[i];
  case AJOUR_F64:
    return t.as<double>()[i];
  case AJOUR_F16:
    return small(llvm::APFloat::IEEEhalf());
  case AJOUR_BF16:
    return small(llvm::APFloat::BFloat());
  default:
    return 0;
  }
}

bool isFloat(uint32_t type) {
  return type == AJOUR_F32 || type == AJOUR_F64 || type == AJOUR_F16 || type == AJOUR_BF16;
}

std::string shapeText(const HostTensor &t) {
  std::string text = std::string(ajour_element_name(t.elementType) ? ajour_element_name(t.elementType) : "?") + "[";
  for (size_t i = 0; i < t.shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(t.shape[i]);
  return text + "]";
}

/// The names in all "--bind NAME=FILE" remedies of a message.
std::set<std::string> wantedBindings(const std::string &message) {
  std::set<std::string> names;
  for (size_t at = 0; (at = message.find("--bind ", at)) != std::string::npos;) {
    at += 7;
    size_t end = message.find("=FILE", at);
    if (end != std::string::npos)
      names.insert(message.substr(at, end - at));
  }
  return names;
}

/// Values of the symbols from the sizes of the inputs; a symbol that only appears inside an expression stays 1.
std::vector<int64_t> solveSymbols(ModuleOp module, const std::vector<HostTensor> &inputs) {
  auto list = module->getAttrOfType<ArrayAttr>("nn.symbols");
  std::vector<int64_t> symbols(list ? list.size() : 0, 1);
  auto function = module.lookupSymbol<func::FuncOp>("main");
  for (auto [type, input] : llvm::zip(function.getArgumentTypes(), inputs))
    for (auto [expr, size] : llvm::zip(nn::getDims(cast<RankedTensorType>(type)), input.shape))
      if (auto symbol = nn::matchSymbol(expr))
        symbols[symbol->position] = size / symbol->multiple;
  return symbols;
}

/// Whether a tensor fits a declared type. Some data files say uint16 where they hold bfloat16.
bool hasType(HostTensor &tensor, RankedTensorType type) {
  uint32_t element = nn::getElementTypeId(type.getElementType());
  if (element == AJOUR_BF16 && tensor.elementType == AJOUR_U16)
    tensor.elementType = AJOUR_BF16;
  if (tensor.elementType != element || tensor.shape.size() != size_t(type.getRank()))
    return false;
  for (auto [size, declared] : llvm::zip(tensor.shape, type.getShape()))
    if (!ShapedType::isDynamic(declared) && declared != size)
      return false;
  return true;
}

using Named = std::map<std::string, HostTensor>;

/// Reads input_N.pb or output_N.pb; names come from the file or else from the model.
bool readTensors(const fs::path &set, const char *prefix, const std::vector<std::string> &names, Named &tensors,
                 std::string &error) {
  for (size_t i = 0; i < names.size(); ++i) {
    fs::path file = set / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(file))
      continue;
    if (!readTensorFile(file.string(), tensors[names[i]], error))
      return false;
  }
  return true;
}

struct ModelNames {
  std::vector<std::string> inputs, outputs;
};

/// Imports with the given inputs bound; null with the diagnostics in `error`.
OwningOpRef<ModuleOp> import(MLIRContext &context, const std::string &path, const Named &bindings, std::string &error) {
  DiagnosticCollector diagnostics(&context, path);
  ImportOptions options;
  options.bindings = bindings;
  OwningOpRef<ModuleOp> module = importONNX(&context, path, options);
  error = diagnostics.text();
  if (!module && error.empty())
    error = "failed without a message";
  return module;
}

Verdict runSet(const fs::path &folder, const fs::path &set, const ModelNames &names, const Executor &executor,
               std::string &message) {
  Named inputs, outputs, bindings;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string path = (folder / "model.onnx").string();
  if (!readTensors(set, "input_", names.inputs, inputs, message) ||
      !readTensors(set, "output_", names.outputs, outputs, message)) {
    // Sequences, optionals and strings: the importer says more.
    std::string refusal;
    if (!import(context, path, bindings, refusal))
      message = refusal;
    return Verdict::refused;
  }
  OwningOpRef<ModuleOp> module;
  // Binding one input may reveal that another is needed.
  for (size_t attempt = 0; !module && attempt <= names.inputs.size(); ++attempt) {
    module = import(context, path, bindings, message);
    size_t before = bindings.size();
    if (!module)
      for (const std::string &name : wantedBindings(message))
        if (inputs.count(name))
          bindings[name] = inputs[name];
    if (!module && bindings.size() == before)
      return Verdict::refused;
  }
  auto function = module->lookupSymbol<func::FuncOp>("main");
  std::vector<HostTensor> arguments, results;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = function.getArgAttrOfType<StringAttr>(i, "nn.name").str();
    if (!inputs.count(name)) {
      message = "no value for input " + name;
      return Verdict::wrong;
    }
    arguments.push_back(inputs[name]);
    if (!hasType(arguments.back(), cast<RankedTensorType>(function.getArgumentTypes()[i]))) {
      message = "test data does not have the type of input " + name;
      return Verdict::refused;
    }
  }
  if (!executor(*module, arguments, solveSymbols(*module, arguments), results, message))
    return Verdict::wrong;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    std::string name = function.getResultAttrOfType<StringAttr>(i, "nn.name").str();
    if (outputs.count(name))
      hasType(outputs[name], cast<RankedTensorType>(function.getResultTypes()[i]));
    if (outputs.count(name) && !agree(results[i], outputs[name], message)) {
      message = name + ": " + message;
      return Verdict::wrong;
    }
  }
  return Verdict::passed;
}

} // namespace

bool readTensorFile(const std::string &path, HostTensor &tensor, std::string &error) {
  ::onnx::TensorProto proto;
  if (!parseFile(path, proto) || !elementTypeOf(proto.data_type())) {
    error = "test data is not a tensor of numbers";
    return false;
  }
  tensor.elementType = elementTypeOf(proto.data_type());
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  tensor.data.clear();
  if (proto.has_raw_data())
    tensor.data.assign(proto.raw_data().begin(), proto.raw_data().end());
  else if (tensor.elementType == AJOUR_F32)
    fill<float>(tensor.data, proto.float_data());
  else if (tensor.elementType == AJOUR_F64)
    fill<double>(tensor.data, proto.double_data());
  else if (tensor.elementType == AJOUR_I64)
    fill<int64_t>(tensor.data, proto.int64_data());
  else if (tensor.elementType == AJOUR_U64)
    fill<uint64_t>(tensor.data, proto.uint64_data());
  else if (tensor.elementType == AJOUR_U32)
    fill<uint32_t>(tensor.data, proto.uint64_data());
  else if (ajour_element_size(tensor.elementType) == 4)
    fill<int32_t>(tensor.data, proto.int32_data());
  else if (ajour_element_size(tensor.elementType) == 2)
    fill<uint16_t>(tensor.data, proto.int32_data());
  else
    fill<uint8_t>(tensor.data, proto.int32_data());
  if (int64_t(tensor.data.size()) != tensor.numElements() * ajour_element_size(tensor.elementType)) {
    // An optional or a sequence parses as a tensor without data.
    error = "test data is not a tensor of numbers";
    return false;
  }
  return true;
}

bool agree(const HostTensor &found, const HostTensor &expected, std::string &difference) {
  if (found.elementType != expected.elementType || found.shape != expected.shape) {
    difference = "found " + shapeText(found) + ", expected " + shapeText(expected);
    return false;
  }
  if (!isFloat(expected.elementType)) {
    size_t size = ajour_element_size(expected.elementType);
    for (int64_t i = 0; i < expected.numElements(); ++i)
      if (memcmp(found.data.data() + i * size, expected.data.data() + i * size, size)) {
        difference = "element " + std::to_string(i) + " of " + shapeText(found) + " differs";
        return false;
      }
    return true;
  }
  // Narrow types cannot be as near as 1e-3: allow two units in the last place.
  double relative = expected.elementType == AJOUR_BF16 ? 1.0 / 64 : expected.elementType == AJOUR_F16 ? 1.0 / 512 : 1e-3;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    double a = valueAt(found, i), b = valueAt(expected, i);
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-7 + relative * std::abs(b);
    if (!same) {
      difference = "element " + std::to_string(i) + " of " + shapeText(found) + " is " + std::to_string(a) +
                   ", expected " + std::to_string(b);
      return false;
    }
  }
  return true;
}

bool interpretModule(ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &symbols,
                     std::vector<HostTensor> &outputs, std::string &error) {
  DiagnosticCollector diagnostics(module.getContext(), "model");
  auto results = interpret(module.lookupSymbol<func::FuncOp>("main"), inputs, symbols);
  if (failed(results)) {
    error = "interpretation failed: " + diagnostics.text();
    return false;
  }
  outputs = std::move(*results);
  return true;
}

CaseResult runCase(const std::string &folder, const Executor &executor) {
  CaseResult result{fs::path(folder).parent_path().filename().string() + "/" + fs::path(folder).filename().string(),
                    Verdict::passed, ""};
  ::onnx::ModelProto model;
  if (!parseFile(folder + "/model.onnx", model)) {
    result.verdict = Verdict::wrong;
    result.message = "model.onnx does not parse";
    return result;
  }
  ModelNames names;
  std::set<std::string> initializers;
  for (const auto &tensor : model.graph().initializer())
    initializers.insert(tensor.name());
  for (const auto &input : model.graph().input())
    if (!initializers.count(input.name()))
      names.inputs.push_back(input.name());
  for (const auto &output : model.graph().output())
    names.outputs.push_back(output.name());
  for (const auto &entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory())
      continue;
    result.verdict = runSet(folder, entry.path(), names, executor, result.message);
    if (result.verdict != Verdict::passed)
      break;
  }
  return result;
}

/// A refusal without what names the case: its file, node and types.
static std::string kindOf(const std::string &message) {
  std::string first = message.substr(0, message.find('\n'));
  size_t type = first.find(" (");
  size_t end = first.find(", #");
  size_t says = first.find("): ");
  if (type == std::string::npos || end == std::string::npos || says == std::string::npos)
    return first.substr(first.find(": error: ") == std::string::npos ? 0 : first.find(": error: ") + 9);
  std::string text = first.substr(says + 3);
  return first.substr(type + 2, end - type - 2) + ": " + text.substr(0, text.find(" ["));
}

void Tally::add(const CaseResult &result) {
  if (result.verdict == Verdict::passed) {
    ++passed;
  } else if (result.verdict == Verdict::refused) {
    ++refused;
    ++refusals[kindOf(result.message)];
  } else {
    ++wrong;
  }
}

void Tally::print() const {
  for (const auto &[message, count] : refusals)
    printf("refused %4d  %s\n", count, message.c_str());
  printf("passed %d, refused %d, wrong %d\n", passed, refused, wrong);
}

std::string testData() {
  const char *path = getenv("AJOUR_ONNX_TESTDATA");
  return path ? path : "/usr/share/libonnx-testdata/data";
}

std::vector<std::string> findCases(const std::string &root) {
  std::vector<std::string> cases;
  if (fs::exists(root))
    for (const auto &entry : fs::recursive_directory_iterator(root))
      if (entry.path().filename() == "model.onnx")
        cases.push_back(entry.path().parent_path().string());
  std::sort(cases.begin(), cases.end());
  return cases;
}

} // namespace ajour::conformance
