//===- ReferenceCasesMain.cpp - the reference's own tests, compiled ------------------------===//
//
// The tests of the interpreter hold the right answers of every operation, with its edge cases. Linked with this
// file, each module that they interpret is compiled as well and must give what the interpreter gave.
//
//===----------------------------------------------------------------------===//
#include "Pipeline/Compiled.h"
#include "Reference/Harness.h"

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Target/CpuTarget.h"

using namespace ajour;
using namespace ajour::test;

static void compileToo(mlir::ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &symbols,
                       const Outcome &outcome) {
  // What the interpreter refuses has no answer to compare with; dispatches written by hand are not formed again.
  bool hasExec = module.walk([](mlir::Operation *op) {
                         return mlir::isa<exec::DispatchOp, exec::AliasOp>(op) ? mlir::WalkResult::interrupt()
                                                                               : mlir::WalkResult::advance();
                       })
                     .wasInterrupted();
  if (outcome.results.empty() || hasExec)
    return;
  prepareCpuTarget(*module.getContext());
  Expectation expectation;
  expectation.steps = 0;
  expectCompiled(module, inputs, outcome.results, expectation);
}

static const bool hooked = [] {
  moduleCheck = compileToo;
  return true;
}();
