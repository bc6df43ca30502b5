//===- Pack.cpp - bytes of packed operands --------------------------------------------===//
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Encoding/Packing.h"
#include "ajour/Encoding/Winograd.h"

using namespace mlir;

namespace ajour {

/// 8-bit weights as signed numbers: unsigned ones are shifted by 128 (their zero points too, see PackSpec).
static std::vector<int8_t> signedWeights(ElementsAttr attr) {
  std::vector<char> storage;
  ArrayRef<char> bytes = nn::constantBytes(attr, storage);
  std::vector<int8_t> weights(bytes.size());
  char flip = nn::isUnsigned(attr.getElementType()) ? char(0x80) : char(0);
  for (size_t i = 0; i < bytes.size(); ++i)
    weights[i] = static_cast<int8_t>(bytes[i] ^ flip);
  return weights;
}

static std::vector<float> floatWeights(ElementsAttr attr) { return *nn::constantFloats(attr); }

template <typename T> static encoding::WeightView<T> matrix(const PackSpec &spec, const std::vector<T> &weights) {
  if (spec.transposed)
    return {weights.data(), spec.k, spec.n, 1, spec.k};
  return {weights.data(), spec.k, spec.n, spec.n, 1};
}

template <typename T> static encoding::DepthwiseView<T> depthwise(const PackSpec &spec, const std::vector<T> &weights) {
  return {weights.data(), spec.kh, spec.kw, spec.n, spec.kw, 1, spec.kh * spec.kw};
}

template <typename T> static std::vector<char> bytesOf(const std::vector<T> &values) {
  const char *data = reinterpret_cast<const char *>(values.data());
  return std::vector<char>(data, data + values.size() * sizeof(T));
}

/// bias - lhsZeroPoint * sum(w) + k * lhsZeroPoint * rhsZeroPoint, modulo 2^32 as the accumulators are. The term
/// with the lhs's own sum is added where the rows are known.
static std::vector<char> foldedBias(const PackSpec &spec, ArrayRef<ElementsAttr> constants,
                                    const std::vector<int32_t> &sums, int64_t depth) {
  std::vector<int64_t> bias(spec.n, 0);
  if (spec.bias >= 0)
    bias = *nn::constantInts(constants[spec.bias]);
  std::vector<int32_t> folded(spec.n);
  for (int64_t j = 0; j < spec.n; ++j) {
    int64_t zero = spec.rhsZeroPoints.empty() ? 0
                   : spec.rhsZeroPoints.size() == 1 ? spec.rhsZeroPoints[0]
                                                    : spec.rhsZeroPoints[j];
    int64_t value = bias[j] - int64_t(spec.lhsZeroPoint) * sums[j] + depth * spec.lhsZeroPoint * zero;
    folded[j] = static_cast<int32_t>(static_cast<uint64_t>(value));
  }
  return bytesOf(folded);
}

/// Codes of few bits as numbers from 0 to 2^bits - 1: signed ones are shifted by half of that.
static std::vector<uint8_t> unsignedCodes(ElementsAttr attr, int64_t bits) {
  std::vector<char> storage;
  ArrayRef<char> bytes = nn::constantBytes(attr, storage);
  std::vector<uint8_t> codes(bytes.begin(), bytes.end());
  uint8_t half = nn::isUnsigned(attr.getElementType()) ? 0 : 1 << (bits - 1), mask = (1 << bits) - 1;
  for (uint8_t &code : codes)
    code = (code + half) & mask;
  return codes;
}

static std::vector<char> packGemv(const PackSpec &spec, ArrayRef<ElementsAttr> constants) {
  const encoding::GemvFormat &format = spec.gemv;
  std::optional<std::vector<uint8_t>> packed;
  ElementsAttr attr = constants[spec.weights];
  if (format.values == encoding::GemvFormat::I8) {
    std::vector<int8_t> weights = signedWeights(attr);
    packed = encoding::packGemv(format, matrix(spec, weights));
  } else if (format.values == encoding::GemvFormat::Q8 || format.values == encoding::GemvFormat::Q4) {
    int64_t bits = encoding::gemvBits(format.values), groups = llvm::divideCeil(spec.k, format.group);
    std::vector<uint8_t> codes = unsignedCodes(attr, bits), zeros;
    std::vector<float> scales = floatWeights(constants[spec.scales]);
    encoding::QuantizedView view{
        matrix(spec, codes), {scales.data(), groups, spec.n, spec.scaleStrideK, spec.scaleStrideN}, {}};
    if (spec.zeroPoints >= 0) {
      zeros = unsignedCodes(constants[spec.zeroPoints], bits);
      view.zeroPoints = {zeros.data(), groups, spec.n, spec.scaleStrideK, spec.scaleStrideN};
    } else if (format.zeroPoints) {
      zeros.assign(1, 0);
      view.zeroPoints = {zeros.data(), groups, spec.n, 0, 0};
    }
    packed = encoding::packGemv(format, view);
  } else {
    std::vector<float> weights = floatWeights(attr);
    packed = encoding::packGemv(format, matrix(spec, weights));
  }
  // What a weight's structure is was checked when it was noted on the product.
  assert(packed && "weights do not have the structure that they are packed with");
  return packed ? std::vector<char>(packed->begin(), packed->end()) : std::vector<char>();
}

std::vector<char> packOperand(const PackSpec &spec, ArrayRef<ElementsAttr> constants) {
  ElementsAttr attr = constants[spec.weights];
  switch (spec.kind) {
  case PackSpec::GemmF32: {
    std::vector<float> weights = floatWeights(attr);
    std::vector<float> packed(encoding::packedGemmSize(spec.k, spec.n, spec.nr, spec.kr));
    encoding::packGemm(matrix(spec, weights), spec.nr, spec.kr, packed);
    return bytesOf(packed);
  }
  case PackSpec::WinogradF32: {
    std::vector<float> weights = floatWeights(attr);
    int64_t channels = spec.k / 9;
    std::vector<float> packed(encoding::packedWinogradSize(spec.tile, channels, spec.n, spec.nr));
    encoding::packWinograd(weights.data(), spec.tile, channels, spec.n, spec.nr, packed);
    return bytesOf(packed);
  }
  case PackSpec::Gemm8: {
    std::vector<int8_t> weights = signedWeights(attr);
    std::vector<int8_t> packed(encoding::packedGemmSize(spec.k, spec.n, spec.nr, spec.kr));
    encoding::packGemm(matrix(spec, weights), spec.nr, spec.kr, packed);
    return bytesOf(packed);
  }
  case PackSpec::DepthwiseF32: {
    std::vector<float> weights = floatWeights(attr);
    std::vector<float> packed(encoding::packedDepthwiseSize(spec.kh, spec.kw, spec.n, spec.nr, spec.kr));
    encoding::packDepthwise(depthwise(spec, weights), spec.nr, spec.kr, packed);
    return bytesOf(packed);
  }
  case PackSpec::Depthwise8: {
    std::vector<int8_t> weights = signedWeights(attr);
    std::vector<int8_t> packed(encoding::packedDepthwiseSize(spec.kh, spec.kw, spec.n, spec.nr, spec.kr));
    encoding::packDepthwise(depthwise(spec, weights), spec.nr, spec.kr, packed);
    return bytesOf(packed);
  }
  case PackSpec::GemmBias: {
    std::vector<int8_t> weights = signedWeights(attr);
    std::vector<int32_t> sums(spec.n);
    encoding::columnSums(matrix(spec, weights), sums);
    return foldedBias(spec, constants, sums, spec.k);
  }
  case PackSpec::DepthwiseBias: {
    std::vector<int8_t> weights = signedWeights(attr);
    std::vector<int32_t> sums(spec.n);
    encoding::channelSums(depthwise(spec, weights), sums);
    return foldedBias(spec, constants, sums, spec.kh * spec.kw);
  }
  case PackSpec::SparseInputs:
    return bytesOf(encoding::packSparse(spec.sparse, floatWeights(attr).data()).inputs);
  case PackSpec::SparseWeights:
    return bytesOf(encoding::packSparse(spec.sparse, floatWeights(attr).data()).weights);
  case PackSpec::SparseIndex:
    return bytesOf(encoding::packSparse(spec.sparse, floatWeights(attr).data()).index);
  case PackSpec::Gemv:
    return packGemv(spec, constants);
  }
  llvm_unreachable("unknown pack");
}

} // namespace ajour
