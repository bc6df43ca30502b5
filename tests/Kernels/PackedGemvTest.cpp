// Packed matrices through the kernels, block by block as compiled code does it, against the plain product: every
// structure, type of values and level, ragged sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/PackGemv.h"

using namespace ajour::encoding;
using namespace ajour::test;

namespace {

constexpr ajour_cpu_level levels[] = {AJOUR_LEVEL_avx2, AJOUR_LEVEL_avx512, AJOUR_LEVEL_avx512vnni, AJOUR_LEVEL_neon,
                                      AJOUR_LEVEL_dotprod};

/// The function that serves an op at a level.
template <typename Fn> Fn *kernelAt(ajour_kernel_op op, ajour_cpu_level level) {
  Fn *best = nullptr;
  for (const NativeKernel &kernel : nativeKernels(op))
    if (kernel.row.level <= level)
      best = kernel.as<Fn>();
  return best;
}

/// A sparse matrix [n][k] of small integers: with patterns of 16 / patterns rows that keep `kept` of each 4 columns
/// (C4n), or about a third of all (Columns).
std::vector<int> randomMatrix(const GemvFormat &format, int64_t k, int64_t n, int low, int high, std::mt19937 &rng) {
  std::vector<int> matrix(n * k);
  const int64_t share = 16 / format.patterns;
  for (int64_t first = 0; first < n; first += share)
    for (int64_t p0 = 0; p0 < k; p0 += 4) {
      bool keeps[4] = {true, true, true, true};
      if (format.structure == GemvFormat::C4n)
        for (int64_t drop = 4 - format.kept; drop > 0;) {
          bool &keep = keeps[rng() % 4];
          drop -= keep;
          keep = false;
        }
      if (format.structure == GemvFormat::Columns)
        for (bool &keep : keeps)
          keep = rng() % 3 == 0;
      for (int64_t row = first; row < std::min(n, first + share); ++row)
        for (int64_t p = p0; p < std::min(k, p0 + 4); ++p)
          if (keeps[p - p0])
            matrix[row * k + p] = low + int(rng() % (high - low + 1));
    }
  return matrix;
}

ajour_kernel_op kernelOf(GemvFormat::Values values) {
  switch (values) {
  case GemvFormat::Q2:
    return AJOUR_KERNEL_gemv_q2;
  case GemvFormat::Q4:
    return AJOUR_KERNEL_gemv_q4;
  case GemvFormat::Q5:
    return AJOUR_KERNEL_gemv_q5;
  case GemvFormat::Q6:
    return AJOUR_KERNEL_gemv_q6;
  default:
    return AJOUR_KERNEL_gemv_q8;
  }
}

/// acc[n] of one token, by the kernels of a level.
template <typename T>
std::vector<T> multiply(const GemvFormat &format, const std::vector<uint8_t> &packed, int64_t k, int64_t n,
                        ajour_cpu_level level, const void *x, const float *scales) {
  const GemvSizes sizes = gemvSizes(format, k, n);
  const bool is8 = format.values != GemvFormat::F32 && format.values != GemvFormat::F16;
  const int64_t size = is8 ? 1 : 4;
  const bool quantized = isQuantized(format);
  const int64_t groupColumns = quantized ? format.group : (k + 7) / 8 * 8;
  std::vector<T> result(sizes.blocks * 16);
  for (int64_t b = 0; b < sizes.blocks; ++b) {
    int64_t offset = b * sizes.blockBytes, groupKept = sizes.groupKept;
    if (format.structure == GemvFormat::Columns) {
      std::memcpy(&offset, packed.data() + b * 16, 8);
      std::memcpy(&groupKept, packed.data() + b * 16 + 8, 8);
      EXPECT_EQ(offset % 64, 0);
    }
    const uint8_t *block = packed.data() + offset;
    const int64_t bytes = gemvBlockBytes(format, k, groupKept);
    EXPECT_LE(offset + bytes, int64_t(packed.size()));
    const void *lhs = x;
    const int64_t kept = sizes.groups * groupKept;
    GuardedBuffer<uint8_t> apart(format.patterns * (kept + 64) * size, AJOUR_BUFFER_SLACK);
    GuardedBuffer<uint8_t> together((format.patterns * kept * size + 1023) / 1024 * 1024, AJOUR_BUFFER_SLACK);
    if (format.structure == GemvFormat::C4n && is8) {
      const int64_t padded = (sizes.groups * groupColumns + 63) / 64 * 64;
      GuardedBuffer<uint8_t> all(padded / 4 * format.kept * format.patterns, AJOUR_BUFFER_SLACK);
      kernelAt<ajour_compress_c4_8bit_fn>(AJOUR_KERNEL_compress_c4_8bit, level)(x, block, all.data(), padded,
                                                                                format.kept, format.patterns, 0);
      std::memcpy(together.data(), all.data(), std::min(all.size(), together.size()));
      lhs = together.data();
    } else if (format.structure != GemvFormat::Dense) {
      // C4n of floats is packed as Columns; see the tests.
      const int64_t maskBytes = (k + 63) / 64 * 8;
      for (int64_t q = 0; q < format.patterns; ++q) {
        uint8_t *target = apart.data() + q * (kept + 64) * size;
        if (is8)
          kernelAt<ajour_compress_8bit_fn>(AJOUR_KERNEL_compress_8bit, level)(
              x, block + q * maskBytes, target, sizes.groups, groupColumns, groupKept, 0, 0);
        else
          kernelAt<ajour_compress_f32_fn>(AJOUR_KERNEL_compress_f32,
                                          level)(static_cast<const float *>(x), block + q * maskBytes,
                                                 reinterpret_cast<float *>(target), 1, groupColumns, groupKept, 0);
      }
      lhs = apart.data();
      if (format.patterns > 1) {
        ajour_interleave_words(apart.data(), (kept + 64) * size / 4, together.data(), format.patterns, kept * size / 4);
        lhs = together.data();
      }
    }
    // The block alone, so that reading past it would fault.
    GuardedBuffer<uint8_t> alone(bytes - sizes.codeBytes, AJOUR_BUFFER_SLACK);
    std::memcpy(alone.data(), block + sizes.codeBytes, bytes - sizes.codeBytes);
    T *acc = result.data() + b * 16;
    if constexpr (std::is_same_v<T, int32_t>) {
      kernelAt<ajour_gemv_8bit_fn>(AJOUR_KERNEL_gemv_8bit, level)(lhs, 0, alone.data(), acc, 1, format.patterns, kept);
    } else if (quantized) {
      const int64_t flags = (format.halfScales ? 0 : AJOUR_GEMV_F32_SCALES) | (format.zeroPoints ? AJOUR_GEMV_ZERO_POINTS : 0) |
                            (format.offsets ? AJOUR_GEMV_OFFSETS : 0) | (format.isUnsigned ? AJOUR_GEMV_UNSIGNED : 0) |
                            format.run << AJOUR_GEMV_RUN_SHIFT;
      kernelAt<ajour_gemv_q8_fn>(kernelOf(format.values), level)(static_cast<const int8_t *>(lhs), 0, scales, nullptr, alone.data(), acc, 1,
                                        format.patterns, sizes.groups, groupKept, flags);
    } else {
      kernelAt<ajour_gemv_f32_fn>(format.values == GemvFormat::F32 ? AJOUR_KERNEL_gemv_f32 : AJOUR_KERNEL_gemv_f16,
                                  level)(static_cast<const float *>(lhs), 0, alone.data(), acc, 1, format.patterns,
                                         kept);
    }
  }
  return result;
}

constexpr int64_t columnCounts[] = {1, 4, 31, 64, 70, 200}, rowCounts[] = {1, 16, 19, 40};

/// Calls check(format, k, n) for all structures; those of C4n where `c4n`.
template <typename Check> void forEachStructure(GemvFormat::Values values, bool c4n, Check check) {
  for (int64_t k : columnCounts)
    for (int64_t n : rowCounts) {
      GemvFormat format;
      format.values = values;
      check(format, k, n);
      for (int64_t patterns : {1, 2, 4}) {
        format.patterns = patterns;
        format.structure = GemvFormat::Columns;
        check(format, k, n);
        format.structure = GemvFormat::C4n;
        for (format.kept = 1; c4n && format.kept < 4; ++format.kept)
          check(format, k, n);
      }
    }
}

std::string describe(const GemvFormat &format, int64_t k, int64_t n, ajour_cpu_level level) {
  return "structure " + std::to_string(format.structure) + " values " + std::to_string(format.values) + " patterns " +
         std::to_string(format.patterns) + " kept " + std::to_string(format.kept) + " group " +
         std::to_string(format.group) + " k " + std::to_string(k) + " n " + std::to_string(n) + " " + levelName(level);
}

} // namespace

TEST(PackedGemv, Floats) {
  std::mt19937 rng(1);
  for (auto values : {GemvFormat::F32, GemvFormat::F16})
    forEachStructure(values, false, [&](const GemvFormat &format, int64_t k, int64_t n) {
      const std::vector<int> matrix = randomMatrix(format, k, n, -9, 9, rng);
      std::vector<float> weights(matrix.begin(), matrix.end()), x(k + AJOUR_BUFFER_SLACK);
      for (int64_t p = 0; p < k; ++p)
        x[p] = float(int(rng() % 15) - 7);
      auto packed = packGemv(format, WeightView<float>{weights.data(), k, n, 1, k});
      ASSERT_TRUE(packed);
      for (ajour_cpu_level level : levels) {
        if (!cpuHas(level))
          continue;
        const std::vector<float> y = multiply<float>(format, *packed, k, n, level, x.data(), nullptr);
        for (int64_t row = 0; row < n; ++row) {
          float expected = 0;
          for (int64_t p = 0; p < k; ++p)
            expected += x[p] * weights[row * k + p];
          ASSERT_EQ(y[row], expected) << describe(format, k, n, level) << " row " << row;
        }
      }
    });
}

TEST(PackedGemv, Bytes) {
  std::mt19937 rng(2);
  forEachStructure(GemvFormat::I8, true, [&](const GemvFormat &format, int64_t k, int64_t n) {
    const std::vector<int> matrix = randomMatrix(format, k, n, -128, 127, rng);
    std::vector<int8_t> weights(matrix.begin(), matrix.end());
    std::vector<uint8_t> x(k + AJOUR_BUFFER_SLACK);
    for (uint8_t &byte : x)
      byte = rng();
    auto packed = packGemv(format, WeightView<int8_t>{weights.data(), k, n, 1, k});
    ASSERT_TRUE(packed);
    for (ajour_cpu_level level : levels) {
      if (!cpuHas(level))
        continue;
      const std::vector<int32_t> y = multiply<int32_t>(format, *packed, k, n, level, x.data(), nullptr);
      for (int64_t row = 0; row < n; ++row) {
        int32_t expected = 0;
        for (int64_t p = 0; p < k; ++p)
          expected += (level >= AJOUR_LEVEL_neon ? int8_t(x[p]) : x[p]) * weights[row * k + p];
        ASSERT_EQ(y[row], expected) << describe(format, k, n, level) << " row " << row;
      }
    }
  });
}

TEST(PackedGemv, Quantized) {
  std::mt19937 rng(3);
  for (auto values : {GemvFormat::Q8, GemvFormat::Q4, GemvFormat::Q2, GemvFormat::Q5, GemvFormat::Q6})
    for (int64_t group : {32, 64, 128})
      forEachStructure(values, values == GemvFormat::Q8 || values == GemvFormat::Q4, [&](GemvFormat format, int64_t k, int64_t n) {
        format.group = group;
        format.halfScales = rng() % 2;
        format.zeroPoints = rng() % 2;
        const int bits = int(gemvBits(values)), top = (1 << bits) - 1, middle = 1 << (bits - 1);
        const int64_t groups = (k + group - 1) / group;
        std::vector<uint8_t> zeroPoints(groups * n);
        std::vector<float> scales(groups * n), xScales(groups);
        for (int64_t i = 0; i < groups * n; ++i) {
          zeroPoints[i] = format.zeroPoints ? rng() % (top + 1) : middle;
          scales[i] = std::ldexp(rng() % 2 ? 1.0f : -1.0f, -int(rng() % 3));
        }
        for (float &scale : xScales)
          scale = std::ldexp(1.0f, -int(rng() % 3));
        // A pruned weight is one that has its zero point for a value.
        const std::vector<int> matrix = randomMatrix(format, k, n, 1, top + 1, rng);
        std::vector<uint8_t> weights(n * k);
        for (int64_t row = 0; row < n; ++row)
          for (int64_t p = 0; p < k; ++p)
            weights[row * k + p] = matrix[row * k + p] ? matrix[row * k + p] - 1 : zeroPoints[p / group * n + row];
        std::vector<int8_t> x(groups * group + 2 * AJOUR_BUFFER_SLACK);
        for (int64_t p = 0; p < int64_t(x.size()); ++p)
          x[p] = int(rng() % 255) - 127;
        QuantizedView view{{weights.data(), k, n, 1, k}, {scales.data(), groups, n, n, 1}, {}};
        if (format.zeroPoints)
          view.zeroPoints = {zeroPoints.data(), groups, n, n, 1};
        for (ajour_cpu_level level : levels) {
          if (!cpuHas(level))
            continue;
          format.signed8 = level >= AJOUR_LEVEL_neon && values == GemvFormat::Q8;
          if (format.signed8 && format.zeroPoints)
            continue;
          auto packed = packGemv(format, view);
          ASSERT_TRUE(packed);
          const std::vector<float> y = multiply<float>(format, *packed, k, n, level, x.data(), xScales.data());
          for (int64_t row = 0; row < n; ++row) {
            double expected = 0;
            for (int64_t p = 0; p < k; ++p)
              expected += double(scales[p / group * n + row]) * xScales[p / group] * x[p] *
                          (weights[row * k + p] - zeroPoints[p / group * n + row]);
            ASSERT_EQ(y[row], float(expected)) << describe(format, k, n, level) << " row " << row;
          }
        }
      });
}

// A block of C4^n becomes the block that the dense matrix, of 8 bits, is packed as.
TEST(PackedGemv, ExpandsToTheDenseBlock) {
  std::mt19937 rng(7);
  for (auto values : {GemvFormat::Q8, GemvFormat::Q4})
    for (bool halfScales : {true, false})
      for (bool signed8 : {false, true})
        for (int64_t patterns : {1, 2, 4})
          for (int64_t kept : {1, 2, 3})
            for (auto [k, group] : {std::pair<int64_t, int64_t>{64, 32}, {192, 96}, {70, 96}, {40, 64}, {256, 64}}) {
              const int64_t bits = gemvBits(values), n = 21, groups = (k + group - 1) / group, middle = 1 << (bits - 1);
              if (group / 4 * kept % gemvStep(values) != 0 || (signed8 && values != GemvFormat::Q8))
                continue;
              GemvFormat sparse;
              sparse.structure = GemvFormat::C4n;
              sparse.values = values;
              sparse.patterns = patterns;
              sparse.kept = kept;
              sparse.group = group;
              sparse.halfScales = halfScales;
              sparse.signed8 = signed8;
              GemvFormat dense = sparse;
              dense.structure = GemvFormat::Dense;
              dense.values = GemvFormat::Q8;
              dense.patterns = 1;
              dense.kept = 4;
              const std::vector<int> matrix = randomMatrix(sparse, k, n, int(-middle), int(middle) - 1, rng);
              std::vector<uint8_t> narrow(n * k), wide(n * k);
              for (int64_t i = 0; i < n * k; ++i) {
                narrow[i] = uint8_t(matrix[i] + middle);
                wide[i] = uint8_t(matrix[i] + 128);
              }
              std::vector<float> scales(groups * n);
              for (float &scale : scales)
                scale = float(1 + rng() % 1000) / 1024;
              const WeightView<float> scaleView{scales.data(), groups, n, n, 1};
              auto from = packGemv(sparse, QuantizedView{{narrow.data(), k, n, 1, k}, scaleView, {}});
              auto to = packGemv(dense, QuantizedView{{wide.data(), k, n, 1, k}, scaleView, {}});
              ASSERT_TRUE(from && to);
              const GemvSizes fromSizes = gemvSizes(sparse, k, n), toSizes = gemvSizes(dense, k, n);
              const int64_t flags = halfScales ? 0 : AJOUR_GEMV_F32_SCALES;
              for (int64_t b = 0; b < fromSizes.blocks; ++b) {
                GuardedBuffer<uint8_t> block(fromSizes.blockBytes, AJOUR_BUFFER_SLACK);
                std::memcpy(block.data(), from->data() + b * fromSizes.blockBytes, fromSizes.blockBytes);
                GuardedBuffer<uint8_t> expanded(groups * ajour_gemv_group_bytes(8, group, flags), 0);
                ajour_expand_c4_8bit(block.data(), block.data() + fromSizes.codeBytes, expanded.data(), kept, patterns, groups,
                                     group, bits, flags, signed8 ? 0 : middle, signed8 ? 0 : 128);
                for (int64_t i = 0; i < expanded.size(); ++i)
                  ASSERT_EQ(expanded[i], (*to)[b * toSizes.blockBytes + i])
                      << "bits " << bits << " patterns " << patterns << " kept " << kept << " k " << k << " group " << group
                      << " byte " << i;
              }
            }
}

// Offsets, unsigned values, and codes for scales.
TEST(PackedGemv, OffsetsAndRuns) {
  std::mt19937 rng(4);
  for (auto values : {GemvFormat::Q8, GemvFormat::Q4, GemvFormat::Q2, GemvFormat::Q5, GemvFormat::Q6})
    for (int64_t group : {16, 32})
      for (int64_t run : {0, 2})
        for (bool offsets : {false, true})
          for (int64_t n : {16, 19}) {
            if (group % gemvStep(values) != 0 || (!run && !offsets))
              continue;
            const int64_t k = 4 * group, numbers = run ? 4 / run : 4;
            const int bits = int(gemvBits(values)), middle = offsets ? 0 : 1 << (bits - 1);
            GemvFormat format;
            format.values = values;
            format.group = group;
            format.run = run;
            format.offsets = format.isUnsigned = offsets;
            std::vector<uint8_t> weights(n * k);
            for (uint8_t &weight : weights)
              weight = rng() % (1 << bits);
            std::vector<float> scales(numbers * n), added(numbers * n), xScales(4);
            std::vector<int8_t> codes(4 * n, 1), addedCodes(4 * n, 1), x(k + 2 * AJOUR_BUFFER_SLACK);
            for (std::vector<float> *all : {&scales, &added, &xScales})
              for (float &number : *all)
                number = std::ldexp(1.0f, -int(rng() % 3));
            for (std::vector<int8_t> *all : {&codes, &addedCodes})
              for (int8_t &code : *all)
                code = run ? int(rng() % 32) - 16 : 1;
            for (int8_t &value : x)
              value = int(rng() % 255) - 127;
            QuantizedView view{{weights.data(), k, n, 1, k}, {scales.data(), numbers, n, n, 1}, {}};
            view.offsets = {added.data(), numbers, n, n, 1};
            view.scaleCodes = {codes.data(), 4, n, n, 1};
            view.offsetCodes = {addedCodes.data(), 4, n, n, 1};
            for (ajour_cpu_level level : levels) {
              format.signed8 = level >= AJOUR_LEVEL_neon && values == GemvFormat::Q8;
              if (!cpuHas(level) || (format.signed8 && offsets))
                continue;
              auto packed = packGemv(format, view);
              ASSERT_TRUE(packed);
              const std::vector<float> y = multiply<float>(format, *packed, k, n, level, x.data(), xScales.data());
              for (int64_t row = 0; row < n; ++row) {
                double expected = 0;
                for (int64_t p = 0; p < k; ++p) {
                  const int64_t g = p / group, at = (run ? g / run : g) * n + row;
                  const double weight = double(scales[at]) * codes[g * n + row] * (weights[row * k + p] - middle) +
                                        (offsets ? double(added[at]) * addedCodes[g * n + row] : 0);
                  expected += weight * x[p] * xScales[run ? g / run : g];
                }
                ASSERT_EQ(y[row], float(expected)) << describe(format, k, n, level) << " run " << run << " row " << row;
              }
            }
          }
}

// What a block must not cost more than: values, scales, 2 bits for each kept column of a pattern.
TEST(PackedGemv, Sizes) {
  GemvFormat format;
  format.structure = GemvFormat::C4n;
  format.values = GemvFormat::Q4;
  format.patterns = 2;
  format.group = 128;
  for (format.kept = 1; format.kept < 4; ++format.kept) {
    const GemvSizes sizes = gemvSizes(format, 4096, 4096);
    EXPECT_EQ(sizes.blockBytes, 16 * 1024 * format.kept / 2 + 32 * 32 + 2 * 1024 * format.kept * 2 / 8);
    EXPECT_EQ(sizes.blocks, 256);
  }
}

TEST(PackedGemv, PatternsThatKeepTooMuchAreRefused) {
  std::vector<float> weights(16 * 8);
  GemvFormat format;
  format.structure = GemvFormat::C4n;
  format.kept = 2;
  weights[0] = weights[1] = weights[8 + 2] = 1; // rows 0 and 1 together keep 3 of the first 4 columns
  EXPECT_FALSE(packGemv(format, WeightView<float>{weights.data(), 8, 16, 1, 8}));
  weights[8 + 2] = 0;
  weights[8 * 15 + 1] = 1;
  EXPECT_TRUE(packGemv(format, WeightView<float>{weights.data(), 8, 16, 1, 8}));
}

TEST(PackedGemv, HalvesAreRounded) {
  GemvFormat format;
  format.values = GemvFormat::F16;
  // Ties to even, the largest and what is beyond it, subnormals, an infinite, a negative zero.
  const float values[] = {1 + 0x1p-11f, 1 + 0x3p-11f, 65504,        65519,    65520, 0x1p-24f,
                          0x1p-25f,     0x1.8p-25f,   0x1.004p-14f, INFINITY, -0.0f, -2.5f};
  const uint16_t expected[] = {0x3C00, 0x3C02, 0x7BFF, 0x7BFF, 0x7C00, 1, 0, 1, 0x0401, 0x7C00, 0x8000, 0xC100};
  auto packed = packGemv(format, WeightView<float>{values, 12, 1, 1, 12});
  ASSERT_TRUE(packed);
  for (int64_t p = 0; p < 12; ++p) {
    uint16_t half;
    std::memcpy(&half, packed->data() + p * 32, 2);
    EXPECT_EQ(half, expected[p]) << values[p];
  }
}
