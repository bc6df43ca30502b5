//===- InterpreterTest.cpp - functions, symbols, folding ---------------------------------------===//
#include "Reference/Harness.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/Parser/Parser.h"

using namespace ajour;
using namespace ajour::test;
using namespace mlir;

using Floats = std::vector<float>;

static void expectMessage(const Outcome &outcome, const std::string &text) {
  EXPECT_TRUE(outcome.parsed) << outcome.message;
  EXPECT_TRUE(outcome.results.empty());
  EXPECT_NE(outcome.message.find(text), std::string::npos) << outcome.message;
}

static const char *dispatching = R"(
  func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = nn.binary <add> %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32>) -> (tensor<2x1xf32>, tensor<2xf32>) {
    %a = exec.dispatch "add" @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %b = exec.alias %a : tensor<2xf32> to tensor<2x1xf32>
    return %b, %x : tensor<2x1xf32>, tensor<2xf32>
  })";

TEST(Interpret, DispatchesAndAliases) {
  Outcome outcome = runModule(dispatching, {range<float>({2}, 1)});
  ASSERT_EQ(outcome.results.size(), 2u) << outcome.message;
  EXPECT_EQ(outcome.results[0].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(values<float>(outcome.results[0]), (Floats{2, 4}));
  EXPECT_EQ(values<float>(outcome.results[1]), (Floats{1, 2}));
}

TEST(Interpret, ObserverSeesTheFunctionsValuesInOrder) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(dispatching, context());
  ASSERT_TRUE(module);
  std::vector<float> seen;
  auto results = interpret(module->lookupSymbol<func::FuncOp>("main"), {range<float>({2}, 1)}, {},
                           [&](Value, const HostTensor &tensor) { seen.push_back(tensor.as<float>()[1]); });
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(seen, (Floats{2, 4, 4}));
}

TEST(Interpret, EndlessDispatchesEnd) {
  expectMessage(runModule("func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                          "%y = exec.dispatch \"loop\" @main(%x) : (tensor<1xf32>) -> tensor<1xf32>\n"
                          "return %y : tensor<1xf32>\n}",
                          {range<float>({1})}),
                "dispatches are nested more than 16 deep");
}

static const char *symbolic = R"(
  func.func @main(%x: tensor<?x4xf32, #nn.dims<()[s0, s1] -> (s0, 4)>>)
      -> tensor<?xf32, #nn.dims<()[s0, s1] -> (s0 * 4 + s1)>> {
    %flat = nn.reshape %x : (tensor<?x4xf32, #nn.dims<()[s0, s1] -> (s0, 4)>>)
      -> tensor<?xf32, #nn.dims<()[s0, s1] -> (s0 * 4)>>
    %more = nn.iota {axis = 0 : i64} : () -> tensor<?xf32, #nn.dims<()[s0, s1] -> (s1)>>
    %r = nn.concat %flat, %more {axis = 0 : i64} : (tensor<?xf32, #nn.dims<()[s0, s1] -> (s0 * 4)>>,
      tensor<?xf32, #nn.dims<()[s0, s1] -> (s1)>>) -> tensor<?xf32, #nn.dims<()[s0, s1] -> (s0 * 4 + s1)>>
    return %r : tensor<?xf32, #nn.dims<()[s0, s1] -> (s0 * 4 + s1)>>
  })";

TEST(Interpret, SymbolsGiveShapes) {
  Outcome outcome = runModule(symbolic, {range<float>({1, 4}, 5)}, {1, 2});
  ASSERT_EQ(outcome.results.size(), 1u) << outcome.message;
  EXPECT_EQ(values<float>(outcome.results[0]), (Floats{5, 6, 7, 8, 0, 1}));
}

TEST(Interpret, MissingAndImpossibleSymbolsAreReported) {
  expectMessage(runModule(symbolic, {range<float>({1, 4})}, {1}), "dimension 0 of f32[s1] has no value");
  expectMessage(runModule(symbolic, {range<float>({1, 4})}, {1, -3}), "is negative: -3");
  expectMessage(runModule(symbolic, {range<float>({1, 4})}, {1, int64_t(1) << 62}), "more bytes than can be addressed");
}

TEST(Interpret, InputsAreChecked) {
  const char *text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }";
  expectMessage(runModule(text, {}), "1 inputs are needed, found 0");
  expectMessage(runModule(text, {range<float>({3})}), "input 0 needs f32[2], found f32[3] of 12 bytes");
  expectMessage(runModule(text, {range<int32_t>({2})}), "input 0 needs f32[2], found i32[2]");
  HostTensor shortened = range<float>({2});
  shortened.data.pop_back();
  expectMessage(runModule(text, {shortened}), "found f32[2] of 7 bytes");
}

TEST(Interpret, UnknownOperationsAndAliasesOfOtherSizes) {
  expectMessage(runModule("func.func private @f(tensor<1xf32>) -> tensor<1xf32>\n"
                          "func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                          "%y = func.call @f(%x) : (tensor<1xf32>) -> tensor<1xf32>\nreturn %y : tensor<1xf32>\n}",
                          {range<float>({1})}),
                "the reference has no meaning for 'func.call'");
  expectMessage(runModule("func.func private @f(tensor<1xf32>) -> tensor<1xf32>\n"
                          "func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {\n"
                          "%y = exec.dispatch \"f\" @f(%x) : (tensor<1xf32>) -> tensor<1xf32>\n"
                          "return %y : tensor<1xf32>\n}",
                          {range<float>({1})}),
                "a function with one block is needed");
  expectMessage(runModule("func.func @main(%x: tensor<2xf32>) -> tensor<1xf32> {\n"
                          "%y = exec.alias %x : tensor<2xf32> to tensor<1xf32>\nreturn %y : tensor<1xf32>\n}",
                          {range<float>({2})}),
                "an alias of 8 bytes cannot have 4");
}

TEST(Attributes, ThereAndBack) {
  for (const HostTensor &x :
       {range<float>({2, 3}), range<int8_t>({200}), booleans({3}, {1, 0, 1}), range<int64_t>({0})}) {
    HostTensor back = toHostTensor(toAttribute(x, context()));
    EXPECT_EQ(back.elementType, x.elementType);
    EXPECT_EQ(back.shape, x.shape);
    EXPECT_EQ(back.data, x.data);
  }
}

//===----------------------------------------------------------------------===//
// folding
//===----------------------------------------------------------------------===//

namespace {
/// A function whose body is parsed; its last operation before the return is the one to fold.
struct Foldable {
  explicit Foldable(const std::string &body)
      : module(
            parseSourceString<ModuleOp>("func.func @main(%x: tensor<2xf32>) {\n" + body + "\nreturn\n}", context())) {}
  Operation *last() {
    return module->lookupSymbol<func::FuncOp>("main").getBody().front().getTerminator()->getPrevNode();
  }
  OwningOpRef<ModuleOp> module;
};
const std::string one = "%c = nn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>\n";
} // namespace

TEST(Fold, ReplacesByConstants) {
  Foldable f(one + "%s = nn.binary <add> %c, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
                   "%y = nn.binary <mul> %s, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>");
  ASSERT_TRUE(f.module);
  Operation *product = f.last();
  Operation *sum = product->getPrevNode();
  Location where = sum->getLoc();
  SmallVector<Value> results;
  ASSERT_TRUE(foldConstants(sum, &results));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(product->getOperand(0), results[0]);
  EXPECT_EQ(results[0].getLoc(), where);
  EXPECT_EQ(values<float>(toHostTensor(nn::getConstantValue(results[0]))), (Floats{2, 4}));
  EXPECT_FALSE(foldConstants(product)) << "an argument is not a constant";
  EXPECT_FALSE(foldConstants(results[0].getDefiningOp())) << "a constant stays";
  EXPECT_TRUE(succeeded(verify(*f.module)));
}

TEST(Fold, SeveralResults) {
  Foldable f(one + "%v, %i = nn.top_k %c {k = 1 : i64, axis = 0 : i64} : (tensor<2xf32>) -> (tensor<1xf32>, "
                   "tensor<1xi64>)");
  SmallVector<Value> results;
  ASSERT_TRUE(foldConstants(f.last(), &results));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(values<int64_t>(toHostTensor(nn::getConstantValue(results[1]))), (std::vector<int64_t>{1}));
}

TEST(Fold, LimitsOfSize) {
  Foldable sum(one + "%s = nn.binary <add> %c, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>");
  EXPECT_FALSE(foldConstants(sum.last(), nullptr, 7));
  EXPECT_TRUE(foldConstants(sum.last(), nullptr, 8));
  Foldable small(one + "%b = nn.broadcast %c : (tensor<2xf32>) -> tensor<8192x2xf32>");
  EXPECT_TRUE(foldConstants(small.last()));
  Foldable large(one + "%b = nn.broadcast %c : (tensor<2xf32>) -> tensor<8193x2xf32>");
  EXPECT_FALSE(foldConstants(large.last()));
  Foldable iota("%i = nn.iota {axis = 0 : i64} : () -> tensor<16385xi32>");
  EXPECT_FALSE(foldConstants(iota.last()));
  Foldable huge(one +
                "%b = nn.broadcast %c : (tensor<2xf32>) -> tensor<4611686018427387904x4611686018427387904x2xf32>");
  EXPECT_FALSE(foldConstants(huge.last()));
}

TEST(Fold, DynamicResultsAndFailuresStayQuietly) {
  std::string message;
  ScopedDiagnosticHandler handler(context(), [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  Foldable dynamic("%i = nn.iota {axis = 0 : i64} : () -> tensor<?xi32, #nn.dims<()[s0] -> (s0)>>");
  EXPECT_FALSE(foldConstants(dynamic.last()));
  Foldable failing("%d = nn.constant {value = dense<> : tensor<0xf32>} : tensor<0xf32>\n"
                   "%i = nn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>\n"
                   "%g = nn.gather %d, %i {axis = 0 : i64} : (tensor<0xf32>, tensor<1xi64>) -> tensor<1xf32>");
  ASSERT_TRUE(failing.module);
  EXPECT_FALSE(foldConstants(failing.last()));
  EXPECT_EQ(message, "");
}
