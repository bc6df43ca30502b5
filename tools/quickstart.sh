#!/bin/sh
# Builds ajour if needed, compiles the quickstart's model and names the clothes in ten pictures.
set -eu
cd "$(dirname "$0")/.."
if [ ! -x build/bin/ajour ]; then
  cmake --preset default >&2
  cmake --build build --target ajour >&2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/bin/ajour compile tools/quickstart/fashion.onnx -o "$work/fashion.ajour"
for picture in tools/quickstart/images/*.png; do
  answer=$(build/bin/ajour run "$work/fashion.ajour" --input "$picture" --top 1 --labels tools/quickstart/labels.txt)
  printf '%s: %s\n' "$(basename "$picture")" "$answer"
done
