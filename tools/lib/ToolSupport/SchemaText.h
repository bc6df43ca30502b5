/// The texts that JSON schemas bound, as pieces of grammars.
#ifndef AJOUR_TOOLSUPPORT_SCHEMATEXT_H
#define AJOUR_TOOLSUPPORT_SCHEMATEXT_H

#include <cstdint>
#include <string>

namespace ajour::tools {

/// The largest bound of an integer, and how many digits there are at most where none is given.
constexpr int64_t mostSchemaInteger = 999999999999999999;

/// The decimal texts of the integers from `least` to `most`, which must not be below it.
std::string integersBetween(int64_t least, int64_t most);
/// Those of the numbers from `least` to `most`, with up to 17 digits behind the point.
std::string numbersBetween(int64_t least, int64_t most);

/// What stands between the quotes of a JSON string that matches a regular expression (docs/GRAMMAR.md says what of them is known). Throws
/// std::runtime_error, "at character N: what is wrong".
std::string stringsThatMatch(const std::string &pattern);

} // namespace ajour::tools

#endif
