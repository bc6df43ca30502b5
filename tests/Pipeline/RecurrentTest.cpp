//===- RecurrentTest.cpp - compiled recurrences against the reference --------------------------===//
#include "Compiled.h"
#include "ModuleText.h"

#include <algorithm>

using namespace ajour::test;

namespace {

/// A cell written as a module of its own, with random operands.
struct CellText {
  std::string name;
  int64_t gates;
  std::string batch, steps; ///< numbers or symbols
  int64_t hidden;
  std::string attributes, element = "f32";
  bool constantWeights = true;
  /// Optional operands: keyword and sizes ("B" is the batch).
  std::vector<std::pair<std::string, std::vector<std::string>>> optional;
  int64_t state = 0; ///< width of h; 0: hidden

  std::string text() const {
    int64_t r = state ? state : hidden;
    auto size = [](int64_t value) { return std::to_string(value); };
    std::vector<std::string> types{symbolicType({steps, batch, size(gates * hidden)}, element),
                                   tensorType({gates * hidden, r}, element)};
    std::string arguments = "%x: " + types[0] + ", %r: " + types[1] + (constantWeights ? " {test.constant}" : "");
    std::string operands = "%x, %r";
    for (const auto &[keyword, sizes] : optional) {
      std::vector<std::string> own = sizes;
      std::replace(own.begin(), own.end(), std::string("B"), batch);
      bool isState = keyword.rfind("initial", 0) == 0, isLengths = keyword == "lengths";
      types.push_back(symbolicType(own, isLengths ? "i32" : element));
      arguments += ", %" + keyword + ": " + types.back() +
                   (constantWeights && !isState && !isLengths ? " {test.constant}" : "");
      operands += " " + keyword + " %" + keyword;
    }
    std::vector<std::string> results{symbolicType({steps, batch, size(r)}, element),
                                     symbolicType({batch, size(r)}, element)};
    if (name == "lstm")
      results.push_back(symbolicType({batch, size(hidden)}, element));
    auto list = [](const std::vector<std::string> &parts) {
      std::string all;
      for (const std::string &part : parts)
        all += (all.empty() ? "" : ", ") + part;
      return all;
    };
    std::string values = "%y#0, %y#1";
    if (results.size() == 3)
      values += ", %y#2";
    std::string symbols;
    if (batch[0] == 's' || steps[0] == 's')
      symbols = "#nn.symbol<\"n0\", 0, 64>";
    if (batch == "s1" || steps == "s1")
      symbols += ", #nn.symbol<\"n1\", 0, 64>";
    return "module attributes {nn.symbols = [" + symbols + "]} {\nfunc.func @main(" + arguments + ") -> (" + list(results) +
           ") {\n%y:" + size(results.size()) + " = nn." + name + " " + operands + " {" + attributes + "} : (" +
           list(types) + ") -> (" + list(results) + ")\nreturn " + values + " : " + list(results) + "\n}\n}\n";
  }
};

const std::string s = "#nn.cell_activation<sigmoid>", t = "#nn.cell_activation<tanh>";
const std::string rnnCells = "activations = [" + t + "]", gruCells = "activations = [" + s + ", " + t + "]",
                  lstmCells = "activations = [" + s + ", " + t + ", " + t + "]";

// One step becomes products and element-wise operations, more are one dispatch; with and without kernels, rows that
// fill a tile of the kernel and others, units that fill a panel and others.
TEST(CompiledRecurrent, Sizes) {
  struct Row {
    const char *steps, *batch;
    int64_t hidden;
    bool constant;
  } rows[] = {{"1", "1", 33, true}, {"1", "3", 5, false}, {"4", "1", 33, true}, {"4", "3", 5, true},
              {"4", "3", 5, false}, {"4", "17", 33, true}, {"2", "17", 1, true}};
  for (const Row &row : rows) {
    SCOPED_TRACE(std::string(row.steps) + " steps, batch " + row.batch + ", " + std::to_string(row.hidden) + " units");
    std::string h = std::to_string(row.hidden);
    expectCompiled(
        CellText{"rnn", 1, row.batch, row.steps, row.hidden, rnnCells, "f32", row.constant, {{"initial", {"B", h}}}}.text());
    expectCompiled(CellText{"lstm", 4, row.batch, row.steps, row.hidden, lstmCells, "f32", row.constant,
                            {{"initial", {"B", h}}, {"initial_cell", {"B", h}}}}.text());
    for (const char *linear : {"", ", linear_before_reset"})
      expectCompiled(CellText{"gru", 3, row.batch, row.steps, row.hidden, gruCells + linear, "f32", row.constant,
                              {{"candidate_bias", {h}}, {"initial", {"B", h}}}}.text());
  }
}

TEST(CompiledRecurrent, NoState) {
  for (const char *steps : {"0", "1", "3"}) {
    expectCompiled(CellText{"rnn", 1, "2", steps, 6, rnnCells}.text());
    expectCompiled(CellText{"gru", 3, "2", steps, 6, gruCells}.text());
    expectCompiled(CellText{"gru", 3, "2", steps, 6, gruCells + ", linear_before_reset", "f32", true,
                            {{"candidate_bias", {"6"}}}}.text());
    expectCompiled(CellText{"lstm", 4, "2", steps, 6, lstmCells}.text());
  }
}

TEST(CompiledRecurrent, LengthsAndReverse) {
  for (const char *reverse : {"", ", reverse"}) {
    expectCompiled(CellText{"rnn", 1, "5", "6", 9, rnnCells + reverse, "f32", true, {{"lengths", {"B"}}}}.text());
    for (const char *linear : {"", ", linear_before_reset"})
      expectCompiled(CellText{"gru", 3, "5", "6", 9, gruCells + reverse + linear, "f32", true,
                              {{"initial", {"B", "9"}}, {"lengths", {"B"}}}}.text());
    expectCompiled(CellText{"lstm", 4, "5", "6", 9, lstmCells + reverse, "f32", true,
                            {{"projection", {"4", "9"}}, {"initial", {"B", "4"}}, {"lengths", {"B"}}}, 4}.text());
    expectCompiled(CellText{"lstm", 4, "5", "1", 9, lstmCells + reverse, "f32", true, {{"lengths", {"B"}}}}.text());
  }
}

TEST(CompiledRecurrent, FormsOfLstm) {
  for (const char *steps : {"1", "3"})
    for (const char *more : {", input_forget, clip = 0.5 : f32", ", cell_clip = 0.3 : f32, projection_clip = 0.2 : f32"})
      for (bool constant : {true, false}) {
        SCOPED_TRACE(std::string(steps) + more);
        expectCompiled(CellText{"lstm", 4, "3", steps, 7, lstmCells + more, "f32", constant,
                                {{"peephole", {"3", "7"}}, {"initial_cell", {"B", "7"}}}}.text());
        expectCompiled(CellText{"lstm", 4, "3", steps, 7, lstmCells + more, "f32", constant,
                                {{"peephole", {"3", "7"}}, {"norm", {"4", "7"}}, {"norm_bias", {"4", "7"}},
                                 {"projection", {"5", "7"}}, {"projection_bias", {"5"}}, {"initial", {"B", "5"}},
                                 {"initial_cell", {"B", "7"}}}, 5}.text(),
                       {{}}, {.tolerance = 1e-3});
      }
}

TEST(CompiledRecurrent, ElementTypes) {
  for (const char *element : {"f64", "f16", "bf16"})
    for (const char *steps : {"1", "4"}) {
      double tolerance = element == std::string("f64") ? 1e-6 : element == std::string("f16") ? 4e-3 : 3e-2;
      expectCompiled(CellText{"gru", 3, "2", steps, 6, gruCells, element, true, {{"initial", {"B", "6"}}}}.text(), {{}},
                     {.tolerance = tolerance});
      expectCompiled(CellText{"lstm", 4, "2", steps, 6, lstmCells, element, true, {{"initial", {"B", "6"}}}}.text(), {{}},
                     {.tolerance = tolerance});
    }
}

TEST(CompiledRecurrent, SymbolicStepsAndBatch) {
  // Few steps: with random weights a recurrence makes much of a small difference.
  const std::vector<std::vector<int64_t>> sizes{{1, 1}, {5, 3}, {9, 2}, {0, 2}, {2, 0}};
  for (bool constant : {true, false}) {
    expectCompiled(CellText{"gru", 3, "s1", "s0", 10, gruCells, "f32", constant, {{"initial", {"B", "10"}}}}.text(), sizes);
    expectCompiled(CellText{"lstm", 4, "s1", "s0", 10, lstmCells, "f32", constant, {{"lengths", {"B"}}}}.text(), sizes);
  }
  expectCompiled(CellText{"rnn", 1, "s0", "1", 10, rnnCells, "f32", true, {{"initial", {"B", "10"}}}}.text(), {{1}, {5}, {0}});
}

} // namespace
