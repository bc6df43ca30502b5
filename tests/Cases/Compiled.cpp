//===- Compiled.cpp - run() of the model builder executes compiled code --------------===//
#include "Import/ONNX/ModelBuilder.h"
#include "Support/CompiledModel.h"

namespace {

struct UseCompiledCode : testing::Environment {
  void SetUp() override { ajour::onnx_test::executor() = ajour::test::executeCompiled; }
};
[[maybe_unused]] testing::Environment *environment = testing::AddGlobalTestEnvironment(new UseCompiledCode);

} // namespace
