//===- Parameters.h - what a file says of a model's structure ---*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_PARAMETERS_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_PARAMETERS_H

#include "../GGUF/Reader.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ajour::architectures {

/// Parameters by their file's names, read with checks. The first problem is kept, and reading goes on with harmless values. What is
/// read is remembered, so that parameters that nobody asked for, whose meaning would be lost, can be refused by name.
class Parameters {
public:
  /// Those of a config.json, or of an object in one, which messages call `prefix`KEY.
  explicit Parameters(nlohmann::json object, std::string prefix = "") : object(std::move(object)), prefix(std::move(prefix)) {}
  /// The metadata of a GGUF file under "ARCHITECTURE.".
  static Parameters fromGGUF(const gguf::File &file, const std::string &architecture);

  /// Whether the file has the parameter and says something by it: null is nothing.
  bool has(const std::string &key) const;
  /// Whether the file says null.
  bool isNull(const std::string &key) const;
  int64_t integer(const std::string &key, int64_t least, int64_t most);
  int64_t integer(const std::string &key, int64_t least, int64_t most, int64_t otherwise);
  /// A number that is finite and, with `positive`, above 0.
  float real(const std::string &key, double otherwise, bool positive = false);
  bool flag(const std::string &key, bool otherwise);
  std::string text(const std::string &key, const std::string &otherwise);
  /// A list of `count` numbers, or one for all. Without the parameter empty.
  std::vector<double> numbers(const std::string &key, size_t count);
  /// The same of integers within bounds.
  std::vector<int64_t> integers(const std::string &key, size_t count, int64_t least, int64_t most);
  /// A list of integers of any length.
  std::vector<int64_t> anyIntegers(const std::string &key, int64_t least, int64_t most);
  /// A list of a least and a most, either of which may be null: infinite. Without the parameter nothing.
  std::optional<std::pair<float, float>> bounds(const std::string &key);
  std::vector<std::string> texts(const std::string &key, size_t count);
  /// An object in this one; its problems and unread parameters are to be taken over with `absorb`.
  Parameters nested(const std::string &key);
  void absorb(const Parameters &inner);

  /// Reads `from` where `to` is asked for, unless there is one of that name.
  void rename(const std::string &from, const std::string &to);
  /// The parameter has this value or is absent; anything else changes what is computed in a way that is not supported.
  void only(const std::string &key, const nlohmann::json &value);
  /// Parameters that change nothing here.
  void ignore(std::initializer_list<const char *> keys);
  /// A parameter with a value that is not supported; `known` says which are.
  void refuse(const std::string &key, const std::string &known);
  void setProblem(const std::string &text);

  /// Empty, the first problem, or the first parameter that was not read although it says something.
  std::string finish(const std::string &architecture);
  const std::string &problem() const { return firstProblem; }

private:
  const nlohmann::json *find(const std::string &key);
  std::string nameOf(const std::string &key) const;

  nlohmann::json object;
  std::string prefix, firstProblem;
  std::set<std::string> read;
  std::map<std::string, std::string> renamed; ///< what is asked for, by the file's name
};

} // namespace ajour::architectures

#endif
