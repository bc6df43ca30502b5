//===- GPT.cpp - GPT-2, GPT-NeoX and models like them -----------------------------------------===//
#include "Families.h"

namespace ajour::architectures {

namespace {

void gpt(TransformerConfig &c) {
  c.norm = {1e-5f, /*rootMeanSquare=*/false};
  c.activation = nn::UnaryKind::gelu_tanh;
  c.names.gate = "";
}

/// GPT-2: positions are learned; products' weights are stored turned.
void readGPT2(Parameters &p, TransformerConfig &c) {
  readActivation(p, "activation_function", "gelu_new", c);
  p.only("scale_attn_weights", true);
  p.ignore({"n_inner", "reorder_and_upcast_attn"});
  TransformerNames &n = c.names;
  n.optionalPrefix = "transformer.";
  n.embedding = "wte.weight";
  n.positionEmbedding = "wpe.weight";
  n.finalNorm = "ln_f.weight";
  n.attentionNorm = "h.{}.ln_1.weight";
  n.queryKeyValue = "h.{}.attn.c_attn.weight";
  n.output = "h.{}.attn.c_proj.weight";
  n.feedForwardNorm = "h.{}.ln_2.weight";
  n.up = "h.{}.mlp.c_fc.weight";
  n.down = "h.{}.mlp.c_proj.weight";
  c.turnedWeights = true;
  for (LayerConfig &layer : c.layers)
    layer.rope = -1;
}
void readGPT2GGUF(Parameters &, TransformerConfig &c) {
  c.names.positionEmbedding = "position_embd.weight";
  c.names.queryKeyValue = "blk.{}.attn_qkv.weight";
  for (LayerConfig &layer : c.layers)
    layer.rope = -1;
}

void neoX(TransformerConfig &c) {
  gpt(c);
  c.activation = nn::UnaryKind::gelu;
}
void readNeoX(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "gelu", c);
  c.parallel = p.flag("use_parallel_residual", true);
  c.queryKeyValueOrder = QueryKeyValueOrder::PerHead;
  TransformerNames &n = c.names;
  n.embedding = "gpt_neox.embed_in.weight";
  n.finalNorm = "gpt_neox.final_layer_norm.weight";
  n.head = "embed_out.weight";
  n.attentionNorm = "gpt_neox.layers.{}.input_layernorm.weight";
  n.queryKeyValue = "gpt_neox.layers.{}.attention.query_key_value.weight";
  n.output = "gpt_neox.layers.{}.attention.dense.weight";
  n.feedForwardNorm = "gpt_neox.layers.{}.post_attention_layernorm.weight";
  n.up = "gpt_neox.layers.{}.mlp.dense_h_to_4h.weight";
  n.down = "gpt_neox.layers.{}.mlp.dense_4h_to_h.weight";
}
void readNeoXGGUF(Parameters &p, TransformerConfig &c) {
  c.parallel = p.flag("use_parallel_residual", true);
  c.names.queryKeyValue = "blk.{}.attn_qkv.weight";
}

/// StarCoder 2: a GPT with rotary positions and grouped heads.
void readStarCoder2(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "gelu_pytorch_tanh", c);
  c.names.up = "model.layers.{}.mlp.c_fc.weight";
  c.names.down = "model.layers.{}.mlp.c_proj.weight";
  setWindows(c, readWindow(p), [](int64_t) { return true; });
  p.ignore({"norm_type", "mlp_type"});
}

/// BLOOM: positions are in the scores, and embeddings are normalised.
void bloom(TransformerConfig &c) {
  gpt(c);
  c.linearBias = true;
}
void readBloom(Parameters &p, TransformerConfig &c) {
  c.queryKeyValueOrder = QueryKeyValueOrder::PerHead;
  p.only("apply_residual_connection_post_layernorm", false);
  p.ignore({"n_inner", "attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv",
            "slow_but_exact"});
  TransformerNames &n = c.names;
  n.optionalPrefix = "transformer.";
  n.embedding = "word_embeddings.weight";
  n.embeddingNorm = "word_embeddings_layernorm.weight";
  n.finalNorm = "ln_f.weight";
  n.attentionNorm = "h.{}.input_layernorm.weight";
  n.queryKeyValue = "h.{}.self_attention.query_key_value.weight";
  n.output = "h.{}.self_attention.dense.weight";
  n.feedForwardNorm = "h.{}.post_attention_layernorm.weight";
  n.up = "h.{}.mlp.dense_h_to_4h.weight";
  n.down = "h.{}.mlp.dense_4h_to_h.weight";
  for (LayerConfig &layer : c.layers)
    layer.rope = -1;
}
void readBloomGGUF(Parameters &, TransformerConfig &c) {
  c.names.embeddingNorm = "token_embd_norm.weight";
  c.names.queryKeyValue = "blk.{}.attn_qkv.weight";
  for (LayerConfig &layer : c.layers)
    layer.rope = -1;
}

const Family rows[] = {
    {"gpt2", "gpt2", false, 10000, 1, gpt, readGPT2, readGPT2GGUF},
    {"bloom", "bloom", false, 10000, 1, bloom, readBloom, readBloomGGUF},
    {"gptneox", "gpt_neox", false, 10000, 0.25, neoX, readNeoX, readNeoXGGUF},
    {"starcoder2", "starcoder2", false, 10000, 1, gpt, readStarCoder2, nullptr},
};

} // namespace

llvm::ArrayRef<Family> gptFamilies() { return rows; }

} // namespace ajour::architectures
