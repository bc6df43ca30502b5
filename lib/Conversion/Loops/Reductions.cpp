//===- Reductions.cpp - dispatches whose root reduces, sorts or scatters --------------===//
#include "Lowering.h"
#include "Windows.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ajour::loops {

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

void DispatchLowering::lowerReduce(nn::ReduceOp op) {
  nn::Dims in = nn::getDims(op.getInput()), out = nn::getDims(op.getResult());
  Type element = Emitter::elementType(op.getInput()), acc = accumulatorType(element);
  nn::Dims kept, reduced;
  SmallVector<bool> isReduced(in.size(), false);
  for (int64_t axis : op.getAxes())
    isReduced[axis] = true;
  for (size_t i = 0; i < in.size(); ++i)
    (isReduced[i] ? reduced : kept).push_back(in[i]);
  bool lanes = !in.empty() && !isReduced.back();

  auto inputIndex = [&](ArrayRef<Value> keptIndex, ArrayRef<Value> reducedIndex) {
    Index index;
    size_t k = 0, r = 0;
    for (bool isRed : isReduced)
      index.push_back(isRed ? reducedIndex[r++] : keptIndex[k++]);
    return index;
  };
  auto outputIndex = [&](ArrayRef<Value> keptIndex) {
    if (!op.getKeepDims())
      return Index(keptIndex.begin(), keptIndex.end());
    Index index;
    size_t k = 0;
    for (bool isRed : isReduced)
      index.push_back(isRed ? e->i64(0) : keptIndex[k++]);
    return index;
  };
  auto input = [&](ArrayRef<Value> index) { return e->convert(e->element(op.getInput(), index), element, acc); };
  auto finish = [&](Value value) {
    if (op.getKind() == nn::ReduceKind::mean) {
      Value count = e->product(reduced);
      Value isEmpty = e->compare(arith::CmpIPredicate::eq, count, e->i64(0));
      value = e->select(isEmpty, e->constant(value.getType(), 0),
                        meanOf(*e, value, e->max(count, e->i64(1)), acc));
    }
    return e->convert(value, acc, element);
  };

  if (!lanes) {
    items(nn::numElements(kept, context), [&](Value item) {
      Index keptIndex = e->delinearize(item, kept);
      Index reducedIndex;
      std::function<Value(size_t, Value)> level = [&](size_t i, Value carried) -> Value {
        if (i == reduced.size())
          return e->combine(op.getKind(), carried, input(inputIndex(keptIndex, reducedIndex)), acc);
        return e->reduce(e->i64(0), e->size(reduced[i]), {carried}, [&](Value iv, ArrayRef<Value> args) -> Index {
          reducedIndex.push_back(iv);
          Value next = level(i + 1, args[0]);
          reducedIndex.pop_back();
          return {next};
        })[0];
      };
      Value total = finish(level(0, e->neutral(op.getKind(), acc)));
      e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return total; });
      storeResults(outputIndex(keptIndex));
    });
    return;
  }

  nn::Dims outer(kept.begin(), kept.end() - 1);
  AffineExpr blocks = kept.back().ceilDiv(laneCount);
  items(nn::numElements(outer, context) * blocks, [&](Value item) {
    Value lanesTotal = e->size(kept.back());
    Value first = e->mul(e->rem(item, e->size(blocks)), e->i64(laneCount));
    Value count = e->min(e->i64(laneCount), e->sub(lanesTotal, first));
    Index outerIndex = e->delinearize(e->div(item, e->size(blocks)), outer);
    Value sums = e->frameArray(acc, laneCount);
    e->loop(e->i64(0), count, [&](Value lane) { e->storeAt(e->neutral(op.getKind(), acc), sums, lane, acc); });
    e->nest(reduced, [&](ArrayRef<Value> reducedIndex) {
      e->loop(e->i64(0), count, [&](Value lane) {
        Index keptIndex = outerIndex;
        keptIndex.push_back(e->add(first, lane));
        Value x = input(inputIndex(keptIndex, reducedIndex));
        e->storeAt(e->combine(op.getKind(), e->loadAt(sums, lane, acc), x, acc), sums, lane, acc);
      });
    });
    e->loop(e->i64(0), count, [&](Value lane) {
      Index keptIndex = outerIndex;
      keptIndex.push_back(e->add(first, lane));
      Value total = finish(e->loadAt(sums, lane, acc));
      e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return total; });
      storeResults(outputIndex(keptIndex));
    });
  });
}

//===----------------------------------------------------------------------===//
// arg_reduce
//===----------------------------------------------------------------------===//

void DispatchLowering::lowerArgReduce(nn::ArgReduceOp op) {
  nn::Dims in = nn::getDims(op.getInput());
  size_t axis = op.getAxis();
  Type element = Emitter::elementType(op.getInput());
  nn::Dims kept(in);
  kept.erase(kept.begin() + axis);
  items(nn::numElements(kept, context), [&](Value item) {
    Index keptIndex = e->delinearize(item, kept);
    auto read = [&](Value position) {
      Index index = keptIndex;
      index.insert(index.begin() + axis, position);
      return e->element(op.getInput(), index);
    };
    bool isMax = op.getKind() == nn::ArgKind::max;
    nn::CompareKind better = isMax ? (op.getSelectLast() ? nn::CompareKind::ge : nn::CompareKind::gt)
                                   : (op.getSelectLast() ? nn::CompareKind::le : nn::CompareKind::lt);
    Index best = e->reduce(e->i64(1), e->size(in[axis]), {read(e->i64(0)), e->i64(0)},
                           [&](Value iv, ArrayRef<Value> carried) -> Index {
                             Value x = read(iv);
                             Value wins = e->compareElements(better, x, carried[0], element);
                             return {e->select(wins, x, carried[0]), e->select(wins, iv, carried[1])};
                           });
    e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return best[1]; });
    Index index = keptIndex;
    if (op.getKeepDims())
      index.insert(index.begin() + axis, e->i64(0));
    storeResults(index);
  });
}

//===----------------------------------------------------------------------===//
// softmax, layer_norm
//===----------------------------------------------------------------------===//

void DispatchLowering::lowerSoftmax(nn::SoftmaxOp op) {
  nn::Dims dims = nn::getDims(op.getInput());
  size_t axis = op.getAxis();
  Type element = Emitter::elementType(op.getInput());
  Type real = element.isF64() ? element : Type(Float32Type::get(context));
  nn::Dims kept(dims);
  kept.erase(kept.begin() + axis);
  lowered.scratchBytes = dims[axis] * nn::elementBytes(real);
  items(nn::numElements(kept, context), [&](Value item) {
    Index keptIndex = e->delinearize(item, kept);
    Value size = e->size(dims[axis]), zero = e->i64(0);
    auto at = [&](Value position) {
      Index index = keptIndex;
      index.insert(index.begin() + axis, position);
      return index;
    };
    Value highest = e->reduce(zero, size, {e->neutral(nn::ReduceKind::max, real)},
                              [&](Value iv, ArrayRef<Value> carried) -> Index {
                                Value x = e->toFloat(e->element(op.getInput(), at(iv)), element);
                                e->storeAt(x, scratch, iv, real);
                                return {e->combine(nn::ReduceKind::max, carried[0], x, real)};
                              })[0];
    Value sum = e->reduce(zero, size, {e->constant(real, 0)}, [&](Value iv, ArrayRef<Value> carried) -> Index {
      Value shifted = arith::SubFOp::create(e->b, e->loc, e->loadAt(scratch, iv, real), highest);
      Value power = math::ExpOp::create(e->b, e->loc, shifted);
      e->storeAt(op.getLog() ? shifted : power, scratch, iv, real);
      return {e->combine(nn::ReduceKind::sum, carried[0], power, real)};
    })[0];
    Value scale = op.getLog() ? math::LogOp::create(e->b, e->loc, sum).getResult()
                              : arith::DivFOp::create(e->b, e->loc, e->constant(real, 1), sum).getResult();
    e->loop(zero, size, [&](Value iv) {
      Value x = e->loadAt(scratch, iv, real);
      Value y = op.getLog() ? arith::SubFOp::create(e->b, e->loc, x, scale).getResult()
                            : arith::MulFOp::create(e->b, e->loc, x, scale).getResult();
      y = e->convert(y, real, element);
      e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return y; });
      storeResults(at(iv));
    });
  });
}

void DispatchLowering::lowerLayerNorm(nn::LayerNormOp op) {
  nn::Dims dims = nn::getDims(op.getInput());
  size_t axis = op.getAxis();
  Type element = Emitter::elementType(op.getInput());
  Type real = element.isF64() ? element : Type(Float32Type::get(context));
  nn::Dims outer(dims.begin(), dims.begin() + axis), inner(dims.begin() + axis, dims.end());
  AffineExpr width = nn::numElements(inner, context);
  lowered.scratchBytes = width * nn::elementBytes(real);
  items(nn::numElements(outer, context), [&](Value item) {
    OpBuilder &b = e->b;
    Location loc = e->loc;
    Index prefix = e->delinearize(item, outer);
    Value zero = e->i64(0), size = e->size(width);
    auto at = [&](Value position) {
      Index index = prefix;
      Index rest = e->delinearize(position, inner);
      index.append(rest.begin(), rest.end());
      return index;
    };
    Value count = arith::SIToFPOp::create(b, loc, real, size);
    Value sum = e->reduce(zero, size, {e->constant(real, 0)}, [&](Value iv, ArrayRef<Value> carried) -> Index {
      Value x = e->toFloat(e->element(op.getInput(), at(iv)), element);
      e->storeAt(x, scratch, iv, real);
      return {e->combine(nn::ReduceKind::sum, carried[0], x, real)};
    })[0];
    Value mean = op.getRms() ? e->constant(real, 0) : arith::DivFOp::create(b, loc, sum, count).getResult();
    Value squares = e->reduce(zero, size, {e->constant(real, 0)}, [&](Value iv, ArrayRef<Value> carried) -> Index {
      Value centred = arith::SubFOp::create(b, loc, e->loadAt(scratch, iv, real), mean);
      return {e->combine(nn::ReduceKind::sum, carried[0], arith::MulFOp::create(b, loc, centred, centred), real)};
    })[0];
    Value variance = arith::DivFOp::create(b, loc, squares, count);
    Value shifted = arith::AddFOp::create(b, loc, variance, e->constant(real, op.getEpsilon().convertToFloat()));
    Value factor = arith::DivFOp::create(b, loc, e->constant(real, 1), math::SqrtOp::create(b, loc, shifted));
    e->loop(zero, size, [&](Value iv) {
      Index index = at(iv);
      Value y = arith::SubFOp::create(b, loc, e->loadAt(scratch, iv, real), mean);
      y = arith::MulFOp::create(b, loc, y, factor);
      auto parameter = [&](Value tensor) {
        nn::Dims own = nn::getDims(tensor);
        Index position;
        for (size_t i = 0; i < own.size(); ++i)
          position.push_back(nn::getConstant(own[i]) == 1 ? e->i64(0) : index[index.size() - own.size() + i]);
        return e->toFloat(e->element(tensor, position), Emitter::elementType(tensor));
      };
      if (op.getScale())
        y = arith::MulFOp::create(b, loc, y, parameter(op.getScale()));
      if (op.getBias())
        y = arith::AddFOp::create(b, loc, y, parameter(op.getBias()));
      y = e->convert(y, real, element);
      e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return y; });
      storeResults(index);
    });
  });
}

//===----------------------------------------------------------------------===//
// cumsum, top_k, scatter
//===----------------------------------------------------------------------===//

void DispatchLowering::lowerCumsum(nn::CumsumOp op) {
  nn::Dims dims = nn::getDims(op.getInput());
  size_t axis = op.getAxis();
  Type element = Emitter::elementType(op.getInput()), acc = accumulatorType(element);
  nn::Dims kept(dims);
  kept.erase(kept.begin() + axis);
  items(nn::numElements(kept, context), [&](Value item) {
    Index keptIndex = e->delinearize(item, kept);
    Value size = e->size(dims[axis]);
    e->reduce(e->i64(0), size, {e->constant(e->scalarType(acc), 0)},
              [&](Value iv, ArrayRef<Value> carried) -> Index {
                Value position = op.getReverse() ? e->sub(e->sub(size, e->i64(1)), iv) : iv;
                Index index = keptIndex;
                index.insert(index.begin() + axis, position);
                Value x = e->convert(e->element(op.getInput(), index), element, acc);
                Value next = isa<FloatType>(acc) ? arith::AddFOp::create(e->b, e->loc, carried[0], x).getResult()
                                                 : e->add(carried[0], x);
                Value value = e->convert(op.getExclusive() ? carried[0] : next, acc, element);
                e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return value; });
                storeResults(index);
                return {next};
              });
  });
}

/// k rounds of selection; scratch marks what has been taken. Results are the root's own values: a
/// dispatch with top_k has no epilogue.
void DispatchLowering::lowerTopK(nn::TopKOp op) {
  nn::Dims dims = nn::getDims(op.getInput());
  size_t axis = op.getAxis();
  Type element = Emitter::elementType(op.getInput()), flag = IntegerType::get(context, 8);
  nn::Dims kept(dims);
  kept.erase(kept.begin() + axis);
  lowered.scratchBytes = dims[axis];
  auto ret = cast<func::ReturnOp>(callee.getBody().front().getTerminator());
  items(nn::numElements(kept, context), [&](Value item) {
    Index keptIndex = e->delinearize(item, kept);
    Value size = e->size(dims[axis]), zero = e->i64(0);
    auto at = [&](Value position) {
      Index index = keptIndex;
      index.insert(index.begin() + axis, position);
      return index;
    };
    // NaN is above every other value.
    auto precedes = [&](Value x, Value other) -> Value {
      Value less = op.getSmallest() ? e->compareElements(nn::CompareKind::lt, x, other, element)
                                    : e->compareElements(nn::CompareKind::gt, x, other, element);
      if (!isa<FloatType>(element))
        return less;
      Value high = op.getSmallest() ? other : x, low = op.getSmallest() ? x : other;
      Value isNan = arith::CmpFOp::create(e->b, e->loc, arith::CmpFPredicate::UNO, high, high);
      Value isNumber = arith::CmpFOp::create(e->b, e->loc, arith::CmpFPredicate::ORD, low, low);
      return e->b.createOrFold<arith::OrIOp>(e->loc, less, e->logicalAnd(isNan, isNumber));
    };
    e->loop(zero, size, [&](Value iv) { e->storeAt(e->integer(flag, 0), scratch, iv, flag); });
    e->loop(zero, e->i64(op.getK()), [&](Value round) {
      Value none = e->i64(-1);
      Index best = e->reduce(zero, size, {e->constant(e->scalarType(element), 0), none},
                             [&](Value iv, ArrayRef<Value> carried) -> Index {
                               Value x = e->element(op.getInput(), at(iv));
                               Value taken = e->compare(arith::CmpIPredicate::ne, e->loadAt(scratch, iv, flag),
                                                        e->integer(flag, 0));
                               Value isFirst = e->compare(arith::CmpIPredicate::eq, carried[1], none);
                               Value better = precedes(x, carried[0]);
                               Value wins = e->select(taken, e->integer(e->b.getI1Type(), 0),
                                                      e->b.createOrFold<arith::OrIOp>(e->loc, isFirst, better));
                               return {e->select(wins, x, carried[0]), e->select(wins, iv, carried[1])};
                             });
      e->storeAt(e->integer(flag, 1), scratch, best[1], flag);
      Index index = at(round);
      for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
        bool isValue = value == op.getValues();
        e->storeAt(isValue ? best[0] : best[1], operandPointer(OperandSpec::Result, i),
                   e->linearize(index, nn::getDims(value)), Emitter::elementType(value));
      }
    });
  });
}

/// A copy of the data, then the updates one after the other: their order decides. Updates of whole rows are divided along the rows' first
/// dimension; else there is one item.
void DispatchLowering::lowerScatter(Operation *op) {
  Value data = op->getOperand(0), indices = op->getOperand(1), updates = op->getOperand(2);
  nn::Dims dims = nn::getDims(data), updateDims = nn::getDims(updates), indexDims = nn::getDims(indices);
  Type element = Emitter::elementType(data);
  auto elements = dyn_cast<nn::ScatterElementsOp>(op);
  nn::ScatterKind kind = elements ? elements.getKind() : cast<nn::ScatterNDOp>(op).getKind();
  Value target = operandPointer(OperandSpec::Result, 0);
  size_t prefix = elements ? updateDims.size() : indexDims.size() - 1;
  int64_t tuple = elements ? int64_t(dims.size()) : *nn::getConstant(indexDims.back());
  bool divides = prefix < updateDims.size();
  items(divides ? updateDims[prefix] : getAffineConstantExpr(1, context), [&](Value item) {
    // Indices of a shape whose dimension `at` is the item's.
    auto walk = [&](const nn::Dims &shape, size_t at, function_ref<void(ArrayRef<Value>)> body) {
      nn::Dims walked(shape);
      if (divides)
        walked.erase(walked.begin() + at);
      e->nest(walked, [&](ArrayRef<Value> part) {
        Index index(part.begin(), part.end());
        if (divides)
          index.insert(index.begin() + at, item);
        body(index);
      });
    };
    // In place, the elements that stay are there already.
    if (!inPlaceArgument(callee))
      walk(dims, tuple, [&](ArrayRef<Value> index) {
        e->storeAt(e->element(data, index), target, e->linearize(index, dims), element);
      });
    walk(updateDims, prefix, [&](ArrayRef<Value> index) {
      Index where;
      if (elements) {
        where.assign(index.begin(), index.end());
        size_t axis = elements.getAxis();
        where[axis] = e->wrapIndex(e->element(indices, index), Emitter::elementType(indices), e->size(dims[axis]));
      } else {
        for (int64_t i = 0; i < tuple; ++i) {
          Index component(index.begin(), index.begin() + prefix);
          component.push_back(e->i64(i));
          where.push_back(e->wrapIndex(e->element(indices, component), Emitter::elementType(indices),
                                       e->size(dims[i])));
        }
        where.append(index.begin() + prefix, index.end());
      }
      Value position = e->linearize(where, dims);
      Value update = e->element(updates, index);
      static const nn::BinaryKind kinds[] = {nn::BinaryKind::add, nn::BinaryKind::add, nn::BinaryKind::mul,
                                             nn::BinaryKind::max, nn::BinaryKind::min};
      if (kind != nn::ScatterKind::set)
        update = e->binary(kinds[size_t(kind)], e->loadAt(target, position, element), update, element);
      e->storeAt(update, target, position, element);
    });
  });
}

} // namespace ajour::loops
