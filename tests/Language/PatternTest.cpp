// Regular expressions, compiled and run.
#include "Import/Tokenizer/Regex.h"
#include "Language/Pattern.h"
#include "ajour/ABI/PatternCode.h"

#include <gtest/gtest.h>

#include <memory>

using namespace ajour;

namespace {

/// A pattern in the runtime's form.
struct Loaded {
  flatbuffers::FlatBufferBuilder builder;
  const tokenizer::Pattern *pattern = nullptr;

  explicit Loaded(const text::CompiledPattern &compiled) {
    tokenizer::PatternT object;
    object.code = compiled.code;
    for (const auto &ranges : compiled.sets) {
      object.sets.push_back(std::make_unique<tokenizer::CharSetT>());
      object.sets.back()->ranges = ranges;
    }
    builder.Finish(tokenizer::Pattern::Pack(builder, &object));
    pattern = flatbuffers::GetRoot<tokenizer::Pattern>(builder.GetBufferPointer());
  }
};

/// Matches of an expression in a text, joined by '|'.
std::string matches(const char *expression, const std::string &text) {
  text::CompiledPattern compiled;
  EXPECT_EQ(text::compilePattern(expression, compiled), "");
  Loaded loaded(compiled);
  EXPECT_EQ(language::checkPattern(*loaded.pattern), nullptr);
  language::CodePoints points;
  points.assign({text.data(), text.size()});
  language::Matcher matcher(*loaded.pattern, points.values.data(), points.values.size());
  std::string result;
  size_t begin, end;
  for (size_t from = 0; matcher.find(from, begin, end); from = end > begin ? end : end + 1) {
    if (end == begin)
      continue;
    result += (result.empty() ? "" : "|") + text.substr(points.starts[begin], points.starts[end] - points.starts[begin]);
  }
  EXPECT_FALSE(matcher.exhausted());
  return result;
}

TEST(Pattern, ClassesAndProperties) {
  EXPECT_EQ(matches("\\p{L}+", "abc 12 Größe, 世界"), "abc|Größe|世界");
  EXPECT_EQ(matches("\\p{Lu}", "aBcÉ"), "B|É");
  EXPECT_EQ(matches("[^\\s\\p{L}\\p{N}]+", "a+b, c!"), "+|,|!");
  EXPECT_EQ(matches("[a-c\\-]+", "ab-d-c"), "ab-|-c");
  EXPECT_EQ(matches("\\d{1,3}", "1234567"), "123|456|7");
  EXPECT_EQ(matches("\\x41|\\u0042|\\x{1F600}", "ABC😀"), "A|B|😀");
}

TEST(Pattern, AlternativesAreTriedInOrder) {
  EXPECT_EQ(matches("a|ab", "ab"), "a");
  EXPECT_EQ(matches("ab|a", "ab"), "ab");
  EXPECT_EQ(matches("(?:x|y)z", "xz yz z"), "xz|yz");
}

TEST(Pattern, QuantifiersGiveBackWhatTheyMust) {
  EXPECT_EQ(matches("a*ab", "aaab"), "aaab");
  EXPECT_EQ(matches("a+?", "aaa"), "a|a|a");
  EXPECT_EQ(matches("<.*?>", "<a><b>"), "<a>|<b>");
  EXPECT_EQ(matches("a++b", "aaab"), "aaab");
  EXPECT_EQ(matches("a++ab", "aaab"), "");
  EXPECT_EQ(matches("(ab){2,3}", "abababab"), "ababab");
}

TEST(Pattern, LookAhead) {
  EXPECT_EQ(matches("\\s+(?!\\S)|\\s", "a   b"), "  | ");
  EXPECT_EQ(matches("a(?=b)", "ab ac"), "a");
}

TEST(Pattern, CaseMayBeIgnored) {
  EXPECT_EQ(matches("(?i:'s|'ll)", "it'S we'LL"), "'S|'LL");
  EXPECT_EQ(matches("(?i:é)", "É"), "É");
}

TEST(Pattern, Anchors) {
  EXPECT_EQ(matches("^a", "aa"), "a");
  EXPECT_EQ(matches("\\s+$", "a  b  "), "  ");
}

std::string problem(const std::string &expression) {
  text::CompiledPattern compiled;
  return text::compilePattern(expression, compiled);
}

TEST(Pattern, MistakesAreNamed) {
  EXPECT_EQ(problem("a)"), "at byte 1: a ')' without its '('");
  EXPECT_EQ(problem("(a"), "at byte 2: a '(' without its ')'");
  EXPECT_EQ(problem("[a"), "at byte 2: a '[' without its ']'");
  EXPECT_EQ(problem("*a"), "at byte 0: a quantifier with nothing before it");
  EXPECT_EQ(problem("^+[a-z]$"), "at byte 2: a quantifier of something without width");
  EXPECT_EQ(problem("^{2}times$"), "at byte 4: a quantifier of something without width");
  EXPECT_EQ(problem("\\p{Nonsense}"), "at byte 12: there is no Unicode property 'Nonsense'");
  EXPECT_EQ(problem("(?<=a)b"), "at byte 3: look-behind, atomic and named groups are not supported");
  EXPECT_EQ(problem("a{3,2}"), "at byte 6: a quantifier {m,n} that is not closed, has m > n or more than 1000");
  EXPECT_EQ(problem("[z-a]"), "at byte 4: a range that ends before it begins");
  EXPECT_EQ(problem("\\k"), "at byte 1: the escape \\k is not supported");
  EXPECT_EQ(problem("(?:ab)++"), "a possessive quantifier is supported as +, * and ? of one class");
  EXPECT_EQ(problem(std::string(60000, '(')), "at byte 64: groups are nested more than 64 deep");
  EXPECT_EQ(problem("((((((a{1000}){1000}){1000}){1000}){1000}){1000})"), "the expression needs more than 65536 instructions");
}

TEST(Pattern, ExponentialTimeIsGivenUp) {
  text::CompiledPattern compiled;
  ASSERT_EQ(text::compilePattern("(?:a|aa|aaa)*b", compiled), "");
  Loaded loaded(compiled);
  std::string text(60, 'a');
  language::CodePoints points;
  points.assign({text.data(), text.size()});
  language::Matcher matcher(*loaded.pattern, points.values.data(), points.values.size());
  size_t begin, end;
  EXPECT_FALSE(matcher.find(0, begin, end));
  EXPECT_TRUE(matcher.exhausted());
}

TEST(Pattern, HostileCodeIsRefused) {
  auto check = [](std::vector<uint32_t> code, std::vector<std::vector<uint32_t>> sets = {}) {
    Loaded loaded({std::move(code), std::move(sets)});
    const char *problem = language::checkPattern(*loaded.pattern);
    return std::string(problem ? problem : "");
  };
  EXPECT_EQ(check({}), "a pattern has no code, or too much");
  EXPECT_EQ(check({AJOUR_PATTERN_SET | 1 << 8, 0}), "a pattern names a set that it does not have");
  EXPECT_EQ(check({AJOUR_PATTERN_JUMP | 9 << 8, 0}), "a pattern goes to an instruction that it does not have");
  EXPECT_EQ(check({AJOUR_PATTERN_ACCEPT, 0}), "a pattern ends looking ahead where it does not");
  EXPECT_EQ(check({77, 0}), "a pattern has an unknown instruction");
  EXPECT_EQ(check({AJOUR_PATTERN_START}), "a pattern does not end in a match");
  EXPECT_EQ(check({0}, {{5, 3}}), "the ranges of a set of code points are not sorted");
  // A look-ahead that jumps back into itself is sound code; running it ends.
  Loaded loaded({{AJOUR_PATTERN_AHEAD | 3 << 8, AJOUR_PATTERN_JUMP | 0 << 8, AJOUR_PATTERN_ACCEPT, 0}, {}});
  ASSERT_EQ(language::checkPattern(*loaded.pattern), nullptr);
  std::vector<uint32_t> text(1 << 20, 'a');
  language::Matcher matcher(*loaded.pattern, text.data(), text.size());
  size_t begin, end;
  EXPECT_FALSE(matcher.find(0, begin, end));
  EXPECT_TRUE(matcher.exhausted());
}

} // namespace
