//===- Peers.cpp - The table of peers -------------------------------------===//

#include "Peers/Engine.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>

namespace ajour::tools {

const std::vector<EngineKind> &peers() {
  static const std::vector<EngineKind> table = {
      {"onnxruntime", "onnx",
       "npm install --ignore-scripts onnxruntime-node, then --against onnxruntime=node_modules/onnxruntime-node",
       createOnnxRuntime, nullptr},
      {"llama.cpp", "gguf",
       "npm install --ignore-scripts @node-llama-cpp/linux-x64, then --against llama.cpp=node_modules/@node-llama-cpp", nullptr,
       createLlamaCpp},
  };
  return table;
}

const EngineKind &ajourEngine() {
  static const EngineKind kind = {"ajour", "ajour", "", createAjourEngine, createAjourLanguageEngine};
  return kind;
}

const EngineKind &findPeer(const std::string &name) {
  std::string list;
  for (const EngineKind &kind : peers()) {
    if (name == kind.name)
      return kind;
    list += (list.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw ToolError("--against " + name + ": no such peer; there are " + list);
}

namespace {

namespace fs = std::filesystem;

/// True for libraries of this machine's architecture: packages carry several side by side in directories named after them.
bool forThisMachine(const fs::path &path) {
#if defined(__aarch64__)
  const char *other[] = {"x64", "x86_64", "amd64"};
#else
  const char *other[] = {"arm64", "aarch64"};
#endif
  for (const fs::path &part : path)
    if (std::find(std::begin(other), std::end(other), part.string()) != std::end(other))
      return false;
  return true;
}

/// Whether a file's name is one of those, in which a '*' stands for anything.
bool isNamed(const std::string &name, const std::vector<std::string> &fileNames) {
  return std::any_of(fileNames.begin(), fileNames.end(), [&](const std::string &wanted) {
    size_t star = wanted.find('*');
    if (star == std::string::npos)
      return name == wanted;
    return name.size() >= wanted.size() && name.starts_with(wanted.substr(0, star)) && name.ends_with(wanted.substr(star + 1));
  });
}

/// Libraries under a directory, in order of their paths.
std::vector<fs::path> findLibraries(const fs::path &directory, const std::vector<std::string> &fileNames) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; it != end && !error; it.increment(error)) {
    if (it.depth() >= 8)
      it.disable_recursion_pending();
    std::string name = it->path().filename().string();
    if (isNamed(name, fileNames) && forThisMachine(it->path()))
      found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace

void *openLibrary(const std::string &path, const std::vector<std::string> &fileNames, const char *howToGet) {
  std::vector<fs::path> candidates;
  std::error_code error;
  if (path.empty())
    candidates.assign(fileNames.begin(), fileNames.end());
  else if (fs::is_directory(path, error))
    candidates = findLibraries(path, fileNames);
  else
    candidates = {path.find('/') == std::string::npos ? "./" + path : path}; // a bare name is looked for among the system's
  std::string why = "no " + fileNames[0] + " in it";
  for (const fs::path &candidate : candidates) {
    if (void *handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
      return handle;
    why = dlerror();
  }
  throw ToolError((path.empty() ? fileNames[0] : path) + ": cannot open the library: " + why + "; get it by " +
                  howToGet);
}

} // namespace ajour::tools
