//===- Harness.cpp - runs one operation on values --------------------------------===//
#include "Reference/Harness.h"

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace ajour::test {

MLIRContext *context() {
  static MLIRContext *instance = [] {
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<func::FuncDialect, nn::NNDialect, exec::ExecDialect>();
    return made;
  }();
  return instance;
}

ModuleCheck moduleCheck = nullptr;

Outcome runModule(const std::string &text, std::vector<HostTensor> inputs, std::vector<int64_t> symbols) {
  Outcome outcome;
  ScopedDiagnosticHandler handler(context(), [&](Diagnostic &diagnostic) {
    outcome.message += diagnostic.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context());
  outcome.parsed = bool(module);
  if (!module)
    return outcome;
  auto function = module->lookupSymbol<func::FuncOp>("main");
  FailureOr<std::vector<HostTensor>> results = interpret(function, inputs, symbols);
  if (succeeded(results))
    outcome.results = std::move(*results);
  if (moduleCheck)
    moduleCheck(*module, inputs, symbols, outcome);
  return outcome;
}

Outcome runOp(const std::string &op, std::vector<HostTensor> inputs) {
  std::string arguments, results = op.substr(op.rfind("-> ") + 3);
  for (size_t i = 0; i < inputs.size(); ++i) {
    llvm::raw_string_ostream os(arguments);
    os << (i ? ", %" : "%") << i << ": "
       << nn::makeTensor(inputs[i].shape, nn::getElementType(inputs[i].elementType, context()));
  }
  int count = results[0] == '(' ? std::count(results.begin(), results.end(), '<') : 1;
  std::string list = results[0] == '(' ? results.substr(1, results.size() - 2) : results;
  std::string values = "%r#0";
  for (int i = 1; i < count; ++i)
    values += ", %r#" + std::to_string(i);
  std::string name = count > 1 ? "%r:" + std::to_string(count) : "%r";
  if (count == 1)
    values = "%r";
  return runModule("func.func @main(" + arguments + ") -> (" + list + ") {\n" + name + " = " + op + "\nreturn " +
                       values + " : " + list + "\n}",
                   std::move(inputs));
}

void expectNear(const std::vector<float> &found, const std::vector<float> &expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance * std::max(1.0f, std::fabs(expected[i]))) << "element " << i;
}

void expectError(const std::string &op, std::vector<HostTensor> inputs, const std::string &text) {
  Outcome outcome = runOp(op, std::move(inputs));
  EXPECT_TRUE(outcome.parsed) << outcome.message;
  EXPECT_TRUE(outcome.results.empty()) << "no error for " << op;
  EXPECT_NE(outcome.message.find(text), std::string::npos) << outcome.message;
}

} // namespace ajour::test
