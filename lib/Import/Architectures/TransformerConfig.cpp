//===- TransformerConfig.cpp - configurations of decoder-only transformers ----------===//
#include "Transformer.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

using namespace llvm;

namespace ajour::architectures {

namespace {

using json = nlohmann::json;

/// What a file may ask of us.
constexpr int64_t layerLimit = 512, widthLimit = 1 << 20, vocabularyLimit = 1 << 24, contextLimit = 1 << 24;

/// A number of the configuration, its name and its bounds.
struct Field {
  const char *name;
  int64_t *value;
  int64_t most;
};

std::string checkBounds(ArrayRef<Field> fields) {
  for (const Field &field : fields)
    if (*field.value < 1 || *field.value > field.most)
      return std::string(field.name) + " is " + std::to_string(*field.value) + ", expected 1 to " + std::to_string(field.most);
  return "";
}

/// What holds whatever the file calls it.
std::string checkWhole(const TransformerConfig &c) {
  if (c.heads % c.keyValueHeads != 0)
    return std::to_string(c.heads) + " heads are no multiple of " + std::to_string(c.keyValueHeads) + " key-value heads";
  if (c.ropeSize % 2 != 0 || c.ropeSize > c.headSize)
    return std::to_string(c.ropeSize) + " rotated dimensions are odd, or more than the " + std::to_string(c.headSize) + " of a head";
  if (!(c.normEpsilon > 0) || !(c.ropeBase > 0) || !(c.ropeScale > 0))
    return "the epsilon of the norm, the base or the scale of the rotary embedding is not positive";
  return "";
}

/// The scaling of rotary frequencies that Llama 3.1 introduced: long waves are stretched, short ones stay.
std::vector<float> llama3Divisors(const TransformerConfig &c, double factor, double low, double high, double original) {
  std::vector<float> divisors;
  for (int64_t i = 0; i < c.ropeSize / 2; ++i) {
    double wave = 2 * M_PI * std::pow(double(c.ropeBase), 2.0 * double(i) / double(c.ropeSize));
    if (wave < original / high) {
      divisors.push_back(1.0f);
    } else if (wave > original / low) {
      divisors.push_back(float(factor));
    } else {
      double smooth = (original / wave - low) / (high - low);
      divisors.push_back(float(1.0 / ((1.0 - smooth) / factor + smooth)));
    }
  }
  return divisors;
}

} // namespace

std::string readConfig(const gguf::File &file, TransformerConfig &c) {
  const gguf::Value *architecture = file.find("general.architecture");
  if (!architecture || architecture->isArray() || architecture->type() != gguf::ValueType::String)
    return "general.architecture is missing or no string";
  c.architecture = architecture->string().str();
  c.names = ggufNames;
  // Whether neighbours are rotated in pairs, by architecture: files of the first kind have their rows reordered for it.
  static const std::map<std::string, bool> interleaved = {{"llama", true}, {"qwen2", false}, {"qwen3", false}};
  auto known = interleaved.find(c.architecture);
  if (known == interleaved.end())
    return "the architecture '" + c.architecture + "' is not known; llama, qwen2 and qwen3 are";
  c.ropeInterleaved = known->second;
  std::string prefix = c.architecture + ".";
  std::string problem;
  auto find = [&](const char *key) { return file.find(prefix + key); };
  auto integer = [&](const char *key, int64_t otherwise) {
    const gguf::Value *value = find(key);
    std::optional<int64_t> number = value && !value->isArray() ? value->integer() : std::nullopt;
    if (value && !number && problem.empty())
      problem = prefix + key + " is no integer";
    return number.value_or(otherwise);
  };
  auto real = [&](const char *key, float otherwise) {
    const gguf::Value *value = find(key);
    std::optional<double> number = value && !value->isArray() ? value->number() : std::nullopt;
    if (value && !number && problem.empty())
      problem = prefix + key + " is no number";
    return float(number.value_or(otherwise));
  };
  c.layers = integer("block_count", 0);
  c.hidden = integer("embedding_length", 0);
  c.heads = integer("attention.head_count", 0);
  c.keyValueHeads = integer("attention.head_count_kv", c.heads);
  c.context = integer("context_length", 0);
  c.headSize = integer("attention.key_length", c.heads > 0 ? c.hidden / c.heads : 0);
  c.ropeSize = integer("rope.dimension_count", c.headSize);
  c.normEpsilon = real("attention.layer_norm_rms_epsilon", 1e-5f);
  c.ropeBase = real("rope.freq_base", 10000.0f);
  if (!problem.empty())
    return problem;
  const gguf::Value *scaling = find("rope.scaling.type");
  std::string kind = scaling && !scaling->isArray() && scaling->type() == gguf::ValueType::String ? scaling->string().str() : "none";
  if (kind == "linear")
    c.ropeScale = real("rope.scaling.factor", 1.0f);
  else if (kind != "none")
    return prefix + "rope.scaling.type is '" + kind + "'; none and linear are known, and factors in rope_freqs.weight";
  if (find("rope.scale_linear"))
    c.ropeScale = real("rope.scale_linear", 1.0f);
  if (find("expert_count") && integer("expert_count", 0) > 0)
    return prefix + "expert_count: mixtures of experts are not supported";
  const gguf::Value *tokens = file.find("tokenizer.ggml.tokens");
  c.vocabulary = integer("vocab_size", tokens ? int64_t(tokens->size()) : 0);
  problem = checkBounds({{"block_count", &c.layers, layerLimit},
                         {"embedding_length", &c.hidden, widthLimit},
                         {"attention.head_count", &c.heads, widthLimit},
                         {"attention.head_count_kv", &c.keyValueHeads, widthLimit},
                         {"attention.key_length", &c.headSize, widthLimit},
                         {"rope.dimension_count", &c.ropeSize, widthLimit},
                         {"vocab_size", &c.vocabulary, vocabularyLimit},
                         {"context_length", &c.context, contextLimit}});
  return problem.empty() ? checkWhole(c) : prefix + problem;
}

std::string readConfig(StringRef text, TransformerConfig &c) {
  json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return "is no JSON object";
  c.names = huggingFaceNames;
  json type = root.contains("model_type") ? root["model_type"] : json();
  c.architecture = type.is_string() ? type.get<std::string>() : "";
  static const char *known[] = {"llama", "mistral", "qwen2", "qwen3"};
  if (!is_contained(known, StringRef(c.architecture)))
    return "model_type is '" + c.architecture + "'; llama, mistral, qwen2 and qwen3 are known";
  std::string problem;
  auto integer = [&](const char *key, int64_t otherwise) -> int64_t {
    if (!root.contains(key) || root[key].is_null())
      return otherwise;
    if (!root[key].is_number_integer() && problem.empty())
      problem = std::string(key) + " is no integer";
    return root[key].is_number_integer() ? root[key].get<int64_t>() : otherwise;
  };
  auto real = [&](const json &object, const char *key, double otherwise) {
    return object.contains(key) && object[key].is_number() ? object[key].get<double>() : otherwise;
  };
  c.layers = integer("num_hidden_layers", 0);
  c.hidden = integer("hidden_size", 0);
  c.heads = integer("num_attention_heads", 0);
  c.keyValueHeads = integer("num_key_value_heads", c.heads);
  c.headSize = integer("head_dim", c.heads > 0 ? c.hidden / c.heads : 0);
  c.vocabulary = integer("vocab_size", 0);
  c.context = integer("max_position_embeddings", 0);
  c.ropeSize = c.headSize;
  c.normEpsilon = float(real(root, "rms_norm_eps", 1e-6));
  c.ropeBase = float(real(root, "rope_theta", 10000.0));
  if (!problem.empty())
    return problem;
  if (json act = root.value("hidden_act", json("silu")); act != "silu")
    return "hidden_act is " + act.dump() + "; silu is known";
  if (root.contains("use_sliding_window") && root["use_sliding_window"] == true)
    return "use_sliding_window is not supported";
  problem = checkBounds({{"num_hidden_layers", &c.layers, layerLimit},
                         {"hidden_size", &c.hidden, widthLimit},
                         {"num_attention_heads", &c.heads, widthLimit},
                         {"num_key_value_heads", &c.keyValueHeads, widthLimit},
                         {"head_dim", &c.headSize, widthLimit},
                         {"vocab_size", &c.vocabulary, vocabularyLimit},
                         {"max_position_embeddings", &c.context, contextLimit}});
  if (problem.empty())
    problem = checkWhole(c);
  if (!problem.empty() || !root.contains("rope_scaling") || root["rope_scaling"].is_null())
    return problem;
  const json &scaling = root["rope_scaling"];
  json kind = scaling.is_object() ? scaling.value("rope_type", scaling.value("type", json())) : json();
  double factor = scaling.is_object() ? real(scaling, "factor", 0.0) : 0.0;
  if ((kind != "linear" && kind != "llama3") || !(factor > 0))
    return "rope_scaling is " + scaling.dump().substr(0, 200) + "; the types linear and llama3 with a positive factor are known";
  if (kind == "linear")
    c.ropeScale = float(factor);
  else
    c.ropeDivisors = llama3Divisors(c, factor, real(scaling, "low_freq_factor", 1.0), real(scaling, "high_freq_factor", 4.0),
                                    real(scaling, "original_max_position_embeddings", 8192.0));
  return "";
}

} // namespace ajour::architectures
