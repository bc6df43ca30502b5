/// Packing of constant weights into the layouts that the CPU micro-kernels read (kernels/cpu/Kernels.def).
///
/// All functions write every byte of their destination, padding included (zero), and read only the given
/// elements. Sizes are in elements; there are no errors: the caller has checked shapes and allocated
/// packedGemmSize / packedDepthwiseSize elements. Products of sizes must fit int64_t.
#ifndef AJOUR_ENCODING_PACKING_H
#define AJOUR_ENCODING_PACKING_H

#include <cstdint>
#include <span>

namespace ajour::encoding {

/// A matrix of weights seen as [k][n] through its strides: element (p, j) is data[p * strideK + j * strideN].
/// A [N][K] row-major matrix has strideK = 1, strideN = K; a [K][N] one strideK = N, strideN = 1.
template <typename T> struct WeightView {
  const T *data;
  int64_t k, n;
  int64_t strideK, strideN;
};

/// The elements of a packed matrix: panels [ceil(n/nr)][ceil(k/kr)][nr][kr].
int64_t packedGemmSize(int64_t k, int64_t n, int64_t nr, int64_t kr);

/// k rounded up to a multiple of kr: the k that the kernel is called with.
int64_t paddedK(int64_t k, int64_t kr);

/// Packs into panels [ceil(n/nr)][ceil(k/kr)][nr][kr]: element (p, j) goes to panel j / nr, group p / kr,
/// column j % nr, place p % kr. With kr = 1 (f32) a panel is [k][nr]; kr = 4 serves the dot-product kernels,
/// kr = 8 the Arm matrix multiply.
void packGemm(const WeightView<float> &weights, int64_t nr, int64_t kr, std::span<float> packed);
void packGemm(const WeightView<int8_t> &weights, int64_t nr, int64_t kr, std::span<int8_t> packed);

/// Sums over k of each column, exact modulo 2^32: sums[j] for j < n. What the zero point of the lhs (and the
/// flip of its sign) is multiplied with: sum of (a - z) * w = (sum of a * w) - z * sums[j].
void columnSums(const WeightView<int8_t> &weights, std::span<int32_t> sums);

/// Depthwise weights seen through their strides: tap (ky, kx) of channel ch is
/// data[ky * strideY + kx * strideX + ch * strideC]. [kh][kw][C] (TFLite) has strides kw * C, C, 1;
/// [C][1][kh][kw] (ONNX) has kw, 1, kh * kw.
template <typename T> struct DepthwiseView {
  const T *data;
  int64_t kh, kw, channels;
  int64_t strideY, strideX, strideC;
};

/// The elements of packed depthwise weights: [ceil(C/cb)][ceil(kh/kr)][kw][cb][kr].
int64_t packedDepthwiseSize(int64_t kh, int64_t kw, int64_t channels, int64_t cb, int64_t kr);

/// Packs depthwise weights into blocks of cb channels, [ceil(C/cb)][ceil(kh/kr)][kw][cb][kr]: kr = 1 gives
/// [kh * kw][cb] (f32), kr = 4 puts four kernel rows of a channel together (8 bits).
void packDepthwise(const DepthwiseView<float> &weights, int64_t cb, int64_t kr, std::span<float> packed);
void packDepthwise(const DepthwiseView<int8_t> &weights, int64_t cb, int64_t kr, std::span<int8_t> packed);

/// Sums of all taps of each channel, exact modulo 2^32.
void channelSums(const DepthwiseView<int8_t> &weights, std::span<int32_t> sums);

} // namespace ajour::encoding

#endif
