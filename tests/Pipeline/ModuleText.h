//===- ModuleText.h - small modules written by tests ------------*- C++ -*-===//
#ifndef AJOUR_TESTS_PIPELINE_MODULETEXT_H
#define AJOUR_TESTS_PIPELINE_MODULETEXT_H

#include <map>
#include <string>
#include <vector>

namespace ajour::test {

/// "array<i64: 1, 2>"; "array<i64>" when empty.
inline std::string array(const std::vector<int64_t> &values) {
  std::string text = "array<i64";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : ": ") + std::to_string(values[i]);
  return text + ">";
}

/// "tensor<?x3xf32, #nn.dims<()[s0] -> (s0, 3)>>". A size is a number, or an expression of the symbols s0, s1 ("s0 * 2").
inline std::string symbolicType(const std::vector<std::string> &sizes, const std::string &element) {
  std::string shape, exprs;
  bool dynamic = false;
  for (const std::string &size : sizes) {
    bool isStatic = size.find('s') == std::string::npos;
    dynamic |= !isStatic;
    shape += (isStatic ? size : "?") + "x";
    exprs += (exprs.empty() ? "" : ", ") + size;
  }
  std::string symbols = exprs.find("s1") == std::string::npos ? "s0" : "s0, s1";
  return "tensor<" + shape + element +
         (dynamic ? ", #nn.dims<()[" + symbols + "] -> (" + exprs + ")>>" : ">");
}
/// "tensor<2x3xf32>"
inline std::string tensorType(const std::vector<int64_t> &sizes, const std::string &element) {
  std::vector<std::string> text;
  for (int64_t size : sizes)
    text.push_back(std::to_string(size));
  return symbolicType(text, element);
}

/// Writes a module with one function, operation by operation.
class ModuleText {
public:
  /// `symbols` is how many symbolic dimensions there are.
  explicit ModuleText(int symbols = 0) : symbols(symbols) {}

  std::string input(const std::string &type) { return argument(type, ""); }
  /// A constant of random values.
  std::string constant(const std::string &type) { return argument(type, " {test.constant}"); }

  /// A constant tensor of one value.
  std::string splat(int64_t number, const std::string &type) {
    std::string value = "%v" + std::to_string(types.size());
    body += "  " + value + " = nn.constant {value = dense<" + std::to_string(number) + "> : " + type + "} : " + type + "\n";
    types[value] = type;
    return value;
  }

  /// An operation of one result: `name` with what stands before the operands ("nn.unary <relu>").
  std::string op(const std::string &name, const std::vector<std::string> &operands, const std::string &attributes,
                 const std::string &type) {
    std::string list;
    for (const std::string &operand : operands)
      list += (list.empty() ? "" : ", ") + operand;
    return raw(name + " " + list, operands, attributes, type);
  }
  /// The same where the operands are written in another way.
  std::string raw(const std::string &text, const std::vector<std::string> &operands, const std::string &attributes,
                  const std::string &type) {
    std::string value = "%v" + std::to_string(types.size()), in;
    for (const std::string &operand : operands)
      in += (in.empty() ? "" : ", ") + types.at(operand);
    body += "  " + value + " = " + text + (attributes.empty() ? "" : " {" + attributes + "}") + " : (" + in + ") -> " +
            type + "\n";
    types[value] = type;
    return value;
  }
  /// An operation of two results.
  std::pair<std::string, std::string> pair(const std::string &name, const std::string &operand,
                                           const std::string &attributes, const std::string &first,
                                           const std::string &second) {
    std::string value = "%v" + std::to_string(types.size());
    body += "  " + value + ":2 = " + name + " " + operand + " {" + attributes + "} : (" + types.at(operand) + ") -> (" +
            first + ", " + second + ")\n";
    types[value] = first;
    types[value + "#0"] = first;
    types[value + "#1"] = second;
    return {value + "#0", value + "#1"};
  }

  std::string unary(const std::string &kind, const std::string &x, const std::string &attributes = "") {
    return op("nn.unary <" + kind + ">", {x}, attributes, types.at(x));
  }
  std::string binary(const std::string &kind, const std::string &x, const std::string &y) {
    return op("nn.binary <" + kind + ">", {x, y}, "", types.at(x));
  }
  const std::string &typeOf(const std::string &value) { return types.at(value); }

  void output(const std::string &value) { outputs.push_back(value); }

  std::string text() const {
    std::string values, results, names;
    for (const std::string &value : outputs) {
      values += (values.empty() ? "" : ", ") + value;
      results += (results.empty() ? "" : ", ") + types.at(value);
    }
    for (int i = 0; i < symbols; ++i)
      names += (i ? ", " : "") + ("#nn.symbol<\"n" + std::to_string(i)) + "\", 0, 64>";
    return "module attributes {nn.symbols = [" + names + "]} {\nfunc.func @main(" + arguments + ") -> (" + results +
           ") {\n" + body + "  return " + values + " : " + results + "\n}\n}\n";
  }

private:
  std::string argument(const std::string &type, const std::string &attributes) {
    std::string value = "%a" + std::to_string(types.size());
    arguments += (arguments.empty() ? "" : ", ") + value + ": " + type + attributes;
    types[value] = type;
    return value;
  }

  int symbols;
  std::string arguments, body;
  std::vector<std::string> outputs;
  std::map<std::string, std::string> types;
};

} // namespace ajour::test

#endif
