//===- Rope.cpp - rotary position embeddings ------------------------------------------===//
#include "Rope.h"

#include <algorithm>
#include <cmath>

namespace ajour::architectures {

RopeConfig plainRope(int64_t size, double base, double factor) {
  RopeConfig rope;
  rope.size = size;
  for (int64_t i = 0; i < size / 2; ++i)
    rope.frequencies.push_back(float(std::pow(base, -2.0 * double(i) / double(size)) / factor));
  return rope;
}

/// Llama 3.1: long waves are stretched, short ones stay, those between are mixed.
static void stretchLongWaves(RopeConfig &rope, double factor, double low, double high, double original) {
  for (float &frequency : rope.frequencies) {
    double wave = 2 * M_PI / double(frequency);
    if (wave > original / low) {
      frequency = float(double(frequency) / factor);
    } else if (wave >= original / high) {
      double smooth = (original / wave - low) / (high - low);
      frequency = float(double(frequency) * ((1.0 - smooth) / factor + smooth));
    }
  }
}

/// YaRN (Peng et al.): pairs that turn more than `fast` times within the original context stay, those that turn less than `slow`
/// times are stretched, those between are mixed by their number.
static void mixByTurns(RopeConfig &rope, double base, double factor, double original, double fast, double slow, bool whole) {
  double size = double(rope.size);
  auto pairOf = [&](double turns) { return size * std::log(original / (turns * 2 * M_PI)) / (2 * std::log(base)); };
  double low = pairOf(fast), high = pairOf(slow);
  if (whole) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high)
    high += 0.001;
  for (size_t i = 0; i < rope.frequencies.size(); ++i) {
    double stretched = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    rope.frequencies[i] = float(double(rope.frequencies[i]) * (stretched / factor + 1.0 - stretched));
  }
}

/// How YaRN keeps attention as sharp as it was.
static double yarnMagnitude(double factor, double scale = 1.0) { return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0; }

static void readYarn(Parameters &scaling, RopeConfig &rope, double base, double factor, double original) {
  double fast = scaling.real("beta_fast", 32, true), slow = scaling.real("beta_slow", 1, true);
  mixByTurns(rope, base, factor, original, fast, slow, scaling.flag("truncate", true));
  double magnitude = yarnMagnitude(factor);
  if (double one = scaling.real("mscale", 0), all = scaling.real("mscale_all_dim", 0); one != 0 && all != 0)
    magnitude = yarnMagnitude(factor, one) / yarnMagnitude(factor, all);
  rope.magnitude = scaling.real("attention_factor", magnitude, true);
}

static void readLongRope(Parameters &p, Parameters &scaling, RopeConfig &rope, int64_t context) {
  size_t pairs = rope.frequencies.size();
  std::vector<double> shortFactors = scaling.numbers("short_factor", pairs), longFactors = scaling.numbers("long_factor", pairs);
  if (shortFactors.size() != pairs || longFactors.size() != pairs)
    return scaling.refuse(shortFactors.size() != pairs ? "short_factor" : "long_factor", std::to_string(pairs) + " factors are expected");
  int64_t original = scaling.integer("original_max_position_embeddings", 1, 1 << 24, p.integer("original_max_position_embeddings", 1, 1 << 24, context));
  double factor = scaling.real("factor", double(context) / double(original), true);
  double magnitude = factor <= 1 || original == 1 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(double(original)));
  rope.magnitude = scaling.real("attention_factor", magnitude, true);
  rope.longFrequencies = rope.frequencies;
  rope.longFrom = original;
  for (size_t i = 0; i < pairs; ++i) {
    if (!(shortFactors[i] > 0) || !(longFactors[i] > 0))
      return scaling.setProblem("a factor of the rotary embedding is not positive");
    rope.frequencies[i] = float(double(rope.frequencies[i]) / shortFactors[i]);
    rope.longFrequencies[i] = float(double(rope.longFrequencies[i]) / longFactors[i]);
  }
}

RopeConfig readRope(Parameters &p, int64_t size, double base, int64_t context) {
  const char *key = p.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  p.ignore({"rope_parameters", "rope_scaling"});
  RopeConfig rope = plainRope(size, base);
  if (!p.has(key))
    return rope;
  Parameters scaling = p.nested(key);
  base = scaling.real("rope_theta", base, true);
  rope = plainRope(size, base);
  std::string kind = scaling.text("rope_type", scaling.text("type", "default"));
  scaling.ignore({"rope_type", "type", "partial_rotary_factor"});
  double factor = scaling.real("factor", 0);
  if (kind == "linear" || kind == "llama3" || (kind == "yarn" && scaling.has("factor")))
    factor = scaling.real("factor", 0, true);
  if ((kind == "linear" || kind == "llama3") && !scaling.has("factor"))
    scaling.refuse("factor", "a positive number is expected");
  if (kind == "linear") {
    rope = plainRope(size, base, factor);
  } else if (kind == "llama3") {
    double low = scaling.real("low_freq_factor", 1, true), high = scaling.real("high_freq_factor", 4, true);
    stretchLongWaves(rope, factor, low, high, scaling.real("original_max_position_embeddings", 8192, true));
  } else if (kind == "yarn") {
    double original = scaling.real("original_max_position_embeddings", double(context), true);
    readYarn(scaling, rope, base, factor > 0 ? factor : double(context) / original, original);
  } else if (kind == "longrope" || kind == "su") {
    readLongRope(p, scaling, rope, context);
  } else if (kind != "default") {
    scaling.refuse(scaling.has("rope_type") ? "rope_type" : "type", "default, linear, llama3, yarn and longrope are known");
  }
  p.absorb(scaling);
  return rope;
}

RopeConfig readGGUFRope(Parameters &p, int64_t size, int64_t context) {
  double base = p.real("rope.freq_base", 10000, true);
  std::string kind = p.text("rope.scaling.type", p.has("rope.scale_linear") ? "linear" : "none");
  double factor = p.real("rope.scaling.factor", p.real("rope.scale_linear", 0));
  p.ignore({"rope.scaling.finetuned"});
  int64_t original = p.integer("rope.scaling.original_context_length", 1, 1 << 24, context);
  // A factor of 0 says that nothing is scaled.
  factor = factor == 0 ? 1 : p.real(p.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear", 1, true);
  RopeConfig rope = plainRope(size, base, kind == "linear" ? factor : 1);
  double magnitude = p.real("rope.scaling.attn_factor", 1, true);
  if (kind == "yarn") {
    p.only("rope.scaling.yarn_ext_factor", 1.0);
    mixByTurns(rope, base, factor, double(original), p.real("rope.scaling.yarn_beta_fast", 32, true),
               p.real("rope.scaling.yarn_beta_slow", 1, true), true);
    magnitude *= yarnMagnitude(factor) * p.real("rope.scaling.yarn_attn_factor", 1, true);
  } else if (kind != "none" && kind != "linear" && kind != "longrope") {
    p.refuse("rope.scaling.type", "none, linear, yarn and longrope are known, and factors in rope_freqs.weight");
  }
  rope.magnitude = float(magnitude);
  rope.longFrom = original; // where the file has factors for longer contexts
  return rope;
}

} // namespace ajour::architectures
