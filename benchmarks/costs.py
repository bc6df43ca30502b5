#!/usr/bin/env python3
"""Measures how long sparse kernels take beside the dense ones and writes the table that selection reads.

    costs.py BIN [--levels LEVEL,...] [--output lib/Conversion/Costs.def]

BIN is a build's folder of programs with SpmmBench, GemvBench and KernelsBench. Run it on an idle machine, then look at what changed:
rows of levels that this CPU lacks, and those of levels that were not asked for, stay as they are. Of each kernel family the time relative to
the dense kernel is bounded by a line over the density, above all measured shapes, because a layer must never become slower than dense.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys

# What is left besides products, laying out and storing, counts less the more input channels there are.
LEAST_CHANNELS = (0, 128, 256, 512)
BITS = {"f32": 32, "f16": 16, "int8": 8, "q8_g32": 8, "q4_g32": 4, "q4_g128": 4}


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def spmm_points(text, level):
    """{(family, group, bits, channels): [(density, time / dense time)]} and the dense GMAC/s of all shapes."""
    points, dense = {}, []
    if not text.startswith(f"level {level} "):
        return points, dense
    for line in text.splitlines()[1:]:
        match = re.match(r"(.*?)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$", line)
        if not match:
            continue
        name, kept, sparse, full = match.group(1), *(float(match.group(i)) for i in (2, 3, 4))
        blocks = re.search(r"blocks (\d+)x1", name)
        lanes = re.search(r"lanes (\d+) (\w+)", name)
        family, group, bits = ("Spmm", int(blocks.group(1)), 32) if blocks else ("Spconv", 1, 32)
        if lanes:
            family, group, bits = "GemmSparse", int(lanes.group(1)), BITS[lanes.group(2)]
        channels = int(re.search(r"(\d+)->", name).group(1))
        for least in LEAST_CHANNELS:
            if channels >= least:
                points.setdefault((family, group, bits, least), []).append((kept, sparse / full))
        if bits == 32:
            dense.append(float(match.group(7)))
    return points, dense


def gemv_points(text):
    """The same of matrix-vector products whose weights come from memory, and the dense GB/s of one thread."""
    points, dense, bandwidth, threads = {}, {}, [], 0
    for line in text.splitlines():
        header = re.match(r"\S+, (\d+) threads?", line)
        if header:
            threads, dense = int(header.group(1)), {}
        match = re.match(r"\s+(\w+?)_(\w+)\s+([\d.]+) us \(best\s+[\d.]+\)\s+([\d.]+) GB/s", line)
        if not match:
            continue
        structure, rest, time = match.group(1), match.group(2), float(match.group(3))
        if structure == "dense":
            dense[rest] = time
            if threads == 1:
                bandwidth.append(float(match.group(4)))
            continue
        parts = re.match(r"r(\d+)_(\w+)", rest)
        kind = re.match(r"c4n(\d)", structure)
        if kind and parts and parts.group(2) in dense:
            key = ("GemvC4n", int(parts.group(1)), BITS[parts.group(2)], 0)
            points.setdefault(key, []).append(((4 - int(kind.group(1))) / 4, time / dense[parts.group(2)]))
    return points, bandwidth


def gemm_8bit(text):
    """The best GMAC/s of the 8-bit product of a level."""
    rates = [float(x) / 2 for x in re.findall(r"GOPS=([\d.]+)", text)]
    return max(rates, default=0)


def line_above(points):
    """(fixed, slope) of the line that lies above all points and exceeds them least, all together. It goes through one or two of them."""
    densities = [d for d, _ in points]
    if max(densities) - min(densities) < 0.05:
        return 0.0, max(t / d for d, t in points)
    slopes = {0.0} | {(t - u) / (d - e) for d, t in points for e, u in points if d > e and t > u}
    lines = [(max(0.0, max(t - slope * d for d, t in points)), slope) for slope in slopes]
    return min(lines, key=lambda line: sum(line[0] + line[1] * d - t for d, t in points))


def rows_of(level, points, dense, bandwidth, rate8):
    rows = []
    if dense:
        rows.append(f"DENSE({level}, {statistics.median(dense):.0f}, {rate8 or 3 * statistics.median(dense):.0f}, "
                    f"{statistics.median(bandwidth) if bandwidth else 10:.0f})")
    for (family, group, bits, channels), found in sorted(points.items()):
        fixed, slope = line_above(found)
        rows.append(f"COST({level}, {family}, {group}, {bits}, {channels}, {fixed:.3f}, {slope:.3f})")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--levels", default="avx2,avx512,avx512vnni,avx512vbmi")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("lib/Conversion/Costs.def"))
    arguments = parser.parse_args()
    lines = arguments.output.read_text().splitlines()
    for level in arguments.levels.split(","):
        points, dense = spmm_points(run(arguments.bin / "SpmmBench", level), level)
        more, bandwidth = gemv_points(run(arguments.bin / "GemvBench", "--level", level))
        points.update(more)
        rate8 = gemm_8bit(run(arguments.bin / "KernelsBench", f"--benchmark_filter=gemm_u8.*_{level}/"))
        rows = rows_of(level, points, dense, bandwidth, rate8)
        if not rows:
            print(f"{level}: nothing measured", file=sys.stderr)
            continue
        # A level's rows are replaced family by family, so that what was not measured stays.
        keys = {row.rsplit(", ", 2)[0] if row.startswith("COST") else row.split(",")[0] for row in rows}
        lines = [l for l in lines if not any(l.startswith(key + ",") for key in keys)] + rows
        print("\n".join(rows))
    arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
