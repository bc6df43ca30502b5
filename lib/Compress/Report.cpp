//===- Report.cpp - what became of each layer, for people ----------------------===//
#include "ajour/Compress/Compress.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace ajour::compress {

namespace {

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string errorText(double error) {
  if (error < 0)
    return "-";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4f", error);
  return text;
}

/// Nanoseconds as microseconds.
std::string timeText(double time) {
  if (time < 0)
    return "-";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.1f", time / 1000);
  return text;
}

} // namespace

std::string toText(const CompressReport &report) {
  std::vector<std::vector<std::string>> rows{
      {"layer", "weights", "became", "zeros", "by magnitude", "error", "bytes", "was"}};
  bool timed = llvm::any_of(report.layers, [](const LayerReport &layer) { return layer.timeBefore >= 0; });
  if (timed)
    rows[0].insert(rows[0].end(), {"expected us", "dense us"});
  int64_t before = 0, after = 0;
  double timeBefore = 0, timeAfter = 0;
  for (const LayerReport &layer : report.layers) {
    std::string zeros;
    llvm::raw_string_ostream(zeros) << llvm::format("%.1f %%", 100. * double(layer.zeros) / double(std::max<int64_t>(layer.elements, 1)));
    rows.push_back({layer.node, shapeText(layer.shape), toString(layer.plan), zeros, errorText(layer.errorMagnitude),
                    errorText(layer.error), std::to_string(layer.bytesAfter), std::to_string(layer.bytesBefore)});
    before += layer.bytesBefore;
    after += layer.bytesAfter;
    if (timed)
      rows.back().insert(rows.back().end(), {timeText(layer.timeAfter), timeText(layer.timeBefore)});
    timeBefore += std::max(layer.timeBefore, 0.);
    timeAfter += std::max(layer.timeAfter, 0.);
  }
  rows.push_back({"all", "", "", "", "", "", std::to_string(after), std::to_string(before)});
  if (timed)
    rows.back().insert(rows.back().end(), {timeText(timeAfter), timeText(timeBefore)});
  std::vector<size_t> widths(rows[0].size());
  for (const auto &row : rows)
    for (size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      std::string padding(widths[c] - row[c].size(), ' ');
      line += (c ? "  " : "") + (c < 3 ? row[c] + padding : padding + row[c]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  for (const LayerReport &layer : report.layers)
    if (!layer.why.empty())
      text += "node '" + layer.node + "' (" + layer.type + "): " + layer.why + "\n";
  for (const std::string &note : report.notes)
    text += note + "\n";
  return text;
}

} // namespace ajour::compress
