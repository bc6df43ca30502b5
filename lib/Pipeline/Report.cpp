//===- Report.cpp - a report as text and as JSON ---------------------------------------------===//
#include "ajour/Pipeline/Report.h"
#include "ajour/Support/NodeLocation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ajour {

ReportSection &CompileReport::section(const std::string &name) {
  for (ReportSection &section : sections)
    if (section.name == name)
      return section;
  sections.push_back({name, {}, {}});
  return sections.back();
}

std::string reportNodes(mlir::Location location) {
  std::string names;
  for (const NodeInfo &node : getNodes(location))
    names += (names.empty() ? "" : ",") + node.name;
  return names;
}

namespace {

std::string cellText(const ReportValue &value) {
  if (auto *text = std::get_if<std::string>(&value))
    return *text;
  if (auto *integer = std::get_if<int64_t>(&value))
    return std::to_string(*integer);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g", std::get<double>(value));
  return text;
}

/// Names of many nodes leave no room for the rest: of a long one the end is shown, all of it in the last column and in JSON.
std::string shortened(std::string text, bool isNode) {
  constexpr size_t most = 44;
  return !isNode || text.size() <= most ? text : "..." + text.substr(text.size() - most + 3);
}

void writeTable(llvm::raw_ostream &os, const ReportTable &table) {
  auto cellOf = [&](const std::vector<ReportValue> &row, size_t c) {
    bool isNode = llvm::StringRef(table.columns[c]).starts_with("node") && c + 1 < row.size();
    return shortened(cellText(row[c]), isNode);
  };
  std::vector<size_t> widths;
  std::vector<bool> isText(table.columns.size(), false);
  for (auto [c, column] : llvm::enumerate(table.columns)) {
    widths.push_back(column.size());
    for (const std::vector<ReportValue> &row : table.rows) {
      widths[c] = std::max(widths[c], cellOf(row, c).size());
      isText[c] = isText[c] || std::holds_alternative<std::string>(row[c]);
    }
  }
  // Numbers stand at the right; the last column is not filled up.
  auto writeRow = [&](llvm::function_ref<std::string(size_t)> cell) {
    std::string line = " ";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      std::string text = cell(c), gap(widths[c] - text.size(), ' ');
      line += " " + (isText[c] ? text + gap : gap + text);
    }
    os << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  };
  os << table.name << " (" << table.rows.size() << ")\n";
  if (table.rows.empty())
    return;
  writeRow([&](size_t c) { return table.columns[c]; });
  for (const std::vector<ReportValue> &row : table.rows)
    writeRow([&](size_t c) { return cellOf(row, c); });
}

llvm::json::Value jsonOf(const ReportValue &value) {
  return std::visit([](const auto &v) { return llvm::json::Value(v); }, value);
}

} // namespace

std::string reportText(const CompileReport &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!report.model.empty())
    os << "model " << report.model << "\n";
  for (const ReportSection &section : report.sections) {
    os << "\n[" << section.name << "]\n";
    for (const auto &[name, value] : section.values)
      os << name << " " << cellText(value) << "\n";
    for (const ReportTable &table : section.tables)
      writeTable(os, table);
  }
  return text;
}

std::string reportJson(const CompileReport &report) {
  llvm::json::Object root{{"model", report.model}};
  for (const ReportSection &section : report.sections) {
    llvm::json::Object object;
    for (const auto &[name, value] : section.values)
      object[name] = jsonOf(value);
    for (const ReportTable &table : section.tables) {
      llvm::json::Array rows;
      for (const std::vector<ReportValue> &row : table.rows) {
        llvm::json::Object cells;
        for (auto [column, value] : llvm::zip_equal(table.columns, row))
          cells[column] = jsonOf(value);
        rows.push_back(std::move(cells));
      }
      object[table.name] = std::move(rows);
    }
    root[section.name] = std::move(object);
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", llvm::json::Value(std::move(root))) << "\n";
  return text;
}

} // namespace ajour
