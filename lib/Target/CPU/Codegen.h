//===- Codegen.h - the steps of CPU code generation -----------*- C++ -*-===//
#ifndef AJOUR_LIB_TARGET_CPU_CODEGEN_H
#define AJOUR_LIB_TARGET_CPU_CODEGEN_H

#include "ajour/Target/CpuTarget.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace ajour {

/// Rewrites a module of dispatch functions into the LLVM dialect.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module, bool contract);

/// Replaces every operation on floats that LLVM would make a library call of, at any level: elementary
/// functions, remainders, and arithmetic and conversions of f16 and bf16.
void expandMath(mlir::ModuleOp module);

/// Links the micro-kernels that `module` declares and gives them the attributes of the level. Returns
/// the names of all functions that came with them; they must be gone after optimisation.
llvm::Expected<std::vector<std::string>> linkKernels(llvm::Module &module, const CpuLevelInfo &level,
                                                     const llvm::TargetMachine &machine);

/// Target attributes that every function of a level has.
void setTargetAttributes(llvm::Function &function, const CpuLevelInfo &level);

/// Runs LLVM's pipeline, and expands what would become a call of memcpy, memmove or memset.
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine, unsigned optimization);

/// Links one ELF object into a self-contained shared object.
llvm::Expected<std::vector<char>> linkSharedObject(llvm::ArrayRef<char> object);

} // namespace ajour

#endif
