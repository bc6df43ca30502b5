//===- Pack.cpp - bytes of packed operands --------------------------------------------===//
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Encoding/PackStored.h"
#include "ajour/Encoding/Packing.h"
#include "ajour/Encoding/Winograd.h"

#include <cstring>

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
  std::vector<uint8_t> codes;
  {
    std::vector<char> storage;
    ArrayRef<char> bytes = nn::constantBytes(attr, storage);
    codes.assign(bytes.begin(), bytes.end());
  }
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
  } else if (encoding::isQuantized(format)) {
    int64_t bits = encoding::gemvBits(format.values), groups = llvm::divideCeil(spec.k, format.group);
    std::vector<uint8_t> codes = unsignedCodes(attr, bits), zeros;
    std::vector<float> scales = floatWeights(constants[spec.scales]), offsets;
    std::vector<int8_t> scaleCodes, offsetCodes;
    encoding::QuantizedView view{
        matrix(spec, codes), {scales.data(), groups, spec.n, spec.scaleStrideK, spec.scaleStrideN}, {}};
    if (spec.offsets >= 0) {
      offsets = floatWeights(constants[spec.offsets]);
      view.offsets = {offsets.data(), groups, spec.n, spec.scaleStrideK, spec.scaleStrideN};
    }
    if (format.run > 0) {
      // Parameters of runs and of groups, [n][runs] and [n][groups].
      view.scales.strideN = view.offsets.strideN = groups / format.run;
      auto read = [&](int argument, std::vector<int8_t> &to) {
        std::vector<char> storage;
        ArrayRef<char> bytes = nn::constantBytes(constants[argument], storage);
        to.assign(bytes.begin(), bytes.end());
        return encoding::WeightView<int8_t>{to.data(), groups, spec.n, 1, groups};
      };
      view.scaleCodes = read(spec.scaleCodes, scaleCodes);
      if (spec.offsetCodes >= 0)
        view.offsetCodes = read(spec.offsetCodes, offsetCodes);
    }
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

/// Where the parameter of weight (p, j) stands among those of a stored weight.
static int64_t parameterAt(const PackSpec &spec, ArrayRef<int64_t> weight, ArrayRef<int64_t> parameters, int64_t p,
                           int64_t j) {
  SmallVector<int64_t> index(weight.size());
  if (spec.transposed) {
    index[0] = j;
    for (size_t d = weight.size(); d-- > 1;) {
      index[d] = p % weight[d];
      p /= weight[d];
    }
  } else {
    index = {p, j};
  }
  int64_t position = 0;
  for (size_t d = 0; d < weight.size(); ++d) {
    int64_t own = int64_t(d) == spec.stored.axis ? index[d] / spec.stored.sourceGroup : index[d];
    position = position * parameters[d] + (parameters[d] == 1 ? 0 : own);
  }
  return position;
}

/// The parameters of a stored weight as floats, [groups][n].
static std::vector<float> parametersOf(const PackSpec &spec, ArrayRef<ElementsAttr> constants, int argument, float add) {
  ElementsAttr attr = constants[argument];
  std::vector<float> all;
  if (std::optional<std::vector<float>> floats = nn::constantFloats(attr)) {
    all = *floats;
  } else {
    std::vector<int64_t> ints = *nn::constantInts(attr);
    for (int64_t value : ints)
      all.push_back(float(value) + add);
  }
  ArrayRef<int64_t> weight = constants[spec.weights].getShapedType().getShape();
  ArrayRef<int64_t> shape = attr.getShapedType().getShape();
  std::vector<float> result;
  for (int64_t p = 0; p < spec.k; p += spec.stored.group)
    for (int64_t j = 0; j < spec.n; ++j)
      result.push_back(all[parameterAt(spec, weight, shape, p, j)]);
  return result;
}

/// A weight [n][k] as floats, whatever it is stored as.
static std::vector<float> decodedWeights(const PackSpec &spec, ArrayRef<ElementsAttr> constants) {
  ElementsAttr attr = constants[spec.weights];
  const StoredSpec &stored = spec.stored;
  if (!stored.isCodes)
    return floatWeights(attr);
  std::vector<int64_t> codes = *nn::constantInts(attr);
  std::vector<float> entries, scales, zeros;
  if (stored.codebook >= 0)
    entries = floatWeights(constants[stored.codebook]);
  if (stored.scales >= 0)
    scales = parametersOf(spec, constants, stored.scales, 0);
  if (stored.zeroPoints >= 0)
    zeros = parametersOf(spec, constants, stored.zeroPoints, 0);
  std::vector<float> weights(codes.size());
  for (int64_t j = 0; j < spec.n; ++j)
    for (int64_t p = 0; p < spec.k; ++p) {
      int64_t group = p / stored.group * spec.n + j, code = codes[j * spec.k + p];
      float value = entries.empty() ? float(code) - (zeros.empty() ? 0 : zeros[group])
                                    : entries[std::min<int64_t>(code, entries.size() - 1)];
      weights[j * spec.k + p] = scales.empty() ? value : value * scales[group];
    }
  return weights;
}

/// Blocks of codes: signed ones are shifted to begin at 0, integer zero points with them.
static std::vector<char> packStoredCodes(const PackSpec &spec, ArrayRef<ElementsAttr> constants) {
  using Format = encoding::StoredFormat;
  const StoredSpec &stored = spec.stored;
  ElementsAttr attr = constants[spec.weights];
  bool isSigned = !nn::isUnsigned(attr.getElementType());
  auto shift = uint8_t(isSigned ? 1 << (stored.bits - 1) : 0), mask = uint8_t((1 << stored.bits) - 1);
  std::vector<char> storage;
  std::vector<uint8_t> codes;
  // An index beyond the table names its last entry, with which the table is filled up.
  for (char code : nn::constantBytes(attr, storage))
    codes.push_back(spec.kind == PackSpec::StoredCodebook ? std::min(uint8_t(code), mask)
                                                          : uint8_t((uint8_t(code) + shift) & mask));
  Format format;
  format.bits = stored.bits;
  format.group = stored.group;
  format.scales = stored.scales < 0 ? Format::NoScales : stored.halfScales ? Format::HalfScales : Format::FloatScales;
  format.zeros = stored.zeroPoints < 0 ? Format::NoZeros : stored.realZeros ? Format::RealZeros : Format::ByteZeros;
  std::vector<float> scales, zeros;
  if (stored.scales >= 0)
    scales = parametersOf(spec, constants, stored.scales, 0);
  if (stored.zeroPoints >= 0)
    zeros = parametersOf(spec, constants, stored.zeroPoints, shift);
  int64_t groups = encoding::storedGroups(format, spec.k);
  auto view = [&](const std::vector<float> &values) {
    return encoding::WeightView<float>{values.data(), groups, spec.n, spec.n, 1};
  };
  std::vector<uint8_t> packed(encoding::storedBytes(format, spec.k, spec.n));
  encoding::packStored(format, {matrix(spec, codes), view(scales), view(zeros)}, packed);
  return bytesOf(packed);
}

/// The entries of a codebook as f32, filled up to as many as an index can name.
static std::vector<char> packCodebook(const PackSpec &spec, ElementsAttr table) {
  std::vector<float> entries = floatWeights(table);
  entries.resize(int64_t(1) << spec.stored.bits, entries.back());
  return bytesOf(entries);
}

static std::vector<char> packHalfBlocks(const PackSpec &spec, ElementsAttr attr) {
  std::vector<char> storage;
  ArrayRef<char> bytes = nn::constantBytes(attr, storage);
  std::vector<uint16_t> halves(bytes.size() / 2);
  std::memcpy(halves.data(), bytes.data(), bytes.size());
  std::vector<uint16_t> packed(llvm::alignTo(spec.n, encoding::storedColumns) * spec.k);
  encoding::packHalves(matrix(spec, halves), packed);
  return bytesOf(packed);
}

/// One part of a matrix in sparse panels.
template <typename T> static std::vector<char> panelPart(PackSpec::Kind kind, const encoding::PackedPanels<T> &packed) {
  switch (kind) {
  case PackSpec::PanelOffsets:
    return bytesOf(packed.offsets);
  case PackSpec::PanelPicks:
    return bytesOf(packed.picks);
  case PackSpec::PanelWeights:
    return bytesOf(packed.weights);
  default:
    return bytesOf(packed.index);
  }
}

static std::vector<char> packPanels(const PackSpec &spec, ElementsAttr attr) {
  if (attr.getElementType().isF32()) {
    std::vector<float> weights = floatWeights(attr);
    return panelPart(spec.kind, encoding::packPanels(spec.panels, matrix(spec, weights)));
  }
  std::vector<int8_t> weights = signedWeights(attr);
  return panelPart(spec.kind, encoding::packPanels(spec.panels, matrix(spec, weights)));
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
    std::vector<float> weights = decodedWeights(spec, constants);
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
  case PackSpec::PanelOffsets:
  case PackSpec::PanelPicks:
  case PackSpec::PanelWeights:
  case PackSpec::PanelIndex:
    return packPanels(spec, attr);
  case PackSpec::Gemv:
    return packGemv(spec, constants);
  case PackSpec::StoredInt:
  case PackSpec::StoredCodebook:
    return packStoredCodes(spec, constants);
  case PackSpec::StoredHalf:
    return packHalfBlocks(spec, attr);
  case PackSpec::Codebook:
    return packCodebook(spec, attr);
  }
  llvm_unreachable("unknown pack");
}

} // namespace ajour
