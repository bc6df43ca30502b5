//===- LowerToLLVM.cpp - dispatch functions to the LLVM dialect -----------===//
#include "Codegen.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ajour {

/// Name of the function attribute that forbids contraction.
static constexpr StringLiteral strictAttribute = "strict_fp";

/// Adds `contract` to every floating-point operation that can carry it, outside strict functions.
static void allowContraction(ModuleOp module, bool contract) {
  for (auto function : module.getOps<FunctionOpInterface>()) {
    bool strict = static_cast<bool>(function->removeAttr(strictAttribute));
    if (strict || !contract)
      continue;
    function.walk([](arith::ArithFastMathInterface op) {
      arith::FastMathFlagsAttr old = op.getFastMathFlagsAttr();
      auto flags = (old ? old.getValue() : arith::FastMathFlags::none) | arith::FastMathFlags::contract;
      op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(op->getContext(), flags));
    });
  }
}

LogicalResult lowerToLLVMDialect(ModuleOp module, bool contract) {
  allowContraction(module, contract);
  expandMath(module);
  PassManager manager(module->getContext());
  manager.addPass(createConvertVectorToSCFPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createUBToLLVMConversionPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  return manager.run(module);
}

} // namespace ajour
