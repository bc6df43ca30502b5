//===- ArtifactBuilder.h - an exec module as an artifact ---------*- C++ -*-===//
#ifndef AJOUR_LIB_PIPELINE_ARTIFACTBUILDER_H
#define AJOUR_LIB_PIPELINE_ARTIFACTBUILDER_H

#include "ConstantStore.h"

#include "ajour/ABI/Artifact_generated.h"
#include "ajour/ABI/CpuFeatures.h"
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Runtime/ArtifactWriter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ajour {

/// Attribute of a module: how many weights the model had when it was imported.
inline constexpr llvm::StringLiteral weightCountAttrName = "nn.weight_count";

/// What one CPU level contributes: its code and how each callee was lowered.
struct LevelCode {
  ajour_cpu_level level;
  std::vector<char> sharedObject; ///< empty: the code is linked into the application
  uint64_t identity = 0;          ///< of linked code (ajour/ABI/StaticCode.h)
  llvm::StringMap<LoweredDispatch> dispatches;
};

class ArtifactBuilder {
public:
  /// For a file at `path`.
  ArtifactBuilder(mlir::ModuleOp module, const std::string &path);

  /// Adds a program for an architecture; its levels in ascending order.
  void addProgram(ajour_arch arch, std::vector<LevelCode> levels);

  /// Writes the file whole; an empty string or a message.
  std::string write();

private:
  std::unique_ptr<artifact::ExprT> expr(mlir::AffineExpr expr);
  std::unique_ptr<artifact::TensorT> tensor(mlir::Type type, mlir::DictionaryAttr attributes, std::string fallbackName,
                                            unsigned buffer);
  void describeInterface();
  /// Whether a result of main is a state that a dispatch changes where it lies.
  bool isInPlace(unsigned result);
  void describeStates();
  unsigned constantBuffer(artifact::ProgramT &program, const std::string &key, llvm::function_ref<std::vector<char>()> make);
  void planBuffers(artifact::ProgramT &program);
  static bool readConstants(void *context, uint64_t offset, void *to, size_t bytes);

  mlir::ModuleOp module;
  std::string path;
  mlir::func::FuncOp main;
  artifact::ModelT model;

  // The constants of all programs stand in one segment, each once, in the order of first use.
  ConstantStore store;
  std::map<std::string, std::pair<uint64_t, uint64_t>> constantPlaces; // key -> offset, size
  std::map<std::string, unsigned> constantBuffers;                      // of the program being built
  std::vector<std::vector<char>> executables;
  std::vector<std::string> executableNames;
};

} // namespace ajour

#endif
