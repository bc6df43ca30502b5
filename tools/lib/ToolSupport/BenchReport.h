//===- BenchReport.h - Measurements as text, JSON and a picture -*- C++ -*-===//

#ifndef AJOUR_TOOLS_BENCHREPORT_H
#define AJOUR_TOOLS_BENCHREPORT_H

#include "ToolSupport/Machine.h"

#include <optional>
#include <vector>

namespace ajour::tools {

/// One engine, model, thread count and metric.
struct BenchResult {
  std::string engine, version, model, device = "cpu";
  uint32_t threads = 1;
  /// "latency" in ms; of language models "prompt" and "generate" in tokens/s, and how many tokens.
  std::string metric = "latency", unit = "ms";
  uint32_t tokens = 0;
  /// "generate": tokens before those generated; 0: only the first.
  uint32_t depth = 0;
  double median = 0, p10 = 0, p90 = 0;
  uint64_t runs = 0;
  double loadMs = 0;
  uint64_t peakBytes = 0, fileBytes = 0;
  /// Stored bits for each weight of the model, where known.
  std::optional<double> bitsPerWeight;
  /// Multiply-accumulates of a run; 0 if not known.
  uint64_t macs = 0;
  /// GOP/s that the machine reached on that many threads with the instruction named; nothing if no kind of multiply-accumulate is the
  /// model's main one.
  std::optional<double> peakGops;
  std::string peakInstruction;
  /// For a peer: its time divided by ours, at the medians, and the largest difference between its outputs and ours.
  std::optional<double> ratio, maxDifference;
};

/// Billions of operations a second (a multiplication or an addition is one), and their share of the peak in percent; nothing where not
/// known.
std::optional<double> gopsOf(const BenchResult &result);
std::optional<double> percentOfPeak(const BenchResult &result);

/// The value below which the share `p` (0 to 1) of the values lies, linear between neighbours. `values` must not be empty.
double percentile(std::vector<double> values, double p);

/// "latency", "prompt 512".
std::string testName(const BenchResult &result);

/// A table, one line for each result, then a line for each comparison.
std::string formatBenchText(const std::vector<BenchResult> &results);
std::string formatBenchJson(const Machine &machine, const std::vector<BenchResult> &results);
/// Bars of the medians with a line from p10 to p90, grouped by model and threads, for each test one below the other.
std::string formatBenchSvg(const Machine &machine, const std::vector<BenchResult> &results);

} // namespace ajour::tools

#endif
