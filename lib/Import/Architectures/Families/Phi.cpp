//===- Phi.cpp - Phi 1 to 4 -----------------------------------------------------------------===//
#include "Families.h"

namespace ajour::architectures {

namespace {

/// Phi 1 and 2: one norm before attention and feed-forward layer, which add to the stream together.
void phi(TransformerConfig &c) {
  c.norm = {1e-5f, /*rootMeanSquare=*/false};
  c.activation = nn::UnaryKind::gelu_tanh;
  c.parallel = true;
  c.names.gate = c.names.feedForwardNorm = "";
}

void readPhi(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "gelu_new", c);
  c.names.output = "model.layers.{}.self_attn.dense.weight";
  c.names.up = "model.layers.{}.mlp.fc1.weight";
  c.names.down = "model.layers.{}.mlp.fc2.weight";
  c.names.finalNorm = "model.final_layernorm.weight";
}
void readPhiGGUF(Parameters &, TransformerConfig &c) { c.names.queryKeyValue = "blk.{}.attn_qkv.weight"; }

/// Phi 3 and 4: queries, keys and values are one product, and so are gate and up.
void readPhi3(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  p.only("full_attn_mod", 1);
  p.only("interpolate_factor", 1);
  c.names.queryKeyValue = "model.layers.{}.self_attn.qkv_proj.weight";
  c.names.gateUp = "model.layers.{}.mlp.gate_up_proj.weight";
  setWindows(c, readWindow(p), [](int64_t) { return true; });
}
void readPhi3GGUF(Parameters &p, TransformerConfig &c) {
  c.names.queryKeyValue = "blk.{}.attn_qkv.weight";
  c.names.gateUp = "blk.{}.ffn_up.weight";
  c.names.ropeDivisors = "rope_factors_short.weight";
  c.names.ropeLongDivisors = "rope_factors_long.weight";
  setWindows(c, p.integer("attention.sliding_window", 0, contextLimit, 0), [](int64_t) { return true; });
}

const Family rows[] = {
    {"phi2", "phi", false, 10000, 0.5, phi, readPhi, readPhiGGUF},
    {"phi3", "phi3", false, 10000, 1, nullptr, readPhi3, readPhi3GGUF},
};

} // namespace

llvm::ArrayRef<Family> phiFamilies() { return rows; }

} // namespace ajour::architectures
