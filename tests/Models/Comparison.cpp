//===- Comparison.cpp - executors that compare compiled code with another -----------===//
#include "Models/Comparison.h"
#include "Support/CompiledModel.h"
#include "Support/ModelFiles.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Outputs.h"

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Pipeline/Verify.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Target/CpuTarget.h"

#include <filesystem>

using namespace mlir;

namespace ajour::test {

void expectAgreement(const std::vector<HostTensor> &found, const std::vector<HostTensor> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].elementType, expected[i].elementType) << "output " << i;
    ASSERT_EQ(found[i].shape, expected[i].shape) << "output " << i;
    TensorDifference difference = compareTensors(found[i], expected[i], /*tolerance=*/1e-4, /*steps=*/0);
    EXPECT_FALSE(difference.differs) << "output " << i << " element " << difference.index << ": " << difference.found
                                     << ", expected " << difference.expected << "; " << difference.count
                                     << " elements differ";
  }
}

bool checksAll() { return getenv("AJOUR_ALL_PICTURES") != nullptr; }

//===----------------------------------------------------------------------===//
// This machine
//===----------------------------------------------------------------------===//

namespace {

struct NativeState {
  std::shared_ptr<CompiledModel> compiled;
  std::vector<std::string> levels{""};
  ModuleOp module;
  int references = 0; ///< runs left that are also interpreted

  std::vector<HostTensor> run(const std::vector<HostTensor> &inputs) {
    std::vector<HostTensor> outputs;
    for (const std::string &level : levels) {
      SCOPED_TRACE(level);
      CompiledModel::RunOptions options;
      options.level = level;
      std::vector<HostTensor> found;
      std::string error = "not compiled";
      if (!compiled || !compiled->run(inputs, found, error, options)) {
        ADD_FAILURE() << "cannot run: " << error;
        return {};
      }
      if (!outputs.empty())
        expectAgreement(found, outputs);
      outputs = std::move(found);
    }
    if (references-- > 0) {
      auto main = module.lookupSymbol<func::FuncOp>("main");
      auto expected = interpret(main, inputs, readSymbols(main, inputs));
      EXPECT_TRUE(succeeded(expected));
      if (succeeded(expected))
        expectAgreement(outputs, *expected);
    }
    return outputs;
  }
};

} // namespace

Prepare compiledAndCompared(int references, bool everyLevel) {
  return [=](ModuleOp module) {
    auto state = std::make_shared<NativeState>();
    CompileOptions options = oneLevel();
    if (everyLevel && !getenv("AJOUR_CPU")) {
      options.levels.clear();
      state->levels = runnableLevels();
    }
    state->compiled = compileClone(module, options);
    state->module = module;
    state->references = references;
    return [state](const std::vector<HostTensor> &inputs) { return state->run(inputs); };
  };
}

//===----------------------------------------------------------------------===//
// aarch64
//===----------------------------------------------------------------------===//

std::string findAarch64Runner() {
  const char *named = getenv("AJOUR_RUN_AARCH64");
  std::string path = named && *named ? named : AJOUR_RUN_AARCH64_PATH;
  bool emulator = std::system("command -v qemu-aarch64 > /dev/null") == 0;
  return emulator && std::filesystem::exists(path) ? path : "";
}

namespace {

struct EmulatedState {
  std::shared_ptr<CompiledModel> native;
  std::filesystem::path directory;
  std::vector<tools::TensorInfo> inputs, outputs;
  bool compiled = false;

  EmulatedState() {
    std::string name = (std::filesystem::temp_directory_path() / "ajour-aarch64.XXXXXX").string();
    EXPECT_TRUE(mkdtemp(name.data()));
    directory = name;
  }
  ~EmulatedState() { std::filesystem::remove_all(directory); }
  EmulatedState(const EmulatedState &) = delete;

  void compile(ModuleOp module);
  bool runLevel(const char *level, std::vector<HostTensor> &results);
  std::vector<HostTensor> run(const std::vector<HostTensor> &values);
};

/// Names and types as the programs see them.
tools::TensorInfo infoOf(Type type, Attribute name) {
  tools::TensorInfo info;
  info.name = cast<StringAttr>(name).str();
  info.shape = cast<RankedTensorType>(type).getShape().vec();
  return info;
}

void EmulatedState::compile(ModuleOp module) {
  native = compileClone(module);
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (auto [i, type] : llvm::enumerate(main.getArgumentTypes()))
    inputs.push_back(infoOf(type, main.getArgAttr(i, "nn.name")));
  for (auto [i, type] : llvm::enumerate(main.getResultTypes()))
    outputs.push_back(infoOf(type, main.getResultAttr(i, "nn.name")));
  CompileOptions options;
  for (const CpuLevelInfo &info : cpuLevels())
    if (info.arch == AJOUR_ARCH_AARCH64)
      options.levels.push_back(info.level);
  DiagnosticCollector diagnostics(module.getContext(), "model");
  OwningOpRef<ModuleOp> clone = module.clone();
  compiled = succeeded(compileModule(*clone, directory / "model.ajour", options));
  EXPECT_TRUE(compiled) << diagnostics.text();
}

bool EmulatedState::runLevel(const char *level, std::vector<HostTensor> &results) {
  std::string out = directory / level, log = directory / "log";
  std::string command = "AJOUR_CPU=" + std::string(level) + " qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu " +
                        findAarch64Runner() + " run " + (directory / "model.ajour").string() + " -o " + out;
  for (size_t i = 0; i < inputs.size(); ++i)
    command += " -i '" + (inputs.size() > 1 ? inputs[i].name + "=" : "") + (directory / std::to_string(i)).string() +
               ".npy'";
  if (std::system((command + " > " + log + " 2>&1").c_str()) != 0) {
    ADD_FAILURE() << command << "\n" << readFile(log);
    return false;
  }
  for (const std::string &name : tools::outputFileNames(outputs)) {
    tools::HostTensor array = tools::readNpy(out + "/" + name + ".npy");
    const char *bytes = reinterpret_cast<const char *>(array.data.data());
    results.push_back({array.type, array.shape, {bytes, bytes + array.data.size()}});
  }
  return true;
}

std::vector<HostTensor> EmulatedState::run(const std::vector<HostTensor> &values) {
  std::vector<HostTensor> expected;
  std::string error = "not compiled";
  if (!compiled || !native || !native->run(values, expected, error)) {
    ADD_FAILURE() << "cannot run: " << error;
    return {};
  }
  for (auto [i, value] : llvm::enumerate(values)) {
    auto bytes = std::as_bytes(std::span(value.data));
    tools::writeNpy((directory / std::to_string(i)).string() + ".npy",
                    {value.elementType, value.shape, {bytes.begin(), bytes.end()}});
  }
  for (const CpuLevelInfo &info : cpuLevels()) {
    if (info.arch != AJOUR_ARCH_AARCH64)
      continue;
    SCOPED_TRACE(info.name);
    std::vector<HostTensor> found;
    if (!runLevel(info.name, found))
      return {};
    expectAgreement(found, expected);
  }
  return expected;
}

} // namespace

Prepare emulatedAndCompared() {
  return [](ModuleOp module) {
    auto state = std::make_shared<EmulatedState>();
    state->compile(module);
    return [state](const std::vector<HostTensor> &inputs) { return state->run(inputs); };
  };
}

} // namespace ajour::test
