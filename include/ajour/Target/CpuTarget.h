//===- CpuTarget.h - machine code of dispatch functions -------*- C++ -*-===//
#ifndef AJOUR_TARGET_CPUTARGET_H
#define AJOUR_TARGET_CPUTARGET_H

#include "ajour/ABI/CpuFeatures.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace ajour {

/// A row of AJOUR_CPU_LEVELS as data.
struct CpuLevelInfo {
  ajour_cpu_level level;
  const char *name;
  ajour_arch arch;
  uint64_t featureSet;
  const char *cpu;      ///< LLVM CPU name
  const char *features; ///< LLVM feature string
};

/// The levels in the order of the table.
llvm::ArrayRef<CpuLevelInfo> cpuLevels();
/// The row of a level, or null.
const CpuLevelInfo *lookupCpuLevel(ajour_cpu_level level);

/// Systems that objects are made for. They differ in object format and symbol names only: dispatches
/// call nothing.
enum class CpuPlatform { Linux, Android, IOS };

struct CpuEmitOptions {
  /// 0 to 3, as of clang's -O.
  unsigned optimization = 3;
  /// Let a multiplication and an addition become one fused operation where the target has one. Functions
  /// with the unit attribute `strict_fp` keep every rounding.
  bool contract = true;
  /// Fill CpuCode::assembly (costs a second code generation).
  bool wantAssembly = false;
  /// Fill CpuCode::sharedObject. Linux and Android only.
  bool wantSharedObject = true;
  CpuPlatform platform = CpuPlatform::Linux;
};

struct CpuCode {
  /// Relocatable object: ELF, or Mach-O for iOS.
  std::vector<char> object;
  /// Self-contained ELF shared object: no library, no undefined symbol, 16 KiB pages. Its dynamic symbols
  /// are the dispatch functions.
  std::vector<char> sharedObject;
  std::string assembly;
};

/// Loads into the context everything that code generation uses. Called by emitCpuCode as well, but then
/// no other thread may be at work in the context the first time.
void prepareCpuTarget(mlir::MLIRContext &context);

/// Compiles a module of dispatch functions for one CPU level; the module is left as it is.
///
/// Public functions (func.func or llvm.func) are dispatches of the signature of ajour_dispatch_fn:
/// (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64), no result. Private functions with a body are helpers
/// and become local; `passthrough = ["alwaysinline"]` and `llvm.noalias` are honoured. Private
/// declarations are micro-kernels (ajour/Kernels/Kernels.h), which are linked in and must be inlined
/// completely. Bodies are of the dialects scf, cf, arith, math, index, func, vector, affine (apply),
/// ub and llvm. Every math operation on f16, bf16, f32 and f64, scalars and vectors, becomes
/// straight code; nothing is called.
///
/// Errors (also those of LLVM and lld) are emitted as diagnostics on the module's context.
///
/// Safe to call from several threads at a time, for modules of one context or of several, once the
/// context is prepared (prepareCpuTarget), provided that nobody changes the module meanwhile. LLVM IR
/// is made in a context of its own for each call; links by lld take turns.
mlir::FailureOr<CpuCode> emitCpuCode(mlir::ModuleOp module, ajour_cpu_level level, const CpuEmitOptions &options = {});

/// Dispatch functions for one CPU level.
struct StaticLevel {
  mlir::ModuleOp module;
  ajour_cpu_level level;
};

struct StaticObject {
  /// Relocatable object: ELF, or Mach-O for iOS (arm64-apple-ios15.0).
  std::vector<char> object;
  /// ajour_static_code::identity: differs where the code differs.
  uint64_t identity = 0;
};

/// One object for linking into an application, with the code of several levels of one architecture, lowest first. It defines one symbol,
/// `tableName`: an ajour_static_code that lists every public function of each module by its name there. Otherwise as
/// emitCpuCode; of the options, those about shared objects and assembly have no effect.
mlir::FailureOr<StaticObject> emitStaticObject(llvm::ArrayRef<StaticLevel> levels, llvm::StringRef tableName,
                                               const CpuEmitOptions &options = {});

} // namespace ajour

#endif
