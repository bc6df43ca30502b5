//===- ReferenceCasesMain.cpp - the reference's own tests, compiled ------------------------===//
//
// The tests of the interpreter hold the right answers of every operation, with its edge cases. Linked with this
// file, each module that they interpret is compiled as well and must give what the interpreter gave.
//
//===----------------------------------------------------------------------===//
#include "Pipeline/Compiled.h"
#include "Reference/Harness.h"

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Target/CpuTarget.h"

#include <cmath>

using namespace ajour;
using namespace ajour::test;

/// Whether a grid of samples has coordinates that are no numbers or so far away that an f32 holds no fraction of them:
/// compiled code must then stay inside the picture, and any of its elements will do.
static bool hasFarSamples(mlir::ModuleOp module, const std::vector<HostTensor> &inputs) {
  bool samples = false, far = false;
  module.walk([&](nn::GridSampleOp) { samples = true; });
  for (const HostTensor &input : inputs)
    for (int64_t i = 0; samples && input.elementType == AJOUR_F32 && i < input.numElements(); ++i)
      far |= !(std::fabs(input.as<float>()[i]) < 1e6f);
  return far;
}

/// What every importer writes and these modules leave out: the names of the symbolic dimensions.
static void nameSymbols(mlir::ModuleOp module, size_t count) {
  mlir::OpBuilder b(module.getContext());
  llvm::SmallVector<mlir::Attribute> symbols;
  for (size_t i = 0; i < count; ++i)
    symbols.push_back(nn::SymbolAttr::get(module.getContext(), b.getStringAttr("n" + std::to_string(i)), 0, -1));
  if (!module->hasAttr("nn.symbols"))
    module->setAttr("nn.symbols", b.getArrayAttr(symbols));
}

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
  nameSymbols(module, symbols.size());
  Expectation expectation;
  expectation.values = !hasFarSamples(module, inputs);
  expectCompiled(module, inputs, outcome.results, expectation);
}

static const bool hooked = [] {
  moduleCheck = compileToo;
  return true;
}();
