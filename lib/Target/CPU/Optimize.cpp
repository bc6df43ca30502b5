//===- Optimize.cpp - LLVM's pipeline for dispatch functions --------------===//
#include "Codegen.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/LowerMemIntrinsics.h"

using namespace llvm;

namespace ajour {

namespace {
/// Turns memory intrinsics that the back end would make calls of into loops. Short ones of a constant
/// size stay where the back end optimises: every target then expands them to a few loads and stores.
struct ExpandMemoryIntrinsics : PassInfoMixin<ExpandMemoryIntrinsics> {
  explicit ExpandMemoryIntrinsics(unsigned optimization) : inlineBytes(optimization == 0 ? 0 : 64) {}
  uint64_t inlineBytes;

  PreservedAnalyses run(Function &function, FunctionAnalysisManager &manager) {
    SmallVector<MemIntrinsic *> found;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (auto *memory = dyn_cast<MemIntrinsic>(&instruction)) {
          auto *size = dyn_cast<ConstantInt>(memory->getLength());
          if (!size || size->getZExtValue() > inlineBytes)
            found.push_back(memory);
        }
    if (found.empty())
      return PreservedAnalyses::all();
    const TargetTransformInfo &info = manager.getResult<TargetIRAnalysis>(function);
    for (MemIntrinsic *memory : found) {
      if (auto *copy = dyn_cast<MemCpyInst>(memory))
        expandMemCpyAsLoop(copy, info);
      else if (auto *move = dyn_cast<MemMoveInst>(memory))
        expandMemMoveAsLoop(move, info);
      else
        expandMemSetAsLoop(cast<MemSetInst>(memory));
      memory->eraseFromParent();
    }
    return PreservedAnalyses::none();
  }
};
} // namespace

static OptimizationLevel levelOf(unsigned optimization) {
  switch (optimization) {
  case 0:
    return OptimizationLevel::O0;
  case 1:
    return OptimizationLevel::O1;
  case 2:
    return OptimizationLevel::O2;
  default:
    return OptimizationLevel::O3;
  }
}

void optimizeModule(Module &module, TargetMachine &machine, unsigned optimization) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = optimization >= 2;
  tuning.LoopInterleaving = optimization >= 2;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager calls;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  ModulePassManager passes = optimization == 0 ? builder.buildO0DefaultPipeline(OptimizationLevel::O0)
                                               : builder.buildPerModuleDefaultPipeline(levelOf(optimization));
  passes.addPass(createModuleToFunctionPassAdaptor(ExpandMemoryIntrinsics(optimization)));
  passes.run(module, modules);
}

} // namespace ajour
