// Sparse convolutions beside the dense ones that they replace, both built from kernels inlined with the layer's constants
// and both with bias, relu and store. The two alternate; medians and their ratio are printed. One thread, whose processor time is
// measured, so that what others do on the machine counts little.
//
// usage: SpmmBench [LEVEL]     the best of this CPU without
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "Kernels/NativeKernels.h"
#include "SpmmLoops.h"
#include "ajour/Encoding/PackSparse.h"

namespace {

using ajour::encoding::PackedSparse;
using ajour::encoding::SparsePlan;

std::mt19937 rng(1);

struct AlignedDelete {
  void operator()(void *p) const { std::free(p); }
};
using Floats = std::unique_ptr<float, AlignedDelete>;

Floats floats(int64_t count) {
  const size_t bytes = (count * sizeof(float) + 255) / 64 * 64;
  Floats buffer(static_cast<float *>(std::aligned_alloc(64, bytes)));
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    buffer.get()[i] = 0.001f * float(i % 7);
  return buffer;
}

double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

double secondsOf(const std::function<void()> &work) {
  const double begin = threadSeconds();
  work();
  return threadSeconds() - begin;
}

template <typename Loop> Loop *find(const spmm_loops_row *rows, int count, ajour_cpu_level level, int64_t value, int64_t m) {
  Loop *best = nullptr;
  for (int i = 0; i < count; ++i)
    if (rows[i].level <= level && rows[i].value == value && rows[i].m == m)
      best = reinterpret_cast<Loop *>(rows[i].run);
  return best;
}

/// Alternates both and prints one line.
void compare(const std::string &name, double denseMacs, double kept, const std::function<void()> &sparse,
             const std::function<void()> &dense) {
  sparse(), dense();
  std::vector<double> a, b;
  for (int i = 0; i < 15; ++i)
    a.push_back(secondsOf(sparse)), b.push_back(secondsOf(dense));
  std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
  const double s = a[7], d = b[7];
  std::printf("%-46s %5.3f  %8.3f  %8.3f  %6.2f  %8.1f  %8.1f\n", name.c_str(), kept, 1e3 * s, 1e3 * d, d / s,
              kept * denseMacs / s * 1e-9, denseMacs / d * 1e-9);
  std::fflush(stdout);
}

/// Rows of the gemm tile that covers `width` best.
int64_t tileRows(ajour_cpu_level level, int64_t width) {
  const int64_t mr = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level)->mr;
  const int64_t tiles = (width + mr - 1) / mr, rows = (width + tiles - 1) / tiles;
  return rows;
}

/// 3x3, stride 1: 4 of 9 weights in each kept kernel, by eight patterns around the centre.
void patterns(ajour_cpu_level level, int64_t size, int64_t channels, int64_t filters, double connectivity) {
  static constexpr int table[8] = {0b000011011, 0b000110110, 0b011011000, 0b110110000,
                                   0b000111010, 0b010111000, 0b010110010, 0b010011010};
  std::vector<float> weights(filters * 9 * channels);
  double kept = 0;
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t c = 0; c < channels; ++c)
      if (const int pattern = double(rng() % 1000) < connectivity * 1000 ? table[rng() % 8] : 0)
        for (int t = 0; t < 9; ++t)
          if (pattern >> t & 1)
            weights[(f * 9 + t) * channels + c] = 0.5f, ++kept;
  const int64_t width = size > 8 ? 16 : 8, segments = 16 / width;
  const int64_t rowTiles = (size + 16 * segments - 1) / (16 * segments);
  const int64_t rows = (size + rowTiles * segments - 1) / (rowTiles * segments), planeRows = rows + 2;
  SparsePlan plan{.filters = filters, .kh = 3, .kw = 3, .channels = channels, .group = 1};
  plan.columnUnits = plan.phaseUnits = planeRows, plan.channelUnits = 3 * planeRows, plan.runs = true;
  const int64_t fits = std::max<int64_t>(1, (connectivity * 4 / 9 < 0.3 ? 2 : 1) * (28 << 10) / (plan.channelUnits * 64)), chunks = (channels + fits - 1) / fits;
  plan.chunk = (channels + chunks - 1) / chunks;
  const PackedSparse<float> packed = ajour::encoding::packSparse(plan, weights.data());
  auto *loop = find<spconv_loop>(spconv_loops, spconv_loops_count, level, rows, 1);
  auto *tile = find<gemm_loop>(gemm_loops, gemm_loops_count, level, tileRows(level, size), 1);
  if (!loop || !tile)
    std::abort();
  const int64_t pixels = size * size;
  Floats image = floats(channels * pixels), out = floats(filters * pixels + 256);
  Floats scratch = floats(plan.units() * 16 + 32), acc = floats(filters * rows * 16);
  auto sparse = [&] {
    for (int64_t y = 0; y < size; y += rows * segments)
      for (int64_t x = 0; x < size; x += width) {
        for (int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
          const int64_t first = chunk * plan.chunk;
          ajour_expand_f32(image.get() + first * pixels, pixels, std::min(plan.chunk, channels - first), size, size,
                           scratch.get(), y, x, rows, planeRows, width, 3, 3, 1, 1, 1, 1, 1, 1);
          loop(scratch.get(), packed.inputs.data(), packed.weights.data(), packed.index.data() + chunk * filters * 5,
               acc.get(), filters, chunk > 0);
        }
        for (int64_t f = 0; f < filters; ++f)
          for (int64_t s = 0; s < segments; ++s) {
            const int64_t top = y + s * rows;
            store_tile(acc.get() + f * rows * 16 + s * width, 0.1f, out.get() + (f * size + top) * size + x, size,
                       std::min(rows, size - top), std::min(width, size - x));
          }
      }
  };
  const int64_t nr = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level)->nr, step = tileRows(level, size);
  Floats band = floats((size + 2) * (size + 2) * channels + 64), panels = floats((filters + nr) * 9 * channels);
  Floats bias = floats(filters), denseOut = floats(pixels * filters + 64);
  const int64_t blockRows = std::clamp<int64_t>((512 << 10) / ((size + 2) * channels * 4), 1, size);
  auto dense = [&] {
    for (int64_t y0 = 0; y0 < size; y0 += blockRows)
      for (int64_t f = 0; f < filters; f += nr)
        for (int64_t y = y0; y < std::min(size, y0 + blockRows); ++y)
          for (int64_t x = 0; x < size; x += step)
            tile(band.get() + (y * (size + 2) + std::min(x, size - step)) * channels, (size + 2) * channels, channels,
                 panels.get() + f * 9 * channels, bias.get() + f,
                 denseOut.get() + (y * size + std::min(x, size - step)) * filters + f, filters, 3);
  };
  compare("3x3 " + std::to_string(size) + "x" + std::to_string(size) + " " + std::to_string(channels) + "->" +
              std::to_string(filters) + " patterns 4/9" + (connectivity == 1 ? "" : connectivity == 0.5 ? ", half the kernels" : ", 9 of 32 kernels"),
          double(pixels) * 9 * channels * filters, kept / double(weights.size()), sparse, dense);
}

/// 1x1 with blocks of `group` output channels by one input channel, read where the activations lie.
void blocks(ajour_cpu_level level, int64_t pixels, int64_t channels, int64_t filters, int64_t group, double density) {
  std::vector<float> weights(filters * channels);
  double kept = 0;
  for (int64_t f = 0; f < filters; f += group)
    for (int64_t c = 0; c < channels; ++c)
      if (double(rng() % 1000) < density * 1000)
        for (int64_t r = 0; r < group; ++r)
          weights[(f + r) * channels + c] = 0.5f, ++kept;
  const SparsePlan plan{.filters = filters, .kh = 1, .kw = 1, .channels = channels, .group = group, .chunk = channels};
  const PackedSparse<float> packed = ajour::encoding::packSparse(plan, weights.data());
  const int64_t vectors = (pixels + 15) / 16, most = group == 4 ? 6 : 3, tiles = (vectors + most - 1) / most;
  const int64_t n = (vectors + tiles - 1) / tiles * 16, rows = tileRows(level, pixels);
  auto *loop = find<spmm_loop>(spmm_loops, spmm_loops_count, level, n, group);
  auto *tile = find<gemm_loop>(gemm_loops, gemm_loops_count, level, rows, 1);
  if (!loop || !tile)
    std::abort();
  // The tile at the end may reach past it.
  Floats image = floats(channels * pixels + n), out = floats(filters * pixels + n), bias = floats(filters);
  auto sparse = [&] {
    for (int64_t p = 0; p < pixels; p += n)
      loop(image.get() + p, pixels, packed.inputs.data(), packed.weights.data(), packed.index.data(), bias.get(),
           out.get() + std::min(p, std::max<int64_t>(0, pixels - n)), pixels, filters / group);
  };
  const int64_t nr = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level)->nr;
  Floats lhs = floats((pixels + rows) * channels), panels = floats((filters + nr) * channels);
  Floats denseOut = floats((pixels + rows) * filters);
  const int64_t block = std::clamp<int64_t>((512 << 10) / (channels * 4 * rows), 1, 8) * rows;
  auto dense = [&] {
    for (int64_t p0 = 0; p0 < pixels; p0 += block)
      for (int64_t f = 0; f < filters; f += nr)
        for (int64_t p = p0; p < std::min(pixels, p0 + block); p += rows)
          tile(lhs.get() + p * channels, 0, channels, panels.get() + f * channels, bias.get() + f,
               denseOut.get() + p * filters + f, filters, 1);
  };
  compare("1x1 " + std::to_string(pixels) + " pixels " + std::to_string(channels) + "->" + std::to_string(filters) + " blocks " +
              std::to_string(group) + "x1",
          double(pixels) * channels * filters, kept / double(weights.size()), sparse, dense);
}

const sparse_loops_row *findSparse(ajour_cpu_level level, int64_t bits, int64_t share) {
  for (int i = 0; i < sparse_loops_count; ++i)
    if (sparse_loops[i].level == level && sparse_loops[i].bits == bits && sparse_loops[i].share == share)
      return &sparse_loops[i];
  return nullptr;
}

/// 1x1 with blocks of `share` output channels by one input channel, channels-last: columns in lanes.
template <typename T> void lanes(ajour_cpu_level level, int64_t pixels, int64_t channels, int64_t filters, int64_t share, double density) {
  const int64_t bits = 8 * sizeof(T);
  const sparse_loops_row *row = findSparse(level, bits, share), *full = findSparse(level, bits, 0);
  if (!row)
    return;
  std::vector<T> weights(filters * channels);
  double kept = 0;
  for (int64_t f = 0; f < filters; f += share)
    for (int64_t c = 0; c < channels; ++c)
      if (double(rng() % 1000) < density * 1000)
        for (int64_t r = 0; r < share; ++r)
          weights[(f + r) * channels + c] = T(1), ++kept;
  const int64_t count = row->nr / 4;
  const ajour::encoding::PanelPlan plan{
      .k = channels, .n = filters, .lanes = count, .share = share, .kr = row->kr,
      .window = ajour_gemm_sparse_window(count, bits == 8 ? AJOUR_I8 : AJOUR_F32)};
  const auto packed = ajour::encoding::packPanels(plan, ajour::encoding::WeightView<T>{weights.data(), channels, filters, 1, channels});
  Floats lhs = floats((pixels + 16) * channels), panels = floats((filters + 64) * (channels + 4)), bias = floats(filters + 64);
  Floats out = floats((pixels + 16) * (filters + 64));
  std::fill_n(reinterpret_cast<int32_t *>(bits == 8 ? bias.get() : lhs.get()), bits == 8 ? filters : 0, 3);
  auto at = [](const Floats &buffer, int64_t elements) { return reinterpret_cast<T *>(buffer.get()) + elements; };
  // Blocks of rows stay in the second-level cache, as in compiled models.
  auto blockRows = [&](int64_t rows, int64_t most) { return std::clamp<int64_t>((512 << 10) / (channels * int64_t(sizeof(T)) * rows), 1, most) * rows; };
  auto sparse = [&] {
    for (int64_t p = 0; p < pixels; p += row->rows)
      reinterpret_cast<sparse_loop *>(row->run)(at(lhs, p * channels), channels, packed.offsets.data(), packed.picks.data(),
                                                packed.weights.data(), packed.index.data(), bias.get(), at(out, p * filters),
                                                filters, filters / row->nr);
  };
  const int64_t nr = full->nr, k = channels, block = blockRows(full->rows, 8);
  auto dense = [&] {
    for (int64_t p0 = 0; p0 < pixels; p0 += block)
      for (int64_t f = 0; f < filters; f += nr)
        for (int64_t p = p0; p < std::min(pixels, p0 + block); p += full->rows)
          reinterpret_cast<dense_loop *>(full->run)(at(lhs, p * channels), at(panels, f * k), bias.get() + f,
                                                    at(out, p * filters + f), filters, k, 1);
  };
  compare("1x1 " + std::to_string(pixels) + " pixels " + std::to_string(channels) + "->" + std::to_string(filters) + " lanes " +
              std::to_string(share) + (bits == 8 ? " int8" : " f32"),
          double(pixels) * channels * filters, kept / double(weights.size()), sparse, dense);
}

} // namespace

int main(int argc, char **argv) {
  ajour_cpu_level level = AJOUR_LEVEL_neon;
  bool found = false;
  for (int i = 0; i < sparse_loops_count; ++i)
    if (ajour::test::cpuHas(sparse_loops[i].level) && sparse_loops[i].level >= (found ? level : 0) &&
        (argc < 2 || ajour::test::levelName(sparse_loops[i].level) == std::string(argv[1])))
      level = sparse_loops[i].level, found = true;
  if (!found) {
    std::fprintf(stderr, "SpmmBench: no sparse kernels of the level '%s' for this CPU\n", argc > 1 ? argv[1] : "best");
    return 1;
  }
  std::printf("%-46s %5s  %8s  %8s  %6s  %8s  %8s\n", (std::string("level ") + ajour::test::levelName(level)).c_str(), "kept",
              "sparse", "dense", "ratio", "GMAC/s", "GMAC/s");
  for (double density : {0.5, 0.25, 0.2, 0.1})
    for (int64_t share : {1, 2, 4})
      for (auto [pixels, narrow] : {std::pair{3136, 64}, {784, 128}, {196, 256}, {49, 512}}) {
        lanes<int8_t>(level, pixels, narrow, 4 * narrow, share, density);
        lanes<int8_t>(level, pixels, 4 * narrow, narrow, share, density);
        lanes<float>(level, pixels, narrow, 4 * narrow, share, density);
        lanes<float>(level, pixels, 4 * narrow, narrow, share, density);
      }
  if (std::none_of(spconv_loops, spconv_loops + spconv_loops_count, [&](const spmm_loops_row &row) { return row.level == level; }))
    return 0; // this level has no other kernels over pixels than one below
  for (double connectivity : {1.0, 0.5, 0.28125}) {
    for (auto [size, channels] : {std::pair{56, 64}, {28, 128}, {14, 256}, {7, 512}})
      patterns(level, size, channels, channels, connectivity);
    for (auto [size, from, to] : {std::tuple{224, 64, 64}, {112, 128, 128}, {56, 256, 256}, {28, 512, 512}, {14, 512, 512}})
      patterns(level, size, from, to, connectivity);
  }
  for (auto [group, density] : {std::pair{4, 0.5}, {8, 0.5}, {4, 0.25}, {8, 0.25}, {4, 0.2}, {8, 0.2}, {4, 0.1}, {8, 0.1}})
    for (auto [pixels, narrow] : {std::pair{3136, 64}, {784, 128}, {196, 256}, {49, 512}}) {
      blocks(level, pixels, narrow, 4 * narrow, group, density);
      blocks(level, pixels, 4 * narrow, narrow, group, density);
    }
}
