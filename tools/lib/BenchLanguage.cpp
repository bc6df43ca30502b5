//===- BenchLanguage.cpp - How fast language models read and write --------===//

#include "Bench.h"
#include "ToolSupport/Files.h"
#include "ToolSupport/Progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

namespace ajour::tools {

namespace {

constexpr uint32_t usualRepeat = 5;
/// Bits per weight of engines under comparison may differ by this share.
constexpr double mostBitsDifference = 0.05;

struct Test {
  const char *metric;
  uint32_t tokens;
  uint32_t behind = 1; ///< tokens that generated ones follow
};

std::vector<Test> testsOf(const BenchOptions &options) {
  std::vector<Test> tests;
  for (uint32_t tokens : options.prompt)
    tests.push_back({"prompt", tokens});
  for (uint32_t behind : options.depth.empty() ? std::vector<uint32_t>{1} : options.depth)
    for (uint32_t tokens : options.generate)
      tests.push_back({"generate", tokens, behind});
  return tests;
}

std::optional<double> bitsPerWeight(const WeightCounts &counts) {
  if (!counts.weights || !counts.bytes)
    return std::nullopt;
  return 8 * static_cast<double>(counts.bytes) / static_cast<double>(counts.weights);
}

/// Tokens a second of each engine and run, in turns: A B A B.
std::vector<std::vector<double>> measure(std::vector<std::unique_ptr<EngineProcess>> &engines, const Test &test, uint32_t repeat,
                                         Progress &progress) {
  auto once = [&](EngineProcess &engine) {
    double ms = std::string(test.metric) == "prompt" ? engine.prompt(test.tokens) : engine.generate(test.tokens, test.behind);
    return 1000 * test.tokens / std::max(ms, 1e-6);
  };
  std::vector<std::vector<double>> speeds(engines.size());
  // The first turn only finds data and wakes threads.
  for (uint32_t turn = 0; turn <= repeat; ++turn) {
    for (size_t i = 0; i < engines.size(); ++i) {
      if (engines.size() > 1)
        std::this_thread::sleep_for(pauseBetweenEngines);
      double speed = once(*engines[i]);
      if (turn > 0)
        speeds[i].push_back(speed);
    }
    progress.update(turn);
  }
  return speeds;
}

/// Weights that are stored in other numbers of bits make another comparison than one of engines.
void checkBits(const std::string &file, const std::vector<std::unique_ptr<EngineProcess>> &engines) {
  std::optional<double> ours = bitsPerWeight(engines[0]->weights());
  for (size_t i = 1; i < engines.size(); ++i) {
    std::optional<double> theirs = bitsPerWeight(engines[i]->weights());
    if (ours && theirs && std::fabs(*theirs / *ours - 1) <= mostBitsDifference)
      continue;
    auto text = [](const std::optional<double> &bits) {
      char buffer[64];
      std::snprintf(buffer, sizeof(buffer), bits ? "%.2f" : "an unknown number of", bits.value_or(0));
      return std::string(buffer);
    };
    throw ToolError(file + ": " + engines[0]->name() + " stores a weight in " + text(ours) + " bits, " + engines[i]->name() + " in " + text(theirs) +
                    ": that is no comparison of engines, which needs them within 5 %; --force makes it all the same");
  }
}

} // namespace

bool isLanguageModel(const ajour_model *model) {
  return ajour_model_find_output(model, "logits") >= 0 && ajour_model_find_input(model, "tokens") >= 0;
}

uint32_t contextOf(const BenchOptions &options) {
  uint32_t most = 2;
  for (const Test &test : testsOf(options))
    most = std::max(most, test.tokens + test.behind + 1);
  return most;
}

void benchLanguage(const std::string &file, const std::vector<Contender> &contenders, uint32_t threads, const BenchOptions &options,
                   std::vector<BenchResult> &results) {
  Progress progress;
  std::vector<std::unique_ptr<EngineProcess>> engines = loadEngines(contenders, threads, progress);
  if (!options.force)
    checkBits(file, engines);
  uint32_t repeat = options.repeat ? options.repeat : usualRepeat;
  for (const Test &test : testsOf(options)) {
    progress.begin(baseName(file) + ", " + test.metric + " " + std::to_string(test.tokens) + ", " + std::to_string(threads) + " threads", repeat);
    std::vector<std::vector<double>> speeds = measure(engines, test, repeat, progress);
    // Behind the same prompt the logits are the same; behind generated tokens they are not.
    bool isPrompt = std::string(test.metric) == "prompt";
    std::vector<HostTensor> ours = isPrompt ? engines[0]->outputs() : std::vector<HostTensor>();
    for (size_t i = 0; i < engines.size(); ++i) {
      BenchResult result = resultOf(*engines[i], contenders[i], file, threads, speeds[i]);
      result.metric = test.metric;
      result.tokens = test.tokens;
      result.depth = test.behind > 1 ? test.behind : 0;
      result.unit = "tokens/s";
      result.bitsPerWeight = bitsPerWeight(engines[i]->weights());
      if (i > 0) {
        result.ratio = percentile(speeds[0], 0.5) / result.median;
        if (isPrompt)
          result.maxDifference = largestDifference(ours, engines[i]->outputs());
      }
      results.push_back(std::move(result));
    }
  }
}

} // namespace ajour::tools
