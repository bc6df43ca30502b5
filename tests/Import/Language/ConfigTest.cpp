// What configurations of language models are refused for, with which words, and what rotary embeddings they ask for.
#include "Import/Architectures/Transformer.h"

#include "ajour/Import/Import.h"
#include "ajour/Support/Diagnostics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace ajour;
using architectures::TransformerConfig;
using nlohmann::json;

namespace {

//===----------------------------------------------------------------------===//
// config.json
//===----------------------------------------------------------------------===//

json llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},   {"intermediate_size", 96},         {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"vocab_size", 100},   {"max_position_embeddings", 128}, {"rms_norm_eps", 1e-5},   {"rope_theta", 10000.0},
          {"hidden_act", "silu"},     {"torch_dtype", "x"}};
}

std::string problemOf(const json &config) {
  TransformerConfig c;
  return architectures::readConfig(config.dump(), c);
}
/// With one parameter set, or removed by null.
std::string with(const char *key, json value) {
  json config = llama();
  config[key] = std::move(value);
  return problemOf(config);
}

TEST(Config, GoodOnesAreRead) {
  TransformerConfig c;
  ASSERT_EQ(architectures::readConfig(llama().dump(), c), "");
  EXPECT_EQ(c.layers.size(), 2u);
  EXPECT_EQ(c.headSize, 16);
  EXPECT_EQ(c.layers[1].keyValueHeads, 2);
  EXPECT_EQ(c.ropes[0].frequencies.size(), 8u);
  EXPECT_FLOAT_EQ(c.ropes[0].frequencies[4], 0.01f);
}

TEST(Config, UnknownArchitecturesListTheKnownOnes) {
  std::string problem = with("model_type", "rwkv");
  EXPECT_NE(problem.find("model_type is 'rwkv', an architecture that is not known; known are "), std::string::npos) << problem;
  for (const char *name : {"llama", "mistral", "qwen2", "qwen3", "gemma3_text", "phi3", "gpt2", "gpt_neox", "mixtral"})
    EXPECT_NE(problem.find(name), std::string::npos) << name;
  EXPECT_EQ(problemOf(json::array()), "is no JSON object");
}

TEST(Config, UnknownParametersAreNamed) {
  EXPECT_EQ(with("attention_sinks", 4), "attention_sinks is 4, a parameter that is not known of the architecture 'llama'");
  EXPECT_EQ(with("mup", {{"a", 1}}), "mup is an object, a parameter that is not known of the architecture 'llama'");
  // What says that something is not there may be called anything.
  EXPECT_EQ(with("attention_sinks", nullptr), "");
  EXPECT_EQ(with("attention_sinks", false), "");
  EXPECT_EQ(with("rope_interleaved", true), "rope_interleaved is true; false is supported");
}

TEST(Config, WrongValuesAreNamedWithWhatIsExpected) {
  EXPECT_EQ(with("hidden_size", nullptr), "hidden_size is missing");
  EXPECT_EQ(with("hidden_size", "64"), "hidden_size is \"64\", expected an integer, 1 to 1048576");
  EXPECT_EQ(with("hidden_size", -64), "hidden_size is -64, expected 1 to 1048576");
  EXPECT_EQ(with("hidden_size", 18446744073709551615u), "hidden_size is 18446744073709551615, expected 1 to 1048576");
  EXPECT_EQ(with("num_hidden_layers", 513), "num_hidden_layers is 513, expected 1 to 512");
  EXPECT_EQ(with("num_attention_heads", nullptr), "num_attention_heads is missing");
  EXPECT_EQ(with("num_attention_heads", json::array({4})), "num_attention_heads is a list of 1, expected a list of 2 numbers");
  EXPECT_EQ(with("num_attention_heads", json::array({4, 0})), "num_attention_heads has the entry 0.0, expected integers from 1 to 1048576");
  EXPECT_EQ(with("num_key_value_heads", 3), "4 heads are no multiple of 3 key-value heads");
  EXPECT_EQ(with("head_dim", 15), "15 rotated dimensions are odd, or more than the 15 of a head");
  EXPECT_EQ(with("rms_norm_eps", 0), "rms_norm_eps is 0, expected a positive number");
  EXPECT_EQ(with("rope_theta", "big"), "rope_theta is \"big\", expected a positive number");
  EXPECT_EQ(with("hidden_act", "mish"), "hidden_act is \"mish\"; silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh and relu are known");
}

TEST(Config, RopeScalingsAreCheckedToo) {
  EXPECT_EQ(with("rope_scaling", 5), "rope_scaling is 5, expected an object");
  EXPECT_EQ(with("rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}), "rope_scaling.type is \"dynamic\"; default, linear, llama3, yarn and longrope are known");
  EXPECT_EQ(with("rope_scaling", {{"rope_type", "linear"}}), "rope_scaling.factor is missing; a positive number is expected");
  EXPECT_EQ(with("rope_scaling", {{"rope_type", "linear"}, {"factor", -1}}), "rope_scaling.factor is -1, expected a positive number");
  EXPECT_EQ(with("rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"alpha", 3}}), "rope_scaling.alpha is 3, a parameter that is not known");
  EXPECT_EQ(with("rope_scaling", {{"rope_type", "longrope"}, {"short_factor", {1, 2}}, {"long_factor", {1, 2}}}),
            "rope_scaling.short_factor is a list of 2, expected a list of 8 numbers");
  json factors(8, 1.0);
  factors[3] = -1;
  EXPECT_EQ(with("rope_scaling", {{"rope_type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}}),
            "a factor of the rotary embedding is not positive");
}

TEST(Config, ExpertsAreCounted) {
  json config = llama();
  config["model_type"] = "mixtral";
  config["num_local_experts"] = 4;
  config["num_experts_per_tok"] = 5;
  EXPECT_EQ(problemOf(config), "5 experts for a token are more than the 4 that there are");
  config["num_experts_per_tok"] = nullptr;
  EXPECT_EQ(problemOf(config), "num_experts_per_tok is missing");
}

/// Lists within lists within ...: neither read nor shown.
TEST(Config, DeepNestingIsHarmless) {
  std::string deep(200000, '['), text = llama().dump();
  text.back() = ',';
  text += "\"x\": " + deep + std::string(200000, ']') + "}";
  TransformerConfig c;
  EXPECT_EQ(architectures::readConfig(text, c), "x is a list of 1, a parameter that is not known of the architecture 'llama'");
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

/// Metadata of a file without tensors.
struct Metadata {
  std::string entries;
  uint64_t count = 0;

  template <typename T> void put(T value) { entries.append(reinterpret_cast<const char *>(&value), sizeof(T)); }
  void text(const std::string &value) {
    put<uint64_t>(value.size());
    entries += value;
  }
  Metadata &key(const std::string &name, gguf::ValueType type) {
    text(name);
    put(uint32_t(type));
    ++count;
    return *this;
  }
  Metadata &number(const std::string &name, uint32_t value) {
    key(name, gguf::ValueType::U32).put(value);
    return *this;
  }
  Metadata &real(const std::string &name, float value) {
    key(name, gguf::ValueType::F32).put(value);
    return *this;
  }
  Metadata &string(const std::string &name, const std::string &value) {
    key(name, gguf::ValueType::String).text(value);
    return *this;
  }
  std::string problem(TransformerConfig *result = nullptr) const {
    std::string bytes = "GGUF";
    for (uint64_t field : {uint64_t(3), uint64_t(0), count})
      bytes.append(reinterpret_cast<const char *>(&field), field == 3 && bytes.size() == 4 ? 4 : 8);
    bytes += entries;
    gguf::File file;
    std::string error;
    if (!gguf::parse(llvm::MemoryBufferRef(bytes, "test"), file, error))
      return "not parsed: " + error;
    TransformerConfig own;
    return architectures::readConfig(file, result ? *result : own);
  }
};

Metadata good(const std::string &architecture = "llama") {
  Metadata m;
  m.string("general.architecture", architecture);
  for (auto [key, value] : {std::pair("block_count", 2u), {"embedding_length", 64u}, {"context_length", 128u}, {"attention.head_count", 4u},
                            {"attention.head_count_kv", 2u}, {"vocab_size", 100u}, {"feed_forward_length", 96u}})
    m.number(architecture + "." + key, value);
  return m;
}

TEST(ConfigGGUF, GoodOnesAreRead) {
  TransformerConfig c;
  EXPECT_EQ(good().problem(&c), "");
  EXPECT_TRUE(c.ropeInterleaved);
  EXPECT_EQ(c.headSize, 16);
}

TEST(ConfigGGUF, ProblemsNameTheKey) {
  EXPECT_EQ(Metadata().problem(), "general.architecture is missing or no string");
  EXPECT_NE(Metadata().string("general.architecture", "falcon").problem().find("general.architecture is 'falcon', an architecture that is not known; known are llama, "),
            std::string::npos);
  EXPECT_EQ(Metadata().string("general.architecture", "llama").problem(), "llama.block_count is missing");
  EXPECT_EQ(good().number("llama.attention.sinks", 4).problem(), "llama.attention.sinks is 4, a parameter that is not known of the architecture 'llama'");
  EXPECT_EQ(good().number("llama.attention.key_length", 0).problem(), "llama.attention.key_length is 0, expected 1 to 1048576");
  EXPECT_EQ(good().number("llama.attention.value_length", 8).problem(), "llama.attention.value_length is 8; 16 is supported");
  EXPECT_EQ(good().string("llama.rope.scaling.type", "dynamic").problem(),
            "llama.rope.scaling.type is \"dynamic\"; none, linear, yarn and longrope are known, and factors in rope_freqs.weight");
  EXPECT_EQ(good().real("llama.rope.freq_base", NAN).problem(), "llama.rope.freq_base is null, expected a positive number");
  // Other architectures' parameters are none of this one's business.
  EXPECT_EQ(good().number("falcon.attention.sinks", 4).problem(), "");
}

/// block_count of cases.md G10: 513 and more.
TEST(ConfigGGUF, LayersAreLimited) {
  Metadata m;
  m.string("general.architecture", "llama").number("llama.block_count", 4000000000u);
  EXPECT_EQ(m.problem(), "llama.block_count is 4000000000, expected 1 to 512");
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

/// A folder with a config.json and weights of zeros.
struct Folder {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / ("ajour-config-" + std::to_string(getpid()));
  explicit Folder(const json &config) {
    std::filesystem::create_directories(path);
    std::ofstream(path / "config.json") << config.dump();
  }
  Folder(const json &config, const Shapes &weights) : Folder(config) { write("model.safetensors", weights); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void write(const std::string &name, const Shapes &weights) const {
    json header = json::object();
    int64_t bytes = 0;
    for (const auto &[weight, shape] : weights) {
      int64_t size = 4;
      for (int64_t d : shape)
        size *= d;
      header[weight] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {bytes, bytes + size}}};
      bytes += size;
    }
    std::string text = header.dump();
    uint64_t length = text.size();
    std::ofstream file(path / name, std::ios::binary);
    file.write(reinterpret_cast<const char *>(&length), 8);
    file << text << std::string(size_t(bytes), '\0');
  }
  void index(const json &map) const { std::ofstream(path / "model.safetensors.index.json") << json{{"weight_map", map}}.dump(); }
  /// The diagnostics of importing.
  std::string import() const {
    mlir::MLIRContext context;
    DiagnosticCollector diagnostics(&context, path.string());
    bool good = bool(importHuggingFace(&context, path.string(), {}));
    return good ? "" : diagnostics.text();
  }
};

Shapes llamaWeights() {
  Shapes weights = {{"model.embed_tokens.weight", {100, 64}}, {"model.norm.weight", {64}}};
  for (int layer = 0; layer < 2; ++layer) {
    std::string p = "model.layers." + std::to_string(layer) + ".";
    for (auto [name, rows, columns] : {std::tuple("self_attn.q_proj", 64, 64), {"self_attn.k_proj", 32, 64}, {"self_attn.v_proj", 32, 64},
                                       {"self_attn.o_proj", 64, 64}, {"mlp.gate_proj", 96, 64}, {"mlp.up_proj", 96, 64}, {"mlp.down_proj", 64, 96}})
      weights.push_back({p + name + ".weight", {rows, columns}});
    weights.push_back({p + "input_layernorm.weight", {64}});
    weights.push_back({p + "post_attention_layernorm.weight", {64}});
  }
  return weights;
}

TEST(Weights, MissingMisshapenAndUselessOnesAreAllNamed) {
  EXPECT_EQ(Folder(llama(), llamaWeights()).import(), "");
  auto weights = llamaWeights();
  weights[2].first = "model.layers.0.self_attn.q_projection.weight";
  weights[7].second = {96, 65};
  weights.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {8}});
  std::string problems = Folder(llama(), weights).import();
  for (const char *expected : {"model.layers.0.self_attn.q_proj.weight", "the model has no weight of this name, which its architecture 'llama' needs",
                               "the weight's shape is [96, 65], expected [?, 64]", "model.layers.0.self_attn.q_projection.weight",
                               "the weight has no use in the architecture 'llama'"})
    EXPECT_NE(problems.find(expected), std::string::npos) << expected << "\n" << problems;
  EXPECT_EQ(problems.find("inv_freq"), std::string::npos) << "follows from the parameters";
}

TEST(Weights, ShardsAreOneModel) {
  Shapes all = llamaWeights(), first(all.begin(), all.begin() + 5), second(all.begin() + 5, all.end());
  Folder folder(llama());
  folder.write("model-00001-of-00002.safetensors", first);
  json map;
  for (size_t i = 0; i < all.size(); ++i)
    map[all[i].first] = i < 5 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  folder.index(map);
  EXPECT_NE(folder.import().find("model-00002-of-00002.safetensors: cannot be read: No such file or directory"), std::string::npos) << folder.import();
  folder.write("model-00002-of-00002.safetensors", second);
  EXPECT_EQ(folder.import(), "");
  // One tensor in both.
  second.push_back(first[0]);
  folder.write("model-00002-of-00002.safetensors", second);
  EXPECT_NE(folder.import().find("is in another file of the model as well"), std::string::npos) << folder.import();
  map[all[0].first] = "../model.safetensors";
  folder.index(map);
  EXPECT_NE(folder.import().find("expected a name within the folder"), std::string::npos) << folder.import();
}

TEST(Weights, QuantizedOnesAreChecked) {
  json config = llama();
  config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 5}};
  EXPECT_NE(Folder(config, llamaWeights()).import().find("config.json: quantization_config: bits is 5; 2, 4 and 8 bits are supported"), std::string::npos);
}

} // namespace
