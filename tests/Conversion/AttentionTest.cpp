//===- AttentionTest.cpp - nn-attention --------------------------------------------------------===//
#include "SimplifyHarness.h"

using namespace ajour;
using namespace ajour::test;

namespace {

struct AttentionPass : SimplifyTest {
  /// softmax(q k^T ...) v over two batches and three heads; `between` makes %x of the scores %s.
  void parseWritten(const std::string &between, const std::string &keys = "2x3x4x5", const std::string &arguments = "") {
    bool transposed = keys == "2x3x7x4";
    parse("func.func @main(%q: tensor<2x3x6x4xf32>, %k: tensor<" + keys + "xf32>, %v: tensor<2x3x" + (transposed ? "7" : "5") + "x8xf32>" + arguments +
          ") -> tensor<2x3x6x8xf32> {\n%s = nn.matmul %q, %k " + (transposed ? "{transpose_rhs}" : "") + " : (tensor<2x3x6x4xf32>, tensor<" + keys +
          "xf32>) -> " + scores(transposed) + "\n" + between + "\n%w = nn.softmax %x {axis = 3 : i64} : (" + scores(transposed) + ") -> " +
          scores(transposed) + "\n%y = nn.matmul %w, %v : (" + scores(transposed) + ", tensor<2x3x" + (transposed ? "7" : "5") +
          "x8xf32>) -> tensor<2x3x6x8xf32>\nreturn %y : tensor<2x3x6x8xf32>\n}");
  }
  static std::string scores(bool transposed) { return transposed ? "tensor<2x3x6x7xf32>" : "tensor<2x3x6x5xf32>"; }
};

constexpr Tolerance rounding{1e-6, 0};

std::string binary(const char *kind, const char *x, const char *lhs, const char *rhs, const char *rhsType, const char *type = "tensor<2x3x6x5xf32>") {
  return std::string("%") + x + " = nn.binary <" + kind + "> %" + lhs + ", %" + rhs + " : (" + type + ", " + rhsType + ") -> " + type + "\n";
}
constexpr char half[] = "%h = nn.constant {value = dense<0.5> : tensor<1xf32>} : tensor<1xf32>\n";

} // namespace

TEST_F(AttentionPass, ProductsAroundASoftmax) {
  parseWritten(half + binary("mul", "x", "s", "h", "tensor<1xf32>"));
  check([] { return createAttentionPass(); }, rounding);
  EXPECT_EQ(only<nn::AttentionOp>().getScale().convertToFloat(), 0.5f);
  EXPECT_EQ(count<nn::MatmulOp>() + count<nn::SoftmaxOp>() + count<nn::BinaryOp>(), 0);
}

TEST_F(AttentionPass, TransposedKeysAndADivisor) {
  parseWritten(half + binary("div", "x", "s", "h", "tensor<1xf32>", "tensor<2x3x6x7xf32>"), "2x3x7x4");
  check([] { return createAttentionPass(); }, rounding);
  EXPECT_EQ(only<nn::AttentionOp>().getScale().convertToFloat(), 2.0f);
}

TEST_F(AttentionPass, AMaskIsAdded) {
  parseWritten(half + binary("mul", "t", "s", "h", "tensor<1xf32>") + binary("add", "x", "t", "m", "tensor<2x1x1x5xf32>"), "2x3x4x5",
               ", %m: tensor<2x1x1x5xf32>");
  check([] { return createAttentionPass(); }, rounding);
  EXPECT_TRUE(only<nn::AttentionOp>().getMask());
}

TEST_F(AttentionPass, WithoutHeadsThereIsOne) {
  parse(R"(func.func @main(%q: tensor<6x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x8xf32>) -> tensor<6x8xf32> {
    %s = nn.matmul %q, %k {transpose_rhs} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
    %w = nn.softmax %s {axis = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %y = nn.matmul %w, %v : (tensor<6x5xf32>, tensor<5x8xf32>) -> tensor<6x8xf32>
    return %y : tensor<6x8xf32>
  })");
  check([] { return createAttentionPass(); }, rounding);
  only<nn::AttentionOp>();
}

TEST_F(AttentionPass, OtherThingsStay) {
  // A scale behind the mask, scores that something else reads too, and a mask that is another's scores.
  parseWritten(half + binary("add", "t", "s", "m", "tensor<5xf32>") + binary("mul", "x", "t", "h", "tensor<1xf32>"), "2x3x4x5", ", %m: tensor<5xf32>");
  check([] { return createAttentionPass(); }, rounding);
  EXPECT_EQ(count<nn::AttentionOp>(), 0);
  parseWritten(binary("mul", "x", "s", "s", "tensor<2x3x6x5xf32>"));
  check([] { return createAttentionPass(); }, rounding);
  EXPECT_EQ(count<nn::AttentionOp>(), 0);
}

TEST_F(AttentionPass, MovesOfHeadsVanishInThePipeline) {
  // As transformers are exported: [B, T, H D] is split into heads, which go before the tokens and back.
  parse(R"(func.func @main(%q: tensor<2x6x12xf32>, %k: tensor<2x6x12xf32>, %v: tensor<2x6x12xf32>) -> tensor<2x6x12xf32> {
    %qs = nn.reshape %q : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %ks = nn.reshape %k : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %vs = nn.reshape %v : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %qt = nn.transpose %qs {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x6x3x4xf32>) -> tensor<2x3x6x4xf32>
    %kt = nn.transpose %ks {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x6x3x4xf32>) -> tensor<2x3x4x6xf32>
    %vt = nn.transpose %vs {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x6x3x4xf32>) -> tensor<2x3x6x4xf32>
    %s = nn.matmul %qt, %kt : (tensor<2x3x6x4xf32>, tensor<2x3x4x6xf32>) -> tensor<2x3x6x6xf32>
    %w = nn.softmax %s {axis = 3 : i64} : (tensor<2x3x6x6xf32>) -> tensor<2x3x6x6xf32>
    %m = nn.matmul %w, %vt : (tensor<2x3x6x6xf32>, tensor<2x3x6x4xf32>) -> tensor<2x3x6x4xf32>
    %mt = nn.transpose %m {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x3x6x4xf32>) -> tensor<2x6x3x4xf32>
    %y = nn.reshape %mt : (tensor<2x6x3x4xf32>) -> tensor<2x6x12xf32>
    return %y : tensor<2x6x12xf32>
  })");
  checkPipeline(rounding);
  only<nn::AttentionOp>();
  EXPECT_EQ(count<nn::TransposeOp>(), 0);
}
