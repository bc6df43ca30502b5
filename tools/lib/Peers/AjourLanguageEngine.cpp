//===- AjourLanguageEngine.cpp - Our runtime as an engine of language models ----------===//

#include "Peers/Engine.h"
#include "ToolSupport/RuntimeModel.h"

#include <algorithm>
#include <cstring>

namespace ajour::tools {

namespace {

class AjourLanguageEngine : public LanguageEngine {
public:
  explicit AjourLanguageEngine(const EngineConfig &config)
      : model(loadModel(config.model)), session(createSession(model.get(), config.threads)), inputs(inputInfos(model.get())) {
    for (const char *name : {"tokens", "positions", "visible"})
      if (ajour_model_find_input(model.get(), name) < 0 || inputs.size() != 3)
        throw ToolError(config.model + ": is no language model that bench can drive: its inputs are not 'tokens', 'positions' and 'visible'");
    batch = boundOf("tokens");
    if (int64_t context = boundOf("length"); context < int64_t(config.context))
      throw ToolError(config.model + ": takes " + std::to_string(context) + " tokens in all, and " + std::to_string(config.context) +
                      " are asked for; give smaller --prompt and --generate, or compile with a larger --dim length");
    output = uint32_t(ajour_model_find_output(model.get(), "logits"));
    width = outputInfos(model.get())[output].shape.back();
  }

  std::string version() const override { return std::string(ajour_version()) + " " + modelInfo(model.get()).cpu_level; }
  uint32_t vocabulary() const override { return uint32_t(width); }

  WeightCounts weights() const override {
    ajour_model_info whole = modelInfo(model.get());
    return {whole.weight_count, whole.weight_bytes};
  }

  void prompt(const std::vector<int32_t> &tokens) override {
    check(ajour_session_reset_state(session.get()));
    length = 0;
    for (size_t done = 0; done < tokens.size();) {
      int64_t count = std::min<int64_t>(int64_t(tokens.size() - done), batch);
      give(tokens.data() + done, count);
      done += size_t(count);
    }
  }

  void generate(uint32_t count) override {
    for (uint32_t i = 0; i < count; ++i) {
      const float *logits = lastLogits();
      int32_t token = int32_t(std::max_element(logits, logits + width) - logits);
      give(&token, 1);
    }
  }

  std::vector<HostTensor> outputs() override {
    HostTensor tensor = makeTensor(AJOUR_F32, {width});
    std::memcpy(tensor.data.data(), lastLogits(), tensor.data.size());
    return {std::move(tensor)};
  }

private:
  int64_t boundOf(const std::string &name) const {
    for (uint32_t i = 0, e = modelInfo(model.get()).symbol_count; i < e; ++i) {
      ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
      check(ajour_model_symbol(model.get(), i, &symbol));
      if (name == symbol.name)
        return symbol.max < 0 ? INT64_MAX : symbol.max;
    }
    return 1;
  }

  /// Gives the model some more tokens.
  void give(const int32_t *ids, int64_t count) {
    int64_t total = length + count;
    std::vector<int64_t> tokens(ids, ids + count), positions(tokens.size());
    std::vector<uint8_t> visible(size_t(count * total));
    for (int64_t i = 0; i < count; ++i) {
      positions[size_t(i)] = length + i;
      std::fill_n(visible.begin() + i * total, length + i + 1, uint8_t(1));
    }
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      bool isMask = inputs[i].name == "visible";
      const void *data = isMask ? static_cast<const void *>(visible.data()) : inputs[i].name == "tokens" ? tokens.data() : positions.data();
      int64_t shape[2] = {count, total};
      check(ajour_session_set_input(session.get(), i, data, shape, isMask ? 2 : 1));
    }
    check(ajour_session_run(session.get()));
    length = total;
  }

  const float *lastLogits() const {
    ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
    check(ajour_session_output(session.get(), output, &view));
    return static_cast<const float *>(view.data) + (view.bytes / sizeof(float) - size_t(width));
  }

  ModelPointer model;
  SessionPointer session;
  std::vector<TensorInfo> inputs;
  uint32_t output = 0;
  int64_t width = 0, batch = 1, length = 0;
};

} // namespace

std::unique_ptr<LanguageEngine> createAjourLanguageEngine(const EngineConfig &config) { return std::make_unique<AjourLanguageEngine>(config); }

} // namespace ajour::tools
