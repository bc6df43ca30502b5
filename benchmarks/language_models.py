#!/usr/bin/env python3
"""Writes GGUF files of well-known language models with random weights, so that speed can be measured without trained files.

    language_models.py MODEL TYPE -o FILE.gguf [--zeros N] [--share R] [--seed S]

Shapes, names and metadata are those of the real models, so that every engine that reads GGUF runs them; the tokenizer is a small
invention of the right size. Weights are scaled so that activations stay near 1. With --zeros N of each 4 neighbours of every
linear layer of a block are 0, at the same places in R rows (C4^N). Needs numpy.
"""

import argparse
import struct
import sys

import numpy as np

# Rows are made and written in pieces of about so many weights.
PIECE = 1 << 23

# Number in the format, weights and bytes of a block.
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210)}
# general.file_type of the files.
FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 7, "q4_k_m": 15}

TRANSFORMERS = {
    "tinyllama-1.1b": dict(layers=22, hidden=2048, heads=32, kv=4, inner=5632, vocab=32000, context=2048, base=10000.0, tied=False),
    "llama-3.2-1b": dict(layers=16, hidden=2048, heads=32, kv=8, inner=8192, vocab=128256, context=131072, base=500000.0, tied=True),
}
MAMBAS = {
    "mamba-130m": dict(layers=24, hidden=768),
    "mamba-370m": dict(layers=48, hidden=1024),
    "mamba-1.4b": dict(layers=48, hidden=2048),
    "mamba-2.8b": dict(layers=64, hidden=2560),
    "mamba2-130m": dict(layers=24, hidden=768),
    "mamba2-370m": dict(layers=48, hidden=1024),
    "mamba2-1.3b": dict(layers=48, hidden=2048),
    "mamba2-2.7b": dict(layers=64, hidden=2560),
}


# ---- quantised blocks ----------------------------------------------------------------------------------------------------------


def normal_table(scale, count):
    """`count` values whose distribution is normal with this deviation, in order."""
    # Sums of uniform numbers are near enough.
    rng = np.random.default_rng(0)
    return np.sort(scale * (rng.random((count, 12)).sum(axis=1) - 6)).astype(np.float32)


NORMAL = normal_table(1.0, 65536)
NORMAL_BYTES = np.clip(np.rint(normal_table(40.0, 256)), -127, 127).astype(np.int8)
NORMAL_BYTES[NORMAL_BYTES == 0] = 1  # a zero is a weight that was pruned
# A nibble 1 to 15 but 8, which is zero.
NIBBLES = np.array([1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 6, 10], np.uint8)


def random_bytes(rng, *shape):
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def scales(rng, count, scale):
    """f16 scales of blocks around `scale`."""
    return (scale * (0.75 + 0.5 * rng.random(count, np.float32))).astype(np.float16)


def floats(kind, rng, rows, columns, deviation, keep):
    index = np.frombuffer(rng.bytes(rows * columns * 2), np.uint16)
    values = (NORMAL * deviation).astype(np.float32 if kind == "f32" else np.float16)[index].reshape(rows, columns)
    if keep is not None:
        values = np.where(keep, values, values.dtype.type(0))
    return values.tobytes()


def q8_0(rng, rows, columns, deviation, keep):
    blocks = rows * columns // 32
    out = np.empty((blocks, 34), np.uint8)
    out[:, :2] = scales(rng, blocks, deviation / 40).reshape(-1, 1).view(np.uint8)
    values = NORMAL_BYTES[random_bytes(rng, blocks, 32)]
    if keep is not None:
        values = values * keep.reshape(blocks, 32)
    out[:, 2:] = values.view(np.uint8)
    return out.tobytes()


def q4_0(rng, rows, columns, deviation, keep):
    blocks = rows * columns // 32
    out = np.empty((blocks, 18), np.uint8)
    out[:, :2] = scales(rng, blocks, deviation / 4.5).reshape(-1, 1).view(np.uint8)
    noise = random_bytes(rng, blocks, 16)
    low, high = NIBBLES[noise & 15], NIBBLES[noise >> 4]
    if keep is not None:
        keep = keep.reshape(blocks, 32)
        low, high = np.where(keep[:, :16], low, np.uint8(8)), np.where(keep[:, 16:], high, np.uint8(8))
    out[:, 2:] = low | high << 4
    return out.tobytes()


def q4_k(rng, rows, columns, deviation, keep):
    """Values 0 to 15 times 6-bit scales, less 6-bit minima so that the mean is 0."""
    assert keep is None, "K-quants have no zero"
    blocks = rows * columns // 256
    out = np.empty((blocks, 144), np.uint8)
    d = scales(rng, blocks, deviation / (4.6 * 48))
    out[:, 0:2] = d.reshape(-1, 1).view(np.uint8)
    out[:, 2:4] = (d * np.float16(7.5)).reshape(-1, 1).view(np.uint8)
    s = 32 + (random_bytes(rng, blocks, 8) & 31)  # the scale and the minimum of each of eight groups
    out[:, 4:8] = out[:, 8:12] = s[:, :4] | (s[:, 4:] >> 4) << 6
    out[:, 12:16] = (s[:, 4:] & 15) | (s[:, 4:] & 15) << 4
    out[:, 16:] = random_bytes(rng, blocks, 128)
    return out.tobytes()


def q6_k(rng, rows, columns, deviation, keep):
    assert keep is None, "K-quants have no zero"
    blocks = rows * columns // 256
    out = np.empty((blocks, 210), np.uint8)
    out[:, :192] = random_bytes(rng, blocks, 192)
    out[:, 192:208] = 64 + (random_bytes(rng, blocks, 16) & 63)
    out[:, 208:] = scales(rng, blocks, deviation / (18.5 * 95)).reshape(-1, 1).view(np.uint8)
    return out.tobytes()


BLOCKS = {"q8_0": q8_0, "q4_0": q4_0, "q4_k": q4_k, "q6_k": q6_k}


def c4n(rng, rows, columns, pruned, share):
    """Which weights stay: all but `pruned` of each 4 columns, the same in `share` rows."""
    order = rng.random((-(-rows // share), columns // 4, 4), np.float32).argsort(axis=2)
    keep = np.repeat((order >= pruned).reshape(-1, columns), share, axis=0)
    return keep[:rows]


# ---- the file ------------------------------------------------------------------------------------------------------------------


class File:
    """Collects metadata and tensors; weights are made while they are written."""

    def __init__(self, kind, seed):
        self.kind, self.seed, self.metadata, self.count, self.tensors = kind, seed, bytearray(), 0, []

    @staticmethod
    def text(value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def put(self, key, kind, value):
        self.count += 1
        self.metadata += self.text(key) + struct.pack("<I", {"u32": 4, "f32": 6, "bool": 7, "str": 8}[kind])
        self.metadata += self.text(value) if kind == "str" else struct.pack({"u32": "<I", "f32": "<f", "bool": "<B"}[kind], value)

    def put_array(self, key, kind, values):
        self.count += 1
        self.metadata += self.text(key) + struct.pack("<IIQ", 9, {"i32": 5, "f32": 6, "str": 8}[kind], len(values))
        if kind == "str":
            self.metadata += b"".join(self.text(v) for v in values)
        else:
            self.metadata += np.asarray(values, {"i32": "<i4", "f32": "<f4"}[kind]).tobytes()

    def values(self, name, array):
        """A tensor of given f32 values, outermost dimension first."""
        array = np.asarray(array, np.float32)
        self.tensors.append((name, array.shape, "f32", array.nbytes, lambda out: out.write(array.tobytes())))

    def matrix(self, name, rows, columns, deviation, better=False, zeros=0, share=1):
        """A random matrix; `better`: one that mixtures give more bits."""
        kind = self.kind
        if kind == "q4_k_m":
            kind = "q6_k" if better else "q4_k"
            if columns % 256:
                kind = "q8_0" if columns % 32 == 0 else "f16"
        if columns % TYPES[kind][1]:
            kind = "f16"
        index = len(self.tensors)

        def write(out):
            rng = np.random.default_rng([self.seed, index])
            step = max(share, PIECE // columns // share * share)
            for first in range(0, rows, step):
                count = min(step, rows - first)
                keep = c4n(rng, count, columns, zeros, share) if zeros else None
                if kind in BLOCKS:
                    out.write(BLOCKS[kind](rng, count, columns, deviation, keep))
                else:
                    out.write(floats(kind, rng, count, columns, deviation, keep))

        _, elements, size = TYPES[kind]
        self.tensors.append((name, (rows, columns), kind, rows * columns // elements * size, write))

    def save(self, path):
        align = lambda n: -n % 32
        infos, offset = bytearray(), 0
        for name, shape, kind, size, _ in self.tensors:
            infos += self.text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
            infos += struct.pack("<IQ", TYPES[kind][0], offset)
            offset += size + align(size)
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), self.count) + self.metadata + infos
        with open(path, "wb") as out:
            out.write(head + bytes(align(len(head))))
            for _, _, _, size, write in self.tensors:
                write(out)
                out.write(bytes(align(size)))


# ---- tokenizers ----------------------------------------------------------------------------------------------------------------


def pieces(blank, count):
    """(text, what it is merged from): texts of letters, each one letter longer than one before it."""
    letters = "etaoinshrdlcumwfgypbvkjxqz"
    found = [(blank, None)] + [(letter, None) for letter in letters]
    for text, _ in found:
        for letter in letters:
            if len(found) >= count:
                return found
            found.append((text + letter, (text, letter)))
    return found


def sentence_piece(file, size):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [2, 3, 3] + [6] * 256
    texts = [text for text, _ in pieces("\u2581", size - len(tokens))]
    scores = [0.0] * len(tokens) + [-float(i) for i in range(len(texts))]
    file.put("tokenizer.ggml.model", "str", "llama")
    file.put_array("tokenizer.ggml.tokens", "str", tokens + texts)
    file.put_array("tokenizer.ggml.scores", "f32", scores)
    file.put_array("tokenizer.ggml.token_type", "i32", types + [1] * len(texts))
    file.put("tokenizer.ggml.bos_token_id", "u32", 1)
    file.put("tokenizer.ggml.eos_token_id", "u32", 2)
    file.put("tokenizer.ggml.unknown_token_id", "u32", 0)


def byte_level(file, size, pre, specials):
    """Byte pairs over the usual printable stand-ins of the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [letters[byte] for byte in range(256)]
    made = [(text, parts) for text, parts in pieces(letters[32], size + 27 - 256 - len(specials)) if parts]
    file.put("tokenizer.ggml.model", "str", "gpt2")
    file.put("tokenizer.ggml.pre", "str", pre)
    file.put_array("tokenizer.ggml.tokens", "str", tokens + [text for text, _ in made] + specials)
    file.put_array("tokenizer.ggml.token_type", "i32", [1] * (size - len(specials)) + [3] * len(specials))
    file.put_array("tokenizer.ggml.merges", "str", [" ".join(parts) for _, parts in made])
    file.put("tokenizer.ggml.bos_token_id", "u32", size - len(specials))
    file.put("tokenizer.ggml.eos_token_id", "u32", size - 1)


# ---- models --------------------------------------------------------------------------------------------------------------------


def transformer(file, name, layers, hidden, heads, kv, inner, vocab, context, base, tied, **sparse):
    size = hidden // heads
    file.put("general.architecture", "str", "llama")
    file.put("general.name", "str", name)
    file.put("general.file_type", "u32", FILE_TYPES[file.kind])
    for key, value in [("context_length", context), ("embedding_length", hidden), ("block_count", layers), ("feed_forward_length", inner),
                       ("attention.head_count", heads), ("attention.head_count_kv", kv), ("rope.dimension_count", size),
                       ("vocab_size", vocab)]:
        file.put("llama." + key, "u32", value)
    file.put("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5)
    file.put("llama.rope.freq_base", "f32", base)
    if vocab == 32000:
        sentence_piece(file, vocab)
    else:
        byte_level(file, vocab, "llama-bpe", ["<|begin_of_text|>", "<|end_of_text|>"])
        # Long waves are stretched 32 times, short ones stay.
        wave = 2 * np.pi * base ** (np.arange(0, size, 2) / size)
        smooth = np.clip((8192 / wave - 1) / (4 - 1), 0, 1)
        file.values("rope_freqs.weight", 1 / ((1 - smooth) / 32 + smooth))
    rng = np.random.default_rng(file.seed)
    norm = lambda: 1 + 0.1 * rng.standard_normal(hidden)
    file.matrix("token_embd.weight", vocab, hidden, 0.02 if tied else 0.5, better=tied)
    if not tied:
        file.matrix("output.weight", vocab, hidden, hidden**-0.5, better=True)
    file.values("output_norm.weight", norm())
    into, back = hidden**-0.5, (2 * layers) ** -0.5
    for i in range(layers):
        p = f"blk.{i}."
        better = i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2
        file.values(p + "attn_norm.weight", norm())
        file.matrix(p + "attn_q.weight", hidden, hidden, into, **sparse)
        file.matrix(p + "attn_k.weight", kv * size, hidden, into, **sparse)
        file.matrix(p + "attn_v.weight", kv * size, hidden, into, better, **sparse)
        file.matrix(p + "attn_output.weight", hidden, hidden, into * back, **sparse)
        file.values(p + "ffn_norm.weight", norm())
        file.matrix(p + "ffn_gate.weight", inner, hidden, into, **sparse)
        file.matrix(p + "ffn_up.weight", inner, hidden, into, **sparse)
        file.matrix(p + "ffn_down.weight", hidden, inner, inner**-0.5 * back, better, **sparse)


def mamba(file, name, layers, hidden, **sparse):
    second = name.startswith("mamba2")
    prefix, vocab, inner, kernel = ("mamba2." if second else "mamba."), 50280, 2 * hidden, 4
    states = 128 if second else 16
    rank = inner // 64 if second else hidden // 16  # of the time step; the number of heads in Mamba-2
    file.put("general.architecture", "str", prefix[:-1])
    file.put("general.name", "str", name)
    file.put("general.file_type", "u32", FILE_TYPES[file.kind])
    for key, value in [("context_length", 1 << 20), ("embedding_length", hidden), ("feed_forward_length", 0), ("block_count", layers),
                       ("attention.head_count", 0), ("ssm.conv_kernel", kernel), ("ssm.inner_size", inner), ("ssm.state_size", states),
                       ("ssm.time_step_rank", rank), ("vocab_size", vocab)] + [("ssm.group_count", 1)] * second:
        file.put(prefix + key, "u32", value)
    file.put(prefix + "attention.layer_norm_rms_epsilon", "f32", 1e-5)
    byte_level(file, vocab, "gpt-2", ["<|endoftext|>"])
    rng = np.random.default_rng(file.seed)
    norm = lambda n: 1 + 0.1 * rng.standard_normal(n)
    file.matrix("token_embd.weight", vocab, hidden, 0.02, better=True)
    file.values("output_norm.weight", norm(hidden))
    # Biases whose softplus is a time step from 0.001 to 0.1.
    step = lambda n: np.log(np.expm1(np.exp(rng.uniform(np.log(0.001), np.log(0.1), n))))
    into, back = hidden**-0.5, inner**-0.5 * layers**-0.5
    for i in range(layers):
        p = f"blk.{i}."
        file.values(p + "attn_norm.weight", norm(hidden))
        if second:
            channels = inner + 2 * states
            file.matrix(p + "ssm_in.weight", inner + channels + rank, hidden, into, **sparse)
            file.values(p + "ssm_dt.bias", step(rank))
            file.values(p + "ssm_a", -rng.uniform(1, 16, (rank, 1)))
            file.values(p + "ssm_d", np.ones((rank, 1)))
            file.values(p + "ssm_norm.weight", norm(inner).reshape(1, inner))
        else:
            channels = inner
            file.matrix(p + "ssm_in.weight", 2 * inner, hidden, into, **sparse)
            file.matrix(p + "ssm_x.weight", rank + 2 * states, inner, inner**-0.5, **sparse)
            file.matrix(p + "ssm_dt.weight", inner, rank, rank**-0.5)
            file.values(p + "ssm_dt.bias", step(inner))
            file.values(p + "ssm_a", -np.tile(np.arange(1, states + 1), (inner, 1)))
            file.values(p + "ssm_d", np.ones(inner))
        file.values(p + "ssm_conv1d.weight", 0.5 * rng.standard_normal((channels, kernel)))
        file.values(p + "ssm_conv1d.bias", 0.1 * rng.standard_normal(channels))
        file.matrix(p + "ssm_out.weight", hidden, inner, back, **sparse)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=[*TRANSFORMERS, *MAMBAS])
    parser.add_argument("type", choices=list(FILE_TYPES))
    parser.add_argument("-o", "--output", required=True, metavar="FILE.gguf")
    parser.add_argument("--zeros", type=int, choices=[0, 1, 2, 3], default=0, help="of each 4 neighbours in a row; default 0")
    parser.add_argument("--share", type=int, choices=[1, 4, 8, 16], default=8, help="rows with zeros at the same places; default 8")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.zeros and arguments.type == "q4_k_m":
        sys.exit("language_models.py: K-quants have no zero; take q4_0, q8_0, f16 or f32 with --zeros")
    file = File(arguments.type, arguments.seed)
    sparse = dict(zeros=arguments.zeros, share=arguments.share)
    if arguments.model in TRANSFORMERS:
        transformer(file, arguments.model, **TRANSFORMERS[arguments.model], **sparse)
    else:
        mamba(file, arguments.model, **MAMBAS[arguments.model], **sparse)
    file.save(arguments.output)


if __name__ == "__main__":
    main()
