//===- CostTest.cpp - what small files may cost -------------------------------------===//
//
// Small files that ask for much are imported or refused, soon and in little memory.
//
//===----------------------------------------------------------------------===//
#include "Import/TFLite/Builder.h"
#include "Support/Cost.h"

#include <functional>

using namespace ajour::test;
using namespace ajour::tflite;

namespace {

constexpr int32_t large = 1 << 30, highest = INT32_MAX, lowest = INT32_MIN;

struct Bomb {
  const char *name;
  std::function<void(TFLiteBuilder &)> build;
};
std::ostream &operator<<(std::ostream &os, const Bomb &bomb) { return os << bomb.name; }

/// y = code(x, constants...).
template <typename Options>
void one(TFLiteBuilder &b, Builtin code, std::vector<int32_t> in, std::vector<int32_t> out, std::vector<int> constants,
         Options options) {
  int x = b.tensor("x", TensorType::FLOAT32, in), y = b.tensor("y", TensorType::FLOAT32, out);
  constants.insert(constants.begin(), x);
  b.op(code, constants, {y}, options);
  b.io({x}, {y});
}

/// The same for an operator without options.
void one(TFLiteBuilder &b, Builtin code, std::vector<int32_t> in, std::vector<int32_t> out, std::vector<int> constants) {
  int x = b.tensor("x", TensorType::FLOAT32, in), y = b.tensor("y", TensorType::FLOAT32, out);
  constants.insert(constants.begin(), x);
  b.op(code, constants, {y});
  b.io({x}, {y});
}

/// RANGE of a million numbers and a chain of operations on it, each with another result.
void chain(TFLiteBuilder &b) {
  std::vector<int> range;
  for (float v : {0.f, float(1 << 20), 1.f})
    range.push_back(b.constant<float>("r", TensorType::FLOAT32, {}, {v}));
  int last = b.tensor("c", TensorType::FLOAT32, {1 << 20});
  b.op(Builtin::RANGE, range, {last});
  for (int i = 0; i < 200; ++i) {
    int next = b.tensor("c" + std::to_string(i), TensorType::FLOAT32, {1 << 20});
    b.op(i % 2 ? Builtin::EXP : Builtin::COS, {last}, {next});
    last = next;
  }
  b.io({}, {last});
}

/// RANGE of two million numbers, summed two thousand times.
void sums(TFLiteBuilder &b) {
  std::vector<int> range;
  for (int32_t v : {0, 2000000, 1})
    range.push_back(b.constant<int32_t>("r" + std::to_string(v), TensorType::INT32, {}, {v}));
  int c = b.tensor("c", TensorType::INT32, {2000000}), f = b.tensor("f", TensorType::FLOAT32, {2000000});
  b.op(Builtin::RANGE, range, {c});
  b.op(Builtin::CAST, {c}, {f}, CastT());
  int axis = b.constant<int32_t>("axis", TensorType::INT32, {1}, {0});
  std::vector<int> all;
  for (int i = 0; i < 2000; ++i) {
    all.push_back(b.tensor("s" + std::to_string(i), TensorType::FLOAT32, {}));
    b.op(Builtin::SUM, {f, axis}, {all.back()}, ReducerT());
  }
  b.io({}, all);
}

/// Shape and everything else says 2^30 zeros in ten bytes.
void sparse(TFLiteBuilder &b) {
  int s = b.constant<float>("s", TensorType::FLOAT32, {large}, {1});
  auto sparsity = std::make_unique<SparsityT>();
  sparsity->traversal_order = {0};
  auto dim = std::make_unique<DimensionMetadataT>();
  dim->format = DimensionKind::SPARSE_CSR;
  Int32VectorT segments, indices;
  segments.values = {0, 1};
  indices.values = {large - 1};
  dim->array_segments.Set(segments);
  dim->array_indices.Set(indices);
  sparsity->dim_metadata.push_back(std::move(dim));
  b.at(s).sparsity = std::move(sparsity);
  int y = b.tensor("y", TensorType::FLOAT32, {large});
  b.op(Builtin::DENSIFY, {s}, {y});
  b.io({}, {y});
}

template <typename Options> Options spatial(int32_t stride, int32_t window) {
  Options o;
  o.stride_w = o.stride_h = stride;
  if constexpr (std::is_same_v<Options, Pool2DT>)
    o.filter_width = o.filter_height = window;
  else if constexpr (!std::is_same_v<Options, TransposeConvT>)
    o.dilation_w = o.dilation_h = window;
  return o;
}

const Bomb bombs[] = {
    {"HugeInput", [](auto &b) { one(b, Builtin::NEG, {large, large}, {large, large}, {}); }},
    {"LargeInput", [](auto &b) { one(b, Builtin::NEG, {highest}, {highest}, {}); }},
    {"EmptyWithHugeSizes",
     [](auto &b) { one(b, Builtin::NEG, {0, highest, highest, highest}, {0, highest, highest, highest}, {}); }},
    {"Sparse", sparse},
    {"Chain", chain},
    {"Sums", sums},
    {"Fill",
     [](auto &b) {
       int size = b.template constant<int32_t>("size", TensorType::INT32, {3}, {highest, highest, highest});
       int value = b.template constant<float>("value", TensorType::FLOAT32, {}, {1});
       int y = b.tensor("y", TensorType::FLOAT32, {});
       b.op(Builtin::FILL, {size, value}, {y});
       b.io({}, {y});
     }},
    {"Pad",
     [](auto &b) {
       int p = b.template constant<int32_t>("p", TensorType::INT32, {1, 2}, {highest, highest});
       one(b, Builtin::PAD, {4}, {4}, {p});
     }},
    {"Tile",
     [](auto &b) {
       int n = b.template constant<int64_t>("n", TensorType::INT64, {2}, {int64_t(1) << 62, int64_t(1) << 62});
       one(b, Builtin::TILE, {4, 4}, {4, 4}, {n});
     }},
    {"BroadcastTo",
     [](auto &b) {
       int n = b.template constant<int64_t>("n", TensorType::INT64, {2}, {int64_t(1) << 62, int64_t(1) << 62});
       one(b, Builtin::BROADCAST_TO, {1, 1}, {1, 1}, {n});
     }},
    {"Slice",
     [](auto &b) {
       int at = b.template constant<int64_t>("at", TensorType::INT64, {1}, {INT64_MAX});
       int n = b.template constant<int64_t>("n", TensorType::INT64, {1}, {INT64_MAX});
       one(b, Builtin::SLICE, {4}, {4}, {at, n});
     }},
    {"StridedSlice",
     [](auto &b) {
       int from = b.template constant<int32_t>("from", TensorType::INT32, {1}, {highest});
       int to = b.template constant<int32_t>("to", TensorType::INT32, {1}, {lowest});
       int step = b.template constant<int32_t>("step", TensorType::INT32, {1}, {lowest});
       one(b, Builtin::STRIDED_SLICE, {4}, {4}, {from, to, step}, StridedSliceT());
     }},
    {"Resize",
     [](auto &b) {
       int size = b.template constant<int32_t>("size", TensorType::INT32, {2}, {highest, highest});
       one(b, Builtin::RESIZE_BILINEAR, {1, 2, 2, 1}, {1, 2, 2, 1}, {size}, ResizeBilinearT());
     }},
    {"PoolWindow",
     [](auto &b) {
       one(b, Builtin::AVERAGE_POOL_2D, {1, 4, 4, 1}, {1, 4, 4, 1}, {}, spatial<Pool2DT>(1, highest));
     }},
    {"PoolStride",
     [](auto &b) { one(b, Builtin::MAX_POOL_2D, {1, 4, 4, 1}, {1, 1, 1, 1}, {}, spatial<Pool2DT>(highest, 1)); }},
    {"ConvDilation",
     [](auto &b) {
       int w = b.template constant<float>("w", TensorType::FLOAT32, {1, 2, 2, 1}, {1, 2, 3, 4});
       one(b, Builtin::CONV_2D, {1, 4, 4, 1}, {1, 4, 4, 1}, {w}, spatial<Conv2DT>(1, highest));
     }},
    {"ConvNegative",
     [](auto &b) {
       int w = b.template constant<float>("w", TensorType::FLOAT32, {1, 2, 2, 1}, {1, 2, 3, 4});
       one(b, Builtin::CONV_2D, {1, 4, 4, 1}, {1, 4, 4, 1}, {w}, spatial<Conv2DT>(lowest, lowest));
     }},
    {"DepthToSpace",
     [](auto &b) {
       DepthToSpaceT o;
       o.block_size = highest;
       one(b, Builtin::DEPTH_TO_SPACE, {1, 2, 2, 4}, {1, 4, 4, 1}, {}, o);
     }},
    {"SpaceToBatch",
     [](auto &b) {
       int block = b.template constant<int32_t>("block", TensorType::INT32, {2}, {highest, highest});
       int pads = b.template constant<int32_t>("pads", TensorType::INT32, {2, 2}, {highest, highest, highest, highest});
       one(b, Builtin::SPACE_TO_BATCH_ND, {1, 2, 2, 4}, {1, 4, 4, 1}, {block, pads});
     }},
    {"OneHot",
     [](auto &b) {
       int x = b.tensor("x", TensorType::INT32, {4}), y = b.tensor("y", TensorType::FLOAT32, {4, 4});
       int depth = b.template constant<int32_t>("depth", TensorType::INT32, {}, {highest});
       int on = b.template constant<float>("on", TensorType::FLOAT32, {}, {1});
       int off = b.template constant<float>("off", TensorType::FLOAT32, {}, {0});
       b.op(Builtin::ONE_HOT, {x, depth, on, off}, {y}, OneHotT());
       b.io({x}, {y});
     }},
    {"Range",
     [](auto &b) {
       std::vector<int> range;
       for (int64_t v : {INT64_MIN, INT64_MAX, int64_t(1)})
         range.push_back(b.template constant<int64_t>("r", TensorType::INT64, {}, {v}));
       int y = b.tensor("y", TensorType::INT64, {4});
       b.op(Builtin::RANGE, range, {y});
       b.io({}, {y});
     }},
};

struct TFLiteCost : testing::TestWithParam<Bomb> {};

TEST_P(TFLiteCost, IsSmall) {
  TFLiteBuilder b;
  GetParam().build(b);
  std::string file = b.bytes();
  ASSERT_LE(file.size(), size_t(500) << 10);
  auto work = [&] {
    Outcome outcome = importOnly(file);
    EXPECT_NE(outcome.imported, !outcome.errors.empty()) << outcome.errors;
  };
  expectCost(work, /*seconds=*/2, /*bytes=*/int64_t(256) << 20);
}

INSTANTIATE_TEST_SUITE_P(Models, TFLiteCost, testing::ValuesIn(bombs), [](const auto &info) { return std::string(info.param.name); });

} // namespace
