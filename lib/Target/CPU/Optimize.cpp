//===- Optimize.cpp - LLVM's pipeline for dispatch functions --------------===//
#include "Codegen.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
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

/// x86's minimum and maximum give their second operand if any is NaN. With a limit that is none, one instruction is thus
/// enough, where the intrinsic takes three; only the sign of a zero may differ.
struct ExpandLimits : PassInfoMixin<ExpandLimits> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &) {
    SmallVector<IntrinsicInst *> found;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (auto *limit = dyn_cast<IntrinsicInst>(&instruction))
          if (limit->getIntrinsicID() == Intrinsic::maximum || limit->getIntrinsicID() == Intrinsic::minimum)
            found.push_back(limit);
    bool changed = false;
    for (IntrinsicInst *limit : found) {
      Value *x = limit->getArgOperand(0), *bound = limit->getArgOperand(1);
      if (isa<Constant>(x))
        std::swap(x, bound);
      const APFloat *number;
      if (!match(bound, PatternMatch::m_APFloat(number)) || number->isNaN())
        continue;
      IRBuilder<> builder(limit);
      Value *beyond = limit->getIntrinsicID() == Intrinsic::maximum ? builder.CreateFCmpOLT(x, bound)
                                                                     : builder.CreateFCmpOGT(x, bound);
      limit->replaceAllUsesWith(builder.CreateSelect(beyond, bound, x));
      limit->eraseFromParent();
      changed = true;
    }
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
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
  if (machine.getTargetTriple().isX86())
    passes.addPass(createModuleToFunctionPassAdaptor(ExpandLimits()));
  passes.run(module, modules);
}

} // namespace ajour
