//===- StateSpace.cpp - Mamba and its relatives -----------------------------------------===//
#include "Families.h"

#include "llvm/Support/MathExtras.h"

#include <tuple>

using namespace llvm;

namespace ajour::architectures {

namespace {

/// Convolutions this long are unrolled.
constexpr int64_t tapLimit = 16;

void setMixers(TransformerConfig &c, Mixer mixer) {
  for (LayerConfig &layer : c.layers)
    layer.mixer = mixer;
}

/// Names in the usual words of a config.json's model; `block` is what stands before them.
void nameStateSpace(TransformerConfig &c, const std::string &block) {
  StateSpaceNames &n = c.names.stateSpace;
  n.in = block + "in_proj.weight";
  n.conv = block + "conv1d.weight";
  n.parts = block + "x_proj.weight";
  n.delta = block + "dt_proj.weight";
  n.deltaBias = block + "dt_bias";
  n.decay = block + "A_log";
  n.skip = block + "D";
  n.norm = block + "norm.weight";
  n.out = block + "out_proj.weight";
  c.stateSpace.logDecay = true;
}
void nameStateSpaceGGUF(TransformerConfig &c) {
  StateSpaceNames &n = c.names.stateSpace;
  n.in = "blk.{}.ssm_in.weight";
  n.conv = "blk.{}.ssm_conv1d.weight";
  n.parts = "blk.{}.ssm_x.weight";
  n.delta = "blk.{}.ssm_dt.weight";
  n.deltaBias = "blk.{}.ssm_dt.bias";
  n.decay = "blk.{}.ssm_a";
  n.skip = "blk.{}.ssm_d";
  n.norm = "blk.{}.ssm_norm.weight";
  n.out = "blk.{}.ssm_out.weight";
}

/// A model of nothing but Mamba layers.
void mamba(TransformerConfig &c) {
  setMixers(c, Mixer::Mamba);
  c.norm.epsilon = 1e-5f;
  c.names.feedForwardNorm = c.names.gate = c.names.up = c.names.down = "";
}
void mamba2(TransformerConfig &c) {
  mamba(c);
  setMixers(c, Mixer::Mamba2);
}

/// What the first programs that trained Mamba write in `ssm_cfg`, and their vocabulary, which is rounded up.
void readOwnConfig(Parameters &p, TransformerConfig &c) {
  Parameters layer = p.nested("ssm_cfg");
  c.stateSpace.states = layer.integer("d_state", 1, widthLimit, c.stateSpace.states);
  c.stateSpace.taps = layer.integer("d_conv", 2, tapLimit, 4);
  c.stateSpace.groups = layer.integer("ngroups", 1, widthLimit, 1);
  layer.only("norm_before_gate", false);
  layer.ignore({"layer", "expand", "headdim", "dt_rank", "dt_min", "dt_max", "dt_init", "dt_scale", "dt_init_floor", "conv_bias", "bias",
                "use_fast_path", "chunk_size", "rmsnorm"});
  p.absorb(layer);
  c.vocabulary = int64_t(alignTo(uint64_t(c.vocabulary), uint64_t(p.integer("pad_vocab_size_multiple", 1, widthLimit, 8))));
  c.names.embedding = "backbone.embedding.weight";
}

/// What both kinds have in a config.json.
void readMixer(Parameters &p, TransformerConfig &c) {
  c.names.embedding = "backbone.embeddings.weight";
  c.names.finalNorm = "backbone.norm_f.weight";
  c.names.attentionNorm = "backbone.layers.{}.norm.weight";
  nameStateSpace(c, "backbone.layers.{}.mixer.");
  p.only("hidden_act", "silu");
  p.only("rms_norm", true);
  c.stateSpace.states = p.integer("state_size", 1, widthLimit, c.stateSpace.states);
  c.stateSpace.taps = p.integer("conv_kernel", 2, tapLimit, 4);
  c.stateSpace.groups = p.integer("n_groups", 1, widthLimit, 1);
  // Files that were converted from such have both.
  if (!p.has("model_type"))
    readOwnConfig(p, c);
  // How the weights of time steps were first chosen, and widths, which the weights' shapes say.
  p.ignore({"time_step_min", "time_step_max", "time_step_floor", "time_step_scale", "time_step_init_scheme", "time_step_rank",
            "expand", "use_conv_bias", "use_mambapy", "use_associative_scan", "rescale_prenorm_residual", "residual_in_fp32",
            "fused_add_norm", "hidden_dropout_prob", "mixer_rms_eps", "head_dim", "num_heads", "chunk_size", "d_inner", "intermediate_size",
            "pad_vocab_size_multiple", "d_model", "n_layer", "ssm_cfg", "d_intermediate", "tie_embeddings"});
  p.only("attn_layer_idx", nlohmann::json::array());
  p.only("norm_before_gate", false);
}
void readMamba(Parameters &p, TransformerConfig &c) {
  c.stateSpace.states = 16;
  readMixer(p, c);
}
/// Falcon's Mamba normalises the step, B and C.
void readFalconMamba(Parameters &p, TransformerConfig &c) {
  readMamba(p, c);
  c.stateSpace.normParts = NormConfig{p.real("mixer_rms_eps", 1e-6, true), /*rootMeanSquare=*/true, /*addOne=*/false, /*plain=*/true};
}
void readTimeStepLimit(Parameters &p, TransformerConfig &c) {
  if (auto limits = p.bounds("time_step_limit"))
    std::tie(c.stateSpace.deltaMin, c.stateSpace.deltaMax) = *limits;
}
void readMamba2(Parameters &p, TransformerConfig &c) {
  c.stateSpace.states = 128;
  readMixer(p, c);
  c.stateSpace.normEpsilon = c.norm.epsilon;
  readTimeStepLimit(p, c);
}

void readMixerGGUF(Parameters &p, TransformerConfig &c) {
  nameStateSpaceGGUF(c);
  c.stateSpace.states = p.integer("ssm.state_size", 1, widthLimit);
  c.stateSpace.taps = p.integer("ssm.conv_kernel", 2, tapLimit);
  c.stateSpace.groups = p.integer("ssm.group_count", 1, widthLimit, 1);
  c.stateSpace.normEpsilon = c.norm.epsilon;
  p.ignore({"ssm.inner_size", "ssm.time_step_rank", "attention.head_count", "attention.head_count_kv", "rope.dimension_count"});
}
void readMambaGGUF(Parameters &p, TransformerConfig &c) {
  readMixerGGUF(p, c);
  if (p.flag("ssm.dt_b_c_rms", false))
    c.stateSpace.normParts = NormConfig{c.norm.epsilon, /*rootMeanSquare=*/true, /*addOne=*/false, /*plain=*/true};
}

/// Granite 4's hybrids: layers of Mamba-2 and of attention without positions, each before a feed-forward layer.
void graniteHybrid(TransformerConfig &c) { c.hybrid = Mixer::Mamba2; }
void readGraniteScales(Parameters &p, TransformerConfig &c) {
  c.embeddingScale = p.real("embedding_multiplier", 1);
  c.attentionScale = p.real("attention_multiplier", 1);
  c.residualScale = p.real("residual_multiplier", 1);
  c.logitScale = 1.0f / p.real("logits_scaling", 1, true);
}
void readGraniteHybrid(Parameters &p, TransformerConfig &c) {
  readActivation(p, "hidden_act", "silu", c);
  readGraniteScales(p, c);
  for (auto [i, type] : enumerate(p.texts(p.has("layer_types") ? "layer_types" : "layers_block_type", c.layers.size()))) {
    if (type != "mamba" && type != "attention")
      p.setProblem("layer_types names '" + type.substr(0, 100) + "'; mamba and attention are known");
    c.layers[i].mixer = type == "mamba" ? Mixer::Mamba2 : Mixer::Attention;
  }
  if (std::string kind = p.text("position_embedding_type", "nope"); kind == "nope")
    for (LayerConfig &layer : c.layers)
      layer.rope = -1;
  else if (kind != "rope")
    p.refuse("position_embedding_type", "nope and rope are known");
  nameStateSpace(c, "model.layers.{}.mamba.");
  c.names.gate = c.names.up = "";
  c.names.gateUp = "model.layers.{}.shared_mlp.input_linear.weight";
  c.names.down = "model.layers.{}.shared_mlp.output_linear.weight";
  c.stateSpace.states = p.integer("mamba_d_state", 1, widthLimit, 256);
  c.stateSpace.taps = p.integer("mamba_d_conv", 2, tapLimit, 4);
  c.stateSpace.groups = p.integer("mamba_n_groups", 1, widthLimit, 1);
  c.stateSpace.normEpsilon = c.norm.epsilon;
  readTimeStepLimit(p, c);
  p.only("num_local_experts", 0);
  p.only("normalization_function", "rmsnorm");
  p.ignore({"mamba_n_heads", "mamba_d_head", "mamba_expand", "mamba_chunk_size", "mamba_conv_bias", "mamba_proj_bias", "shared_intermediate_size",
            "num_experts_per_tok", "init_method", "time_step_min", "time_step_max"});
}
void readGraniteHybridGGUF(Parameters &p, TransformerConfig &c) {
  readMixerGGUF(p, c);
  c.embeddingScale = p.real("embedding_scale", 1);
  c.residualScale = p.real("residual_scale", 1);
  c.logitScale = 1.0f / p.real("logit_scale", 1, true);
  for (LayerConfig &layer : c.layers)
    layer.rope = -1;
  p.only("rope.scaling.finetuned", false);
}

const Family rows[] = {
    {"mamba", "mamba", false, 10000, 1, mamba, readMamba, readMambaGGUF},
    {nullptr, "falcon_mamba", false, 10000, 1, mamba, readFalconMamba, nullptr}, // in GGUF it is a mamba with dt_b_c_rms
    {"mamba2", "mamba2", false, 10000, 1, mamba2, readMamba2, readMixerGGUF},
    {"granitehybrid", "granitemoehybrid", false, 10000, 1, graniteHybrid, readGraniteHybrid, readGraniteHybridGGUF},
};

} // namespace

llvm::ArrayRef<Family> stateSpaceFamilies() { return rows; }

} // namespace ajour::architectures
