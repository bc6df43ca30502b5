// What grammars allow, token by token.
#include "TextModel.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <set>

using namespace ajour::test;

using Ids = std::vector<int32_t>;

namespace {

/// A grammar over the tests' vocabulary.
struct GrammarOf {
  GrammarOf(const ajour_tokenizer *tokenizer, const std::string &text) {
    status = ajour_grammar_create(tokenizer, text.data(), text.size(), &handle);
    message = status == AJOUR_OK ? "" : ajour_last_message();
  }
  ~GrammarOf() { ajour_grammar_destroy(handle); }
  ajour_grammar *handle = nullptr;
  ajour_status_code status;
  std::string message;
};

constexpr char json[] = R"(# JSON
root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( member ("," ws member)* )? "}" ws
member ::= string ":" ws value ws
array ::= "[" ws ( value ws ("," ws value ws)* )? "]"
string ::= "\"" [^"\\\x00-\x1f]{0,6} "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,3}) ("." [0-9]{1,3})?
ws ::= [ \n]?
)";

/// Generates with much chance, as far as `count` tokens.
std::string generate(TextFixture &f, const ajour_grammar *grammar, uint64_t seed, uint64_t count, uint32_t flags = 0) {
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  options.temperature = 30;
  options.seed = seed;
  options.grammar = grammar;
  options.flags = flags;
  EXPECT_EQ(f.prompt({bosToken, 16}), AJOUR_OK) << ajour_last_message();
  f.text.clear();
  f.generate(count, options);
  return f.text;
}

TEST(Grammar, WhatIsGeneratedIsJson) {
  TextFixture f(makeTextModel(true, 400, 8));
  GrammarOf grammar(f.tokenizer, json);
  ASSERT_EQ(grammar.status, AJOUR_OK) << grammar.message;
  int complete = 0, nested = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::string text = generate(f, grammar.handle, seed, 300);
    bool ended = f.result.end == AJOUR_END_MODEL || f.result.end == AJOUR_END_GRAMMAR;
    // Bytes that are half a character are allowed by themselves, but only as a part of one.
    EXPECT_EQ(text.find("\ufffd"), std::string::npos) << text;
    if (ended) {
      EXPECT_TRUE(nlohmann::json::accept(text)) << text;
      ++complete;
      nested += text.find("[[") != std::string::npos || text.find(":") != std::string::npos || text.find(",") != std::string::npos;
    }
  }
  EXPECT_GT(complete, 30);
  EXPECT_GT(nested, 3);
}

TEST(Grammar, AllowsExactlyWhatItSays) {
  TextFixture f(makeTextModel(true, 60, 8));
  auto texts = [&](const std::string &grammarText, uint32_t flags = 0) {
    GrammarOf grammar(f.tokenizer, grammarText);
    EXPECT_EQ(grammar.status, AJOUR_OK) << grammar.message;
    std::set<std::string> seen;
    for (uint64_t seed = 1; seed <= 200; ++seed)
      seen.insert(generate(f, grammar.handle, seed, 40, flags));
    return seen;
  };
  using Set = std::set<std::string>;
  EXPECT_EQ(texts("root ::= \"ab\" | \"abc\" | \"the\"\n"), (Set{"ab", "abc", "the"}));
  EXPECT_EQ(texts("root ::= [a-c]{2} \"1\"?"), (Set{"aa", "ab", "ac", "ba", "bb", "bc", "ca", "cb", "cc", "aa1", "ab1", "ac1", "ba1", "bb1", "bc1", "ca1", "cb1", "cc1"}));
  EXPECT_EQ(texts("root ::= x x\nx ::= \"\u00e9\" | \"\U0001f60a\" # both in halves\n"),
            (Set{"\u00e9\u00e9", "\u00e9\U0001f60a", "\U0001f60a\u00e9", "\U0001f60a\U0001f60a"}));
  EXPECT_EQ(texts("root ::= ( \"a\" |\n \"b\" )\n | [^\\x00-\\uffff\\U0001fa00-\\U0001faff]"), (Set{"a", "b", "\U0001f60a"}));
  // A token may end one rule and begin another.
  EXPECT_EQ(texts("root ::= key \"1\"\nkey ::= \"{\" \"\\\"\" [a-b] \"\\\":\" \" \""), (Set{"{\"a\": 1", "{\"b\": 1"}));
  EXPECT_EQ(texts("root ::= \"a\"{0,2} \"z\"", AJOUR_GENERATE_IGNORE_END), (Set{"z", "az", "aaz"}));
  EXPECT_EQ(f.result.end, AJOUR_END_GRAMMAR);
}

TEST(Grammar, MessagesHaveLineAndColumn) {
  TextFixture f(makeTextModel(true));
  auto refused = [&](const std::string &text, const char *message) {
    GrammarOf grammar(f.tokenizer, text);
    EXPECT_EQ(grammar.status, AJOUR_INVALID_ARGUMENT) << text;
    EXPECT_EQ(grammar.message, std::string("grammar: ") + message) << text;
  };
  refused("", "line 1, column 1: there is no rule 'root'");
  refused("root ::= a\n", "line 1, column 10: there is no rule 'a'");
  refused("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule 'root' is defined twice");
  refused("root = \"a\"", "line 1, column 6: expected '::='");
  refused("::= \"a\"", "line 1, column 1: expected the name of a rule");
  refused("root ::= \"a", "line 1, column 10: a string has no end");
  refused("root ::= [a", "line 1, column 10: a class has no ']'");
  refused("root ::= [z-a]", "line 1, column 11: a range of characters ends before it begins");
  refused("root ::= []", "line 1, column 10: a class has no characters");
  refused("root ::= \"\\q\"", "line 1, column 11: unknown escape in a string");
  refused("root ::= \"\\x1\"", "line 1, column 11: an escape needs hexadecimal digits: \\xHH, \\uHHHH, \\UHHHHHHHH");
  refused("root ::= \"a\" (\"b\"", "line 1, column 14: a group has no ')'");
  refused("root ::= \"a\" )", "line 1, column 14: expected the end of the rule");
  refused("root ::= \"a\"{3,2}", "line 1, column 13: the most repetitions are fewer than the fewest");
  refused("root ::= \"a\"{}", "line 1, column 14: expected a number");
  refused("root ::= \"a\"{1", "line 1, column 15: expected '}'");
  refused("root ::= \"a\"{100000}", "line 1, column 14: more than 10000 repetitions");
  refused("root ::= root \"a\"", "line 1, column 1: the rule 'root' begins with itself");
  refused("root ::= \"b\" | a\na ::= e root\ne ::= \"x\"?", "line 1, column 1: the rule 'root' begins with itself");
  refused("root ::= (\"a\"?)*", "line 1, column 17: something that may be empty is repeated without end");
  refused("root ::= \"\xff\"", "line 1, column 11: the grammar is not UTF-8");
  TextFixture other(makeTextModel(true));
  GrammarOf none(f.tokenizer, "root ::= \"A\"");
  ASSERT_EQ(none.status, AJOUR_OK);
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  options.grammar = none.handle;
  ASSERT_DONE(f.prompt({bosToken}));
  EXPECT_STATUS(ajour_generator_generate(f.generator, &options, nullptr), AJOUR_STATE, "the grammar allows no token of the vocabulary here");
}

// Grammars may come from outside: none takes long or much.
TEST(Grammar, HostileGrammarsEnd) {
  TextFixture f(makeTextModel(true));
  auto start = std::chrono::steady_clock::now();
  auto refused = [&](const std::string &text, const char *part) {
    GrammarOf grammar(f.tokenizer, text);
    EXPECT_EQ(grammar.status, AJOUR_INVALID_ARGUMENT);
    EXPECT_NE(grammar.message.find(part), std::string::npos) << grammar.message;
  };
  refused("root ::= " + std::string(60000, '('), "nested too deep");
  std::string many = "root ::=";
  for (int i = 0; i < 30; ++i)
    many += " \"a\"{9999}";
  refused(many, "too large");
  GrammarOf wide(f.tokenizer, "root ::= ([a-z]{0,100} [a-y]{0,100}){1,20} \"1\"");
  EXPECT_EQ(wide.status, AJOUR_OK) << wide.message;
  std::string text = generate(f, wide.handle, 1, 50);
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz1"), std::string::npos) << text;
  // Seconds, so that a busy machine does not fail it; it takes a tenth of one.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

} // namespace
