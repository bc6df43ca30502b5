#!/bin/bash
# From a fresh Debian 12 machine to answers: installs what is missing, builds the compiler and the runtime, compiles a
# trained classifier of clothes, runs it on ten pictures of its test set and prints what it takes each for; then lets a small
# language model go on with a sentence.
#
#   tools/quickstart.sh
#
# The table and the text go to stdout, everything else to stderr. The first run builds (several minutes), later ones take seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model=tools/quickstart/fashion.onnx
labels=tools/quickstart/labels.txt

tools/install-packages.sh build
log=$(mktemp)
scratch=$(mktemp -d)
trap 'rm -rf "$log" "$scratch"' EXIT

if ! cmake --preset default >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build build --target ajour ajour-run >&2

build/bin/ajour compile "$model" -o "$scratch/fashion.ajour"

# "t-shirt/top" as file names spell it: "t-shirt-top".
spelled() { tr ' /' '--' <<<"$1"; }

print_row() { printf '%-20s %-14s %-14s %s\n' "$@"; }

print_row picture expected answer score
right=0
total=0
for picture in tools/quickstart/images/*.png; do
  name=$(basename "$picture" .png)
  # Pictures are called NN-label.png.
  expected=${name#*-}
  while read -r label; do
    if [ "$(spelled "$label")" = "$expected" ]; then
      expected=$label
      break
    fi
  done <"$labels"
  read -r _ score answer < <(build/bin/ajour-run run "$scratch/fashion.ajour" --input "$picture" --top 1 --labels "$labels")
  print_row "$name.png" "$expected" "$answer" "$score"
  total=$((total + 1))
  if [ "$answer" = "$expected" ]; then
    right=$((right + 1))
  fi
done
echo "$right of $total as expected"

build/bin/ajour compile tools/quickstart/mamba -o "$scratch/mamba.ajour"
echo
echo "a text that begins with \"And God said\":"
build/bin/ajour-run generate "$scratch/mamba.ajour" --prompt "And God said" --tokens 200 --temperature 0.7 --seed 1
