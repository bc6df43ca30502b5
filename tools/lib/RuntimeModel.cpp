//===- RuntimeModel.cpp - The runtime's objects for the tools -------------===//

#include "ToolSupport/RuntimeModel.h"
#include "ToolSupport/Files.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace ajour::tools {

namespace {

/// Artifacts that were made for a moment, and the models that the user knows instead.
std::vector<std::pair<std::string, std::string>> momentary;

/// A message of the runtime with the user's own names of files.
std::string withUsersNames(std::string message) {
  for (const auto &[artifact, model] : momentary)
    for (size_t at = message.find(artifact); at != std::string::npos; at = message.find(artifact, at + model.size()))
      message.replace(at, artifact.size(), model);
  return message;
}

} // namespace

void check(ajour_status_code status) {
  if (status == AJOUR_OK)
    return;
  std::string message = withUsersNames(ajour_last_message());
  throw ToolError(message.empty() ? ajour_status_text(status) : message);
}

ModelPointer loadModel(const std::string &path, uint32_t flags) {
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.flags = flags;
  ajour_model *model = nullptr;
  check(ajour_model_load_file(path.c_str(), &options, &model));
  return ModelPointer(model);
}

SessionPointer createSession(ajour_model *model, uint32_t threads, uint32_t flags) {
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = threads;
  options.flags = flags;
  ajour_session *session = nullptr;
  check(ajour_session_create(model, &options, &session));
  return SessionPointer(session);
}

ajour_model_info modelInfo(const ajour_model *model) {
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  check(ajour_model_get_info(model, &info));
  return info;
}

DimValues parseDims(const std::vector<std::string> &specs) {
  DimValues dims;
  for (const std::string &spec : specs) {
    size_t equals = spec.rfind('=');
    int64_t value = 0;
    const char *end = spec.data() + spec.size();
    bool good = equals != std::string::npos && equals > 0;
    if (good) {
      auto [stop, error] = std::from_chars(spec.data() + equals + 1, end, value);
      good = error == std::errc() && stop == end && value >= 0;
    }
    if (!good)
      throw ToolError("--dim " + spec + ": expected NAME=N with a whole number N of at least 0");
    if (!dims.emplace(spec.substr(0, equals), value).second)
      throw ToolError("--dim " + spec + ": the dimension already has a value");
  }
  return dims;
}

namespace {

TensorInfo toTensorInfo(const ajour_tensor_info &info, const DimValues &dims) {
  TensorInfo result{info.name ? info.name : "", info.element_type, {}, info.scale, info.zero_point};
  for (uint32_t d = 0; d < info.rank; ++d) {
    int64_t size = info.dims[d];
    if (size < 0 && info.dim_names[d])
      if (auto found = dims.find(info.dim_names[d]); found != dims.end())
        size = found->second;
    result.shape.push_back(size);
  }
  return result;
}

} // namespace

std::vector<TensorInfo> inputInfos(const ajour_model *model, const DimValues &dims) {
  std::vector<TensorInfo> infos;
  std::set<std::string> names;
  for (uint32_t i = 0, e = modelInfo(model).input_count; i < e; ++i) {
    ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
    check(ajour_model_input(model, i, &info));
    infos.push_back(toTensorInfo(info, dims));
    for (uint32_t d = 0; d < info.rank; ++d)
      if (info.dims[d] < 0 && info.dim_names[d])
        names.insert(info.dim_names[d]);
  }
  for (const auto &[name, value] : dims) {
    if (names.count(name))
      continue;
    std::string list;
    for (const std::string &known : names)
      list += (list.empty() ? "" : ", ") + known;
    throw ToolError("--dim " + name + "=" + std::to_string(value) + ": the model has no such dimension; it has " +
                    (list.empty() ? "none" : list));
  }
  return infos;
}

std::vector<TensorInfo> outputInfos(const ajour_model *model) {
  std::vector<TensorInfo> infos;
  for (uint32_t i = 0, e = modelInfo(model).output_count; i < e; ++i) {
    ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
    check(ajour_model_output(model, i, &info));
    infos.push_back(toTensorInfo(info, {}));
  }
  return infos;
}

void setInput(ajour_session *session, uint32_t index, const HostTensor &tensor) {
  check(ajour_session_set_input(session, index, tensor.data.data(), tensor.shape.data(),
                                static_cast<uint32_t>(tensor.shape.size())));
}

HostTensor copyOutput(ajour_session *session, uint32_t index) {
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  check(ajour_session_output(session, index, &view));
  HostTensor tensor{view.element_type, {view.dims, view.dims + view.rank}, {}};
  const auto *data = static_cast<const std::byte *>(view.data);
  tensor.data.assign(data, data + view.bytes);
  return tensor;
}

namespace {

/// Runs `work` in a child process, which prints its errors; here they are one that has been printed.
void inChildProcess(const std::string &what, const std::function<void()> &work) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0)
    throw ToolError(what + ": cannot start a process: " + std::strerror(errno));
  if (child == 0) {
    int code = 0;
    try {
      work();
    } catch (const std::exception &error) {
      printError(error);
      code = 1;
    }
    std::fflush(nullptr);
    _exit(code);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw ToolError(what + ": died of signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0)
    throw DiagnosedError("");
}

} // namespace

ArtifactFor::ArtifactFor(const std::string &path, const CommandHooks &hooks) : user(path), artifact(path) {
  if (!hooks.isModel || !hooks.isModel(path))
    return;
  const char *temporary = std::getenv("TMPDIR");
  directory = std::string(temporary && *temporary ? temporary : "/tmp") + "/ajour.XXXXXX";
  if (!mkdtemp(directory.data())) {
    std::string failed = std::exchange(directory, "");
    throw ToolError(failed + ": cannot make a temporary directory: " + std::strerror(errno));
  }
  artifact = directory + "/" + baseName(path) + ".ajour";
  momentary.emplace_back(artifact, path);
  try {
    inChildProcess(path + ": compiling", [&] { hooks.compile(path, artifact); });
  } catch (...) {
    unlink(artifact.c_str());
    rmdir(directory.c_str());
    std::erase(momentary, std::pair(artifact, user));
    throw;
  }
}

ArtifactFor::~ArtifactFor() {
  if (directory.empty())
    return;
  unlink(artifact.c_str());
  rmdir(directory.c_str());
  std::erase(momentary, std::pair(artifact, user));
}

void registerRuntimeCommands(CLI::App &app, CommandHooks hooks) {
  registerRunCommand(app, hooks);
  registerInspectCommand(app, hooks);
  registerGenerateCommand(app, hooks);
  registerChatCommand(app, hooks);
  registerPerplexityCommand(app, hooks);
  registerBenchCommand(app, hooks);
}

} // namespace ajour::tools
