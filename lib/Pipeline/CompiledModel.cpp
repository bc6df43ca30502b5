//===- CompiledModel.cpp - a module compiled and run here ---------------------------------===//
#include "ajour/Pipeline/CompiledModel.h"

#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Target/CpuTarget.h"

#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace ajour {

std::vector<int64_t> readSymbols(func::FuncOp main, ArrayRef<HostTensor> inputs) {
  std::vector<int64_t> symbols;
  if (auto names = main->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>("nn.symbols"))
    symbols.resize(names.size());
  for (auto [type, input] : llvm::zip(main.getArgumentTypes(), inputs))
    for (auto [dim, size] : llvm::zip(nn::getDims(cast<RankedTensorType>(type)), input.shape))
      if (auto symbol = nn::matchSymbol(dim); symbol && symbol->position < symbols.size())
        symbols[symbol->position] = size / symbol->multiple;
  return symbols;
}

std::vector<std::string> runnableLevels() {
  std::vector<std::string> names;
  for (const CpuLevelInfo &info : cpuLevels())
    if ((info.featureSet & ajour_cpu_feature_bits()) == info.featureSet)
      names.push_back(info.name);
  return names;
}

std::unique_ptr<CompiledModel> CompiledModel::make(function_ref<LogicalResult(const std::string &)> write,
                                                   ModuleOp module) {
  std::unique_ptr<CompiledModel> made(new CompiledModel);
  auto main = module.lookupSymbol<func::FuncOp>("main");
  FailureOr<std::vector<nn::State>> states = nn::getStates(main);
  if (failed(states))
    return nullptr;
  made->arguments.resize(main.getNumArguments());
  made->results.resize(main.getNumResults());
  for (auto [i, state] : llvm::enumerate(*states)) {
    made->arguments[state.argument] = {true, uint32_t(i)};
    made->results[state.result] = {true, uint32_t(i)};
  }
  for (auto [i, argument] : llvm::enumerate(nn::inputArguments(main)))
    made->arguments[argument] = {false, uint32_t(i)};
  for (auto [i, result] : llvm::enumerate(nn::outputResults(main)))
    made->results[result] = {false, uint32_t(i)};
  SmallString<128> directory;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("ajour", directory)) {
    module.emitError() << "cannot make a temporary directory: " << error.message();
    return nullptr;
  }
  made->directory = directory.str().str();
  made->artifact = made->directory + "/model.ajour";
  if (failed(write(made->artifact)))
    return nullptr;
  return made;
}

std::unique_ptr<CompiledModel> CompiledModel::compile(ModuleOp module, const CompileOptions &options) {
  return make([&](const std::string &path) { return compileModule(module, path, options); }, module);
}

std::unique_ptr<CompiledModel> CompiledModel::write(ModuleOp module, const CompileOptions &options) {
  return make([&](const std::string &path) { return writeModule(module, path, options); }, module);
}

CompiledModel::~CompiledModel() {
  for (auto &[level, model] : models)
    ajour_model_destroy(model);
  llvm::sys::fs::remove(artifact);
  llvm::sys::fs::remove(directory);
}

static void observe(void *user, const ajour_observation *observation) {
  (*static_cast<const std::function<void(const ajour_observation &)> *>(user))(*observation);
}

bool CompiledModel::run(ArrayRef<HostTensor> inputs, std::vector<HostTensor> &outputs, std::string &error,
                        const RunOptions &options) {
  outputs.clear();
  auto failed = [&error](ajour_status_code status) {
    if (status != AJOUR_OK)
      error = ajour_last_message();
    return status != AJOUR_OK;
  };
  ajour_model *&model = models[options.level];
  if (!model) {
    ajour_load_options load = AJOUR_INIT(ajour_load_options);
    load.cpu_level = options.level.empty() ? nullptr : options.level.c_str();
    if (failed(ajour_model_load_file(artifact.c_str(), &load, &model)))
      return false;
  }
  ajour_session_options sessionOptions = AJOUR_INIT(ajour_session_options);
  sessionOptions.threads = options.threads;
  sessionOptions.flags = options.sessionFlags;
  ajour_session *session = nullptr;
  if (failed(ajour_session_create(model, &sessionOptions, &session)))
    return false;
  std::unique_ptr<ajour_session, void (*)(ajour_session *)> owner(session, ajour_session_destroy);
  for (auto [port, input] : llvm::zip(arguments, inputs))
    if (failed(port.isState ? ajour_session_set_state(session, port.index, input.data.data(), input.data.size())
                            : ajour_session_set_input(session, port.index, input.data.data(), input.shape.data(),
                                                      input.shape.size())))
      return false;
  if (options.observer && failed(ajour_session_set_observer(session, observe, const_cast<void *>(static_cast<const void *>(
                                                                                  &options.observer)))))
    return false;
  if (failed(ajour_session_run(session)))
    return false;
  for (const Port &port : results) {
    ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
    if (failed(port.isState ? ajour_session_state(session, port.index, &view)
                            : ajour_session_output(session, port.index, &view)))
      return false;
    HostTensor output{view.element_type, {view.dims, view.dims + view.rank}, {}};
    output.data.assign(static_cast<const char *>(view.data), static_cast<const char *>(view.data) + view.bytes);
    outputs.push_back(std::move(output));
  }
  return true;
}

} // namespace ajour
