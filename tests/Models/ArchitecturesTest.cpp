// A small language model of each architecture, compiled, against forward passes in PyTorch. What importing makes of them is tested by
// itself (tests/Import/Language).
#include "Import/Language/SmallModels.h"

#include "ajour/Import/Import.h"
#include "ajour/Pipeline/CompiledModel.h"
#include "ajour/Support/Diagnostics.h"

#include <gtest/gtest.h>

using namespace ajour;
using namespace ajour::test;

namespace {

class Architectures : public testing::TestWithParam<const char *> {};

TEST_P(Architectures, Compiled) {
  if (!hasTorch())
    GTEST_SKIP() << "absent: python3-torch";
  SmallModel model(GetParam());
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  DiagnosticCollector diagnostics(context.get(), model.safetensors());
  ImportOptions import;
  import.keys = import.values = CacheType::F32; // rounded keys would hide small mistakes
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context.get(), model.safetensors(), import);
  ASSERT_TRUE(module) << diagnostics.text();
  CompileOptions options;
  options.levels = {chosenLevels({}).back()};
  std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(*module, options);
  ASSERT_TRUE(compiled) << diagnostics.text();
  std::vector<HostTensor> outputs;
  std::string error;
  ASSERT_TRUE(compiled->run(model.inputs(), outputs, error)) << error;
  model.compare(outputs[0], "compiled");
}

INSTANTIATE_TEST_SUITE_P(Logits, Architectures, testing::ValuesIn(smallModels()), [](const auto &info) { return testName(info.param); });

} // namespace
