// Stored weights as columns of dense panels: packed by PackStored, unpacked by each kernel, against the reference and against
// the numbers that went in; with guard pages around each operand.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/Encoding/Half.h"
#include "ajour/Encoding/PackStored.h"
#include "cpu/Reference.h"

using namespace ajour::test;
using namespace ajour::encoding;

namespace {

/// Where the columns of a block lie in a panel: nr, and the distance of the upper eight.
struct Placing {
  int64_t nr, high;
};

std::vector<Placing> placings(int64_t k) { return {{32, 8}, {16, 8}, {8, k * 8}}; }

/// A packed block of random codes of one column block, and its parts.
struct Stored {
  StoredFormat format;
  int64_t k, n;
  std::vector<uint8_t> codes, packed;
  std::vector<float> scales, zeros;

  Stored(StoredFormat f, int64_t k, int64_t n) : format(f), k(k), n(n), codes(k * n) {
    std::mt19937 rng(uint32_t(k * 31 + n + f.bits));
    const int64_t groups = storedGroups(f, k);
    for (uint8_t &code : codes)
      code = rng() % (1u << f.bits);
    // Numbers of f16, so that half scales are exact.
    for (int64_t i = 0; i < groups * n; ++i) {
      scales.push_back(float(1 + rng() % 2000) / 4096);
      zeros.push_back(f.zeros == StoredFormat::ByteZeros ? float(rng() % 256) : float(rng() % 2000) / 256);
    }
    packed.resize(storedBytes(f, k, n));
    packStored(f, {{codes.data(), k, n, n, 1}, {scales.data(), groups, n, n, 1}, {zeros.data(), groups, n, n, 1}}, packed);
  }

  int64_t groups() const { return storedGroups(format, k); }
  int64_t flags() const {
    return (format.scales == StoredFormat::NoScales ? 0 : AJOUR_UNPACK_SCALES) |
           (format.scales == StoredFormat::FloatScales ? AJOUR_UNPACK_F32_SCALES : 0) |
           (format.zeros == StoredFormat::ByteZeros ? AJOUR_UNPACK_ZERO_POINTS : 0) |
           (format.zeros == StoredFormat::RealZeros ? AJOUR_UNPACK_REAL_ZEROS : 0);
  }
  /// The number at (p, j) when codes stand for themselves less `zero`.
  float number(int64_t p, int64_t j, int64_t zero) const {
    const int64_t at = p / format.group * n + j;
    float x = float(codes[p * n + j] - (format.zeros == StoredFormat::ByteZeros ? int64_t(zeros[at]) : zero));
    if (format.zeros == StoredFormat::RealZeros)
      x -= zeros[at];
    return x * scales[at];
  }
};

int64_t place(int64_t p, int64_t j, Placing at) { return p * at.nr + (j < 8 ? j : j - 8 + at.high); }

/// Elements up to the last of `rows` rows.
int64_t panelSize(Placing at, int64_t rows) { return at.high == 8 ? (rows - 1) * at.nr + 16 : at.high + rows * 8; }

/// Row of the panel that holds k = p: groups are padded.
int64_t panelRow(const StoredFormat &format, int64_t p) {
  return p / format.group * storedGroup(format) + p % format.group;
}

/// Runs `call` on the first block of a weight into a guarded panel, which it must fill as the reference does.
template <typename T, typename Call, typename Reference>
std::vector<T> unpack(const Stored &stored, Placing at, int64_t size, Call call, Reference reference) {
  const int64_t blockBytes = storedBlockBytes(stored.format, stored.k);
  GuardedBuffer<uint8_t> block(blockBytes, 0);
  memcpy(block.data(), stored.packed.data(), blockBytes);
  GuardedBuffer<T> panel(size, 0);
  std::vector<T> expected(size, T(77));
  for (int64_t i = 0; i < size; ++i)
    panel[i] = T(77);
  call(block.data(), panel.data());
  reference(block.data(), expected.data());
  for (int64_t i = 0; i < size; ++i)
    EXPECT_EQ(panel[i], expected[i]) << "place " << i << " of nr " << at.nr << ", " << stored.format.bits << " bits, k "
                                     << stored.k;
  return std::vector<T>(panel.data(), panel.data() + size);
}

class UnpackInt : public ::testing::TestWithParam<NativeKernel> {};
class UnpackBytes : public ::testing::TestWithParam<NativeKernel> {};
class UnpackHalves : public ::testing::TestWithParam<NativeKernel> {};
class UnpackCodebook : public ::testing::TestWithParam<NativeKernel> {};

} // namespace

TEST(PackStored, StepsAndBytesAreTheKernels) {
  for (int64_t bits = 1; bits <= 8; ++bits) {
    EXPECT_EQ(storedStep(bits), ajour_unpack_step(bits));
    Stored stored({bits, 40, StoredFormat::FloatScales, StoredFormat::RealZeros}, 100, 3);
    const int64_t group = storedGroup(stored.format);
    EXPECT_EQ((3 * ajour_unpack_group_bytes(bits, group, stored.flags()) + 63) / 64 * 64,
              storedBlockBytes(stored.format, 100));
  }
}

TEST_P(UnpackInt, GivesTheNumbers) {
  const NativeKernel &kernel = GetParam();
  AJOUR_SKIP_UNLESS_CPU_HAS(kernel);
  for (int64_t bits = 1; bits <= 8; ++bits)
    for (auto scales : {StoredFormat::HalfScales, StoredFormat::FloatScales})
      for (auto zeros : {StoredFormat::NoZeros, StoredFormat::ByteZeros, StoredFormat::RealZeros})
        for (auto [k, group] : {std::pair<int64_t, int64_t>{1, 1}, {64, 32}, {100, 32}, {47, 16}, {33, 33}}) {
          Stored stored({bits, group, scales, zeros}, k, 13);
          const int64_t zero = bits == 1 ? 0 : 1 << (bits - 1), rows = stored.groups() * storedGroup(stored.format);
          for (Placing at : placings(rows)) {
            auto panel = unpack<float>(
                stored, at, panelSize(at, rows),
                [&](const uint8_t *block, float *dst) {
                  kernel.as<ajour_unpack_int_f32_fn>()(block, dst, at.nr, at.high, stored.groups(),
                                                       storedGroup(stored.format), bits, stored.flags(), zero);
                },
                [&](const uint8_t *block, float *dst) {
                  ajour_reference_unpack_int_f32(block, dst, at.nr, at.high, stored.groups(),
                                                 storedGroup(stored.format), bits, stored.flags(), zero);
                });
            for (int64_t p = 0; p < k; ++p)
              for (int64_t j = 0; j < 16; ++j)
                ASSERT_EQ(panel[place(panelRow(stored.format, p), j, at)], j < 13 ? stored.number(p, j, zero) : 0)
                    << p << " " << j;
          }
        }
}

// Codes of 8 bits that the matrix-vector kernels of AArch64 have with their sign.
TEST_P(UnpackInt, SignedCodes) {
  const NativeKernel &kernel = GetParam();
  AJOUR_SKIP_UNLESS_CPU_HAS(kernel);
  Stored stored({8, 32, StoredFormat::HalfScales, StoredFormat::NoZeros}, 64, 13);
  const int64_t flags = stored.flags() | AJOUR_UNPACK_SIGNED;
  for (Placing at : placings(64)) {
    auto panel = unpack<float>(
        stored, at, panelSize(at, 64),
        [&](const uint8_t *block, float *dst) {
          kernel.as<ajour_unpack_int_f32_fn>()(block, dst, at.nr, at.high, 2, 32, 8, flags, 0);
        },
        [&](const uint8_t *block, float *dst) {
          ajour_reference_unpack_int_f32(block, dst, at.nr, at.high, 2, 32, 8, flags, 0);
        });
    for (int64_t p = 0; p < 64; ++p)
      for (int64_t j = 0; j < 13; ++j)
        ASSERT_EQ(panel[place(p, j, at)], float(int8_t(stored.codes[p * 13 + j])) * stored.scales[p / 32 * 13 + j]);
  }
}

TEST_P(UnpackBytes, GivesTheNumbers) {
  const NativeKernel &kernel = GetParam();
  AJOUR_SKIP_UNLESS_CPU_HAS(kernel);
  for (int64_t bits = 1; bits <= 8; ++bits)
    for (int64_t kr : {4, 8})
      for (int64_t k : {8, 40, 100}) {
        const int64_t padded = (k + 31) / 32 * 32, zero = bits == 1 ? 0 : 1 << (bits - 1);
        Stored stored({bits, padded, StoredFormat::NoScales, StoredFormat::NoZeros, uint8_t(zero)}, k, 16);
        for (Placing at : {Placing{32, 8}, Placing{8, padded / kr * 8}}) {
          auto panel = unpack<int8_t>(
              stored, at, panelSize(at, padded / kr) * kr,
              [&](const uint8_t *block, int8_t *dst) {
                kernel.as<ajour_unpack_int_8bit_fn>()(block, dst, at.nr, at.high, kr, padded, bits, zero);
              },
              [&](const uint8_t *block, int8_t *dst) {
                ajour_reference_unpack_int_8bit(block, dst, at.nr, at.high, kr, padded, bits, zero);
              });
          for (int64_t p = 0; p < padded; ++p)
            for (int64_t j = 0; j < 16; ++j)
              ASSERT_EQ(panel[place(p / kr, j, at) * kr + p % kr], p < k ? stored.codes[p * 16 + j] - zero : 0)
                  << bits << " bits " << p << " " << j;
        }
      }
}

TEST_P(UnpackHalves, GivesTheNumbers) {
  const NativeKernel &kernel = GetParam();
  AJOUR_SKIP_UNLESS_CPU_HAS(kernel);
  // All finite numbers of f16, infinities and subnormals.
  const int64_t k = 2048;
  std::vector<uint16_t> halves(k * 16), packed(k * 16);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = (i & 0x7c00) == 0x7c00 ? (i & 0x8000) | 0x7c00 : i;
  packHalves({halves.data(), k, 16, 16, 1}, packed);
  for (Placing at : placings(k)) {
    const int64_t size = panelSize(at, k);
    GuardedBuffer<uint16_t> block(k * 16, 0);
    memcpy(block.data(), packed.data(), packed.size() * 2);
    GuardedBuffer<float> panel(size, 0);
    std::vector<float> expected(size);
    kernel.as<ajour_unpack_f16_f32_fn>()(block.data(), panel.data(), at.nr, at.high, k);
    ajour_reference_unpack_f16_f32(packed.data(), expected.data(), at.nr, at.high, k);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < 16; ++j) {
        ASSERT_EQ(panel[place(p, j, at)], halfToFloat(halves[p * 16 + j]));
        if (std::isfinite(halfToFloat(halves[p * 16 + j])))
          ASSERT_EQ(panel[place(p, j, at)], expected[place(p, j, at)]);
      }
  }
}

TEST_P(UnpackCodebook, GivesTheNumbers) {
  const NativeKernel &kernel = GetParam();
  AJOUR_SKIP_UNLESS_CPU_HAS(kernel);
  for (int64_t bits = 1; bits <= 8; ++bits)
    for (auto scales : {StoredFormat::NoScales, StoredFormat::HalfScales, StoredFormat::FloatScales}) {
      Stored stored({bits, scales == StoredFormat::NoScales ? 70 : 32, scales, StoredFormat::NoZeros}, 70, 16);
      GuardedBuffer<float> table(int64_t(1) << bits, 0);
      for (int64_t i = 0; i < table.size(); ++i)
        table[i] = std::sin(float(i));
      const int64_t rows = stored.groups() * storedGroup(stored.format);
      for (Placing at : placings(rows)) {
        auto panel = unpack<float>(
            stored, at, panelSize(at, rows),
            [&](const uint8_t *block, float *dst) {
              kernel.as<ajour_unpack_codebook_f32_fn>()(block, table.data(), dst, at.nr, at.high, stored.groups(),
                                                        storedGroup(stored.format), bits, stored.flags());
            },
            [&](const uint8_t *block, float *dst) {
              ajour_reference_unpack_codebook_f32(block, table.data(), dst, at.nr, at.high, stored.groups(),
                                                  storedGroup(stored.format), bits, stored.flags());
            });
        for (int64_t p = 0; p < 70; ++p)
          for (int64_t j = 0; j < 16; ++j) {
            float x = table[stored.codes[p * 16 + j]];
            ASSERT_EQ(panel[place(panelRow(stored.format, p), j, at)],
                      scales == StoredFormat::NoScales ? x : x * stored.scales[p / 32 * 16 + j]);
          }
      }
    }
}

#define AJOUR_INSTANTIATE(Suite, op)                                                                      \
  INSTANTIATE_TEST_SUITE_P(Kernels, Suite, ::testing::ValuesIn(nativeKernels(AJOUR_KERNEL_##op)),         \
                           [](const auto &info) { return std::string(levelName(info.param.row.level)); })
AJOUR_INSTANTIATE(UnpackInt, unpack_int_f32);
AJOUR_INSTANTIATE(UnpackBytes, unpack_int_8bit);
AJOUR_INSTANTIATE(UnpackHalves, unpack_f16_f32);
AJOUR_INSTANTIATE(UnpackCodebook, unpack_codebook_f32);
