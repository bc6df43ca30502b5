// Speed of the specialised kernels, as a share of the machine's peak measured in the same breath: the peak loop and
// the kernel alternate, and each counts with its fastest repeat. So the share holds on a busy machine as well.
//
// Counters: GOPS (2 operations a multiply-add), peak% of the best instruction of the level (f32 FMA of the level's
// width; VNNI for all 8-bit kernels), GB/s of packed weights for m = 1.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Kernels/NativeKernels.h"
#include "Kernels/Specialised.h"
#include "Peak.h"

namespace {

double secondsOf(auto &&work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct AlignedDelete {
  void operator()(void *p) const { std::free(p); }
};
using Bytes = std::unique_ptr<uint8_t, AlignedDelete>;

Bytes filled(size_t bytes) {
  const size_t rounded = (bytes + 127) / 64 * 64;
  Bytes buffer(static_cast<uint8_t *>(std::aligned_alloc(64, rounded)));
  std::memset(buffer.get(), 0, rounded); // neither denormals nor page faults
  return buffer;
}

/// Multiply-adds a second of the best instruction for an element size at a level, or 0 where there is no loop for it.
double peakRate(ajour_cpu_level level, int64_t elementSize) {
#if defined(__x86_64__)
  constexpr int64_t n = 20000;
  if (elementSize == 4 && level >= AJOUR_LEVEL_avx512)
    return n * 16.0 * 16 / secondsOf([] { peak_f32_avx512(n); });
  if (elementSize == 4)
    return n * 12.0 * 8 / secondsOf([] { peak_f32_avx2(n); });
  if (ajour::test::cpuHas(AJOUR_LEVEL_avx512vnni))
    return n * 16.0 * 64 / secondsOf([] { peak_8bit_avx512vnni(n); });
#endif
  return 0;
}

/// Alternates `work` (of `macs` multiply-adds) with the peak loop and reports both at their fastest.
template <typename Work>
void measure(benchmark::State &state, ajour_cpu_level level, int64_t elementSize, double macs, double weightBytes,
             Work work) {
  double best = 1e9, peak = 0;
  work();
  for (auto _ : state) {
    peak = std::max(peak, peakRate(level, elementSize));
    const double seconds = secondsOf(work);
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["GOPS"] = 2 * macs / best * 1e-9;
  if (peak > 0)
    state.counters["peak%"] = 100 * macs / best / peak;
  if (weightBytes > 0)
    state.counters["GB/s"] = weightBytes / best * 1e-9;
}

void runGemm(benchmark::State &state, const specialised_gemm &gemm, int64_t nr) {
  const bool vector = gemm.m == 1;
  const int64_t panelBytes = gemm.k * nr * gemm.element_size;
  // The panels fill half of L2; a block of rows meets every panel before the next block comes.
  const int64_t panels = std::max<int64_t>(1, (1 << 20) / panelBytes), blocks = vector ? 1 : 4;
  Bytes lhs = filled(blocks * gemm.m * gemm.k * gemm.element_size), rhs = filled(panels * panelBytes);
  Bytes acc = filled(gemm.m * nr * 4);
  const int repeats = vector ? 8 : 1;
  measure(state, gemm.level, gemm.element_size, double(repeats * blocks * panels) * gemm.m * gemm.k * nr,
          vector ? double(repeats) * panels * panelBytes : 0, [&] {
            for (int i = 0; i < repeats; ++i)
              for (int64_t block = 0; block < blocks; ++block)
                for (int64_t panel = 0; panel < panels; ++panel)
                  gemm.run(lhs.get() + block * gemm.m * gemm.k * gemm.element_size, rhs.get() + panel * panelBytes,
                           acc.get());
          });
}

void runDwconv(benchmark::State &state, const specialised_dwconv &conv) {
  const int64_t out = (conv.width - 1) / conv.stride + 1;
  Bytes image = filled(conv.width * conv.width * conv.channels * conv.element_size);
  Bytes weights = filled((conv.channels + 64) * 64 * conv.element_size), acc = filled(28 * 64 * 4);
  measure(state, conv.level, conv.element_size, double(out) * out * conv.channels * conv.kernel * conv.kernel, 0,
          [&] { conv.run(image.get(), weights.get(), acc.get(), 0); });
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 0; i < specialised_gemm_count; ++i) {
    const specialised_gemm &gemm = specialised_gemms[i];
    int64_t nr = 0;
    for (const ajour_kernel_row &row : ajour_kernel_table)
      if (!std::strcmp(row.symbol, gemm.symbol))
        nr = row.nr;
    if (ajour::test::cpuHas(gemm.level))
      benchmark::RegisterBenchmark(
          (std::string(gemm.symbol) + "/m" + std::to_string(gemm.m) + "/k" + std::to_string(gemm.k)).c_str(),
          [&gemm, nr](benchmark::State &state) { runGemm(state, gemm, nr); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
  }
  for (int i = 0; i < specialised_dwconv_count; ++i) {
    const specialised_dwconv &conv = specialised_dwconvs[i];
    if (ajour::test::cpuHas(conv.level))
      benchmark::RegisterBenchmark((std::string(conv.symbol) + "/" + std::to_string(conv.kernel) + "x" +
                                    std::to_string(conv.kernel) + "s" + std::to_string(conv.stride) + "/" +
                                    std::to_string(conv.width) + "x" + std::to_string(conv.width) + "x" +
                                    std::to_string(conv.channels))
                                       .c_str(),
                                   [&conv](benchmark::State &state) { runDwconv(state, conv); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
