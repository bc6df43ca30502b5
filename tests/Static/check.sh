#!/bin/bash
# Compiles a model for linking, links it into a C program and compares with the ordinary artifact.
#
#   check.sh native  AJOUR SOURCE_DIR LIBRARY_DIR NM
#   check.sh aarch64 AJOUR SOURCE_DIR AARCH64_LIBRARY_DIR NM
#   check.sh ios     AJOUR SOURCE_DIR - NM
#
# LIBRARY_DIR holds the runtime's library. Exit code 77: what the case needs is absent.
set -euo pipefail
kind=$1 ajour=$2 source=$3 libraries=$4 nm=$5
model=$source/tools/quickstart/fashion.onnx
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fault() {
  echo "$*"
  exit 1
}

# What an object defines for others and what it wants, sorted.
symbols() { "$nm" --extern-only --format=just-symbols "$1" | sort | tr '\n' ' '; }

case "$kind" in
  native) target=host lowest=avx2 compiler=cc runner=() ;;
  aarch64) target=aarch64-linux lowest=neon compiler=aarch64-linux-gnu-gcc runner=(qemu-aarch64 -L /usr/aarch64-linux-gnu) ;;
  ios)
    "$ajour" compile "$model" --emit static --target arm64-ios -o "$scratch/"
    [ "$(symbols "$scratch/fashion.o")" = "_fashion_code " ] || fault "fashion.o has $(symbols "$scratch/fashion.o")"
    [ "$(head -c 8 "$scratch/fashion.o" | od -An -tx1 | tr -d ' ')" = cffaedfe0c000001 ] || fault "fashion.o is no Mach-O for arm64"
    grep -q 'extern const ajour_static_code fashion_code;' "$scratch/fashion.h" || fault "fashion.h does not declare the table"
    [ -s "$scratch/fashion.ajour" ] || fault "there is no fashion.ajour"
    exit
    ;;
esac
if [ "$kind" = native ] && [ "$(uname -m)" = aarch64 ]; then
  lowest=neon
fi
command -v "$compiler" "${runner[0]:-true}" >/dev/null || exit 77
[ -e "$libraries/libAjourRuntime.a" ] || exit 77

"$ajour" compile "$model" --target "$target" -o "$scratch/ordinary.ajour"
"$ajour" compile "$model" --emit static --target "$target" -o "$scratch/one"
"$ajour" compile "$model" --emit static --target "$target" --cpu "$lowest" -O 1 -o "$scratch/two"
[ "$(symbols "$scratch/one.o")" = "one_code " ] || fault "one.o has $(symbols "$scratch/one.o")"
"$compiler" -std=c11 -Wall -Wextra -Werror -I "$source/include" -I "$scratch" "$source/tests/Static/main.c" \
  "$scratch/one.o" "$scratch/two.o" "$libraries/libAjourRuntime.a" -lpthread -o "$scratch/main"
"${runner[@]}" "$scratch/main" "$scratch/one.ajour" "$scratch/two.ajour" "$scratch/ordinary.ajour"
