//===- Cache.cpp - keys and values that a model keeps ---------------------------===//
#include "Cache.h"

#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;

namespace ajour::architectures {

std::vector<std::pair<std::string, RankedTensorType>> CacheSide::states(MLIRContext *ctx) const {
  Type f32 = Float32Type::get(ctx), element = f32;
  if (type == CacheType::F16)
    element = Float16Type::get(ctx);
  if (type == CacheType::I8)
    element = IntegerType::get(ctx, 8);
  if (type == CacheType::I4)
    element = IntegerType::get(ctx, 8, IntegerType::Unsigned);
  std::vector<std::pair<std::string, RankedTensorType>> all = {{name, nn::makeTensor({context, heads, type == CacheType::I4 ? size / 2 : size}, element)}};
  if (type == CacheType::I8 || type == CacheType::I4)
    all.push_back({name + ".scales", nn::makeTensor({context, heads}, f32)});
  return all;
}

void CacheSide::bind(ValueRange &arguments) {
  rows = arguments.front();
  arguments = arguments.drop_front();
  if (type != CacheType::I8 && type != CacheType::I4)
    return;
  scales = arguments.front();
  arguments = arguments.drop_front();
}

void CacheSide::scatter(OpBuilder &b, Location loc, Value &state, Value x, Value positions) {
  nn::Dims index = nn::getDims(positions);
  index.push_back(getAffineConstantExpr(1, b.getContext()));
  auto indexType = nn::makeTensor(index, cast<RankedTensorType>(positions.getType()).getElementType());
  state = nn::ScatterNDOp::create(b, loc, state, nn::ReshapeOp::create(b, loc, indexType, positions), x);
}

void CacheSide::write(OpBuilder &b, Location loc, Value x, Value positions) {
  MLIRContext *ctx = b.getContext();
  Type f32 = Float32Type::get(ctx);
  nn::Dims dims = nn::getDims(x);
  auto castTo = [&](Value value, Type element) -> Value { return nn::CastOp::create(b, loc, nn::withElementType(cast<RankedTensorType>(value.getType()), element), value); };
  if (type == CacheType::F32)
    return scatter(b, loc, rows, x, positions);
  if (type == CacheType::F16)
    return scatter(b, loc, rows, castTo(x, Float16Type::get(ctx)), positions);
  auto number = [&](float value) -> Value {
    RankedTensorType one = nn::makeTensor({int64_t(1)}, f32);
    return nn::ConstantOp::create(b, loc, one, nn::makeConstant(one, ArrayRef(reinterpret_cast<const char *>(&value), sizeof(value))));
  };
  auto binary = [&](nn::BinaryKind kind, Value lhs, Value rhs) -> Value { return nn::BinaryOp::create(b, loc, kind, lhs, rhs); };
  // The largest of a head becomes the largest integer; a head of zeros keeps a scale that can be divided by.
  float most = type == CacheType::I8 ? 127 : 7;
  Value largest = nn::ReduceOp::create(b, loc, nn::ReduceKind::max, nn::UnaryOp::create(b, loc, nn::UnaryKind::abs, x), ArrayRef<int64_t>{2}, /*keep_dims=*/true);
  Value scale = binary(nn::BinaryKind::mul, binary(nn::BinaryKind::max, largest, number(1e-20f)), number(1 / most));
  Value codes = nn::UnaryOp::create(b, loc, nn::UnaryKind::round, binary(nn::BinaryKind::div, x, scale));
  if (type == CacheType::I8) {
    scatter(b, loc, rows, castTo(codes, IntegerType::get(ctx, 8)), positions);
  } else {
    nn::Dims half = dims;
    half.back() = getAffineConstantExpr(size / 2, ctx);
    auto part = [&](int64_t first) -> Value {
      return nn::SliceOp::create(b, loc, nn::makeTensor(half, f32), codes, ArrayRef<int64_t>{0, 0, first}, ArrayRef<int64_t>{1, 1, 1});
    };
    // 8 in both halves of the byte stands for zeros.
    Value bytes = binary(nn::BinaryKind::add, binary(nn::BinaryKind::mul, part(size / 2), number(16)), part(0));
    bytes = binary(nn::BinaryKind::add, bytes, number(8 * 16 + 8));
    scatter(b, loc, rows, castTo(bytes, IntegerType::get(ctx, 8, IntegerType::Unsigned)), positions);
  }
  nn::Dims flat(dims.begin(), dims.end() - 1);
  scatter(b, loc, scales, nn::ReshapeOp::create(b, loc, nn::makeTensor(flat, f32), scale), positions);
}

} // namespace ajour::architectures
