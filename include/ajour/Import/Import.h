//===- Import.h - models of other formats as nn ---------------*- C++ -*-===//
#ifndef AJOUR_IMPORT_IMPORT_H
#define AJOUR_IMPORT_IMPORT_H

#include "ajour/Reference/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>
#include <string>

namespace ajour {

/// Bounds of a named dimension as the user gives them (`--dim NAME=MIN..MAX`); equal ones fix it.
struct DimBounds {
  int64_t min = 1;
  int64_t max = -1; ///< -1: none
};

/// How a language model keeps keys or values between calls. Of few bits: rounded, with one scale for each position and head.
enum class CacheType { F32, F16, I8, I4 };

struct ImportOptions {
  /// By dimension name; a dimension without a name is called `INPUT.AXIS`.
  std::map<std::string, DimBounds> dims;
  /// Inputs that become constants (`--bind NAME=FILE`), by input name.
  std::map<std::string, HostTensor> bindings;
  /// Accept operator sets newer than the newest known one, read as that.
  bool allowNewerOpset = false;
  /// Of language models.
  CacheType keys = CacheType::F16, values = CacheType::F16;
  /// TFLite: products of quantised operands are computed in f32 on dequantised operands and their results quantised with halves
  /// away from zero, as simulations of quantised models do, instead of in integers.
  bool floatProducts = false;
  /// Called now and then with the phase, what is done and the total.
  std::function<void(const char *phase, int64_t done, int64_t total)> progress;
};

/// Reads a model file. The result is a module with one function `main` of nn operations:
///  * argument and result attributes `nn.name` (string), and for per-tensor quantised integers `nn.scale`
///    (f32) and `nn.zero_point` (i32);
///  * module attributes `nn.symbols` (array of #nn.symbol: the symbolic dimensions), `nn.source` (file name) and, where the options
///    say so, `nn.float_products`: products of dequantised operands are not to become ones of integers;
///  * every operation located at the user's node (ajour/Support/NodeLocation.h).
/// On failure null, with one diagnostic for each problem of the model (all unsupported nodes, not the first).
mlir::OwningOpRef<mlir::ModuleOp> importONNX(mlir::MLIRContext *context, const std::string &path,
                                             const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importTFLite(mlir::MLIRContext *context, const std::string &path,
                                               const ImportOptions &options);

/// Language models: a GGUF file (or the first of a split model), and a Hugging Face folder or a .safetensors file in one, with its
/// config.json. The module's main takes `tokens` and `positions` (i64 [tokens]) and gives `logits` (f32 [tokens, vocabulary]); keys and values
/// of each position are states (docs/decisions/0014-attention.md). `tokens` goes to 512, and positions to 4096 or to the model's
/// context; `dims` says otherwise by the names `tokens` and `length`.
mlir::OwningOpRef<mlir::ModuleOp> importGGUF(mlir::MLIRContext *context, const std::string &path,
                                             const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importHuggingFace(mlir::MLIRContext *context, const std::string &path,
                                                    const ImportOptions &options);

/// By content, then by extension: one of the above, or a diagnostic naming the formats that are known.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext *context, const std::string &path,
                                              const ImportOptions &options);

} // namespace ajour

#endif
