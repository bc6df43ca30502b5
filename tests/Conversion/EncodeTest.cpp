//===- EncodeTest.cpp - what is found in the weights of products --------------------===//
#include "ajour/Conversion/Encode.h"
#include "ajour/Dialect/Enc/Enc.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ajour;

namespace {

struct Encode : testing::Test {
  std::unique_ptr<MLIRContext> context = [] {
    auto made = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
    made->loadDialect<nn::NNDialect, func::FuncDialect>();
    return made;
  }();
  OwningOpRef<ModuleOp> module;
  OpBuilder builder{context.get()};
  func::FuncOp main;
  std::string errors;
  std::unique_ptr<ScopedDiagnosticHandler> handler;

  void SetUp() override {
    handler = std::make_unique<ScopedDiagnosticHandler>(context.get(), [this](Diagnostic &diagnostic) {
      errors += describeNodes(diagnostic.getLocation()) + ": " + diagnostic.str();
      return success();
    });
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToStart(module->getBody());
    main = func::FuncOp::create(builder, builder.getUnknownLoc(), "main", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(main.addEntryBlock());
  }

  Location node(const std::string &name) { return makeNodeLocation(context.get(), {"net.onnx", name, "Conv", 3}); }

  template <typename T> Value constant(ArrayRef<int64_t> shape, Type element, const std::vector<T> &data) {
    auto type = RankedTensorType::get(shape, element);
    auto attr = nn::makeConstant(type, ArrayRef(reinterpret_cast<const char *>(data.data()), data.size() * sizeof(T)));
    return nn::ConstantOp::create(builder, node("constant"), type, attr);
  }
  Value input(ArrayRef<int64_t> shape, Type element) {
    return main.getBody().front().addArgument(RankedTensorType::get(shape, element), builder.getUnknownLoc());
  }
  /// x [m][k] times the weights.
  nn::MatmulOp matmul(Value weights, int64_t m, int64_t k, bool isTransposed, Type element = {},
                      ArrayRef<int32_t> zeroPoints = {}) {
    element = element ? element : builder.getF32Type();
    return nn::MatmulOp::create(builder, node("fc"), input({m, k}, element), weights, Value(), false, isTransposed, 0, zeroPoints);
  }
  std::vector<EncodedWeight> encode() {
    auto result = encodeWeights(*module);
    EXPECT_TRUE(succeeded(result)) << errors;
    return succeeded(result) ? *result : std::vector<EncodedWeight>();
  }
  static std::string structure(const EncodedWeight &weight) {
    return encoding::describe(weight.found.encoding.structure, weight.found.shape);
  }
};

/// [n][k] of which every 4 columns keep 2 that depend on the row's group of 8.
std::vector<float> twoOfFour(int64_t n, int64_t k) {
  std::vector<float> data(n * k);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column)
      if ((column + column / 4 * (row / 8 + 1)) % 4 < 2)
        data[row * k + column] = float(row * 131 + column % 977) + 0.37f;
  return data;
}

TEST_F(Encode, MatricesInBothOrders) {
  const int64_t n = 32, k = 64;
  std::vector<float> rows = twoOfFour(n, k), columns(n * k);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column)
      columns[column * n + row] = rows[row * k + column];
  Operation *first = matmul(constant<float>({n, k}, builder.getF32Type(), rows), 1, k, true);
  Operation *second = matmul(constant<float>({k, n}, builder.getF32Type(), columns), 7, k, false);
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 2u);
  for (const EncodedWeight &weight : weights) {
    EXPECT_EQ(structure(weight), "C4^2, a pattern for 8 rows");
    EXPECT_EQ(weight.use.shape, (encoding::WeightShape{n, k}));
    EXPECT_DOUBLE_EQ(weight.use.density(), 0.5);
    EXPECT_DOUBLE_EQ(weight.use.groupDensity(8), 0.5);
    EXPECT_GT(weight.use.groupDensity(16), 0.5);
    EXPECT_EQ(weight.givenBytes, n * k * 4);
  }
  EXPECT_EQ(weights[0].rows, 1);
  EXPECT_EQ(weights[1].rows, 7);
  EXPECT_EQ(first->getAttr(enc::weightAttrName), second->getAttr(enc::weightAttrName));
  std::optional<WeightUse> use = getWeightUse(first);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->encoding, weights[0].found.encoding);
  EXPECT_DOUBLE_EQ(use->groupDensity(4), 0.5);
}

TEST_F(Encode, DenseWeightsHaveNoAttribute) {
  std::vector<float> data(32 * 64);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = float(i) + 0.1f;
  nn::MatmulOp op = matmul(constant<float>({32, 64}, builder.getF32Type(), data), 1, 64, true);
  op->setAttr(enc::weightAttrName, enc::WeightAttr::get(context.get(), {}, {500, 500, 500, 500, 500})); // Stale.
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_FALSE(op->hasAttr(enc::weightAttrName));
  EXPECT_FALSE(getWeightUse(op));
  EXPECT_EQ(weights[0].use.density(), 1);
}

TEST_F(Encode, ZeroIsTheZeroPointOfIntegers) {
  // Row 0 has zero point 3, row 1 has -2; half of each is that.
  std::vector<int8_t> data(2 * 64);
  for (int64_t i = 0; i < 128; ++i)
    data[i] = i % 64 < 32 ? (i < 64 ? 3 : -2) : 50;
  matmul(constant<int8_t>({2, 64}, builder.getI8Type(), data), 1, 64, true, builder.getI8Type(), {3, -2});
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_DOUBLE_EQ(weights[0].found.zeros(), 0.5);
  EXPECT_EQ(encoding::describe(weights[0].found.encoding.values), "int8 with zero points per channel");
}

TEST_F(Encode, FewBitsBehindADequantisation) {
  // 4 bits in groups of 32 columns, zero point 8, half of each 4 columns pruned.
  const int64_t n = 16, k = 128;
  std::vector<uint8_t> codes(n * k), zeros(n * 4, 8);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = i % 4 < 2 ? 8 : uint8_t(i / 4 % 7);
  std::vector<float> scales(n * 4, 0.5f);
  auto ui8 = IntegerType::get(context.get(), 8, IntegerType::Unsigned);
  Value dequantized = nn::DequantizeGroupedOp::create(
      builder, node("dq"), RankedTensorType::get({n, k}, builder.getF32Type()), constant<uint8_t>({n, k}, ui8, codes),
      constant<float>({n, 4}, builder.getF32Type(), scales), constant<uint8_t>({n, 4}, ui8, zeros), 1, 32, 4);
  matmul(dequantized, 1, k, true);
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(structure(weights[0]), "C4^2, a pattern for 16 rows");
  EXPECT_EQ(encoding::describe(weights[0].found.encoding.values), "uint4 with zero points per 32 columns");
  EXPECT_EQ(weights[0].givenBytes, n * k / 2 + n * 4 * 4 + n * 4 / 2);
}

TEST_F(Encode, CodebooksAndHalves) {
  std::vector<uint8_t> indices(16 * 64);
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = uint8_t(i * 7 % 16);
  std::vector<float> table(16);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = float(i) * float(i) / 3;
  auto ui8 = IntegerType::get(context.get(), 8, IntegerType::Unsigned);
  auto type = RankedTensorType::get({16, 64}, builder.getF32Type());
  matmul(nn::DequantizeCodebookOp::create(builder, node("lut"), type, constant<uint8_t>({16, 64}, ui8, indices),
                                          constant<float>({16}, builder.getF32Type(), table), Value(), 0, 1),
         1, 64, true);
  std::vector<uint16_t> halves(16 * 64, 0x3c00);
  matmul(nn::CastOp::create(builder, node("cast"), type, constant<uint16_t>({16, 64}, builder.getF16Type(), halves)), 1, 64, true);
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(encoding::describe(weights[0].found.encoding.values), "codebook of 16");
  EXPECT_DOUBLE_EQ(weights[0].found.zeros(), 1.0 / 16);
  EXPECT_EQ(weights[1].givenBytes, 16 * 64 * 2);
}

TEST_F(Encode, ConvolutionsKeepTheirWindow) {
  // Two patterns of 4 in 3x3; each third kernel is absent.
  const int64_t o = 16, c = 24;
  std::vector<float> data(o * 9 * c);
  const int patterns[] = {0b010110010, 0b000111010};
  for (int64_t f = 0; f < o; ++f)
    for (int64_t p = 0; p < 9; ++p)
      for (int64_t i = 0; i < c; ++i)
        if ((f + i) % 3 && patterns[(f * 5 + i) % 2] >> p & 1)
          data[(f * 9 + p) * c + i] = 0.123f * float(f + p + i * i + 1);
  auto f32 = builder.getF32Type();
  Value filter = constant<float>({o, 3, 3, c}, f32, data);
  nn::ConvOp::create(builder, node("conv"), input({1, 16, 16, c}, f32), filter, Value(), ArrayRef<int64_t>{2, 2},
                     ArrayRef<int64_t>{1, 1}, ArrayRef<int64_t>{1, 1}, ArrayRef<int64_t>{1, 1}, 1, 0, ArrayRef<int32_t>{});
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(structure(weights[0]), "2 patterns of 4 in 3x3");
  EXPECT_TRUE(weights[0].use.isConv);
  EXPECT_EQ(weights[0].use.stride, 2);
  EXPECT_EQ(weights[0].rows, 64);
}

//===----------------------------------------------------------------------===//
// What the model says
//===----------------------------------------------------------------------===//

struct Declared : Encode {
  void declare(const std::string &entry) {
    Attribute attr = parseAttribute("{fc = {weight = \"fc.weight\", " + entry + "}}", context.get());
    ASSERT_TRUE(attr);
    (*module)->setAttr(enc::declaredAttrName, attr);
    matmul(constant<float>({32, 64}, builder.getF32Type(), twoOfFour(32, 64)), 1, 64, true);
  }
  void refused(const std::string &entry, const std::string &why) {
    declare(entry);
    EXPECT_TRUE(failed(encodeWeights(*module)));
    EXPECT_EQ(errors, "node 'fc' (Conv, #3): ajour.encoding says that weights 'fc.weight' are " + why +
                          "; correct the entry or leave it out, then the structure is read from the zeros");
  }
};

TEST_F(Declared, WinsOverWhatIsFound) {
  declare("structure = \"c4n\", n = array<i64: 1>, share = array<i64: 4>");
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(structure(weights[0]), "C4^1, a pattern for 4 rows");
  EXPECT_TRUE(weights[0].isDeclared);
  EXPECT_DOUBLE_EQ(weights[0].found.executed, 0.75);
}

TEST_F(Declared, LevelsAreOnlyDeclared) {
  declare("structure = \"nested\", rows = array<i64: 8>, levels = array<i64: 500, 1000>");
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(structure(weights[0]), "2 levels of 8x1 blocks");
}

TEST_F(Declared, UnstructuredHoldsForAll) {
  declare("structure = \"unstructured\"");
  std::vector<EncodedWeight> weights = encode();
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(structure(weights[0]), "unstructured");
}

TEST_F(Declared, ALieNamesTheNodeAndThePlace) {
  refused("structure = \"c4n\", n = array<i64: 3>", "\"c4n\", but: more than 1 of 4 weights are not zero at row 0, column 0");
}

TEST_F(Declared, WrongParametersAreNamed) {
  refused("structure = \"c4n\", n = array<i64: 5>", "\"c4n\", but: n is 5; of 4 weights 0 to 4 can be pruned");
}

TEST_F(Declared, AMissingNumberIsNamed) { refused("structure = \"c4n\"", "\"c4n\", but: n is missing"); }

TEST_F(Declared, UnknownStructuresAreNamed) {
  refused("structure = \"csr\"", "\"csr\", but: 'csr' is no structure; there are dense, c4n, nm, pattern, block_punched, block, nested");
}

TEST_F(Declared, PatternsNeedAWindow) {
  refused("structure = \"pattern\", entries = array<i64: 4>", "\"pattern\", but: patterns has 0 entries; 1 to 64 can be told apart");
}

} // namespace
