//===- OnnxRuntime.cpp - ONNX Runtime as a peer ---------------------------===//
//
// ONNX Runtime's C API is a table of function pointers that only grows at its end, so a function is known by its place in the
// table of version 1. The few that are needed are listed here with their place and signature; nothing of its headers is used.
//
//===----------------------------------------------------------------------===//

#include "Peers/Engine.h"

#include <cstring>
#include <dlfcn.h>

namespace ajour::tools {

namespace {

using Status = void *;
using Object = void *;

/// Places in the table of functions.
enum Slot : size_t {
  GetErrorMessage = 2,
  CreateEnv = 3,
  CreateSession = 7,
  Run = 9,
  CreateSessionOptions = 10,
  SetSessionGraphOptimizationLevel = 23,
  SetIntraOpNumThreads = 24,
  SetInterOpNumThreads = 25,
  SessionGetInputCount = 30,
  SessionGetOutputCount = 31,
  SessionGetInputName = 36,
  SessionGetOutputName = 37,
  CreateTensorWithData = 49,
  GetTensorMutableData = 51,
  GetTensorElementType = 60,
  GetDimensionsCount = 61,
  GetDimensions = 62,
  GetTensorTypeAndShape = 65,
  CreateCpuMemoryInfo = 69,
  AllocatorFree = 76,
  GetDefaultAllocator = 78,
  ReleaseEnv = 92,
  ReleaseStatus = 93,
  ReleaseMemoryInfo = 94,
  ReleaseSession = 95,
  ReleaseValue = 96,
  ReleaseTensorTypeAndShape = 99,
  ReleaseSessionOptions = 100,
};

/// What the library exports: a way to ask for a version's table.
struct ApiBase {
  const void *const *(*getApi)(uint32_t version);
  const char *(*getVersionString)();
};

/// ONNX numbers of the element types (TensorProto.DataType).
constexpr std::pair<uint32_t, int> elementTypes[] = {
    {AJOUR_F32, 1},  {AJOUR_U8, 2},   {AJOUR_I8, 3},   {AJOUR_U16, 4},  {AJOUR_I16, 5},  {AJOUR_I32, 6},  {AJOUR_I64, 7},
    {AJOUR_BOOL, 9}, {AJOUR_F16, 10}, {AJOUR_F64, 11}, {AJOUR_U32, 12}, {AJOUR_U64, 13}, {AJOUR_BF16, 16}};

int toOnnxType(uint32_t type) {
  for (auto [ours, theirs] : elementTypes)
    if (ours == type)
      return theirs;
  return 0;
}

uint32_t fromOnnxType(int type) {
  for (auto [ours, theirs] : elementTypes)
    if (theirs == type)
      return ours;
  throw ToolError("onnxruntime: an output has ONNX element type " + std::to_string(type) + ", which is not supported");
}

class OnnxRuntime : public Engine {
public:
  explicit OnnxRuntime(const EngineConfig &config) : config(config) {
    loadApi();
    check(call(CreateEnv, /*ORT_LOGGING_LEVEL_ERROR*/ 3, "ajour", &env));
    check(call(CreateSessionOptions, &options));
    check(call(SetIntraOpNumThreads, options, static_cast<int>(config.threads)));
    check(call(SetInterOpNumThreads, options, 1));
    check(call(SetSessionGraphOptimizationLevel, options, /*ORT_ENABLE_ALL*/ 99));
    check(call(CreateSession, env, config.model.c_str(), options, &session));
    check(call(CreateCpuMemoryInfo, /*OrtArenaAllocator*/ 1, /*OrtMemTypeDefault*/ 0, &memory));
    check(call(GetDefaultAllocator, &allocator));
    inputNames = names(SessionGetInputCount, SessionGetInputName);
    outputNames = names(SessionGetOutputCount, SessionGetOutputName);
    createInputs();
  }

  ~OnnxRuntime() override {
    releaseOutputs();
    for (Object value : inputValues)
      release(ReleaseValue, value);
    release(ReleaseMemoryInfo, memory);
    release(ReleaseSession, session);
    release(ReleaseSessionOptions, options);
    release(ReleaseEnv, env);
  }

  std::string version() const override { return versionText; }

  void run() override {
    releaseOutputs();
    outputValues.assign(outputNames.size(), nullptr);
    std::vector<const char *> inputs, outputs;
    for (const std::string &name : inputNames)
      inputs.push_back(name.c_str());
    for (const std::string &name : outputNames)
      outputs.push_back(name.c_str());
    check(call(Run, session, Object(nullptr), inputs.data(), inputValues.data(), inputs.size(), outputs.data(),
               outputs.size(), outputValues.data()));
  }

  std::vector<HostTensor> outputs() override {
    std::vector<HostTensor> tensors;
    for (Object value : outputValues) {
      Object shape = nullptr;
      int type = 0;
      size_t rank = 0;
      check(call(GetTensorTypeAndShape, value, &shape));
      check(call(GetTensorElementType, shape, &type));
      check(call(GetDimensionsCount, shape, &rank));
      std::vector<int64_t> dims(rank);
      check(call(GetDimensions, shape, dims.data(), rank));
      release(ReleaseTensorTypeAndShape, shape);
      HostTensor tensor = makeTensor(fromOnnxType(type), dims);
      void *data = nullptr;
      check(call(GetTensorMutableData, value, &data));
      std::memcpy(tensor.data.data(), data, tensor.data.size());
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

private:
  void loadApi() {
    void *library = openLibrary(
        config.library, {"libonnxruntime.so.1", "libonnxruntime.so"},
        "npm install --ignore-scripts onnxruntime-node, then --against onnxruntime=node_modules/onnxruntime-node");
    auto getBase = reinterpret_cast<const ApiBase *(*)()>(dlsym(library, "OrtGetApiBase"));
    if (!getBase)
      throw ToolError(config.library + ": not ONNX Runtime: it has no OrtGetApiBase");
    const ApiBase *base = getBase();
    api = base->getApi(1);
    if (!api)
      throw ToolError(config.library + ": ONNX Runtime " + base->getVersionString() + " has no C API of version 1");
    versionText = base->getVersionString();
  }

  /// Calls a function that returns a status. The arguments must have exactly the types of the C declaration.
  template <typename... Args> Status call(Slot slot, Args... args) const {
    return reinterpret_cast<Status (*)(Args...)>(const_cast<void *>(api[slot]))(args...);
  }

  void release(Slot slot, Object object) const {
    if (object)
      reinterpret_cast<void (*)(Object)>(const_cast<void *>(api[slot]))(object);
  }

  void check(Status status) const {
    if (!status)
      return;
    auto message = reinterpret_cast<const char *(*)(Status)>(const_cast<void *>(api[GetErrorMessage]));
    std::string text = config.model + ": onnxruntime: " + message(status);
    release(ReleaseStatus, status);
    throw ToolError(text);
  }

  std::vector<std::string> names(Slot countSlot, Slot nameSlot) const {
    size_t count = 0;
    check(call(countSlot, session, &count));
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) {
      char *name = nullptr;
      check(call(nameSlot, session, i, allocator, &name));
      result.push_back(name);
      check(call(AllocatorFree, allocator, static_cast<void *>(name)));
    }
    return result;
  }

  /// Matches the tensors by name, or by place where no name fits (an importer may have renamed them).
  void createInputs() {
    if (inputNames.size() != config.inputs.size())
      throw ToolError(config.model + ": has " + std::to_string(inputNames.size()) + " inputs, the artifact has " +
                      std::to_string(config.inputs.size()));
    for (size_t i = 0; i < inputNames.size(); ++i) {
      const HostTensor *tensor = &config.inputs[i].tensor;
      for (const NamedTensor &named : config.inputs)
        if (named.name == inputNames[i])
          tensor = &named.tensor;
      Object value = nullptr;
      check(call(CreateTensorWithData, memory, static_cast<void *>(const_cast<std::byte *>(tensor->data.data())),
                 tensor->data.size(), tensor->shape.data(), tensor->shape.size(), toOnnxType(tensor->type), &value));
      inputValues.push_back(value);
    }
  }

  void releaseOutputs() {
    for (Object value : outputValues)
      release(ReleaseValue, value);
    outputValues.clear();
  }

  const EngineConfig config;
  const void *const *api = nullptr;
  std::string versionText;
  Object env = nullptr, options = nullptr, session = nullptr, memory = nullptr, allocator = nullptr;
  std::vector<std::string> inputNames, outputNames;
  std::vector<Object> inputValues, outputValues;
};

} // namespace

std::unique_ptr<Engine> createOnnxRuntime(const EngineConfig &config) { return std::make_unique<OnnxRuntime>(config); }

} // namespace ajour::tools
