//===- Weights.cpp - elements of weights stored in few bits ---------------------------===//
#include "Emitter.h"

using namespace mlir;

namespace ajour::loops {

/// The parameter, as f32 or i32, of the element at an index: groups along `axis` share one, and dimensions of 1 do.
Value Emitter::groupParameter(Value parameters, ArrayRef<Value> index, int64_t axis, int64_t group) {
  nn::Dims dims = nn::getDims(parameters);
  Index own;
  for (auto [d, dim] : llvm::enumerate(dims)) {
    if (nn::getConstant(dim) == 1)
      own.push_back(i64(0));
    else
      own.push_back(int64_t(d) == axis ? div(index[d], i64(group)) : index[d]);
  }
  Type type = elementType(parameters);
  return convert(element(parameters, own), type, isa<FloatType>(type) ? Type(b.getF32Type()) : Type(b.getI32Type()));
}

Value Emitter::computeGrouped(nn::DequantizeGroupedOp op, ArrayRef<Value> index) {
  Type f32 = b.getF32Type();
  Value x = convert(element(op.getInput(), index), elementType(op.getInput()), b.getI32Type());
  Value scale = groupParameter(op.getScales(), index, op.getAxis(), op.getGroup()), zero;
  if (op.getZeroPoints())
    zero = groupParameter(op.getZeroPoints(), index, op.getAxis(), op.getGroup());
  if (zero && !isa<FloatType>(zero.getType()))
    x = sub(x, zero);
  Value real = arith::SIToFPOp::create(b, loc, f32, x);
  if (zero && isa<FloatType>(zero.getType()) && !op.getOffsets())
    real = arith::SubFOp::create(b, loc, real, zero);
  real = arith::MulFOp::create(b, loc, real, scale);
  if (op.getOffsets())
    real = arith::AddFOp::create(b, loc, real, zero);
  return convert(real, f32, elementType(op.getResult()));
}

Value Emitter::computeCodebook(nn::DequantizeCodebookOp op, ArrayRef<Value> index) {
  Type f32 = b.getF32Type();
  nn::Dims dims = nn::getDims(op.getTable());
  Value x = convert(element(op.getInput(), index), elementType(op.getInput()), b.getI64Type());
  int64_t entries = *nn::getConstant(dims.back());
  if (entries < 256)
    x = min(x, i64(entries - 1));
  Index own;
  for (size_t d = 0; d + 1 < dims.size(); ++d)
    own.push_back(nn::getConstant(dims[d]) == 1 ? i64(0) : index[d]);
  own.push_back(x);
  Value real = convert(element(op.getTable(), own), elementType(op.getTable()), f32);
  if (op.getScales())
    real = arith::MulFOp::create(b, loc, real, groupParameter(op.getScales(), index, op.getAxis(), op.getGroup()));
  return convert(real, f32, elementType(op.getResult()));
}

} // namespace ajour::loops
