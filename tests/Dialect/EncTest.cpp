//===- EncTest.cpp - the attributes of the enc dialect -----------------------------------===//
#include "Dialect/Parsing.h"

#include "ajour/Dialect/Enc/Enc.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace ajour;
using namespace ajour::test;

namespace {

std::string weight(const std::string &structure, const std::string &values, const std::string &densities) {
  return "#enc.weight<" + structure + " x " + values + ", densities = [" + densities + "]>";
}

const char *const goodStructure = "\"c4n\" {column_block = array<i64: 0>, n = array<i64: 2>, share = array<i64: 8>}";
const char *const goodValues = "\"int\" {bits = array<i64: 4>}";

/// The diagnostics of parsing an attribute on a product.
std::string parseOn(const std::string &attribute) {
  std::string message;
  parse(functionOf("%a: tensor<1x4xf32>, %b: tensor<4x4xf32>",
                   "%0 = nn.matmul %a, %b {enc.weight = " + attribute +
                       "} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>"),
        message);
  return message;
}

TEST(EncWeight, ComesBackAsItWas) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<enc::EncDialect>();
  encoding::Encoding encoding;
  encoding.structure.kind = encoding::StructureKind::C4n;
  encoding.structure.pruned = {2, 1, 0};
  encoding.structure.columnBlock = 64;
  encoding.structure.share = 8;
  encoding.values.kind = encoding::ValuesKind::Int;
  encoding.values.bits = 4;
  encoding.values.isSigned = false;
  encoding.values.hasZeroPoints = true;
  encoding.values.granularity = encoding::Granularity::Group;
  encoding.values.group = 32;
  encoding.values.type = AJOUR_F16;
  auto attr = enc::WeightAttr::get(&context, encoding, {500, 500, 500, 500, 750});
  EXPECT_EQ(attr.getEncoding(), encoding);
  std::string text;
  llvm::raw_string_ostream(text) << mlir::Attribute(attr);
  EXPECT_EQ(mlir::parseAttribute(text, &context), attr) << text;
}

TEST(EncWeight, WhatIsWrongIsNamed) {
  EXPECT_EQ(parseOn(weight(goodStructure, goodValues, "500, 500, 500, 500, 1000")), "");
  const std::pair<std::string, std::string> cases[] = {
      {weight("\"csr\" {}", goodValues, "1, 2, 3, 4, 5"), "C1: 'csr' is no structure"},
      {weight("\"c4n\" {m = array<i64: 2>}", goodValues, "1, 2, 3, 4, 5"), "C1: 'c4n' has no parameter 'm'"},
      {weight("\"c4n\" {n = 2 : i64}", goodValues, "1, 2, 3, 4, 5"), "C1: parameters are lists of integers"},
      {weight(goodStructure, "\"posit\" {}", "1, 2, 3, 4, 5"), "C2: 'posit' is no way to write values"},
      {weight(goodStructure, "\"int\" {bits = array<i64: 1, 2>}", "1, 2, 3, 4, 5"), "C2: parameter 'bits' must be one number"},
      {weight(goodStructure, "\"int\" {bit = array<i64: 1>}", "1, 2, 3, 4, 5"), "C2: values have no parameter 'bit'"},
      {weight(goodStructure, "\"int\" {bits = 4 : i64}", "1, 2, 3, 4, 5"), "C2: parameters are lists of integers"},
      {weight(goodStructure, goodValues, "1, 2, 3, 4"), "C3: there must be five densities"},
      {weight(goodStructure, goodValues, "1, 2, 3, 4, 1001"), "C3: there must be five densities"},
      {weight(goodStructure, goodValues, "2, 1, 3, 4, 5"), "C3: there must be five densities"},
  };
  for (const auto &[attribute, message] : cases)
    EXPECT_NE(parseOn(attribute).find(message), std::string::npos) << attribute << ": " << parseOn(attribute);
}

} // namespace
