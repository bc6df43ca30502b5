//===- DeadChannelsTest.cpp - nn-dead-channels --------------------------------------===//
#include "SimplifyHarness.h"

#include "ajour/Support/NodeLocation.h"

using namespace ajour;
using namespace ajour::nn;

namespace {

/// Raw bytes as a dense attribute.
std::string dense(const std::string &bytes, const std::string &type) {
  static const char digits[] = "0123456789ABCDEF";
  std::string text = "dense<\"0x";
  for (unsigned char c : bytes)
    text += {digits[c >> 4], digits[c & 15]};
  return "nn.constant {value = " + text + "\"> : tensor<" + type + ">} : tensor<" + type + ">";
}

struct DeadChannelsTest : test::SimplifyTest {
  std::mt19937 rng{5};

  /// Weights [outputs][taps][channels] of 8 bits, not `zero`, but for channels from `read` on, which are.
  std::string weights8(int64_t outputs, int64_t taps, int64_t channels, int64_t read, const std::string &type, int8_t zero = 0) {
    std::string bytes;
    for (int64_t i = 0; i < outputs * taps * channels; ++i) {
      // Every third channel is read, until there are `read` of them.
      int64_t channel = i % channels;
      bool isRead = read < 0 || (channel % 3 == 0 && channel / 3 < read);
      int8_t value = zero;
      while (isRead && value == zero)
        value = int8_t(rng());
      bytes += char(value);
    }
    return dense(bytes, type);
  }
  std::string floats(int64_t count, const std::string &type, const std::function<bool(int64_t)> &isRead) {
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) {
      float value = isRead(i) ? float(int(rng() % 200) - 100) / 37 + 0.01f : 0;
      bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
    }
    return dense(bytes, type);
  }
  static std::string list(int64_t count, double first, double step) {
    std::string text;
    for (int64_t i = 0; i < count; ++i)
      text += (i ? ", " : "") + std::to_string(first + step * double(i));
    return text;
  }
  void narrow() {
    check([] { return createDeadChannelsPass(); });
  }
  std::vector<int64_t> filterSizes() {
    std::vector<int64_t> sizes;
    main().walk([&](ConvOp op) {
      auto type = mlir::cast<mlir::RankedTensorType>(op.getFilter().getType());
      sizes.push_back(type.getDimSize(0));
      sizes.push_back(type.getShape().back());
    });
    return sizes;
  }
};

const char *const unpadded = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>";
const char *const padded = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>";

TEST_F(DeadChannelsTest, BackThroughDepthwiseToTheProduct) {
  // 8 -> 48, of which the last product reads 12: 16 are left.
  parse("func.func @main(%x: tensor<1x5x5x8xi8>) -> tensor<1x5x5x4xi32> {\n"
        "%w0 = " + weights8(48, 1, 8, -1, "48x1x1x8xi8") + "\n"
        "%w1 = " + weights8(48, 9, 1, -1, "48x3x3x1xi8") + "\n"
        "%w2 = " + weights8(4, 1, 48, 12, "4x1x1x48xi8", 3) + "\n"
        "%b = nn.constant {value = dense<7> : tensor<48xi32>} : tensor<48xi32>\n"
        "%0 = nn.conv %x, %w0, %b {" + unpadded + ", lhs_zero_point = 2 : i32} : (tensor<1x5x5x8xi8>, tensor<48x1x1x8xi8>, tensor<48xi32>) -> tensor<1x5x5x48xi32>\n"
        "%1 = nn.requantize %0 {scales = array<f32: " + list(48, 0.001, 0.0001) + ">, divisor = 1.0 : f32, zero_point = -3 : i32, qmin = -128 : i32, qmax = 127 : i32} : (tensor<1x5x5x48xi32>) -> tensor<1x5x5x48xi8>\n"
        "%2 = nn.conv %1, %w1, %b {" + padded + ", groups = 48 : i64, lhs_zero_point = -3 : i32} : (tensor<1x5x5x48xi8>, tensor<48x3x3x1xi8>, tensor<48xi32>) -> tensor<1x5x5x48xi32>\n"
        "%3 = nn.requantize %2 {scales = array<f32: 0.002>, divisor = 1.0 : f32, zero_point = 5 : i32, qmin = -128 : i32, qmax = 127 : i32} : (tensor<1x5x5x48xi32>) -> tensor<1x5x5x48xi8>\n"
        "%4 = nn.conv %3, %w2 {" + unpadded + ", lhs_zero_point = 5 : i32, rhs_zero_points = array<i32: 3>} : (tensor<1x5x5x48xi8>, tensor<4x1x1x48xi8>) -> tensor<1x5x5x4xi32>\n"
        "return %4 : tensor<1x5x5x4xi32>\n}");
  narrow();
  EXPECT_EQ(filterSizes(), (std::vector<int64_t>{16, 8, 16, 1, 4, 16}));
}

TEST_F(DeadChannelsTest, ThroughPoolsAndFunctionsInFloat) {
  parse("func.func @main(%x: tensor<1x6x6x4xf32>) -> tensor<1x1x1x5xf32> {\n"
        "%w0 = " + floats(64 * 9 * 4, "64x3x3x4xf32", [](int64_t) { return true; }) + "\n"
        "%w1 = " + floats(5 * 4 * 64, "5x2x2x64xf32", [](int64_t i) { return i % 64 >= 40; }) + "\n"
        "%0 = nn.conv %x, %w0 {" + unpadded + "} : (tensor<1x6x6x4xf32>, tensor<64x3x3x4xf32>) -> tensor<1x4x4x64xf32>\n"
        "%1 = nn.unary <relu> %0 : (tensor<1x4x4x64xf32>) -> tensor<1x4x4x64xf32>\n"
        "%2 = nn.max_pool %1 {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x4x4x64xf32>) -> tensor<1x2x2x64xf32>\n"
        "%3 = nn.conv %2, %w1 {" + unpadded + "} : (tensor<1x2x2x64xf32>, tensor<5x2x2x64xf32>) -> tensor<1x1x1x5xf32>\n"
        "return %3 : tensor<1x1x1x5xf32>\n}");
  narrow();
  EXPECT_EQ(filterSizes(), (std::vector<int64_t>{32, 4, 5, 32}));
}

/// x [3][8] times [8][64], relu, times [64][32] of which rows from 20 on are zero, times [32][4] that reads the first 3: from the last
/// back to the first.
const char *matrices = R"(
    %0 = nn.matmul %x, %w0 : (tensor<3x8xf32>, tensor<8x64xf32>) -> tensor<3x64xf32>
    %1 = nn.unary <relu> %0 : (tensor<3x64xf32>) -> tensor<3x64xf32>
    %2 = nn.matmul %1, %w1 : (tensor<3x64xf32>, tensor<64x32xf32>) -> tensor<3x32xf32>
    %3 = nn.unary <tanh> %2 : (tensor<3x32xf32>) -> tensor<3x32xf32>
    %4 = nn.matmul %3, %w2 {transpose_rhs} : (tensor<3x32xf32>, tensor<4x32xf32>) -> tensor<3x4xf32>
)";

TEST_F(DeadChannelsTest, MatricesFromTheLastToTheFirst) {
  parse("func.func @main(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {\n"
        "%w0 = " + floats(8 * 64, "8x64xf32", [](int64_t) { return true; }) + "\n"
        // Columns beyond 3 read everything, but nobody reads them.
        "%w1 = " + floats(64 * 32, "64x32xf32", [](int64_t i) { return i % 32 >= 16 || i / 32 < 10; }) + "\n"
        "%w2 = " + floats(4 * 32, "4x32xf32", [](int64_t i) { return i % 32 < 3; }) + "\n" + matrices + "return %4 : tensor<3x4xf32>\n}");
  narrow();
  std::vector<int64_t> sizes;
  main().walk([&](MatmulOp op) {
    for (int64_t size : mlir::cast<mlir::RankedTensorType>(op.getRhs().getType()).getShape())
      sizes.push_back(size);
  });
  EXPECT_EQ(sizes, (std::vector<int64_t>{8, 16, 16, 16, 4, 16}));
}

TEST_F(DeadChannelsTest, WhatOthersReadOrTheModelDeclaresStays) {
  const std::string weights = "%w0 = " + floats(8 * 64, "8x64xf32", [](int64_t) { return true; }) + "\n%w1 = " +
                              floats(64 * 32, "64x32xf32", [](int64_t i) { return i / 32 < 10; }) + "\n%w2 = " +
                              floats(4 * 32, "4x32xf32", [](int64_t) { return true; }) + "\n";
  parse("func.func @main(%x: tensor<3x8xf32>) -> (tensor<3x4xf32>, tensor<3x64xf32>) {\n" + weights + matrices +
        "return %4, %1 : tensor<3x4xf32>, tensor<3x64xf32>\n}");
  narrow();
  EXPECT_EQ(text().find("tensor<3x16xf32>"), std::string::npos);
  parse("module attributes {enc.declared = {fc = {structure = \"dense\", weight = \"w\"}}} {\n"
        "func.func @main(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {\n" + weights + matrices + "return %4 : tensor<3x4xf32>\n}}");
  main().walk([&](MatmulOp op) { op->setLoc(makeNodeLocation(&context, {"net.onnx", "fc", "MatMul", 0})); });
  narrow();
  EXPECT_EQ(text().find("tensor<3x16xf32>"), std::string::npos);
}

TEST_F(DeadChannelsTest, AFewUnreadChannelsAreLeftAlone) {
  parse("func.func @main(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {\n"
        "%w0 = " + floats(8 * 64, "8x64xf32", [](int64_t) { return true; }) + "\n"
        "%w1 = " + floats(64 * 32, "64x32xf32", [](int64_t i) { return i / 32 < 50; }) + "\n"
        "%w2 = " + floats(4 * 32, "4x32xf32", [](int64_t) { return true; }) + "\n" + matrices + "return %4 : tensor<3x4xf32>\n}");
  narrow();
  EXPECT_NE(text().find("tensor<3x64xf32>"), std::string::npos);
}

} // namespace
