#!/usr/bin/python3
"""Trains the quickstart's language model, a Mamba of bytes, and writes it as a Hugging Face folder.

Needs Debian's python3-torch, libopenblas0-pthread (with the reference BLAS it takes four times as long), and bible-kjv with
bible-kjv-text, the text that it learns. Takes about 25 minutes on one idle core:

    nice -n 19 /usr/bin/python3 tools/quickstart/train_mamba.py

Writes config.json, model.safetensors, tokenizer.json and facts.json into the folder mamba beside this script. Every 40th
chapter is held out; heldout() gives them as one text, and facts.json the loss on it.

The net is the one of Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, and its weights have the
names that Hugging Face's MambaForCausalLM gives them.
"""
import argparse
import json
import math
import pathlib
import re
import struct
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional as F


def chapters():
    """The text's chapters, a verse a line, without numbers and headings."""
    command = ["bible", "-l100000", "Gen1:1-Rev22:21"]
    text = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout.decode("ascii")
    result = []
    for line in text.split("\n"):
        if verse := re.match(r"  \d+ (.*)", line):
            result[-1].append(verse[1].strip())
        elif line.strip():
            result.append([])
    return ["\n".join(verses) + "\n\n" for verses in result if verses]


def training(all_chapters):
    return "".join(chapter for i, chapter in enumerate(all_chapters) if i % 40 != 20)


def heldout(all_chapters):
    return "".join(all_chapters[20::40])


class Scan(torch.autograd.Function):
    """y[t] = C[t] h[t] with h[t] = exp(dt[t] A) h[t-1] + dt[t] B[t] x[t], time first; h begins as zeros.

    x, dt [T, batch, D]; A [D, N]; B, C [T, batch, N]. All steps' factors and all states are formed at once, so that only one
    multiplication and addition of a step waits for the step before.
    """

    @staticmethod
    def forward(ctx, x, dt, A, B, C):
        T, batch, D = x.shape
        decay = (dt.unsqueeze(-1) * A).exp_()
        states = (dt * x).unsqueeze(-1) * B.unsqueeze(2)
        for t in range(1, T):
            states[t].addcmul_(decay[t], states[t - 1])
        ctx.save_for_backward(x, dt, A, B, C, decay, states)
        return torch.bmm(states.view(T * batch, D, -1), C.reshape(T * batch, -1, 1)).view(T, batch, D)

    @staticmethod
    def backward(ctx, dy):
        x, dt, A, B, C, decay, states = ctx.saved_tensors
        T, batch, D = x.shape
        steps = T * batch
        grad = dy.unsqueeze(-1) * C.unsqueeze(2)
        for t in range(T - 2, -1, -1):
            grad[t].addcmul_(decay[t + 1], grad[t + 1])
        dC = torch.bmm(dy.reshape(steps, 1, D), states.view(steps, D, -1)).view_as(C)
        dB = torch.bmm((dt * x).view(steps, 1, D), grad.view(steps, D, -1)).view_as(B)
        input_grad = torch.bmm(grad.view(steps, D, -1), B.reshape(steps, -1, 1)).view_as(x)
        # What reaches exp(dt A): decay and states are needed no longer.
        decay[0].zero_()
        decay[1:].mul_(grad[1:]).mul_(states[:-1])
        ddt = input_grad * x + (decay * A).sum(-1)
        dA = decay.mul_(dt.unsqueeze(-1)).sum((0, 1))
        return input_grad * dt, ddt, dA, dB, dC


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class Mixer(nn.Module):
    """x [T, batch, width] to the same: in-projection, causal convolution, selective scan, gate, out-projection."""

    def __init__(self, c):
        super().__init__()
        inner, states, rank = c["intermediate_size"], c["state_size"], c["time_step_rank"]
        self.inner, self.sizes = inner, [rank, states, states]
        self.in_proj = nn.Linear(c["hidden_size"], 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, c["conv_kernel"], groups=inner, padding=c["conv_kernel"] - 1)
        self.x_proj = nn.Linear(inner, rank + 2 * states, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        self.A_log = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, c["hidden_size"], bias=False)
        nn.init.normal_(self.in_proj.weight, std=c["hidden_size"] ** -0.5)
        nn.init.normal_(self.out_proj.weight, std=(inner * 2 * c["num_hidden_layers"]) ** -0.5)
        # Steps between 0.001 and 0.1 at the start, evenly over their logarithm; the bias is their inverse softplus.
        dt = torch.exp(torch.rand(inner) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
        self.dt_proj.bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))
        nn.init.uniform_(self.dt_proj.weight, -(rank**-0.5), rank**-0.5)

    def forward(self, x):
        T, taps = x.shape[0], self.conv1d.kernel_size[0]
        x, gate = self.in_proj(x).chunk(2, -1)
        padded = F.pad(x, (0, 0, 0, 0, taps - 1, 0))
        mixed = self.conv1d.bias
        for tap in range(taps):
            mixed = mixed + padded[tap : tap + T] * self.conv1d.weight[:, 0, tap]
        x = F.silu(mixed)
        dt, B, C = self.x_proj(x).split(self.sizes, -1)
        dt = F.softplus(self.dt_proj(dt))
        y = Scan.apply(x, dt, -self.A_log.exp(), B, C) + self.D * x
        return self.out_proj(y * F.silu(gate))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.mixer = RMSNorm(c["hidden_size"]), Mixer(c)

    def forward(self, x):
        return x + self.mixer(self.norm(x))


class Backbone(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embeddings = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm_f = RMSNorm(c["hidden_size"])
        nn.init.normal_(self.embeddings.weight, std=0.02)


class Model(nn.Module):
    """Bytes [T, batch] to logits [T, batch, 256]. The embedding is the head too."""

    def __init__(self, c):
        super().__init__()
        self.backbone = Backbone(c)

    def forward(self, ids):
        x = self.backbone.embeddings(ids)
        for layer in self.backbone.layers:
            x = layer(x)
        return F.linear(self.backbone.norm_f(x), self.backbone.embeddings.weight)


def as_bytes(text):
    return torch.tensor(list(text.encode("ascii")))


@torch.no_grad()
def loss_of(model, ids):
    """Mean natural logarithm a byte, each byte but the first after all before it."""
    logits = model(ids[:-1].unsqueeze(1))
    return F.cross_entropy(logits.squeeze(1), ids[1:]).item()


def train(model, text, check, args):
    """AdamW on random pieces of the text; the learning rate rises, stays, and falls over the last part."""
    matrices = [p for p in model.parameters() if p.dim() == 2 and p.shape[1] > 16]
    others = [p for p in model.parameters() if not (p.dim() == 2 and p.shape[1] > 16)]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.95))
    start, total, step, progress = time.time(), 0.0, 0, 0.0
    while progress < 1:
        step += 1
        rate = args.rate * min(1, step / 100, 0.02 + 0.98 * (1 - progress) / 0.4)
        for group in optimizer.param_groups:
            group["lr"] = rate
        places = torch.randint(0, len(text) - args.length - 1, (args.batch_size,))
        piece = torch.stack([text[p : p + args.length + 1] for p in places], 1)
        loss = F.cross_entropy(model(piece[:-1]).flatten(0, 1), piece[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress = max(step / args.steps, (time.time() - start) / 60 / args.minutes)
        total += loss.item()
        if step % 200 == 0:
            print(f"step {step} loss {total / 200:.4f} held out {loss_of(model, check):.4f} {time.time() - start:.0f} s", flush=True)
            total = 0.0
    return step


def write_safetensors(path, tensors):
    """Header of names, types, shapes and places, then the bytes."""
    header, offset = {}, 0
    kinds = {torch.float16: "F16", torch.float32: "F32"}
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.contiguous().numpy().tobytes())


def byte_tokenizer():
    """Every byte is a token; printable characters stand for bytes as in GPT-2's vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    names, spare = {}, 0x100
    for byte in range(256):
        names[byte] = chr(byte) if byte in plain else chr(spare)
        spare += byte not in plain
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "vocab": {name: byte for byte, name in names.items()}, "merges": [],
        },
    }


def rounded(name, tensor):
    """Matrices are kept in half precision."""
    return tensor.half() if tensor.dim() > 1 and not name.endswith(("A_log", "conv1d.weight")) else tensor


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=here / "mamba")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--minutes", type=float, default=60, help="ends earlier when these have passed")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    config = {
        "architectures": ["MambaForCausalLM"], "model_type": "mamba", "vocab_size": 256, "hidden_size": args.width,
        "intermediate_size": 2 * args.width, "num_hidden_layers": args.layers, "state_size": 8, "conv_kernel": 4, "expand": 2,
        "time_step_rank": args.width // 16, "hidden_act": "silu", "use_bias": False, "use_conv_bias": True,
        "layer_norm_epsilon": 1e-5, "residual_in_fp32": True, "tie_word_embeddings": True, "torch_dtype": "float16",
    }
    everything = chapters()
    text, unseen = as_bytes(training(everything)), as_bytes(heldout(everything))
    model = Model(config)
    start = time.time()
    steps = train(model, text, unseen[:8192], args)
    seconds = time.time() - start

    # The loss is that of the weights as they are written.
    tensors = {name: rounded(name, tensor) for name, tensor in model.state_dict().items()}
    model.load_state_dict(tensors)
    loss = loss_of(model, unseen)
    print(f"held-out loss {loss:.4f} a byte after {seconds:.0f} s", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(args.out / "model.safetensors", tensors)
    facts = {
        "held_out_loss": loss, "held_out_bytes": len(unseen), "training_bytes": len(text), "seed": args.seed, "steps": steps,
        "batch_size": args.batch_size, "length": args.length, "parameters": sum(p.numel() for p in model.parameters()),
        "training_seconds": round(seconds), "torch": torch.__version__,
    }
    for name, content in (("config", config), ("tokenizer", byte_tokenizer()), ("facts", facts)):
        (args.out / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
