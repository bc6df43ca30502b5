// The sparse kernels of the table against their references: every number of filters, vectors and entries that loops
// treat apart, guard pages around each operand.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "Kernels/GuardedBuffer.h"
#include "Kernels/NativeKernels.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/PackSparse.h"
#include "cpu/Reference.h"

using namespace ajour::test;

namespace {

std::string kernelName(const testing::TestParamInfo<NativeKernel> &info) { return info.param.row.symbol; }

std::mt19937 rng(5);
/// Integers so small that sums of floats are exact in any order.
template <typename Buffer> void fill(Buffer &buffer) {
  for (int64_t i = 0; i < int64_t(buffer.size()); ++i)
    buffer[i] = float(int(rng() % 15) - 7);
}

class SpmmF32 : public testing::TestWithParam<NativeKernel> {};
class GemmSparseF32 : public testing::TestWithParam<NativeKernel> {};
class GemmSparse8Bit : public testing::TestWithParam<NativeKernel> {};
class SpconvF32 : public testing::TestWithParam<NativeKernel> {};

} // namespace

TEST_P(SpmmF32, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  for (int64_t m : {1, 2, 4, 8})
    for (int64_t n : {1, 3, 4, 5, 8, 13, 16, 17, 31, 32, 47, 48, 50, 64, 79, 96, 97, 112, 130, 191, 192, 208, 240, 256, 300})
      for (int64_t count : {0, 1, 2, 3, 7})
        for (bool accumulate : {false, true}) {
          // The last vector of an entry may read into the slack, and acc is as wide as whole vectors.
          const int64_t padded = (n + row.nr - 1) / row.nr * row.nr, lda = padded + m % 3, scale = 1 + n % 3;
          const int64_t last = 5 + n, size = last * scale + n;
          const bool atStart = count % 2;
          GuardedBuffer<float> src(size, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<uint16_t> inputs(count, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<float> weights(count * m, AJOUR_BUFFER_SLACK, atStart);
          GuardedBuffer<float> acc((m - 1) * lda + padded, 0, atStart);
          fill(src), fill(weights), fill(acc);
          for (int64_t e = 0; e < count; ++e)
            inputs[e] = e ? rng() % (last + 1) : last;
          std::vector<double> expected(acc.data(), acc.data() + acc.size());
          const std::vector<float> before(acc.data(), acc.data() + acc.size());
          ajour_reference_spmm_f32(src.data(), scale, inputs.data(), weights.data(), expected.data(), lda, m, n, count,
                                   accumulate);
          GetParam().as<ajour_spmm_f32_fn>()(src.data(), scale, inputs.data(), weights.data(), acc.data(), lda, m, n, count,
                                             accumulate);
          for (int64_t r = 0; r < m; ++r)
            for (int64_t i = 0; i < (r + 1 < m ? lda : padded); ++i)
              if (i < n || i >= padded) {
                ASSERT_EQ(acc[r * lda + i], i < n ? expected[r * lda + i] : before[r * lda + i])
                    << "m " << m << " n " << n << " count " << count << " filter " << r << " pixel " << i;
              }
          ASSERT_TRUE(src.slackUntouched() && inputs.slackUntouched() && weights.slackUntouched());
        }
}

namespace {

/// Random steps of a sparse product; windows end with the row, or reach behind it.
struct Steps {
  int64_t lanes, share, window;
  GuardedBuffer<uint16_t> offsets;
  GuardedBuffer<uint8_t> picks;

  int64_t columns() const { return lanes * share; }

  Steps(const ajour_kernel_row &row, int64_t share, int64_t k, int64_t count, bool atStart)
      : lanes(row.nr / 4), share(share), window(ajour_gemm_sparse_window(lanes, row.lhs)),
        offsets(count, 0, atStart), picks(count * lanes * row.kr, 0, atStart) {
    for (int64_t s = 0; s < count; ++s)
      offsets[s] = s ? rng() % k : k - 1;
    for (int64_t i = 0; i < picks.size(); ++i)
      picks[i] = rng() % std::min(window, k - offsets[i / (lanes * row.kr)]);
  }
};

int64_t shareOf(ajour_kernel_op op) { return int64_t(1) << (op - AJOUR_KERNEL_gemm_sparse1_f32) % 3; }

std::vector<NativeKernel> sparseGemms(ajour_kernel_op first) {
  std::vector<NativeKernel> kernels;
  for (int i = 0; i < 3; ++i)
    for (const NativeKernel &kernel : nativeKernels(ajour_kernel_op(first + i)))
      kernels.push_back(kernel);
  return kernels;
}

} // namespace

TEST_P(GemmSparseF32, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  for (int64_t m = 1; m <= row.mr; ++m)
    for (int64_t k : {1, 3, 16, 17, 100})
      for (int64_t count : {0, 1, 2, 9}) {
        const bool atStart = count % 2;
        const int64_t lda = k + m % 3;
        Steps steps(row, shareOf(row.op), k, count, atStart);
        GuardedBuffer<float> lhs((m - 1) * lda + k, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<float> rhs(count * steps.columns(), 0, atStart), acc((m - 1) * row.nr + steps.columns(), 0, atStart);
        fill(lhs), fill(rhs), fill(acc);
        std::vector<double> expected(m * row.nr);
        ajour_reference_gemm_sparse_f32(lhs.data(), lda, steps.offsets.data(), steps.picks.data(), rhs.data(), expected.data(),
                                        m, row.nr, row.kr, steps.share, count);
        GetParam().as<ajour_gemm_sparse1_f32_fn>()(lhs.data(), lda, steps.offsets.data(), steps.picks.data(), rhs.data(),
                                                   acc.data(), m, count);
        for (int64_t i = 0; i < acc.size(); ++i)
          if (i % row.nr < steps.columns())
            ASSERT_EQ(acc[i], expected[i]) << "m " << m << " k " << k << " steps " << count << " element " << i;
        ASSERT_TRUE(lhs.slackUntouched());
      }
}

TEST_P(GemmSparse8Bit, MatchesReferenceExactly) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const ajour_kernel_row &row = GetParam().row;
  for (int64_t m = 1; m <= row.mr; ++m)
    for (int64_t k : {1, 3, 16, 63, 64, 65, 300})
      for (int64_t count : {0, 1, 2, 9}) {
        const bool atStart = count % 2;
        const int64_t lda = k + m % 3;
        Steps steps(row, shareOf(row.op), k, count, atStart);
        GuardedBuffer<uint8_t> lhs((m - 1) * lda + k, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<int8_t> rhs(count * steps.columns() * row.kr, 0, atStart);
        GuardedBuffer<int32_t> acc((m - 1) * row.nr + steps.columns(), 0, atStart);
        // Extreme values are frequent: they are what saturating instructions get wrong.
        for (int64_t i = 0; i < lhs.size(); ++i)
          lhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 255 : 128);
        for (int64_t i = 0; i < rhs.size(); ++i)
          rhs[i] = rng() % 2 ? rng() : (rng() % 2 ? 127 : -128);
        std::vector<int32_t> expected(m * row.nr);
        ajour_reference_gemm_sparse_8bit(lhs.data(), row.lhs == AJOUR_I8, lda, steps.offsets.data(), steps.picks.data(),
                                         rhs.data(), expected.data(), m, row.nr, row.kr, steps.share, count);
        GetParam().as<ajour_gemm_sparse1_8bit_fn>()(lhs.data(), lda, steps.offsets.data(), steps.picks.data(), rhs.data(),
                                                    acc.data(), m, count);
        for (int64_t i = 0; i < acc.size(); ++i)
          if (i % row.nr < steps.columns())
            ASSERT_EQ(acc[i], expected[i]) << "m " << m << " k " << k << " steps " << count << " element " << i;
        ASSERT_TRUE(lhs.slackUntouched());
      }
}

TEST_P(SpconvF32, MatchesReference) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  for (int64_t rows = 1; rows <= 33; rows += rows < 17 ? 1 : 5)
    for (int64_t counts = 0; counts < 27; ++counts)
      for (bool accumulate : {false, true}) {
        static constexpr int64_t some[] = {0, 1, 4};
        const int64_t singles = some[counts % 3], pairs = some[counts / 3 % 3], triples = some[counts / 9];
        const int64_t runs = singles + pairs + triples, size = (2 * rows + 5) * 16;
        const bool atStart = counts % 2;
        GuardedBuffer<float> src(size, 0, atStart);
        GuardedBuffer<uint16_t> inputs(runs, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<float> weights(singles + 2 * pairs + 3 * triples, AJOUR_BUFFER_SLACK, atStart);
        GuardedBuffer<float> acc(rows * 16, 0, atStart);
        fill(src), fill(weights), fill(acc);
        for (int64_t e = 0; e < runs; ++e) {
          const int64_t taps = e < singles ? 1 : e < singles + pairs ? 2 : 3, last = size / 16 - rows - taps + 1;
          inputs[e] = e % 2 ? rng() % (last + 1) : last;
        }
        std::vector<double> expected(acc.data(), acc.data() + acc.size());
        ajour_reference_spconv_f32(src.data(), inputs.data(), weights.data(), expected.data(), rows, singles, pairs,
                                   triples, accumulate);
        GetParam().as<ajour_spconv_f32_fn>()(src.data(), inputs.data(), weights.data(), acc.data(), rows, singles,
                                             pairs, triples, accumulate);
        for (int64_t i = 0; i < rows * 16; ++i)
          ASSERT_EQ(acc[i], expected[i]) << "rows " << rows << " runs " << singles << ", " << pairs << ", " << triples
                                         << " element " << i;
      }
}

// The expanded image holds, for each tap and output pixel, what the convolution multiplies there.
TEST(Expand, HoldsEveryTap) {
  struct Geometry {
    int64_t ih, iw, kh, kw, sy, sx, dy, dx, top, left, oh, ow;
  };
  for (const Geometry &g : {Geometry{9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 9, 9}, Geometry{20, 37, 3, 3, 1, 1, 1, 1, 1, 1, 20, 37},
                            Geometry{7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 7, 7}, Geometry{30, 33, 3, 3, 2, 2, 1, 1, 1, 1, 15, 17},
                            Geometry{30, 32, 3, 3, 2, 2, 1, 1, 0, 0, 15, 16}, Geometry{12, 19, 5, 5, 1, 1, 1, 1, 2, 2, 12, 19},
                            Geometry{14, 14, 3, 3, 1, 1, 2, 2, 2, 2, 14, 14}, Geometry{17, 40, 7, 7, 2, 2, 1, 1, 3, 3, 9, 20},
                            Geometry{8, 50, 3, 2, 3, 3, 1, 1, 1, 0, 3, 17}, Geometry{6, 5, 1, 1, 1, 1, 1, 1, 0, 0, 6, 5},
                            Geometry{9, 9, 1, 1, 2, 2, 1, 1, 0, 0, 5, 5}, Geometry{3, 2, 3, 3, 1, 1, 1, 1, 1, 1, 3, 2},
                            Geometry{2, 2, 3, 3, 1, 1, 4, 4, 4, 4, 2, 2}})
    for (int64_t width : {4, 8, 16})
      for (bool atStart : {false, true}) {
        const int64_t channels = 3, stride = g.ih * g.iw + 5, reach = (g.kh - 1) * g.dy;
        const int64_t phases = std::min(g.sy, reach + 1);
        GuardedBuffer<float> src((channels - 1) * stride + g.ih * g.iw, AJOUR_BUFFER_SLACK, atStart);
        fill(src);
        for (int64_t rows : {1, 3, 7})
          for (int64_t oy = 0; oy < g.oh; oy += rows * (16 / width))
            for (int64_t ox = 0; ox < g.ow; ox += width) {
              const int64_t planeRows = rows + reach / g.sy + 1;
              GuardedBuffer<float> dst(channels * g.kw * phases * planeRows * 16, 32 * sizeof(float), atStart);
              ajour_expand_f32(src.data(), stride, channels, g.ih, g.iw, dst.data(), oy, ox, rows, planeRows, width, g.kh,
                               g.kw, g.sy, g.sx, g.dy, g.dx, g.top, g.left);
              for (int64_t c = 0; c < channels; ++c)
                for (int64_t ky = 0; ky < g.kh; ++ky)
                  for (int64_t kx = 0; kx < g.kw; ++kx)
                    for (int64_t r = 0; r < rows; ++r)
                      for (int64_t lane = 0; lane < 16; ++lane) {
                        const int64_t y = (oy + lane / width * rows + r) * g.sy + ky * g.dy - g.top;
                        const int64_t x = (ox + lane % width) * g.sx + kx * g.dx - g.left;
                        const bool inside = y >= 0 && y < g.ih && x >= 0 && x < g.iw;
                        const int64_t plane = (c * g.kw + kx) * phases + ky * g.dy % g.sy;
                        ASSERT_EQ(dst[(plane * planeRows + ky * g.dy / g.sy + r) * 16 + lane],
                                  inside ? src[c * stride + y * g.iw + x] : 0)
                            << g.ih << "x" << g.iw << " width " << width << " channel " << c << " tap " << ky << ", "
                            << kx << " row " << r << " lane " << lane;
                      }
            }
      }
}

// Expanding, packing and multiplying together are a convolution.
TEST_P(SpconvF32, ConvolvesWhatWasExpandedAndPacked) {
  AJOUR_SKIP_UNLESS_CPU_HAS(GetParam());
  const int64_t size = 14, channels = 11, filters = 6, rows = 7, planeRows = 9;
  for (int64_t stride : {1, 2}) {
    const int64_t out = size / stride, phases = stride;
    ajour::encoding::SparsePlan plan{.filters = filters, .kh = 3, .kw = 3, .channels = channels, .group = 1, .chunk = 4};
    plan.strideY = stride, plan.runs = true;
    plan.phaseUnits = planeRows, plan.columnUnits = phases * planeRows, plan.channelUnits = 3 * plan.columnUnits;
    std::vector<float> image(channels * size * size + 16), weights(filters * 9 * channels), scratch(plan.units() * 16 + 32);
    fill(image), fill(weights);
    for (float &w : weights)
      w = rng() % 2 ? w : 0;
    const ajour::encoding::PackedSparse<float> packed = ajour::encoding::packSparse(plan, weights.data());
    for (int64_t oy = 0; oy < out; oy += rows) {
      std::vector<float> acc(filters * rows * 16);
      for (int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
        const int64_t first = chunk * plan.chunk;
        ajour_expand_f32(image.data() + first * size * size, size * size, std::min(plan.chunk, channels - first), size, size,
                         scratch.data(), oy, 0, rows, planeRows, 16, 3, 3, stride, stride, 1, 1, 1, 1);
        for (int64_t f = 0; f < filters; ++f) {
          const uint32_t *list = &packed.index[(chunk * filters + f) * 5];
          GetParam().as<ajour_spconv_f32_fn>()(scratch.data(), packed.inputs.data() + list[0],
                                               packed.weights.data() + list[1], acc.data() + f * rows * 16, rows, list[2],
                                               list[3], list[4], chunk > 0);
        }
      }
      for (int64_t f = 0; f < filters; ++f)
        for (int64_t y = 0; y < rows; ++y)
          for (int64_t x = 0; x < std::min<int64_t>(16, out); ++x) {
            float sum = 0;
            for (int64_t ky = 0; ky < 3; ++ky)
              for (int64_t kx = 0; kx < 3; ++kx)
                for (int64_t c = 0; c < channels; ++c) {
                  const int64_t iy = (oy + y) * stride + ky - 1, ix = x * stride + kx - 1;
                  if (iy >= 0 && iy < size && ix >= 0 && ix < size)
                    sum += weights[((f * 3 + ky) * 3 + kx) * channels + c] * image[(c * size + iy) * size + ix];
                }
            ASSERT_EQ(acc[(f * rows + y) * 16 + x], sum) << "stride " << stride << " filter " << f << " at " << y << ", " << x;
          }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SpmmF32, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_spmm_f32)), kernelName);
INSTANTIATE_TEST_SUITE_P(Table, GemmSparseF32, testing::ValuesIn(sparseGemms(AJOUR_KERNEL_gemm_sparse1_f32)), kernelName);
INSTANTIATE_TEST_SUITE_P(Table, GemmSparse8Bit, testing::ValuesIn(sparseGemms(AJOUR_KERNEL_gemm_sparse1_8bit)), kernelName);
INSTANTIATE_TEST_SUITE_P(Table, SpconvF32, testing::ValuesIn(nativeKernels(AJOUR_KERNEL_spconv_f32)), kernelName);
