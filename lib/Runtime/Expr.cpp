#include "Expr.h"

namespace ajour::runtime {

const char *checkExpr(const artifact::Expr *expr, size_t symbolCount) {
  if (!expr || sizeOf(expr->code()) == 0)
    return "is empty";
  const auto &code = *expr->code();
  if (code.size() % 2 != 0)
    return "has an opcode without an operand";
  unsigned depth = 0;
  for (uint32_t i = 0; i < code.size(); i += 2) {
    int64_t operand = code.Get(i + 1);
    switch (code.Get(i)) {
    case AJOUR_EXPR_DIM:
      if (operand < 0 || static_cast<uint64_t>(operand) >= symbolCount)
        return "names a symbol that does not exist";
      [[fallthrough]];
    case AJOUR_EXPR_CONST:
      if (++depth > maxExprDepth)
        return "needs a stack deeper than 16";
      break;
    case AJOUR_EXPR_ADD:
    case AJOUR_EXPR_MUL:
    case AJOUR_EXPR_FLOORDIV:
    case AJOUR_EXPR_CEILDIV:
    case AJOUR_EXPR_MOD:
    case AJOUR_EXPR_MAX:
    case AJOUR_EXPR_MIN:
      if (depth < 2)
        return "takes a value from an empty stack";
      --depth;
      break;
    default:
      return "has an unknown opcode";
    }
  }
  return depth == 1 ? nullptr : "leaves more than one value";
}

bool isStatic(const artifact::Expr *expr) {
  const auto &code = *expr->code();
  for (uint32_t i = 0; i < code.size(); i += 2)
    if (code.Get(i) == AJOUR_EXPR_DIM)
      return false;
  return true;
}

bool isMultipleOfSymbol(const artifact::Expr *expr, uint32_t &symbol, int64_t &multiple) {
  const auto &code = *expr->code();
  if (code.size() < 2 || code.Get(0) != AJOUR_EXPR_DIM)
    return false;
  symbol = static_cast<uint32_t>(code.Get(1));
  multiple = 1;
  if (code.size() == 2)
    return true;
  multiple = code.size() == 6 && code.Get(2) == AJOUR_EXPR_CONST ? code.Get(3) : 0;
  return multiple >= 2 && code.Get(4) == AJOUR_EXPR_MUL;
}

/// Applies one binary operator. Returns null or what is wrong.
static const char *apply(int64_t op, int64_t a, int64_t b, int64_t &result) {
  if (op == AJOUR_EXPR_ADD)
    return __builtin_add_overflow(a, b, &result) ? "overflows" : nullptr;
  if (op == AJOUR_EXPR_MUL)
    return __builtin_mul_overflow(a, b, &result) ? "overflows" : nullptr;
  if (op == AJOUR_EXPR_MAX || op == AJOUR_EXPR_MIN) {
    result = (a > b) == (op == AJOUR_EXPR_MAX) ? a : b;
    return nullptr;
  }
  if (b == 0)
    return "divides by zero";
  if (b == -1 && a == INT64_MIN)
    return "overflows";
  int64_t quotient = a / b, remainder = a % b;
  bool between = remainder != 0;
  bool negative = (a < 0) != (b < 0);
  if (op == AJOUR_EXPR_FLOORDIV)
    result = quotient - (between && negative);
  else if (op == AJOUR_EXPR_CEILDIV)
    result = quotient + (between && !negative);
  else
    result = between && negative ? remainder + b : remainder;
  return nullptr;
}

const char *evaluateExpr(const artifact::Expr *expr, const int64_t *symbols, int64_t &value) {
  value = 0;
  if (!expr)
    return nullptr;
  int64_t stack[maxExprDepth];
  unsigned depth = 0;
  const auto &code = *expr->code();
  for (uint32_t i = 0; i < code.size(); i += 2) {
    int64_t op = code.Get(i), operand = code.Get(i + 1);
    if (op == AJOUR_EXPR_CONST) {
      stack[depth++] = operand;
    } else if (op == AJOUR_EXPR_DIM) {
      stack[depth++] = symbols[operand];
    } else {
      --depth;
      if (const char *wrong = apply(op, stack[depth - 1], stack[depth], stack[depth - 1]))
        return wrong;
    }
  }
  value = stack[0];
  if (value < 0)
    return "is negative";
  return value > maxExprValue ? "is larger than 2^46" : nullptr;
}

} // namespace ajour::runtime
