//===- JsonSchema.cpp - JSON schemas as grammars --------------------------===//

#include "ToolSupport/JsonSchema.h"
#include "ToolSupport/HostTensor.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace ajour::tools {

namespace {

using json = nlohmann::ordered_json;

/// A text as a string of a grammar.
std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char ch : text) {
    char escape[8];
    if (ch == '"' || ch == '\\')
      result += std::string("\\") + ch;
    else if (uint8_t(ch) < 0x20 || ch == 0x7f)
      result += (std::snprintf(escape, sizeof(escape), "\\x%02x", unsigned(uint8_t(ch))), escape);
    else
      result += ch;
  }
  return result + "\"";
}

/// Rules that every JSON text may need, by name.
const std::map<std::string, std::string> &commonRules() {
  static const std::map<std::string, std::string> rules = {
      {"space", "\" \"?"},
      {"character", "[^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})"},
      {"string", "\"\\\"\" character* \"\\\"\""},
      {"integer", "\"-\"? (\"0\" | [1-9] [0-9]{0,17})"},
      {"number", "integer (\".\" [0-9]{1,17})? ([eE] [-+]? [0-9]{1,3})?"},
      {"boolean", "\"true\" | \"false\""},
      {"null", "\"null\""},
      {"object", "\"{\" space (string space \":\" space value space (\",\" space string space \":\" space value space)*)? \"}\""},
      {"array", "\"[\" space (value space (\",\" space value space)*)? \"]\""},
      {"value", "object | array | string | number | boolean | null"}};
  return rules;
}

class Converter {
public:
  explicit Converter(const json &schema) : whole(schema) {}

  std::string run() {
    std::string root = convert(whole, "#");
    std::string text = "root ::= " + root + "\n";
    for (const auto &[name, body] : rules)
      text += name + " ::= " + body + "\n";
    return text;
  }

private:
  [[noreturn]] static void fail(const std::string &place, const std::string &problem) {
    constexpr size_t shown = 120;
    throw ToolError((place.size() <= shown ? place : place.substr(0, shown) + "...") + ": " + problem);
  }

  /// A common rule and those that it uses.
  std::string need(const std::string &name) {
    if (rules.emplace(name, commonRules().at(name)).second)
      for (const auto &[other, body] : commonRules())
        if (commonRules().at(name).find(other) != std::string::npos)
          need(other);
    return name;
  }
  std::string add(const std::string &body) {
    std::string name = "r" + std::to_string(count++);
    rules[name] = body;
    return name;
  }

  static const std::set<std::string> &known() {
    static const std::set<std::string> words = {
        "type",          "enum",     "const",    "properties", "required",  "additionalProperties", "items",       "minItems", "maxItems", "minLength",
        "maxLength",     "anyOf",    "oneOf",    "$ref",       "$defs",     "definitions",          "title",       "description", "default", "examples",
        "$schema",       "$id",      "$comment"};
    return words;
  }

  /// The name of a rule, or an item, for the values of a schema. `place` is its JSON pointer.
  std::string convert(const json &schema, const std::string &place) {
    if (schema.is_boolean() && schema.get<bool>())
      return need("value");
    if (!schema.is_object())
      fail(place, "expected an object or true, found " + std::string(schema.type_name()));
    for (const auto &[key, value] : schema.items())
      if (!known().count(key))
        fail(place, "the keyword '" + key + "' is not known");
    if (schema.contains("$ref"))
      return reference(schema["$ref"], place);
    if (schema.contains("const"))
      return quoted(schema["const"].dump());
    if (schema.contains("enum"))
      return choice(schema["enum"], place, [](const json &value, const std::string &) { return quoted(value.dump()); }, "enum");
    for (const char *key : {"anyOf", "oneOf"})
      if (schema.contains(key))
        return choice(schema[key], place, [this](const json &value, const std::string &at) { return convert(value, at); }, key);
    if (!schema.contains("type"))
      return schema.contains("properties") ? object(schema, place) : schema.contains("items") ? array(schema, place) : need("value");
    const json &type = schema["type"];
    if (!type.is_array())
      return ofType(type, schema, place);
    return choice(type, place, [&](const json &one, const std::string &) { return ofType(one, schema, place); }, "type");
  }

  template <typename Item> std::string choice(const json &list, const std::string &place, Item item, const std::string &key) {
    if (!list.is_array() || list.empty())
      fail(place, "'" + key + "' is no list of values");
    std::string body;
    for (size_t i = 0; i < list.size(); ++i)
      body += (i ? " | " : "") + item(list[i], place + "/" + key + "/" + std::to_string(i));
    return add(body);
  }

  std::string reference(const json &target, const std::string &place) {
    std::string path = target.is_string() ? target.get<std::string>() : "";
    if (path != "#" && path.rfind("#/", 0) != 0)
      fail(place, "'$ref' is " + target.dump() + ", expected a place within the schema: \"#/$defs/NAME\"");
    if (auto found = references.find(path); found != references.end())
      return found->second;
    const json *schema = nullptr;
    try {
      schema = &whole.at(json::json_pointer(path.substr(1)));
    } catch (const json::exception &) {
      fail(place, "'$ref' names " + path + ", which does not exist");
    }
    std::string name = "r" + std::to_string(count++);
    references[path] = name;
    rules[name] = "";
    std::string body = convert(*schema, path);
    if (body == name)
      fail(place, "'$ref' " + path + " refers to itself");
    rules[name] = body;
    return name;
  }

  std::string ofType(const json &type, const json &schema, const std::string &place) {
    std::string name = type.is_string() ? type.get<std::string>() : "";
    if (name == "object")
      return schema.contains("properties") || schema.contains("additionalProperties") || schema.value("required", json::array()) != json::array()
                 ? object(schema, place)
                 : need("object");
    if (name == "array")
      return array(schema, place);
    if (name == "string")
      return string(schema, place);
    if (name != "integer" && name != "number" && name != "boolean" && name != "null")
      fail(place, "the type " + type.dump() + " is not known");
    return need(name);
  }

  static int64_t bound(const json &schema, const char *key, int64_t missing, const std::string &place) {
    if (!schema.contains(key))
      return missing;
    if (!schema[key].is_number_unsigned() || schema[key].get<uint64_t>() > 10000)
      fail(place, "'" + std::string(key) + "' is " + schema[key].dump() + ", expected 0 to 10000");
    return schema[key].get<int64_t>();
  }
  static std::string repeats(int64_t least, int64_t most) {
    return "{" + std::to_string(least) + "," + (most < 0 ? "" : std::to_string(most)) + "}";
  }

  std::string string(const json &schema, const std::string &place) {
    int64_t least = bound(schema, "minLength", 0, place), most = bound(schema, "maxLength", -1, place);
    if (least == 0 && most < 0)
      return need("string");
    if (most >= 0 && most < least)
      fail(place, "'maxLength' is below 'minLength'");
    need("character");
    return add("\"\\\"\" character" + repeats(least, most) + " \"\\\"\"");
  }

  std::string array(const json &schema, const std::string &place) {
    int64_t least = bound(schema, "minItems", 0, place), most = bound(schema, "maxItems", -1, place);
    if (most >= 0 && most < least)
      fail(place, "'maxItems' is below 'minItems'");
    std::string item = schema.contains("items") ? convert(schema["items"], place + "/items") : need("value");
    need("space");
    if (most == 0)
      return add("\"[\" space \"]\"");
    std::string rest = item + " space (\",\" space " + item + " space)" + repeats(least > 0 ? least - 1 : 0, most < 0 ? -1 : most - 1);
    return add("\"[\" space " + (least > 0 ? rest : "(" + rest + ")?") + " \"]\"");
  }

  /// Members in the order of the schema; those that are not required may be left out, others may follow where the schema allows them.
  std::string object(const json &schema, const std::string &place) {
    struct Member {
      std::string rule;
      bool required;
    };
    std::vector<Member> members;
    std::set<std::string> required, named;
    if (schema.contains("required")) {
      const json &names = schema["required"];
      if (!names.is_array() || std::any_of(names.begin(), names.end(), [](const json &name) { return !name.is_string(); }))
        fail(place, "'required' is no list of names");
      for (const json &name : names)
        required.insert(name.get<std::string>());
    }
    need("space");
    if (schema.contains("properties")) {
      if (!schema["properties"].is_object())
        fail(place, "'properties' is no object");
      for (const auto &[key, value] : schema["properties"].items()) {
        std::string rule = convert(value, place + "/properties/" + key);
        members.push_back({add(quoted(json(key).dump()) + " space \":\" space " + rule + " space"), required.count(key) != 0});
        named.insert(key);
      }
    }
    for (const std::string &name : required)
      if (!named.count(name))
        fail(place, "'required' names '" + name + "', which 'properties' does not have");
    std::string others;
    if (const json more = schema.value("additionalProperties", json(false)); more != json(false)) {
      std::string value = convert(more, place + "/additionalProperties");
      others = add(need("string") + " space \":\" space " + value + " space");
    }
    // What may stand from member i on, when one stands before it and when none does.
    std::string behind = others.empty() ? "" : add("(\",\" space " + others + ")*");
    std::string first = others.empty() ? "" : add("(" + others + " " + behind + ")?");
    for (size_t i = members.size(); i-- > 0;) {
      const Member &m = members[i];
      std::string with = m.rule + (behind.empty() ? "" : " " + behind);
      std::string later = "\",\" space " + with;
      std::string nextBehind = m.required ? add(later) : add(later + " | " + (behind.empty() ? "\"\"" : behind));
      first = m.required ? add(with) : add(with + " | " + (first.empty() ? "\"\"" : first));
      behind = nextBehind;
    }
    return add("\"{\" space " + first + " \"}\"");
  }

  const json &whole;
  std::map<std::string, std::string> rules, references;
  size_t count = 0;
};

} // namespace

std::string grammarOfSchema(const std::string &schema) {
  json parsed;
  try {
    parsed = json::parse(schema);
  } catch (const json::exception &error) {
    std::string what = error.what();
    throw ToolError("the schema is no JSON: " + what.substr(what.find("] ") + 2));
  }
  return Converter(parsed).run();
}

} // namespace ajour::tools
