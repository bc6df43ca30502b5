#!/usr/bin/python3
"""Writes small models with random weights and their logits: make_model.py FOLDER [NAME...]

For each architecture FOLDER/NAME has config.json and model.safetensors as Hugging Face's programs write them, model.gguf with the
names, orders and metadata of llama.cpp where that format knows the architecture, tokens.i64 and logits.f32 [tokens, vocabulary].
"""

import json
import pathlib
import struct
import sys

import families
import torch
from gguf_files import write_gguf
from layers import Model


def write_safetensors(path, weights):
    header, offset = {}, 0
    for name, tensor in weights.items():
        size = tensor.numel() * 4
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in weights.values():
            file.write(tensor.contiguous().numpy().tobytes())


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for number, family in enumerate(families.FAMILIES):
        name = family.__name__
        if names and name not in names:
            continue
        model = Model(1000 + number)
        tokens = torch.randint(0, families.VOCABULARY, (17,), generator=torch.Generator().manual_seed(number))
        config, logits = family(model, tokens)
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "config.json").write_text(json.dumps(config, indent=1))
        write_safetensors(target / "model.safetensors", model.weights)
        write_gguf(target / "model.gguf", name, config, model.weights)
        (target / "tokens.i64").write_bytes(tokens.to(torch.int64).numpy().tobytes())
        (target / "logits.f32").write_bytes(logits.to(torch.float32).contiguous().numpy().tobytes())


if __name__ == "__main__":
    main()
