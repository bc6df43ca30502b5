//===- JsonSchemaTest.cpp - JSON schemas as grammars -------------------------===//

#include "Language/TextModel.h"
#include "ToolSupport/HostTensor.h"
#include "ToolSupport/JsonSchema.h"
#include "ToolSupport/SchemaText.h"

#include <nlohmann/json.hpp>

#include <regex>
#include <set>

using namespace ajour::tools;
using ajour::test::TextFixture;
using nlohmann::json;

namespace {

/// Different texts that a model of much chance generates for a schema, all of them complete.
std::set<std::string> generate(const std::string &schema) {
  TextFixture f(ajour::test::makeTextModel(true, 600, 8));
  std::string text = grammarOfSchema(schema);
  ajour_grammar *grammar = nullptr;
  EXPECT_EQ(ajour_grammar_create(f.tokenizer, text.data(), text.size(), &grammar), AJOUR_OK) << ajour_last_message() << "\n" << text;
  std::set<std::string> texts;
  for (uint64_t seed = 1; grammar && seed <= 60; ++seed) {
    ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
    options.temperature = 30;
    options.seed = seed;
    options.grammar = grammar;
    EXPECT_EQ(f.prompt({ajour::test::bosToken, 20}), AJOUR_OK);
    f.text.clear();
    f.generate(500, options);
    if (f.result.end == AJOUR_END_MODEL || f.result.end == AJOUR_END_GRAMMAR)
      texts.insert(f.text);
  }
  ajour_grammar_destroy(grammar);
  return texts;
}

TEST(JsonSchema, MembersInOrderRequiredOrNot) {
  std::set<std::string> texts = generate(R"({"type": "object", "required": ["b"], "properties": {
      "a": {"type": "boolean"}, "b": {"enum": [1, "x", null]}, "c": {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2}}})");
  std::set<std::string> shapes;
  for (const std::string &text : texts) {
    json value = json::parse(text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << text;
    ASSERT_TRUE(value.contains("b")) << text;
    EXPECT_TRUE(value["b"] == 1 || value["b"] == "x" || value["b"].is_null()) << text;
    std::string shape;
    for (const auto &[key, member] : value.items())
      shape += key;
    shapes.insert(shape);
    if (value.contains("a"))
      EXPECT_TRUE(value["a"].is_boolean()) << text;
    if (value.contains("c")) {
      ASSERT_TRUE(value["c"].is_array()) << text;
      EXPECT_TRUE(value["c"].size() == 1 || value["c"].size() == 2) << text;
    }
  }
  EXPECT_EQ(shapes, (std::set<std::string>{"b", "ab", "bc", "abc"}));
}

TEST(JsonSchema, ReferencesAlternativesAndOthers) {
  std::set<std::string> texts = generate(R"({"$defs": {"list": {"anyOf": [{"const": "end"}, {"type": "array", "items": {"$ref": "#/$defs/list"}, "maxItems": 2}]}},
      "$ref": "#/$defs/list"})");
  EXPECT_GT(texts.size(), 3u);
  for (const std::string &text : texts)
    EXPECT_TRUE(text == "\"end\"" || (json::accept(text) && json::parse(text).is_array())) << text;
  for (const std::string &text : generate(R"({"type": ["object", "null"], "properties": {"a": {"const": 1}}, "additionalProperties": {"type": "boolean"}})")) {
    json value = json::parse(text, nullptr, false);
    ASSERT_TRUE(value.is_null() || value.is_object()) << text;
    for (const auto &[key, member] : value.items())
      EXPECT_TRUE(member.is_boolean() || key == "a") << text;
  }
  for (const std::string &text : generate(R"({"type": "string", "minLength": 2, "maxLength": 3})")) {
    json value = json::parse(text, nullptr, false);
    ASSERT_TRUE(value.is_string()) << text;
  }
}

/// All texts that a schema gives, decoded.
std::vector<json> valuesOf(const std::string &schema) {
  std::vector<json> values;
  for (const std::string &text : generate(schema)) {
    values.push_back(json::parse(text, nullptr, false));
    EXPECT_FALSE(values.back().is_discarded()) << schema << ": " << text;
  }
  EXPECT_FALSE(values.empty()) << schema;
  return values;
}

TEST(JsonSchema, BoundsOfNumbers) {
  std::set<int64_t> found;
  for (const json &value : valuesOf(R"({"type": "integer", "minimum": -2, "exclusiveMaximum": 4})")) {
    ASSERT_TRUE(value.is_number_integer()) << value;
    found.insert(value.get<int64_t>());
  }
  EXPECT_EQ(found, (std::set<int64_t>{-2, -1, 0, 1, 2, 3}));
  for (const json &value : valuesOf(R"({"type": "integer", "exclusiveMinimum": 97.5, "maximum": 1203})"))
    EXPECT_TRUE(value >= 98 && value <= 1203) << value;
  for (const json &value : valuesOf(R"({"type": "number", "minimum": -3, "maximum": 1})"))
    EXPECT_TRUE(value.is_number() && value >= -3 && value <= 1) << value;
  for (const json &value : valuesOf(R"({"type": "integer", "maximum": -10})"))
    EXPECT_LE(value, -10);
  // Every integer between bounds has its text, and no other has.
  for (auto [least, most] : {std::pair<int64_t, int64_t>{0, 0}, {7, 23}, {-105, 99}, {98, 1002}, {-20, -3}, {190, 210}}) {
    // The grammar of numbers is a regular expression but for quotes and blanks.
    std::regex matches(std::regex_replace(integersBetween(least, most), std::regex("\"| "), ""));
    for (int64_t value = -1100; value <= 1100; ++value)
      EXPECT_EQ(std::regex_match(std::to_string(value), matches), value >= least && value <= most) << value << " of " << least << ".." << most;
  }
}

TEST(JsonSchema, PatternsAndFormats) {
  auto allMatch = [](const std::string &schema, const std::string &pattern) {
    for (const json &value : valuesOf(schema)) {
      ASSERT_TRUE(value.is_string()) << value;
      // std::regex counts bytes: a character of more of them becomes one.
      std::string text = std::regex_replace(value.get<std::string>(), std::regex("[\xc0-\xff][\x80-\xbf]+"), "~");
      EXPECT_TRUE(std::regex_search(text, std::regex(pattern))) << schema << ": " << value;
    }
  };
  for (const char *pattern : {"^[a-c]{2,3}(x|yz)?$", "^\\\\d+\\\\.[^a-z.]{1,2}$", "^(?:a|b)*c$", "ab", "a|b", "^.{3}$", "^\\\\w\\\\W$", "^$"}) {
    std::string decoded = json::parse(std::string("\"") + pattern + "\"").get<std::string>();
    allMatch(std::string(R"({"type": "string", "pattern": ")") + pattern + "\"}", decoded);
  }
  // What a JSON string escapes.
  EXPECT_EQ(stringsThatMatch(R"(^["\\]\n$)"), R"((("\\\"" | "\\\\") ("\\n")))");
  allMatch(R"({"format": "date"})", "^\\d{4}-\\d\\d-\\d\\d$");
  // The small vocabulary has no "T".
  EXPECT_NE(grammarOfSchema(R"({"type": "string", "format": "date-time"})").find("([\\x54])"), std::string::npos);
  allMatch(R"({"type": "string", "format": "uuid"})", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-");
  allMatch(R"({"type": "string", "format": "ipv4"})", "^\\d+\\.\\d+\\.\\d+\\.\\d+$");
}

TEST(JsonSchema, TuplesAndJoins) {
  for (const json &value : valuesOf(R"({"prefixItems": [{"const": 1}, {"type": "boolean"}]})"))
    EXPECT_TRUE(value.size() == 2 && value[0] == 1 && value[1].is_boolean()) << value;
  std::set<size_t> sizes;
  for (const json &value : valuesOf(R"({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2, "maxItems": 3})")) {
    sizes.insert(value.size());
    EXPECT_EQ(value.back(), 2);
  }
  EXPECT_EQ(sizes, (std::set<size_t>{2, 3}));
  for (const json &value : valuesOf(R"({"$defs": {"named": {"type": "object", "properties": {"name": {"const": "x"}}, "required": ["name"]}},
      "allOf": [{"$ref": "#/$defs/named"}, {"properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}],
      "properties": {"n": {"type": "integer", "maximum": 4, "minimum": 0}}})"))
    EXPECT_TRUE(value["name"] == "x" && (value["n"] == 3 || value["n"] == 4)) << value;
}

TEST(JsonSchema, MessagesNameThePlace) {
  auto refused = [](const std::string &schema, const std::string &part, const std::string &more = "") {
    try {
      grammarOfSchema(schema);
      ADD_FAILURE() << schema;
    } catch (const ToolError &error) {
      EXPECT_EQ(std::string(error.what()).find(part), 0u) << error.what();
    }
  };
  refused("{", "the schema is no JSON");
  refused("3", "#: expected an object or true, found number");
  refused(R"({"properties": {"a": {"not": {}}}})", "#/properties/a: the keyword 'not' is not known");
  refused(R"({"type": "date"})", "#: the type \"date\" is not known");
  refused(R"({"enum": []})", "#: 'enum' is no list of values");
  refused(R"({"type": "object", "required": 5})", "#: 'required' is no list of names");
  refused(R"({"type": "object", "required": [5]})", "#: 'required' is no list of names");
  std::string deep = "1";
  for (int i = 0; i < 50; ++i)
    deep = R"({"properties": {"abc": )" + deep + "}}";
  refused(deep, ("#" + [] { std::string path; for (int i = 0; i < 50; ++i) path += "/properties/abc"; return path; }()).substr(0, 120) + "...: ");
  refused(R"({"anyOf": 1})", "#: 'anyOf' is no list of values");
  refused(R"({"$ref": "http://x"})", "#: '$ref' is \"http://x\", expected a place within the schema");
  refused(R"({"$ref": "#/a"})", "#: '$ref' names #/a, which does not exist");
  refused(R"({"$ref": "#"})", "#: '$ref' # refers to itself");
  refused(R"({"type": "string", "maxLength": 100000})", "#: 'maxLength' is 100000, expected 0 to 10000");
  refused(R"({"type": "string", "minLength": 5, "maxLength": 1})", "#: 'maxLength' is below 'minLength'");
  refused(R"({"type": "array", "minItems": 5, "maxItems": 1})", "#: 'maxItems' is below 'minItems'");
  refused(R"({"properties": 1})", "#: 'properties' is no object");
  refused(R"({"properties": {}, "required": ["a"]})", "#: 'required' names 'a', which 'properties' does not have");
  // Expressions that crashed others (M2), and those that are not known.
  for (auto [pattern, part] : {std::pair("^+[a-z]$", "at character 2: there is nothing in front of '+' to repeat"), {"^{2}times$", "at character 2: there is nothing in front of '{'"},
                               {"(a", "at character 1: the group has no end"}, {"a)", "at character 2: ')' without its beginning"}, {"[a", "at character 1: the class has no end"},
                               {"[z-a]", "at character 2: the range ends before it begins"}, {"(?=a)", "of groups that begin with '(?' only '(?:' is known"},
                               {"a**", "at character 3: a repetition of a repetition needs a group"}, {"a{3,1}", "a repetition is {3}, {3,} or {3,7}"},
                               {"a{99999}", "a repetition counts to 10000"}, {"a^b", "'^' is known at the beginning"}, {"a$b", "'$' is known at the"}, {"^a|b", "need a group: ^(a|b)$"},
                               {"\\\\q", "the escape '\\q' is not known"}, {"a\\\\", "'\\' ends the expression"}, {"[é]", "classes of characters beyond ASCII are not known"}, {"a]", "']' without its beginning"},
                               {"[^\\\\d\\\\D]", "the class is empty"}, {"[\\u0001]", "matches control characters alone"}})
    refused(std::string(R"({"pattern": ")") + pattern + "\"}", "#: 'pattern' " + json::parse(std::string("\"") + pattern + "\"").dump() + " ", part);
  refused(R"({"pattern": 3})", "#: 'pattern' is 3, expected a string");
  refused(std::string(R"({"pattern": ")") + std::string(60, '(') + "\"}", "#: 'pattern'");
  refused(R"({"pattern": "a", "maxLength": 3})", "#: 'pattern' is known alone only");
  refused(R"({"format": "email"})", "#: the format \"email\" is not known, only date, date-time, ipv4, time, uuid");
  refused(R"({"type": "integer", "minimum": 1e30})", "#: 'minimum' is 1e+30, expected a whole number of at most 15 digits");
  refused(R"({"type": "number", "maximum": 0.5})", "#: 'maximum' is 0.5, expected a whole number");
  refused(R"({"type": "number", "exclusiveMinimum": 0})", "#: 'exclusiveMinimum' is known for integers only");
  refused(R"({"type": "integer", "minimum": 3, "maximum": 2})", "#: no number is at least 3 and at most 2");
  refused(R"({"prefixItems": 1})", "#: 'prefixItems' is no list of schemas");
  refused(R"({"prefixItems": [true, true], "maxItems": 1})", "#: 'maxItems' is below 'minItems' or the number of 'prefixItems'");
  refused(R"({"prefixItems": [true], "minItems": 2, "items": false})", "#: 'minItems' is above the number of 'prefixItems', and 'items' allows no others");
  refused(R"({"allOf": []})", "#: 'allOf' is no list of schemas");
  refused(R"({"allOf": [1]})", "#/allOf/0: expected an object, found number");
  refused(R"({"type": "string", "allOf": [{"type": "null"}]})", "#/allOf/0: 'type' is \"null\" here and \"string\" beside; 'allOf' cannot join them");
  deep = "{}";
  for (int i = 0; i < 5000; ++i)
    deep = R"({"items": )" + deep + "}";
  refused(deep, "#/items/items");
}

} // namespace
