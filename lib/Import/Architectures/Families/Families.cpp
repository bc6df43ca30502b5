//===- Families.cpp - configurations by their architecture ------------------------------===//
#include "Families.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using json = nlohmann::json;

namespace ajour::architectures {

static std::vector<const Family *> allFamilies() {
  std::vector<const Family *> all;
  for (ArrayRef<Family> rows : {llamaFamilies(), gemmaFamilies(), phiFamilies(), gptFamilies(), expertFamilies(), stateSpaceFamilies()})
    for (const Family &row : rows)
      all.push_back(&row);
  return all;
}

/// The family of a name, or null with `problem` set to a message that lists the names.
static const Family *findFamily(const char *Family::*column, StringRef name, StringRef key, std::string &problem) {
  std::string known;
  for (const Family *row : allFamilies()) {
    if (!(row->*column))
      continue;
    if (name == row->*column)
      return row;
    known += (known.empty() ? "" : ", ") + std::string(row->*column);
  }
  problem = (key + " is '" + name.substr(0, 100) + "', an architecture that is not known; known are " + known).str();
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Names of GGUF; which of them an architecture has is the family's to say.
static TransformerNames ggufNames() {
  TransformerNames n;
  n.embedding = "token_embd.weight";
  n.finalNorm = "output_norm.weight";
  n.head = "output.weight";
  n.attentionNorm = "blk.{}.attn_norm.weight";
  n.query = "blk.{}.attn_q.weight";
  n.key = "blk.{}.attn_k.weight";
  n.value = "blk.{}.attn_v.weight";
  n.output = "blk.{}.attn_output.weight";
  n.feedForwardNorm = "blk.{}.ffn_norm.weight";
  n.gate = "blk.{}.ffn_gate.weight";
  n.up = "blk.{}.ffn_up.weight";
  n.down = "blk.{}.ffn_down.weight";
  n.router = "blk.{}.ffn_gate_inp.weight";
  n.expertGate = "blk.{}.ffn_gate_exps.weight";
  n.expertUp = "blk.{}.ffn_up_exps.weight";
  n.expertDown = "blk.{}.ffn_down_exps.weight";
  n.ropeDivisors = "rope_freqs.weight";
  return n;
}

/// Names of Llama in safetensors, which most models have.
static TransformerNames huggingFaceNames() {
  TransformerNames n;
  n.embedding = "model.embed_tokens.weight";
  n.finalNorm = "model.norm.weight";
  n.head = "lm_head.weight";
  n.attentionNorm = "model.layers.{}.input_layernorm.weight";
  n.query = "model.layers.{}.self_attn.q_proj.weight";
  n.key = "model.layers.{}.self_attn.k_proj.weight";
  n.value = "model.layers.{}.self_attn.v_proj.weight";
  n.output = "model.layers.{}.self_attn.o_proj.weight";
  n.feedForwardNorm = "model.layers.{}.post_attention_layernorm.weight";
  n.gate = "model.layers.{}.mlp.gate_proj.weight";
  n.up = "model.layers.{}.mlp.up_proj.weight";
  n.down = "model.layers.{}.mlp.down_proj.weight";
  return n;
}

void nameHeadNorms(TransformerConfig &c) {
  c.names.queryNorm = "model.layers.{}.self_attn.q_norm.weight";
  c.names.keyNorm = "model.layers.{}.self_attn.k_norm.weight";
}
void nameHeadNormsGGUF(TransformerConfig &c) {
  c.names.queryNorm = "blk.{}.attn_q_norm.weight";
  c.names.keyNorm = "blk.{}.attn_k_norm.weight";
}
void namePostNormsGGUF(TransformerConfig &c) {
  c.names.attentionPostNorm = "blk.{}.post_attention_norm.weight";
  c.names.feedForwardPostNorm = "blk.{}.post_ffw_norm.weight";
}

//===----------------------------------------------------------------------===//
// What families share
//===----------------------------------------------------------------------===//

/// What holds whatever the file calls it.
static std::string checkWhole(const TransformerConfig &c) {
  for (const LayerConfig &layer : c.layers)
    if (layer.mixer == Mixer::Attention && layer.heads % layer.keyValueHeads != 0)
      return std::to_string(layer.heads) + " heads are no multiple of " + std::to_string(layer.keyValueHeads) + " key-value heads";
  for (const RopeConfig &rope : c.ropes)
    if (rope.size % 2 != 0 || rope.size > c.headSize)
      return std::to_string(rope.size) + " rotated dimensions are odd, or more than the " + std::to_string(c.headSize) + " of a head";
  if (c.experts.perToken > c.experts.count)
    return std::to_string(c.experts.perToken) + " experts for a token are more than the " + std::to_string(c.experts.count) + " that there are";
  return "";
}

/// Heads of each layer: one number for all, or a list.
static void setHeads(Parameters &p, const char *heads, const char *keyValueHeads, TransformerConfig &c) {
  size_t count = c.layers.size();
  // In a hybrid, layers without key-value heads are of its other kind.
  bool isHybrid = c.hybrid != Mixer::Attention;
  std::vector<int64_t> own = p.integers(heads, count, 1, widthLimit), shared = p.integers(keyValueHeads, count, isHybrid ? 0 : 1, widthLimit);
  if (own.empty() && !p.has(heads))
    p.setProblem(std::string(heads) + " is missing");
  for (size_t i = 0; i < count; ++i) {
    c.layers[i].heads = own.empty() ? 1 : own[i];
    c.layers[i].keyValueHeads = shared.empty() ? c.layers[i].heads : std::max<int64_t>(shared[i], 1);
    if (!shared.empty() && shared[i] == 0)
      c.layers[i].mixer = c.hybrid;
  }
}

std::vector<bool> readSliding(Parameters &p, const TransformerConfig &c, function_ref<bool(int64_t)> otherwise) {
  std::vector<bool> sliding;
  if (p.has("layer_types")) {
    for (const std::string &type : p.texts("layer_types", c.layers.size())) {
      if (type != "sliding_attention" && type != "full_attention")
        p.setProblem("layer_types names '" + type.substr(0, 100) + "'; full_attention and sliding_attention are known");
      sliding.push_back(type == "sliding_attention");
    }
    sliding.resize(c.layers.size());
    return sliding;
  }
  for (size_t i = 0; i < c.layers.size(); ++i)
    sliding.push_back(otherwise(int64_t(i)));
  return sliding;
}

int64_t readWindow(Parameters &p) { return p.integer("sliding_window", 0, contextLimit, 0); }

void readActivation(Parameters &p, const char *key, const char *otherwise, TransformerConfig &c) {
  std::string name = p.text(key, otherwise);
  std::optional<nn::UnaryKind> kind = StringSwitch<std::optional<nn::UnaryKind>>(name)
                                          .Cases({"silu", "swish"}, nn::UnaryKind::silu)
                                          .Cases({"gelu_pytorch_tanh", "gelu_new", "gelu_fast"}, nn::UnaryKind::gelu_tanh)
                                          .Cases({"gelu", "gelu_python"}, nn::UnaryKind::gelu)
                                          .Case("relu", nn::UnaryKind::relu)
                                          .Default(std::nullopt);
  if (!kind)
    return p.refuse(key, "silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh and relu are known");
  c.activation = *kind;
}

//===----------------------------------------------------------------------===//
// config.json
//===----------------------------------------------------------------------===//

/// What some files call otherwise.
static void renameOld(Parameters &p) {
  for (auto [from, to] : {std::pair("n_embd", "hidden_size"), {"n_positions", "max_position_embeddings"}, {"n_head", "num_attention_heads"},
                          {"n_layer", "num_hidden_layers"}, {"rotary_emb_base", "rope_theta"}, {"rotary_pct", "partial_rotary_factor"},
                          {"rope_pct", "partial_rotary_factor"}, {"d_model", "hidden_size"}, {"n_embed", "hidden_size"}, {"seq_length", "max_position_embeddings"}})
    p.rename(from, to);
}

/// Heads and positions, which only attention has.
static void readAttentionHuggingFace(Parameters &p, const Family &family, TransformerConfig &c) {
  // Without embeddings of positions there is no bound; models were trained on so many.
  constexpr int64_t usualOfLinearBias = 2048;
  c.context = c.linearBias ? p.integer("max_position_embeddings", 1, contextLimit, usualOfLinearBias) : p.integer("max_position_embeddings", 1, contextLimit);
  setHeads(p, "num_attention_heads", "num_key_value_heads", c);
  c.headSize = p.integer("head_dim", 1, widthLimit, std::max<int64_t>(c.hidden / c.layers[0].heads, 1));
  double base = p.real("rope_theta", family.ropeBase, true), share = p.real("partial_rotary_factor", family.ropeShare, true);
  int64_t turned = int64_t(double(c.headSize) * std::min(share, 1.0));
  c.ropes = {readRope(p, turned, base, c.context)};
}

static void readCommonHuggingFace(Parameters &p, const Family &family, TransformerConfig &c) {
  c.hidden = p.integer("hidden_size", 1, widthLimit);
  c.vocabulary = p.integer("vocab_size", 1, vocabularyLimit);
  c.context = contextLimit;
  if (hasAttention(c))
    readAttentionHuggingFace(p, family, c);
  for (const char *key : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"})
    if (p.has(key))
      c.norm.epsilon = p.real(key, 0, true);
  // Neither the weights' widths, which their shapes say, nor training and text change what is computed here.
  p.ignore({"model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "name_or_path", "auto_map",
            "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "use_cache", "cache_implementation",
            "initializer_range", "initializer_factor", "attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "hidden_dropout",
            "residual_dropout", "embedding_dropout", "classifier_dropout", "dropout", "gradient_checkpointing", "intermediate_size",
            "tie_word_embeddings", "tie_weights", "attention_bias", "mlp_bias", "use_bias", "pretraining_tp", "task_specific_params", "id2label",
            "label2id", "problem_type", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "input_jitter_noise",
            "quantization_config", "_attn_implementation", "attn_implementation", "_attn_implementation_autoset", "unsloth_version",
            "unsloth_fixed", "is_llama_config", "transformers.js_config", "original_max_position_embeddings", "max_window_layers", "head_dim", "return_dict",
            "output_attentions", "output_hidden_states", "chunk_size_feed_forward", "summary_type", "summary_use_proj",
            "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "n_ctx", "use_mrope"});
  p.only("rope_interleaved", false);
  p.only("is_encoder_decoder", false);
}

/// Python writes the name Infinity, which JSON does not have, for a bound that is none: null says the same.
static std::string withoutInfinity(StringRef text) {
  constexpr StringRef infinity = "Infinity";
  std::string result;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!quoted && text.substr(i).starts_with(infinity)) {
      result += "null";
      i += infinity.size() - 1;
      continue;
    }
    result += text[i];
    if (quoted && text[i] == '\\' && i + 1 < text.size())
      result += text[++i];
    else if (text[i] == '"')
      quoted = !quoted;
  }
  return result;
}

std::string readConfig(StringRef text, TransformerConfig &c) {
  json root = json::parse(withoutInfinity(text), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return "is no JSON object";
  Parameters p(std::move(root));
  c.architecture = p.text("model_type", "");
  // The first programs that trained Mamba have configurations of their own.
  if (c.architecture.empty() && p.has("ssm_cfg")) {
    Parameters layer = p.nested("ssm_cfg");
    c.architecture = layer.text("layer", "Mamba1") == "Mamba2" ? "mamba2" : "mamba";
  }
  std::string problem;
  const Family *family = findFamily(&Family::huggingFace, c.architecture, "model_type", problem);
  if (!family)
    return problem;
  renameOld(p);
  c.layers.resize(size_t(p.integer("num_hidden_layers", 1, layerLimit)));
  c.names = huggingFaceNames();
  c.norm.epsilon = 1e-6f;
  if (family->structure)
    family->structure(c);
  readCommonHuggingFace(p, *family, c);
  if (family->readHuggingFace)
    family->readHuggingFace(p, c);
  problem = p.finish(c.architecture);
  return problem.empty() ? checkWhole(c) : problem;
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

static void readCommonGGUF(Parameters &p, const gguf::File &file, TransformerConfig &c) {
  c.hidden = p.integer("embedding_length", 1, widthLimit);
  c.context = contextLimit;
  if (hasAttention(c)) {
    c.context = p.integer("context_length", 1, contextLimit);
    setHeads(p, "attention.head_count", "attention.head_count_kv", c);
    c.headSize = p.integer("attention.key_length", 1, widthLimit, std::max<int64_t>(c.hidden / c.layers[0].heads, 1));
    p.only("attention.value_length", c.headSize);
    c.ropes = {readGGUFRope(p, p.integer("rope.dimension_count", 1, widthLimit, c.headSize), c.context)};
  }
  const gguf::Value *tokens = file.find("tokenizer.ggml.tokens");
  int64_t known = tokens ? int64_t(tokens->size()) : 0;
  c.vocabulary = known ? known : p.integer("vocab_size", 1, vocabularyLimit);
  for (const char *key : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"})
    if (p.has(key))
      c.norm.epsilon = p.real(key, 0, true);
  c.attentionScale = p.real("attention.scale", c.attentionScale);
  c.attentionCap = p.real("attn_logit_softcapping", c.attentionCap);
  c.logitCap = p.real("final_logit_softcapping", c.logitCap);
  c.experts.count = p.integer("expert_count", 0, expertLimit, 0);
  if (c.experts.count > 0) {
    c.experts.perToken = p.integer("expert_used_count", 1, expertLimit);
    for (LayerConfig &layer : c.layers)
      layer.experts = true;
  }
  p.only("attention.causal", true);
  p.ignore({"feed_forward_length", "expert_used_count", "expert_feed_forward_length", "expert_shared_feed_forward_length",
            "tensor_data_layout", "vocab_size", "context_length"});
}

std::string readConfig(const gguf::File &file, TransformerConfig &c) {
  const gguf::Value *architecture = file.find("general.architecture");
  if (!architecture || architecture->isArray() || architecture->type() != gguf::ValueType::String)
    return "general.architecture is missing or no string";
  c.architecture = architecture->string().str();
  std::string problem;
  const Family *family = findFamily(&Family::gguf, c.architecture, "general.architecture", problem);
  if (!family)
    return problem;
  Parameters p = Parameters::fromGGUF(file, c.architecture);
  c.layers.resize(size_t(p.integer("block_count", 1, layerLimit)));
  c.names = ggufNames();
  c.ropeInterleaved = family->ggufInterleaved;
  if (family->structure)
    family->structure(c);
  readCommonGGUF(p, file, c);
  if (family->readGGUF)
    family->readGGUF(p, c);
  problem = p.finish(c.architecture);
  return problem.empty() ? checkWhole(c) : problem;
}

} // namespace ajour::architectures
