#!/usr/bin/python3
"""Writes pictures of Fashion-MNIST's training set as an array for `ajour compress --calibration`.

    python3 tools/quickstart/calibration.py calibration.npy [--count 256]

Needs Debian's dataset-fashion-mnist. The array is f32[count, 1, 28, 28], pixel / 255, as the quickstart's model takes it.
"""
import argparse
import array
import gzip
import pathlib
import struct


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    args = parser.parse_args()
    with gzip.open(args.data / "train-images-idx3-ubyte.gz") as file:
        file.read(16)  # magic number and sizes
        pixels = file.read(args.count * 784)
    shape = "(%d, 1, 28, 28)" % (len(pixels) // 784)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = array.array("f", (p / 255 for p in pixels))
    args.output.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes())


if __name__ == "__main__":
    main()
