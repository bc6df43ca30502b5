//===- Bench.h - What the two kinds of measurements share -------*- C++ -*-===//

#ifndef AJOUR_TOOLS_BENCH_H
#define AJOUR_TOOLS_BENCH_H

#include "ToolSupport/BenchReport.h"
#include "ToolSupport/EngineProcess.h"
#include "ToolSupport/Image.h"
#include "ToolSupport/Progress.h"
#include "ToolSupport/RuntimeModel.h"

#include <chrono>

namespace ajour::tools {

struct BenchOptions {
  std::vector<std::string> files, inputs, dims, against, models;
  ImageOptions image;
  std::vector<uint32_t> threads;
  /// 0: 30 runs, 5 of a language model.
  uint32_t repeat = 0, warmup = 3;
  /// Language models: tokens of the prompts, and numbers of tokens to generate.
  std::vector<uint32_t> prompt, generate;
  /// Tokens that those generated follow, each with each number of `generate`; empty: one.
  std::vector<uint32_t> depth;
  /// Compare engines whose weights take different bits.
  bool force = false;
  std::string jsonFile, plotFile;
};

/// An engine and what it loads; the first one is ours.
struct Contender {
  const EngineKind *kind;
  EngineConfig config;
};

/// The contenders' engines, loaded, in their order.
std::vector<std::unique_ptr<EngineProcess>> loadEngines(const std::vector<Contender> &contenders, uint32_t threads, Progress &progress);

/// What one engine's samples say, without what only one kind of test knows.
BenchResult resultOf(EngineProcess &engine, const Contender &contender, const std::string &file, uint32_t threads,
                     const std::vector<double> &samples);

/// Pause before a turn: threads of other engines spin for a while after their last run.
constexpr auto pauseBetweenEngines = std::chrono::milliseconds(30);

/// Whether a model is one that `generate` takes: tokens in, logits out.
bool isLanguageModel(const ajour_model *model);

/// Most tokens that the tests of a language model need in all.
uint32_t contextOf(const BenchOptions &options);

/// Largest absolute difference between two lists of outputs; nothing if they do not match in number or size.
std::optional<double> largestDifference(const std::vector<HostTensor> &a, const std::vector<HostTensor> &b);

/// Measures prompts and generation of one language model, with one number of threads, and appends a result for each engine and test.
/// Throws ToolError if the engines' bits per weight differ by more than a twentieth, unless forced.
void benchLanguage(const std::string &file, const std::vector<Contender> &contenders, uint32_t threads, const BenchOptions &options,
                   std::vector<BenchResult> &results);

} // namespace ajour::tools

#endif
