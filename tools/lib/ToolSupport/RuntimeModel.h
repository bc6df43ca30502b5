//===- RuntimeModel.h - The runtime's objects for the tools -----*- C++ -*-===//

#ifndef AJOUR_TOOLS_RUNTIMEMODEL_H
#define AJOUR_TOOLS_RUNTIMEMODEL_H

#include "ToolSupport/Commands.h"
#include "ToolSupport/HostTensor.h"
#include "ajour/ajour.h"

#include <map>
#include <memory>

namespace ajour::tools {

/// Throws ToolError with the runtime's message unless the call succeeded.
void check(ajour_status_code status);

struct ModelDeleter {
  void operator()(ajour_model *model) const { ajour_model_destroy(model); }
};
struct SessionDeleter {
  void operator()(ajour_session *session) const { ajour_session_destroy(session); }
};
using ModelPointer = std::unique_ptr<ajour_model, ModelDeleter>;
using SessionPointer = std::unique_ptr<ajour_session, SessionDeleter>;

ModelPointer loadModel(const std::string &path, uint32_t flags = 0);
SessionPointer createSession(ajour_model *model, uint32_t threads, uint32_t flags = 0);

ajour_model_info modelInfo(const ajour_model *model);

/// Values of --dim NAME=N, by name.
using DimValues = std::map<std::string, int64_t>;

/// Reads NAME=N. Throws ToolError.
DimValues parseDims(const std::vector<std::string> &specs);

/// The model's inputs or outputs; a symbolic size has its value in `dims`, else -1. Throws ToolError if a name in `dims` is no
/// dimension of the model's.
std::vector<TensorInfo> inputInfos(const ajour_model *model, const DimValues &dims = {});
std::vector<TensorInfo> outputInfos(const ajour_model *model);

void setInput(ajour_session *session, uint32_t index, const HostTensor &tensor);
HostTensor copyOutput(ajour_session *session, uint32_t index);

/// Path of an artifact for `path`: itself, or, where the hooks know it as a model, a temporary artifact compiled from it, which is
/// removed with this object. The compiler works in a process of its own, so that its memory is not counted as the runtime's.
class ArtifactFor {
public:
  ArtifactFor(const std::string &path, const CommandHooks &hooks);
  ~ArtifactFor();
  ArtifactFor(const ArtifactFor &) = delete;
  ArtifactFor &operator=(const ArtifactFor &) = delete;

  const std::string &path() const { return artifact; }
  bool compiled() const { return !directory.empty(); }

private:
  std::string user, artifact, directory;
};

void registerRunCommand(CLI::App &app, const CommandHooks &hooks);
void registerInspectCommand(CLI::App &app, const CommandHooks &hooks);
void registerGenerateCommand(CLI::App &app, const CommandHooks &hooks);
void registerChatCommand(CLI::App &app, const CommandHooks &hooks);
void registerPerplexityCommand(CLI::App &app, const CommandHooks &hooks);
void registerBenchCommand(CLI::App &app, const CommandHooks &hooks);

} // namespace ajour::tools

#endif
