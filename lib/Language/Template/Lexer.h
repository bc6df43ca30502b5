/// Chat templates as tokens.
#ifndef AJOUR_LIB_LANGUAGE_TEMPLATE_LEXER_H
#define AJOUR_LIB_LANGUAGE_TEMPLATE_LEXER_H

#include "Value.h"

namespace ajour::language::chat {

enum class TokenKind : uint8_t { Text, BlockBegin, BlockEnd, PrintBegin, PrintEnd, Name, String, Number, Operator, End };

struct Token {
  TokenKind kind;
  int line;
  Bytes text;  ///< text, name or operator
  Value value; ///< of strings and numbers
};

/// All tokens, the last of them End. Comments and trimmed white space are gone. Fails with the line.
List<Token> readTokens(Context &c, Bytes source);

} // namespace ajour::language::chat

#endif
