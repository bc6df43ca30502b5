//===- AttentionTest.cpp - compiled attention against the reference ----------------------------===//
#include "Compiled.h"
#include "ModuleText.h"

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
