//===- Experts.cpp - mixtures of experts ----------------------------------------------------===//
#include "Families.h"

namespace ajour::architectures {

namespace {

void nameExperts(TransformerConfig &c, const std::string &block, const char *gate, const char *up, const char *down) {
  c.names.router = block + "gate.weight";
  c.names.expertGate = block + "experts.[]." + gate + ".weight";
  c.names.expertUp = block + "experts.[]." + up + ".weight";
  c.names.expertDown = block + "experts.[]." + down + ".weight";
}

void readExpertCounts(Parameters &p, const char *count, TransformerConfig &c) {
  c.experts.count = p.integer(count, 1, expertLimit);
  c.experts.perToken = p.integer("num_experts_per_tok", 1, expertLimit);
}

void readMixtral(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  nameExperts(c, "model.layers.{}.block_sparse_moe.", "w1", "w3", "w2");
  readExpertCounts(p, "num_local_experts", c);
  setWindows(c, readWindow(p), [](int64_t) { return true; });
  for (LayerConfig &layer : c.layers)
    layer.experts = true;
}

/// Which layers of Qwen's mixtures have experts, and its windows.
void readQwenExperts(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  nameExperts(c, "model.layers.{}.mlp.", "gate_proj", "up_proj", "down_proj");
  readExpertCounts(p, "num_experts", c);
  c.experts.normalize = p.flag("norm_topk_prob", false);
  int64_t step = p.integer("decoder_sparse_step", 1, layerLimit, 1);
  for (size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].experts = (int64_t(i) + 1) % step == 0;
  for (int64_t layer : p.anyIntegers("mlp_only_layers", 0, int64_t(c.layers.size()) - 1))
    c.layers[size_t(layer)].experts = false;
  int64_t from = p.integer("max_window_layers", 0, layerLimit, 28), window = readWindow(p);
  if (p.flag("use_sliding_window", false))
    setWindows(c, window, [&](int64_t i) { return i >= from; });
  p.ignore({"moe_intermediate_size", "shared_expert_intermediate_size", "layer_types", "qkv_bias"});
}

/// Qwen 2: an expert that every token meets, by a share of its own.
void readQwen2Experts(Parameters &p, TransformerConfig &c) {
  readQwenExperts(p, c);
  c.names.sharedRouter = "model.layers.{}.mlp.shared_expert_gate.weight";
  c.names.sharedGate = "model.layers.{}.mlp.shared_expert.gate_proj.weight";
  c.names.sharedUp = "model.layers.{}.mlp.shared_expert.up_proj.weight";
  c.names.sharedDown = "model.layers.{}.mlp.shared_expert.down_proj.weight";
}
void readQwen2ExpertsGGUF(Parameters &p, TransformerConfig &c) {
  c.experts.normalize = p.flag("expert_weights_norm", false);
  c.names.sharedRouter = "blk.{}.ffn_gate_inp_shexp.weight";
  c.names.sharedGate = "blk.{}.ffn_gate_shexp.weight";
  c.names.sharedUp = "blk.{}.ffn_up_shexp.weight";
  c.names.sharedDown = "blk.{}.ffn_down_shexp.weight";
}

void readQwen3Experts(Parameters &p, TransformerConfig &c) {
  readQwenExperts(p, c);
  nameHeadNorms(c);
}
void readQwen3ExpertsGGUF(Parameters &p, TransformerConfig &c) {
  p.only("expert_weights_norm", true);
  nameHeadNormsGGUF(c);
}

/// OLMoE: OLMo 2's norms of all queries and keys at once, and experts.
void readOlmoE(Parameters &p, TransformerConfig &c) {
  readQwen3Experts(p, c);
}
void readOlmoEGGUF(Parameters &p, TransformerConfig &c) {
  c.experts.normalize = p.flag("expert_weights_norm", false);
  nameHeadNormsGGUF(c);
}

const Family rows[] = {
    {nullptr, "mixtral", false, 1e6, 1, nullptr, readMixtral, nullptr}, // in GGUF it is a llama with experts
    {"qwen2moe", "qwen2_moe", false, 10000, 1, nullptr, readQwen2Experts, readQwen2ExpertsGGUF},
    {"qwen3moe", "qwen3_moe", false, 10000, 1, nullptr, readQwen3Experts, readQwen3ExpertsGGUF},
    {"olmoe", "olmoe", false, 10000, 1, nullptr, readOlmoE, readOlmoEGGUF},
};

} // namespace

llvm::ArrayRef<Family> expertFamilies() { return rows; }

} // namespace ajour::architectures
