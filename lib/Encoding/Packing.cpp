#include "ajour/Encoding/Packing.h"

#include <algorithm>
#include <cassert>

namespace ajour::encoding {

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t paddedK(int64_t k, int64_t kr) { return ceilDiv(k, kr) * kr; }

int64_t packedGemmSize(int64_t k, int64_t n, int64_t nr, int64_t kr) {
  return ceilDiv(n, nr) * nr * paddedK(k, kr);
}

template <typename T>
static void packGemmImpl(const WeightView<T> &weights, int64_t nr, int64_t kr, std::span<T> packed) {
  assert(static_cast<int64_t>(packed.size()) == packedGemmSize(weights.k, weights.n, nr, kr));
  const int64_t panelSize = paddedK(weights.k, kr) * nr;
  for (int64_t j0 = 0; j0 < weights.n; j0 += nr) {
    T *panel = packed.data() + j0 / nr * panelSize;
    std::fill_n(panel, panelSize, T(0));
    const int64_t columns = std::min(nr, weights.n - j0);
    // Reads follow the smaller stride; the panel being written stays in cache.
    auto copy = [&](int64_t p, int64_t j) {
      panel[(p / kr * nr + j) * kr + p % kr] = weights.data[p * weights.strideK + (j0 + j) * weights.strideN];
    };
    if (weights.strideK <= weights.strideN) {
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t p = 0; p < weights.k; ++p)
          copy(p, j);
    } else {
      for (int64_t p = 0; p < weights.k; ++p)
        for (int64_t j = 0; j < columns; ++j)
          copy(p, j);
    }
  }
}

void packGemm(const WeightView<float> &weights, int64_t nr, int64_t kr, std::span<float> packed) {
  packGemmImpl(weights, nr, kr, packed);
}

void packGemm(const WeightView<int8_t> &weights, int64_t nr, int64_t kr, std::span<int8_t> packed) {
  packGemmImpl(weights, nr, kr, packed);
}

void columnSums(const WeightView<int8_t> &weights, std::span<int32_t> sums) {
  assert(static_cast<int64_t>(sums.size()) == weights.n);
  for (int64_t j = 0; j < weights.n; ++j) {
    uint32_t sum = 0;
    for (int64_t p = 0; p < weights.k; ++p)
      sum += static_cast<uint32_t>(weights.data[p * weights.strideK + j * weights.strideN]);
    sums[j] = static_cast<int32_t>(sum);
  }
}

int64_t packedDepthwiseSize(int64_t kh, int64_t kw, int64_t channels, int64_t cb, int64_t kr) {
  return ceilDiv(channels, cb) * cb * paddedK(kh, kr) * kw;
}

template <typename T>
static void packDepthwiseImpl(const DepthwiseView<T> &weights, int64_t cb, int64_t kr, std::span<T> packed) {
  assert(static_cast<int64_t>(packed.size()) ==
         packedDepthwiseSize(weights.kh, weights.kw, weights.channels, cb, kr));
  std::fill(packed.begin(), packed.end(), T(0));
  const int64_t blockSize = cb * paddedK(weights.kh, kr) * weights.kw;
  for (int64_t c = 0; c < weights.channels; ++c) {
    T *block = packed.data() + c / cb * blockSize;
    for (int64_t ky = 0; ky < weights.kh; ++ky)
      for (int64_t kx = 0; kx < weights.kw; ++kx)
        block[((ky / kr * weights.kw + kx) * cb + c % cb) * kr + ky % kr] =
            weights.data[ky * weights.strideY + kx * weights.strideX + c * weights.strideC];
  }
}

void packDepthwise(const DepthwiseView<float> &weights, int64_t cb, int64_t kr, std::span<float> packed) {
  packDepthwiseImpl(weights, cb, kr, packed);
}

void packDepthwise(const DepthwiseView<int8_t> &weights, int64_t cb, int64_t kr, std::span<int8_t> packed) {
  packDepthwiseImpl(weights, cb, kr, packed);
}

void channelSums(const DepthwiseView<int8_t> &weights, std::span<int32_t> sums) {
  assert(static_cast<int64_t>(sums.size()) == weights.channels);
  for (int64_t c = 0; c < weights.channels; ++c) {
    uint32_t sum = 0;
    for (int64_t ky = 0; ky < weights.kh; ++ky)
      for (int64_t kx = 0; kx < weights.kw; ++kx)
        sum += static_cast<uint32_t>(
            weights.data[ky * weights.strideY + kx * weights.strideX + c * weights.strideC]);
    sums[c] = static_cast<int32_t>(sum);
  }
}

} // namespace ajour::encoding
