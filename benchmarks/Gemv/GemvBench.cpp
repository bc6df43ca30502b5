// Matrix-vector products from memory: how near to the read bandwidth, and how much faster sparse than dense.
//
// Each variant runs over one large pool as over many matrices, so that weights come from memory. Variants alternate
// with each other and with a plain read of the pool; each counts with its median and its best. Columns: microseconds
// for 4096 x 4096, GB/s of stored bytes, share of the read bandwidth, times faster than dense.
#include <CLI/CLI.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "Kernels/NativeKernels.h"
#include "Variants.h"

namespace {

constexpr int64_t rows = 4096;

/// Masks of 8 bits that keep (8 - 2 n) of 8 as n of each 4 pruned; index: kept of 8.
std::vector<uint8_t> masks(int64_t kept8) {
  std::vector<uint8_t> result;
  for (int m = 0; m < 256; ++m)
    if (2 * __builtin_popcount(m & 15) == kept8 && 2 * __builtin_popcount(m >> 4) == kept8)
      result.push_back(m);
  return result;
}

struct Bench {
  uint8_t *pool = nullptr;
  int64_t bytes = 0;
  std::vector<gemv_activations> activations;
  std::vector<std::vector<float>> results;
  int threads = 1;

  /// Seconds for work(thread, firstBlock, lastBlock) over all blocks: threads claim runs of blocks.
  template <typename Work> double seconds(int64_t blocks, Work work) {
    std::atomic<int> ready{0};
    std::atomic<int64_t> next{0};
    constexpr int64_t run = 16;
    auto body = [&](int thread) {
      ++ready;
      while (ready < threads) {
      }
      for (int64_t b = next.fetch_add(run); b < blocks; b = next.fetch_add(run))
        work(thread, b, std::min(blocks, b + run));
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
      others.emplace_back(body, t);
    while (ready < threads - 1) {
    }
    const auto begin = std::chrono::steady_clock::now();
    body(0);
    for (std::thread &thread : others)
      thread.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  double read(ajour_cpu_level level) {
    constexpr int64_t block = 32768;
    const gemv_read *reader = gemv_reads;
    while (reader->level != level)
      ++reader;
    return seconds(bytes / block, [&](int thread, int64_t first, int64_t last) {
      int64_t sum = 0;
      reader->run(pool + first * block, (last - first) * block, &sum);
      results[thread][0] += float(sum & 1);
    });
  }

  double run(const gemv_variant &variant) {
    const int64_t blocks = bytes / variant.block_bytes;
    if (variant.mask_bytes) {
      const std::vector<uint8_t> table = masks(variant.kept8);
      // Each tenth of 40 columns.
      constexpr uint8_t tenths[] = {0x01, 0x04, 0x10, 0x40, 0x00};
      uint32_t state = 1;
      for (int64_t b = 0; b < blocks; ++b)
        for (int64_t i = 0; i < variant.mask_bytes && !variant.kept8; ++i)
          pool[b * variant.block_bytes + i] = tenths[i % 5];
      for (int64_t b = 0; b < blocks; ++b)
        for (int64_t i = 0; i < variant.mask_bytes && variant.kept8; ++i)
          pool[b * variant.block_bytes + i] = table[(state = state * 1664525 + 1013904223) / 65536 % table.size()];
    }
    return seconds(blocks, [&](int thread, int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b)
        variant.run(&activations[thread], pool + b * variant.block_bytes, results[thread].data() + b % 64 * 16);
    });
  }
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  int repeats = 9;
  int64_t megabytes = 640;
  bool huge = false;
  std::string level, filter;
  std::vector<int> threadCounts = {1, 2};
  CLI::App app{"Speed of matrix-vector products whose weights come from memory"};
  app.add_option("--repeat", repeats, "Runs of each variant");
  app.add_option("--megabytes", megabytes, "Size of the pool of weights");
  app.add_option("--threads", threadCounts, "Numbers of threads")->delimiter(',');
  app.add_option("--level", level, "CPU level; else the best");
  app.add_option("--filter", filter, "Only variants with this in their name");
  app.add_flag("--huge", huge, "Huge pages; else as a mapped file has them");
  CLI11_PARSE(app, argc, argv);

  Bench bench;
  bench.bytes = megabytes << 20;
  void *memory = mmap(nullptr, bench.bytes + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  madvise(memory, bench.bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  bench.pool = static_cast<uint8_t *>(memory);
  // Bytes of which any two are an ordinary f16 and any four an ordinary f32.
  std::mt19937 rng(1);
  for (int64_t i = 0; i < bench.bytes; i += 4) {
    uint32_t word = (rng() & 0x1F1F1F1F) | 0x20202020;
    std::memcpy(bench.pool + i, &word, 4);
  }

  std::vector<const gemv_variant *> chosen;
  ajour_cpu_level best{};
  for (int i = 0; i < gemv_variant_count; ++i)
    if (level.empty() ? ajour::test::cpuHas(gemv_variants[i].level)
                      : level == ajour::test::levelName(gemv_variants[i].level))
      best = gemv_variants[i].level;
  for (int i = 0; i < gemv_variant_count; ++i)
    if (gemv_variants[i].level == best && std::string(gemv_variants[i].name).find(filter) != std::string::npos)
      chosen.push_back(&gemv_variants[i]);
  if (chosen.empty()) {
    std::fprintf(stderr, "GemvBench: no variant of level '%s' with '%s' in its name\n", level.c_str(), filter.c_str());
    return 2;
  }

  for (int threads : threadCounts) {
    bench.threads = threads;
    bench.activations.assign(threads, {});
    bench.results.assign(threads, std::vector<float>(64 * 16));
    for (gemv_activations &a : bench.activations)
      for (int64_t i = 0; i < GEMV_DEPTH; ++i) {
        a.x[i] = float(i % 37) / 37;
        a.q[i] = int8_t(i * 37 % 255 - 127);
        a.scales[i / 32] = 0.01f;
      }
    std::vector<double> reads;
    std::map<const gemv_variant *, std::vector<double>> times;
    for (int r = 0; r < repeats; ++r) {
      reads.push_back(bench.read(best));
      for (const gemv_variant *variant : chosen) {
        const int64_t blocks = bench.bytes / variant->block_bytes;
        times[variant].push_back(bench.run(*variant) / blocks * (rows / 16));
      }
    }
    const double bandwidth = bench.bytes / median(reads);
    std::printf("%s, %d thread%s, %s pages: read %.1f GB/s (best %.1f)\n", ajour::test::levelName(best), threads,
                threads > 1 ? "s" : "", huge ? "huge" : "normal", bandwidth * 1e-9,
                bench.bytes / *std::min_element(reads.begin(), reads.end()) * 1e-9);
    std::map<std::string, double> dense;
    for (const gemv_variant *variant : chosen)
      dense[variant->name] = median(times[variant]);
    for (const gemv_variant *variant : chosen) {
      const double time = median(times[variant]);
      const double bytes = double(variant->block_bytes) * (rows / 16);
      std::printf("  %-20s %8.1f us (best %8.1f) %6.1f GB/s %5.0f %% of read  %5.2f bits a weight", variant->name,
                  time * 1e6, *std::min_element(times[variant].begin(), times[variant].end()) * 1e6,
                  bytes / time * 1e-9, 100 * bytes / time / bandwidth, bytes * 8 / rows / GEMV_DEPTH);
      if (std::strcmp(variant->name, variant->dense) && dense.count(variant->dense))
        std::printf("  %5.2f x dense", dense[variant->dense] / time);
      std::printf("\n");
    }
  }
}
