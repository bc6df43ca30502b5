"""Small models with Mamba layers: their config.json, their forward pass from the publications, and their GGUF files."""

import re

import torch
import torch.nn.functional as F
from gguf_files import write_file
from layers import attend, heads, silu

HIDDEN, INNER, STATES, TAPS, RANK, VOCABULARY = 64, 128, 8, 4, 5, 80
HEADS, GROUPS = 8, 2  # of Mamba-2


def convolve(m, x, name):
    """Each channel's taps over the rows so far, and its function."""
    channels = x.shape[1]
    weight = m.get(name + ".weight", (channels, 1, TAPS), 0.5)
    bias = m.get(name + ".bias", (channels,), 0.2)
    padded = torch.cat([torch.zeros(TAPS - 1, channels, dtype=x.dtype), x])
    return silu(bias + sum(padded[k : k + len(x)] * weight[:, 0, k] for k in range(TAPS)))


def scan(x, delta, a, b, c, skip):
    """x [T, H, P], delta [T, H], a [H] or [H, N] (negative), b and c [T, G, N]: token by token."""
    count = x.shape[1]
    shared = count // b.shape[1]
    state = torch.zeros(count, x.shape[2], b.shape[2], dtype=x.dtype)
    rows = []
    for t in range(len(x)):
        decay = torch.exp(delta[t][:, None] * a.reshape(count, -1))[:, None, :]
        own_b, own_c = (v[t].repeat_interleave(shared, 0) for v in (b, c))
        state = decay * state + (delta[t][:, None] * x[t])[:, :, None] * own_b[:, None, :]
        rows.append((state * own_c[:, None, :]).sum(-1) + skip[:, None] * x[t])
    return torch.stack(rows)


def plain_norm(x, epsilon):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon)


def first_mixer(m, x, p, inner=INNER, states=STATES, rank=RANK, norm_parts=None):
    mixed, gate = m.linear(x, p + "in_proj", 2 * inner).chunk(2, -1)
    mixed = convolve(m, mixed, p + "conv1d")
    low, b, c = m.linear(mixed, p + "x_proj", rank + 2 * states).split([rank, states, states], -1)
    if norm_parts:
        low, b, c = (plain_norm(v, norm_parts) for v in (low, b, c))
    delta = F.softplus(m.linear(low, p + "dt_proj", inner, True))
    a = -torch.exp(m.get(p + "A_log", (inner, states), 0.7))
    y = scan(mixed[:, :, None], delta, a, b[:, None, :], c[:, None, :], m.get(p + "D", (inner,), 0.3, 1.0))[:, :, 0]
    return m.linear(y * silu(gate), p + "out_proj", x.shape[1])


def second_mixer(m, x, p, groups=GROUPS, limit=(0.0, float("inf")), epsilon=1e-5):
    parts = groups * STATES
    gate, mixed, delta = m.linear(x, p + "in_proj", 2 * INNER + 2 * parts + HEADS).split([INNER, INNER + 2 * parts, HEADS], -1)
    mixed, b, c = convolve(m, mixed, p + "conv1d").split([INNER, parts, parts], -1)
    delta = F.softplus(delta + m.get(p + "dt_bias", (HEADS,), 0.5)).clamp(*limit)
    a = -torch.exp(m.get(p + "A_log", (HEADS,), 0.7))
    split = lambda v: v.reshape(len(x), groups, -1)
    y = scan(heads(mixed, INNER // HEADS), delta, a, split(b), split(c), m.get(p + "D", (HEADS,), 0.3, 1.0)).reshape(len(x), INNER) * silu(gate)
    y = plain_norm(split(y), epsilon).reshape(len(x), INNER) * m.get(p + "norm.weight", (INNER,), 0.3, 1.0)
    return m.linear(y, p + "out_proj", x.shape[1])


def only_mixers(m, tokens, mixer, embedding="embeddings", layers=3):
    table = m.get(f"backbone.{embedding}.weight", (VOCABULARY, HIDDEN), 1.0)
    x = table[tokens]
    for i in range(layers):
        p = f"backbone.layers.{i}."
        x = x + mixer(i, m.rms(x, p + "norm", 1e-5), p + "mixer.")
    return m.rms(x, "backbone.norm_f", 1e-5), table


def config(model_type, **more):
    return {"model_type": model_type, "architectures": ["X"], "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": 3, "state_size": STATES,
            "conv_kernel": TAPS, "expand": 2, "hidden_act": "silu", "use_bias": False, "use_conv_bias": True, "layer_norm_epsilon": 1e-5,
            "residual_in_fp32": True, "tie_word_embeddings": True, "time_step_min": 0.001, "time_step_max": 0.1, "time_step_floor": 1e-4,
            "initializer_range": 0.1, "rescale_prenorm_residual": False, "torch_dtype": "float32", **more}


def mamba(m, tokens):
    c = config("mamba", intermediate_size=INNER, time_step_rank=RANK, time_step_scale=1.0, time_step_init_scheme="random", use_mambapy=False,
               d_model=HIDDEN, n_layer=3, ssm_cfg={}, d_inner=INNER, rms_norm=True, fused_add_norm=True, pad_vocab_size_multiple=8)
    x, table = only_mixers(m, tokens, lambda i, x, p: first_mixer(m, x, p))
    return c, x @ table.T


def mamba_pruned(m, tokens):
    """Widths and ranks that differ from layer to layer, and a head of its own."""
    c = config("mamba", intermediate_size=INNER, time_step_rank=RANK)
    c["tie_word_embeddings"] = False
    x, _ = only_mixers(m, tokens, lambda i, x, p: first_mixer(m, x, p, (128, 72, 40)[i], rank=(5, 3, 4)[i]))
    return c, m.linear(x, "lm_head", VOCABULARY)


def mamba_own(m, tokens):
    """The configuration of the programs that trained the first models: a vocabulary of 75, rounded up."""
    c = {"d_model": HIDDEN, "n_layer": 3, "vocab_size": 75, "ssm_cfg": {"d_state": STATES}, "rms_norm": True, "residual_in_fp32": True,
         "fused_add_norm": True, "pad_vocab_size_multiple": 8}
    x, table = only_mixers(m, tokens, lambda i, x, p: first_mixer(m, x, p), "embedding")
    return c, x @ table.T


def falcon_mamba(m, tokens):
    c = config("falcon_mamba", intermediate_size=INNER, time_step_rank=RANK, mixer_rms_eps=1e-5)
    x, table = only_mixers(m, tokens, lambda i, x, p: first_mixer(m, x, p, norm_parts=1e-5))
    return c, x @ table.T


def mamba2(m, tokens):
    c = config("mamba2", num_heads=HEADS, head_dim=INNER // HEADS, n_groups=GROUPS, chunk_size=256, norm_before_gate=False, rms_norm=True,
               time_step_limit=[0.0, float("inf")], time_step_rank=RANK)
    c["tie_word_embeddings"] = False
    x, _ = only_mixers(m, tokens, lambda i, x, p: second_mixer(m, x, p))
    return c, m.linear(x, "lm_head", VOCABULARY)


def mamba2_limited(m, tokens):
    c = config("mamba2", num_heads=HEADS, head_dim=INNER // HEADS, n_groups=1, time_step_limit=[0.5, 0.9])
    x, table = only_mixers(m, tokens, lambda i, x, p: second_mixer(m, x, p, 1, (0.5, 0.9)))
    return c, x @ table.T


def granite_hybrid(m, tokens):
    """Layers of Mamba-2 and of attention without positions, each before a feed-forward layer."""
    count, shared, size, width = 4, 2, 16, 96
    types = ["mamba", "attention", "mamba"]
    c = {"model_type": "granitemoehybrid", "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": 3, "layer_types": types,
         "num_attention_heads": count, "num_key_value_heads": shared, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu",
         "embedding_multiplier": 6.0, "attention_multiplier": 0.125, "residual_multiplier": 0.3, "logits_scaling": 4.0, "position_embedding_type": "nope",
         "mamba_n_heads": HEADS, "mamba_n_groups": 1, "mamba_d_state": STATES, "mamba_d_head": INNER // HEADS, "mamba_d_conv": TAPS, "mamba_expand": 2,
         "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_proj_bias": False, "shared_intermediate_size": width, "intermediate_size": width,
         "num_local_experts": 0, "num_experts_per_tok": 0, "normalization_function": "rmsnorm", "tie_word_embeddings": True, "rope_theta": 10000.0}
    table = m.get("model.embed_tokens.weight", (VOCABULARY, HIDDEN), 1.0)
    x = table[tokens] * 6.0
    for i, kind in enumerate(types):
        p = f"model.layers.{i}."
        y = m.rms(x, p + "input_layernorm", 1e-5)
        if kind == "mamba":
            y = second_mixer(m, y, p + "mamba.", 1)
        else:
            q, k, v = (heads(m.linear(y, p + f"self_attn.{n}_proj", n_heads * size), size) for n, n_heads in (("q", count), ("k", shared), ("v", shared)))
            y = m.linear(attend(q, k, v, 0.125), p + "self_attn.o_proj", HIDDEN)
        x = x + 0.3 * y
        gate, up = m.linear(m.rms(x, p + "post_attention_layernorm", 1e-5), p + "shared_mlp.input_linear", 2 * width).chunk(2, -1)
        x = x + 0.3 * m.linear(silu(gate) * up, p + "shared_mlp.output_linear", HIDDEN)
    return c, m.rms(x, "model.norm", 1e-5) @ table.T / 4.0


FAMILIES = [mamba, mamba_pruned, mamba_own, falcon_mamba, mamba2, mamba2_limited, granite_hybrid]

LAYER = {
    "norm": "attn_norm", "in_proj": "ssm_in", "conv1d": "ssm_conv1d", "x_proj": "ssm_x", "dt_proj": "ssm_dt", "out_proj": "ssm_out", "mixer_norm": "ssm_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "shared_mlp.output_linear": "ffn_down",
}
OUTER = {"embedding": "token_embd", "embeddings": "token_embd", "norm_f": "output_norm", "lm_head": "output", "embed_tokens": "token_embd"}


def convert(weights, groups):
    tensors = {}
    for name, tensor in weights.items():
        found = re.match(r"(?:backbone|model)\.layers\.(\d+)\.(?:(mixer|mamba)\.)?(.*)", name)
        if not found:
            stem, ending = re.match(r"(?:backbone\.|model\.)?(.*)\.(weight)", name).groups()
            tensors[("output_norm" if stem == "norm" else OUTER[stem]) + "." + ending] = tensor
            continue
        layer, mixer, rest = found.groups()
        p = f"blk.{layer}."
        if rest == "A_log":
            a = -torch.exp(tensor)
            tensors[p + "ssm_a"] = a if a.dim() == 2 else a[:, None]
        elif rest == "D":
            tensors[p + "ssm_d"] = tensor if weights[name[:-1] + "A_log"].dim() == 2 else tensor[:, None]
        elif rest == "dt_bias":
            tensors[p + "ssm_dt.bias"] = tensor
        elif rest == "shared_mlp.input_linear.weight":
            tensors[p + "ffn_gate.weight"], tensors[p + "ffn_up.weight"] = tensor.chunk(2, 0)
        else:
            stem, ending = rest.rsplit(".", 1)
            if mixer and stem == "norm":
                stem, tensor = "mixer_norm", tensor.reshape(groups, -1)
            tensors[f"{p}{LAYER[stem]}.{ending}"] = tensor.squeeze(1) if stem == "conv1d" and ending == "weight" else tensor
    return tensors


def write_gguf(path, name, c, weights):
    kind = c.get("model_type", "mamba")
    architecture = {"falcon_mamba": "mamba", "granitemoehybrid": "granitehybrid"}.get(kind, kind)
    groups = c.get("n_groups", c.get("mamba_n_groups", 1))
    own = architecture == "mamba"
    keys = {"context_length": 1 << 20, "embedding_length": HIDDEN, "feed_forward_length": 0, "attention.head_count": 0, "block_count": 3, "vocab_size": VOCABULARY,
            "ssm.conv_kernel": TAPS, "ssm.inner_size": INNER, "ssm.state_size": STATES, "ssm.time_step_rank": RANK if own else HEADS,
            "attention.layer_norm_rms_epsilon": 1e-5}
    if not own:
        keys["ssm.group_count"] = groups
    if kind == "falcon_mamba":
        keys["ssm.dt_b_c_rms"] = True
    if architecture == "granitehybrid":
        keys.update({"context_length": 64, "feed_forward_length": 96, "attention.head_count": 4, "attention.head_count_kv": [0, 2, 0], "embedding_scale": 6.0,
                     "attention.scale": 0.125, "residual_scale": 0.3, "logit_scale": 4.0, "rope.dimension_count": 16, "rope.freq_base": 10000.0,
                     "rope.scaling.finetuned": False})
    metadata = {"general.architecture": architecture, "tokenizer.ggml.model": "none"}
    metadata.update({f"{architecture}.{key}": item for key, item in keys.items()})
    write_file(path, metadata, convert(weights, groups))
