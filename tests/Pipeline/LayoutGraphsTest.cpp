//===- LayoutGraphsTest.cpp - what remains of layouts in whole networks -----------------------===//
//
// The counts are what the compiler reaches today; a change that raises one has to say why, one that lowers it writes the
// new number here.
//
//===----------------------------------------------------------------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/LayoutGraphs.h"

#include "ajour/Conversion/LayoutOps.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace ajour;
using namespace ajour::test;
using namespace mlir;

namespace {

struct Remaining {
  int64_t imported = 0, inside = 0, border = 0, importedBytes = 0, insideBytes = 0;
  std::string list;
};

/// Compiles a network, compares it with the reference, and counts what moves data before and after.
Remaining expectLayouts(const onnx_test::ModelBuilder &model, double tolerance = 1e-4) {
  Remaining remaining;
  onnx_test::TempDir directory;
  std::string bytes;
  EXPECT_TRUE(model.proto.SerializeToString(&bytes));
  onnx_test::writeFile(directory / "net.onnx", bytes);
  OwningOpRef<ModuleOp> module = importModel(compilerContext(), directory / "net.onnx", {});
  EXPECT_TRUE(bool(module));
  if (!module)
    return remaining;
  auto main = module->lookupSymbol<func::FuncOp>("main");
  std::vector<HostTensor> inputs = randomInputs(*module, {}, 1, 8);
  auto expected = interpret(main, inputs, {});
  EXPECT_TRUE(succeeded(expected));
  for (const LayoutOp &op : findLayoutOps(main)) {
    ++remaining.imported;
    remaining.importedBytes += op.bytes;
  }
  EXPECT_TRUE(succeeded(simplify(*module)));
  expectCompiled(*module, inputs, *expected, {.tolerance = tolerance, .simplify = false});
  EXPECT_TRUE(succeeded(lowerToExec(*module)));
  for (const LayoutOp &op : findLayoutDispatches(*module)) {
    ++(op.border ? remaining.border : remaining.inside);
    remaining.insideBytes += op.border ? 0 : op.bytes;
    remaining.list += op.kind + " " + describeNodes(op.loc) + ": " + op.reason + "\n";
  }
  return remaining;
}

TEST(LayoutGraphs, VisionTransformer) {
  Remaining remaining = expectLayouts(visionTransformer({.batch = 2, .blocks = 2}));
  EXPECT_EQ(remaining.inside, 0) << remaining.list;
  EXPECT_LE(remaining.border, 1) << remaining.list;
}

TEST(LayoutGraphs, SwinBlocks) {
  Remaining remaining = expectLayouts(swinBlocks({.batch = 2, .grid = 8, .window = 4}));
  EXPECT_EQ(remaining.inside, 0) << remaining.list;
  EXPECT_EQ(remaining.border, 0) << remaining.list;
}

TEST(LayoutGraphs, ShuffleUnits) {
  Remaining remaining = expectLayouts(shuffleUnits(3, 12, 16));
  EXPECT_EQ(remaining.inside, 0) << remaining.list;
  EXPECT_LE(remaining.border, 1) << remaining.list;
}

TEST(LayoutGraphs, DetectorHead) {
  Remaining remaining = expectLayouts(detectorHead(16, 8));
  EXPECT_EQ(remaining.inside, 0) << remaining.list;
  EXPECT_LE(remaining.border, 2) << remaining.list;
}

} // namespace
