// Weights of few bits in safetensors files: each form by values written out by hand.
#include "Import/SafeTensors/Quantized.h"

#include "ajour/ABI/ElementTypes.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace ajour;
using namespace ajour::safetensors;

namespace {

/// A file's tensors, whose bytes live here.
struct Tensors {
  std::vector<std::unique_ptr<std::vector<char>>> storage;
  File file;

  template <typename T> void add(const std::string &name, uint32_t type, std::vector<int64_t> shape, const std::vector<T> &values) {
    storage.push_back(std::make_unique<std::vector<char>>(values.size() * sizeof(T)));
    if (!values.empty())
      std::memcpy(storage.back()->data(), values.data(), storage.back()->size());
    file.byName[name] = file.tensors.size();
    file.tensors.push_back({name, type, std::move(shape), llvm::ArrayRef<char>(*storage.back())});
  }
  void words(const std::string &name, std::vector<int64_t> shape, const std::vector<uint32_t> &values) {
    add(name, AJOUR_I32, std::move(shape), values);
  }
  void floats(const std::string &name, std::vector<int64_t> shape, const std::vector<float> &values) {
    add(name, AJOUR_F32, std::move(shape), values);
  }
};

Quantization configured(const std::string &text) {
  Quantization q;
  EXPECT_EQ(readQuantization("{\"quantization_config\": " + text + "}", q), "");
  return q;
}

QuantizedWeight only(const Tensors &tensors, const Quantization &q) {
  std::vector<QuantizedWeight> weights;
  std::vector<std::string> used;
  EXPECT_EQ(findQuantizedWeights(tensors.file, q, weights, used), "");
  EXPECT_EQ(weights.size(), 1u);
  EXPECT_EQ(used.size(), tensors.file.tensors.size()) << "every tensor belongs to the weight";
  return weights.empty() ? QuantizedWeight() : weights[0];
}

std::string problemOf(const Tensors &tensors, const Quantization &q) {
  std::vector<QuantizedWeight> weights;
  std::vector<std::string> used;
  return findQuantizedWeights(tensors.file, q, weights, used);
}

/// Elements as (q - zero) * scale.
std::vector<float> values(const QuantizedWeight &weight) {
  gguf::Grouped grouped = weight.unpack();
  int64_t in = weight.shape[1], groups = in / grouped.group;
  std::vector<float> result;
  for (int64_t i = 0; i < weight.shape[0] * in; ++i) {
    int64_t parameter = i / in * groups + i % in / grouped.group;
    float q = grouped.isUnsigned ? float(uint8_t(grouped.values[size_t(i)])) : float(grouped.values[size_t(i)]);
    result.push_back((q - (grouped.zeroPoints.empty() ? 0 : grouped.zeroPoints[size_t(parameter)])) * grouped.scales[size_t(parameter)]);
  }
  return result;
}

using Floats = std::vector<float>;

// 8 inputs in two groups of 4, 8 outputs of which each has all inputs alike but the first: input i of output o is (i + o) % 16.
Tensors gptq(std::vector<uint32_t> index) {
  Tensors t;
  std::vector<uint32_t> words(8);
  for (uint32_t o = 0; o < 8; ++o)
    for (uint32_t i = 0; i < 8; ++i)
      words[o] |= (i + o) % 16 << (4 * i);
  t.words("l.qweight", {1, 8}, words);
  // Zero points 1 to 8 of the first group and 8 of the second, each stored less 1.
  t.words("l.qzeros", {2, 1}, {0x76543210, 0x77777777});
  std::vector<float> scales(16, 1.0f);
  scales[8] = 0.5f; // the second group of output 0
  t.floats("l.scales", {2, 8}, scales);
  t.words("l.g_idx", {int64_t(index.size())}, index);
  return t;
}

TEST(Quantized, GPTQHasInputsInWords) {
  Quantization q = configured(R"({"quant_method": "gptq", "bits": 4, "group_size": 4})");
  Tensors t = gptq({0, 0, 0, 0, 1, 1, 1, 1});
  QuantizedWeight weight = only(t, q);
  EXPECT_EQ(weight.name, "l.weight");
  EXPECT_EQ(weight.shape, (std::vector<int64_t>{8, 8}));
  EXPECT_TRUE(weight.order.empty());
  Floats found = values(weight);
  // Output 0: inputs 0..3 less 1, then 4..7 less 8, halved. Output 3: 3..6 less 4, 7..10 less 8.
  EXPECT_EQ(Floats(found.begin(), found.begin() + 8), (Floats{-1, 0, 1, 2, -2, -1.5, -1, -0.5}));
  EXPECT_EQ(Floats(found.begin() + 24, found.begin() + 32), (Floats{-1, 0, 1, 2, -1, 0, 1, 2}));
}

TEST(Quantized, GPTQOfTheSecondFormatStoresZeroPointsAsTheyAre) {
  Quantization q = configured(R"({"quant_method": "gptq", "bits": 4, "group_size": 4, "checkpoint_format": "gptq_v2"})");
  Tensors t = gptq({0, 0, 0, 0, 1, 1, 1, 1});
  Floats found = values(only(t, q));
  EXPECT_EQ(Floats(found.begin(), found.begin() + 8), (Floats{0, 1, 2, 3, -1.5, -1, -0.5, 0}));
}

// Groups by g_idx: inputs 0, 2, 4, 6 are of group 1. Columns are then the inputs 1, 3, 5, 7, 0, 2, 4, 6.
TEST(Quantized, GPTQInActivationOrder) {
  Quantization q = configured(R"({"quant_method": "gptq", "bits": 4, "group_size": 4, "desc_act": true})");
  Tensors t = gptq({1, 0, 1, 0, 1, 0, 1, 0});
  QuantizedWeight weight = only(t, q);
  EXPECT_EQ(weight.order, (std::vector<int64_t>{1, 3, 5, 7, 0, 2, 4, 6}));
  Floats found = values(weight);
  EXPECT_EQ(Floats(found.begin(), found.begin() + 8), (Floats{0, 2, 4, 6, -4, -3, -2, -1}));
}

TEST(Quantized, GPTQOfEightBits) {
  Tensors t;
  t.words("l.qweight", {1, 4}, {0xff800100, 0x03020100, 0, 0});
  t.words("l.qzeros", {1, 1}, {0x7f7f7f7f});
  t.floats("l.scales", {1, 4}, {1, 2, 1, 1});
  Quantization q = configured(R"({"quant_method": "gptq", "bits": 8, "group_size": -1})");
  QuantizedWeight weight = only(t, q);
  EXPECT_FALSE(weight.unpack().isUnsigned) << "zero points of 128 leave signed numbers";
  Floats found = values(weight);
  EXPECT_EQ(Floats(found.begin(), found.begin() + 8), (Floats{-128, -127, 0, 127, -256, -254, -252, -250}));
}

// Three bits are a row over words, so that inputs 10 and 21 lie in two each. Input i of output o is (3 i + o) % 8, zero points o % 8.
TEST(Quantized, GPTQOfThreeBits) {
  std::vector<uint32_t> words(3 * 32), zeros(3);
  for (uint32_t o = 0; o < 32; ++o) {
    for (uint32_t bit = 0; bit < 96; ++bit) {
      uint32_t value = (3 * (bit / 3) + o) % 8;
      words[bit / 32 * 32 + o] |= (value >> bit % 3 & 1) << bit % 32;
    }
    for (uint32_t bit = 3 * o; bit < 3 * o + 3; ++bit)
      zeros[bit / 32] |= (o % 8 >> bit % 3 & 1) << bit % 32;
  }
  Tensors t;
  t.words("l.qweight", {3, 32}, words);
  t.words("l.qzeros", {1, 3}, zeros);
  t.floats("l.scales", {1, 32}, Floats(32, 2.0f));
  Quantization q = configured(R"({"quant_method": "gptq", "bits": 3, "group_size": -1, "checkpoint_format": "gptq_v2"})");
  Floats found = values(only(t, q));
  for (int o = 0; o < 32; ++o)
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(found[size_t(o * 32 + i)], 2.0f * float((3 * i + o) % 8 - o % 8)) << o << " " << i;
  Tensors cut;
  cut.words("l.qweight", {1, 32}, words);
  EXPECT_EQ(problemOf(cut, q), "tensor 'l': qweight has 1 words, which 3 bits do not fill");
}

// The word of input 0 is 0x75316420: columns 0, 2, 4, 6 in the lower half, 1, 3, 5, 7 in the upper, so column c has the value c.
TEST(Quantized, AWQHasEvenColumnsFirst) {
  Tensors t;
  t.words("l.qweight", {2, 1}, {0x75316420, 0x11111111});
  t.words("l.qzeros", {1, 1}, {0x75316420});
  t.add<uint16_t>("l.scales", AJOUR_F16, {1, 8}, {0x3c00, 0x3c00, 0x4000, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3800}); // 1, 1, 2, ... 0.5
  QuantizedWeight weight = only(t, configured(R"({"quant_method": "awq", "bits": 4, "group_size": 2, "version": "gemm"})"));
  EXPECT_EQ(weight.shape, (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(values(weight), (Floats{0, 1, 0, 0, 0, -2, 0, -2, 0, -3, 0, -4, 0, -5, 0, -3}));
}

TEST(Quantized, CompressedTensorsInWords) {
  Tensors t;
  // Row 0: -8 .. -1; row 1: 0 .. 7, each stored plus 8.
  t.words("l.weight_packed", {2, 1}, {0x76543210, 0xfedcba98});
  t.add<uint16_t>("l.weight_scale", AJOUR_BF16, {2, 2}, {0x3f80, 0x4000, 0x3f80, 0x3f00}); // 1, 2; 1, 0.5
  t.add<int64_t>("l.weight_shape", AJOUR_I64, {2}, {2, 8});
  std::string config = R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"weights":
      {"num_bits": 4, "type": "int", "symmetric": true, "group_size": 4, "strategy": "group"}}}})";
  EXPECT_EQ(values(only(t, configured(config))), (Floats{-8, -7, -6, -5, -8, -6, -4, -2, 0, 1, 2, 3, 2, 2.5, 3, 3.5}));
  // Zero points are packed along the outputs: -7 and 1 of the two rows' first groups, 0 of the second.
  t.words("l.weight_zero_point", {1, 2}, {0x91, 0x88});
  EXPECT_EQ(values(only(t, configured(config))), (Floats{-1, 0, 1, 2, -8, -6, -4, -2, -1, 0, 1, 2, 2, 2.5, 3, 3.5}));
}

TEST(Quantized, CompressedTensorsInBytes) {
  Tensors t;
  t.add<int8_t>("l.weight", AJOUR_I8, {2, 3}, {-128, 0, 127, 1, 2, 3});
  t.floats("l.weight_scale", {2, 1}, {0.5f, 2});
  Quantization q = configured(R"({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": {"weights":
      {"num_bits": 8, "type": "int", "symmetric": true, "strategy": "channel"}}}})");
  EXPECT_EQ(values(only(t, q)), (Floats{-64, 0, 63.5, 2, 4, 6}));
}

// 2 of 4: mask bits from the lowest on.
TEST(Quantized, CompressedTensorsSparse) {
  Tensors t;
  t.add<uint16_t>("l.compressed", AJOUR_BF16, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.add<uint8_t>("l.bitmask", AJOUR_U8, {2, 1}, {0b11000011, 0b01010101});
  t.add<int64_t>("l.shape", AJOUR_I64, {2}, {2, 8});
  QuantizedWeight weight = only(t, configured(R"({"quant_method": "compressed-tensors", "format": "dense", "sparsity_config": {"format": "sparse-24-bitmask"}})"));
  EXPECT_EQ(weight.elementType, uint32_t(AJOUR_BF16));
  std::vector<char> bytes = weight.expand();
  std::vector<uint16_t> elements(16);
  ASSERT_EQ(bytes.size(), 32u);
  std::memcpy(elements.data(), bytes.data(), 32);
  EXPECT_EQ(elements, (std::vector<uint16_t>{1, 2, 0, 0, 0, 0, 3, 4, 5, 0, 6, 0, 7, 0, 8, 0}));
}

TEST(Quantized, WhatDoesNotFitIsNamed) {
  Quantization q = configured(R"({"quant_method": "gptq", "bits": 4, "group_size": 4})");
  EXPECT_EQ(problemOf(gptq({0, 0, 0, 0, 1, 1, 1, 2}), q), "tensor 'l': g_idx names group 2, there are 2");
  EXPECT_EQ(problemOf(gptq({0, 0, 0, 0, 0, 1, 1, 1}), q), "tensor 'l': g_idx has groups of different sizes");
  EXPECT_EQ(problemOf(gptq({0, 0, 0, 0, 1, 1, 1}), q), "tensor 'l': g_idx is not a list of 8 32-bit integers");
  q.group = 8;
  EXPECT_EQ(problemOf(gptq({}), q), "tensor 'l': scales are for groups of 4, quantization_config says 8");
  Tensors t;
  t.words("l.qweight", {2, 1}, {0, 0});
  Quantization awq = configured(R"({"quant_method": "awq", "bits": 4})");
  EXPECT_EQ(problemOf(t, awq), "tensor 'l': scales are not [groups, 8] floating point numbers");
  t.floats("l.scales", {1, 8}, Floats(8, 1.0f));
  EXPECT_EQ(problemOf(t, awq), "tensor 'l': qzeros are not [1, 1] 32-bit integers");
  Tensors sparse;
  sparse.add<uint16_t>("l.compressed", AJOUR_F16, {3}, {1, 2, 3});
  sparse.add<uint8_t>("l.bitmask", AJOUR_U8, {1, 1}, {0b11});
  EXPECT_EQ(problemOf(sparse, configured(R"({"quant_method": "compressed-tensors"})")), "tensor 'l': bitmask keeps 2 elements, compressed has 3");
}

TEST(Quantized, ConfigurationsThatAreNotSupportedAreNamed) {
  auto problem = [](const std::string &config) {
    Quantization q;
    return readQuantization("{\"quantization_config\": " + config + "}", q);
  };
  EXPECT_EQ(problem(R"({"quant_method": "bitsandbytes"})"), "quantization_config: quant_method is \"bitsandbytes\"; gptq, awq and compressed-tensors are supported");
  EXPECT_EQ(problem(R"({"quant_method": "gptq", "bits": 5})"), "quantization_config: bits is 5; 2, 4 and 8 bits are supported, in GPTQ also 3, AWQ has 4");
  EXPECT_EQ(problem(R"({"quant_method": "gptq", "bits": "4"})"), "quantization_config: bits is \"4\", expected an integer");
  EXPECT_EQ(problem(R"({"quant_method": "gptq", "group_size": 0})"), "quantization_config: group_size is 0, expected -1 or a positive number");
  EXPECT_EQ(problem(R"({"quant_method": "gptq", "checkpoint_format": "marlin"})"), "quantization_config: checkpoint_format is \"marlin\"; gptq and gptq_v2 are supported");
  EXPECT_EQ(problem(R"({"quant_method": "awq", "version": "gemv"})"), "quantization_config: version is \"gemv\"; gemm is supported");
  EXPECT_EQ(problem(R"({"quant_method": "compressed-tensors", "format": "marlin-24"})"),
            "quantization_config: format is \"marlin-24\"; pack-quantized, int-quantized, naive-quantized and dense are supported");
  EXPECT_EQ(problem(R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"a": {"weights": {"type": "float"}}}})"),
            "quantization_config: the type of weights is \"float\"; int is supported");
  EXPECT_EQ(problem(R"({"quant_method": "compressed-tensors", "kv_cache_scheme": {}})"), "quantization_config: kv_cache_scheme is not supported");
}

} // namespace
