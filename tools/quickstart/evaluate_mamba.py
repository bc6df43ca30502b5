#!/usr/bin/python3
"""The held-out loss of a Mamba folder like the quickstart's, and calibration data for compressing it.

    evaluate_mamba.py FOLDER...                        prints each folder's loss: mean natural logarithm a byte
    evaluate_mamba.py --calibration DIR [--pieces N]   writes N pieces of 256 bytes of the training text as .npy

Needs what train_mamba.py needs.
"""
import argparse
import json
import pathlib
import struct

import numpy
import torch
from train_mamba import Model, as_bytes, chapters, heldout, loss_of, training


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    kinds = {"F16": numpy.float16, "F32": numpy.float32}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            values = numpy.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(values.astype(numpy.float32))
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--calibration", type=pathlib.Path)
    parser.add_argument("--pieces", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(1)
    everything = chapters()
    if args.calibration:
        text = as_bytes(training(everything)).numpy()
        args.calibration.mkdir(parents=True, exist_ok=True)
        for i in range(args.pieces):
            start = i * (len(text) // args.pieces)
            numpy.save(args.calibration / f"{i:03}.npy", text[start : start + 256].astype(numpy.int64))
    unseen = as_bytes(heldout(everything))
    for folder in args.folders:
        model = Model(json.loads((folder / "config.json").read_text()))
        model.load_state_dict(read_safetensors(folder / "model.safetensors"))
        print(f"{folder}: {loss_of(model, unseen):.4f}", flush=True)


if __name__ == "__main__":
    main()
