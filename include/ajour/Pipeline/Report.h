//===- Report.h - what a compilation tells of itself -------------*- C++ -*-===//
//
// `ajour compile --report`. A report is a list of sections, each with single values and tables, so that every part of
// the compiler adds its own and all are written in the same way.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_PIPELINE_REPORT_H
#define AJOUR_PIPELINE_REPORT_H

#include "ajour/Conversion/Dispatch.h"
#include "ajour/Conversion/Encode.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ajour {

using ReportValue = std::variant<int64_t, double, std::string>;

/// A table; each row has as many cells as there are columns. Column names are identifiers: they are the keys in JSON.
struct ReportTable {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<ReportValue>> rows;
};

struct ReportSection {
  std::string name;
  std::vector<std::pair<std::string, ReportValue>> values;
  std::vector<ReportTable> tables;
};

struct CompileReport {
  std::string model; ///< the file's name
  std::vector<ReportSection> sections;

  /// The section of a name, made when there is none yet.
  ReportSection &section(const std::string &name);
};

/// For people: the model's name if there is one, a heading for each section, `name value` lines, and aligned tables.
std::string reportText(const CompileReport &report);
/// For programs: {"model": ..., SECTION: {NAME: value, TABLE: [{COLUMN: value}]}}.
std::string reportJson(const CompileReport &report);

/// The user's nodes in a location, for cells: "conv1,bn1".
std::string reportNodes(mlir::Location location);

//===--- the section `layout` ----------------------------------------------===//

/// What moves data in an imported module. Call it before simplification.
void reportImportedLayout(mlir::ModuleOp module, CompileReport &report);
/// What still does after formDispatches, and why; and what dispatches copy into scratch memory. `lowered` finds
/// how a callee was lowered for the best level, or null.
void reportCompiledLayout(mlir::ModuleOp module,
                          llvm::function_ref<const LoweredDispatch *(llvm::StringRef callee)> lowered,
                          CompileReport &report);

//===--- the section `weights` ---------------------------------------------===//

/// What was found in the weights of a simplified module, and which kernel should serve them on a level.
void reportWeights(llvm::ArrayRef<EncodedWeight> weights, ajour_cpu_level level, CompileReport &report);
/// The kernels that dispatches have, as above.
void reportWeightKernels(mlir::ModuleOp module,
                         llvm::function_ref<const LoweredDispatch *(llvm::StringRef callee)> lowered,
                         CompileReport &report);

} // namespace ajour

#endif
