//===- SimplifyHarness.h - passes run on text, results compared -*- C++ -*-===//
#ifndef AJOUR_TESTS_CONVERSION_SIMPLIFYHARNESS_H
#define AJOUR_TESTS_CONVERSION_SIMPLIFYHARNESS_H

#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace ajour::test {

/// How results before and after a pass may differ.
struct Tolerance {
  double relative = 0; ///< of floating point results, against the largest magnitude of the tensor
  int64_t steps = 0;   ///< of integer results
};

/// A module, what it computes for random inputs, and what is left of it after passes.
class SimplifyTest : public ::testing::Test {
protected:
  SimplifyTest();

  /// Parses "func.func @main ..." and computes its results.
  void parse(const std::string &text);
  /// Runs a pass, checks that the results stay within the tolerance and that a second run changes nothing.
  void check(const std::function<std::unique_ptr<mlir::Pass>()> &make, Tolerance tolerance = {});
  /// Runs the first stages of the pipeline and checks the results.
  void checkStages(const SimplifyOptions &options, Tolerance tolerance);
  /// The same for the whole pipeline, and that a second run changes nothing.
  void checkPipeline(Tolerance tolerance = {});

  template <typename Op> int count() {
    int number = 0;
    main().walk([&](Op) { ++number; });
    return number;
  }
  template <typename Op> Op only() {
    Op found;
    main().walk([&](Op op) { found = op; });
    EXPECT_EQ(count<Op>(), 1);
    return found;
  }
  mlir::func::FuncOp main() { return *module->getOps<mlir::func::FuncOp>().begin(); }
  std::string text();

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> remarks;

private:
  std::vector<HostTensor> randomInputs();
  void run(const std::function<void(mlir::OpPassManager &)> &build);
  void compareResults(Tolerance tolerance);

  std::vector<HostTensor> inputs, expected;
};

} // namespace ajour::test

#endif
