#!/usr/bin/python3
"""Trains the quickstart's classifier of clothes and writes it as ONNX.

Needs Debian's python3-torch and dataset-fashion-mnist. Takes less than ten minutes on one core:

    nice -n 10 /usr/bin/python3 tools/quickstart/train_fashion.py

Writes fashion.onnx, fashion.json (test accuracy, seed, versions, class names), labels.txt and ten
test images beside this script.

Input:  f32[1, 1, 28, 28], pixel / 255, so that the tools' default image options fit.
Output: f32[1, 10], probabilities.
"""
import argparse
import gzip
import json
import pathlib
import struct
import time
import zlib

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = ["t-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]


def read_idx(path):
    """Reads a gzip-compressed IDX file of bytes: big-endian magic, sizes, then the bytes."""
    with gzip.open(path) as file:
        data = bytearray(file.read())
    rank = data[3]
    shape = struct.unpack(">%dI" % rank, data[4 : 4 + 4 * rank])
    return torch.frombuffer(data, dtype=torch.uint8, offset=4 + 4 * rank).reshape(shape)


def conv(cin, cout, kernel, stride=1, groups=1):
    """Convolution, batch norm and ReLU; padding keeps the size at stride 1."""
    return nn.Sequential(
        nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(cout), nn.ReLU()
    )


def separable(cin, cout, stride=1):
    """Depthwise 3x3, then pointwise."""
    return nn.Sequential(conv(cin, cin, 3, stride, groups=cin), conv(cin, cout, 1))


class Net(nn.Module):
    """A small convolutional net: plain and strided 3x3 convolutions, depthwise separable blocks, one residual."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(1, 16, 3), conv(16, 32, 3, 2))
        self.body = nn.Sequential(separable(32, 64), separable(64, 128, 2))
        self.residual = separable(128, 128)
        self.head = nn.Linear(128, len(CLASSES))

    def forward(self, x):
        x = self.body(self.stem(x))
        x = x + self.residual(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def augment(batch):
    """Random mirror and random shift by up to two pixels, the same for all images of a batch."""
    if torch.rand(()) < 0.5:
        batch = batch.flip(3)
    dy, dx = (int(v) for v in torch.randint(0, 5, (2,)))
    return F.pad(batch, (2, 2, 2, 2))[:, :, dy : dy + 28, dx : dx + 28]


@torch.no_grad()
def accuracy(model, images, labels):
    """Share of the images whose largest score is the label's."""
    model.eval()
    hits = 0
    for start in range(0, len(images), 500):
        scores = model(images[start : start + 500].unsqueeze(1).float() / 255)
        hits += int((scores.argmax(1) == labels[start : start + 500]).sum())
    return hits / len(images)


def train(model, images, labels, epochs, batch_size):
    """AdamW with a one-cycle learning rate and a little label smoothing."""
    steps = len(images) // batch_size
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.008, total_steps=epochs * steps)
    for epoch in range(epochs):
        model.train()
        start, total = time.time(), 0.0
        order = torch.randperm(len(images))
        for step in range(steps):
            rows = order[step * batch_size : (step + 1) * batch_size]
            scores = model(augment(images[rows].unsqueeze(1).float() / 255))
            loss = F.cross_entropy(scores, labels[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{epochs} loss {total / steps:.4f} {time.time() - start:.1f} s", flush=True)


def write_png(path, image):
    """Writes an 8-bit grayscale PNG without filters."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width = image.shape
    rows = b"".join(b"\0" + bytes(row.tolist()) for row in image)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    path.write_bytes(png)


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--out", type=pathlib.Path, default=here)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    train_images = read_idx(args.data / "train-images-idx3-ubyte.gz")
    train_labels = read_idx(args.data / "train-labels-idx1-ubyte.gz").long()
    test_images = read_idx(args.data / "t10k-images-idx3-ubyte.gz")
    test_labels = read_idx(args.data / "t10k-labels-idx1-ubyte.gz").long()

    model = Net()
    start = time.time()
    train(model, train_images, train_labels, args.epochs, args.batch_size)
    seconds = time.time() - start
    test_accuracy = accuracy(model, test_images, test_labels)
    print(f"test accuracy {test_accuracy:.4f} after {seconds:.0f} s", flush=True)

    args.out.mkdir(parents=True, exist_ok=True)
    classifier = nn.Sequential(model, nn.Softmax(1)).eval()
    torch.onnx.export(
        classifier, torch.zeros(1, 1, 28, 28), str(args.out / "fashion.onnx"), opset_version=13,
        input_names=["image"], output_names=["probabilities"],
    )
    facts = {
        "test_accuracy": test_accuracy,
        "test_correct": round(test_accuracy * len(test_images)),
        "test_images": len(test_images),
        "seed": args.seed,
        "epochs": args.epochs,
        "batch_size": args.batch_size,
        "parameters": sum(p.numel() for p in model.parameters()),
        "training_seconds": round(seconds),
        "torch": torch.__version__,
        "classes": CLASSES,
    }
    (args.out / "fashion.json").write_text(json.dumps(facts, indent=2) + "\n")
    (args.out / "labels.txt").write_text("\n".join(CLASSES) + "\n")
    (args.out / "images").mkdir(exist_ok=True)
    for index in range(10):
        name = CLASSES[int(test_labels[index])].replace("/", "-").replace(" ", "-")
        write_png(args.out / "images" / f"{index:02}-{name}.png", test_images[index])


if __name__ == "__main__":
    main()
