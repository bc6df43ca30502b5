//===- Diagnostics.cpp - messages for the user -----------------------------------===//
#include "ajour/Support/Diagnostics.h"
#include "ajour/Support/NodeLocation.h"
#include "ajour/Support/Printable.h"

using namespace mlir;

namespace ajour {

DiagnosticCollector::DiagnosticCollector(MLIRContext *context, std::string fileName)
    : file(std::move(fileName)), handler(context, [this](Diagnostic &diagnostic) {
        SmallVector<NodeInfo> nodes = getNodes(diagnostic.getLocation());
        bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
        std::string line = nodes.empty() || nodes[0].file.empty() ? file : nodes[0].file;
        line += isError ? ": error: " : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? ": warning: " : ": note: ";
        std::string description = describeNodes(diagnostic.getLocation());
        if (!description.empty())
          line += description + ": ";
        line += printable(diagnostic.str());
        for (Diagnostic &note : diagnostic.getNotes())
          line += "; " + printable(note.str());
        (isError ? errorLines : noteLines).push_back(line);
        return success();
      }) {
  // A line names the user's node; the operation's own text would follow it otherwise.
  context->printOpOnDiagnostic(false);
}

std::string DiagnosticCollector::text() const {
  std::string all;
  for (const std::string &line : errorLines)
    all += (all.empty() ? "" : "\n") + line;
  return all;
}

} // namespace ajour
