//===- BenchReport.cpp - Measurements as text, JSON and a picture ---------===//

#include "ToolSupport/BenchReport.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ajour::tools {

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  double place = p * static_cast<double>(values.size() - 1);
  size_t below = static_cast<size_t>(place), above = std::min(below + 1, values.size() - 1);
  double part = place - static_cast<double>(below);
  return values[below] * (1 - part) + values[above] * part;
}

std::optional<double> gopsOf(const BenchResult &result) {
  if (!result.macs || result.unit != "ms")
    return std::nullopt;
  return 2e-6 * static_cast<double>(result.macs) / result.median;
}

std::optional<double> percentOfPeak(const BenchResult &result) {
  std::optional<double> gops = gopsOf(result);
  if (!gops || !result.peakGops)
    return std::nullopt;
  return 100 * *gops / *result.peakGops;
}

namespace {

/// printf to the end of a string.
__attribute__((format(printf, 2, 3))) void appendf(std::string &text, const char *format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  text.append(buffer, static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof(buffer)) - 1)));
}

std::string escapeXml(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

/// 1, 2 or 5 times a power of ten, so that about five steps reach `largest`.
double tickStep(double largest) {
  double power = std::pow(10, std::floor(std::log10(largest / 5)));
  for (double factor : {1.0, 2.0, 5.0})
    if (largest / (factor * power) <= 6)
      return factor * power;
  return 10 * power;
}

} // namespace

std::string testName(const BenchResult &result) {
  std::string name = result.tokens ? result.metric + " " + std::to_string(result.tokens) : result.metric;
  return result.depth ? name + " behind " + std::to_string(result.depth) : name;
}

std::string formatBenchText(const std::vector<BenchResult> &results) {
  size_t width = 5, testWidth = 4;
  for (const BenchResult &result : results) {
    width = std::max(width, result.model.size());
    testWidth = std::max(testWidth, testName(result).size());
  }
  std::string text;
  appendf(text, "%-12s %-*s %7s %-*s %9s %9s %9s %-8s %8s %8s %8s %6s %7s %7s %9s\n", "engine", static_cast<int>(width), "model", "threads",
          static_cast<int>(testWidth), "test", "median", "p10", "p90", "unit", "load_ms", "peak_MB", "file_MB", "bits/w", "GOP/s", "peak",
          "% of peak");
  for (const BenchResult &result : results) {
    appendf(text, "%-12s %-*s %7u %-*s %9.3f %9.3f %9.3f %-8s %8.1f %8.1f %8.1f", result.engine.c_str(), static_cast<int>(width),
            result.model.c_str(), result.threads, static_cast<int>(testWidth), testName(result).c_str(), result.median, result.p10, result.p90,
            result.unit.c_str(), result.loadMs, static_cast<double>(result.peakBytes) * 1e-6, static_cast<double>(result.fileBytes) * 1e-6);
    appendf(text, result.bitsPerWeight ? " %6.2f" : "      -", result.bitsPerWeight.value_or(0));
    for (const auto &[value, fieldWidth] : {std::pair(gopsOf(result), 7), {result.peakGops, 7}, {percentOfPeak(result), 9}}) {
      if (value)
        appendf(text, " %*.1f", fieldWidth, *value);
      else
        appendf(text, " %*s", fieldWidth, "-");
    }
    text += '\n';
  }
  for (const BenchResult &result : results) {
    if (!result.ratio)
      continue;
    appendf(text, "%s takes %.2f times as long as ajour: %s, %s%u thread%s", result.engine.c_str(), *result.ratio, result.model.c_str(),
            result.tokens ? (testName(result) + ", ").c_str() : "", result.threads, result.threads == 1 ? "" : "s");
    if (result.maxDifference)
      appendf(text, ", outputs differ by at most %.3g", *result.maxDifference);
    text += '\n';
  }
  return text;
}

std::string formatBenchJson(const Machine &machine, const std::vector<BenchResult> &results) {
  using Json = nlohmann::ordered_json;
  Json root;
  root["machine"] = {{"cpu", machine.cpu},
                     {"arch", machine.arch},
                     {"system", machine.system},
                     {"cpu_level", machine.cpuLevel},
                     {"cores", machine.cores},
                     {"performance_cores", machine.performanceCores},
                     {"memory_bytes", machine.memoryBytes}};
  root["results"] = Json::array();
  auto optional = [](const std::optional<double> &value) { return value ? Json(*value) : Json(nullptr); };
  for (const BenchResult &result : results)
    root["results"].push_back({{"engine", result.engine},
                               {"version", result.version},
                               {"model", result.model},
                               {"device", result.device},
                               {"threads", result.threads},
                               {"metric", result.metric},
                               {"tokens", result.tokens ? Json(result.tokens) : Json(nullptr)},
                               {"depth", result.depth ? Json(result.depth) : Json(nullptr)},
                               {"median", result.median},
                               {"p10", result.p10},
                               {"p90", result.p90},
                               {"unit", result.unit},
                               {"runs", result.runs},
                               {"load_ms", result.loadMs},
                               {"peak_bytes", result.peakBytes},
                               {"file_bytes", result.fileBytes},
                               {"bits_per_weight", optional(result.bitsPerWeight)},
                               {"macs", result.macs},
                               {"gops", optional(gopsOf(result))},
                               {"peak_gops", optional(result.peakGops)},
                               {"peak_instruction", result.peakInstruction},
                               {"percent_of_peak", optional(percentOfPeak(result))},
                               {"ratio", optional(result.ratio)},
                               {"max_difference", optional(result.maxDifference)}});
  // Names may come from files in any encoding.
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

constexpr int plotLeft = 190, plotWidth = 560, barHeight = 20, groupGap = 18;

/// The bars of one test and their axis, from `y` on, which moves below them.
std::string formatPanel(const std::vector<const BenchResult *> &results, const std::vector<std::string> &engines, int &y) {
  const char *colours[] = {"#1b6ca8", "#d98324", "#5a9367", "#8f5a99", "#777777"};
  double largest = 1e-9;
  for (const BenchResult *result : results)
    largest = std::max({largest, result->p90, result->median});
  double step = tickStep(largest), scale = plotWidth / largest;
  std::string body, previous;
  int top = y;
  for (const BenchResult *result : results) {
    std::string group = result->model + (result->tokens ? ", " + testName(*result) : "") + ", " + std::to_string(result->threads) +
                        (result->threads == 1 ? " thread" : " threads");
    if (group != previous) {
      y += previous.empty() ? 0 : groupGap;
      appendf(body, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", plotLeft, y + 10, escapeXml(group).c_str());
      y += 16;
      previous = group;
    }
    size_t engine = static_cast<size_t>(std::find(engines.begin(), engines.end(), result->engine) - engines.begin());
    double middle = y + barHeight / 2.0 - 1;
    appendf(body, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", plotLeft - 8, middle + 4,
            escapeXml(result->engine).c_str());
    appendf(body, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", plotLeft, y,
            result->median * scale, barHeight - 2, colours[engine % std::size(colours)]);
    appendf(body, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"black\"/>\n",
            plotLeft + result->p10 * scale, plotLeft + result->p90 * scale, middle, middle);
    appendf(body, "<text x=\"%.1f\" y=\"%.1f\">%.4g %s</text>\n", plotLeft + std::max(result->median, result->p90) * scale + 6,
            middle + 4, result->median, escapeXml(result->unit).c_str());
    y += barHeight;
  }
  std::string axis;
  for (int i = 0; i * step <= largest * 1.0001; ++i)
    appendf(axis,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#dddddd\"/>\n"
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555555\">%g</text>\n",
            plotLeft + i * step * scale, plotLeft + i * step * scale, top - 6, y + 4, plotLeft + i * step * scale, y + 20, i * step);
  y += 36;
  return axis + body;
}

} // namespace

std::string formatBenchSvg(const Machine &machine, const std::vector<BenchResult> &results) {
  std::vector<std::string> engines;
  // Tests of different length or kind have axes of their own, in the order in which they come.
  std::vector<std::pair<std::string, std::vector<const BenchResult *>>> panels;
  bool isLatency = true;
  for (const BenchResult &result : results) {
    if (std::find(engines.begin(), engines.end(), result.engine) == engines.end())
      engines.push_back(result.engine);
    isLatency &= result.unit == "ms";
    std::string test = testName(result);
    auto panel = std::find_if(panels.begin(), panels.end(), [&](const auto &p) { return p.first == test; });
    if (panel == panels.end())
      panel = panels.insert(panels.end(), {test, {}});
    panel->second.push_back(&result);
  }
  int y = 56;
  std::string body;
  for (const auto &[test, members] : panels)
    body += formatPanel(members, engines, y);
  std::string text;
  appendf(text,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          plotLeft + plotWidth + 130, y);
  appendf(text, "<text x=\"16\" y=\"22\" font-size=\"15\">%s, median with p10 to p90</text>\n", isLatency ? "Latency" : "Speed");
  text += "<text x=\"16\" y=\"40\" fill=\"#555555\">" +
          escapeXml(machine.cpu + " (" + machine.arch + ", " + machine.cpuLevel + ")") + "</text>\n";
  return text + body + "</svg>\n";
}

} // namespace ajour::tools
