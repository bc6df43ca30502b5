// What models of every architecture mean once imported: interpreted, against forward passes in PyTorch.
#include "Import/Language/SmallModels.h"

#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include <gtest/gtest.h>

using namespace ajour;
using namespace ajour::test;

namespace {

class Logits : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    if (!hasTorch())
      GTEST_SKIP() << "absent: python3-torch";
    model = std::make_unique<SmallModel>(GetParam());
  }

  void check(mlir::OwningOpRef<mlir::ModuleOp> (*import)(mlir::MLIRContext *, const std::string &, const ImportOptions &),
             const std::string &path, const char *form) {
    mlir::MLIRContext context;
    DiagnosticCollector diagnostics(&context, path);
    // As PyTorch keeps them.
    ImportOptions options;
    options.keys = options.values = CacheType::F32;
    mlir::OwningOpRef<mlir::ModuleOp> module = import(&context, path, options);
    ASSERT_TRUE(module) << diagnostics.text();
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    std::vector<HostTensor> arguments = model->inputs();
    int64_t count = arguments[0].shape[0];
    for (size_t i = arguments.size(); i < main.getNumArguments(); ++i) {
      auto type = mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
      HostTensor state;
      state.elementType = nn::getElementTypeId(type.getElementType());
      state.shape.assign(type.getShape().begin(), type.getShape().end());
      state.data.resize(size_t(state.numElements() * nn::elementBytes(type.getElementType())));
      arguments.push_back(std::move(state));
    }
    mlir::FailureOr<std::vector<HostTensor>> outputs = interpret(main, arguments, {count});
    ASSERT_TRUE(mlir::succeeded(outputs)) << diagnostics.text();
    model->compare((*outputs)[0], form);
  }

  std::unique_ptr<SmallModel> model;
};

TEST_P(Logits, OfHuggingFaceFolders) { check(importHuggingFace, model->safetensors(), "Hugging Face"); }
INSTANTIATE_TEST_SUITE_P(Architectures, Logits, testing::ValuesIn(smallModels()), [](const auto &info) { return testName(info.param); });

class LogitsGGUF : public Logits {};
TEST_P(LogitsGGUF, OfFiles) { check(importGGUF, model->gguf(), "GGUF"); }
INSTANTIATE_TEST_SUITE_P(Architectures, LogitsGGUF, testing::ValuesIn(smallModelsOfGGUF()), [](const auto &info) { return testName(info.param); });

} // namespace
