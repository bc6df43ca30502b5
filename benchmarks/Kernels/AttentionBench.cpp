// Attention kernels: bytes of keys and values a second for one token, arithmetic for many. All key and value heads of a layer, one thread, kernels of
// the library (inlined with constants, as compiled models have them, they are up to a fifth faster). Medians.
//
// usage: AttentionBench [LEVEL]     the best of this CPU without
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "Kernels/NativeKernels.h"
#include "ajour/Kernels/AttentionHeads.h"

using namespace ajour::test;

namespace {

struct Shape {
  int64_t tokens, heads, groups, size, rows, type;
};

// Heads are those that share a key head, groups the key heads.
constexpr Shape shapes[] = {
    {1, 1, 32, 64, 512, AJOUR_F16},  {1, 4, 8, 64, 512, AJOUR_F16},  {1, 4, 8, 64, 4096, AJOUR_F32},  {1, 4, 8, 64, 4096, AJOUR_F16},
    {1, 4, 8, 64, 4096, AJOUR_I8},   {1, 4, 8, 64, 4096, AJOUR_U8},  {1, 4, 8, 128, 4096, AJOUR_F16}, {32, 4, 8, 64, 512, AJOUR_F16},
    {32, 4, 8, 128, 2048, AJOUR_F16}, {99, 1, 6, 64, 197, AJOUR_F32}, {128, 1, 16, 72, 256, AJOUR_F32}};

double measure(ajour_attention_f32_fn *kernel, const Shape &s) {
  int64_t head = s.type == AJOUR_F32 ? s.size * 4 : s.type == AJOUR_F16 ? s.size * 2 : s.type == AJOUR_I8 ? s.size : s.size / 2;
  int64_t queries = s.tokens * s.heads * s.groups * s.size;
  std::vector<char> keys(s.rows * s.groups * head), values(keys.size());
  std::vector<float> scales(s.rows * s.groups, .1f), query(queries, .1f), result(queries), scratch(ajour_attention_groups_scratch(s.tokens * s.heads, s.groups, s.size, s.size));
  // Heads of few tokens together, as compiled models take them.
  int64_t joined = s.tokens * s.heads <= AJOUR_ATTENTION_FEW_ROWS && s.groups % 4 == 0 ? 4 : 1;
  std::vector<int64_t> ranges;
  for (int64_t t = 0; t < s.tokens; ++t)
    ranges.insert(ranges.end(), {0, s.rows, s.rows - 1});
  std::vector<double> seconds;
  for (int run = 0; run < 15; ++run) {
    auto begin = std::chrono::steady_clock::now();
    for (int64_t g = 0; g < s.groups; g += joined)
      kernel(query.data() + g * s.heads * s.size, s.groups * s.heads * s.size, keys.data() + g * head, s.groups * head, scales.data() + g,
             values.data() + g * head, s.groups * head, scales.data() + g, s.groups, ranges.data(), nullptr, 0, 0, 0, nullptr, nullptr,
             result.data() + g * s.heads * s.size, s.groups * s.heads * s.size, scratch.data(), s.tokens, ajour_attention_heads(s.heads, joined), s.size, s.size, s.type, s.type,
             1 / std::sqrt(float(s.size)), 0);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  const NativeKernel *best = nullptr;
  static const std::vector<NativeKernel> kernels = nativeKernels(AJOUR_KERNEL_attention_f32);
  for (const NativeKernel &kernel : kernels)
    if (cpuHas(kernel.row.level) && (argc < 2 || levelName(kernel.row.level) == std::string(argv[1])))
      best = &kernel;
  if (!best)
    return std::fprintf(stderr, "no kernel of this level for this CPU\n"), 1;
  std::printf("%s\ntokens heads groups size rows type:   us   GB/s  GFLOP/s\n", best->row.symbol);
  for (const Shape &s : shapes) {
    double seconds = measure(best->as<ajour_attention_f32_fn>(), s);
    double bytes = s.type == AJOUR_F32 ? 4 : s.type == AJOUR_F16 ? 2 : s.type == AJOUR_I8 ? 1 : .5;
    double pairs = double(s.groups) * double(s.size) * double(s.rows);
    std::printf("%6ld %5ld %6ld %4ld %4ld %4s %8.1f %6.1f %7.1f\n", long(s.tokens), long(s.heads), long(s.groups), long(s.size), long(s.rows),
                s.type == AJOUR_U8 ? "4bit" : ajour_element_name(uint32_t(s.type)), seconds * 1e6, 2 * bytes * pairs / seconds * 1e-9,
                4 * pairs * double(s.tokens * s.heads) / seconds * 1e-9);
  }
}
