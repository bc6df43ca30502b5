//===- CompiledTest.cpp - conformance of the whole compiler and the runtime ---------===//
//
// AJOUR_CONFORMANCE_FILTER: only the cases whose path contains it. AJOUR_CONFORMANCE_OPT: 0 to 3, as `ajour compile`'s
// -O. AJOUR_CPU: the code level.
//
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "Support/CompiledModel.h"

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Target/CpuTarget.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace ajour;
using namespace ajour::conformance;

/// Tests that ctest can run side by side; each takes every `shards`-th case.
static constexpr size_t shards = 4;

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : nullptr;
}

class Compiled : public testing::TestWithParam<size_t> {};

TEST_P(Compiled, PassesOrRefuses) {
  std::vector<std::string> cases = findCases(testData());
  if (cases.empty())
    GTEST_SKIP() << "libonnx-testdata is absent: no cases below " << testData();
  const char *filter = setting("AJOUR_CONFORMANCE_FILTER");
  unsigned optimization = setting("AJOUR_CONFORMANCE_OPT") ? atoi(setting("AJOUR_CONFORMANCE_OPT")) : 3;
  Executor executor = [&](mlir::ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &,
                          std::vector<HostTensor> &outputs, std::string &error) {
    // An importer's context knows only the dialects that it makes.
    module.getContext()->loadDialect<nn::NNDialect, exec::ExecDialect, mlir::func::FuncDialect>();
    prepareCpuTarget(*module.getContext());
    DiagnosticCollector diagnostics(module.getContext(), "model");
    std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(module, test::oneLevel(optimization));
    if (!compiled)
      error = "refused after import: " + diagnostics.text();
    return compiled && compiled->run(inputs, outputs, error);
  };
  Tally tally;
  for (size_t i = GetParam(); i < cases.size(); i += shards) {
    if (filter && cases[i].find(filter) == std::string::npos)
      continue;
    CaseResult result = runCase(cases[i], executor);
    tally.add(result);
    if (result.verdict == Verdict::wrong)
      ADD_FAILURE() << "WRONG " << result.name << ": " << result.message;
    else if (result.verdict == Verdict::refused)
      EXPECT_FALSE(result.message.empty()) << result.name << " is refused without a message";
  }
  tally.print();
  // At least 700 of all 1072, in each part its share.
  if (!filter)
    EXPECT_GE(tally.passed * 1072, 700 * (tally.passed + tally.refused + tally.wrong));
}

INSTANTIATE_TEST_SUITE_P(Conformance, Compiled, testing::Range(size_t(0), shards));
