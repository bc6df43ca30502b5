#!/bin/bash
# Fuzzes every reader of untrusted bytes for a while, one after another, from small good files.
#
#   tests/fuzz/run.sh SECONDS [BUILD] [TARGET...]
#
# BUILD is a build of the `sanitize` preset (default build/sanitize) in which the fuzz targets have been built; TARGET... are
# some of them (default all). Seeds are written by FuzzSeeds, or read from AJOUR_MODELS (default ../shared/models) and
# AJOUR_ONNX_TESTDATA (default /usr/share/libonnx-testdata/data). AJOUR_FUZZ_SEED (default 1) chooses the inputs, AJOUR_FUZZ_RUNS
# limits their number (default: none), which makes a run repeatable. Found inputs and logs are left in BUILD/fuzz/TARGET. The
# exit code is 0 only if nothing was found.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
if [ $# -lt 1 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
seconds=$1
build=${2:-build/sanitize}
shift
[ $# -gt 0 ] && shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for program in "$build"/bin/fuzz/Fuzz*; do
    [ "$(basename "$program")" = FuzzSeeds ] || targets+=("$(basename "$program")")
  done
fi
models=${AJOUR_MODELS:-../shared/models}
cases=${AJOUR_ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}

# make_seeds TARGET FOLDER: small good files of the format that it reads
make_seeds() {
  case "$1" in
    FuzzArtifact | FuzzWeight) "$build/bin/fuzz/FuzzSeeds" "$1" "$2" ;;
    FuzzONNX)
      cp tools/quickstart/fashion.onnx "$2"
      find "$cases" -name model.onnx -size -4k 2>/dev/null | sort | awk 'NR % 4 == 1' | while read -r file; do
        cp "$file" "$2/$(basename "$(dirname "$file")").onnx"
      done
      ;;
    FuzzTFLite)
      find "$models" -name '*.tflite' -size -64k 2>/dev/null | sort | while read -r file; do cp "$file" "$2"; done
      ;;
    FuzzLanguage)
      for file in "$models"/stories260k/*q4_0.gguf; do [ -f "$file" ] && { printf '\0'; head -c 16000 "$file"; } >"$2/gguf"; done
      printf '\1\076\0\0\0\0\0\0\0{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}    ' >"$2/safetensors"
      printf '\2{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}, "normalizer": {"type": "NFC"}}' >"$2/json"
      for type in llama gemma2 phi3 gpt2 mixtral; do
        {
          printf '\4{"model_type": "%s", "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 2, ' "$type"
          printf '"vocab_size": 1, "max_position_embeddings": 8, "rope_scaling": {"type": "yarn", "factor": 2}, '
          printf '"quantization_config": {"quant_method": "gptq", "bits": 4}}\0\140\0\0\0\0\0\0\0'
          printf '%-96s' '{"model.embed_tokens.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}'
          printf '12345678'
        } >"$2/config-$type"
      done
      ;;
    FuzzText)
      printf '\0{%%- for m in messages if m.role != "tool" %%}{%% set x = m["content"].split("</think>")[-1] | trim %%}<{{ m.role }}>{{ x ~ loop.index0 }}{%% if not loop.last %%},{%% endif %%}{%% endfor %%}{%% macro f(a, b=2) %%}{{ a * b }}{%% endmacro %%}{{ f(3) }}{{ tools | tojson(indent=2) }}{{ raise_exception("no") if false }}\0{"tools": [{"name": "f"}]}' >"$2/template"
      printf '\1root ::= (item | "b\\x41" [^a-z\\u00e9]{1,3})* "x"?\nitem ::= "(" [0-9]+ ")" | . # remark\n\0(12)x' >"$2/grammar"
      printf '\2{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": -12, "maximum": 340}, "b": {"pattern": "^(a|[^b-d]{2}\\\\d?)+$"}, "c": {"prefixItems": [{"$ref": "#/$defs/s"}], "items": {"type": "number"}}}, "$defs": {"s": {"allOf": [{"type": "string"}, {"format": "date"}]}}}\0{"a": 3}' >"$2/schema"
      ;;
    FuzzInputs) printf '\0\223NUMPY\1\0' >"$2/npy" && printf '\1RIFF' >"$2/wav" && printf '\2BM' >"$2/bmp" ;;
  esac
  [ -n "$(ls -A "$2")" ] || echo "$1: no seeds, starting from nothing"
}

failures=0
for target in "${targets[@]}"; do
  work=$build/fuzz/$target
  rm -rf "$work"
  mkdir -p "$work/seeds" "$work/corpus"
  make_seeds "$target" "$work/seeds"
  if "$build/bin/fuzz/$target" -seed="${AJOUR_FUZZ_SEED:-1}" -runs="${AJOUR_FUZZ_RUNS:--1}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$work/" "$work/corpus" "$work/seeds" >"$work/log" 2>&1; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") inputs," \
      "$(sed -n 's/^stat::peak_rss_mb: *//p' "$work/log") MB at most"
  else
    failures=$((failures + 1))
    echo "$target: FAILED, see $work"
    grep -m 3 -E 'ERROR|SUMMARY|runtime error|not compiled' "$work/log"
  fi
done
exit $((failures > 0))
