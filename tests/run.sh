#!/bin/bash
# shellcheck disable=SC2317 # functions are called through stage
# Builds everything and runs every test.
#
#   tests/run.sh             native build and tests, then the runtime for aarch64 under qemu
#   tests/run.sh --sanitize  also the checks of hostile input: AddressSanitizer, UndefinedBehaviorSanitizer, fuzzing
#   tests/run.sh --quick     the native build and tests alone
#
# With CI=true --sanitize is on, and a test that is skipped because what it needs is absent has failed. The last line says
# "N passed, N failed, N skipped"; the exit code is 0 only if nothing failed. docs/TESTING.md has the rest.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
root=$PWD

jobs=2
fuzz_seconds=30
aarch64=yes
sanitize=no
if [ "${CI:-}" = true ]; then
  sanitize=yes
fi
for option in "$@"; do
  case "$option" in
    --quick) aarch64=no; sanitize=no ;;
    --sanitize) sanitize=yes ;;
    *) sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done

# AJOUR_MODELS in the environment names another place for ../shared/models.
# A clone in another folder finds what this one compiled.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
# LLVM's headers poison memory pools that the uninstrumented LLVM library then hands out without a word.
export ASAN_OPTIONS=allow_user_poisoning=0

results=$root/build/results
rm -rf "$results"
mkdir -p "$results"
checks=$results/checks.txt
touch "$checks"

# stage NAME COMMAND...: runs a step whose failure is one failed test.
stage() {
  local name=$1 start=$SECONDS
  shift
  echo "=== $name"
  if "$@"; then
    echo "=== $name: done in $((SECONDS - start)) s"
  else
    echo "=== $name: FAILED after $((SECONDS - start)) s"
    echo "failed $name" >>"$checks"
    return 1
  fi
}

build_preset() {
  cmake --preset "$1" ${AJOUR_MODELS:+"-DAJOUR_MODELS=$AJOUR_MODELS"} >"$results/configure-$1.log" 2>&1 || { cat "$results/configure-$1.log"; return 1; }
  cmake --build --preset "$1" -- -j "$jobs"
}

# Test cases that fail are counted from the report; this fails only when there is none.
run_ctest() {
  ctest --test-dir "$1" -j "$jobs" --output-on-failure --output-junit "$results/$2.xml"
  [ -s "$results/$2.xml" ]
}

# The programs among the sanitized build's targets: what reads bytes that nobody has checked.
sanitized_programs() {
  ninja -C build/sanitize -t targets all 2>/dev/null |
    sed -n -E 's#^(bin/fuzz/Fuzz[A-Za-z0-9]+|bin/tests/(EncodingTest|LanguageTest|RuntimeTests|SimplifyTests|TextTests|ToolSupportTest|[A-Za-z0-9]*Import[A-Za-z0-9]*|TFLiteTests)): .*#\1#p' | sort -u
}

build_sanitized() {
  cmake --preset sanitize >"$results/configure-sanitize.log" 2>&1 || { cat "$results/configure-sanitize.log"; return 1; }
  mapfile -t programs < <(sanitized_programs)
  [ ${#programs[@]} -gt 0 ] || { echo "no sanitized programs"; return 1; }
  ninja -C build/sanitize -j "$jobs" "${programs[@]}"
}

run_sanitized_test() {
  local name=$1
  timeout 900 "build/sanitize/bin/tests/$name" --gtest_brief=1 "--gtest_output=xml:$results/sanitize-$name.xml"
  [ -s "$results/sanitize-$name.xml" ]
}

# Threads that create, run and destroy sessions and generators over one model.
run_thread_test() {
  local name=$1
  # Sizes that no machine has are asked for on purpose.
  TSAN_OPTIONS=allocator_may_return_null=1 timeout 900 "build/tsan/bin/tests/$name" --gtest_brief=1 --gtest_filter="$2" "--gtest_output=xml:$results/tsan-$name.xml"
  [ -s "$results/tsan-$name.xml" ]
}

# The same inputs each time: a longer search is made by hand.
run_fuzzer() {
  AJOUR_FUZZ_RUNS=12000 tests/fuzz/run.sh "$fuzz_seconds" build/sanitize "$1" && echo "passed $1" >>"$checks"
}

finish() {
  python3 tests/summarize.py "$results"
  exit
}

stage "install packages" tools/install-packages.sh build test || finish

# The runtime for aarch64 comes first: native tests may run what they compiled with it.
if [ $aarch64 = yes ]; then
  stage "build for aarch64" build_preset aarch64 && built_aarch64=yes
fi
stage "build" build_preset default && stage "test" run_ctest build native
if [ "${built_aarch64:-no}" = yes ]; then
  stage "test on aarch64" run_ctest build/aarch64 aarch64
fi
if [ $sanitize = yes ] && stage "build with sanitizers" build_sanitized; then
  for program in "${programs[@]}"; do
    name=$(basename "$program")
    case "$program" in
      bin/tests/*) stage "test with sanitizers: $name" run_sanitized_test "$name" ;;
      bin/fuzz/FuzzSeeds) ;;
      bin/fuzz/*) stage "fuzz: $name" run_fuzzer "$name" ;;
    esac
  done
fi
if [ $sanitize = yes ] && stage "build with ThreadSanitizer" build_preset tsan; then
  stage "test with ThreadSanitizer: TextTests" run_thread_test TextTests '*Generator*'
  stage "test with ThreadSanitizer: RuntimeTests" run_thread_test RuntimeTests 'Session*:ThreadPool*:State*'
fi
finish
