// Size expressions: form and value.
#include "Expr.h"
#include "Fixture.h"

using namespace ajour::test;
using namespace ajour::runtime;

namespace {

/// An expression in serialised form.
struct Packed {
  flatbuffers::FlatBufferBuilder builder;
  const ajour::artifact::Expr *get;
  explicit Packed(Code code) {
    ajour::artifact::ExprT object;
    object.code = std::move(code);
    builder.Finish(ajour::artifact::Expr::Pack(builder, &object));
    get = flatbuffers::GetRoot<ajour::artifact::Expr>(builder.GetBufferPointer());
  }
};

Code binary(int64_t a, int64_t b, int64_t op) { return {AJOUR_EXPR_CONST, a, AJOUR_EXPR_CONST, b, op, 0}; }

int64_t value(Code code) {
  Packed packed(std::move(code));
  int64_t symbols[2] = {7, 3}, result = -1;
  EXPECT_EQ(checkExpr(packed.get, 2), nullptr);
  EXPECT_EQ(evaluateExpr(packed.get, symbols, result), nullptr);
  return result;
}

std::string wrong(Code code) {
  Packed packed(std::move(code));
  const char *text = checkExpr(packed.get, 2);
  int64_t symbols[2] = {7, 3}, result;
  if (!text)
    text = evaluateExpr(packed.get, symbols, result);
  return text ? text : "";
}

} // namespace

TEST(Expr, Operators) {
  EXPECT_EQ(value(binary(2, 3, AJOUR_EXPR_ADD)), 5);
  EXPECT_EQ(value(binary(2, 3, AJOUR_EXPR_MUL)), 6);
  EXPECT_EQ(value(binary(7, 2, AJOUR_EXPR_FLOORDIV)), 3);
  EXPECT_EQ(value(binary(7, 2, AJOUR_EXPR_CEILDIV)), 4);
  EXPECT_EQ(value(binary(-7, -2, AJOUR_EXPR_CEILDIV)), 4);
  EXPECT_EQ(value(binary(-7, -2, AJOUR_EXPR_FLOORDIV)), 3);
  EXPECT_EQ(value(binary(-7, 3, AJOUR_EXPR_MOD)), 2);
  EXPECT_EQ(value(binary(7, 3, AJOUR_EXPR_MOD)), 1);
  EXPECT_EQ(value(binary(-7, 3, AJOUR_EXPR_MAX)), 3);
  EXPECT_EQ(value(binary(7, 3, AJOUR_EXPR_MIN)), 3);
  EXPECT_EQ(value({AJOUR_EXPR_DIM, 0, AJOUR_EXPR_DIM, 1, AJOUR_EXPR_MUL, 0}), 21);
  // Rounds towards minus infinity: -7 floordiv 2 = -4, -7 ceildiv 2 = -3.
  EXPECT_EQ(value({AJOUR_EXPR_CONST, -7, AJOUR_EXPR_CONST, 2, AJOUR_EXPR_FLOORDIV, 0, AJOUR_EXPR_CONST, 10,
                   AJOUR_EXPR_ADD, 0}),
            6);
  EXPECT_EQ(value({AJOUR_EXPR_CONST, -7, AJOUR_EXPR_CONST, 2, AJOUR_EXPR_CEILDIV, 0, AJOUR_EXPR_CONST, 10,
                   AJOUR_EXPR_ADD, 0}),
            7);
}

TEST(Expr, Refused) {
  EXPECT_EQ(wrong({}), "is empty");
  EXPECT_EQ(wrong({AJOUR_EXPR_CONST}), "has an opcode without an operand");
  EXPECT_EQ(wrong({AJOUR_EXPR_DIM, 2}), "names a symbol that does not exist");
  EXPECT_EQ(wrong({AJOUR_EXPR_DIM, -1}), "names a symbol that does not exist");
  EXPECT_EQ(wrong({AJOUR_EXPR_ADD, 0}), "takes a value from an empty stack");
  EXPECT_EQ(wrong({AJOUR_EXPR_CONST, 1, AJOUR_EXPR_CONST, 1}), "leaves more than one value");
  EXPECT_EQ(wrong({99, 0}), "has an unknown opcode");
  Code deep;
  for (int i = 0; i < 17; ++i)
    deep.insert(deep.end(), {AJOUR_EXPR_CONST, 1});
  EXPECT_EQ(wrong(deep), "needs a stack deeper than 16");
  EXPECT_EQ(wrong(binary(INT64_MAX, 2, AJOUR_EXPR_MUL)), "overflows");
  EXPECT_EQ(wrong(binary(INT64_MAX, 2, AJOUR_EXPR_ADD)), "overflows");
  EXPECT_EQ(wrong(binary(INT64_MIN, -1, AJOUR_EXPR_FLOORDIV)), "overflows");
  EXPECT_EQ(wrong(binary(1, 0, AJOUR_EXPR_MOD)), "divides by zero");
  EXPECT_EQ(wrong(constant(-1)), "is negative");
  EXPECT_EQ(wrong(constant(maxExprValue + 1)), "is larger than 2^46");
}
