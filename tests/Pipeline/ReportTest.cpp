//===- ReportTest.cpp - reports as text and as JSON ------------------------------------------===//
#include "ajour/Pipeline/Report.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

using namespace ajour;

namespace {

CompileReport example() {
  CompileReport report;
  report.model = "net.onnx";
  ReportSection &section = report.section("sizes");
  section.values.push_back({"ops", int64_t(2)});
  section.values.push_back({"ratio", 0.25});
  section.tables.push_back({"layers", {"name", "bytes", "why"}, {{std::string("a"), int64_t(12), std::string("\"x\"")},
                                                                 {std::string("long"), int64_t(3), std::string("")}}});
  report.section("other").tables.push_back({"empty", {"name"}, {}});
  report.section("sizes").values.push_back({"last", std::string("word")});
  return report;
}

TEST(Report, TextAlignsTables) {
  EXPECT_EQ(reportText(example()), "model net.onnx\n\n[sizes]\nops 2\nratio 0.25\nlast word\nlayers (2)\n"
                                   "  name bytes why\n  a       12 \"x\"\n  long     3\n\n[other]\nempty (0)\n");
}

TEST(Report, JsonHasTablesAsObjects) {
  EXPECT_EQ(reportJson(example()), R"({
  "model": "net.onnx",
  "other": {
    "empty": []
  },
  "sizes": {
    "last": "word",
    "layers": [
      {
        "bytes": 12,
        "name": "a",
        "why": "\"x\""
      },
      {
        "bytes": 3,
        "name": "long",
        "why": ""
      }
    ],
    "ops": 2,
    "ratio": 0.25
  }
}
)");
}

TEST(Report, LongNamesOfNodesShowTheirEnd) {
  CompileReport report;
  const std::string name(60, 'x');
  report.section("s").tables.push_back({"t", {"node", "why"}, {{name + "end", name + "end"}}});
  EXPECT_EQ(reportText(report), "\n[s]\nt (1)\n  node" + std::string(41, ' ') + "why\n  ..." + std::string(38, 'x') + "end " +
                                    name + "end\n");
  EXPECT_NE(reportJson(report).find("\"" + name + "end\""), std::string::npos);
}

TEST(Report, WeightsSayWhatWasFoundAndWhy) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    func.func @main(%x: tensor<1x8xf32>) -> tensor<1x2xf32> {
      %w = nn.constant {value = dense<[[1.1, 0.0, 2.7, 0.0, 0.0, 3.3, 0.0, 0.4], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<2x8xf32>} : tensor<2x8xf32>
      %y = nn.matmul %x, %w {transpose_rhs} : (tensor<1x8xf32>, tensor<2x8xf32>) -> tensor<1x2xf32>
      return %y : tensor<1x2xf32>
    }
  )", &context);
  ASSERT_TRUE(module);
  module->walk([&](nn::MatmulOp op) { op->setLoc(makeNodeLocation(&context, {"net.onnx", "fc", "Gemm", 0})); });
  auto weights = encodeWeights(*module);
  ASSERT_TRUE(mlir::succeeded(weights));
  CompileReport report;
  reportWeights(*weights, AJOUR_LEVEL_avx2, report);
  const ReportTable &layers = report.section("weights").tables[0];
  ASSERT_EQ(layers.rows.size(), 1u);
  auto cell = [&](const std::string &column) {
    return layers.rows[0][llvm::find(layers.columns, column) - layers.columns.begin()];
  };
  EXPECT_EQ(std::get<std::string>(cell("node")), "fc");
  EXPECT_EQ(std::get<std::string>(cell("shape")), "2x8");
  EXPECT_EQ(std::get<double>(cell("zeros_percent")), 75);
  EXPECT_EQ(std::get<int64_t>(cell("rows")), 1);
  EXPECT_EQ(std::get<int64_t>(cell("bytes")), 64);
  EXPECT_NE(std::get<std::string>(cell("why")).find("1 outputs have no weights; 4 inputs are not read"), std::string::npos)
      << std::get<std::string>(cell("why"));

  ignoreZeros(*weights);
  module->walk([](nn::MatmulOp op) { EXPECT_FALSE(getWeightUse(op)); });
  CompileReport ignored;
  reportWeights(*weights, AJOUR_LEVEL_avx2, ignored);
  const auto &row = ignored.section("weights").tables[0].rows[0];
  EXPECT_EQ(std::get<double>(row[3]), 75);
  EXPECT_EQ(std::get<std::string>(row.back()).find("zeros are computed with, as asked"), 0u) << std::get<std::string>(row.back());
}

} // namespace
