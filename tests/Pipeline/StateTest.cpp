//===- StateTest.cpp - compiled models that keep state ---------------------------------------------===//
#include "Compiled.h"

#include "ajour/Reference/Interpreter.h"
#include "ajour/Reference/State.h"
#include "ajour/Support/Diagnostics.h"

using namespace mlir;
using namespace ajour;
using namespace ajour::test;

namespace {

/// A GRU of one step whose state is kept, and a counter that begins at 5 and is also an output.
const char *stateful = R"(module {
  func.func @main(%x: tensor<1x1x12xf32> {nn.name = "x"}, %h: tensor<1x4xf32> {nn.state = "h"},
                  %n: tensor<2xi32> {nn.state = "n", nn.initial = dense<[5, 7]> : tensor<2xi32>},
                  %r: tensor<12x4xf32> {test.constant})
      -> (tensor<2xi32> {nn.state = "n"}, tensor<1x1x4xf32> {nn.name = "y"}, tensor<1x4xf32> {nn.state = "h"},
          tensor<2xi32> {nn.name = "count"}) {
    %y:2 = nn.gru %x, %r initial %h {activations = [#nn.cell_activation<sigmoid>, #nn.cell_activation<tanh>]}
      : (tensor<1x1x12xf32>, tensor<12x4xf32>, tensor<1x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x4xf32>)
    %one = nn.constant {value = dense<1> : tensor<2xi32>} : tensor<2xi32>
    %next = nn.binary <add> %n, %one : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    return %next, %y#0, %y#1, %next : tensor<2xi32>, tensor<1x1x4xf32>, tensor<1x4xf32>, tensor<2xi32>
  }
})";

TEST(CompiledState, IsAPureFunctionOfItsStates) { expectCompiled(stateful); }

TEST(CompiledState, GoesOnFromRunToRun) {
  OwningOpRef<ModuleOp> module = parseModule(stateful);
  ASSERT_TRUE(module);
  OwningOpRef<ModuleOp> reference = module->clone();
  auto main = reference->lookupSymbol<func::FuncOp>("main");
  std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(*module);
  ASSERT_TRUE(compiled);
  ajour_model *model = nullptr;
  ajour_session *session = nullptr;
  ASSERT_EQ(ajour_model_load_file(compiled->path().c_str(), nullptr, &model), AJOUR_OK) << ajour_last_message();
  ASSERT_EQ(ajour_session_create(model, nullptr, &session), AJOUR_OK) << ajour_last_message();
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ASSERT_EQ(ajour_model_get_info(model, &info), AJOUR_OK);
  EXPECT_EQ(info.input_count, 1u);
  EXPECT_EQ(info.output_count, 2u);
  EXPECT_EQ(info.state_count, 2u);
  std::vector<HostTensor> arguments;
  for (int call = 0; call < 4; ++call) {
    HostTensor x = randomInputs(*reference, {}, 10 + call)[0];
    if (call == 0)
      arguments = withInitialStates(main, x);
    arguments[0] = x;
    FailureOr<std::vector<HostTensor>> expected = interpret(main, arguments);
    ASSERT_TRUE(succeeded(expected));
    carryStates(main, *expected, arguments);
    ASSERT_EQ(ajour_session_set_input(session, 0, x.data.data(), nullptr, 0), AJOUR_OK) << ajour_last_message();
    ASSERT_EQ(ajour_session_run(session), AJOUR_OK) << ajour_last_message();
    ajour_tensor_view y = AJOUR_INIT(ajour_tensor_view), count = AJOUR_INIT(ajour_tensor_view);
    ASSERT_EQ(ajour_session_output(session, 0, &y), AJOUR_OK);
    ASSERT_EQ(ajour_session_output(session, 1, &count), AJOUR_OK);
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(static_cast<const float *>(y.data)[i], (*expected)[1].as<float>()[i], 1e-5) << "call " << call;
    EXPECT_EQ(static_cast<const int32_t *>(count.data)[0], 6 + call);
    EXPECT_EQ(static_cast<const int32_t *>(count.data)[1], 8 + call);
  }
  ajour_session_destroy(session);
  ajour_model_destroy(model);
}

TEST(CompiledState, VerifyComparesStates) {
  OwningOpRef<ModuleOp> module = parseModule(stateful);
  FailureOr<VerifyReport> report = verifyModule(*module, randomInputs(*module, {}, 3), {});
  ASSERT_TRUE(succeeded(report));
  EXPECT_TRUE(report->passed());
  ASSERT_EQ(report->outputs.size(), 4u);
  EXPECT_EQ(report->outputs[0].name, "state n");
  EXPECT_EQ(report->results.size(), 4u);
}

/// Rows of x are written to rows of a large state, which is then read.
const char *cache = R"(module {
  func.func @main(%x: tensor<2x3xf32> {nn.name = "x"}, %where: tensor<2x1xi64> {nn.name = "where"},
                  %rows: tensor<64x3xf32> {nn.state = "rows"})
      -> (tensor<3xf32> {nn.name = "sum"}, tensor<64x3xf32> {nn.state = "rows"}) {
    %new = nn.scatter_nd %rows, %where, %x : (tensor<64x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<64x3xf32>
    %sum = nn.reduce <sum> %new {axes = array<i64: 0>} : (tensor<64x3xf32>) -> tensor<3xf32>
    return %sum, %new : tensor<3xf32>, tensor<64x3xf32>
  }
})";

TEST(CompiledState, IsChangedWhereItLies) {
  OwningOpRef<ModuleOp> module = parseModule(cache);
  std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(*module);
  ASSERT_TRUE(compiled);
  ajour_model *model = nullptr;
  ajour_session *session = nullptr;
  ASSERT_EQ(ajour_model_load_file(compiled->path().c_str(), nullptr, &model), AJOUR_OK) << ajour_last_message();
  ASSERT_EQ(ajour_session_create(model, nullptr, &session), AJOUR_OK) << ajour_last_message();
  ajour_memory_info memory = AJOUR_INIT(ajour_memory_info);
  ASSERT_EQ(ajour_session_memory(session, &memory), AJOUR_OK);
  EXPECT_LT(memory.state_bytes, 2u * 64 * 3 * 4) << "one buffer, not two";
  float total = 0;
  for (int64_t call = 0; call < 3; ++call) {
    float x[6] = {1, 2, 3, 4, 5, float(6 + call)};
    int64_t where[2] = {10 * call, 63 - call};
    ASSERT_EQ(ajour_session_set_input(session, 0, x, nullptr, 0), AJOUR_OK);
    ASSERT_EQ(ajour_session_set_input(session, 1, where, nullptr, 0), AJOUR_OK);
    ASSERT_EQ(ajour_session_run(session), AJOUR_OK) << ajour_last_message();
    ajour_tensor_view sum = AJOUR_INIT(ajour_tensor_view);
    ASSERT_EQ(ajour_session_output(session, 0, &sum), AJOUR_OK);
    total += x[2] + x[5];
    EXPECT_EQ(static_cast<const float *>(sum.data)[2], total);
  }
  ajour_session_destroy(session);
  ajour_model_destroy(model);
}

// Somebody who reads the old value needs it: then two buffers change places.
TEST(CompiledState, IsNotChangedUnderAReader) {
  std::string text = cache;
  text.replace(text.find("nn.reduce <sum> %new"), 20, "nn.reduce <sum> %rows");
  expectCompiled(text.c_str());
  OwningOpRef<ModuleOp> module = parseModule(text.c_str());
  std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(*module);
  ASSERT_TRUE(compiled);
  ajour_model *model = nullptr;
  ASSERT_EQ(ajour_model_load_file(compiled->path().c_str(), nullptr, &model), AJOUR_OK) << ajour_last_message();
  ajour_memory_info memory = AJOUR_INIT(ajour_memory_info);
  ASSERT_EQ(ajour_model_memory(model, nullptr, nullptr, &memory), AJOUR_OK);
  EXPECT_GE(memory.state_bytes, 2u * 64 * 3 * 4);
  ajour_model_destroy(model);
}

/// The message of a module that is refused.
std::string refusal(const std::string &arguments, const std::string &results) {
  DiagnosticCollector diagnostics(compilerContext(), "model");
  OwningOpRef<ModuleOp> module = parseModule("module { func.func @main(" + arguments + ") -> (" + results +
                                             ") { return %a : tensor<2xf32> } }");
  EXPECT_TRUE(module) << diagnostics.text();
  EXPECT_TRUE(!module || failed(nn::getStates(module->lookupSymbol<func::FuncOp>("main"))));
  EXPECT_TRUE(!module || failed(lowerToExec(*module)));
  return diagnostics.text();
}

TEST(CompiledState, NeedsOneArgumentAndOneResult) {
  const char *oneType = "the state 's' needs one argument, one result and an initial value of one static type";
  EXPECT_NE(refusal("%a: tensor<2xf32> {nn.state = \"s\"}", "tensor<2xf32>").find(oneType), std::string::npos);
  EXPECT_NE(refusal("%a: tensor<2xf32>, %b: tensor<3xf32> {nn.state = \"s\"}", "tensor<2xf32> {nn.state = \"s\"}").find(oneType),
            std::string::npos);
  EXPECT_NE(refusal("%a: tensor<2xf32> {nn.state = \"s\", nn.initial = dense<1> : tensor<2xi32>}",
                    "tensor<2xf32> {nn.state = \"s\"}")
                .find(oneType),
            std::string::npos);
  EXPECT_NE(refusal("%a: tensor<2xf32> {nn.state = \"s\"}, %b: tensor<2xf32> {nn.state = \"s\"}",
                    "tensor<2xf32> {nn.state = \"s\"}")
                .find("two arguments are the state 's'"),
            std::string::npos);
  EXPECT_NE(refusal("%a: tensor<2xf32>", "tensor<2xf32> {nn.state = \"s\"}").find("no argument is the state 's'"),
            std::string::npos);
}

} // namespace
