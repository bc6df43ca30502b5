//===- VerifyTest.cpp - faults that verify must find --------------------------------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"

#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Support/NodeLocation.h"

#include <algorithm>

using namespace ajour;
using namespace ajour::test;

namespace {

/// Gives the operations of a module, constants aside, the locations of nodes.
void nameNodes(mlir::ModuleOp module, const std::vector<std::pair<std::string, std::string>> &nodes) {
  size_t index = 0;
  module->walk([&](mlir::Operation *op) {
    if (op->getName().getDialectNamespace() != "nn" || mlir::isa<nn::ConstantOp>(op) || index == nodes.size())
      return;
    op->setLoc(makeNodeLocation(op->getContext(), {"net.onnx", nodes[index].first, nodes[index].second, int64_t(index)}));
    ++index;
  });
  EXPECT_EQ(index, nodes.size());
}

/// Two layers with a softmax between them; each operation is a node: fc1, act1, soft, fc2, act2.
mlir::OwningOpRef<mlir::ModuleOp> makeNet() {
  ModuleText m;
  std::string type = tensorType({3, 16}, "f32"), x = m.input(type);
  std::string w1 = m.constant(tensorType({16, 16}, "f32")), w2 = m.constant(tensorType({16, 16}, "f32"));
  std::string hidden = m.unary("tanh", m.op("nn.matmul", {x, w1}, "", type));
  std::string soft = m.op("nn.softmax", {hidden}, "axis = 1 : i64", type);
  m.output(m.unary("relu", m.op("nn.matmul", {soft, w2}, "", type)));
  mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(m.text());
  if (module)
    nameNodes(*module, {{"fc1", "MatMul"}, {"act1", "Tanh"}, {"soft", "Softmax"}, {"fc2", "MatMul"}, {"act2", "Relu"}});
  return module;
}

/// Makes the element-wise function of a node another one; how many were changed.
int plant(mlir::ModuleOp module, const std::string &node, nn::UnaryKind kind) {
  int changed = 0;
  module.walk([&](nn::UnaryOp op) {
    for (const NodeInfo &info : getNodes(op.getLoc()))
      if (info.name == node) {
        op.setKind(kind);
        ++changed;
      }
  });
  return changed;
}

struct VerifyFaults : testing::Test {
  VerifyReport verify(const VerifyOptions &options) {
    mlir::OwningOpRef<mlir::ModuleOp> module = makeNet();
    EXPECT_TRUE(module);
    if (!module)
      return {};
    mlir::FailureOr<VerifyReport> report = verifyModule(*module, randomInputs(*module, {}, 1), options);
    EXPECT_TRUE(mlir::succeeded(report));
    return mlir::succeeded(report) ? *report : VerifyReport();
  }
};

bool holds(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST_F(VerifyFaults, NoneWhereThereIsNone) {
  VerifyReport report = verify({});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.pass, "");
  EXPECT_EQ(report.firstDispatch(), nullptr);
  EXPECT_GE(report.dispatches.size(), 3u) << "two products and a softmax";
  EXPECT_TRUE(holds(toText(report), "\nok\n")) << toText(report);
}

// Each pass in turn is the wrong one.
TEST_F(VerifyFaults, PassOfSimplification) {
  for (int stage = 1; stage <= int(simplifyStages().size()); ++stage) {
    SCOPED_TRACE(simplifyStages()[stage - 1]);
    VerifyOptions options;
    options.afterStages = [&](mlir::ModuleOp module, int stages) {
      if (stages >= stage)
        EXPECT_EQ(plant(module, "act1", nn::UnaryKind::sin), 1);
    };
    VerifyReport report = verify(options);
    EXPECT_FALSE(report.passed());
    EXPECT_EQ(report.pass, simplifyStages()[stage - 1]);
    EXPECT_EQ(report.suspect.nodes, "node 'act1' (Tanh, #1)");
    EXPECT_GT(report.suspect.difference.maxAbsolute, 0.1);
    EXPECT_EQ(report.firstDispatch(), nullptr) << "the code does what the simplified module says";
    std::string text = toText(report);
    EXPECT_TRUE(holds(text, "simplification changes the result: pass " + report.pass + "\n")) << text;
    EXPECT_TRUE(holds(text, "first node that differs: node 'act1' (Tanh, #1)\n")) << text;
    EXPECT_TRUE(holds(text, "\nWRONG\n")) << text;
  }
}

TEST_F(VerifyFaults, CodeOfADispatch) {
  for (const char *node : {"act1", "act2"}) {
    VerifyOptions options;
    options.beforeCode = [&](mlir::ModuleOp module) {
      EXPECT_EQ(plant(module, node, node == std::string("act1") ? nn::UnaryKind::sin : nn::UnaryKind::abs), 1);
    };
    VerifyReport report = verify(options);
    EXPECT_FALSE(report.passed());
    EXPECT_EQ(report.pass, "") << "the passes are right";
    const VerifiedValue *first = report.firstDispatch();
    ASSERT_NE(first, nullptr);
    EXPECT_TRUE(holds(first->nodes, std::string("node '") + node + "'")) << first->nodes;
    EXPECT_GT(first->difference.count, 0);
    int wrong = 0;
    for (const VerifiedValue &dispatch : report.dispatches)
      wrong += dispatch.difference.differs;
    EXPECT_EQ(wrong, 1) << "what follows is right on what it was given";
    std::string text = toText(report);
    EXPECT_TRUE(holds(text, "first dispatch that differs: ")) << text;
    EXPECT_TRUE(holds(text, "1 differ\nWRONG\n")) << text;
  }
}

// The integer pass may round a quantised value one step otherwise; more is a fault.
TEST(VerifyRounding, OneStepOfIntegerArithmeticIsANote) {
  const auto &stages = simplifyStages();
  int integerStage = int(std::find(stages.begin(), stages.end(), "nn-integer") - stages.begin()) + 1;
  for (int32_t steps : {1, 3}) {
    SCOPED_TRACE(steps);
    ModuleText m;
    std::string real = tensorType({4, 16}, "f32"), stored = tensorType({4, 16}, "ui8");
    std::string parameters = "scales = array<f32: 0.05>, zero_points = array<i32: 128>";
    std::string q = m.op("nn.quantize", {m.input(real)}, parameters, stored);
    m.output(m.op("nn.dequantize", {q}, parameters, real));
    mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(m.text());
    ASSERT_TRUE(module);
    nameNodes(*module, {{"q", "QuantizeLinear"}, {"dq", "DequantizeLinear"}});
    VerifyOptions options;
    options.afterStages = [&](mlir::ModuleOp changed, int stage) {
      if (stage >= integerStage)
        changed.walk([&](nn::QuantizeOp op) { op.setZeroPoints({128 + steps}); });
    };
    mlir::FailureOr<VerifyReport> report = verifyModule(*module, randomInputs(*module, {}, 1), options);
    ASSERT_TRUE(mlir::succeeded(report));
    EXPECT_EQ(report->pass, "nn-integer");
    EXPECT_EQ(report->roundsOtherwise(), steps == 1);
    EXPECT_EQ(report->passed(), steps == 1);
    std::string text = toText(*report);
    EXPECT_EQ(holds(text, "note: integer arithmetic rounds some quantised values one step otherwise"), steps == 1) << text;
    EXPECT_EQ(holds(text, "simplification changes the result: pass nn-integer"), steps != 1) << text;
  }
}

} // namespace
