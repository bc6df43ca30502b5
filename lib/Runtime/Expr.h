/// Size expressions of artifacts: postfix code over the model's symbolic dimensions.
#ifndef AJOUR_LIB_RUNTIME_EXPR_H
#define AJOUR_LIB_RUNTIME_EXPR_H

#include "Flat.h"
#include "Support.h"

namespace ajour::runtime {

/// Deepest stack that an expression may need, and its greatest value (bytes, items or elements).
constexpr unsigned maxExprDepth = 16;
constexpr int64_t maxExprValue = int64_t(1) << 46;

/// Checks form: known opcodes, stack depth, symbol indices. Returns null or what is wrong.
const char *checkExpr(const artifact::Expr *expr, size_t symbolCount);

/// Whether the expression mentions a symbol.
bool isStatic(const artifact::Expr *expr);

/// Whether the expression is one symbol, or one times a constant of at least 2; tells which.
bool isMultipleOfSymbol(const artifact::Expr *expr, uint32_t &symbol, int64_t &multiple);

/// Evaluates a checked expression to a value in [0, maxExprValue]; null counts as 0. Returns null or
/// what is wrong ("overflows", ...).
const char *evaluateExpr(const artifact::Expr *expr, const int64_t *symbols, int64_t &value);

} // namespace ajour::runtime

#endif
