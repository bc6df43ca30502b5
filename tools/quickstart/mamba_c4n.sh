#!/bin/bash
# Makes versions of the quickstart's language model with 1, 2 and 3 of every 4 weights zero, and prints their held-out loss.
#
#   tools/quickstart/mamba_c4n.sh DIR     DIR gets a folder for each version
#
# Needs build/bin/ajour and what train_mamba.py needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?usage: $0 DIR}
here=tools/quickstart

mkdir -p "$out"
/usr/bin/python3 -B $here/evaluate_mamba.py --calibration "$out/calibration"
for n in 1 2 3; do
  for method in second-order magnitude; do
    printf 'rules: [{layers: "*_proj.weight", structure: c4n, n: %d, method: %s}]\n' "$n" "$method" >"$out/recipe.yaml"
    build/bin/ajour compress $here/mamba --recipe "$out/recipe.yaml" --calibration "$out/calibration" -o "$out/c4-$n-$method" >"$out/c4-$n-$method.txt"
  done
done
/usr/bin/python3 -B $here/evaluate_mamba.py $here/mamba "$out"/c4-{1,2,3}-{second-order,magnitude}
