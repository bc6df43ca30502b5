//===- SimplifySurvey.cpp - what simplification does to whole models -------------===//
//
// usage: SimplifySurvey MODEL...   imports each model, simplifies it, interprets both with the same random inputs
// and prints how far the results are apart and what is still transposed. Exit code 1 when one differs.
//
//===----------------------------------------------------------------------===//
#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Format.h"

#include <chrono>
#include <cmath>
#include <random>

using namespace mlir;
using namespace ajour;

namespace {

std::vector<HostTensor> randomInputs(func::FuncOp function, ArrayRef<int64_t> symbols) {
  std::mt19937 random(3);
  std::vector<HostTensor> tensors;
  for (Type argument : function.getArgumentTypes()) {
    auto type = cast<RankedTensorType>(argument);
    HostTensor tensor;
    tensor.elementType = nn::getElementTypeId(type.getElementType());
    for (AffineExpr dim : nn::getDims(type)) {
      SmallVector<AffineExpr> values;
      for (int64_t symbol : symbols)
        values.push_back(getAffineConstantExpr(symbol, type.getContext()));
      tensor.shape.push_back(nn::getConstant(simplifyAffineExpr(dim.replaceSymbols(values), 0, 0)).value_or(1));
    }
    int64_t size = nn::elementBytes(type.getElementType());
    tensor.data.resize(tensor.numElements() * size);
    for (int64_t i = 0; i < tensor.numElements(); ++i) {
      int64_t number = size == 1 ? random() & 0x7f : random() & 1;
      if (type.getElementType().isF32())
        tensor.as<float>()[i] = std::normal_distribution<float>(0, 1)(random);
      else if (isa<IntegerType>(type.getElementType()))
        memcpy(tensor.data.data() + i * size, &number, size);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// The largest difference against the largest magnitude, and for integers the largest difference in steps.
void compare(const HostTensor &was, const HostTensor &is, double &relative, int64_t &steps) {
  if (was.elementType == AJOUR_F32) {
    double largest = 1e-9, worst = 0;
    for (int64_t i = 0; i < was.numElements(); ++i) {
      largest = std::max<double>(largest, std::fabs(was.as<float>()[i]));
      double difference = std::fabs(was.as<float>()[i] - is.as<float>()[i]);
      if (std::isnan(was.as<float>()[i]) != std::isnan(is.as<float>()[i]))
        difference = INFINITY;
      worst = std::max(worst, difference);
    }
    relative = std::max(relative, worst / largest);
  } else if (was.elementType == AJOUR_I8 || was.elementType == AJOUR_U8) {
    for (int64_t i = 0; i < was.numElements(); ++i)
      steps = std::max<int64_t>(steps, was.elementType == AJOUR_I8
                                           ? std::abs(was.as<int8_t>()[i] - is.as<int8_t>()[i])
                                           : std::abs(was.as<uint8_t>()[i] - is.as<uint8_t>()[i]));
  } else if (was.data != is.data) {
    steps = std::max<int64_t>(steps, 1000);
  }
}

/// The largest finite magnitude of floating point results: shows that something was compared.
double largestMagnitude(ArrayRef<HostTensor> tensors) {
  double largest = 0;
  for (const HostTensor &tensor : tensors)
    if (tensor.elementType == AJOUR_F32)
      for (int64_t i = 0; i < tensor.numElements(); ++i)
        if (std::isfinite(tensor.as<float>()[i]))
          largest = std::max<double>(largest, std::fabs(tensor.as<float>()[i]));
  return largest;
}

void print(const LayoutReport &report) {
  llvm::outs() << report.transposes << " transposes " << report.transposeBytes << " B (border "
               << report.borderTransposes << ", " << report.borderBytes << " B), " << report.reshapes << " reshapes";
}

bool survey(const std::string &path, bool evaluateBoth, bool printIR) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  int remarks = 0;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      llvm::outs() << "  " << diagnostic.str() << "\n";
    else if (++remarks <= 3)
      llvm::outs() << "  note: " << diagnostic.str() << "\n";
    return success();
  });
  llvm::outs() << path << "\n";
  OwningOpRef<ModuleOp> module = importModel(&context, path, {});
  if (!module) {
    llvm::outs() << "  not imported\n";
    return true;
  }
  auto function = *module->getOps<func::FuncOp>().begin();
  SmallVector<int64_t> symbols(8, 64);
  std::vector<HostTensor> inputs = randomInputs(function, symbols), before;
  if (evaluateBoth) {
    auto results = interpret(function, inputs, symbols);
    if (failed(results))
      evaluateBoth = false;
    else
      before = std::move(*results);
  }
  llvm::outs() << "  before: ";
  print(countLayoutOps(function));
  size_t opsBefore = std::distance(function.getBody().front().begin(), function.getBody().front().end());
  auto start = std::chrono::steady_clock::now();
  PassManager manager(&context);
  buildSimplifyPipeline(manager);
  if (failed(manager.run(*module))) {
    llvm::outs() << "\n  passes failed\n";
    return false;
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  llvm::outs() << "\n  after:  ";
  print(countLayoutOps(function));
  size_t opsAfter = std::distance(function.getBody().front().begin(), function.getBody().front().end());
  llvm::outs() << "\n  " << opsBefore << " -> " << opsAfter << " operations, " << llvm::format("%.2f", seconds) << " s, "
               << remarks << " remarks\n";
  if (printIR)
    module->print(llvm::outs(), OpPrintingFlags().elideLargeElementsAttrs(16).elideLargeResourceString(16));
  if (!evaluateBoth)
    return true;
  auto after = interpret(function, inputs, symbols);
  if (failed(after)) {
    llvm::outs() << "  WRONG: not interpretable any more\n";
    return false;
  }
  double relative = 0;
  int64_t steps = 0;
  for (size_t i = 0; i < before.size(); ++i)
    compare(before[i], (*after)[i], relative, steps);
  // A step inside a quantised network may become a few at its end; an error of the passes becomes many.
  bool good = relative < 2e-4 && steps <= 4;
  llvm::outs() << "  " << (good ? "same: " : "WRONG: ") << llvm::format("%.2e", relative) << " relative, " << steps
               << " steps; largest result " << llvm::format("%.3g", largestMagnitude(before)) << "\n";
  return good;
}

} // namespace

int main(int argc, char **argv) {
  bool good = true, evaluateBoth = true, printIR = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--no-run")
      evaluateBoth = false;
    else if (argument == "--ir")
      printIR = true;
    else
      good &= survey(argument, evaluateBoth, printIR);
    llvm::outs().flush();
  }
  return good ? 0 : 1;
}
