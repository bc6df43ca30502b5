//===- LlamaCpp.cpp - llama.cpp as a peer ---------------------------------===//
//
// Of llama.cpp's C interface a dozen functions are needed, which are declared here. Its parameter structures have grown often, so they
// are passed through as blocks of bytes larger than any of them: they go by value in memory, where a callee finds its own at the
// beginning. Of the fields only the first three of a context's are changed, which are looked at first.
//
//===----------------------------------------------------------------------===//

#include "Peers/Engine.h"

#include <cstring>
#include <dlfcn.h>
#include <filesystem>

namespace ajour::tools {

namespace {

using Object = void *;

/// llama_model_params or llama_context_params, with room behind.
struct alignas(8) Parameters {
  unsigned char bytes[1024];
};

/// llama_context_params begins with them.
struct ContextSizes {
  uint32_t context, batch, microBatch;
};
/// Their values in the default parameters of every version so far.
constexpr ContextSizes defaultSizes = {512, 2048, 512};

/// llama_batch. Null pointers: positions follow on, and logits are wanted for the last token.
struct Batch {
  int32_t count;
  int32_t *tokens;
  float *embeddings;
  int32_t *positions, *sequenceCounts;
  int32_t **sequences;
  int8_t *wanted;
};
static_assert(sizeof(Batch) == 56);

void ignoreMessage(int, const char *, void *) {}

constexpr const char *howToGet = "npm install --ignore-scripts @node-llama-cpp/linux-x64 (or linux-arm64), then --against "
                                 "llama.cpp=node_modules/@node-llama-cpp";

class LlamaCpp : public LanguageEngine {
public:
  explicit LlamaCpp(const EngineConfig &config) : config(config) {
    loadLibrary();
    setLog(ignoreMessage, nullptr);
    // A library that was built with its backends has no such function.
    if (loadBackends)
      loadBackends(std::filesystem::path(libraryFile).parent_path().c_str());
    model = loadModel(config.model.c_str(), defaultModelParameters());
    if (!model)
      throw ToolError(config.model + ": llama.cpp cannot load the model");
    createContext();
  }

  ~LlamaCpp() override {
    if (context)
      freeContext(context);
    if (model)
      freeModel(model);
  }

  std::string version() const override { return versionText; }
  WeightCounts weights() const override { return {countWeights(model), countBytes(model)}; }
  uint32_t vocabulary() const override { return uint32_t(std::max(countTokens(getVocabulary(model)), 0)); }

  void prompt(const std::vector<int32_t> &tokens) override {
    clearMemory(getMemory(context), true);
    for (size_t done = 0; done < tokens.size();) {
      size_t count = std::min<size_t>(tokens.size() - done, defaultSizes.microBatch);
      give(tokens.data() + done, count);
      done += count;
    }
    synchronize(context);
  }

  void rewind(const std::vector<int32_t> &tokens) override {
    // A state that is not kept for each position cannot be cut.
    if (!cutMemory || !cutMemory(getMemory(context), -1, int32_t(tokens.size()), -1))
      prompt(tokens);
  }

  void generate(uint32_t count) override {
    // Which tokens they are does not matter to the time.
    for (uint32_t i = 0; i < count; ++i) {
      int32_t token = int32_t(1 + i % (vocabulary() - 1));
      give(&token, 1);
      synchronize(context);
    }
  }

  std::vector<HostTensor> outputs() override {
    const float *logits = getLogits(context, -1);
    if (!logits)
      return {};
    HostTensor tensor = makeTensor(AJOUR_F32, {int64_t(vocabulary())});
    std::memcpy(tensor.data.data(), logits, tensor.data.size());
    return {std::move(tensor)};
  }

private:
  template <typename Function> void find(Function &function, const char *name, bool needed = true) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function && needed)
      throw ToolError(libraryFile + ": not a llama.cpp that is known: it has no " + name);
  }

  void loadLibrary() {
    library = openLibrary(config.library, {"libllama.so", "libllama.*.so"}, howToGet);
    libraryFile = config.library.empty() ? "libllama.so" : config.library;
    find(setLog, "llama_log_set");
    Dl_info info;
    if (dladdr(reinterpret_cast<void *>(setLog), &info) && info.dli_fname)
      libraryFile = info.dli_fname;
    find(loadBackends, "ggml_backend_load_all_from_path", false);
    find(defaultModelParameters, "llama_model_default_params");
    find(defaultContextParameters, "llama_context_default_params");
    find(loadModel, "llama_model_load_from_file");
    find(freeModel, "llama_model_free");
    find(createFromModel, "llama_init_from_model");
    find(freeContext, "llama_free");
    find(setThreads, "llama_set_n_threads");
    find(decode, "llama_decode");
    find(synchronize, "llama_synchronize");
    find(getMemory, "llama_get_memory");
    find(clearMemory, "llama_memory_clear");
    find(cutMemory, "llama_memory_seq_rm", false);
    find(getLogits, "llama_get_logits_ith");
    find(getVocabulary, "llama_model_get_vocab");
    find(countTokens, "llama_vocab_n_tokens");
    find(countWeights, "llama_model_n_params");
    find(countBytes, "llama_model_size");
    describeVersion();
  }

  /// The release is part of the file's name, if at all.
  void describeVersion() {
    std::error_code error;
    std::string name = std::filesystem::canonical(libraryFile, error).filename().string();
    if (std::string_view rest = name; !error && rest.starts_with("libllama.") && rest.ends_with(".so") && rest.size() > 12)
      versionText = rest.substr(9, rest.size() - 12);
    const char *(*getVersion)();
    find(getVersion, "ggml_version", false);
    if (getVersion)
      versionText += (versionText.empty() ? "ggml " : ", ggml ") + std::string(getVersion());
  }

  void createContext() {
    Parameters parameters = defaultContextParameters();
    ContextSizes sizes;
    std::memcpy(&sizes, &parameters, sizeof(sizes));
    if (sizes.context != defaultSizes.context || sizes.batch != defaultSizes.batch || sizes.microBatch != defaultSizes.microBatch)
      throw ToolError(libraryFile + ": not a llama.cpp that is known: its default context of " + std::to_string(sizes.context) +
                      " tokens in batches of " + std::to_string(sizes.batch) + " and " + std::to_string(sizes.microBatch) +
                      " differs, expected 512, 2048 and 512");
    sizes.context = config.context;
    std::memcpy(&parameters, &sizes, sizeof(sizes));
    context = createFromModel(model, parameters);
    if (!context)
      throw ToolError(config.model + ": llama.cpp cannot make a context of " + std::to_string(config.context) + " tokens");
    setThreads(context, int32_t(config.threads), int32_t(config.threads));
  }

  void give(const int32_t *tokens, size_t count) {
    Batch batch{int32_t(count), const_cast<int32_t *>(tokens), nullptr, nullptr, nullptr, nullptr, nullptr};
    if (int status = decode(context, batch))
      throw ToolError(config.model + ": llama.cpp: llama_decode fails with " + std::to_string(status));
  }

  const EngineConfig config;
  std::string libraryFile, versionText;
  void *library = nullptr;
  Object model = nullptr, context = nullptr;

  void (*setLog)(void (*)(int, const char *, void *), void *) = nullptr;
  void (*loadBackends)(const char *directory) = nullptr;
  Parameters (*defaultModelParameters)() = nullptr;
  Parameters (*defaultContextParameters)() = nullptr;
  Object (*loadModel)(const char *path, Parameters parameters) = nullptr;
  void (*freeModel)(Object model) = nullptr;
  Object (*createFromModel)(Object model, Parameters parameters) = nullptr;
  void (*freeContext)(Object context) = nullptr;
  void (*setThreads)(Object context, int32_t one, int32_t batch) = nullptr;
  int32_t (*decode)(Object context, Batch batch) = nullptr;
  void (*synchronize)(Object context) = nullptr;
  Object (*getMemory)(Object context) = nullptr;
  void (*clearMemory)(Object memory, bool data) = nullptr;
  bool (*cutMemory)(Object memory, int32_t sequence, int32_t from, int32_t to) = nullptr;
  float *(*getLogits)(Object context, int32_t index) = nullptr;
  Object (*getVocabulary)(Object model) = nullptr;
  int32_t (*countTokens)(Object vocabulary) = nullptr;
  uint64_t (*countWeights)(Object model) = nullptr;
  uint64_t (*countBytes)(Object model) = nullptr;
};

} // namespace

std::unique_ptr<LanguageEngine> createLlamaCpp(const EngineConfig &config) { return std::make_unique<LlamaCpp>(config); }

} // namespace ajour::tools
