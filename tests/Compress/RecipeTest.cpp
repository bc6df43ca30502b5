//===- RecipeTest.cpp - recipes as users write them ---------------------------===//
#include "ajour/Compress/Recipe.h"

#include <gtest/gtest.h>

using namespace ajour::compress;

namespace {

/// The message with which a recipe is refused; empty if it is not.
std::string refusal(const std::string &text) {
  try {
    parseRecipe(text, "r.yaml");
  } catch (const CompressError &problem) {
    return problem.what();
  }
  return "";
}

void expectRefused(const std::string &text, const std::string &message) {
  EXPECT_EQ(refusal(text), "recipe 'r.yaml': " + message) << text;
}

TEST(Recipe, JsonAndYamlSayTheSame) {
  Recipe json = parseRecipe(R"({
    // comments are allowed
    "rules": [
      {"layers": "stem*", "structure": "dense"},
      {"op": ["conv", "linear"], "kernel": "3x3", "structure": "pattern", "entries": 4, "table": 6, "connectivity": 0.5},
      {"structure": "c4n", "n": 1, "share": 8, "bits": 4, "group": 32, "method": "magnitude"}],
    "damping": 0.02, "activations": 8})",
                            "r.json");
  Recipe yaml = parseRecipe(R"(
rules:
  - layers: "stem*"   # kept
    structure: dense
  - {op: [conv, linear], kernel: 3x3, structure: pattern, entries: 4, table: 6, connectivity: 0.5}
  - {structure: c4n, n: 1, share: 8, bits: 4, group: 32, method: magnitude}
damping: 0.02
activations: 8
)",
                            "r.yaml");
  for (const Recipe *recipe : {&json, &yaml}) {
    ASSERT_EQ(recipe->rules.size(), 3u);
    EXPECT_EQ(recipe->damping, 0.02);
    EXPECT_EQ(recipe->activations, 8);
    EXPECT_EQ(recipe->rules[0].layers, std::vector<std::string>{"stem*"});
    EXPECT_FALSE(recipe->rules[0].plan.changes());
    const Rule &pattern = recipe->rules[1];
    EXPECT_EQ(pattern.kinds, (std::vector<LayerKind>{LayerKind::Conv, LayerKind::Linear}));
    EXPECT_EQ(pattern.kernel, (std::vector<int64_t>{3, 3}));
    EXPECT_EQ(toString(pattern.plan), "pattern of 4, 50 % of kernels gone");
    EXPECT_EQ(pattern.plan.table, 6);
    const LayerPlan &c4n = recipe->rules[2].plan;
    EXPECT_EQ(toString(c4n), "c4^1, 8 rows alike, int4 in groups of 32");
    EXPECT_EQ(c4n.method, Method::Magnitude);
  }
}

TEST(Recipe, RulesFit) {
  Recipe recipe = parseRecipe(R"({"rules": [
      {"layers": ["a*", "*weight"], "op": "conv", "kernel": "1x1", "first": false, "structure": "4x1", "ratio": 0.755}]})",
                              "r");
  const Rule &rule = recipe.rules[0];
  EXPECT_TRUE(rule.fits("a1", "w", LayerKind::Conv, {1, 1}, false));
  EXPECT_TRUE(rule.fits("b", "b.weight", LayerKind::Conv, {1, 1}, false));
  EXPECT_FALSE(rule.fits("b", "w", LayerKind::Conv, {1, 1}, false));
  EXPECT_FALSE(rule.fits("a1", "w", LayerKind::Depthwise, {1, 1}, false));
  EXPECT_FALSE(rule.fits("a1", "w", LayerKind::Conv, {3, 3}, false));
  EXPECT_FALSE(rule.fits("a1", "w", LayerKind::Conv, {1, 1}, true));
  EXPECT_EQ(toString(rule.plan), "block 4x1 at 75.5 %");
}

TEST(Recipe, SchemeMapsKinds) {
  Recipe recipe = parseRecipe("scheme: auto\nratio: 0.75\nbits: 8\n", "r");
  auto planFor = [&](LayerKind kind, std::vector<int64_t> window, bool first) {
    for (const Rule &rule : recipe.rules)
      if (rule.fits("n", "w", kind, window, first))
        return rule.plan;
    return LayerPlan();
  };
  // 4 of 9 taps and 56 % of the kernels make a quarter.
  LayerPlan pattern = planFor(LayerKind::Conv, {3, 3}, false);
  EXPECT_EQ(pattern.structure, Structure::Pattern);
  EXPECT_NEAR((1 - pattern.connectivity) * 4 / 9, 0.25, 1e-12);
  EXPECT_EQ(toString(planFor(LayerKind::Conv, {1, 1}, false)), "block 4x1 at 75 %, int8");
  EXPECT_EQ(toString(planFor(LayerKind::Linear, {}, false)), "block 4x1 at 75 %, int8");
  EXPECT_EQ(toString(planFor(LayerKind::Depthwise, {3, 3}, false)), "dense, int8");
  EXPECT_EQ(toString(planFor(LayerKind::Conv, {3, 3}, true)), "dense, int8");
}

TEST(Recipe, DamagedText) {
  expectRefused("", "is null, expected keys and values");
  expectRefused("[1]", "is [1], expected keys and values");
  expectRefused("{\"rules\": [}", "is not JSON: line 1 is damaged");
  expectRefused("{\"rules\": [],\n\"rules\": []}", "has the key 'rules' twice");
  expectRefused("rules: []\nrules: []\n", "has the key 'rules' twice");
  EXPECT_NE(refusal("rules: [").find("recipe 'r.yaml': is not YAML: line 1"), std::string::npos) << refusal("rules: [");
  expectRefused("rules: *other\n", "holds an alias, a block of text or nothing where a value is expected");
  expectRefused("a: 1\n---\nb: 1\n", "holds several documents, expected one");
  std::string deep(40, '[');
  EXPECT_NE(refusal(deep), "");
  EXPECT_NE(refusal("{\"rules\": " + deep), "");
}

TEST(Recipe, UnknownKeysAndValues) {
  expectRefused("damping: 0.1\n", "has neither 'rules' nor 'scheme'");
  expectRefused("rules: []\n", "has an empty list 'rules'");
  expectRefused("rules: 3\n", "'rules' is 3, expected a list");
  expectRefused("rules: [dense]\n", "rule 1: is \"dense\", expected keys and values");
  expectRefused("rules: [{bits: 8}]\nspeed: 2\n",
                "has no use for the key 'speed'; it takes rules, activations, target, cpu and damping; or scheme, ratio, bits, "
                "group, method, adjust, activations, target, cpu and damping");
  expectRefused("rules: [{bits: 8}]\ncpu: avx2\n", "has 'cpu', which says what 'target' is about, but no 'target'");
  expectRefused("rules: [{bits: 8}]\ntarget: 2\n", "'target' is 2, expected a number of at least 0 and less than 1");
  expectRefused("rules: [{bits: 8}, {structure: c4n, ratio: 0.5}]\n",
                "rule 2: has no use for the key 'ratio'; it takes layers, op, kernel, first, structure, n, share, bits, "
                "group, method and adjust");
  expectRefused("rules: [{structure: round}]\n", "rule 1: 'structure' is \"round\", expected dense, c4n, nm, pattern, block, "
                                                 "block_punched, 4x1 or unstructured");
  expectRefused("rules: [{structure: c4n, n: 4}]\n", "rule 1: 'n' is 4, expected a whole number from 1 to 3");
  expectRefused("rules: [{structure: c4n, share: 3}]\n", "rule 1: 'share' is 3, expected 1, 4, 8 or 16 outputs");
  expectRefused("rules: [{structure: nm, kept: 4}]\n", "rule 1: 'kept' is 4, expected less than the 4 of 'of'");
  expectRefused("rules: [{structure: block}]\n", "rule 1: has the structure 'block' but no 'ratio', the share of zeros");
  expectRefused("rules: [{structure: block, ratio: 1}]\n",
                "rule 1: 'ratio' is 1, expected a number of at least 0 and less than 1");
  expectRefused("rules: [{structure: pattern, connectivity: -0.1}]\n",
                "rule 1: 'connectivity' is -0.1, expected a number of at least 0 and less than 1");
  expectRefused("rules: [{bits: 9}]\n", "rule 1: 'bits' is 9, expected a whole number from 2 to 8");
  expectRefused("rules: [{bits: \"8\"}]\n", "rule 1: 'bits' is \"8\", expected a whole number from 2 to 8");
  expectRefused("rules: [{group: 32}]\n", "rule 1: has a 'group' of weights with a scale together, but no 'bits'");
  expectRefused("rules: [{bits: 8, method: luck}]\n", "rule 1: 'method' is \"luck\", expected second-order or magnitude");
  expectRefused("rules: [{adjust: true, method: magnitude}]\n",
                "rule 1: has 'adjust', which is second-order, and the method magnitude");
  expectRefused("rules: [{kernel: 3x, bits: 8}]\n", "rule 1: 'kernel' is \"3x\", expected sizes such as 3x3");
  expectRefused("rules: [{op: relu, bits: 8}]\n", "rule 1: 'op' is \"relu\", expected conv, depthwise or linear");
  expectRefused("rules: [{op: 3, bits: 8}]\n", "rule 1: 'op' is 3, expected a word or a list of words");
  expectRefused("rules: [{structure: 3}]\n", "rule 1: 'structure' is 3, expected a word");
  expectRefused("rules: [{first: 3}]\n", "rule 1: 'first' is 3, expected true or false");
  expectRefused("rules: [{layers: \"[a\"}]\n", "rule 1: 'layers' holds '[a', which is not a glob of *, ? and [...]");
  expectRefused("activations: 4\nrules: [{bits: 8}]\n", "'activations' is 4, expected a whole number from 8 to 8");
  expectRefused("scheme: best\nratio: 0.5\n", "'scheme' is \"best\", expected auto");
  expectRefused("scheme: auto\n", "has a 'scheme' but no 'ratio', the share of zeros");
  expectRefused("scheme: auto\nratio: 0.5\nrules: []\n", "has both 'scheme' and 'rules', expected one of them");
}

} // namespace
