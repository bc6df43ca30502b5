//===- Pools.cpp - windows, and pools over channels-last tensors ------------------------===//
#include "Lowering.h"
#include "Windows.h"

using namespace mlir;

namespace ajour::loops {

Value meanOf(Emitter &e, Value acc, Value count, Type type) {
  if (isa<FloatType>(type)) {
    Value divisor = arith::SIToFPOp::create(e.b, e.loc, acc.getType(), count);
    return arith::DivFOp::create(e.b, e.loc, acc, divisor);
  }
  return e.binary(nn::BinaryKind::div, acc, e.convert(count, e.b.getI64Type(), type), type);
}

template <typename Op> static WindowShape shapeOf(Op op, ArrayRef<int64_t> window) {
  return {SmallVector<int64_t>(window), SmallVector<int64_t>(op.getStrides()), SmallVector<int64_t>(op.getDilations()),
          SmallVector<int64_t>(op.getPadsLow()), SmallVector<int64_t>(op.getPadsHigh())};
}

WindowShape windowShape(Operation *op) {
  if (auto pool = dyn_cast<nn::MaxPoolOp>(op))
    return shapeOf(pool, pool.getWindow());
  if (auto pool = dyn_cast<nn::AvgPoolOp>(op))
    return shapeOf(pool, pool.getWindow());
  auto conv = cast<nn::ConvOp>(op);
  return shapeOf(conv, cast<RankedTensorType>(conv.getFilter().getType()).getShape().drop_front().drop_back());
}

Value ceilDiv(Emitter &e, Value a, int64_t divisor) {
  if (divisor == 1)
    return a;
  return e.b.createOrFold<arith::CeilDivSIOp>(e.loc, a, e.i64(divisor));
}

WindowTaps windowTaps(Emitter &e, const WindowShape &shape, size_t dim, Value output, Value size, bool countsPadding) {
  WindowTaps taps;
  int64_t window = shape.window[dim], dilation = shape.dilations[dim];
  taps.start = e.sub(e.mul(output, e.i64(shape.strides[dim])), e.i64(shape.low[dim]));
  taps.from = e.max(e.i64(0), ceilDiv(e, e.sub(e.i64(0), taps.start), dilation));
  taps.to = e.min(e.i64(window), ceilDiv(e, e.sub(size, taps.start), dilation));
  taps.counted = e.max(e.i64(0), e.sub(taps.to, taps.from));
  if (countsPadding) {
    Value padded = e.add(size, e.i64(shape.high[dim]));
    taps.counted = e.max(e.i64(0), e.min(e.i64(window), ceilDiv(e, e.sub(padded, taps.start), dilation)));
  }
  return taps;
}

Type poolAccumulator(Operation *pool) {
  Type element = Emitter::elementType(pool->getOperand(0));
  if (isa<nn::AvgPoolOp>(pool) && isa<IntegerType>(element))
    return IntegerType::get(pool->getContext(), 32);
  return accumulatorType(element);
}

Value finishPool(Emitter &e, Operation *pool, Value total, Value counted) {
  Type acc = poolAccumulator(pool);
  if (isa<nn::AvgPoolOp>(pool)) {
    Value isEmpty = e.compare(arith::CmpIPredicate::eq, counted, e.i64(0));
    Value divisor = e.max(counted, e.i64(1));
    if (isa<FloatType>(acc)) {
      total = meanOf(e, total, divisor, acc);
    } else {
      // Halves away from zero.
      Value wide = e.convert(divisor, e.b.getI64Type(), acc);
      Value half = e.div(wide, e.i32(2));
      Value isNegative = e.compare(arith::CmpIPredicate::slt, total, e.i32(0));
      Value nudged = e.select(isNegative, e.sub(total, half), e.add(total, half));
      total = arith::DivSIOp::create(e.b, e.loc, nudged, wide);
    }
    total = e.select(isEmpty, e.constant(total.getType(), 0), total);
  }
  return e.convert(total, acc, Emitter::elementType(pool->getOperand(0)));
}

void DispatchLowering::lowerPool(Operation *op) {
  WindowShape shape = windowShape(op);
  Value operand = op->getOperand(0);
  nn::Dims in = nn::getDims(operand), out = nn::getDims(op->getResult(0));
  Type element = Emitter::elementType(operand), acc = poolAccumulator(op);
  nn::ReduceKind kind = poolKind(op);
  size_t spatial = shape.window.size();
  nn::Dims outer(out.begin(), out.end() - 1);
  AffineExpr blocks = out.back().ceilDiv(laneCount);

  items(nn::numElements(outer, context) * blocks, [&](Value item) {
    Value first = e->mul(e->rem(item, e->size(blocks)), e->i64(laneCount));
    Value count = e->min(e->i64(laneCount), e->sub(e->size(out.back()), first));
    Index outerIndex = e->delinearize(e->div(item, e->size(blocks)), outer);
    SmallVector<WindowTaps> taps;
    Value counted = e->i64(1);
    for (size_t i = 0; i < spatial; ++i) {
      taps.push_back(windowTaps(*e, shape, i, outerIndex[i + 1], e->size(in[i + 1]), countsPadding(op)));
      counted = e->mul(counted, taps.back().counted);
    }
    Value sums = e->frameArray(acc, laneCount);
    e->loop(e->i64(0), count, [&](Value lane) { e->storeAt(e->neutral(kind, acc), sums, lane, acc); });
    Index inputIndex(in.size());
    inputIndex[0] = outerIndex[0];
    std::function<void(size_t)> level = [&](size_t i) {
      if (i == spatial) {
        e->loop(e->i64(0), count, [&](Value lane) {
          inputIndex.back() = e->add(first, lane);
          Value x = e->convert(e->element(operand, inputIndex), element, acc);
          e->storeAt(e->combine(kind, e->loadAt(sums, lane, acc), x, acc), sums, lane, acc);
        });
        return;
      }
      e->loop(taps[i].from, taps[i].to, [&](Value tap) {
        inputIndex[i + 1] = e->add(taps[i].start, e->mul(tap, e->i64(shape.dilations[i])));
        level(i + 1);
      });
    };
    level(0);
    e->loop(e->i64(0), count, [&](Value lane) {
      Value total = finishPool(*e, op, e->loadAt(sums, lane, acc), counted);
      e->bindElement(op->getResult(0), [=](ArrayRef<Value>) { return total; });
      Index index = outerIndex;
      index.push_back(e->add(first, lane));
      storeResults(index);
    });
  });
}

} // namespace ajour::loops
