//===- Engine.h - Something that runs a model -------------------*- C++ -*-===//
//
// What bench needs of an engine, ours or a peer. To add a peer: one file in this directory with a class, and one row in
// Peers.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef AJOUR_TOOLS_PEERS_ENGINE_H
#define AJOUR_TOOLS_PEERS_ENGINE_H

#include "ToolSupport/HostTensor.h"

#include <memory>

namespace ajour::tools {

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

struct EngineConfig {
  /// The file that this engine reads.
  std::string model;
  /// Path of the engine's library or of a directory that contains it; empty: where the system finds it.
  std::string library;
  /// Threads that compute, at least 1.
  uint32_t threads = 1;
  /// All inputs, in the model's order.
  std::vector<NamedTensor> inputs;
  /// Language models: most tokens that are given and generated together, at least 2. 0: the model is no language model.
  uint32_t context = 0;
};

/// Multiply-accumulates of one run: all, those of f32 factors and those of 8-bit factors.
struct MacCounts {
  uint64_t all = 0, f32 = 0, int8 = 0;
};

/// Weights of a model as it came, and the bytes that the engine stores them in; 0: not known.
struct WeightCounts {
  uint64_t weights = 0, bytes = 0;
};

/// One model loaded with its inputs set, or, of a kind that runs language models, without tokens. Every function may throw ToolError.
class Engine {
public:
  virtual ~Engine() = default;
  /// Name and version for the report.
  virtual std::string version() const = 0;
  /// Runs once.
  virtual void run() = 0;
  /// The outputs of the last run, in the model's order; of a language model the logits of the next token.
  virtual std::vector<HostTensor> outputs() = 0;
  /// Multiply-accumulates of one run, 0 if not known.
  virtual MacCounts macs() const { return {}; }
  virtual WeightCounts weights() const { return {}; }
};

/// A language model. run() does nothing.
class LanguageEngine : public Engine {
public:
  void run() override {}
  /// Tokens are 0 to vocabulary() - 1.
  virtual uint32_t vocabulary() const = 0;
  /// Forgets everything, then reads these tokens and computes the logits of the next one. The tokens are done when it returns.
  virtual void prompt(const std::vector<int32_t> &tokens) = 0;
  /// Computes `count` tokens behind those so far, one after the other.
  virtual void generate(uint32_t count) = 0;
  /// Forgets what was generated behind a prompt of these tokens, or reads it again.
  virtual void rewind(const std::vector<int32_t> &tokens) { prompt(tokens); }
};

/// A kind of engine. `create` and `createLanguage` load the library and the model; the time that it takes is the load time. Null: it
/// does not run such models.
struct EngineKind {
  const char *name;
  /// Extensions of the model files that it reads, separated by spaces.
  const char *formats;
  /// How a user gets the library.
  const char *howToGet;
  std::unique_ptr<Engine> (*create)(const EngineConfig &config);
  std::unique_ptr<LanguageEngine> (*createLanguage)(const EngineConfig &config) = nullptr;
};

const EngineKind &ajourEngine();

/// The peers that bench can run against.
const std::vector<EngineKind> &peers();

/// The peer of that name. Throws ToolError, which lists the names.
const EngineKind &findPeer(const std::string &name);

std::unique_ptr<Engine> createAjourEngine(const EngineConfig &config);
std::unique_ptr<LanguageEngine> createAjourLanguageEngine(const EngineConfig &config);
std::unique_ptr<Engine> createOnnxRuntime(const EngineConfig &config);
std::unique_ptr<LanguageEngine> createLlamaCpp(const EngineConfig &config);

/// Opens a shared library: the file itself, or the first of `fileNames` found in or under a directory (to a depth of eight). A '*' in
/// a name stands for anything. Throws ToolError with `howToGet`.
void *openLibrary(const std::string &path, const std::vector<std::string> &fileNames, const char *howToGet);

} // namespace ajour::tools

#endif
