//===- Llama.cpp - Llama and what descends from it --------------------------------------===//
#include "Families.h"

namespace ajour::architectures {

namespace {

/// Mistral attends to a window in all layers where its file says so.
void readWindowOfAll(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  std::vector<bool> sliding = readSliding(p, c, [](int64_t) { return true; });
  setWindows(c, readWindow(p), [&](int64_t i) { return sliding[size_t(i)]; });
}

void readLlama(Parameters &p, TransformerConfig &c) { readActivation(p, "hidden_act", "silu", c); }

void readLlamaGGUF(Parameters &p, TransformerConfig &c) {
  setWindows(c, p.integer("attention.sliding_window", 0, contextLimit, 0), [](int64_t) { return true; });
}

/// Qwen 2 and 3 have a window in their upper layers, if at all.
void readQwen(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  int64_t from = p.integer("max_window_layers", 0, layerLimit, 28), window = readWindow(p);
  bool used = p.flag("use_sliding_window", false);
  std::vector<bool> sliding = readSliding(p, c, [&](int64_t i) { return used && i >= from; });
  if (used)
    setWindows(c, window, [&](int64_t i) { return sliding[size_t(i)]; });
}

void readQwen3(Parameters &p, TransformerConfig &c) {
  nameHeadNorms(c);
  readQwen(p, c);
}
void readQwen3GGUF(Parameters &, TransformerConfig &c) { nameHeadNormsGGUF(c); }

/// SmolLM 3: every fourth layer does without positions.
void readSmolLM3(Parameters &p, TransformerConfig &c) {
  readQwen(p, c);
  int64_t interval = p.integer("no_rope_layer_interval", 1, layerLimit, 4);
  std::vector<int64_t> turned = p.integers("no_rope_layers", c.layers.size(), 0, 1);
  for (size_t i = 0; i < c.layers.size(); ++i)
    if (turned.empty() ? (int64_t(i) + 1) % interval == 0 : turned[i] == 0)
      c.layers[i].rope = -1;
}
void readSmolLM3GGUF(Parameters &, TransformerConfig &c) {
  for (size_t i = 3; i < c.layers.size(); i += 4)
    c.layers[i].rope = -1;
}

/// OLMo normalises without weights.
void olmo(TransformerConfig &c) { c.norm = {1e-5f, /*rootMeanSquare=*/false, /*addOne=*/false, /*plain=*/true}; }

/// OLMo 2 normalises what attention and feed-forward layers add, and all queries and keys at once.
void readOlmo2(Parameters &p, TransformerConfig &c) {
  nameHeadNorms(c);
  c.names.attentionNorm = c.names.feedForwardNorm = "";
  c.names.attentionPostNorm = "model.layers.{}.post_attention_layernorm.weight";
  c.names.feedForwardPostNorm = "model.layers.{}.post_feedforward_layernorm.weight";
  readActivation(p, "hidden_act", "silu", c);
}
void readOlmo2GGUF(Parameters &, TransformerConfig &c) {
  nameHeadNormsGGUF(c);
  c.names.attentionNorm = c.names.feedForwardNorm = "";
  namePostNormsGGUF(c);
}

void stableLM(TransformerConfig &c) { c.norm = {1e-5f, /*rootMeanSquare=*/false}; }
void readStableLM(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  c.parallel = p.flag("use_parallel_residual", false);
  p.ignore({"use_qkv_bias"});
}
void readStableLMGGUF(Parameters &p, TransformerConfig &c) { c.parallel = p.flag("use_parallel_residual", false); }

void readGranite(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  c.embeddingScale = p.real("embedding_multiplier", 1);
  c.attentionScale = p.real("attention_multiplier", 1);
  c.residualScale = p.real("residual_multiplier", 1);
  c.logitScale = 1.0f / p.real("logits_scaling", 1, true);
}
void readGraniteGGUF(Parameters &p, TransformerConfig &c) {
  c.embeddingScale = p.real("embedding_scale", 1);
  c.residualScale = p.real("residual_scale", 1);
  c.logitScale = 1.0f / p.real("logit_scale", 1, true);
}

const Family rows[] = {
    {"llama", "llama", true, 10000, 1, nullptr, readLlama, readLlamaGGUF},
    {nullptr, "mistral", false, 10000, 1, nullptr, readWindowOfAll, nullptr},
    {"qwen2", "qwen2", false, 10000, 1, nullptr, readQwen, nullptr},
    {"qwen3", "qwen3", false, 10000, 1, nullptr, readQwen3, readQwen3GGUF},
    {"smollm3", "smollm3", true, 2e6, 1, nullptr, readSmolLM3, readSmolLM3GGUF},
    {"olmo", "olmo", true, 10000, 1, olmo, readLlama, nullptr},
    {"olmo2", "olmo2", false, 10000, 1, nullptr, readOlmo2, readOlmo2GGUF},
    {"stablelm", "stablelm", false, 10000, 0.25, stableLM, readStableLM, readStableLMGGUF},
    {"granite", "granite", true, 10000, 1, nullptr, readGranite, readGraniteGGUF},
};

} // namespace

llvm::ArrayRef<Family> llamaFamilies() { return rows; }

} // namespace ajour::architectures
