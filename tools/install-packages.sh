#!/bin/bash
# Installs the Debian packages that this repository needs, and does nothing when none is missing.
#
#   tools/install-packages.sh build         what building needs
#   tools/install-packages.sh build test    also what tests/run.sh needs
#
# Needs root, or sudo, only when something is missing. Debian 12; LLVM 22 comes from its suite bookworm-security.
set -euo pipefail

build_packages=(
  # LLVM, MLIR and lld as libraries; clang for the kernels; mlir-tblgen for the dialects.
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools clang-22 lld-22 liblld-22-dev
  # The build itself.
  cmake ninja-build ccache g++ python3
  # Libraries.
  libflatbuffers-dev flatbuffers-compiler libprotobuf-dev protobuf-compiler libonnx-dev libeigen3-dev
  libcli11-dev nlohmann-json3-dev libstb-dev libicu-dev
  # Tests and benchmarks, which the presets configure as well.
  libgtest-dev libgmock-dev libbenchmark-dev zlib1g-dev
)
test_packages=(
  # The runtime for aarch64, and its tests under emulation.
  g++-aarch64-linux-gnu qemu-user googletest
  # Sanitizers and libFuzzer.
  libclang-rt-22-dev
  # ONNX conformance cases.
  libonnx-testdata
  # Logits of small language models, computed independently.
  python3-torch
)

wanted=()
for group in "$@"; do
  case "$group" in
    build) wanted+=("${build_packages[@]}") ;;
    test) wanted+=("${test_packages[@]}") ;;
    *) echo "usage: $0 build [test]" >&2; exit 2 ;;
  esac
done
if [ ${#wanted[@]} -eq 0 ]; then
  echo "usage: $0 build [test]" >&2
  exit 2
fi

# The packages of "$@" that are not installed.
missing_of() {
  local package
  for package in "$@"; do
    dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' || echo "$package"
  done
}

if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "error: apt-get and dpkg are needed; on other systems install what this list names: ${wanted[*]}" >&2
  exit 1
fi
mapfile -t missing < <(missing_of "${wanted[@]}")
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: root is needed to install packages and there is no sudo; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing ${#missing[@]} packages: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq

# LLVM 22 is the one thing that a plain Debian 12 lacks.
candidate=$(apt-cache policy libmlir-22-dev | sed -n 's/^ *Candidate: //p')
if [ -z "$candidate" ] || [ "$candidate" = "(none)" ]; then
  cat >&2 <<'MESSAGE'
error: apt offers no libmlir-22-dev. LLVM 22 for Debian 12 comes from the suite bookworm-security, which is not among
the apt sources of this machine. Add this line to /etc/apt/sources.list.d/security.list and run this again:
  deb http://deb.debian.org/debian-security bookworm-security main
MESSAGE
  exit 1
fi

"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
