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
#include "ajour/Reference/State.h"
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
  /// `options` go to the program.
  bool runLevel(const char *level, std::vector<HostTensor> &results, const std::string &options);
  std::vector<HostTensor> run(const std::vector<HostTensor> &values);
  /// Writes inputs, runs every level and compares.
  bool compareLevels(const std::vector<HostTensor> &values, const std::vector<HostTensor> &expected,
                     const std::string &options = "");
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
  for (unsigned i : nn::inputArguments(main))
    inputs.push_back(infoOf(main.getArgumentTypes()[i], main.getArgAttr(i, "nn.name")));
  for (unsigned i : nn::outputResults(main))
    outputs.push_back(infoOf(main.getResultTypes()[i], main.getResultAttr(i, "nn.name")));
  CompileOptions options;
  for (const CpuLevelInfo &info : cpuLevels())
    if (info.arch == AJOUR_ARCH_AARCH64)
      options.levels.push_back(info.level);
  DiagnosticCollector diagnostics(module.getContext(), "model");
  OwningOpRef<ModuleOp> clone = module.clone();
  compiled = succeeded(compileModule(*clone, directory / "model.ajour", options));
  EXPECT_TRUE(compiled) << diagnostics.text();
}

bool EmulatedState::runLevel(const char *level, std::vector<HostTensor> &results, const std::string &options) {
  std::string out = directory / level, log = directory / "log";
  std::string command = "AJOUR_CPU=" + std::string(level) + " qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu " +
                        findAarch64Runner() + " run " + (directory / "model.ajour").string() + options + " -o " + out;
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
  return compareLevels(values, expected) ? expected : std::vector<HostTensor>();
}

bool EmulatedState::compareLevels(const std::vector<HostTensor> &values, const std::vector<HostTensor> &expected,
                                  const std::string &options) {
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
    if (!runLevel(info.name, found, options))
      return false;
    expectAgreement(found, expected);
  }
  return true;
}

} // namespace

void expectEmulatedSequence(ModuleOp module, const std::vector<HostTensor> &sequences) {
  EmulatedState state;
  state.compile(module);
  auto main = module.lookupSymbol<func::FuncOp>("main");
  std::vector<unsigned> inputs = nn::inputArguments(main), outputs = nn::outputResults(main);
  ASSERT_TRUE(state.compiled && state.native);
  ASSERT_EQ(sequences.size(), inputs.size());
  int64_t calls = sequences[0].shape[0];
  std::vector<HostTensor> arguments, expected(outputs.size());
  for (int64_t call = 0; call < calls; ++call) {
    std::vector<HostTensor> frame;
    for (const HostTensor &sequence : sequences) {
      int64_t bytes = int64_t(sequence.data.size()) / calls;
      auto begin = sequence.data.begin() + call * bytes;
      frame.push_back({sequence.elementType, {sequence.shape.begin() + 1, sequence.shape.end()}, {begin, begin + bytes}});
    }
    if (call == 0)
      arguments = withInitialStates(main, frame);
    for (auto [input, tensor] : llvm::zip_equal(inputs, frame))
      arguments[input] = tensor;
    std::vector<HostTensor> results;
    std::string error;
    ASSERT_TRUE(state.native->run(arguments, results, error)) << error;
    for (auto [all, output] : llvm::zip_equal(expected, outputs)) {
      all.elementType = results[output].elementType;
      all.shape = results[output].shape;
      all.shape.insert(all.shape.begin(), calls);
      all.data.insert(all.data.end(), results[output].data.begin(), results[output].data.end());
    }
    carryStates(main, results, arguments);
  }
  EXPECT_TRUE(state.compareLevels(sequences, expected, " --sequence"));
}

Prepare emulatedAndCompared() {
  return [](ModuleOp module) {
    auto state = std::make_shared<EmulatedState>();
    state->compile(module);
    return [state](const std::vector<HostTensor> &inputs) { return state->run(inputs); };
  };
}

} // namespace ajour::test
