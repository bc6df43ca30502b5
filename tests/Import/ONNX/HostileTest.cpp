//===- HostileTest.cpp - damaged files are refused without harm -------------------------===//
#include "ModelBuilder.h"

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

/// A small convolutional model with a bit of everything that a file holds.
std::string goodFile() {
  ModelBuilder m(13);
  m.input("x", {1, 2, 4, 4}).initializer("w", ramp({2, 2, 3, 3}, 0, .1f)).initializer("s", int64s({2}, {0, -1}));
  m.initializer("scale", floats({}, {.5f})).initializer("zero", bytes({}, {3}));
  m.node("Conv", {"x", "w"}, {"a"}, {{"pads", Int64s{1, 1, 1, 1}}}).node("Relu", {"a"}, {"b"});
  m.node("MaxPool", {"b"}, {"c"}, {{"kernel_shape", Int64s{2, 2}}, {"strides", Int64s{2, 2}}});
  m.node("QuantizeLinear", {"c", "scale", "zero"}, {"q"}).node("DequantizeLinear", {"q", "scale", "zero"}, {"d"});
  m.node("Reshape", {"d", "s"}, {"e"}).node("Softmax", {"e"}, {"y"}, {{"axis", int64_t(1)}}).output("y");
  return m.proto.SerializeAsString();
}

TEST(Hostile, GoodFileIsRead) { EXPECT_EQ(importBytes(goodFile()).error, ""); }

TEST(Hostile, EveryTruncation) {
  std::string good = goodFile();
  for (size_t size = 0; size < good.size(); ++size) {
    Outcome o = importBytes(good.substr(0, size));
    // A cut between fields leaves a smaller message; what matters is that it is either read or refused.
    EXPECT_NE(o.ir.empty(), o.error.empty()) << size;
  }
  expectError(importBytes(""), {"error: "});
  expectError(importBytes(good.substr(0, good.size() / 2)), {"is not an ONNX model or is damaged"});
}

TEST(Hostile, FlippedBytes) {
  std::string good = goodFile();
  for (size_t i = 0; i < good.size(); ++i)
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ flip);
      Outcome o = importBytes(bad);
      EXPECT_NE(o.ir.empty(), o.error.empty()) << i << " " << flip;
    }
}

TEST(Hostile, LargeResultsOfSmallFilesAreNotComputed) {
  ModelBuilder m(13);
  m.initializer("s", int64s({3}, {1 << 15, 1 << 15, 64})).node("ConstantOfShape", {"s"}, {"y"}).output("y");
  Outcome o = importOnly(m);
  EXPECT_EQ(o.error, "");
  EXPECT_NE(o.ir.find("nn.broadcast"), std::string::npos);
  ModelBuilder eye(13);
  eye.initializer("s", int64s({2}, {int64_t(1) << 40, int64_t(1) << 40})).node("ConstantOfShape", {"s"}, {"y"}).output("y");
  expectError(importOnly(eye), {"elements"});
}

} // namespace
