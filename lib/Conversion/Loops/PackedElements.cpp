//===- PackedElements.cpp - rows of stored weights that are gathered ---------------------===//
//
// A table whose rows are gathered (an embedding) is packed as products of few rows read it: it keeps its few bits, and a head that multiplies
// by the same weights shares the bytes.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

#include "ajour/Dialect/NN/Weights.h"

using namespace mlir;

namespace ajour::loops {

using encoding::GemvFormat;

/// Plans the tables of gathers that are dequantised from constants.
void DispatchLowering::planGathers() {
  callee.walk([&](nn::GatherOp op) {
    Operation *stored = op.getData().getDefiningOp();
    auto type = cast<RankedTensorType>(op.getData().getType());
    if (!isa_and_nonnull<nn::DequantizeGroupedOp, nn::CastOp>(stored) || !stored->hasOneUse() || op.getAxis() != 0 || op.getBatchDims() != 0 ||
        type.getRank() != 2 || !type.hasStaticShape() || type.getNumElements() == 0)
      return;
    PackSpec spec{};
    spec.kind = PackSpec::Gemv;
    spec.n = type.getDimSize(0);
    spec.k = type.getDimSize(1);
    if (!planStoredForm(stored, isa<nn::DequantizeGroupedOp>(stored), spec))
      return;
    storedForms.insert(stored);
    packedTables.push_back({stored->getResult(0), addPack(spec)});
  });
}

/// Says how the elements of packed tables are read.
void DispatchLowering::bindPackedTables() {
  for (auto [table, pack] : packedTables)
    e->bindElement(table, [this, table, pack](ArrayRef<Value> index) { return packedElement(table, pack, index[0], index[1]); });
}

/// The `width` bits of a plane at `offset` that belong to column i of a group and a lane, as i32.
Value DispatchLowering::packedBits(Value base, Value offset, int64_t width, Value i, Value lane) {
  Type i8 = IntegerType::get(context, 8), i32 = IntegerType::get(context, 32);
  int64_t steps = 8 / width;
  Value step = e->div(i, e->i64(4));
  Value unit = e->mul(e->div(step, e->i64(steps)), e->i64(4 * AJOUR_GEMV_ROWS));
  Value at = e->add(e->add(offset, unit), e->add(e->mul(lane, e->i64(4)), e->rem(i, e->i64(4))));
  Value byte = arith::ExtUIOp::create(e->b, e->loc, i32, e->loadAt(base, at, i8));
  Value shift = arith::TruncIOp::create(e->b, e->loc, i32, e->mul(e->rem(step, e->i64(steps)), e->i64(width)));
  Value moved = arith::ShRUIOp::create(e->b, e->loc, byte, shift);
  return arith::AndIOp::create(e->b, e->loc, moved, e->i32((1 << width) - 1));
}

Value DispatchLowering::packedElement(Value table, unsigned pack, Value row, Value column) {
  const PackSpec &spec = lowered.packs[pack];
  const GemvFormat &format = spec.gemv;
  encoding::GemvSizes sizes = encoding::gemvSizes(format, spec.k, spec.n);
  OpBuilder &b = e->b;
  Location loc = e->loc;
  Type i8 = b.getI8Type(), i32 = b.getI32Type(), f16 = b.getF16Type(), f32 = b.getF32Type(), result = Emitter::elementType(table);
  Value base = operandPointer(OperandSpec::Packed, pack), lane = e->rem(row, e->i64(AJOUR_GEMV_ROWS));
  Value block = e->mul(e->div(row, e->i64(AJOUR_GEMV_ROWS)), e->i64(sizes.blockBytes));
  Type scaleType = format.halfScales || format.values == GemvFormat::F16 ? f16 : f32;
  // A number of the scales' type, `index` of them behind `offset`.
  auto number = [&](Value offset, Value index) {
    return e->convert(e->loadAt(e->pointer(base, offset, i8), index, scaleType), scaleType, f32);
  };
  if (format.values == GemvFormat::F16)
    return e->convert(number(block, e->add(e->mul(column, e->i64(AJOUR_GEMV_ROWS)), lane)), f32, result);
  int64_t bits = encoding::gemvBits(format.values), valueBytes = format.group * AJOUR_GEMV_ROWS * bits / 8;
  int64_t groupBytes = encoding::gemvGroupBytes(format, format.group), scaleBytes = AJOUR_GEMV_ROWS * (format.halfScales ? 2 : 4);
  Value group = e->div(column, e->i64(format.group)), i = e->rem(column, e->i64(format.group));
  Value offset = e->add(block, e->mul(group, e->i64(groupBytes)));
  if (format.run > 0)
    offset = e->add(offset, e->mul(e->div(group, e->i64(format.run)), e->i64(encoding::gemvRunBytes(format))));
  Value x;
  if (bits == 5 || bits == 6) {
    Value high = packedBits(base, e->add(offset, e->i64(format.group * AJOUR_GEMV_ROWS / 2)), bits - 4, i, lane);
    x = arith::OrIOp::create(b, loc, packedBits(base, offset, 4, i, lane), arith::ShLIOp::create(b, loc, high, e->i32(4)));
  } else {
    x = packedBits(base, offset, bits, i, lane);
  }
  if (format.signed8)
    x = arith::XOrIOp::create(b, loc, x, e->i32(0x80));
  Value parameters = e->add(offset, e->i64(valueBytes)), zero = e->i32(format.isUnsigned ? 0 : 1 << (bits - 1));
  if (format.zeroPoints)
    zero = arith::ExtUIOp::create(b, loc, i32, e->loadAt(base, e->add(parameters, e->add(e->i64(scaleBytes), lane)), i8));
  Value real = arith::SIToFPOp::create(b, loc, f32, e->sub(x, zero)), scale, added;
  if (format.run > 0) {
    Value runStart = e->add(block, e->mul(e->div(group, e->i64(format.run)), e->i64(format.run * groupBytes + encoding::gemvRunBytes(format))));
    Value numbers = e->add(runStart, e->i64(format.run * groupBytes));
    auto coded = [&](int64_t which) -> Value {
      Value code = e->loadAt(base, e->add(parameters, e->add(e->i64(which * AJOUR_GEMV_ROWS), lane)), i8);
      return arith::MulFOp::create(b, loc, arith::SIToFPOp::create(b, loc, f32, code), number(e->add(numbers, e->i64(which * scaleBytes)), lane));
    };
    scale = coded(0);
    if (format.offsets)
      added = coded(1);
  } else {
    scale = number(parameters, lane);
    if (format.offsets)
      added = number(e->add(parameters, e->i64(scaleBytes)), lane);
  }
  real = arith::MulFOp::create(b, loc, real, scale);
  if (added)
    real = arith::AddFOp::create(b, loc, real, added);
  return e->convert(real, f32, result);
}

} // namespace ajour::loops
