//===- StateSpaceTest.cpp - compiled state-space operations against the reference -------------===//
#include "Compiled.h"
#include "ModuleText.h"

#include "ajour/ABI/ElementTypes.h"

#include <cmath>
#include <filesystem>
#include <random>

using namespace ajour;
using namespace ajour::test;

namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// Operands by keyword (empty: none) and sizes, as one operation in a module of its own.
struct OpText {
  struct Operand {
    std::string keyword;
    std::vector<std::string> sizes;
    bool constant = false;
  };
  std::string name, attributes;
  std::vector<Operand> operands;
  std::vector<std::vector<std::string>> results;
  std::string element = "f32";

  std::string text() const {
    std::string arguments, list, types, resultTypes;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand &operand = operands[i];
      std::string type = symbolicType(operand.sizes, element), comma = i ? ", " : "";
      arguments += comma + "%a" + std::to_string(i) + ": " + type + (operand.constant ? " {test.constant}" : "");
      list += (operand.keyword.empty() ? comma : " " + operand.keyword + " ") + "%a" + std::to_string(i);
      types += comma + type;
    }
    for (const std::vector<std::string> &sizes : results)
      resultTypes += (resultTypes.empty() ? "" : ", ") + symbolicType(sizes, element);
    // A symbol that no input has could not get a value.
    bool isSymbolic = !operands[0].sizes.empty() && operands[0].sizes[0] == "s0";
    return std::string("module ") + (isSymbolic ? "attributes {nn.symbols = [#nn.symbol<\"n0\", 0, 2000>]} " : "") + "{\nfunc.func @main(" + arguments + ") -> (" + resultTypes +
           ") {\n%y:2 = nn." + name + " " + list + " {" + attributes + "} : (" + types + ") -> (" + resultTypes +
           ")\nreturn %y#0, %y#1 : " + resultTypes + "\n}\n}\n";
  }
};

OpText causalConv(const std::string &tokens, int64_t channels, int64_t taps, bool bias, bool initial, const std::string &attributes = "") {
  std::string c = number(channels);
  OpText op{"causal_conv", attributes, {{"", {tokens, c}}, {"", {number(taps), c}, true}}, {{tokens, c}, {number(taps - 1), c}}};
  if (bias)
    op.operands.push_back({"bias", {c}, true});
  if (initial)
    op.operands.push_back({"initial", {number(taps - 1), c}});
  return op;
}

TEST(CompiledCausalConv, SizesAndOptionalOperands) {
  const std::vector<std::vector<int64_t>> tokens{{1}, {0}, {2}, {3}, {4}, {19}};
  for (int64_t channels : {1, 33, 256, 300})
    for (int64_t taps : {2, 4}) {
      SCOPED_TRACE(number(channels) + " channels, " + number(taps) + " taps");
      expectCompiled(causalConv("s0", channels, taps, true, true, "silu").text(), tokens, {.simplify = channels == 33, .threads = 2});
      expectCompiled(causalConv("s0", channels, taps, false, false).text(), tokens, {.simplify = false});
    }
  for (const char *count : {"0", "1", "5"})
    expectCompiled(causalConv(count, 20, 3, true, true).text());
}

TEST(CompiledCausalConv, ElementTypes) {
  for (auto [element, tolerance] : {std::pair("f64", 1e-6), {"f16", 4e-3}, {"bf16", 3e-2}}) {
    OpText op = causalConv("6", 20, 4, true, true, "silu");
    op.element = element;
    expectCompiled(op.text(), {{}}, {.tolerance = tolerance});
  }
}

struct ScanSizes {
  int64_t heads, size, groups, states;
  bool sharedDecay = false;
};

/// With all optional operands, or with none.
OpText selectiveScan(const std::string &tokens, const ScanSizes &s, bool all, const std::string &attributes = "") {
  std::string h = number(s.heads), p = number(s.size), g = number(s.groups), n = number(s.states);
  OpText op{"selective_scan",
            attributes,
            {{"", {tokens, h, p}}, {"", {tokens, h}}, {"", {s.sharedDecay ? "1" : n, h}, true}, {"", {tokens, g, n}}, {"", {tokens, g, n}}},
            {{tokens, h, p}, {n, h, p}}};
  if (all) {
    op.operands.push_back({"delta_bias", {h}, true});
    op.operands.push_back({"skip", {h}, true});
    op.operands.push_back({"gate", {tokens, h, p}});
    op.operands.push_back({"initial", {n, h, p}});
  }
  return op;
}

TEST(CompiledSelectiveScan, SizesAndOptionalOperands) {
  const std::vector<std::vector<int64_t>> tokens{{1}, {0}, {2}, {5}};
  const ScanSizes sizes[] = {{1, 1, 1, 1}, {70, 1, 1, 16}, {128, 1, 1, 6}, {40, 1, 2, 5}, {12, 1, 2, 3, true},
                             {4, 8, 1, 5, true}, {4, 16, 4, 8, true}, {6, 3, 2, 4}};
  for (const ScanSizes &s : sizes) {
    SCOPED_TRACE(number(s.heads) + " heads of " + number(s.size) + ", " + number(s.groups) + " groups, " + number(s.states) + " states");
    expectCompiled(selectiveScan("s0", s, true, "softplus").text(), tokens, {.tolerance = 1e-3, .simplify = s.heads == 70, .threads = 2});
    expectCompiled(selectiveScan("s0", s, false, "delta_min = 0.1 : f32, delta_max = 0.5 : f32").text(), tokens, {.simplify = false});
  }
  for (const char *count : {"0", "1", "4"})
    expectCompiled(selectiveScan(count, {20, 1, 1, 4}, true, "softplus").text());
}

TEST(CompiledSelectiveScan, ElementTypes) {
  for (auto [element, tolerance] : {std::pair("f64", 1e-6), {"f16", 1e-2}, {"bf16", 6e-2}})
    for (const char *tokens : {"1", "3"}) {
      OpText op = selectiveScan(tokens, {20, 1, 1, 4}, true, "softplus");
      op.element = element;
      expectCompiled(op.text(), {{}}, {.tolerance = tolerance});
    }
}

// What models read is parts of wider products: they are read in place.
TEST(CompiledSelectiveScan, OperandsAreViews) {
  std::string wide = symbolicType({"s0", "96"}, "f32"), part = symbolicType({"s0", "40"}, "f32"), x = symbolicType({"s0", "40", "1"}, "f32");
  std::string small = symbolicType({"s0", "8"}, "f32"), group = symbolicType({"s0", "1", "8"}, "f32");
  auto slice = [&](const std::string &name, int64_t from, const std::string &type) {
    return "%" + name + " = nn.slice %in {starts = array<i64: 0, " + number(from) + ">, steps = array<i64: 1, 1>} : (" + wide + ") -> " + type + "\n";
  };
  auto reshape = [&](const std::string &name, const std::string &from, const std::string &fromType, const std::string &type) {
    return "%" + name + " = nn.reshape %" + from + " : (" + fromType + ") -> " + type + "\n";
  };
  std::string text = "module attributes {nn.symbols = [#nn.symbol<\"n0\", 1, 64>]} {\nfunc.func @main(%in: " + wide +
                     ", %f: tensor<4x40xf32> {test.constant}, %a: tensor<8x40xf32> {test.constant}) -> (" + x +
                     ", tensor<3x40xf32>, tensor<8x40x1xf32>) {\n" + slice("p", 0, part) + slice("g", 40, part) + slice("b", 80, small) +
                     slice("c", 88, small) + "%conv:2 = nn.causal_conv %p, %f {silu} : (" + part + ", tensor<4x40xf32>) -> (" + part +
                     ", tensor<3x40xf32>)\n" + reshape("x", "conv#0", part, x) + reshape("z", "g", part, x) + reshape("bg", "b", small, group) +
                     reshape("cg", "c", small, group) + "%y:2 = nn.selective_scan %x, %g, %a, %bg, %cg gate %z {softplus} : (" + x + ", " +
                     part + ", tensor<8x40xf32>, " + group + ", " + group + ", " + x + ") -> (" + x +
                     ", tensor<8x40x1xf32>)\nreturn %y#0, %conv#1, %y#1 : " + x + ", tensor<3x40xf32>, tensor<8x40x1xf32>\n}\n}\n";
  expectCompiled(text, {{1}, {6}}, {.tolerance = 1e-3});
}

/// Numbers as models have them: steps of 0.001 to 0.1, decays of 1 to N.
class Recurrence {
public:
  Recurrence(int64_t tokens, const ScanSizes &s) : t(tokens), s(s) {
    x = normal(t * s.heads * s.size);
    delta = normal(t * s.heads);
    for (float &d : delta)
      d = 0.01f * std::exp(d);
    a.resize((s.sharedDecay ? 1 : s.states) * s.heads);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = -1.0f - float(s.sharedDecay ? i % 16 : i / s.heads);
    b = normal(t * s.groups * s.states);
    c = normal(t * s.groups * s.states);
    initial = normal(s.states * s.heads * s.size);
  }

  std::vector<HostTensor> inputs() const {
    return {tensor({t, s.heads, s.size}, x), tensor({t, s.heads}, delta), tensor({s.sharedDecay ? 1 : s.states, s.heads}, a),
            tensor({t, s.groups, s.states}, b), tensor({t, s.groups, s.states}, c), tensor({s.states, s.heads, s.size}, initial)};
  }

  /// The recurrence as it is written, in double precision.
  std::vector<HostTensor> expected() const {
    std::vector<double> state(initial.begin(), initial.end());
    std::vector<float> y;
    for (int64_t i = 0; i < t; ++i)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t p = 0; p < s.size; ++p) {
          double sum = 0, d = delta[i * s.heads + h];
          for (int64_t n = 0; n < s.states; ++n) {
            int64_t group = (i * s.groups + h * s.groups / s.heads) * s.states + n;
            double &value = state[(n * s.heads + h) * s.size + p];
            value = std::exp(d * a[(s.sharedDecay ? 0 : n * s.heads) + h]) * value + d * b[group] * x[(i * s.heads + h) * s.size + p];
            sum += c[group] * value;
          }
          y.push_back(float(sum));
        }
    return {tensor({t, s.heads, s.size}, y), tensor({s.states, s.heads, s.size}, std::vector<float>(state.begin(), state.end()))};
  }

private:
  std::vector<float> normal(int64_t count) {
    std::normal_distribution<float> distribution;
    std::vector<float> values(count);
    for (float &value : values)
      value = distribution(random);
    return values;
  }
  static HostTensor tensor(std::vector<int64_t> shape, const std::vector<float> &values) {
    HostTensor result;
    result.elementType = AJOUR_F32;
    result.shape = std::move(shape);
    auto *bytes = reinterpret_cast<const char *>(values.data());
    result.data.assign(bytes, bytes + values.size() * sizeof(float));
    return result;
  }

  int64_t t;
  ScanSizes s;
  std::mt19937 random{7};
  std::vector<float> x, delta, a, b, c, initial;
};

OpText plainScan(const std::string &tokens, const ScanSizes &s) {
  OpText op = selectiveScan(tokens, s, false);
  op.operands[2].constant = false;
  op.operands.push_back({"initial", {number(s.states), number(s.heads), number(s.size)}});
  return op;
}

// Mamba's scan and Mamba-2's, the latter with one group and with eight.
TEST(CompiledSelectiveScan, AgreesWithTheRecurrenceInDoublePrecision) {
  for (const ScanSizes &s : {ScanSizes{96, 1, 1, 16}, ScanSizes{8, 16, 1, 32, true}, ScanSizes{8, 16, 8, 32, true}}) {
    mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(plainScan("s0", s).text());
    ASSERT_TRUE(module);
    for (int64_t tokens : {1, 7, 64, 1000}) {
      SCOPED_TRACE(number(tokens) + " tokens, groups " + number(s.groups));
      Recurrence recurrence(tokens, s);
      expectCompiled(*module, recurrence.inputs(), recurrence.expected(), {.tolerance = 1e-4, .simplify = false});
    }
  }
}

// Nothing is unrolled over tokens: the artifact is as large for a thousand as for eight.
TEST(CompiledSelectiveScan, CodeDoesNotGrowWithTheNumberOfTokens) {
  auto bytes = [](int64_t tokens) {
    uintmax_t sum = 0;
    for (const std::string &text : {plainScan(number(tokens), {96, 1, 1, 16}).text(), plainScan(number(tokens), {8, 16, 1, 32, true}).text(),
                                    causalConv(number(tokens), 96, 4, true, true).text()}) {
      mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(text);
      std::unique_ptr<CompiledModel> compiled = module ? CompiledModel::compile(*module) : nullptr;
      EXPECT_TRUE(compiled);
      sum += compiled ? std::filesystem::file_size(compiled->path()) : 0;
    }
    return double(sum);
  };
  double few = bytes(8), many = bytes(1000);
  EXPECT_NEAR(many / few, 1, 0.05) << few << " and " << many << " bytes";
}

} // namespace
