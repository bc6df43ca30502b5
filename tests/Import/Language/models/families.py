"""A small model of each architecture: its config.json and its forward pass, from the publications and the models' own descriptions."""

import math

import torch
from layers import (Model, attend, frequencies, gelu, gelu_tanh, heads, llama3_turns, mixture, rotate, silu, standardize,
                    yarn_turns)

HIDDEN, HEADS, SHARED, SIZE, WIDTH, VOCABULARY, CONTEXT = 64, 4, 2, 16, 96, 80, 64

BASE = {
    "hidden_size": HIDDEN,
    "intermediate_size": WIDTH,
    "num_hidden_layers": 3,
    "num_attention_heads": HEADS,
    "num_key_value_heads": SHARED,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": CONTEXT,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


def config(model_type, without=(), **changes):
    result = {k: v for k, v in BASE.items() if k not in without}
    return {"model_type": model_type, **result, **changes}


def qkv(m, x, prefix, bias=False, size=SIZE, count=HEADS, shared=SHARED):
    q, k, v = (m.linear(x, prefix + n, c * size, bias) for n, c in (("q_proj", count), ("k_proj", shared), ("v_proj", shared)))
    return heads(q, size), heads(k, size), heads(v, size)


def embed(m, tokens, name="model.embed_tokens.weight"):
    return m.get(name, (VOCABULARY, HIDDEN), 1.0)[tokens]


def head(m, x, tied=False):
    return x @ m.weights["model.embed_tokens.weight"].to(x.dtype).T if tied else m.linear(x, "lm_head", VOCABULARY)


def llama_like(m, tokens, c, turns=None, magnitude=1.0, bias=False, window=lambda i: 0, norm_heads=False, turned=lambda i: True,
               counts=lambda i: (HEADS, SHARED), width=lambda i: WIDTH, feed=None, tied=False, scales=(1, None, 1, 1)):
    """Llama and what differs from it in one or two places."""
    turns = frequencies(SIZE, c["rope_theta"]) if turns is None else turns
    epsilon = c["rms_norm_eps"]
    x = embed(m, tokens) * scales[0]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        q, k, v = qkv(m, m.rms(x, p + "input_layernorm", epsilon), p + "self_attn.", bias, count=counts(i)[0], shared=counts(i)[1])
        if norm_heads:
            q, k = m.rms(q, p + "self_attn.q_norm", epsilon), m.rms(k, p + "self_attn.k_norm", epsilon)
        if turned(i):
            q, k = rotate(q, turns, magnitude), rotate(k, turns, magnitude)
        x = x + scales[2] * m.linear(attend(q, k, v, scales[1], window(i)), p + "self_attn.o_proj", HIDDEN)
        y = m.rms(x, p + "post_attention_layernorm", epsilon)
        x = x + scales[2] * (feed(i, y) if feed else m.gated(y, p + "mlp.", width(i), silu))
    return head(m, m.rms(x, "model.norm", epsilon), tied) * scales[3]


def llama(m, tokens):
    c = config("llama", tie_word_embeddings=True)
    return c, llama_like(m, tokens, c, tied=True)


def llama_linear(m, tokens):
    c = config("llama", rope_scaling={"type": "linear", "factor": 4.0})
    return c, llama_like(m, tokens, c, frequencies(SIZE, 10000.0) / 4)


def llama3(m, tokens):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    c = config("llama", rope_theta=500000.0, rope_scaling=scaling)
    return c, llama_like(m, tokens, c, llama3_turns(frequencies(SIZE, 500000.0), 8, 1, 4, 32))


def llama_yarn(m, tokens):
    c = config("llama", rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16})
    return c, llama_like(m, tokens, c, *yarn_turns(SIZE, 10000.0, 4, 16))


def llama_pruned(m, tokens):
    """Heads and widths that differ from layer to layer, as pruning and searching leave them."""
    c = config("llama", head_dim=SIZE, attention_bias=False)
    counts, widths = [(4, 2), (2, 1), (6, 2)], [96, 40, 72]
    x = llama_like(m, tokens, c, counts=lambda i: counts[i], width=lambda i: widths[i])
    return c, x


def mistral(m, tokens):
    c = config("mistral", sliding_window=5, head_dim=SIZE)
    return c, llama_like(m, tokens, c, window=lambda i: 5)


def qwen2(m, tokens, windows=False):
    c = config("qwen2", use_sliding_window=windows, sliding_window=4, max_window_layers=2, rope_theta=1000000.0, rms_norm_eps=1e-6)
    # Queries, keys and values have biases, the output has none.
    return c, llama_like(m, tokens, c, bias=True, window=lambda i: 4 if windows and i >= 2 else 0)


def qwen2_windows(m, tokens):
    return qwen2(m, tokens, True)


def qwen3(m, tokens):
    c = config("qwen3", head_dim=SIZE, attention_bias=False, use_sliding_window=False, max_window_layers=3)
    return c, llama_like(m, tokens, c, norm_heads=True)


def smollm3(m, tokens):
    c = config("smollm3", num_hidden_layers=4, no_rope_layers=[1, 1, 1, 0], no_rope_layer_interval=4, use_sliding_window=False)
    return c, llama_like(m, tokens, c, turned=lambda i: i != 3)


def granite(m, tokens):
    c = config("granite", embedding_multiplier=6.0, attention_multiplier=0.125, residual_multiplier=0.3, logits_scaling=4.0)
    return c, llama_like(m, tokens, c, scales=(6.0, 0.125, 0.3, 0.25))


def olmo(m, tokens):
    c = config("olmo", without=("rms_norm_eps",), clip_qkv=None)
    turns, x = frequencies(SIZE, 10000.0), embed(m, tokens)
    for i in range(3):
        p = f"model.layers.{i}."
        q, k, v = qkv(m, standardize(x, 1e-5), p + "self_attn.")
        x = x + m.linear(attend(rotate(q, turns), rotate(k, turns), v), p + "self_attn.o_proj", HIDDEN)
        x = x + m.gated(standardize(x, 1e-5), p + "mlp.", WIDTH, silu)
    return c, head(m, standardize(x, 1e-5))


def olmo2(m, tokens):
    c = config("olmo2")
    turns, x = frequencies(SIZE, 10000.0), embed(m, tokens)
    for i in range(3):
        p = f"model.layers.{i}."
        q = m.rms(m.linear(x, p + "self_attn.q_proj", HEADS * SIZE), p + "self_attn.q_norm", 1e-5)
        k = m.rms(m.linear(x, p + "self_attn.k_proj", SHARED * SIZE), p + "self_attn.k_norm", 1e-5)
        v = heads(m.linear(x, p + "self_attn.v_proj", SHARED * SIZE), SIZE)
        y = m.linear(attend(rotate(heads(q, SIZE), turns), rotate(heads(k, SIZE), turns), v), p + "self_attn.o_proj", HIDDEN)
        x = x + m.rms(y, p + "post_attention_layernorm", 1e-5)
        x = x + m.rms(m.gated(x, p + "mlp.", WIDTH, silu), p + "post_feedforward_layernorm", 1e-5)
    return c, head(m, m.rms(x, "model.norm", 1e-5))


def stablelm(m, tokens, parallel=False):
    c = config("stablelm", without=("rms_norm_eps",), layer_norm_eps=1e-5, partial_rotary_factor=0.25, use_parallel_residual=parallel,
               use_qkv_bias=True, qk_layernorm=False)
    turns, x = frequencies(SIZE // 4, 10000.0), embed(m, tokens)
    for i in range(3):
        p = f"model.layers.{i}."
        read = m.layer_norm(x, p + "input_layernorm", 1e-5)
        q, k, v = qkv(m, read, p + "self_attn.", True)
        attended = m.linear(attend(rotate(q, turns), rotate(k, turns), v), p + "self_attn.o_proj", HIDDEN)
        if parallel:
            x = x + attended + m.gated(read, p + "mlp.", WIDTH, silu)
        else:
            x = x + attended
            x = x + m.gated(m.layer_norm(x, p + "post_attention_layernorm", 1e-5), p + "mlp.", WIDTH, silu)
    return c, head(m, m.layer_norm(x, "model.norm", 1e-5))


def stablelm_parallel(m, tokens):
    return stablelm(m, tokens, True)


def gemma(m, tokens):
    c = config("gemma", tie_word_embeddings=True, hidden_act="gelu", hidden_activation=None, head_dim=SIZE, rms_norm_eps=1e-6)
    turns, x = frequencies(SIZE, 10000.0), embed(m, tokens) * math.sqrt(HIDDEN)
    for i in range(3):
        p = f"model.layers.{i}."
        q, k, v = qkv(m, m.rms(x, p + "input_layernorm", 1e-6, 1.0), p + "self_attn.")
        x = x + m.linear(attend(rotate(q, turns), rotate(k, turns), v), p + "self_attn.o_proj", HIDDEN)
        x = x + m.gated(m.rms(x, p + "post_attention_layernorm", 1e-6, 1.0), p + "mlp.", WIDTH, gelu_tanh)
    return c, head(m, m.rms(x, "model.norm", 1e-6, 1.0), True)


def gemma_block(m, x, p, attention):
    """A layer of Gemma 2 and 3: norms before and behind both parts."""
    y = attention(m.rms(x, p + "input_layernorm", 1e-6, 1.0))
    x = x + m.rms(y, p + "post_attention_layernorm", 1e-6, 1.0)
    y = m.gated(m.rms(x, p + "pre_feedforward_layernorm", 1e-6, 1.0), p + "mlp.", WIDTH, gelu_tanh)
    return x + m.rms(y, p + "post_feedforward_layernorm", 1e-6, 1.0)


def gemma2(m, tokens):
    # A head of 24 dimensions does not divide the stream; scores are scaled by another number still.
    size = 24
    c = config("gemma2", tie_word_embeddings=True, without=("hidden_act",), hidden_activation="gelu_pytorch_tanh", head_dim=size,
               rms_norm_eps=1e-6, query_pre_attn_scalar=24, attn_logit_softcapping=5.0, final_logit_softcapping=3.0, sliding_window=4)
    turns, x = frequencies(size, 10000.0), embed(m, tokens) * math.sqrt(HIDDEN)
    for i in range(3):
        p = f"model.layers.{i}."

        def attention(y):
            q, k, v = qkv(m, y, p + "self_attn.", size=size)
            window = 4 if i % 2 == 0 else 0
            return m.linear(attend(rotate(q, turns), rotate(k, turns), v, 24**-0.5, window, 5.0), p + "self_attn.o_proj", HIDDEN)

        x = gemma_block(m, x, p, attention)
    logits = head(m, m.rms(x, "model.norm", 1e-6, 1.0), True)
    return c, 3.0 * torch.tanh(logits / 3.0)


def gemma3(m, tokens):
    c = config("gemma3_text", tie_word_embeddings=True, without=("hidden_act",), num_hidden_layers=6, hidden_activation="gelu_pytorch_tanh",
               head_dim=SIZE, rms_norm_eps=1e-6, query_pre_attn_scalar=SIZE, attn_logit_softcapping=None, final_logit_softcapping=None,
               sliding_window=4, sliding_window_pattern=6, rope_theta=1000000.0, rope_local_base_freq=10000.0,
               rope_scaling={"rope_type": "linear", "factor": 8.0})
    x = embed(m, tokens) * math.sqrt(HIDDEN)
    for i in range(6):
        p, last = f"model.layers.{i}.", (i + 1) % 6 == 0
        turns = frequencies(SIZE, 1000000.0) / 8 if last else frequencies(SIZE, 10000.0)

        def attention(y):
            q, k, v = qkv(m, y, p + "self_attn.")
            q, k = m.rms(q, p + "self_attn.q_norm", 1e-6, 1.0), m.rms(k, p + "self_attn.k_norm", 1e-6, 1.0)
            return m.linear(attend(rotate(q, turns), rotate(k, turns), v, SIZE**-0.5, 0 if last else 4), p + "self_attn.o_proj", HIDDEN)

        x = gemma_block(m, x, p, attention)
    return c, head(m, m.rms(x, "model.norm", 1e-6, 1.0), True)


def phi2(m, tokens):
    c = config("phi", without=("rms_norm_eps", "num_key_value_heads"), hidden_act="gelu_new", layer_norm_eps=1e-5, partial_rotary_factor=0.5,
               qk_layernorm=False)
    turns, x = frequencies(SIZE // 2, 10000.0), embed(m, tokens)
    for i in range(3):
        p = f"model.layers.{i}."
        y = m.layer_norm(x, p + "input_layernorm", 1e-5)
        q, k, v = qkv(m, y, p + "self_attn.", True, shared=HEADS)
        attended = m.linear(attend(rotate(q, turns), rotate(k, turns), v), p + "self_attn.dense", HIDDEN, True)
        x = x + attended + m.linear(gelu_tanh(m.linear(y, p + "mlp.fc1", WIDTH, True)), p + "mlp.fc2", HIDDEN, True)
    return c, m.linear(m.layer_norm(x, "model.final_layernorm", 1e-5), "lm_head", VOCABULARY, True)


def phi3(m, tokens, long=False):
    """Factors for short and for long contexts, of which a model that is compiled for CONTEXT positions takes the second when it
    was trained on fewer."""
    original = 32 if long else CONTEXT
    short, far = [1 + 0.1 * i for i in range(SIZE // 2)], [1.5 + 0.5 * i for i in range(SIZE // 2)]
    c = config("phi3", sliding_window=6, original_max_position_embeddings=original, rope_scaling={"type": "longrope", "short_factor": short, "long_factor": far})
    turns = frequencies(SIZE, 10000.0) / torch.tensor(far if long else short, dtype=torch.float64)
    magnitude = math.sqrt(1 + math.log(CONTEXT / original) / math.log(original))
    x = embed(m, tokens)
    for i in range(3):
        p = f"model.layers.{i}."
        y = m.linear(m.rms(x, p + "input_layernorm", 1e-5), p + "self_attn.qkv_proj", (HEADS + 2 * SHARED) * SIZE)
        q, k, v = (heads(t, SIZE) for t in torch.split(y, [HEADS * SIZE, SHARED * SIZE, SHARED * SIZE], -1))
        x = x + m.linear(attend(rotate(q, turns, magnitude), rotate(k, turns, magnitude), v, None, 6), p + "self_attn.o_proj", HIDDEN)
        gate, up = m.linear(m.rms(x, p + "post_attention_layernorm", 1e-5), p + "mlp.gate_up_proj", 2 * WIDTH).chunk(2, -1)
        x = x + m.linear(silu(gate) * up, p + "mlp.down_proj", HIDDEN)
    return c, head(m, m.rms(x, "model.norm", 1e-5))


def phi3_long(m, tokens):
    return phi3(m, tokens, True)


def gpt2(m, tokens):
    c = {"model_type": "gpt2", "n_embd": HIDDEN, "n_layer": 3, "n_head": HEADS, "n_positions": CONTEXT, "n_ctx": CONTEXT, "n_inner": None,
         "vocab_size": VOCABULARY, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1}
    embedding = m.get("wte.weight", (VOCABULARY, HIDDEN), 1.0)
    x = embedding[tokens] + m.get("wpe.weight", (CONTEXT, HIDDEN), 0.5)[: len(tokens)]
    for i in range(3):
        p = f"h.{i}."
        y = m.conv1d(m.layer_norm(x, p + "ln_1", 1e-5), p + "attn.c_attn", 3 * HIDDEN)
        q, k, v = (heads(t, SIZE) for t in y.chunk(3, -1))
        x = x + m.conv1d(attend(q, k, v), p + "attn.c_proj", HIDDEN)
        y = gelu_tanh(m.conv1d(m.layer_norm(x, p + "ln_2", 1e-5), p + "mlp.c_fc", WIDTH))
        x = x + m.conv1d(y, p + "mlp.c_proj", HIDDEN)
    return c, m.layer_norm(x, "ln_f", 1e-5) @ embedding.T


def bloom(m, tokens):
    hidden, count = 48, 3  # not a power of 2: the third slope lies between others
    c = {"model_type": "bloom", "n_embed": hidden, "n_layer": 3, "n_head": count, "seq_length": CONTEXT, "vocab_size": VOCABULARY, "layer_norm_epsilon": 1e-5,
         "apply_residual_connection_post_layernorm": False, "hidden_dropout": 0.0, "offset_alibi": 100}
    embedding = m.get("word_embeddings.weight", (VOCABULARY, hidden), 1.0)
    x = m.layer_norm(embedding[tokens], "word_embeddings_layernorm", 1e-5)
    for i in range(3):
        p = f"h.{i}."
        y = m.linear(m.layer_norm(x, p + "input_layernorm", 1e-5), p + "self_attention.query_key_value", 3 * hidden, True)
        q, k, v = y.reshape(len(tokens), count, 3, SIZE).unbind(2)
        x = x + m.linear(attend(q, k, v, slopes=[2**-4, 2**-8, 2**-2]), p + "self_attention.dense", hidden, True)
        y = gelu_tanh(m.linear(m.layer_norm(x, p + "post_attention_layernorm", 1e-5), p + "mlp.dense_h_to_4h", WIDTH, True))
        x = x + m.linear(y, p + "mlp.dense_4h_to_h", hidden, True)
    return c, m.layer_norm(x, "ln_f", 1e-5) @ embedding.T


def neox(m, tokens, parallel=True):
    c = config("gpt_neox", without=("rms_norm_eps", "rope_theta", "num_key_value_heads"), hidden_act="gelu", layer_norm_eps=1e-5, rotary_pct=0.25,
               rotary_emb_base=10000, use_parallel_residual=parallel)
    turns, x = frequencies(SIZE // 4, 10000.0), embed(m, tokens, "gpt_neox.embed_in.weight")
    for i in range(3):
        p = f"gpt_neox.layers.{i}."
        y = m.linear(m.layer_norm(x, p + "input_layernorm", 1e-5), p + "attention.query_key_value", 3 * HIDDEN, True)
        q, k, v = y.reshape(len(tokens), HEADS, 3, SIZE).unbind(2)
        attended = m.linear(attend(rotate(q, turns), rotate(k, turns), v), p + "attention.dense", HIDDEN, True)
        second = m.layer_norm(x if parallel else x + attended, p + "post_attention_layernorm", 1e-5)
        fed = m.linear(gelu(m.linear(second, p + "mlp.dense_h_to_4h", WIDTH, True)), p + "mlp.dense_4h_to_h", HIDDEN, True)
        x = x + attended + fed
    return c, m.linear(m.layer_norm(x, "gpt_neox.final_layer_norm", 1e-5), "embed_out", VOCABULARY)


def neox_serial(m, tokens):
    return neox(m, tokens, False)


def starcoder2(m, tokens, window=None):
    c = config("starcoder2", without=("rms_norm_eps",), tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh", norm_epsilon=1e-5, sliding_window=window,
               use_bias=True)
    turns, x = frequencies(SIZE, 10000.0), embed(m, tokens)
    for i in range(3):
        p = f"model.layers.{i}."
        q, k, v = qkv(m, m.layer_norm(x, p + "input_layernorm", 1e-5), p + "self_attn.", True)
        x = x + m.linear(attend(rotate(q, turns), rotate(k, turns), v, None, window or 0), p + "self_attn.o_proj", HIDDEN, True)
        y = gelu_tanh(m.linear(m.layer_norm(x, p + "post_attention_layernorm", 1e-5), p + "mlp.c_fc", WIDTH, True))
        x = x + m.linear(y, p + "mlp.c_proj", HIDDEN, True)
    return c, head(m, m.layer_norm(x, "model.norm", 1e-5), True)


def starcoder2_windows(m, tokens):
    return starcoder2(m, tokens, 5)


def mixtral(m, tokens):
    c = config("mixtral", num_local_experts=6, num_experts_per_tok=2, sliding_window=None, output_router_logits=False)

    def feed(i, y):
        p = f"model.layers.{i}.block_sparse_moe."
        expert = lambda e, rows: m.gated(rows, f"{p}experts.{e}.", WIDTH, silu, ("w1", "w3", "w2"))
        return mixture(m, y, p + "gate", expert, 6, 2, True)

    return c, llama_like(m, tokens, c, feed=feed)


def qwen_experts(m, tokens, c, dense, shared, normalize, **more):
    def feed(i, y):
        p = f"model.layers.{i}.mlp."
        if i in dense:
            return m.gated(y, p, WIDTH, silu)
        expert = lambda e, rows: m.gated(rows, f"{p}experts.{e}.", 32, silu)
        result = mixture(m, y, p + "gate", expert, 8, 3, normalize)
        if shared:
            share = torch.sigmoid(m.linear(y, p + "shared_expert_gate", 1))
            result = result + share * m.gated(y, p + "shared_expert.", 48, silu)
        return result

    return c, llama_like(m, tokens, c, feed=feed, **more)


def qwen2_moe(m, tokens):
    c = config("qwen2_moe", num_experts=8, num_experts_per_tok=3, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[], moe_intermediate_size=32,
               shared_expert_intermediate_size=48, use_sliding_window=False, sliding_window=4, max_window_layers=3)
    return qwen_experts(m, tokens, c, (), True, False, bias=True)


def qwen3_moe(m, tokens, dense=()):
    c = config("qwen3_moe", num_experts=8, num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=list(dense), moe_intermediate_size=32,
               head_dim=SIZE, use_sliding_window=False, sliding_window=None)
    return qwen_experts(m, tokens, c, dense, False, True, norm_heads=True)


def qwen3_moe_mixed(m, tokens):
    return qwen3_moe(m, tokens, (1,))


FAMILIES = [llama, llama_linear, llama3, llama_yarn, llama_pruned, mistral, qwen2, qwen3, smollm3, granite, olmo, olmo2, stablelm, stablelm_parallel,
            gemma, gemma2, gemma3, phi2, phi3, phi3_long, gpt2, bloom, neox, neox_serial, starcoder2, mixtral, qwen2_moe, qwen3_moe,
            qwen2_windows, starcoder2_windows, qwen3_moe_mixed]
