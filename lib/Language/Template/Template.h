/// Renders chat templates.
#ifndef AJOUR_LIB_LANGUAGE_TEMPLATE_TEMPLATE_H
#define AJOUR_LIB_LANGUAGE_TEMPLATE_TEMPLATE_H

#include "Value.h"
#include "ajour/ajour.h"

namespace ajour::language::chat {

/// What a template sees.
struct Input {
  const ajour_chat_message *messages = nullptr;
  size_t messageCount = 0;
  bool addGenerationPrompt = false;
  Bytes bos, eos;     ///< texts of these tokens
  Bytes variables;    ///< JSON object of further variables ("tools", ...); may be empty
  int64_t now = 0;    ///< seconds since 1970
};

/// Appends the rendered text. False: it failed, with the reason in context.message.
bool render(Context &context, Bytes source, const Input &input, Text &text);

} // namespace ajour::language::chat

#endif
