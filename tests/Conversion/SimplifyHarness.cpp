//===- SimplifyHarness.cpp - passes run on text, results compared --------------===//
#include "SimplifyHarness.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace ajour::test {

SimplifyTest::SimplifyTest() : context(MLIRContext::Threading::DISABLED) {
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    remarks.push_back(diagnostic.str());
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
}

/// Values of one symbol that tests use.
static const int64_t symbolValues[] = {5, 7};

std::vector<HostTensor> SimplifyTest::randomInputs() {
  std::mt19937 random(7);
  std::vector<HostTensor> tensors;
  for (Type argument : main().getArgumentTypes()) {
    auto type = cast<RankedTensorType>(argument);
    HostTensor tensor;
    tensor.elementType = nn::getElementTypeId(type.getElementType());
    for (AffineExpr dim : nn::getDims(type)) {
      auto symbol = dyn_cast<AffineSymbolExpr>(dim);
      tensor.shape.push_back(symbol ? symbolValues[symbol.getPosition()] : *nn::getConstant(dim));
    }
    int64_t size = nn::elementBytes(type.getElementType());
    tensor.data.resize(tensor.numElements() * size);
    for (int64_t i = 0; i < tensor.numElements(); ++i) {
      if (type.getElementType().isF32()) {
        tensor.as<float>()[i] = std::normal_distribution<float>(0, 2)(random);
      } else {
        EXPECT_TRUE(isa<IntegerType>(type.getElementType()));
        int64_t value = type.getElementType().isInteger(1) ? random() & 1 : static_cast<int64_t>(random());
        memcpy(tensor.data.data() + i * size, &value, size);
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void SimplifyTest::parse(const std::string &text) {
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  inputs = randomInputs();
  auto results = interpret(main(), inputs, symbolValues);
  ASSERT_TRUE(succeeded(results));
  expected = *results;
}

std::string SimplifyTest::text() {
  std::string out;
  llvm::raw_string_ostream os(out);
  module->print(os);
  return out;
}

void SimplifyTest::run(const std::function<void(OpPassManager &)> &build) {
  PassManager manager(&context);
  build(manager);
  ASSERT_TRUE(succeeded(manager.run(*module))) << text();
}

void SimplifyTest::compareResults(Tolerance tolerance) {
  auto results = interpret(main(), inputs, symbolValues);
  ASSERT_TRUE(succeeded(results)) << text();
  ASSERT_EQ(results->size(), expected.size());
  for (size_t r = 0; r < expected.size(); ++r) {
    const HostTensor &was = expected[r], &is = (*results)[r];
    ASSERT_EQ(was.elementType, is.elementType);
    ASSERT_EQ(was.shape, is.shape);
    bool isFloat = was.elementType == AJOUR_F32, is8Bit = was.elementType == AJOUR_I8 || was.elementType == AJOUR_U8;
    if ((isFloat ? tolerance.relative == 0 : tolerance.steps == 0) || (!isFloat && !is8Bit)) {
      EXPECT_EQ(was.data, is.data) << "result " << r << "\n" << text();
    } else if (isFloat) {
      float largest = 1e-6f, worst = 0;
      for (int64_t i = 0; i < was.numElements(); ++i) {
        largest = std::max(largest, std::fabs(was.as<float>()[i]));
        worst = std::max(worst, std::fabs(was.as<float>()[i] - is.as<float>()[i]));
      }
      EXPECT_LE(worst, tolerance.relative * largest) << "result " << r << "\n" << text();
    } else {
      bool isSigned = was.elementType == AJOUR_I8;
      for (int64_t i = 0; i < was.numElements(); ++i) {
        int a = isSigned ? was.as<int8_t>()[i] : was.as<uint8_t>()[i];
        int b = isSigned ? is.as<int8_t>()[i] : is.as<uint8_t>()[i];
        ASSERT_LE(std::abs(a - b), tolerance.steps) << "result " << r << " element " << i << "\n" << text();
      }
    }
  }
}

void SimplifyTest::check(const std::function<std::unique_ptr<Pass>()> &make, Tolerance tolerance) {
  auto build = [&](OpPassManager &manager) { manager.addNestedPass<func::FuncOp>(make()); };
  run(build);
  compareResults(tolerance);
  std::string once = text();
  run(build);
  EXPECT_EQ(once, text()) << "the second run changed something";
}

void SimplifyTest::checkStages(const SimplifyOptions &options, Tolerance tolerance) {
  run([&](OpPassManager &manager) { buildSimplifyPipeline(manager, options); });
  compareResults(tolerance);
}

void SimplifyTest::checkPipeline(Tolerance tolerance) {
  auto build = [&](OpPassManager &manager) { buildSimplifyPipeline(manager); };
  run(build);
  compareResults(tolerance);
  std::string once = text();
  run(build);
  EXPECT_EQ(once, text()) << "the second run changed something";
}

} // namespace ajour::test
