//===- ReportTest.cpp - reports as text and as JSON ------------------------------------------===//
#include "ajour/Pipeline/Report.h"

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

} // namespace
