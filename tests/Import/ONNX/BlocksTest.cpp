//===- BlocksTest.cpp - weights quantised in blocks, and types of few bits --------------===//
#include "ModelBuilder.h"

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

Attr integer(const std::string &name, int64_t value) { return {name, value}; }

/// An initializer of an element type that tensors of tests do not have.
void raw(ModelBuilder &m, const std::string &name, Shape shape, int32_t type, const std::string &data) {
  m.initializer(name, bytes(shape, {}));
  auto *tensor = m.proto.mutable_graph()->mutable_initializer(m.proto.graph().initializer_size() - 1);
  tensor->set_data_type(type);
  tensor->set_raw_data(data);
}

/// A[1, 32] of 0, 1, 2, ... times 32 values of 4 bits, 1 or 2 where the index is even or odd, with scales 1 and 10 of blocks of 16.
ModelBuilder nBits(const std::vector<int> &groups, std::optional<std::vector<int>> zeroPoints) {
  ModelBuilder m(17);
  m.input("a", {1, 32}).initializer("b", bytes({1, 2, 8}, std::vector<int>(16, 0x21))).initializer("s", floats({2}, {1, 10}));
  if (zeroPoints)
    m.initializer("z", bytes({1}, *zeroPoints));
  m.initializer("g", int32s({int64_t(groups.size())}, std::vector<int32_t>(groups.begin(), groups.end())));
  m.node("MatMulNBits", {"a", "b", "s", zeroPoints ? "z" : "", "g"}, {"y"},
         {integer("K", 32), integer("N", 1), integer("bits", 4), integer("block_size", 16)}, "com.microsoft");
  m.output("y");
  return m;
}

TEST(MatMulNBits, GroupsByIndex) {
  // Elements of the two groups take turns; the zero points 1 and 3 are of the groups, not of the places.
  std::vector<int> turns(32), inOrder(32);
  for (int i = 0; i < 32; ++i)
    turns[size_t(i)] = i % 2, inOrder[size_t(i)] = i / 16;
  auto expected = [](const std::vector<int> &groups, int first, int second) {
    float sum = 0;
    for (int i = 0; i < 32; ++i) {
      int group = groups[size_t(i)];
      sum += float(i) * float((i % 2 ? 2 : 1) - (group ? second : first)) * (group ? 10.0f : 1.0f);
    }
    return sum;
  };
  for (const std::vector<int> &groups : {turns, inOrder}) {
    expectFloats(run(nBits(groups, std::vector<int>{0x31}), {ramp({1, 32})}), {1, 1}, {expected(groups, 1, 3)});
    expectFloats(run(nBits(groups, std::nullopt), {ramp({1, 32})}), {1, 1}, {expected(groups, 8, 8)});
  }
  expectError(importOnly(nBits({0, 1}, std::nullopt)), {"(MatMulNBits, #0)", "has 2 elements, expected K = 32"});
  turns[5] = 2;
  expectError(importOnly(nBits(turns, std::nullopt)), {"names group 2 of 2"});
  turns[5] = -1;
  expectError(importOnly(nBits(turns, std::nullopt)), {"names group -1 of 2"});
}

TEST(MatMulNBits, TwoAndEightBits) {
  // Two bits: 3, 2, 1, 0 in each byte, zero points 1 and 2 in one byte. Eight: bytes less 128.
  ModelBuilder two(17);
  two.input("a", {1, 32}).initializer("b", bytes({1, 2, 4}, std::vector<int>(8, 0x1b))).initializer("s", floats({2}, {1, 10})).initializer("z", bytes({1}, {0x09}));
  two.node("MatMulNBits", {"a", "b", "s", "z"}, {"y"}, {integer("K", 32), integer("N", 1), integer("bits", 2), integer("block_size", 16)}, "com.microsoft");
  two.output("y");
  expectFloats(run(two, {ramp({1, 32}, 1, 0)}), {1, 1}, {4 * (2 + 1 + 0 - 1) + 10.0f * 4 * (1 + 0 - 1 - 2)});
  ModelBuilder eight(17);
  eight.input("a", {1, 16}).initializer("b", bytes({1, 1, 16}, std::vector<int>(16, 130))).initializer("s", floats({1}, {0.5f}));
  eight.node("MatMulNBits", {"a", "b", "s"}, {"y"}, {integer("K", 16), integer("N", 1), integer("bits", 8), integer("block_size", 16)}, "com.microsoft");
  eight.output("y");
  expectFloats(run(eight, {ramp({1, 16}, 1, 0)}), {1, 1}, {16});
  ModelBuilder three(17);
  three.input("a", {1, 16}).initializer("b", bytes({1, 1, 6}, std::vector<int>(6, 0))).initializer("s", floats({1}, {1}));
  three.node("MatMulNBits", {"a", "b", "s"}, {"y"}, {integer("K", 16), integer("N", 1), integer("bits", 3), integer("block_size", 16)}, "com.microsoft");
  three.output("y");
  expectError(importOnly(three), {"3 bits and blocks of 16", "expected 2, 4 or 8 bits and a power of two from 16"});
}

/// Rows 2 and 0 of 3 rows of 32 values 1 and 2 in turn, in blocks of 16 with scales 1, 2, ... 6.
ModelBuilder rowsOfBlocks(int32_t type, std::vector<int> zeroPoints, std::vector<Attr> attrs) {
  ModelBuilder m(21);
  raw(m, "data", {3, type == ::onnx::TensorProto::UINT8 ? 16 : 32}, type, std::string(48, '\x21'));
  m.input("i", {2}, ::onnx::TensorProto::INT64).initializer("s", ramp({3, 2}, 1));
  std::vector<std::string> inputs{"data", "i", "s"};
  if (!zeroPoints.empty()) {
    m.initializer("z", bytes({3, 1}, zeroPoints));
    inputs.push_back("z");
  }
  m.node("GatherBlockQuantized", inputs, {"y"}, attrs, "com.microsoft").output("y");
  return m;
}

TEST(GatherBlockQuantized, BytesAndTypesOfFourBits) {
  std::vector<Attr> attrs{integer("block_size", 16)};
  auto expected = [](std::vector<int> zeros) {
    std::vector<float> values;
    for (int row : {2, 0})
      for (int i = 0; i < 32; ++i)
        values.push_back(float((i % 2 ? 2 : 1) - zeros[size_t(row * 2 + i / 16)]) * float(1 + row * 2 + i / 16));
    return values;
  };
  HostTensor which = int64s({2}, {2, 0});
  expectFloats(run(rowsOfBlocks(::onnx::TensorProto::UINT8, {}, attrs), {which}), {2, 32}, expected({8, 8, 8, 8, 8, 8}));
  expectFloats(run(rowsOfBlocks(::onnx::TensorProto::UINT8, {0x21, 0x43, 0x65}, attrs), {which}), {2, 32}, expected({1, 2, 3, 4, 5, 6}));
  for (int32_t type : {int32_t(::onnx::TensorProto::UINT8) + 19 /* UINT4 */, 22 /* INT4 */})
    expectFloats(run(rowsOfBlocks(type, {}, attrs), {which}), {2, 32}, expected({0, 0, 0, 0, 0, 0}));
  expectError(importOnly(rowsOfBlocks(::onnx::TensorProto::UINT8, {}, {integer("block_size", 12)})),
              {"(GatherBlockQuantized, #0)", "has 4 bits and blocks of 12, expected 4 or 8 bits and a power of two from 16"});
  ModelBuilder real(21);
  real.input("i", {2}, ::onnx::TensorProto::INT64).input("d", {3, 32}).initializer("s", ramp({3, 2}, 1));
  real.node("GatherBlockQuantized", {"d", "i", "s"}, {"y"}, attrs, "com.microsoft").output("y");
  expectError(importOnly(real), {"(GatherBlockQuantized, #0)", "f32[3, 32]"});
  ModelBuilder scales(21);
  raw(scales, "data", {3, 16}, ::onnx::TensorProto::UINT8, std::string(48, '\x21'));
  scales.input("i", {2}, ::onnx::TensorProto::INT64).initializer("s", int32s({3, 2}, {1, 2, 3, 4, 5, 6}));
  scales.node("GatherBlockQuantized", {"data", "i", "s"}, {"y"}, attrs, "com.microsoft").output("y");
  expectError(importOnly(scales), {"its scales are i32[3, 2], expected floats"});
}

/// x + weights [4, 2] in blocks of 2 along the first axis, with scales 1, 10, 100, 1000.
Outcome blocksOf(int32_t type, const std::string &data) {
  ModelBuilder m(23);
  m.input("x", {4, 2}).initializer("s", floats({2, 2}, {1, 10, 100, 1000}));
  raw(m, "w", {4, 2}, type, data);
  m.node("DequantizeLinear", {"w", "s"}, {"d"}, {integer("axis", 0), integer("block_size", 2)}).node("Add", {"x", "d"}, {"y"}).output("y");
  ImportOptions options;
  options.allowNewerOpset = true;
  return run(m, {ramp({4, 2}, 0, 0)}, options);
}

TEST(DequantizeLinear, BlocksOfFewBits) {
  auto scaled = [](std::vector<float> values) {
    const float scales[] = {1, 10, 1, 10, 100, 1000, 100, 1000};
    for (size_t i = 0; i < values.size(); ++i)
      values[i] *= scales[i];
    return values;
  };
  // E2M1: .5 1 1.5 2 3 4 6 -1; E4M3 and E5M2: 1 and its neighbours in a few places.
  expectFloats(blocksOf(23, "\x21\x43\x65\xa7"), {4, 2}, scaled({.5f, 1, 1.5f, 2, 3, 4, 6, -1}));
  expectFloats(blocksOf(17, "\x38\x39\xb8\x40\x01\x7e\x08\x30"), {4, 2}, scaled({1, 1.125f, -1, 2, 0x1p-9f, 448, 0x1p-6f, .5f}));
  expectFloats(blocksOf(19, "\x3c\x3d\xbc\x40\x01\x7b\x04\x38"), {4, 2}, scaled({1, 1.25f, -1, 2, 0x1p-16f, 57344, 0x1p-14f, .5f}));
  // Two bits, unsigned and signed.
  expectFloats(blocksOf(25, "\xe4\x1b"), {4, 2}, scaled({0, 1, 2, 3, 3, 2, 1, 0}));
  expectFloats(blocksOf(26, "\xe4\x1b"), {4, 2}, scaled({0, 1, -2, -1, -1, -2, 1, 0}));
}

} // namespace
