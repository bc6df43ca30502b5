"""GGUF files of the small models: names, orders of rows and metadata as llama.cpp's converter leaves them."""

import re
import struct

import torch

U32, F32, BOOL, STRING, ARRAY, U64 = 4, 6, 7, 8, 9, 10


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(item):
    if isinstance(item, bool):
        return struct.pack("<I?", BOOL, item)
    if isinstance(item, int):
        return struct.pack("<II", U32, item)
    if isinstance(item, float):
        return struct.pack("<If", F32, item)
    if isinstance(item, str):
        return struct.pack("<I", STRING) + text(item)
    return struct.pack("<IIQ", ARRAY, U32, len(item)) + b"".join(struct.pack("<I", i) for i in item)


def write_file(path, metadata, tensors):
    data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, item in metadata.items():
        data += text(key) + value(item)
    offset = 0
    for name, tensor in tensors.items():
        shape = list(reversed(tensor.shape))
        data += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += (tensor.numel() * 4 + 31) // 32 * 32
    data += bytes(-len(data) % 32)
    for tensor in tensors.values():
        part = tensor.to(torch.float32).contiguous().numpy().tobytes()
        data += part + bytes(-len(part) % 32)
    path.write_bytes(data)


# Names of layers, Hugging Face's to GGUF's.
LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.dense": "attn_output", "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "block_sparse_moe.gate": "ffn_gate_inp", "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
    "ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
    "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
}
OUTER = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm",
    "model.final_layernorm": "output_norm", "gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output",
    "word_embeddings": "token_embd", "word_embeddings_layernorm": "token_embd_norm",
}
# Norms of what is added to the stream, where a family has them.
POST = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
ARCHITECTURES = {"mistral": "llama", "mixtral": "llama", "gemma3_text": "gemma3", "phi": "phi2", "gpt_neox": "gptneox", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe"}
NEIGHBOURS = {"llama", "smollm3", "granite", "olmo"}  # whose pairs are neighbours in GGUF


def neighbours(tensor, heads):
    """Rows of halves of each head, in the order for neighbouring pairs."""
    shape = tensor.shape
    return tensor.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).transpose(1, 2).reshape(shape)


def convert(config, architecture, weights):
    layer_names = dict(LAYER)
    if architecture in ("gemma2", "gemma3", "olmo2"):
        layer_names.update(POST)
    size = config.get("head_dim") or config.get("hidden_size", config.get("n_embd", config.get("n_embed"))) // config.get("num_attention_heads", config.get("n_head"))
    tensors, experts = {}, {}
    for name, tensor in weights.items():
        stem, ending = name.rsplit(".", 1)
        found = re.match(r"(?:model\.layers|h|gpt_neox\.layers)\.(\d+)\.(.*)", stem)
        if not found:
            target = OUTER[stem]
        else:
            layer, stem = found.groups()
            expert = re.match(r".*experts\.(\d+)\.(\w+)", stem)
            if expert:
                kind = {"w1": "gate", "w3": "up", "w2": "down", "gate_proj": "gate", "up_proj": "up", "down_proj": "down"}[expert.group(2)]
                experts.setdefault(f"blk.{layer}.ffn_{kind}_exps.weight", {})[int(expert.group(1))] = tensor
                continue
            target = f"blk.{layer}.{layer_names[stem]}"
        if architecture.startswith("gemma") and target.endswith("norm"):
            tensor = tensor + 1
        if architecture in NEIGHBOURS and target.endswith(("attn_q", "attn_k")):
            tensor = neighbours(tensor, tensor.shape[0] // size)
        if architecture == "gpt2" and ending == "weight" and target.endswith(("attn_qkv", "attn_output", "ffn_up", "ffn_down")):
            tensor = tensor.T
        if architecture in ("gptneox", "bloom") and target.endswith("attn_qkv"):
            tensor = tensor.reshape(-1, 3, size, *tensor.shape[1:]).transpose(0, 1).reshape(tensor.shape)
        if target.endswith("ffn_gate_inp_shexp"):
            tensor = tensor.reshape(-1)
        tensors[f"{target}.{ending}"] = tensor
    for name, parts in experts.items():
        tensors[name] = torch.stack([parts[i] for i in sorted(parts)])
    return tensors


def write_gguf(path, name, config, weights):
    architecture = ARCHITECTURES.get(config["model_type"], config["model_type"])
    tensors = convert(config, architecture, weights)

    def of(*keys, otherwise=None):
        return next((config[k] for k in keys if config.get(k) is not None), otherwise)

    heads, hidden = of("num_attention_heads", "n_head"), of("hidden_size", "n_embd", "n_embed")
    size = of("head_dim", otherwise=hidden // heads)
    layers, shared = of("num_hidden_layers", "n_layer"), of("num_key_value_heads", otherwise=heads)
    if name == "llama_pruned":
        heads = [tensors[f"blk.{i}.attn_q.weight"].shape[0] // size for i in range(layers)]
        shared = [tensors[f"blk.{i}.attn_k.weight"].shape[0] // size for i in range(layers)]
    widths = of("intermediate_size", otherwise=96)
    if name == "llama_pruned":
        widths = [tensors[f"blk.{i}.ffn_up.weight"].shape[0] for i in range(layers)]
    rms = of("rms_norm_eps")
    epsilon = rms or of("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", otherwise=1e-5)
    keys = {
        "context_length": of("max_position_embeddings", "n_positions", "seq_length"), "embedding_length": hidden, "block_count": layers, "feed_forward_length": widths,
        "attention.head_count": heads, "attention.head_count_kv": shared, "vocab_size": config["vocab_size"],
        ("attention.layer_norm_rms_epsilon" if rms else "attention.layer_norm_epsilon"): epsilon,
    }
    if "head_dim" in config:
        keys.update({"attention.key_length": size, "attention.value_length": size})
    if architecture not in ("gpt2", "bloom"):
        keys["rope.freq_base"] = float(of("rope_theta", "rotary_emb_base"))
        keys["rope.dimension_count"] = int(size * of("partial_rotary_factor", "rotary_pct", otherwise=1))
    if of("sliding_window") and config.get("use_sliding_window", True):
        keys["attention.sliding_window"] = config["sliding_window"]
    for ours, theirs in (("use_parallel_residual", "use_parallel_residual"), ("attn_logit_softcapping", "attn_logit_softcapping"),
                         ("final_logit_softcapping", "final_logit_softcapping"), ("embedding_multiplier", "embedding_scale"),
                         ("attention_multiplier", "attention.scale"), ("residual_multiplier", "residual_scale"), ("logits_scaling", "logit_scale"),
                         ("num_experts", "expert_count"), ("num_local_experts", "expert_count"), ("num_experts_per_tok", "expert_used_count"),
                         ("moe_intermediate_size", "expert_feed_forward_length"), ("shared_expert_intermediate_size", "expert_shared_feed_forward_length")):
        if of(ours) is not None:
            keys[theirs] = config[ours]
    scaling = of("rope_scaling", otherwise={})
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind in ("linear", "yarn"):
        keys.update({"rope.scaling.type": kind, "rope.scaling.factor": scaling["factor"]})
    if kind == "yarn":
        keys["rope.scaling.original_context_length"] = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        from layers import frequencies, llama3_turns

        turns = frequencies(size, config["rope_theta"])
        tensors["rope_freqs.weight"] = turns / llama3_turns(turns, scaling["factor"], scaling["low_freq_factor"], scaling["high_freq_factor"],
                                                             scaling["original_max_position_embeddings"])
    if kind == "longrope":
        import math

        original = config["original_max_position_embeddings"]
        factor = config["max_position_embeddings"] / original
        keys.update({"rope.scaling.type": "longrope", "rope.scaling.original_context_length": original,
                     "rope.scaling.attn_factor": math.sqrt(1 + math.log(factor) / math.log(original))})
        tensors["rope_factors_short.weight"] = torch.tensor(scaling["short_factor"])
        tensors["rope_factors_long.weight"] = torch.tensor(scaling["long_factor"])
    metadata = {"general.architecture": architecture, "tokenizer.ggml.model": "none"}
    metadata.update({f"{architecture}.{key}": item for key, item in keys.items()})
    write_file(path, metadata, tensors)
