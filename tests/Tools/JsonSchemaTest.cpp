//===- JsonSchemaTest.cpp - JSON schemas as grammars -------------------------===//

#include "Language/TextModel.h"
#include "ToolSupport/HostTensor.h"
#include "ToolSupport/JsonSchema.h"

#include <nlohmann/json.hpp>

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

TEST(JsonSchema, MessagesNameThePlace) {
  auto refused = [](const std::string &schema, const std::string &part) {
    try {
      grammarOfSchema(schema);
      ADD_FAILURE() << schema;
    } catch (const ToolError &error) {
      EXPECT_EQ(std::string(error.what()).find(part), 0u) << error.what();
    }
  };
  refused("{", "the schema is no JSON");
  refused("3", "#: expected an object or true, found number");
  refused(R"({"properties": {"a": {"pattern": "x"}}})", "#/properties/a: the keyword 'pattern' is not known");
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
}

} // namespace
