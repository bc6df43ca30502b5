//===- AttentionTest.cpp - compiled attention against the reference ----------------------------===//
#include "Compiled.h"
#include "ModuleText.h"

#include "ajour/Conversion/LayoutOps.h"
#include "ajour/Pipeline/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace ajour;
using namespace ajour::test;

namespace {

using Sizes = std::vector<std::string>;

/// nn.attention as a module of its own; sizes are numbers or symbols.
struct AttentionText {
  Sizes leading;
  std::string tokens, rows;
  int64_t heads, groups, size, width;
  std::string keyType = "f32", valueType = "f32", attributes = "scale = 0.25 : f32";
  bool positions = false;
  Sizes mask; ///< empty: none
  bool slopes = false, sinks = false;

  std::string text() const {
    auto number = [](int64_t value) { return std::to_string(value); };
    auto with = [&](Sizes rest) {
      Sizes all = leading;
      all.insert(all.end(), rest.begin(), rest.end());
      return all;
    };
    std::string types, arguments, operands = "%q, %k, %v";
    auto add = [&](const std::string &name, const std::string &keyword, const Sizes &sizes, const std::string &element) {
      std::string type = symbolicType(sizes, element);
      arguments += (arguments.empty() ? "%" : ", %") + name + ": " + type;
      types += (types.empty() ? "" : ", ") + type;
      if (!keyword.empty())
        operands += " " + keyword + " %" + name;
    };
    auto stored = [&](const std::string &name, const std::string &element, int64_t n) {
      add(name, "", with({rows, number(groups), number(element == "ui8" ? n / 2 : n)}), element);
    };
    add("q", "", with({tokens, number(heads), number(size)}), "f32");
    stored("k", keyType, size);
    stored("v", valueType, width);
    if (positions)
      add("p", "positions", {tokens}, "i64");
    if (!mask.empty())
      add("m", "mask", mask, "f32");
    if (slopes)
      add("l", "slopes", {number(heads)}, "f32");
    if (sinks)
      add("n", "sinks", {number(heads)}, "f32");
    for (auto [name, keyword, type] : {std::tuple("ks", "key_scales", keyType), {"vs", "value_scales", valueType}})
      if (type == "i8" || type == "ui8")
        add(name, keyword, with({rows, number(groups)}), "f32");
    std::string result = symbolicType(with({tokens, number(heads), number(width)}), "f32");
    bool second = arguments.find("s1") != std::string::npos;
    return std::string("module attributes {nn.symbols = [#nn.symbol<\"n0\", 0, 512>") + (second ? ", #nn.symbol<\"n1\", 0, 512>" : "") +
           "]} {\nfunc.func @main(" + arguments + ") -> " +
           result + " {\n%y = nn.attention " + operands + " {" + attributes + "} : (" + types + ") -> " + result + "\nreturn %y : " + result +
           "\n}\n}\n";
  }
};

} // namespace

TEST(Attention, OneTokenAndMany) {
  AttentionText text{{}, "s0", "200", 8, 2, 64, 64};
  text.positions = true;
  // Random positions lie on both sides of what there is.
  expectCompiled(text.text(), {{1}, {2}, {37}, {0}}, {.tolerance = 1e-5, .indexBound = 260, .threads = 2});
  text.attributes += ", window = 50 : i64";
  expectCompiled(text.text(), {{1}, {70}}, {.tolerance = 1e-5, .indexBound = 260});
}

TEST(Attention, OneKeyHeadForAll) {
  AttentionText text{{}, "s0", "s1", 6, 1, 20, 36};
  expectCompiled(text.text(), {{1, 65}, {90, 7}, {3, 0}}, {.tolerance = 1e-5, .threads = 2});
}

TEST(Attention, LeadingDimensionsAndMasks) {
  AttentionText text{{"2", "s0"}, "197", "197", 3, 3, 8, 8};
  expectCompiled(text.text(), {{1}, {3}}, {.tolerance = 1e-5, .threads = 2});
  for (const Sizes &mask : {Sizes{"197"}, {"197", "1"}, {"3", "1", "197"}, {"2", "s0", "3", "197", "197"}, {"2", "1", "1", "1", "197"}, {"1"}}) {
    text.mask = mask;
    expectCompiled(text.text(), {{2}}, {.tolerance = 1e-5});
  }
}

TEST(Attention, SlopesSinksAndSoftCap) {
  AttentionText text{{}, "s0", "100", 4, 2, 32, 32};
  text.positions = text.slopes = text.sinks = true;
  text.attributes += ", soft_cap = 2.0 : f32";
  expectCompiled(text.text(), {{1}, {9}}, {.tolerance = 1e-5, .indexBound = 110});
}

TEST(Attention, KeysAndValuesOfFewBits) {
  for (auto [key, value] : {std::pair("f16", "f16"), {"i8", "f16"}, {"f32", "i8"}, {"ui8", "ui8"}}) {
    AttentionText text{{}, "s0", "100", 4, 2, 64, 48, key, value, "scale = 0.01 : f32"};
    text.positions = true;
    expectCompiled(text.text(), {{1}, {20}}, {.tolerance = 2e-5, .indexBound = 110});
  }
}

TEST(Attention, FewTokensTakeSeveralKeyHeads) {
  for (std::string type : {"f32", "f16", "i8", "ui8"}) {
    AttentionText text{{"2"}, "s0", "150", 16, 8, 32, 32, type, type, "scale = 0.02 : f32"};
    text.positions = text.slopes = text.sinks = true;
    text.mask = {"16", "s0", "150"};
    expectCompiled(text.text(), {{1}, {4}, {5}, {40}}, {.tolerance = 2e-5, .indexBound = 160, .threads = 2});
  }
}

namespace {

/// An attention whose queries, keys and values are computed from the arguments of main by operations that move data.
struct ViewsText {
  std::string arguments, body;
  int values = 0;

  std::string argument(const std::string &name, const Sizes &sizes, const std::string &element = "f32") {
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + symbolicType(sizes, element);
    types["%" + name] = symbolicType(sizes, element);
    return "%" + name;
  }
  std::string op(const std::string &name, const std::string &x, const std::string &attributes, const Sizes &sizes, const std::string &element = "f32") {
    std::string result = "%v" + std::to_string(values++);
    types[result] = symbolicType(sizes, element);
    body += result + " = \"nn." + name + "\"(" + x + ") {" + attributes + "} : (" + types[x] + ") -> " + types[result] + "\n";
    return result;
  }
  std::string reshape(const std::string &x, const Sizes &sizes) { return op("reshape", x, "", sizes); }
  std::string transpose(const std::string &x, const std::vector<int64_t> &perm, const Sizes &sizes, const std::string &element = "f32") {
    return op("transpose", x, "perm = " + array(perm), sizes, element);
  }
  std::string slice(const std::string &x, const std::vector<int64_t> &starts, const std::vector<int64_t> &steps, const Sizes &sizes,
                    const std::string &element = "f32") {
    return op("slice", x, "starts = " + array(starts) + ", steps = " + array(steps), sizes, element);
  }
  std::string text(const std::string &q, const std::string &k, const std::string &v, const Sizes &sizes) {
    std::string result = symbolicType(sizes, "f32");
    return "module attributes {nn.symbols = [#nn.symbol<\"n0\", 0, 512>]} {\nfunc.func @main(" + arguments + ") -> " + result + " {\n" + body +
           "%y = nn.attention " + q + ", " + k + ", " + v + " {scale = 0.25 : f32} : (" + types[q] + ", " + types[k] + ", " + types[v] + ") -> " +
           result + "\nreturn %y : " + result + "\n}\n}\n";
  }

  std::map<std::string, std::string> types;
};

/// Right answers, and how many dispatches only move data.
void expectViews(const std::string &text, size_t copies, const std::vector<std::vector<int64_t>> &symbolSets = {{1}, {37}, {0}}) {
  expectCompiled(text, symbolSets, {.tolerance = 1e-5, .threads = 2});
  mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(text);
  ASSERT_TRUE(bool(module));
  ASSERT_TRUE(mlir::succeeded(simplify(*module)));
  ASSERT_TRUE(mlir::succeeded(lowerToExec(*module)));
  EXPECT_EQ(findLayoutDispatches(*module).size(), copies) << text;
}

} // namespace

TEST(Attention, ReadsPartsOfOneProduct) {
  // Thirds of [2, T, 3 * 4 * 16], taken in three dimensions and then in two.
  ViewsText thirds;
  std::string x = thirds.reshape(thirds.argument("x", {"2", "s0", "192"}), {"2", "s0", "3", "4", "16"});
  std::vector<std::string> parts;
  for (int64_t i = 0; i < 3; ++i)
    parts.push_back(thirds.reshape(thirds.slice(x, {0, 0, i, 0, 0}, {1, 1, 1, 1, 1}, {"2", "s0", "1", "4", "16"}), {"2", "s0", "4", "16"}));
  expectViews(thirds.text(parts[0], parts[1], parts[2], {"2", "s0", "4", "16"}), 0);

  // Two query heads for each key head: [T, 4 * 16 + 2 * 16 + 2 * 16].
  ViewsText grouped;
  x = grouped.argument("x", {"s0", "128"});
  std::string q = grouped.reshape(grouped.slice(x, {0, 0}, {1, 1}, {"s0", "64"}), {"s0", "4", "16"});
  std::string k = grouped.reshape(grouped.slice(x, {0, 64}, {1, 1}, {"s0", "32"}), {"s0", "2", "16"});
  std::string v = grouped.reshape(grouped.slice(x, {0, 96}, {1, 1}, {"s0", "32"}), {"s0", "2", "16"});
  expectViews(grouped.text(q, k, v, {"s0", "4", "16"}), 0);
}

TEST(Attention, ReadsRowsFarApart) {
  // Heads before rows, and every second row backwards.
  ViewsText heads;
  std::string q = heads.transpose(heads.argument("q", {"2", "4", "s0", "16"}), {0, 2, 1, 3}, {"2", "s0", "4", "16"});
  std::string k = heads.transpose(heads.argument("k", {"2", "4", "70", "16"}, "f16"), {0, 2, 1, 3}, {"2", "70", "4", "16"}, "f16");
  std::string v = heads.slice(heads.argument("v", {"2", "141", "4", "16"}), {0, 139, 0, 0}, {1, -2, 1, 1}, {"2", "70", "4", "16"});
  expectViews(heads.text(q, k, v, {"2", "s0", "4", "16"}), 0);
}

TEST(Attention, CopiesWhatHasNoStrides) {
  // Elements of a head apart; query heads of one key head apart; heads of 6 out of rows of 10, which no stride describes.
  ViewsText apart;
  std::string k = apart.transpose(apart.argument("k", {"4", "16", "s0"}), {2, 0, 1}, {"s0", "4", "16"});
  std::string q = apart.argument("q", {"s0", "4", "16"}), v = apart.argument("v", {"s0", "4", "16"});
  expectViews(apart.text(q, k, v, {"s0", "4", "16"}), 1);

  ViewsText grouped;
  q = grouped.transpose(grouped.argument("q", {"4", "s0", "16"}), {1, 0, 2}, {"s0", "4", "16"});
  k = grouped.argument("k", {"s0", "2", "16"}), v = grouped.argument("v", {"s0", "2", "16"});
  expectViews(grouped.text(q, k, v, {"s0", "4", "16"}), 1);

  ViewsText uneven;
  v = uneven.reshape(uneven.slice(uneven.argument("v", {"6", "11"}), {0, 0}, {1, 1}, {"6", "10"}), {"5", "2", "6"});
  q = uneven.argument("q", {"s0", "2", "6"}), k = uneven.argument("k", {"5", "2", "6"});
  expectViews(uneven.text(q, k, v, {"s0", "2", "6"}), 1);
}
