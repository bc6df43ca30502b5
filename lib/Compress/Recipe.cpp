//===- Recipe.cpp - what is to be done to which layer -------------------------===//
#include "ajour/Compress/Recipe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using Json = nlohmann::ordered_json;

namespace ajour::compress {

namespace {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// A plain scalar of YAML: a number, true or false where it reads as one, else text.
Json plainScalar(llvm::StringRef text) {
  if (text == "true" || text == "false")
    return text == "true";
  int64_t integer;
  if (!text.getAsInteger(10, integer))
    return integer;
  double real;
  if (!text.getAsDouble(real))
    return real;
  return text.str();
}

constexpr unsigned deepestYaml = 16;

Json fromYaml(llvm::yaml::Node *node, unsigned depth) {
  if (!node || depth > deepestYaml)
    throw std::runtime_error("is nested too deeply or damaged");
  if (auto *scalar = llvm::dyn_cast<llvm::yaml::ScalarNode>(node)) {
    llvm::SmallString<64> storage;
    llvm::StringRef raw = scalar->getRawValue(), value = scalar->getValue(storage);
    bool quoted = raw.starts_with("'") || raw.starts_with("\"");
    return quoted ? Json(value.str()) : plainScalar(value);
  }
  if (auto *list = llvm::dyn_cast<llvm::yaml::SequenceNode>(node)) {
    Json json = Json::array();
    for (llvm::yaml::Node &entry : *list)
      json.push_back(fromYaml(&entry, depth + 1));
    return json;
  }
  if (auto *map = llvm::dyn_cast<llvm::yaml::MappingNode>(node)) {
    Json json = Json::object();
    for (llvm::yaml::KeyValueNode &entry : *map) {
      Json key = fromYaml(entry.getKey(), depth + 1);
      if (!key.is_string())
        throw std::runtime_error("has the key " + key.dump() + ", expected a word");
      if (json.contains(key.get<std::string>()))
        throw std::runtime_error("has the key '" + key.get<std::string>() + "' twice");
      json[key.get<std::string>()] = fromYaml(entry.getValue(), depth + 1);
    }
    return json;
  }
  throw std::runtime_error("holds an alias, a block of text or nothing where a value is expected");
}

Json parseYaml(const std::string &text) {
  llvm::SourceMgr sources;
  std::string error;
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic &diagnostic, void *to) {
        auto &message = *static_cast<std::string *>(to);
        if (message.empty())
          message = "is not YAML: line " + std::to_string(diagnostic.getLineNo()) + ": " + diagnostic.getMessage().str();
      },
      &error);
  llvm::yaml::Stream stream(text, sources, /*ShowColors=*/false);
  Json json;
  try {
    auto document = stream.begin();
    // A text of comments alone has a document with nothing in it.
    if (document != stream.end() && document->getRoot() && !llvm::isa<llvm::yaml::NullNode>(document->getRoot()))
      json = fromYaml(document->getRoot(), 0);
    if (!stream.failed() && document != stream.end() && ++document != stream.end() && error.empty())
      error = "holds several documents, expected one";
  } catch (const std::runtime_error &) {
    if (error.empty())
      throw;
  }
  if (stream.failed() || !error.empty())
    throw std::runtime_error(error.empty() ? "is not YAML" : error);
  return json;
}

Json parseText(const std::string &text) {
  if (!llvm::StringRef(text).ltrim().starts_with("{"))
    return parseYaml(text);
  // The parser itself lets the last of two equal keys win.
  std::vector<std::vector<std::string>> keys;
  auto onEvent = [&](int depth, Json::parse_event_t event, Json &value) {
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key) {
      if (llvm::is_contained(keys.back(), value.get<std::string>()))
        throw std::runtime_error("has the key '" + value.get<std::string>() + "' twice");
      keys.back().push_back(value.get<std::string>());
    }
    return depth < int(deepestYaml) ? true : throw std::runtime_error("is nested too deeply");
  };
  try {
    return Json::parse(text, onEvent, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::parse_error &problem) {
    size_t at = std::min<size_t>(problem.byte, text.size());
    throw std::runtime_error("is not JSON: line " + std::to_string(1 + std::count(text.begin(), text.begin() + at, '\n')) +
                             " is damaged");
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The keys and values of the recipe itself or of one rule; remembers which were read.
class Reader {
public:
  Reader(const Json &json, std::string where) : json(json), where(std::move(where)) {
    if (!json.is_object())
      fail("is " + json.dump() + ", expected keys and values");
  }

  [[noreturn]] void fail(const std::string &message) const { throw std::runtime_error(where + message); }
  [[noreturn]] void failKey(const std::string &key, const std::string &expected) const {
    fail("'" + key + "' is " + json.at(key).dump() + ", expected " + expected);
  }

  bool has(const std::string &key) const { return json.contains(key); }

  int64_t integer(const std::string &key, int64_t otherwise, int64_t low, int64_t high) {
    if (!take(key))
      return otherwise;
    const Json &value = json.at(key);
    if (!value.is_number_integer() || value.get<double>() < double(low) || value.get<double>() > double(high))
      failKey(key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return value.get<int64_t>();
  }
  /// A share in [0, 1).
  double share(const std::string &key, double otherwise) {
    if (!take(key))
      return otherwise;
    const Json &value = json.at(key);
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() < 1))
      failKey(key, "a number of at least 0 and less than 1");
    return value.get<double>();
  }
  std::string word(const std::string &key, const std::string &otherwise) {
    if (!take(key))
      return otherwise;
    if (!json.at(key).is_string())
      failKey(key, "a word");
    return json.at(key).get<std::string>();
  }
  /// One word or a list of them.
  std::vector<std::string> words(const std::string &key) {
    std::vector<std::string> result;
    if (!take(key))
      return result;
    const Json &value = json.at(key);
    for (const Json &entry : value.is_array() ? value : Json::array({value})) {
      if (!entry.is_string())
        failKey(key, "a word or a list of words");
      result.push_back(entry.get<std::string>());
    }
    return result;
  }
  bool flag(const std::string &key, bool otherwise) {
    if (!take(key))
      return otherwise;
    if (!json.at(key).is_boolean())
      failKey(key, "true or false");
    return json.at(key).get<bool>();
  }
  const Json &list(const std::string &key) {
    take(key);
    if (!json.at(key).is_array())
      failKey(key, "a list");
    return json.at(key);
  }
  const Json *value(const std::string &key) { return take(key) ? &json.at(key) : nullptr; }

  /// Nothing may be left that has not been read; `known` is listed in the message.
  void finish(const std::string &known) const {
    for (const auto &[key, value] : json.items())
      if (!llvm::is_contained(taken, key))
        fail("has no use for the key '" + key + "'; it takes " + known);
  }

private:
  bool take(const std::string &key) {
    taken.push_back(key);
    return has(key);
  }

  const Json &json;
  std::string where;
  std::vector<std::string> taken;
};

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

constexpr const char *structureNames = "dense, c4n, nm, pattern, block, block_punched, 4x1 or unstructured";

/// Reads the keys of the structure; returns their names for messages.
std::string readStructure(Reader &reader, LayerPlan &plan) {
  std::string name = reader.word("structure", "dense");
  if (name == "dense")
    return "";
  if (name == "c4n") {
    plan.structure = Structure::C4n;
    plan.pruned = reader.integer("n", 2, 1, 3);
    plan.share = reader.integer("share", 1, 1, 16);
    if (!llvm::is_contained({1, 4, 8, 16}, plan.share))
      reader.failKey("share", "1, 4, 8 or 16 outputs");
    return "n, share, ";
  }
  if (name == "nm") {
    plan.structure = Structure::NM;
    plan.of = reader.integer("of", 4, 2, 32);
    plan.kept = reader.integer("kept", 2, 1, 32);
    if (plan.kept >= plan.of)
      reader.failKey("kept", "less than the " + std::to_string(plan.of) + " of 'of'");
    return "kept, of, ";
  }
  if (name == "pattern") {
    plan.structure = Structure::Pattern;
    plan.entries = reader.integer("entries", 4, 1, 24);
    plan.table = reader.integer("table", 8, 1, 64);
    plan.connectivity = reader.share("connectivity", 0);
    return "entries, table, connectivity, ";
  }
  bool fixed = name == "4x1" || name == "block_punched";
  if (name == "block" || fixed) {
    plan.structure = Structure::Block;
    plan.rows = name == "4x1" ? 4 : 8;
    plan.cols = name == "4x1" ? 1 : 4;
    if (!fixed) {
      plan.rows = reader.integer("rows", plan.rows, 1, 1024);
      plan.cols = reader.integer("cols", plan.cols, 1, 1024);
    }
  } else if (name == "unstructured") {
    plan.structure = Structure::Unstructured;
  } else {
    reader.failKey("structure", structureNames);
  }
  if (!reader.has("ratio"))
    reader.fail("has the structure '" + name + "' but no 'ratio', the share of zeros");
  plan.ratio = reader.share("ratio", 0);
  return name == "block" ? "rows, cols, ratio, " : "ratio, ";
}

void readValues(Reader &reader, LayerPlan &plan) {
  plan.bits = reader.integer("bits", 0, 2, 8);
  plan.group = reader.integer("group", 0, 1, 1 << 20);
  if (plan.group && !plan.bits)
    reader.fail("has a 'group' of weights with a scale together, but no 'bits'");
  std::string method = reader.word("method", "second-order");
  if (method != "second-order" && method != "magnitude")
    reader.failKey("method", "second-order or magnitude");
  plan.method = method == "magnitude" ? Method::Magnitude : Method::SecondOrder;
  plan.adjust = reader.flag("adjust", false);
  if (plan.adjust && plan.method == Method::Magnitude)
    reader.fail("has 'adjust', which is second-order, and the method magnitude");
}

std::vector<int64_t> readKernel(Reader &reader) {
  std::vector<int64_t> sizes;
  for (const std::string &text : reader.words("kernel")) {
    llvm::SmallVector<llvm::StringRef, 3> parts;
    llvm::StringRef(text).split(parts, 'x');
    for (llvm::StringRef part : parts) {
      int64_t size;
      if (part.getAsInteger(10, size) || size < 1)
        reader.failKey("kernel", "sizes such as 3x3");
      sizes.push_back(size);
    }
  }
  return sizes;
}

Rule readRule(const Json &json, int64_t number) {
  Reader reader(json, "rule " + std::to_string(number) + ": ");
  Rule rule;
  rule.number = number;
  rule.layers = reader.words("layers");
  for (const std::string &glob : rule.layers) {
    auto pattern = llvm::GlobPattern::create(glob);
    if (!pattern) {
      llvm::consumeError(pattern.takeError());
      reader.fail("'layers' holds '" + glob + "', which is not a glob of *, ? and [...]");
    }
  }
  for (const std::string &kind : reader.words("op")) {
    if (kind == "conv")
      rule.kinds.push_back(LayerKind::Conv);
    else if (kind == "depthwise")
      rule.kinds.push_back(LayerKind::Depthwise);
    else if (kind == "linear")
      rule.kinds.push_back(LayerKind::Linear);
    else
      reader.failKey("op", "conv, depthwise or linear");
  }
  rule.kernel = readKernel(reader);
  rule.skipFirst = !reader.flag("first", true);
  std::string keys = readStructure(reader, rule.plan);
  readValues(reader, rule.plan);
  reader.finish("layers, op, kernel, first, structure, " + keys + "bits, group, method and adjust");
  return rule;
}

/// The share of kernels that go so that a pattern of 4 in 9 has this share of zeros.
double connectivityFor(double ratio) { return std::max(0., 1 - (1 - ratio) * 9 / 4); }

/// Rules by kind of layer: where each structure costs the least accuracy for what it gains (scheme mapping).
std::vector<Rule> automaticRules(double ratio, const LayerPlan &values) {
  auto rule = [&](std::vector<LayerKind> kinds, std::vector<int64_t> kernel) {
    Rule made;
    made.kinds = std::move(kinds);
    made.kernel = std::move(kernel);
    made.plan = values;
    return made;
  };
  std::vector<Rule> rules;
  rules.push_back(rule({LayerKind::Depthwise}, {}));
  Rule pattern = rule({LayerKind::Conv}, {3, 3});
  pattern.skipFirst = true;
  pattern.plan.structure = Structure::Pattern;
  pattern.plan.connectivity = connectivityFor(ratio);
  rules.push_back(pattern);
  Rule block = rule({LayerKind::Conv, LayerKind::Linear}, {});
  block.skipFirst = true;
  block.plan.structure = Structure::Block;
  block.plan.rows = 4;
  block.plan.cols = 1;
  block.plan.ratio = ratio;
  rules.push_back(block);
  rules.push_back(rule({}, {})); // the first layer
  for (size_t i = 0; i < rules.size(); ++i)
    rules[i].number = 0;
  return rules;
}

void readScheme(Reader &reader, Recipe &recipe) {
  if (reader.word("scheme", "") != "auto")
    reader.failKey("scheme", "auto");
  if (reader.has("rules"))
    reader.fail("has both 'scheme' and 'rules', expected one of them");
  if (!reader.has("ratio"))
    reader.fail("has a 'scheme' but no 'ratio', the share of zeros");
  double ratio = reader.share("ratio", 0);
  LayerPlan values;
  readValues(reader, values);
  recipe.rules = automaticRules(ratio, values);
}

Recipe readRecipe(const Json &json) {
  Reader reader(json, "");
  Recipe recipe;
  recipe.activations = reader.integer("activations", 0, 8, 8);
  recipe.damping = reader.share("damping", recipe.damping);
  recipe.target = reader.share("target", 0);
  recipe.cpu = reader.word("cpu", "");
  if (!recipe.cpu.empty() && recipe.target == 0)
    reader.fail("has 'cpu', which says what 'target' is about, but no 'target'");
  if (reader.has("scheme")) {
    readScheme(reader, recipe);
    reader.finish("scheme, ratio, bits, group, method, adjust, activations, target, cpu and damping");
    return recipe;
  }
  if (!reader.has("rules"))
    reader.fail("has neither 'rules' nor 'scheme'");
  for (const Json &rule : reader.list("rules"))
    recipe.rules.push_back(readRule(rule, int64_t(recipe.rules.size()) + 1));
  if (recipe.rules.empty())
    reader.fail("has an empty list 'rules'");
  reader.finish("rules, activations, target, cpu and damping; or scheme, ratio, bits, group, method, adjust, activations, target, cpu and damping");
  return recipe;
}

std::string percent(double share) {
  std::string digits = std::to_string(std::lround(share * 1000));
  return digits.size() > 1 && digits.back() == '0' ? digits.substr(0, digits.size() - 1) + " %"
         : digits.size() == 1                      ? "0." + digits + " %"
                              : digits.substr(0, digits.size() - 1) + "." + digits.back() + " %";
}

} // namespace

std::string toString(const LayerPlan &plan) {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string text;
  switch (plan.structure) {
  case Structure::Dense:
    text = plan.adjust ? "dense, adjusted" : "dense";
    break;
  case Structure::C4n:
    text = "c4^" + number(plan.pruned) + (plan.share > 1 ? ", " + number(plan.share) + " rows alike" : "");
    break;
  case Structure::NM:
    text = number(plan.kept) + ":" + number(plan.of);
    break;
  case Structure::Pattern:
    text = "pattern of " + number(plan.entries) + (plan.connectivity > 0 ? ", " + percent(plan.connectivity) + " of kernels gone" : "");
    break;
  case Structure::Block:
    text = "block " + number(plan.rows) + "x" + number(plan.cols) + " at " + percent(plan.ratio);
    break;
  case Structure::Unstructured:
    text = "unstructured at " + percent(plan.ratio);
    break;
  }
  if (plan.bits)
    text += ", int" + number(plan.bits) + (plan.group ? " in groups of " + number(plan.group) : "");
  return text;
}

const char *toString(LayerKind kind) {
  return kind == LayerKind::Conv ? "conv" : kind == LayerKind::Depthwise ? "depthwise" : "linear";
}

bool Rule::fits(const std::string &node, const std::string &weight, LayerKind kind, const std::vector<int64_t> &window,
                bool isFirst) const {
  if (skipFirst && isFirst)
    return false;
  if (!kinds.empty() && !llvm::is_contained(kinds, kind))
    return false;
  if (!kernel.empty() && kernel != window)
    return false;
  return layers.empty() || llvm::any_of(layers, [&](const std::string &glob) {
           auto pattern = llvm::GlobPattern::create(glob);
           if (!pattern) {
             llvm::consumeError(pattern.takeError());
             return false;
           }
           return pattern->match(node) || pattern->match(weight);
         });
}

Recipe parseRecipe(const std::string &text, const std::string &file) {
  try {
    Recipe recipe = readRecipe(parseText(text));
    recipe.file = file;
    return recipe;
  } catch (const std::runtime_error &problem) {
    throw CompressError("recipe '" + file + "': " + problem.what());
  }
}

} // namespace ajour::compress
