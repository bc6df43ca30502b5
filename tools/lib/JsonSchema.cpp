//===- JsonSchema.cpp - JSON schemas as grammars --------------------------===//

#include "ToolSupport/JsonSchema.h"
#include "ToolSupport/HostTensor.h"
#include "ToolSupport/SchemaText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <algorithm>
#include <cmath>
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
  static constexpr int mostDepth = 100;

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
        "$schema",       "$id",      "$comment", "prefixItems", "allOf",    "minimum",              "maximum",     "exclusiveMinimum",
        "exclusiveMaximum", "format", "pattern"};
    return words;
  }

  /// The name of a rule, or an item, for the values of a schema. `place` is its JSON pointer.
  std::string convert(const json &schema, const std::string &place) {
    if (depth >= mostDepth)
      fail(place, "is nested more than " + std::to_string(mostDepth) + " deep");
    ++depth;
    std::string name = convertNext(schema, place);
    --depth;
    return name;
  }

  std::string convertNext(const json &schema, const std::string &place) {
    if (schema.is_boolean() && schema.get<bool>())
      return need("value");
    if (!schema.is_object())
      fail(place, "expected an object or true, found " + std::string(schema.type_name()));
    for (const auto &[key, value] : schema.items())
      if (!known().count(key))
        fail(place, "the keyword '" + key + "' is not known");
    if (schema.contains("$ref"))
      return reference(schema["$ref"], place);
    if (schema.contains("allOf"))
      return convert(joined(schema, place), place);
    if (schema.contains("const"))
      return quoted(schema["const"].dump());
    if (schema.contains("enum"))
      return choice(schema["enum"], place, [](const json &value, const std::string &) { return quoted(value.dump()); }, "enum");
    for (const char *key : {"anyOf", "oneOf"})
      if (schema.contains(key))
        return choice(schema[key], place, [this](const json &value, const std::string &at) { return convert(value, at); }, key);
    if (!schema.contains("type"))
      return schema.contains("properties") ? object(schema, place) : schema.contains("items") || schema.contains("prefixItems") ? array(schema, place)
             : schema.contains("pattern") || schema.contains("format") ? string(schema, place) : need("value");
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

  static std::string pathOf(const json &reference, const std::string &place) {
    std::string path = reference.is_string() ? reference.get<std::string>() : "";
    if (path != "#" && path.rfind("#/", 0) != 0)
      fail(place, "'$ref' is " + reference.dump() + ", expected a place within the schema: \"#/$defs/NAME\"");
    return path;
  }

  const json &target(const std::string &path, const std::string &place) {
    try {
      return whole.at(json::json_pointer(path.substr(1)));
    } catch (const json::exception &) {
      fail(place, "'$ref' names " + path + ", which does not exist");
    }
  }

  /// A schema with all parts of its 'allOf' taken in: members and requirements of all, the narrower of two bounds.
  json joined(const json &schema, const std::string &place) {
    json result = schema;
    result.erase("allOf");
    const json &parts = schema["allOf"];
    if (!parts.is_array() || parts.empty())
      fail(place, "'allOf' is no list of schemas");
    for (size_t i = 0; i < parts.size(); ++i) {
      std::string at = place + "/allOf/" + std::to_string(i);
      if (++depth > mostDepth)
        fail(at, "is nested more than " + std::to_string(mostDepth) + " deep");
      const json *part = &parts[i];
      if (part->is_object() && part->contains("$ref"))
        part = &target(pathOf((*part)["$ref"], at), at);
      if (!part->is_object())
        fail(at, "expected an object, found " + std::string(part->type_name()));
      join(result, part->contains("allOf") ? joined(*part, at) : *part, at);
      --depth;
    }
    return result;
  }

  static void join(json &all, const json &part, const std::string &place) {
    static const std::set<std::string> remarks = {"title", "description", "default", "examples", "$comment", "$schema", "$id", "$defs", "definitions"};
    for (const auto &[key, value] : part.items()) {
      if (remarks.count(key) || (key == "additionalProperties" && value == json(false)))
        continue;
      if (!all.contains(key)) {
        all[key] = value;
      } else if (key == "properties" && value.is_object() && all[key].is_object()) {
        for (const auto &[name, member] : value.items())
          if (json &before = all[key][name]; before.is_null())
            before = member;
          else if (before != member)
            before = json{{"allOf", {before, member}}};
      } else if (key == "required" && value.is_array() && all[key].is_array()) {
        all[key].insert(all[key].end(), value.begin(), value.end());
      } else if (bool least = key.rfind("min", 0) == 0 || key == "exclusiveMinimum"; (least || key.rfind("max", 0) == 0 || key == "exclusiveMaximum") &&
                                                                                     value.is_number() && all[key].is_number()) {
        if (least ? all[key] < value : value < all[key])
          all[key] = value;
      } else if (all[key] != value) {
        fail(place, "'" + key + "' is " + value.dump() + " here and " + all[key].dump() + " beside; 'allOf' cannot join them");
      }
    }
  }

  std::string reference(const json &to, const std::string &place) {
    std::string path = pathOf(to, place);
    if (auto found = references.find(path); found != references.end())
      return found->second;
    const json *schema = &target(path, place);
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
    for (const char *key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (schema.contains(key) && (name == "integer" || name == "number"))
        return number(schema, place, name == "integer");
    return need(name);
  }

  /// Integers or numbers between bounds, which are whole.
  std::string number(const json &schema, const std::string &place, bool integers) {
    int64_t least = -mostSchemaInteger, most = mostSchemaInteger;
    // `step`: from a bound that is no value itself to the next integer.
    auto limit = [&](const char *key, bool isLeast, int64_t step) {
      if (!schema.contains(key))
        return;
      const json &value = schema[key];
      double real = value.is_number() ? value.get<double>() : 0.5;
      if (std::fabs(real) > 1e15 || (!(integers && value.is_number()) && real != std::floor(real)))
        fail(place, "'" + std::string(key) + "' is " + value.dump() + ", expected a whole number of at most 15 digits");
      if (step != 0 && !integers)
        fail(place, "'" + std::string(key) + "' is known for integers only");
      // Behind a bound that is no integer the next one.
      int64_t next = int64_t(isLeast ? std::ceil(real) : std::floor(real)) + (real == std::floor(real) ? step : 0);
      if (isLeast)
        least = std::max(least, next);
      else
        most = std::min(most, next);
    };
    limit("minimum", true, 0);
    limit("exclusiveMinimum", true, 1);
    limit("maximum", false, 0);
    limit("exclusiveMaximum", false, -1);
    if (least > most)
      fail(place, "no number is at least " + std::to_string(least) + " and at most " + std::to_string(most));
    return add(integers ? integersBetween(least, most) : numbersBetween(least, most));
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
    for (const char *key : {"pattern", "format"})
      if (schema.contains(key) && (least != 0 || most >= 0 || (schema.contains("pattern") && schema.contains("format"))))
        fail(place, "'" + std::string(key) + "' is known alone only, not beside other bounds of a string");
    if (schema.contains("pattern"))
      return pattern(schema["pattern"], place);
    if (schema.contains("format"))
      return format(schema["format"], place);
    if (least == 0 && most < 0)
      return need("string");
    if (most >= 0 && most < least)
      fail(place, "'maxLength' is below 'minLength'");
    need("character");
    return add("\"\\\"\" character" + repeats(least, most) + " \"\\\"\"");
  }

  std::string pattern(const json &pattern, const std::string &place) {
    if (!pattern.is_string())
      fail(place, "'pattern' is " + pattern.dump() + ", expected a string");
    try {
      return add("\"\\\"\" " + stringsThatMatch(pattern.get<std::string>()) + " \"\\\"\"");
    } catch (const std::runtime_error &error) {
      fail(place, "'pattern' " + pattern.dump() + " " + error.what());
    }
  }

  std::string format(const json &format, const std::string &place) {
    static const std::string date = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
    static const std::string time = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+\\-]([01][0-9]|2[0-3]):[0-5][0-9])";
    static const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    static const std::map<std::string, std::string> known = {{"date", "^" + date + "$"},
                                                             {"date-time", "^" + date + "T" + time + "$"},
                                                             {"ipv4", "^(" + byte + "\\.){3}" + byte + "$"},
                                                             {"time", "^" + time + "$"},
                                                             {"uuid", "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}};
    auto found = known.find(format.is_string() ? format.get<std::string>() : "");
    if (found == known.end())
      fail(place, "the format " + format.dump() + " is not known, only date, date-time, ipv4, time, uuid");
    return pattern(found->second, place);
  }

  /// The items of a tuple, and any number of others behind them.
  std::string tuple(const json &schema, const std::string &place) {
    int64_t least = bound(schema, "minItems", 0, place), most = bound(schema, "maxItems", -1, place);
    const json &first = schema["prefixItems"];
    if (!first.is_array() || first.empty())
      fail(place, "'prefixItems' is no list of schemas");
    int64_t count = int64_t(first.size());
    if (most >= 0 && (most < least || most < count))
      fail(place, "'maxItems' is below 'minItems' or the number of 'prefixItems'");
    need("space");
    std::string body = "\"[\" space ";
    for (int64_t i = 0; i < count; ++i)
      body += (i ? "\",\" space " : "") + convert(first[size_t(i)], place + "/prefixItems/" + std::to_string(i)) + " space ";
    // Others only where the schema speaks of them.
    const json others = schema.value("items", json(least > count));
    if (others != json(false))
      body += "(\",\" space " + convert(others, place + "/items") + " space)" + repeats(std::max<int64_t>(least - count, 0), most < 0 ? -1 : most - count) + " ";
    else if (least > count)
      fail(place, "'minItems' is above the number of 'prefixItems', and 'items' allows no others");
    return add(body + "\"]\"");
  }

  std::string array(const json &schema, const std::string &place) {
    if (schema.contains("prefixItems"))
      return tuple(schema, place);
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
  int depth = 0;
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
