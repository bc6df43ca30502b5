//===- Diagnostics.h - messages for the user ------------------*- C++ -*-===//
#ifndef AJOUR_SUPPORT_DIAGNOSTICS_H
#define AJOUR_SUPPORT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace ajour {

/// Collects the context's diagnostics while it lives and turns each into one line for the user:
/// "FILE: error: node 'conv1' (Conv, #3): what was expected and found".
class DiagnosticCollector {
public:
  /// `file` stands in messages whose location names no file.
  DiagnosticCollector(mlir::MLIRContext *context, std::string file);

  /// The errors so far, one line each, without a trailing newline.
  const std::vector<std::string> &errors() const { return errorLines; }
  /// Warnings and remarks so far.
  const std::vector<std::string> &notes() const { return noteLines; }
  /// All errors joined by newlines.
  std::string text() const;

private:
  std::string file;
  std::vector<std::string> errorLines, noteLines;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ajour

#endif
