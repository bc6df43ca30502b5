//===- Recipe.h - what is to be done to which layer -----------*- C++ -*-===//
//
// A recipe is a list of rules in JSON or YAML; docs/COMPRESS.md describes it for users.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_COMPRESS_RECIPE_H
#define AJOUR_COMPRESS_RECIPE_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ajour::compress {

/// The work failed; the message is complete, in lower case, and names the file.
struct CompressError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which weights of a layer may be zero together.
enum class Structure {
  Dense,        ///< none: the layer keeps its weights
  C4n,          ///< of every 4 along the input, `pruned` are zero; `share` outputs have the same ones
  NM,           ///< of every `of` along the input, `kept` are not zero
  Pattern,      ///< each kernel keeps `entries` taps, one of `table` patterns; whole kernels go by `connectivity`
  Block,        ///< `rows` outputs and `cols` inputs are zero together, at each tap of the kernel for itself
  Unstructured, ///< any
};

/// How the zeros are chosen.
enum class Method {
  SecondOrder, ///< by what they cost at the layer's output; the other weights make up for them
  Magnitude,   ///< the smallest; the other weights stay as they are
};

/// What is done to one layer.
struct LayerPlan {
  Structure structure = Structure::Dense;
  int64_t pruned = 2, share = 1;
  int64_t kept = 2, of = 4;
  int64_t entries = 4, table = 8;
  double connectivity = 0; ///< share of the kernels that go
  int64_t rows = 8, cols = 4;
  double ratio = 0;  ///< share of zeros, for Block and Unstructured
  int64_t bits = 0;  ///< of a weight; 0: weights stay floating point
  int64_t group = 0; ///< inputs that have a scale together; 0: one scale for each output
  Method method = Method::SecondOrder;
  bool adjust = false; ///< of a dense layer: its weights may make up for changes of layers before it

  bool changes() const { return structure != Structure::Dense || bits != 0 || adjust; }
};

/// "c4n 2 of 4, 8 rows alike", "block 8x4 at 75 %", "dense"; with "int4 in groups of 32" behind it.
std::string toString(const LayerPlan &plan);

/// Kinds of layers that a rule can ask for.
enum class LayerKind { Conv, Depthwise, Linear };
const char *toString(LayerKind kind);

/// The first rule that fits a layer decides what is done to it.
struct Rule {
  int64_t number = 1;              ///< from 1, for messages
  std::vector<std::string> layers; ///< globs on the name of the node or of its weight; empty: every layer
  std::vector<LayerKind> kinds;    ///< empty: every kind
  std::vector<int64_t> kernel;     ///< empty: every size
  bool skipFirst = false;          ///< not for the model's first layer
  LayerPlan plan;

  bool fits(const std::string &node, const std::string &weight, LayerKind kind, const std::vector<int64_t> &window,
            bool isFirst) const;
};

struct Recipe {
  std::string file; ///< for messages
  std::vector<Rule> rules;
  int64_t activations = 0; ///< 8: inputs of layers with 8-bit weights become 8-bit integers too
  double target = 0;       ///< time of all products as a share of the dense one's; 0: shares are as rules say
  std::string cpu;         ///< code level that `target` is about; empty: this machine's
  double damping = 0.01;   ///< added to the diagonal of a layer's second moments, times their mean
};

/// Reads a recipe: JSON when it begins with '{', else YAML. Throws CompressError for what is unknown, impossible
/// or contradictory, with the rule and the key.
Recipe parseRecipe(const std::string &text, const std::string &file);

} // namespace ajour::compress

#endif
