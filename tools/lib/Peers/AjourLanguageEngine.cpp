//===- AjourLanguageEngine.cpp - Our runtime as an engine of language models ----------===//

#include "Peers/Engine.h"
#include "ToolSupport/RuntimeModel.h"

#include <cstring>

namespace ajour::tools {

namespace {

struct GeneratorDeleter {
  void operator()(ajour_generator *generator) const { ajour_generator_destroy(generator); }
};

class AjourLanguageEngine : public LanguageEngine {
public:
  explicit AjourLanguageEngine(const EngineConfig &config) : model(loadModel(config.model)), session(createSession(model.get(), config.threads)) {
    ajour_generator *created = nullptr;
    // Without a tokenizer no token ends a text.
    check(ajour_generator_create(session.get(), nullptr, &created));
    generator.reset(created);
    check(ajour_generator_get_info(generator.get(), &info));
    if (info.context >= 0 && info.context < int64_t(config.context))
      throw ToolError(config.model + ": takes " + std::to_string(info.context) + " tokens in all, and " + std::to_string(config.context) +
                      " are asked for; give smaller --prompt and --generate, or compile with a larger --dim length");
  }

  std::string version() const override { return std::string(ajour_version()) + " " + modelInfo(model.get()).cpu_level; }
  uint32_t vocabulary() const override { return uint32_t(info.vocabulary); }

  WeightCounts weights() const override {
    ajour_model_info whole = modelInfo(model.get());
    return {whole.weight_count, whole.weight_bytes};
  }

  void prompt(const std::vector<int32_t> &tokens) override {
    check(ajour_generator_reset(generator.get()));
    check(ajour_generator_set_prompt(generator.get(), tokens.data(), tokens.size(), nullptr));
  }

  void rewind(const std::vector<int32_t> &tokens) override {
    check(ajour_generator_set_prompt(generator.get(), tokens.data(), tokens.size(), nullptr));
  }

  void generate(uint32_t count) override {
    // The token chosen last is not given to the model any more.
    ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
    options.max_tokens = uint64_t(count) + 1;
    check(ajour_generator_generate(generator.get(), &options, nullptr));
  }

  std::vector<HostTensor> outputs() override {
    const float *logits = nullptr;
    size_t count = 0;
    check(ajour_generator_logits(generator.get(), &logits, &count));
    HostTensor tensor = makeTensor(AJOUR_F32, {int64_t(count)});
    std::memcpy(tensor.data.data(), logits, tensor.data.size());
    return {std::move(tensor)};
  }

private:
  ModelPointer model;
  SessionPointer session;
  std::unique_ptr<ajour_generator, GeneratorDeleter> generator;
  ajour_generator_info info = AJOUR_INIT(ajour_generator_info);
};

} // namespace

std::unique_ptr<LanguageEngine> createAjourLanguageEngine(const EngineConfig &config) { return std::make_unique<AjourLanguageEngine>(config); }

} // namespace ajour::tools
