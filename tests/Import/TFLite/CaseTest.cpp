//===- CaseTest.cpp - small TFLite files with known answers, and refusals --------===//
#include "Import/TFLite/Builder.h"
#include "Support/ModelFiles.h"

#include <gmock/gmock.h>

using namespace ajour;
using namespace ajour::test;
using namespace ajour::tflite;
using testing::HasSubstr;

namespace {

std::vector<float> floatsOf(const Outcome &outcome, size_t i = 0) {
  if (outcome.outputs.size() <= i || outcome.outputs[i].elementType != AJOUR_F32)
    return {};
  const HostTensor &t = outcome.outputs[i];
  return std::vector<float>(t.as<float>(), t.as<float>() + t.numElements());
}

/// ADD of an f32 input with itself.
TFLiteBuilder smallModel() {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 2}), c = b.constant<float>("c", TensorType::FLOAT32, {2}, {1, 2});
  int y = b.tensor("y", TensorType::FLOAT32, {1, 2});
  b.op(Builtin::ADD, {x, c}, {y}, AddT());
  b.io({x}, {y});
  return b;
}

TEST(TFLiteCases, SmallModel) {
  Outcome o = importModel(smallModel(), {makeTensor<float>(AJOUR_F32, {1, 2}, {10, 20})});
  EXPECT_EQ(floatsOf(o), (std::vector<float>{11, 22})) << o.errors;
}

TEST(TFLiteCases, F1EightBytes) {
  Outcome o = importBytes(std::string("\x18\0\0\0TFL3", 8));
  EXPECT_FALSE(o.imported);
  EXPECT_THAT(o.errors, HasSubstr("the file is cut off: its root table at offset 24 needs 28 bytes, has 8"));
}

TEST(TFLiteCases, F2CutFile) {
  AJOUR_MODEL_FILE(path, "coral/mobilenet_v2_1.0_224_quant.tflite");
  std::string bytes = readFile(path);
  Outcome o = importBytes(bytes.substr(0, 1 << 20));
  EXPECT_FALSE(o.imported);
  EXPECT_THAT(o.errors, HasSubstr("the file is cut off: needs "));
  EXPECT_THAT(o.errors, HasSubstr(" bytes, has 1048576"));
}

TEST(TFLiteCases, NotTFLite) {
  EXPECT_THAT(importBytes("abc").errors, HasSubstr("not a TFLite file: needs at least 8 bytes, has 3"));
  EXPECT_THAT(importBytes("0123456789").errors, HasSubstr("not a TFLite file: bytes 4 to 7 are not 'TFL3'"));
}

TEST(TFLiteCases, EveryTruncationIsRefused) {
  std::string bytes = smallModel().bytes();
  ASSERT_TRUE(importBytes(bytes).imported);
  // Trailing zeros of alignment carry nothing; everything else is needed.
  for (size_t size = 0; size + 16 < bytes.size(); ++size)
    EXPECT_FALSE(importBytes(bytes.substr(0, size)).imported) << size;
}

TEST(TFLiteCases, FlippedBytesDoNotCrash) {
  std::string bytes = smallModel().bytes();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = char(damaged[i] ^ flip);
      Outcome o = importBytes(damaged);
      EXPECT_TRUE(o.imported || !o.errors.empty()) << i;
    }
}

TEST(TFLiteCases, AllUnsupportedNodesAreNamed) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {4}), y = b.tensor("y", TensorType::FLOAT32, {4}),
      z = b.tensor("z", TensorType::FLOAT32, {4});
  b.op(Builtin::CUSTOM, {x}, {y}, 1, "Mystery");
  b.op(Builtin::WHERE, {y}, {z});
  b.io({x}, {z});
  Outcome o = importModel(b);
  EXPECT_THAT(o.errors, HasSubstr("node 'y' (Mystery, #0): a custom operator that is not known"));
  EXPECT_THAT(o.errors, HasSubstr("node 'z' (WHERE, #1): the shape of its result depends on values"));
}

TEST(TFLiteCases, VersionIsChecked) {
  TFLiteBuilder b = smallModel();
  b.model.operator_codes[0]->version = 99;
  EXPECT_THAT(importModel(b).errors, HasSubstr("node 'y' (ADD, #0): version 99 is not supported, at most 5 is"));
}

TEST(TFLiteCases, IndicesAreChecked) {
  TFLiteBuilder b = smallModel();
  b.model.subgraphs[0]->operators[0]->inputs[0] = 77;
  EXPECT_THAT(importModel(b).errors, HasSubstr("operator #0 (ADD) names tensor #77 of 3"));
  b = smallModel();
  b.at(1).buffer = 9;
  EXPECT_THAT(importModel(b).errors, HasSubstr("tensor 'c': buffer #9 of 2"));
  b = smallModel();
  b.at(1).shape = {3};
  EXPECT_THAT(importModel(b).errors,
              HasSubstr("tensor 'c': its shape and type FLOAT32 need 12 bytes, buffer #1 has 8"));
  b = smallModel();
  b.model.subgraphs[0]->operators[0]->inputs[0] = 2;
  EXPECT_THAT(importModel(b).errors, HasSubstr("reads tensor 'y', which nothing before it computes"));
  b = smallModel();
  b.at(0).shape = {1 << 30, 1 << 30};
  EXPECT_THAT(importModel(b).errors, HasSubstr("tensor 'x': more than 2147483648 elements"));
}

TEST(TFLiteCases, T1DepthwiseSamePadding) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 8, 8, 2});
  int w = b.constant<float>("w", TensorType::FLOAT32, {1, 3, 1, 2}, {1, 1, 10, 10, 100, 100});
  int y = b.tensor("y", TensorType::FLOAT32, {1, 4, 4, 2});
  DepthwiseConv2DT options;
  options.padding = Padding::SAME;
  options.stride_h = options.stride_w = 2;
  options.depth_multiplier = 1;
  b.op(Builtin::DEPTHWISE_CONV_2D, {x, w}, {y}, options);
  b.io({x}, {y});
  std::vector<float> input(128);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = float(i / 16); // the row's number
  std::vector<float> found = floatsOf(importModel(b, {makeTensor<float>(AJOUR_F32, {1, 8, 8, 2}, input)}));
  ASSERT_EQ(found.size(), 32u);
  // Rows 2i, 2i + 1, 2i + 2; the last is padding for i = 3.
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(found[i * 8], float(2 * i + 10 * (2 * i + 1) + (i < 3 ? 100 * (2 * i + 2) : 0))) << i;
}

TFLiteBuilder resize(Builtin code, bool align, bool half) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 1, 5, 1});
  int size = b.constant<int32_t>("size", TensorType::INT32, {2}, {1, 3});
  int y = b.tensor("y", TensorType::FLOAT32, {1, 1, 3, 1});
  ResizeNearestNeighborT nearest;
  ResizeBilinearT linear;
  nearest.align_corners = linear.align_corners = align;
  nearest.half_pixel_centers = linear.half_pixel_centers = half;
  if (code == Builtin::RESIZE_NEAREST_NEIGHBOR)
    b.op(code, {x, size}, {y}, nearest);
  else
    b.op(code, {x, size}, {y}, linear);
  b.io({x}, {y});
  return b;
}

TEST(TFLiteCases, T9ContradictingResize) {
  for (Builtin code : {Builtin::RESIZE_BILINEAR, Builtin::RESIZE_NEAREST_NEIGHBOR})
    EXPECT_THAT(importModel(resize(code, true, true)).errors,
                HasSubstr("align_corners and half_pixel_centers are both set"));
}

TEST(TFLiteCases, T10NearestHalfPixel) {
  HostTensor x = makeTensor<float>(AJOUR_F32, {1, 1, 5, 1}, {0, 1, 2, 3, 4});
  // floor((i + .5) * 5 / 3) and floor(i * 5 / 3)
  EXPECT_EQ(floatsOf(importModel(resize(Builtin::RESIZE_NEAREST_NEIGHBOR, false, true), {x})),
            (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(floatsOf(importModel(resize(Builtin::RESIZE_NEAREST_NEIGHBOR, false, false), {x})),
            (std::vector<float>{0, 1, 3}));
}

/// A 2 x 3 constant [[0, 5, 0], [7, 0, 9]] as compressed rows without a block map, behind DENSIFY.
TFLiteBuilder sparseModel() {
  TFLiteBuilder b;
  int s = b.constant<float>("s", TensorType::FLOAT32, {2, 3}, {5, 7, 9});
  auto sparsity = std::make_unique<SparsityT>();
  sparsity->traversal_order = {0, 1};
  auto rows = std::make_unique<DimensionMetadataT>(), columns = std::make_unique<DimensionMetadataT>();
  rows->format = DimensionKind::DENSE;
  rows->dense_size = 2;
  columns->format = DimensionKind::SPARSE_CSR;
  Int32VectorT segments;
  segments.values = {0, 1, 3};
  Uint8VectorT indices;
  indices.values = {1, 0, 2};
  columns->array_segments.Set(segments);
  columns->array_indices.Set(indices);
  sparsity->dim_metadata.push_back(std::move(rows));
  sparsity->dim_metadata.push_back(std::move(columns));
  b.at(s).sparsity = std::move(sparsity);
  int y = b.tensor("y", TensorType::FLOAT32, {2, 3});
  b.op(Builtin::DENSIFY, {s}, {y});
  b.io({}, {y});
  return b;
}

TEST(TFLiteCases, T13SparseRowsWithoutBlockMap) {
  Outcome o = importModel(sparseModel());
  EXPECT_EQ(floatsOf(o), (std::vector<float>{0, 5, 0, 7, 0, 9})) << o.errors;
}

TEST(TFLiteCases, F5DamagedSparsity) {
  TFLiteBuilder b = sparseModel();
  b.at(0).sparsity->dim_metadata[1]->array_indices.Reset();
  EXPECT_THAT(importModel(b).errors, HasSubstr("sparse dimension 1 needs 3 indices, has 0"));
  b = sparseModel();
  b.at(0).sparsity->dim_metadata.clear();
  EXPECT_THAT(importModel(b).errors, HasSubstr("sparsity needs metadata of 2 dimensions, has 0"));
  b = sparseModel();
  b.at(0).sparsity->traversal_order.clear();
  EXPECT_THAT(importModel(b).errors, HasSubstr("sparsity has no traversal order"));
  b = sparseModel();
  b.at(0).sparsity->dim_metadata[1]->array_indices.AsUint8Vector()->values[2] = 3;
  EXPECT_THAT(importModel(b).errors, HasSubstr("index 3 of sparse dimension 1 is outside 0 to 2"));
}

TEST(TFLiteCases, T5FullyConnectedPerChannel) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::INT8, {1, 3});
  int w = b.constant<int8_t>("w", TensorType::INT8, {2, 3}, {1, 2, 3, 4, 5, 6});
  int y = b.tensor("y", TensorType::INT8, {1, 2});
  b.quantize(x, {0.5f}, {-1});
  b.quantize(w, {1.0f, 0.25f}, {0, 0});
  b.quantize(y, {1.0f}, {3});
  b.op(Builtin::FULLY_CONNECTED, {x, w, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  Outcome o = importModel(b, {makeTensor<int8_t>(AJOUR_I8, {1, 3}, {1, 3, 5})});
  ASSERT_EQ(o.outputs.size(), 1u) << o.errors;
  // (2, 4, 6) . w = 28 and 64; times .5 and .125, plus 3.
  EXPECT_EQ(int(o.outputs[0].as<int8_t>()[0]), 17);
  EXPECT_EQ(int(o.outputs[0].as<int8_t>()[1]), 11);
}

/// y[1, 2] = x[1, 4] times weights of few bits.
TFLiteBuilder fewBits(TensorType type, std::vector<uint8_t> packed, int64_t zeroPoint = 0) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 4});
  int w = b.constant<uint8_t>("w", type, {2, 4}, packed);
  int y = b.tensor("y", TensorType::FLOAT32, {1, 2});
  b.quantize(w, {0.5f}, {zeroPoint});
  b.op(Builtin::FULLY_CONNECTED, {x, w, -1}, {y}, FullyConnectedT());
  b.io({x}, {y});
  return b;
}

TEST(TFLiteCases, WeightsOfFewBits) {
  HostTensor x = makeTensor<float>(AJOUR_F32, {1, 4}, {1, 10, 100, 1000});
  auto expect = [&](const TFLiteBuilder &b, float first, float second) {
    Outcome o = importModel(b, {x});
    ASSERT_EQ(o.outputs.size(), 1u) << o.errors;
    EXPECT_EQ(o.outputs[0].as<float>()[0], first);
    EXPECT_EQ(o.outputs[0].as<float>()[1], second);
  };
  // The lower bits come first: 1 2 3 -8 and -1 0 7 4.
  expect(fewBits(TensorType::INT4, {0x21, 0x83, 0x0f, 0x47}), 0.5f * (321 - 8000), 0.5f * (-1 + 700 + 4000));
  expect(fewBits(TensorType::UINT4, {0x21, 0x83, 0x0f, 0x47}, 2), 0.5f * (-1 + 0 + 100 + 6000), 0.5f * (13 - 20 + 500 + 2000));
  // 0 1 -2 -1 and 1 1 0 -2.
  expect(fewBits(TensorType::INT2, {0xe4, 0x85}), 0.5f * (10 - 200 - 1000), 0.5f * (11 - 2000));
  EXPECT_THAT(importModel(fewBits(TensorType::INT4, {1, 2, 3})).errors, HasSubstr("'w': its shape and type INT4 need 4 bytes, buffer #1 has 3"));
  EXPECT_THAT(importModel(fewBits(TensorType::INT2, {1, 2, 3, 4})).errors, HasSubstr("'w': its shape and type INT2 need 2 bytes, buffer #1 has 4"));
  TFLiteBuilder computed;
  int a = computed.tensor("a", TensorType::INT4, {1, 4}), y = computed.tensor("y", TensorType::FLOAT32, {1, 4});
  computed.quantize(a, {1.0f}, {0});
  computed.op(Builtin::DEQUANTIZE, {a}, {y});
  computed.io({a}, {y});
  EXPECT_THAT(importModel(computed).errors, HasSubstr("of type INT4"));
}

} // namespace
