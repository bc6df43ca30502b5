//===- Compile.h - the whole compiler -------------------------*- C++ -*-===//
//
// The one place that orders what happens between a model file and an artifact.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_PIPELINE_COMPILE_H
#define AJOUR_PIPELINE_COMPILE_H

#include "ajour/ABI/CpuFeatures.h"
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Import/Import.h"
#include "ajour/Pipeline/Report.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <string>
#include <vector>

namespace ajour {

struct CompileOptions {
  ImportOptions import;
  /// CPU levels to make code for; empty: all of the machine's architecture.
  std::vector<ajour_cpu_level> levels;
  /// 0 to 3. 0 also leaves out the simplification of the model.
  unsigned optimization = 3;
  /// Stages of simplification to run (ajour/Conversion/Simplify.h); -1: all.
  int simplifyStages = -1;
  LoweringOptions lowering;
  /// Whether zeros of weights are left out where that is expected to be faster; false: as if there were none, to compare with.
  bool sparse = true;
  /// The stages that really run.
  int stages() const { return optimization == 0 ? 0 : simplifyStages; }
  std::function<void(const char *phase, int64_t done, int64_t total)> progress;
  /// Where the compilation tells of itself, or null.
  CompileReport *report = nullptr;
};

/// The architecture that the compiler itself runs on.
ajour_arch hostArch();

/// A fresh context that knows every dialect of the compiler.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Simplifies an imported module in place, as far as `stages` says.
mlir::LogicalResult simplify(mlir::ModuleOp module, int stages = -1);

/// Finds how the weights of a simplified module are made and forms dispatches (what `--emit=mlir` shows afterwards). The weights go into
/// the report of the options, if there is one.
mlir::LogicalResult lowerToExec(mlir::ModuleOp module, const CompileOptions &options = {});

/// The levels that the options ask for, lowest first.
std::vector<ajour_cpu_level> chosenLevels(const CompileOptions &options);

/// Makes code and weights for every level and writes the artifact. `module` has been through lowerToExec.
mlir::LogicalResult writeModule(mlir::ModuleOp module, const std::string &path, const CompileOptions &options);

/// Systems that static code is made for.
enum class StaticPlatform { Linux, Android, IOS };

/// Makes what an application links: PREFIX.o with the code of all levels of one architecture, PREFIX.h, which declares its table, and the
/// artifact PREFIX.ajour without code. The table is called staticTableName(prefix). On failure there is none of the files.
mlir::LogicalResult writeStatic(mlir::ModuleOp module, const std::string &prefix, StaticPlatform platform,
                                const CompileOptions &options);

/// NAME_code, where NAME is the last part of a path as a C identifier.
std::string staticTableName(const std::string &prefix);

/// Assembly of the dispatches for one level.
mlir::FailureOr<std::string> emitAssembly(mlir::ModuleOp module, ajour_cpu_level level, const CompileOptions &options);

/// All of the above. On failure there is no file at `outputPath`, and the context has had the diagnostics.
mlir::LogicalResult compileModel(mlir::MLIRContext *context, const std::string &modelPath,
                                 const std::string &outputPath, const CompileOptions &options);

/// The same with the files of writeStatic.
mlir::LogicalResult compileStatic(mlir::MLIRContext *context, const std::string &modelPath, const std::string &prefix,
                                  StaticPlatform platform, const CompileOptions &options);

/// The same from an imported module, which is consumed.
mlir::LogicalResult compileModule(mlir::ModuleOp module, const std::string &outputPath,
                                  const CompileOptions &options);

} // namespace ajour

#endif
