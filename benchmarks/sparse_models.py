#!/usr/bin/env python3
"""Whole models with pruned weights: ours beside ours that computes with the zeros (--no-sparse), and beside ONNX Runtime.

    sparse_models.py BIN [--onnxruntime DIR] [--models FOLDER] [--only TEXT] [--threads 1,2] [--repeat N]

BIN is a build's folder with ajour and ajour-make-model, DIR one with ONNX Runtime's library (npm package onnxruntime-node), FOLDER one
with models of others; those that are not there are left out. All engines of a line take turns in one run of `ajour bench`. Prints a line
of a Markdown table for each model and number of threads: the tenth
percentile in ms, so that other load counts little, dense / sparse (a ratio below 0.97 breaks the promise that
pruned models are never slower by more than 3 %), ONNX Runtime / sparse and the sizes of both artifacts.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

BLOCKS = [["--block", "4x1", "--sparsity", share] for share in ("0.5", "0.75", "0.9")]
SINGLE = [["--block", "1x1", "--sparsity", share] for share in ("0.5", "0.75", "0.9")]
MADE = [[net, *pruned, *bits] for net in ("resnet50", "mobilenet_v2", "efficientnet_b0") for bits in ([], ["--int8"])
        for pruned in BLOCKS + (SINGLE if net == "resnet50" else [])]
MADE += [["resnet50", "--pattern", "4", "--block", "4x1", "--sparsity", "0.75"],
         ["resnet50", "--pattern", "4", "--connectivity", "0.5", "--block", "4x1", "--sparsity", "0.75"],
         ["vgg16", "--pattern", "4"],
         ["vgg16", "--pattern", "4", "--connectivity", "0.28125"]]
GIVEN = ["mlperf_tiny/vww_96_int8.tflite", "npm_mediapipe/face_detection/face_detection_full_range_sparse.tflite",
         "squeezenet_dc/squeezenet_v10_pruned_clustered_decoded.onnx"]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def measure(arguments, name, model, folder):
    sparse, dense, result = folder / "sparse.ajour", folder / "dense.ajour", folder / "result.json"
    run(arguments.bin / "ajour", "compile", model, "-o", sparse)
    run(arguments.bin / "ajour", "compile", model, "-o", dense, "--no-sparse")
    peers = []
    if arguments.onnxruntime and model.suffix == ".onnx":
        peers = ["--model", model, "--against", f"onnxruntime={arguments.onnxruntime}"]
    run(arguments.bin / "ajour", "bench", sparse, dense, "--threads", arguments.threads, "--repeat", arguments.repeat, "--json", result, *peers)
    times = {}
    for row in json.loads(result.read_text())["results"]:
        engine = row["engine"] if row["engine"] != "ajour" else pathlib.Path(row["model"]).stem
        times[row["threads"], engine] = row["p10"]
    sizes = [path.stat().st_size / 1e6 for path in (sparse, dense)]
    for threads in sorted({key[0] for key in times}):
        ours, zeros, peer = (times.get((threads, engine)) for engine in ("sparse", "dense", "onnxruntime"))
        other = f"{peer:.2f} | {peer / ours:.2f} | {peer / zeros:.2f}" if peer else "| |"
        print(f"| {name} | {threads} | {zeros:.2f} | {ours:.2f} | **{zeros / ours:.2f}** | {other} | {sizes[1]:.1f}, {sizes[0]:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--onnxruntime", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--only", default="", help="of the lines, those whose name has this in it")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--repeat", default="20")
    arguments = parser.parse_args()
    print("| model | threads | dense | sparse | dense / sparse | ONNX Runtime | / sparse | / dense | MB dense, sparse |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for made in MADE:
            name = " ".join(made)
            if arguments.only in name:
                run(arguments.bin / "ajour-make-model", *made, "-o", folder / "model.onnx")
                measure(arguments, name, folder / "model.onnx", folder)
        for given in GIVEN:
            path = arguments.models / given if arguments.models else None
            if path and path.exists() and arguments.only in given:
                measure(arguments, path.name, path, folder)


if __name__ == "__main__":
    main()
