//===- Regex.h - regular expressions as code of the runtime's matcher --*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_TOKENIZER_REGEX_H
#define AJOUR_LIB_IMPORT_TOKENIZER_REGEX_H

#include "CodePointSet.h"

#include <string>
#include <string_view>
#include <vector>

namespace ajour::text {

/// See ajour/ABI/PatternCode.h.
struct CompiledPattern {
  std::vector<uint32_t> code;
  std::vector<std::vector<uint32_t>> sets; ///< ranges
};

/// Compiles a regular expression in UTF-8: alternatives, groups (capturing ones as plain), (?i:...), look-ahead, classes with
/// properties and ranges, ^ and $ (of the whole text), greedy, lazy and (of one class) possessive quantifiers. Returns an empty
/// string, or the position and what is wrong there.
std::string compilePattern(std::string_view expression, CompiledPattern &result);

/// The expression that matches `text` itself.
std::string escapePattern(std::string_view text);

} // namespace ajour::text

#endif
