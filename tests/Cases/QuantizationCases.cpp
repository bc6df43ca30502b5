//===- QuantizationCases.cpp - quantised models that other systems got wrong ----------===//
//
// One test for each report, named by its row in the list of cases; values follow from the format's definition.
//
//===----------------------------------------------------------------------===//
#include "Import/ONNX/ModelBuilder.h"
#include "Support/CompiledModel.h"

#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <random>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

std::vector<Dim> dims(const HostTensor &tensor) { return {tensor.shape.begin(), tensor.shape.end()}; }
Attr integer(const char *name, int64_t value) { return {name, value}; }

/// A tensor of half precision.
HostTensor halves(Shape shape, const Floats &values) {
  HostTensor tensor;
  tensor.elementType = AJOUR_F16;
  tensor.shape = std::move(shape);
  for (float value : values) {
    llvm::APFloat number(value);
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    auto bits = uint16_t(number.bitcastToAPInt().getZExtValue());
    tensor.data.insert(tensor.data.end(), {char(bits & 255), char(bits >> 8)});
  }
  return tensor;
}

void expectHalves(const Outcome &outcome, const Shape &shape, const Floats &values) {
  ASSERT_EQ(outcome.error, "");
  ASSERT_EQ(outcome.outputs.at(0).elementType, uint32_t(AJOUR_F16));
  EXPECT_EQ(outcome.outputs[0].shape, shape);
  EXPECT_EQ(outcome.outputs[0].data, halves(shape, values).data);
}

struct NBits {
  int64_t k, n, block, rows;
  int zeroPoints; ///< 0: absent; 1: one row of bytes; 2: [N, bytes]
};

/// y = a * transposed((q - zero point) * scale), four bits each, computed here in double precision.
void checkMatMulNBits(const NBits &c) {
  int64_t blocks = (c.k + c.block - 1) / c.block, zeroBytes = (blocks + 1) / 2;
  std::mt19937 random(7);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<int> q(size_t(c.n * blocks * c.block / 2)), z(size_t(c.n * zeroBytes));
  for (int &byte : q)
    byte = below(256);
  for (int &byte : z)
    byte = below(256);
  Floats scales;
  for (int64_t i = 0; i < c.n * blocks; ++i)
    scales.push_back(float(1 + below(8)) / 64);
  HostTensor a = ramp({c.rows, c.k});
  for (int64_t i = 0; i < a.numElements(); ++i)
    a.as<float>()[i] = float(below(17) - 8) / 8;
  ModelBuilder m(17);
  m.input("a", dims(a)).initializer("b", bytes({c.n, blocks, c.block / 2}, q)).initializer("s", floats({c.n * blocks}, scales));
  std::vector<std::string> inputs{"a", "b", "s"};
  if (c.zeroPoints) {
    m.initializer("z", bytes(c.zeroPoints == 1 ? Shape{c.n * zeroBytes} : Shape{c.n, zeroBytes}, z));
    inputs.push_back("z");
  }
  m.node("MatMulNBits", inputs, {"y"}, {integer("K", c.k), integer("N", c.n), integer("bits", 4), integer("block_size", c.block)},
         "com.microsoft");
  m.output("y");
  auto nibble = [](const std::vector<int> &packed, int64_t i) { return packed[size_t(i / 2)] >> (i % 2 ? 4 : 0) & 15; };
  Floats expected;
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t n = 0; n < c.n; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        int64_t block = k / c.block;
        int zero = c.zeroPoints ? nibble(z, n * zeroBytes * 2 + block) : 8;
        sum += double(a.as<float>()[row * c.k + k]) * (nibble(q, n * blocks * c.block + k) - zero) * scales[size_t(n * blocks + block)];
      }
      expected.push_back(float(sum));
    }
  expectFloats(run(m, {a}), {c.rows, c.n}, expected, 1e-4f);
}

TEST(QuantizationCases, Q2_BlocksOf512) {
  ModelBuilder m(17);
  m.input("a", {1, 2048}).initializer("b", bytes({4, 4, 256}, std::vector<int>(4096, 0x22)));
  m.initializer("s", ramp({16}, .5f, 0)).initializer("z", bytes({8}, std::vector<int>(8, 0x33)));
  m.node("MatMulNBits", {"a", "b", "s", "z"}, {"y"},
         {integer("K", 2048), integer("N", 4), integer("bits", 4), integer("block_size", 512)}, "com.microsoft");
  m.output("y");
  expectFloats(run(m, {ramp({1, 2048}, 1, 0)}), {1, 4}, {-1024, -1024, -1024, -1024}, 0);
}

TEST(QuantizationCases, Q3_ShortLastBlocksAndPackedZeroPoints) {
  for (int zeroPoints : {0, 1, 2}) {
    SCOPED_TRACE(zeroPoints);
    checkMatMulNBits({4304, 1152, 32, 1, zeroPoints});
    checkMatMulNBits({40, 3, 16, 5, zeroPoints}); // an odd count of blocks
  }
}

TEST(QuantizationCases, Q6_QuantizeHalfPrecision) {
  auto quantize = [](const HostTensor &x, float scale) {
    ModelBuilder m(19);
    m.input("x", dims(x), ::onnx::TensorProto::FLOAT16).initializer("s", halves({}, {scale})).initializer("z", bytes({}, {0}, true));
    m.node("QuantizeLinear", {"x", "s", "z"}, {"y"}).output("y");
    return run(m, {x});
  };
  expectInts(quantize(halves({2}, {.050018310546875f, -.050018310546875f}), .0999755859375f), {2}, {1, -1});
  expectInts(quantize(halves({5}, {2.5f, 1.5f, .5f, -.5f, -2.5f}), 1), {5}, {2, 2, 0, 0, -2});
}

TEST(QuantizationCases, Q7_Float4) {
  constexpr int32_t float4 = 23; // FLOAT4E2M1
  ModelBuilder constants(21);
  constants.input("x", {16}).initializer("w", bytes({16}, {})).initializer("s", floats({}, {2}));
  auto *w = constants.proto.mutable_graph()->mutable_initializer(0);
  w->set_data_type(float4);
  w->set_raw_data(std::string("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8));
  constants.node("DequantizeLinear", {"w", "s"}, {"wf"}).node("Add", {"x", "wf"}, {"y"}).output("y");
  expectFloats(run(constants, {ramp({16}, 0, 0)}), {16}, {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}, 0);
  // Rounding to such numbers, which is to take ties to even, is refused.
  ModelBuilder m(21);
  m.input("x", {7}).initializer("s", floats({}, {1})).initializer("z", bytes({}, {}));
  auto *z = m.proto.mutable_graph()->mutable_initializer(1);
  z->set_data_type(float4);
  z->set_raw_data(std::string("\0", 1));
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s"}, {"y"}).output("y");
  expectError(importOnly(m), {"(QuantizeLinear, #0)", "quantises to float4e2m1, expected an integer of 2 to 16 bits"});
}

TEST(QuantizationCases, Q9_TheZeroPointIsAddedAfterRounding) {
  HostTensor x = floats({5}, {.5f, -.5f, 1.5f, -1.5f, 100});
  ModelBuilder bytesModel(13);
  bytesModel.input("x", {5}).initializer("s", floats({}, {1})).initializer("z", bytes({}, {7}));
  bytesModel.node("QuantizeLinear", {"x", "s", "z"}, {"y"}).output("y");
  expectInts(run(bytesModel, {x}), {5}, {7, 7, 9, 5, 107});
  // Four bits, from one quantisation to the next: 0 to 15 less the zero point 7.
  ModelBuilder nibbles(21);
  nibbles.input("x", {5}).initializer("s", floats({}, {1})).initializer("z", bytes({}, {}));
  auto *z = nibbles.proto.mutable_graph()->mutable_initializer(1);
  z->set_data_type(21); // UINT4
  z->set_raw_data(std::string("\x07", 1));
  nibbles.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y");
  expectFloats(run(nibbles, {x}), {5}, {0, 0, 2, -2, 8}, 0);
}

//===----------------------------------------------------------------------===//
// Integer convolutions, on every code level of the machine
//===----------------------------------------------------------------------===//

/// The first output of a model, by the level's name; "reference" is the interpreter, "level -O0" not simplified.
std::vector<std::pair<std::string, HostTensor>> runEverywhere(const ModelBuilder &m, const HostTensor &x) {
  std::vector<std::pair<std::string, HostTensor>> results;
  TempDir dir;
  writeFile(dir / "model.onnx", m.proto.SerializeAsString());
  for (unsigned optimization : {0u, 3u}) {
    std::unique_ptr<mlir::MLIRContext> context = makeContext();
    DiagnosticCollector diagnostics(context.get(), "model.onnx");
    mlir::OwningOpRef<mlir::ModuleOp> module = importONNX(context.get(), dir / "model.onnx", {});
    EXPECT_TRUE(module) << diagnostics.text();
    if (!module)
      break;
    auto reference = interpret(module->lookupSymbol<mlir::func::FuncOp>("main"), {x});
    EXPECT_TRUE(succeeded(reference)) << diagnostics.text();
    if (optimization == 0 && succeeded(reference))
      results.push_back({"reference", reference->at(0)});
    CompileOptions options;
    options.optimization = optimization;
    std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(*module, options);
    EXPECT_TRUE(compiled) << diagnostics.text();
    for (const std::string &level : runnableLevels()) {
      CompiledModel::RunOptions runOptions;
      runOptions.level = level;
      std::vector<HostTensor> outputs;
      std::string error;
      EXPECT_TRUE(compiled && compiled->run({x}, outputs, error, runOptions)) << error;
      if (!outputs.empty())
        results.push_back({level + " -O" + std::to_string(optimization), outputs[0]});
    }
  }
  return results;
}

TEST(QuantizationCases, Q10_FusionKeepsTheResult) {
  std::mt19937 random(3);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<int> weights(8 * 6 * 9);
  for (int &w : weights)
    w = below(255) - 127;
  Floats scales;
  std::vector<int32_t> bias;
  for (int i = 0; i < 8; ++i) {
    scales.push_back(.001f * float(1 + below(9)));
    bias.push_back(below(2000) - 1000);
  }
  Floats biasScales;
  for (float scale : scales)
    biasScales.push_back(scale * .02f);
  HostTensor x = ramp({1, 6, 9, 11});
  for (int64_t i = 0; i < x.numElements(); ++i)
    x.as<float>()[i] = float(below(2000) - 1000) / 400;
  ModelBuilder m(13);
  m.input("x", dims(x)).initializer("xs", floats({}, {.02f})).initializer("xz", bytes({}, {3}, true));
  m.initializer("w", bytes({8, 6, 3, 3}, weights, true)).initializer("ws", floats({8}, scales)).initializer("b", int32s({8}, bias));
  m.initializer("bs", floats({8}, biasScales)).initializer("ys", floats({}, {.05f})).initializer("yz", bytes({}, {-5}, true));
  m.node("QuantizeLinear", {"x", "xs", "xz"}, {"xq"}).node("DequantizeLinear", {"xq", "xs", "xz"}, {"xd"});
  m.node("DequantizeLinear", {"w", "ws"}, {"wd"}, {integer("axis", 0)}).node("DequantizeLinear", {"b", "bs"}, {"bd"}, {integer("axis", 0)});
  m.node("Conv", {"xd", "wd", "bd"}, {"c"}, {{"pads", Int64s{1, 1, 1, 1}}}).node("Relu", {"c"}, {"r"});
  m.node("QuantizeLinear", {"r", "ys", "yz"}, {"y"}).output("y");
  auto results = runEverywhere(m, x);
  ASSERT_GE(results.size(), 3u);
  const HostTensor &reference = results[0].second;
  EXPECT_EQ(reference.shape, (Shape{1, 8, 9, 11}));
  int distinct = 0;
  for (int64_t i = 1; i < reference.numElements(); ++i)
    distinct += reference.data[size_t(i)] != reference.data[0];
  EXPECT_GT(distinct, 100);
  const HostTensor *optimized = nullptr;
  for (const auto &[name, found] : results) {
    ASSERT_EQ(found.shape, reference.shape) << name;
    for (int64_t i = 0; i < found.numElements(); ++i)
      ASSERT_NEAR(found.as<int8_t>()[i], reference.as<int8_t>()[i], 1) << name << ", element " << i;
    // Integer arithmetic: all levels give the same.
    if (name.find("-O3") == std::string::npos)
      continue;
    if (optimized)
      EXPECT_EQ(found.data, optimized->data) << name;
    optimized = &found;
  }
}

TEST(QuantizationCases, Q11_ConvolutionPerChannelOnEveryLevel) {
  // Real values of the input are (stored + 1) / 2; the rows of two pictures.
  std::vector<int> stored;
  for (int value : {1, 1, 1, 1, 3, 3, 3, 3, 1, 3, 5, 7, 1, 3, 5, 7})
    stored.push_back(value * 2 - 1);
  ModelBuilder m(13);
  m.input("x", {2, 1, 2, 4}, ::onnx::TensorProto::INT8).initializer("xs", floats({}, {.5f})).initializer("xz", bytes({}, {-1}, true));
  m.initializer("w", bytes({3, 1, 2, 2}, {1, 2, 3, 4, -4, 4, -4, 4, -1, -1, 1, 1}, true));
  m.initializer("ws", floats({3}, {2, .5f, 2})).initializer("wz", bytes({3}, {0, 0, 0}, true));
  m.initializer("ys", floats({}, {.5f})).initializer("yz", bytes({}, {-1}, true)).initializer("b", int32s({3}, {1, 8, 3}));
  m.node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, {"y"}, {{"strides", Int64s{2, 2}}}).output("y");
  // With filters 2 4 6 8, -2 2 -2 2, -2 -2 2 2 and biases 1, 2, 3; output twice the real value, less 1, up to 127.
  std::vector<int> expected{97, 97, 3, 3, 21, 21, 89, 127, 19, 19, 5, 5};
  auto results = runEverywhere(m, bytes({2, 1, 2, 4}, stored, true));
  ASSERT_GE(results.size(), 3u);
  for (const auto &[name, found] : results) {
    EXPECT_EQ(found.shape, (Shape{2, 3, 1, 2})) << name;
    EXPECT_EQ(found.data, bytes({2, 3, 1, 2}, expected, true).data) << name;
  }
}

TEST(QuantizationCases, Q15_HalfPrecisionSumsInSinglePrecision) {
  // The sum passes 321000, five times what a half can hold, and comes back.
  Floats row;
  for (int i = 0; i < 1604; ++i)
    row.push_back(i < 802 ? 400 : -400);
  row.push_back(7);
  int64_t k = int64_t(row.size());
  ModelBuilder m(13);
  m.input("a", {1, k}, ::onnx::TensorProto::FLOAT16).initializer("b", halves({k, 1}, Floats(size_t(k), 1)));
  m.node("MatMul", {"a", "b"}, {"y"}).output("y");
  expectHalves(run(m, {halves({1, k}, row)}), {1, 1}, {7});
  // The mean of 4096 times 16 * 16: the sum is 1048576.
  ModelBuilder norm(17);
  norm.input("x", {1, 4096}, ::onnx::TensorProto::FLOAT16).node("Mul", {"x", "x"}, {"s"});
  norm.node("ReduceMean", {"s"}, {"mean"}, {{"axes", Int64s{1}}}).node("Sqrt", {"mean"}, {"d"}).node("Div", {"x", "d"}, {"y"}).output("y");
  expectHalves(run(norm, {halves({1, 4096}, Floats(4096, 16))}), {1, 4096}, Floats(4096, 1));
  // Inside one operation a sum may pass 65504 although the result does not.
  ModelBuilder sum(13);
  sum.input("x", {4}, ::onnx::TensorProto::FLOAT16).initializer("axes", int64s({1}, {0}));
  sum.node("ReduceSum", {"x", "axes"}, {"y"}, {integer("keepdims", 0)}).output("y");
  expectHalves(run(sum, {halves({4}, {65504, 65504, -65504, -65504})}), {}, {0});
}

} // namespace
