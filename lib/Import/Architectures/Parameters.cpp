//===- Parameters.cpp - what a file says of a model's structure -----------------------===//
#include "Parameters.h"

#include <cmath>
#include <limits>

using json = nlohmann::json;

namespace ajour::architectures {

/// Most entries of a list: one for each layer, or for each pair of a head's dimensions.
static constexpr size_t listLimit = 1 << 16;

/// A value for messages: lists and objects, which may be large or deep, by their kind.
static std::string brief(const json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "a list of " + std::to_string(value.size());
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 100);
}

static json scalarOf(const gguf::Value &value, size_t i) {
  switch (value.type()) {
  case gguf::ValueType::String:
    return value.string(i).str();
  case gguf::ValueType::F32:
  case gguf::ValueType::F64:
    return *value.number(i);
  case gguf::ValueType::Bool:
    return *value.integer(i) != 0;
  default:
    if (std::optional<int64_t> number = value.integer(i))
      return *number;
    return value.number(i).value_or(0); // an unsigned number above int64
  }
}

Parameters Parameters::fromGGUF(const gguf::File &file, const std::string &architecture) {
  std::string prefix = architecture + ".";
  Parameters result(json::object(), prefix);
  for (const std::string &name : file.keys) {
    llvm::StringRef key = name;
    if (!key.consume_front(prefix))
      continue;
    const gguf::Value &value = *file.find(name);
    json &entry = result.object[key.str()];
    if (!value.isArray()) {
      entry = scalarOf(value, 0);
      continue;
    }
    entry = json::array();
    if (value.size() > listLimit) {
      result.setProblem(name + " has " + std::to_string(value.size()) + " entries, expected at most " + std::to_string(listLimit));
      continue;
    }
    for (size_t i = 0; i < value.size(); ++i)
      entry.push_back(scalarOf(value, i));
  }
  return result;
}

void Parameters::setProblem(const std::string &text) {
  if (firstProblem.empty())
    firstProblem = text;
}

std::string Parameters::nameOf(const std::string &key) const {
  auto it = renamed.find(key);
  return prefix + (it == renamed.end() ? key : it->second);
}

void Parameters::rename(const std::string &from, const std::string &to) {
  auto it = object.find(from);
  if (it == object.end() || object.contains(to))
    return;
  json value = *it;
  object.erase(it);
  object[to] = std::move(value);
  renamed[to] = from;
}

const json *Parameters::find(const std::string &key) {
  read.insert(key);
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

bool Parameters::has(const std::string &key) const {
  auto it = object.find(key);
  return it != object.end() && !it->is_null();
}

bool Parameters::isNull(const std::string &key) const {
  auto it = object.find(key);
  return it != object.end() && it->is_null();
}

int64_t Parameters::integer(const std::string &key, int64_t least, int64_t most, int64_t otherwise) {
  const json *value = find(key);
  if (!value)
    return otherwise;
  bool isInteger = value->is_number_integer();
  int64_t number = isInteger ? value->get<int64_t>() : otherwise;
  if (!isInteger || (value->is_number_unsigned() && number < 0) || number < least || number > most) {
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected " + (isInteger ? "" : "an integer, ") + std::to_string(least) + " to " +
               std::to_string(most));
    return least;
  }
  return number;
}

int64_t Parameters::integer(const std::string &key, int64_t least, int64_t most) {
  if (!has(key))
    setProblem(nameOf(key) + " is missing");
  return integer(key, least, most, least);
}

float Parameters::real(const std::string &key, double otherwise, bool positive) {
  const json *value = find(key);
  if (!value)
    return float(otherwise);
  float number = value->is_number() ? value->get<float>() : 0.0f;
  if (!value->is_number() || !std::isfinite(number) || (positive && !(number > 0))) {
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected a " + (positive ? "positive " : "") + "number");
    return 1.0f;
  }
  return number;
}

bool Parameters::flag(const std::string &key, bool otherwise) {
  const json *value = find(key);
  if (!value)
    return otherwise;
  if (!value->is_boolean())
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected true or false");
  return value->is_boolean() && value->get<bool>();
}

std::string Parameters::text(const std::string &key, const std::string &otherwise) {
  const json *value = find(key);
  if (!value)
    return otherwise;
  if (!value->is_string())
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected a string");
  return value->is_string() ? value->get<std::string>() : otherwise;
}

std::vector<double> Parameters::numbers(const std::string &key, size_t count) {
  const json *value = find(key);
  if (!value)
    return {};
  if (value->is_number() && std::isfinite(value->get<double>()))
    return std::vector<double>(count, value->get<double>());
  std::vector<double> result;
  if (value->is_array() && value->size() == count)
    for (const json &entry : *value)
      if ((entry.is_number() && std::isfinite(entry.get<double>())) || entry.is_boolean())
        result.push_back(entry.is_boolean() ? double(entry.get<bool>()) : entry.get<double>());
  if (result.size() != count) {
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected a list of " + std::to_string(count) + " numbers");
    return {};
  }
  return result;
}

std::vector<int64_t> Parameters::integers(const std::string &key, size_t count, int64_t least, int64_t most) {
  std::vector<int64_t> result;
  for (double number : numbers(key, count)) {
    if (number != std::floor(number) || number < double(least) || number > double(most)) {
      setProblem(nameOf(key) + " has the entry " + brief(json(number)) + ", expected integers from " + std::to_string(least) + " to " +
                 std::to_string(most));
      number = double(least);
    }
    result.push_back(int64_t(number));
  }
  return result;
}

std::vector<int64_t> Parameters::anyIntegers(const std::string &key, int64_t least, int64_t most) {
  const json *value = find(key);
  return value ? integers(key, value->is_array() ? value->size() : 1, least, most) : std::vector<int64_t>();
}

std::optional<std::pair<float, float>> Parameters::bounds(const std::string &key) {
  const json *value = find(key);
  if (!value)
    return std::nullopt;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float least = -infinity, most = infinity;
  bool good = value->is_array() && value->size() == 2;
  for (size_t i = 0; good && i < 2; ++i) {
    const json &entry = (*value)[i];
    good = entry.is_null() || (entry.is_number() && std::isfinite(entry.get<float>()));
    if (good && !entry.is_null())
      (i ? most : least) = entry.get<float>();
  }
  if (!good || least > most) {
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected a list of a least and a most number");
    return std::nullopt;
  }
  return std::pair(least, most);
}

std::vector<std::string> Parameters::texts(const std::string &key, size_t count) {
  const json *value = find(key);
  if (!value)
    return {};
  std::vector<std::string> result;
  if (value->is_array() && value->size() == count)
    for (const json &entry : *value)
      if (entry.is_string())
        result.push_back(entry.get<std::string>());
  if (result.size() != count) {
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected a list of " + std::to_string(count) + " strings");
    return {};
  }
  return result;
}

Parameters Parameters::nested(const std::string &key) {
  const json *value = find(key);
  if (value && !value->is_object())
    setProblem(nameOf(key) + " is " + brief(*value) + ", expected an object");
  return Parameters(value && value->is_object() ? *value : json::object(), prefix + key + ".");
}

void Parameters::absorb(const Parameters &inner) {
  Parameters copy = inner;
  if (std::string problem = copy.finish(""); !problem.empty())
    setProblem(problem);
}

void Parameters::only(const std::string &key, const json &expected) {
  const json *value = find(key);
  if (value && *value != expected)
    setProblem(nameOf(key) + " is " + brief(*value) + "; " + brief(expected) + " is supported");
}

void Parameters::ignore(std::initializer_list<const char *> keys) { read.insert(keys.begin(), keys.end()); }

void Parameters::refuse(const std::string &key, const std::string &known) {
  const json *value = find(key);
  setProblem(nameOf(key) + " is " + (value ? brief(*value) : "missing") + "; " + known);
}

std::string Parameters::finish(const std::string &architecture) {
  for (const auto &[key, value] : object.items()) {
    // Null, false and zero say that something is not there.
    bool isOff = value.is_null() || value == false || (value.is_number() && value == 0);
    if (!isOff && !read.contains(key))
      setProblem(nameOf(key) + " is " + brief(value) + ", a parameter that is not known" +
                 (architecture.empty() ? "" : " of the architecture '" + architecture + "'"));
  }
  return firstProblem;
}

} // namespace ajour::architectures
