//===- EncodingsTest.cpp - what a model says of its weights ----------------------------===//
#include "ModelBuilder.h"

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

/// x times w, where w is behind a transpose.
ModelBuilder product(const std::string &metadata) {
  ModelBuilder m(13);
  m.input("x", {1, 4}).initializer("w", ramp({8, 4}));
  m.node("Transpose", {"w"}, {"wt"}).node("MatMul", {"x", "wt"}, {"y"}).lastNode().set_name("fc");
  m.output("y");
  if (!metadata.empty()) {
    ::onnx::StringStringEntryProto &entry = *m.proto.add_metadata_props();
    entry.set_key("ajour.encoding");
    entry.set_value(metadata);
  }
  return m;
}

TEST(Encodings, EntriesGoToTheNodesThatReadTheWeights) {
  ModelBuilder m = product(R"({"w": {"structure": "c4n", "n": [2, 1], "column_block": 4, "share": 8}})");
  Outcome o = importOnly(m);
  EXPECT_NE(o.ir.find("enc.declared = {fc = {column_block = array<i64: 4>, n = array<i64: 2, 1>, share = array<i64: 8>, "
                      "structure = \"c4n\", weight = \"w\"}}"),
            std::string::npos)
      << o.error << o.ir;
}

TEST(Encodings, NoEntryNoAttribute) {
  Outcome o = importOnly(product(""));
  EXPECT_FALSE(o.ir.empty());
  EXPECT_EQ(o.ir.find("enc.declared"), std::string::npos);
}

TEST(Encodings, FaultyEntriesAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"{", "metadata 'ajour.encoding' is not JSON: "},
      {std::string(100000, '['), "metadata 'ajour.encoding' is not JSON: values are nested too deeply"},
      {"[1]", "metadata 'ajour.encoding' is not an object of the form {WEIGHT: {\"structure\": ...}}"},
      {R"({"v": {"structure": "dense"}})", "metadata 'ajour.encoding' names 'v', which is no initializer of the model"},
      {R"({"w": {"n": 2}})", "metadata 'ajour.encoding' 'w' is not an object with a \"structure\""},
      {R"({"w": 3})", "metadata 'ajour.encoding' 'w' is not an object with a \"structure\""},
      {R"({"w": {"structure": "c4n", "n": "two"}})",
       "metadata 'ajour.encoding' parameter 'n' of 'w' is not an integer or a list of integers"},
  };
  for (const auto &[metadata, message] : cases) {
    ModelBuilder m = product(metadata);
    expectError(importOnly(m), {"model.onnx: error: " + message});
  }
}

} // namespace
