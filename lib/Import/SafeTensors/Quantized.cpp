//===- Quantized.cpp - weights of few bits in safetensors files -----------------------===//
#include "Quantized.h"

#include "ajour/ABI/ElementTypes.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

using namespace llvm;
using json = nlohmann::json;

namespace ajour::safetensors {

namespace {

using Layout = QuantizedWeight::Layout;

//===----------------------------------------------------------------------===//
// quantization_config
//===----------------------------------------------------------------------===//

std::string show(const json &value) { return value.is_structured() ? "a list or an object" : value.dump().substr(0, 100); }

const json &member(const json &object, const char *key) {
  static const json none;
  auto it = object.is_object() ? object.find(key) : object.end();
  return it == object.end() ? none : *it;
}

/// An integer of the configuration; `otherwise` where it is absent.
int64_t integerOf(const json &object, const char *key, int64_t otherwise, std::string &problem) {
  const json &value = member(object, key);
  if (value.is_null())
    return otherwise;
  if (!value.is_number_integer() && problem.empty())
    problem = std::string("quantization_config: ") + key + " is " + show(value) + ", expected an integer";
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

std::string readBits(const json &config, const char *key, std::initializer_list<int64_t> known, Quantization &q) {
  std::string problem;
  int64_t bits = integerOf(config, key, 4, problem), group = integerOf(config, "group_size", -1, problem);
  if (!problem.empty())
    return problem;
  if (!is_contained(known, bits))
    return std::string("quantization_config: ") + key + " is " + std::to_string(bits) + "; 2, 4 and 8 bits are supported, in GPTQ also 3, AWQ has 4";
  if (group < -1 || group == 0)
    return "quantization_config: group_size is " + std::to_string(group) + ", expected -1 or a positive number";
  q.bits = unsigned(bits);
  q.group = group;
  return "";
}

std::string readCompressedTensors(const json &config, Quantization &q) {
  const json &format = member(config, "format");
  for (const char *known : {"pack-quantized", "int-quantized", "naive-quantized", "dense"})
    if (format == known)
      q.method = Quantization::Method::CompressedTensors;
  if (q.method == Quantization::Method::None && !format.is_null())
    return "quantization_config: format is " + show(format) + "; pack-quantized, int-quantized, naive-quantized and dense are supported";
  q.method = Quantization::Method::CompressedTensors;
  const json &sparsity = member(member(config, "sparsity_config"), "format");
  if (!sparsity.is_null() && sparsity != "dense" && sparsity != "sparse-bitmask" && sparsity != "sparse-24-bitmask")
    return "quantization_config: the format of sparsity_config is " + show(sparsity) + "; dense, sparse-bitmask and sparse-24-bitmask are supported";
  if (!member(config, "kv_cache_scheme").is_null())
    return "quantization_config: kv_cache_scheme is not supported";
  q.bits = 8;
  bool first = true;
  for (const json &group : member(config, "config_groups")) {
    const json &weights = member(group, "weights");
    if (const json &type = member(weights, "type"); !type.is_null() && type != "int")
      return "quantization_config: the type of weights is " + show(type) + "; int is supported";
    Quantization own = q;
    if (std::string problem = readBits(weights, "num_bits", {2, 4, 8}, own); !problem.empty())
      return problem;
    if (!first && own.bits != q.bits)
      return "quantization_config: config_groups have weights of " + std::to_string(q.bits) + " and of " + std::to_string(own.bits) +
             " bits; one width is supported";
    q.bits = own.bits;
    first = false;
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

uint32_t word(const Tensor &tensor, int64_t i) { return support::endian::read32le(tensor.bytes.data() + 4 * i); }

/// Value `i` of the words of a tensor, which hold 32 / bits values each.
uint32_t field(const Tensor &tensor, int64_t wordIndex, int64_t i, unsigned bits) {
  return word(tensor, wordIndex) >> (unsigned(i) * bits) & ((1u << bits) - 1);
}

/// Value `i` of a row of bits over words from `first` on, each `stride` behind the one before: where `bits` do not divide 32 a value may lie in two.
uint32_t rowField(const Tensor &tensor, int64_t first, int64_t stride, int64_t i, unsigned bits) {
  int64_t at = first + i * bits / 32 * stride;
  unsigned shift = unsigned(i * bits % 32);
  uint32_t value = word(tensor, at) >> shift;
  if (shift + bits > 32)
    value |= word(tensor, at + stride) << (32 - shift);
  return value & ((1u << bits) - 1);
}

float real(const Tensor &tensor, int64_t i) {
  const char *at = tensor.bytes.data();
  if (tensor.elementType == AJOUR_F32)
    return bit_cast<float>(support::endian::read32le(at + 4 * i));
  uint16_t half = support::endian::read16le(at + 2 * i);
  if (tensor.elementType == AJOUR_BF16)
    return bit_cast<float>(uint32_t(half) << 16);
  return APFloat(APFloat::IEEEhalf(), APInt(16, half)).convertToFloat();
}

bool isReal(const Tensor &tensor) {
  return tensor.elementType == AJOUR_F32 || tensor.elementType == AJOUR_F16 || tensor.elementType == AJOUR_BF16;
}

/// Columns of AWQ's words, from the lowest bits on.
constexpr int64_t awqColumns[] = {0, 2, 4, 6, 1, 3, 5, 7};

/// Where each of 8 columns stands in an AWQ word.
int64_t awqPlace(int64_t column) { return std::find(awqColumns, awqColumns + 8, column) - awqColumns; }

/// Builds one weight of the tensors of a layer.
class Assembler {
public:
  Assembler(const File &file, const Quantization &quantization, std::string stem, std::vector<std::string> &used)
      : file(file), q(quantization), stem(std::move(stem)), used(used) {
    weight.name = this->stem + ".weight";
    weight.bits = q.bits;
    weight.zeroOffset = q.zeroOffset;
  }

  std::string gptq();
  std::string awq();
  std::string packed();
  std::string bytes();
  std::string sparse(const std::string &prefix);
  QuantizedWeight weight;

private:
  /// The layer's tensor of this ending, or one without bytes.
  Tensor take(const char *ending) {
    std::string name = stem + "." + ending;
    auto it = file.byName.find(name);
    if (it == file.byName.end())
      return {};
    used.push_back(name);
    return file.tensors[it->second];
  }
  std::string bad(const Twine &what) const { return ("tensor '" + StringRef(stem).take_front(128) + "': " + what).str(); }
  static bool is(const Tensor &tensor, uint32_t type, ArrayRef<int64_t> shape) {
    return tensor.elementType == type && ArrayRef(tensor.shape) == shape;
  }
  /// Sets the group from the scales' number along the inputs; false when they do not divide them.
  bool setGroup(int64_t groups) {
    int64_t in = weight.shape[1];
    if (groups < 1 || in % groups != 0)
      return false;
    weight.group = in / groups;
    return true;
  }
  /// qweight, scales and qzeros of GPTQ and AWQ, whose words hold inputs or outputs.
  std::string matrix(bool inputsInWords);
  std::string readOrder(const Tensor &index, int64_t groups);

  const File &file;
  const Quantization &q;
  std::string stem;
  std::vector<std::string> &used;
};

/// Inputs sorted by their group, which then are neighbours.
std::string Assembler::readOrder(const Tensor &index, int64_t groups) {
  if (index.bytes.empty())
    return "";
  int64_t in = weight.shape[1];
  if (!is(index, AJOUR_I32, {in}))
    return bad("g_idx is not a list of " + Twine(in) + " 32-bit integers");
  std::vector<int64_t> counts(size_t(groups), 0), order(static_cast<size_t>(in));
  bool inOrder = true;
  for (int64_t i = 0; i < in; ++i) {
    uint32_t group = word(index, i);
    if (group >= uint64_t(groups))
      return bad("g_idx names group " + Twine(group) + ", there are " + Twine(groups));
    ++counts[group];
    inOrder &= group == uint64_t(i / weight.group);
  }
  if (inOrder)
    return "";
  if (any_of(counts, [&](int64_t count) { return count != weight.group; }))
    return bad("g_idx has groups of different sizes");
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](int64_t a, int64_t b) { return std::pair(word(index, a), a) < std::pair(word(index, b), b); });
  weight.order = std::move(order);
  return "";
}

std::string Assembler::matrix(bool inputsInWords) {
  weight.values = take("qweight");
  weight.scales = take("scales");
  weight.zeroPoints = take("qzeros");
  if (weight.values.elementType != AJOUR_I32 || weight.values.shape.size() != 2 || weight.values.bytes.empty())
    return bad("qweight is not a matrix of 32-bit integers");
  int64_t in = weight.values.shape[0], out = weight.values.shape[1], bits = q.bits, &wide = inputsInWords ? in : out;
  if (wide * 32 % bits != 0)
    return bad("qweight has " + Twine(wide) + " words, which " + Twine(bits) + " bits do not fill");
  wide = wide * 32 / bits;
  weight.shape = {out, in};
  if (weight.scales.shape.size() != 2 || weight.scales.shape[1] != out || !isReal(weight.scales) || !setGroup(weight.scales.shape[0]))
    return bad("scales are not [groups, " + Twine(out) + "] floating point numbers");
  int64_t groups = weight.scales.shape[0];
  if (q.group > 0 && q.group != weight.group)
    return bad("scales are for groups of " + Twine(weight.group) + ", quantization_config says " + Twine(q.group));
  if (out * bits % 32 != 0 || !is(weight.zeroPoints, AJOUR_I32, {groups, out * bits / 32}))
    return bad("qzeros are not [" + Twine(groups) + ", " + Twine(out * bits / 32) + "] 32-bit integers");
  return "";
}

std::string Assembler::gptq() {
  weight.layout = Layout::GPTQ;
  Tensor index = take("g_idx");
  if (std::string problem = matrix(true); !problem.empty())
    return problem;
  return readOrder(index, weight.scales.shape[0]);
}

std::string Assembler::awq() {
  weight.layout = Layout::AWQ;
  return matrix(false);
}

std::string Assembler::packed() {
  weight.layout = Layout::Packed;
  weight.values = take("weight_packed");
  weight.scales = take("weight_scale");
  weight.zeroPoints = take("weight_zero_point");
  Tensor shape = take("weight_shape"), index = take("weight_g_idx");
  int64_t perWord = 32 / q.bits;
  if (weight.values.elementType != AJOUR_I32 || weight.values.shape.size() != 2 || weight.values.bytes.empty())
    return bad("weight_packed is not a matrix of 32-bit integers");
  int64_t out = weight.values.shape[0], in = weight.values.shape[1] * perWord;
  if (!shape.bytes.empty()) {
    bool fits = (shape.elementType == AJOUR_I64 || shape.elementType == AJOUR_I32) && shape.shape == std::vector<int64_t>{2};
    bool isWide = shape.elementType == AJOUR_I64;
    auto size = [&](int64_t i) {
      return isWide ? int64_t(support::endian::read64le(shape.bytes.data() + 8 * i)) : int64_t(int32_t(word(shape, i)));
    };
    if (!fits || size(0) != out || size(1) > in || size(1) <= in - perWord || size(1) < 1)
      return bad("weight_shape does not fit weight_packed");
    in = size(1);
  }
  weight.shape = {out, in};
  if (weight.scales.shape.size() != 2 || weight.scales.shape[0] != out || !isReal(weight.scales) || !setGroup(weight.scales.shape[1]))
    return bad("weight_scale is not [" + Twine(out) + ", groups] floating point numbers");
  int64_t groups = weight.scales.shape[1], rows = int64_t(divideCeil(uint64_t(out), uint64_t(perWord)));
  if (!weight.zeroPoints.bytes.empty() && !is(weight.zeroPoints, AJOUR_I32, {rows, groups}))
    return bad("weight_zero_point is not [" + Twine(rows) + ", " + Twine(groups) + "] 32-bit integers");
  return readOrder(index, groups);
}

std::string Assembler::bytes() {
  weight.layout = Layout::Bytes;
  weight.values = take("weight");
  weight.scales = take("weight_scale");
  weight.zeroPoints = take("weight_zero_point");
  // Scales of activations, which stay as they are here.
  take("input_scale");
  take("input_zero_point");
  weight.bits = 8;
  if (weight.values.shape.size() != 2 || weight.values.bytes.empty())
    return bad("weight is not a matrix");
  weight.shape = weight.values.shape;
  int64_t out = weight.shape[0], groups = weight.scales.shape.size() == 2 ? weight.scales.shape[1] : 1;
  bool isWhole = ArrayRef(weight.scales.shape) == ArrayRef<int64_t>{1} || weight.scales.shape.empty();
  if (!isReal(weight.scales) || weight.scales.bytes.empty() || !setGroup(groups) ||
      !(isWhole || (weight.scales.shape.size() == 2 && weight.scales.shape[0] == out) || ArrayRef(weight.scales.shape) == ArrayRef<int64_t>{out}))
    return bad("weight_scale is not [" + Twine(out) + ", groups] floating point numbers");
  if (!weight.zeroPoints.bytes.empty() && !is(weight.zeroPoints, AJOUR_I8, weight.scales.shape))
    return bad("weight_zero_point is not of the type I8 and of weight_scale's shape");
  return "";
}

/// `prefix` is what stands before "compressed" behind the layer's name: "" or "weight.".
std::string Assembler::sparse(const std::string &prefix) {
  weight.layout = Layout::Sparse;
  weight.values = take((prefix + "compressed").c_str());
  weight.mask = take((prefix + "bitmask").c_str());
  take((prefix + "row_offsets").c_str());
  take((prefix + "shape").c_str());
  if (weight.mask.elementType != AJOUR_U8 || weight.mask.shape.size() != 2 || weight.mask.shape[1] == 0)
    return bad("bitmask is not a matrix of bytes");
  // Columns come in eights, as the widths of layers do.
  int64_t in = weight.mask.shape[1] * 8;
  weight.shape = {weight.mask.shape[0], in};
  int64_t kept = 0, stored = 1;
  for (char bits : weight.mask.bytes)
    kept += popcount(uint8_t(bits));
  for (int64_t size : weight.values.shape)
    stored *= size;
  if (kept != stored || weight.values.bytes.empty())
    return bad("bitmask keeps " + Twine(kept) + " elements, compressed has " + Twine(stored));
  weight.elementType = weight.values.elementType;
  if (!isReal(weight.values))
    return bad("compressed is not of floating point numbers");
  return "";
}

} // namespace

std::string readQuantization(StringRef text, Quantization &q) {
  json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const json &config = member(root, "quantization_config").is_null() ? member(root, "compression_config") : member(root, "quantization_config");
  if (config.is_null())
    return "";
  const json &method = member(config, "quant_method");
  std::string problem;
  if (method == "gptq") {
    q.method = Quantization::Method::GPTQ;
    const json &format = member(config, "checkpoint_format");
    if (!format.is_null() && format != "gptq" && format != "gptq_v2")
      return "quantization_config: checkpoint_format is " + show(format) + "; gptq and gptq_v2 are supported";
    q.zeroOffset = format == "gptq_v2" ? 0 : 1;
    return readBits(config, "bits", {2, 3, 4, 8}, q);
  }
  if (method == "awq") {
    q.method = Quantization::Method::AWQ;
    const json &version = member(config, "version");
    if (!version.is_null() && version != "gemm" && version != "GEMM")
      return "quantization_config: version is " + show(version) + "; gemm is supported";
    return readBits(config, member(config, "bits").is_null() ? "w_bit" : "bits", {4}, q);
  }
  if (method == "compressed-tensors")
    return readCompressedTensors(config, q);
  return "quantization_config: quant_method is " + show(method) + "; gptq, awq and compressed-tensors are supported";
}

std::string findQuantizedWeights(const File &file, const Quantization &q, std::vector<QuantizedWeight> &weights, std::vector<std::string> &used) {
  using Method = Quantization::Method;
  if (q.method == Method::None)
    return "";
  for (const Tensor &tensor : file.tensors) {
    StringRef stem = tensor.name;
    std::string (Assembler::*assemble)() = nullptr;
    std::string sparsePrefix;
    bool isSparse = false;
    if (q.method != Method::CompressedTensors && stem.consume_back(".qweight")) {
      assemble = q.method == Method::GPTQ ? &Assembler::gptq : &Assembler::awq;
    } else if (q.method == Method::CompressedTensors && stem.consume_back(".weight_packed")) {
      assemble = &Assembler::packed;
    } else if (q.method == Method::CompressedTensors && stem.consume_back(".compressed")) {
      isSparse = true;
      sparsePrefix = stem.consume_back(".weight") ? "weight." : "";
    } else if (q.method == Method::CompressedTensors && tensor.elementType == AJOUR_I8 && stem.consume_back(".weight")) {
      assemble = &Assembler::bytes;
    } else {
      continue;
    }
    Assembler assembler(file, q, stem.str(), used);
    std::string problem = isSparse ? assembler.sparse(sparsePrefix) : (assembler.*assemble)();
    if (!problem.empty())
      return problem;
    weights.push_back(std::move(assembler.weight));
  }
  return "";
}

gguf::Grouped QuantizedWeight::unpack() const {
  int64_t out = shape[0], in = shape[1], groups = in / group, perWord = 32 / int64_t(bits), half = int64_t(1) << (bits - 1);
  gguf::Grouped result;
  result.group = group;
  result.bits = bits;
  std::vector<int64_t> zeros(size_t(out * groups), half);
  result.scales.resize(size_t(out * groups));
  int64_t packedIn = values.shape.back();
  auto valueAt = [&](int64_t o, int64_t i) -> int64_t {
    switch (layout) {
    case Layout::GPTQ:
      return rowField(values, o, out, i, bits);
    case Layout::AWQ:
      return field(values, i * (out / 8) + o / 8, awqPlace(o % 8), 4);
    case Layout::Packed:
      return field(values, o * packedIn + i / perWord, i % perWord, bits);
    default:
      return int8_t(values.bytes[size_t(o * in + i)]) + half;
    }
  };
  for (int64_t o = 0; o < out; ++o)
    for (int64_t g = 0; g < groups; ++g) {
      int64_t at = o * groups + g;
      bool turned = layout == Layout::GPTQ || layout == Layout::AWQ;
      int64_t scaleCount = 1;
      for (int64_t size : scales.shape)
        scaleCount *= size;
      int64_t parameter = turned ? g * out + o : scaleCount == 1 ? 0 : at;
      result.scales[size_t(at)] = real(scales, parameter);
      if (zeroPoints.bytes.empty())
        continue;
      if (layout == Layout::GPTQ)
        zeros[size_t(at)] = rowField(zeroPoints, g * (out * bits / 32), 1, o, bits) + zeroOffset;
      else if (layout == Layout::AWQ)
        zeros[size_t(at)] = field(zeroPoints, g * (out / 8) + o / 8, awqPlace(o % 8), 4);
      else if (layout == Layout::Packed)
        zeros[size_t(at)] = field(zeroPoints, o / perWord * groups + g, o % perWord, bits);
      else
        zeros[size_t(at)] = int8_t(zeroPoints.bytes[size_t(parameter)]) + half;
    }
  // Where all zero points are the middle, values are signed and need none.
  bool isSymmetric = all_of(zeros, [&](int64_t zero) { return zero == half; });
  result.isUnsigned = !isSymmetric;
  result.values.resize(size_t(out * in));
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i)
      result.values[size_t(o * in + i)] = int8_t(valueAt(o, order.empty() ? i : order[size_t(i)]) - (isSymmetric ? half : 0));
  if (!isSymmetric)
    result.zeroPoints.assign(zeros.begin(), zeros.end());
  return result;
}

std::vector<char> QuantizedWeight::expand() const {
  size_t width = elementType == AJOUR_F32 ? 4 : 2, count = size_t(shape[0] * shape[1]);
  std::vector<char> elements(count * width, 0);
  const char *next = values.bytes.data();
  for (size_t i = 0; i < count; ++i)
    if (uint8_t(mask.bytes[i / 8]) >> (i % 8) & 1) {
      std::copy_n(next, width, &elements[i * width]);
      next += width;
    }
  return elements;
}

} // namespace ajour::safetensors
