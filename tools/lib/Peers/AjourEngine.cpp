//===- AjourEngine.cpp - Our runtime as an engine -------------------------===//

#include "Peers/Engine.h"
#include "ToolSupport/RuntimeModel.h"

namespace ajour::tools {

namespace {

class AjourEngine : public Engine {
public:
  explicit AjourEngine(const EngineConfig &config)
      : model(loadModel(config.model)), session(createSession(model.get(), config.threads)) {
    for (uint32_t i = 0; i < config.inputs.size(); ++i)
      setInput(session.get(), i, config.inputs[i].tensor);
  }

  std::string version() const override { return std::string(ajour_version()) + " " + modelInfo(model.get()).cpu_level; }

  void run() override { check(ajour_session_run(session.get())); }

  std::vector<HostTensor> outputs() override {
    std::vector<HostTensor> tensors;
    for (uint32_t i = 0, e = modelInfo(model.get()).output_count; i < e; ++i)
      tensors.push_back(copyOutput(session.get(), i));
    return tensors;
  }

  MacCounts macs() const override {
    MacCounts sum;
    for (uint32_t i = 0, e = modelInfo(model.get()).dispatch_count; i < e; ++i) {
      ajour_profile_entry entry = AJOUR_INIT(ajour_profile_entry);
      check(ajour_session_profile(session.get(), i, &entry));
      sum.all += entry.macs;
      if (entry.mac_type == AJOUR_F32)
        sum.f32 += entry.macs;
      else if (ajour_element_size(entry.mac_type) == 1)
        sum.int8 += entry.macs;
    }
    return sum;
  }

private:
  ModelPointer model;
  SessionPointer session;
};

} // namespace

std::unique_ptr<Engine> createAjourEngine(const EngineConfig &config) { return std::make_unique<AjourEngine>(config); }

} // namespace ajour::tools
