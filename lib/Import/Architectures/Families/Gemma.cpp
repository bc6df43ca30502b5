//===- Gemma.cpp - Gemma 1, 2 and 3 -------------------------------------------------------===//
#include "Families.h"

#include <cmath>

namespace ajour::architectures {

namespace {

void gemma(TransformerConfig &c) {
  c.activation = nn::UnaryKind::gelu_tanh;
  c.norm.epsilon = 1e-6f;
}

/// Gemma 2 keeps scores and logits within bounds.
void gemma2(TransformerConfig &c) {
  gemma(c);
  c.attentionCap = 50;
  c.logitCap = 30;
}

/// A cap of a config.json, where null says that there is none.
void readCaps(Parameters &p, TransformerConfig &c) {
  c.attentionCap = p.isNull("attn_logit_softcapping") ? 0 : p.real("attn_logit_softcapping", c.attentionCap);
  c.logitCap = p.isNull("final_logit_softcapping") ? 0 : p.real("final_logit_softcapping", c.logitCap);
}

/// The scale of embeddings, and of norms where the file has it less 1.
void readGemma(Parameters &p, TransformerConfig &c) {
  c.norm.addOne = true;
  c.embeddingScale = std::sqrt(float(c.hidden));
  // Early files say "gelu" under hidden_act and mean its tanh form.
  readActivation(p, "hidden_activation", "gelu_pytorch_tanh", c);
  p.ignore({"hidden_act", "sliding_window_size"});
}
void readGemmaGGUF(Parameters &, TransformerConfig &c) { c.embeddingScale = std::sqrt(float(c.hidden)); }

void readGemma2(Parameters &p, TransformerConfig &c) {
  readGemma(p, c);
  c.names.attentionPostNorm = "model.layers.{}.post_attention_layernorm.weight";
  c.names.feedForwardNorm = "model.layers.{}.pre_feedforward_layernorm.weight";
  c.names.feedForwardPostNorm = "model.layers.{}.post_feedforward_layernorm.weight";
  c.attentionScale = 1.0f / std::sqrt(p.real("query_pre_attn_scalar", 256, true));
  readCaps(p, c);
  // Every second layer, from the first on.
  std::vector<bool> sliding = readSliding(p, c, [](int64_t i) { return i % 2 == 0; });
  setWindows(c, readWindow(p), [&](int64_t i) { return sliding[size_t(i)]; });
}

/// GGUF does not say how scores are scaled. It is by the size of a head, but for the largest models of Gemma 2 and 3, which are
/// known by their number of layers.
void setScaleGGUF(TransformerConfig &c, size_t largest) {
  float size = c.layers.size() == largest ? float(c.hidden) / float(c.layers[0].heads) : float(c.headSize);
  c.attentionScale = 1.0f / std::sqrt(size);
}

void readGemma2GGUF(Parameters &p, TransformerConfig &c) {
  readGemmaGGUF(p, c);
  namePostNormsGGUF(c);
  setScaleGGUF(c, 46);
  setWindows(c, p.integer("attention.sliding_window", 1, contextLimit, 4096), [](int64_t i) { return i % 2 == 0; });
}

/// Gemma 3: layers with a window have a rotary embedding of their own, which is never scaled.
void setLocalRope(TransformerConfig &c, double base) {
  c.ropes.push_back(plainRope(c.ropes[0].size, base));
  for (LayerConfig &layer : c.layers)
    layer.rope = layer.window > 0 ? 1 : 0;
}

void readGemma3(Parameters &p, TransformerConfig &c) {
  int64_t pattern = p.integer("sliding_window_pattern", 1, layerLimit, p.integer("_sliding_window_pattern", 1, layerLimit, 6));
  readGemma(p, c);
  c.names.attentionPostNorm = "model.layers.{}.post_attention_layernorm.weight";
  c.names.feedForwardNorm = "model.layers.{}.pre_feedforward_layernorm.weight";
  c.names.feedForwardPostNorm = "model.layers.{}.post_feedforward_layernorm.weight";
  nameHeadNorms(c);
  c.attentionScale = 1.0f / std::sqrt(p.real("query_pre_attn_scalar", 256, true));
  readCaps(p, c);
  std::vector<bool> sliding = readSliding(p, c, [&](int64_t i) { return (i + 1) % pattern != 0; });
  setWindows(c, readWindow(p), [&](int64_t i) { return sliding[size_t(i)]; });
  setLocalRope(c, p.real("rope_local_base_freq", 10000, true));
}

void readGemma3GGUF(Parameters &p, TransformerConfig &c) {
  readGemmaGGUF(p, c);
  namePostNormsGGUF(c);
  nameHeadNormsGGUF(c);
  setScaleGGUF(c, 62);
  int64_t window = p.integer("attention.sliding_window", 1, contextLimit, 1024);
  setWindows(c, window, [](int64_t i) { return (i + 1) % 6 != 0; });
  setLocalRope(c, p.real("rope.freq_base_swa", 10000, true));
}

const Family rows[] = {
    {"gemma", "gemma", false, 10000, 1, gemma, readGemma, readGemmaGGUF},
    {"gemma2", "gemma2", false, 10000, 1, gemma2, readGemma2, readGemma2GGUF},
    {"gemma3", "gemma3_text", false, 1e6, 1, gemma, readGemma3, readGemma3GGUF},
};

} // namespace

llvm::ArrayRef<Family> gemmaFamilies() { return rows; }

} // namespace ajour::architectures
