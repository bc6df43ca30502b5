//===- Compiled.h - compiled modules against the reference -----*- C++ -*-===//
#ifndef AJOUR_TESTS_PIPELINE_COMPILED_H
#define AJOUR_TESTS_PIPELINE_COMPILED_H

#include "ajour/Pipeline/CompiledModel.h"
#include "ajour/Pipeline/Verify.h"

#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

namespace ajour::test {

struct Expectation {
  double tolerance = 1e-4;
  int64_t steps = 0; ///< of integers
  bool simplify = true;     ///< also after simplification, not only as written
  uint64_t seed = 1;
  int64_t indexBound = 8;   ///< random i32 and i64 inputs lie in [-bound, bound)
  uint32_t threads = 1;
  bool values = true;       ///< otherwise only that every run ends and gives the right shapes
};

/// The context of these tests.
mlir::MLIRContext *compilerContext();

/// Parses a module; arguments of main with the attribute `test.constant` become constants of random values.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(const std::string &text, uint64_t seed = 1);

/// Random inputs for main: floats normal about 0, small integers over their whole range, i32 and i64 below a bound.
std::vector<HostTensor> randomInputs(mlir::ModuleOp module, const std::vector<int64_t> &symbols, uint64_t seed,
                                     int64_t indexBound = 8);

/// Compiles a module for every level of this machine, runs it for each set of symbol values with random inputs and
/// compares with the reference; on a second run with one more thread too.
void expectCompiled(const std::string &text, const std::vector<std::vector<int64_t>> &symbolSets = {{}},
                    const Expectation &expectation = {});

/// The same for a module that stands, with given inputs and right answers.
void expectCompiled(mlir::ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<HostTensor> &expected,
                    const Expectation &expectation);

} // namespace ajour::test

#endif
