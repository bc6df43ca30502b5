#!/usr/bin/python3
"""Writes small models with random weights and their logits: make_model.py FOLDER [NAME...]

For each architecture FOLDER/NAME has config.json and model.safetensors as Hugging Face's programs write them, model.gguf with the
names, orders and metadata of llama.cpp where that format knows the architecture, tokens.i64 and logits.f32 [tokens, vocabulary].
NAME+FORM has its linear layers quantised in one of the forms of quantized.py.
"""

import json
import pathlib
import struct
import sys

import families
import state_space
import torch
from gguf_files import write_gguf
from layers import Model
from quantized import FORMS


DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32", torch.int64: "I64", torch.uint8: "U8"}


def raw(tensor):
    # NumPy has no bfloat16.
    tensor = tensor.contiguous()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes()


def write_safetensors(path, weights):
    header, offset, data = {}, 0, []
    for name, tensor in weights.items():
        data.append(raw(tensor))
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(data[-1])]}
        offset += len(data[-1])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    every = families.FAMILIES + state_space.FAMILIES
    known = [family.__name__ for family in every]
    for name in names or known:
        architecture, _, form = name.partition("+")
        number = known.index(architecture)
        pack, quantization = FORMS[form] if form else (None, None)
        model = Model(1000 + number, pack)
        tokens = torch.randint(0, families.VOCABULARY, (17,), generator=torch.Generator().manual_seed(number))
        config, logits = every[number](model, tokens)
        if quantization:
            config["quantization_config"] = quantization
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "config.json").write_text(json.dumps(config, indent=1))
        write_safetensors(target / "model.safetensors", model.weights)
        if not form:
            writer = state_space.write_gguf if every[number] in state_space.FAMILIES else write_gguf
            writer(target / "model.gguf", name, config, model.weights)
        (target / "tokens.i64").write_bytes(tokens.to(torch.int64).numpy().tobytes())
        (target / "logits.f32").write_bytes(logits.to(torch.float32).contiguous().numpy().tobytes())


if __name__ == "__main__":
    main()
