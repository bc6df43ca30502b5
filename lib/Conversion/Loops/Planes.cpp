//===- Planes.cpp - pools and depthwise convolutions over channel-major pictures ---------===//
//
// Each channel is a plane of its own, so that neighbouring pixels lie side by side: vectors go along them. A row of the
// result is taken in three parts. In the middle every tap of a window row exists, all taps are written out and nothing
// is asked; the few pixels at its ends take the general form.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "Windows.h"
#include "ajour/Conversion/Simplify.h"

using namespace mlir;

namespace ajour::loops {

/// Taps that are written out at most.
static constexpr int64_t maxTaps = 64;

bool DispatchLowering::isPlanar(Operation *root) {
  auto conv = dyn_cast<nn::ConvOp>(root);
  if (!root->hasAttr(channelMajorAttr) || !(conv || isa<nn::MaxPoolOp, nn::AvgPoolOp>(root)))
    return false;
  nn::Dims in = nn::getDims(root->getOperand(0));
  if (conv) {
    auto filter = cast<RankedTensorType>(conv.getFilter().getType());
    auto channels = nn::getConstant(in.back());
    if (channels != int64_t(conv.getGroups()) || channels != filter.getDimSize(0))
      return false;
  }
  auto transpose = root->getOperand(0).getDefiningOp<nn::TransposeOp>();
  return in.size() == 4 && transpose && isa<BlockArgument>(transpose.getInput()) && windowShape(root).taps() <= maxTaps;
}

namespace {

/// Writes the elements of one root.
class PlaneWriter {
public:
  PlaneWriter(Emitter &e, Operation *op, Type acc)
      : e(e), op(op), conv(dyn_cast<nn::ConvOp>(op)), shape(windowShape(op)), input(op->getOperand(0)),
        in(nn::getDims(input)), element(Emitter::elementType(input)), acc(acc) {}

  /// What a window comes to at output row and column `y`, `x` whose columns all exist; `checked`: rows may not.
  /// `step` adds the input at a tap.
  using Step = function_ref<Value(Value carried, Value x, int64_t tapY, int64_t tapX)>;
  Value whole(Value image, Value channel, Value y, Value x, bool checked, Value initial, Step step) {
    Value height = e.size(in[1]), total = initial;
    Value top = origin(0, y), left = origin(1, x);
    for (int64_t tapY = 0; tapY < shape.window[0]; ++tapY) {
      Value row = e.add(top, e.i64(tapY * shape.dilations[0])), exists;
      if (checked) {
        exists = e.inRange(row, height);
        row = e.max(e.i64(0), e.min(row, e.sub(height, e.i64(1))));
      }
      Value before = total;
      for (int64_t tapX = 0; tapX < shape.window[1]; ++tapX) {
        Value column = e.add(left, e.i64(tapX * shape.dilations[1]));
        total = step(total, e.element(input, {image, row, column, channel}), tapY, tapX);
      }
      if (checked)
        total = e.select(exists, total, before);
    }
    return total;
  }

  /// Output columns [from, to) whose windows lie within a row.
  std::pair<Value, Value> middle(Value columns) {
    int64_t stride = shape.strides[1], reach = (shape.window[1] - 1) * shape.dilations[1];
    Value from = e.min(columns, e.i64(llvm::divideCeil(std::max<int64_t>(shape.low[1], 0), stride)));
    Value last = e.add(e.size(in[2]), e.i64(shape.low[1] - reach - 1));
    Value to = e.add(e.b.createOrFold<arith::FloorDivSIOp>(e.loc, last, e.i64(stride)), e.i64(1));
    return {from, e.max(from, e.min(to, columns))};
  }
  Value rowsExist(Value y) {
    Value top = origin(0, y), bottom = e.add(top, e.i64((shape.window[0] - 1) * shape.dilations[0]));
    return e.logicalAnd(e.compare(arith::CmpIPredicate::sge, top, e.i64(0)),
                        e.compare(arith::CmpIPredicate::slt, bottom, e.size(in[1])));
  }

  Value pool(Value image, Value channel, Value y, Value x, bool checked) {
    nn::ReduceKind kind = poolKind(op);
    Value total = whole(image, channel, y, x, checked, e.neutral(kind, acc), [&](Value carried, Value v, int64_t, int64_t) {
      return e.combine(kind, carried, e.convert(v, element, acc), acc);
    });
    Value counted = e.mul(taps(0, y).counted, e.i64(shape.window[1]));
    return finishPool(e, op, total, counted);
  }
  /// The same with every tap asked for whether it exists.
  Value poolAtEnd(Value image, Value channel, Value y, Value x) {
    nn::ReduceKind kind = poolKind(op);
    WindowTaps rows = taps(0, y), columns = taps(1, x);
    Value total = e.reduce(rows.from, rows.to, {e.neutral(kind, acc)}, [&](Value tapY, ArrayRef<Value> outer) -> Index {
      Value row = e.add(rows.start, e.mul(tapY, e.i64(shape.dilations[0])));
      return e.reduce(columns.from, columns.to, outer, [&](Value tapX, ArrayRef<Value> carried) -> Index {
        Value column = e.add(columns.start, e.mul(tapX, e.i64(shape.dilations[1])));
        Value v = e.convert(e.element(input, {image, row, column, channel}), element, acc);
        return {e.combine(kind, carried[0], v, acc)};
      });
    })[0];
    return finishPool(e, op, total, e.mul(rows.counted, columns.counted));
  }

private:
  Value origin(size_t dim, Value output) {
    return e.sub(e.mul(output, e.i64(shape.strides[dim])), e.i64(shape.low[dim]));
  }
  WindowTaps taps(size_t dim, Value output) {
    return windowTaps(e, shape, dim, output, e.size(in[dim + 1]), countsPadding(op));
  }

  Emitter &e;
  Operation *op;
  nn::ConvOp conv;
  WindowShape shape;
  Value input;
  nn::Dims in;
  Type element, acc;
};

} // namespace

void DispatchLowering::lowerPlanes(Operation *root) {
  auto conv = dyn_cast<nn::ConvOp>(root);
  nn::Dims out = nn::getDims(root->getResult(0)), rows{out[0], out[3], out[1]};
  Type acc = conv ? accumulatorOf(conv) : poolAccumulator(root);
  items(nn::numElements(rows, context), [&](Value item) {
    PlaneWriter writer(*e, root, acc);
    Index at = e->delinearize(item, rows);
    Value image = at[0], channel = at[1], y = at[2], columns = e->size(out[2]);
    auto store = [&](Value x, Value value) {
      e->bindElement(root->getResult(0), [=](ArrayRef<Value>) { return value; });
      storeResults({image, y, x, channel});
    };
    auto whole = [&](Value x, bool checked) {
      if (!conv)
        return store(x, writer.pool(image, channel, y, x, checked));
      Type lhs = Emitter::elementType(conv.getInput()), rhs = Emitter::elementType(conv.getFilter());
      Value zero = rhsZeroPoint(conv.getRhsZeroPoints(), channel);
      auto step = [&](Value carried, Value v, int64_t tapY, int64_t tapX) {
        Value weight = e->element(conv.getFilter(), {channel, e->i64(tapY), e->i64(tapX), e->i64(0)});
        return product(carried, v, weight, lhs, rhs, conv.getLhsZeroPoint(), zero, acc);
      };
      Value sum = writer.whole(image, channel, y, x, checked, e->constant(acc, 0), step);
      store(x, addBias(sum, conv.getBias(), channel, acc, Emitter::elementType(conv.getResult())));
    };
    auto end = [&](Value x) {
      store(x, conv ? convElement(conv, {image, y, x, channel}) : writer.poolAtEnd(image, channel, y, x));
    };
    auto [from, to] = writer.middle(columns);
    e->loop(e->i64(0), from, end);
    e->ifThenElse(
        writer.rowsExist(y), [&] { e->loop(from, to, [&](Value x) { whole(x, false); }); },
        [&] { e->loop(from, to, [&](Value x) { whole(x, true); }); });
    e->loop(to, columns, end);
  });
}

} // namespace ajour::loops
