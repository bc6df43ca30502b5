//===- VerifyText.cpp - what verify tells ---------------------------------------------------===//
#include "ajour/Pipeline/Verify.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace ajour {

/// "[0, 3, 7]": the row-major position as an index of the shape.
static std::string indexText(const TensorDifference &difference) {
  std::string text;
  int64_t rest = difference.index;
  for (size_t d = difference.shape.size(); d-- > 0; rest /= difference.shape[d])
    text = std::to_string(rest % difference.shape[d]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

static std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

static void printDifference(llvm::raw_ostream &os, const TensorDifference &d) {
  if (d.index < 0) {
    os << "    type, shape or size differ\n";
    return;
  }
  os << llvm::format("    at %s of %s: expected %.9g, found %.9g\n", indexText(d).c_str(), shapeText(d.shape).c_str(),
                     d.expected, d.found)
     << llvm::format("    max absolute difference %.4g, max relative %.4g, cosine %.7f, %lld elements outside the tolerance\n",
                     d.maxAbsolute, d.maxRelative, d.cosine, static_cast<long long>(d.count));
}

static void printValue(llvm::raw_ostream &os, const char *what, const VerifiedValue &value) {
  os << what;
  if (!value.name.empty())
    os << " " << value.name;
  if (!value.level.empty())
    os << " (" << value.kind << ", " << value.level << ")";
  os << ": " << (value.nodes.empty() ? "made by the compiler" : value.nodes) << "\n";
  printDifference(os, value.difference);
}

static const VerifiedValue *firstDiffering(const std::vector<VerifiedValue> &values) {
  for (const VerifiedValue &value : values)
    if (value.difference.differs)
      return &value;
  return nullptr;
}

/// The table of the dispatches that are furthest off.
static void printTable(llvm::raw_ostream &os, const VerifyReport &report, size_t rows) {
  std::vector<const VerifiedValue *> worst;
  for (const VerifiedValue &value : report.dispatches)
    worst.push_back(&value);
  std::sort(worst.begin(), worst.end(), [](const VerifiedValue *a, const VerifiedValue *b) {
    // Equal ones stay in the order of execution.
    return std::make_tuple(a->difference.differs, a->difference.maxAbsolute, b) >
           std::make_tuple(b->difference.differs, b->difference.maxAbsolute, a);
  });
  worst.resize(std::min(rows, worst.size()));
  os << llvm::format("%-5s %10s %10s %10s  %-10s %-24s %s\n", "", "max abs", "max rel", "cosine", "level", "dispatch",
                     "nodes");
  for (const VerifiedValue *value : worst) {
    const TensorDifference &d = value->difference;
    std::string nodes = value->nodes.size() > 80 ? value->nodes.substr(0, 77) + "..." : value->nodes;
    os << llvm::format("%-5s %10.3g %10.3g %10.7f  %-10s %-24s %s\n", d.differs ? "WRONG" : "ok", d.maxAbsolute,
                       d.maxRelative, d.cosine, value->level.c_str(), value->name.c_str(), nodes.c_str());
  }
}

std::string toText(const VerifyReport &report, size_t rows) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (const VerifiedValue *output = firstDiffering(report.simplified)) {
    if (report.roundsOtherwise())
      os << "note: integer arithmetic rounds some quantised values one step otherwise than floating point\n";
    else
      os << "simplification changes the result: pass " << report.pass << "\n";
    if (!report.suspect.nodes.empty())
      printValue(os, "first node that differs", report.suspect);
    printValue(os, "output", *output);
  }
  if (const VerifiedValue *dispatch = report.firstDispatch())
    printValue(os, "first dispatch that differs:", *dispatch);
  const VerifiedValue *output = firstDiffering(report.outputs);
  if (output && !report.firstDispatch())
    os << "no single dispatch differs; rounding adds up to more than the tolerance\n";
  if (output)
    printValue(os, "output", *output);
  size_t wrong = 0;
  for (const VerifiedValue &value : report.dispatches)
    wrong += value.difference.differs;
  printTable(os, report, rows);
  for (const VerifiedValue &value : report.outputs)
    os << llvm::format("output %s (%s): max absolute difference %.4g, cosine %.7f\n", value.name.c_str(),
                       value.level.c_str(), value.difference.maxAbsolute, value.difference.cosine);
  os << report.dispatches.size() << " results of dispatches compared, " << wrong << " differ\n"
     << (report.passed() ? "ok" : "WRONG") << "\n";
  return text;
}

} // namespace ajour
