//===- Movement.cpp - index maps of data movement ----------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ajour::loops {

Value Emitter::wrapIndex(Value scalar, Type type, Value size) {
  Value i = convert(scalar, type, b.getI64Type());
  Value last = sub(size, i64(1));
  if (!nn::isUnsigned(type))
    i = select(compare(arith::CmpIPredicate::slt, i, i64(0)), add(i, size), i);
  else if (type.getIntOrFloatBitWidth() == 64) // from 2^63 on
    i = select(compare(arith::CmpIPredicate::slt, i, i64(0)), last, i);
  return max(i64(0), min(i, last));
}

// The same row-major position in another shape. Dimensions that both shapes share at the front, and splits or merges
// among the rest, are mapped group by group so that constant sizes need few divisions.
Index Emitter::reshapeIndex(ArrayRef<Value> index, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  Index result;
  size_t i = 0, o = 0;
  while (o < from.size() || i < to.size()) {
    // Equal sizes map one to one.
    if (o < from.size() && i < to.size() && from[o] == to[i]) {
      result.push_back(index[o]);
      ++i, ++o;
      continue;
    }
    if (o < from.size() && nn::getConstant(from[o]) == 1) {
      ++o;
      continue;
    }
    if (i < to.size() && nn::getConstant(to[i]) == 1) {
      result.push_back(i64(0));
      ++i;
      continue;
    }
    // A group: take dimensions from both sides until their static products agree; else all that is left.
    size_t iEnd = i, oEnd = o;
    int64_t iProduct = 1, oProduct = 1;
    bool closed = false, isStatic = true;
    while (isStatic && !closed && (iEnd < to.size() || oEnd < from.size())) {
      bool takeFrom = oEnd < from.size() && (oProduct <= iProduct || iEnd == to.size());
      auto size = nn::getConstant(takeFrom ? from[oEnd] : to[iEnd]);
      if (!size || *size == 0) {
        isStatic = false;
        break;
      }
      (takeFrom ? oProduct : iProduct) *= *size;
      ++(takeFrom ? oEnd : iEnd);
      closed = iProduct == oProduct && iEnd > i && oEnd > o;
    }
    if (!closed) {
      iEnd = to.size();
      oEnd = from.size();
    }
    Value linear = linearize(index.slice(o, oEnd - o), from.slice(o, oEnd - o));
    Index part = delinearize(linear, to.slice(i, iEnd - i));
    result.append(part.begin(), part.end());
    i = iEnd;
    o = oEnd;
  }
  return result;
}

/// The constant indices of a gather, counted from the front and inside; nothing for others.
static std::optional<std::vector<int32_t>> constantRows(nn::GatherOp op) {
  ElementsAttr attr = nn::getConstantValue(op.getIndices());
  auto size = nn::getConstant(nn::getDims(op.getData())[op.getAxis()]);
  if (!attr || !size || *size == 0 || op.getBatchDims() != 0 || cast<ShapedType>(attr.getType()).getRank() != 1)
    return std::nullopt;
  std::optional<std::vector<int64_t>> values = nn::constantInts(attr);
  if (!values)
    return std::nullopt;
  std::vector<int32_t> rows;
  for (int64_t value : *values)
    rows.push_back(std::clamp<int64_t>(value < 0 ? value + *size : value, 0, *size - 1));
  return rows;
}

bool Emitter::isPermutation(nn::GatherOp op) {
  std::optional<std::vector<int32_t>> rows = constantRows(op);
  if (!rows || int64_t(rows->size()) != nn::getConstant(nn::getDims(op.getData())[op.getAxis()]))
    return false;
  llvm::sort(*rows);
  for (size_t i = 0; i < rows->size(); ++i)
    if ((*rows)[i] != int32_t(i))
      return false;
  return true;
}

Value Emitter::gatherIndex(nn::GatherOp op, Value at, bool inverse) {
  std::vector<int32_t> rows = *constantRows(op);
  if (inverse) {
    std::vector<int32_t> inverted(rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
      inverted[rows[i]] = int32_t(i);
    rows = std::move(inverted);
  }
  return convert(loadAt(table(rows), at, b.getI32Type()), b.getI32Type(), b.getI64Type());
}

Value Emitter::computePad(nn::PadOp op, ArrayRef<Value> index) {
  nn::Dims dims = nn::getDims(op.getInput());
  Index source(index.size());
  Value inside;
  for (size_t i = 0; i < index.size(); ++i) {
    int64_t low = op.getLow()[i], high = op.getHigh()[i];
    Value size = this->size(dims[i]);
    source[i] = sub(index[i], i64(low));
    if (low <= 0 && high <= 0)
      continue;
    // Negative amounts crop first, so what lies outside is judged against the cropped range.
    int64_t cropLow = std::max<int64_t>(0, -low), cropHigh = std::max<int64_t>(0, -high);
    Value first = i64(cropLow), end = sub(size, i64(cropHigh));
    switch (op.getMode()) {
    case nn::PadMode::constant: {
      Value ok = cropLow == 0 && cropHigh == 0
                     ? inRange(source[i], size)
                     : inRange(sub(source[i], first), sub(end, first));
      inside = inside ? logicalAnd(inside, ok) : ok;
      break;
    }
    case nn::PadMode::edge:
      source[i] = max(first, min(source[i], sub(end, i64(1))));
      break;
    case nn::PadMode::reflect:
    case nn::PadMode::symmetric: {
      int64_t shift = op.getMode() == nn::PadMode::symmetric ? 1 : 0;
      Value below = sub(sub(mul(first, i64(2)), source[i]), i64(shift));
      Value last = sub(end, i64(1));
      Value above = add(sub(mul(last, i64(2)), source[i]), i64(shift));
      Value isBelow = compare(arith::CmpIPredicate::slt, source[i], first);
      Value isAbove = compare(arith::CmpIPredicate::sgt, source[i], last);
      source[i] = select(isBelow, below, select(isAbove, above, source[i]));
      break;
    }
    case nn::PadMode::wrap: {
      Value extent = sub(end, first);
      Value isBelow = compare(arith::CmpIPredicate::slt, source[i], first);
      Value isAbove = compare(arith::CmpIPredicate::sge, source[i], end);
      source[i] = select(isBelow, add(source[i], extent), select(isAbove, sub(source[i], extent), source[i]));
      break;
    }
    }
  }
  if (!inside)
    return element(op.getInput(), source);
  Type type = elementType(op.getInput());
  return ifElse(
      inside, [&] { return element(op.getInput(), source); },
      [&] {
        if (!op.getValue())
          return constant(scalarType(type), 0);
        Index first(nn::getDims(op.getValue()).size(), i64(0));
        return element(op.getValue(), first);
      });
}

Value Emitter::computeConcat(nn::ConcatOp op, ArrayRef<Value> index) {
  int64_t axis = op.getAxis();
  std::function<Value(size_t, Value)> part = [&](size_t i, Value offset) -> Value {
    Value operand = op.getInputs()[i];
    Index own(index.begin(), index.end());
    own[axis] = sub(index[axis], offset);
    if (i + 1 == op.getInputs().size())
      return element(operand, own);
    Value end = add(offset, size(operand, axis));
    return ifElse(
        compare(arith::CmpIPredicate::slt, index[axis], end), [&] { return element(operand, own); },
        [&] { return part(i + 1, end); });
  };
  return part(0, i64(0));
}

Value Emitter::computeMovement(Operation *op, ArrayRef<Value> index) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::TransposeOp transpose) {
        Index source(index.size());
        for (auto [i, p] : llvm::enumerate(transpose.getPerm()))
          source[p] = index[i];
        return element(transpose.getInput(), source);
      })
      .Case([&](nn::ReshapeOp reshape) {
        return element(reshape.getInput(),
                       reshapeIndex(index, nn::getDims(reshape.getResult()), nn::getDims(reshape.getInput())));
      })
      .Case([&](nn::BroadcastOp broadcast) { return broadcastElement(broadcast.getInput(), index); })
      .Case([&](nn::SliceOp slice) {
        Index source;
        for (size_t i = 0; i < index.size(); ++i)
          source.push_back(add(mul(index[i], i64(slice.getSteps()[i])), i64(slice.getStarts()[i])));
        return element(slice.getInput(), source);
      })
      .Case([&](nn::PadOp pad) { return computePad(pad, index); })
      .Case([&](nn::ConcatOp concat) { return computeConcat(concat, index); })
      .Case([&](nn::GatherOp gather) {
        int64_t axis = gather.getAxis(), batch = gather.getBatchDims();
        if (constantRows(gather)) {
          Index source(index.begin(), index.end());
          source[axis] = gatherIndex(gather, index[axis], /*inverse=*/false);
          return element(gather.getData(), source);
        }
        size_t indexRank = nn::getDims(gather.getIndices()).size() - batch;
        Index where(index.begin(), index.begin() + batch);
        where.append(index.begin() + axis, index.begin() + axis + indexRank);
        Value at = wrapIndex(element(gather.getIndices(), where), elementType(gather.getIndices()),
                             size(gather.getData(), axis));
        Index source(index.begin(), index.begin() + axis);
        source.push_back(at);
        source.append(index.begin() + axis + indexRank, index.end());
        return element(gather.getData(), source);
      })
      .Case([&](nn::GatherElementsOp gather) {
        Index source(index.begin(), index.end());
        source[gather.getAxis()] = wrapIndex(element(gather.getIndices(), index), elementType(gather.getIndices()),
                                             size(gather.getData(), gather.getAxis()));
        return element(gather.getData(), source);
      })
      .Case([&](nn::GatherNDOp gather) {
        nn::Dims indices = nn::getDims(gather.getIndices()), data = nn::getDims(gather.getData());
        int64_t batch = gather.getBatchDims(), tuple = *nn::getConstant(indices.back());
        Index where(index.begin(), index.begin() + indices.size() - 1);
        Index source(index.begin(), index.begin() + batch);
        for (int64_t i = 0; i < tuple; ++i) {
          Index component = where;
          component.push_back(i64(i));
          source.push_back(wrapIndex(element(gather.getIndices(), component), elementType(gather.getIndices()),
                                     size(data[batch + i])));
        }
        source.append(index.begin() + where.size(), index.end());
        return element(gather.getData(), source);
      })
      .Case([&](nn::ReverseSequenceOp reverse) {
        int64_t time = reverse.getTimeAxis();
        Type type = elementType(reverse.getLengths());
        Value length = convert(element(reverse.getLengths(), {index[reverse.getBatchAxis()]}), type, b.getI64Type());
        length = max(i64(0), min(length, size(reverse.getInput(), time)));
        Index source(index.begin(), index.end());
        Value reversed = sub(sub(length, i64(1)), index[time]);
        source[time] = select(compare(arith::CmpIPredicate::slt, index[time], length), reversed, index[time]);
        return element(reverse.getInput(), source);
      })
      .Case([&](nn::IotaOp iota) {
        return convert(index[iota.getAxis()], b.getI64Type(), elementType(iota.getResult()));
      });
}

} // namespace ajour::loops
