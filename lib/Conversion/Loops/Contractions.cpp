//===- Contractions.cpp - products in their general form ---------------------------===//
//
// What no micro-kernel serves: one element at a time with the reduction inside. Right for every shape and
// element type; the forms that matter for speed are in Gemm.cpp and Depthwise.cpp.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ajour::loops {

static Type resultElement(Operation *op) { return Emitter::elementType(op->getResult(0)); }

/// The type that products are added in.
Type DispatchLowering::accumulatorOf(Operation *op) {
  Type type = resultElement(op);
  return type.isF16() || type.isBF16() ? Float32Type::get(op->getContext()) : type;
}

Value DispatchLowering::rhsZeroPoint(ArrayRef<int32_t> zeroPoints, Value channel) {
  if (zeroPoints.empty())
    return e->i32(0);
  if (llvm::all_equal(zeroPoints))
    return e->i32(zeroPoints[0]);
  return e->loadAt(e->table(zeroPoints), channel, e->b.getI32Type());
}

Value DispatchLowering::product(Value acc, Value lhs, Value rhs, Type lhsType, Type rhsType, int32_t lhsZeroPoint,
                                Value rhsZero, Type accType) {
  OpBuilder &b = e->b;
  if (isa<FloatType>(accType)) {
    auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
    Value term = arith::MulFOp::create(b, e->loc, e->convert(lhs, lhsType, accType), e->convert(rhs, rhsType, accType),
                                       flags);
    return arith::AddFOp::create(b, e->loc, acc, term, flags);
  }
  Value x = e->sub(e->convert(lhs, lhsType, accType), e->integer(accType, lhsZeroPoint));
  Value w = e->sub(e->convert(rhs, rhsType, accType), e->convert(rhsZero, b.getI32Type(), accType));
  return e->add(acc, e->mul(x, w));
}

void DispatchLowering::bindContraction(Operation *root) {
  llvm::TypeSwitch<Operation *>(root)
      .Case([&](nn::ConvOp op) {
        e->bindElement(op.getResult(), [this, op](ArrayRef<Value> index) { return convElement(op, index); });
      })
      .Case([&](nn::ConvTransposeOp op) {
        e->bindElement(op.getResult(), [this, op](ArrayRef<Value> index) { return convTransposeElement(op, index); });
      })
      .Case([&](nn::MatmulOp op) {
        e->bindElement(op.getResult(), [this, op](ArrayRef<Value> index) { return matmulElement(op, index); });
      })
      .Case([&](nn::ExpertMatmulOp op) {
        e->bindElement(op.getResult(), [this, op](ArrayRef<Value> index) { return expertElement(op, index); });
      })
      .Default([](Operation *op) {
        llvm::report_fatal_error(llvm::Twine("no code for ") + op->getName().getStringRef());
      });
}

/// The sum over a window and the group's channels. `inputAt(dim, tap)` gives the input coordinate and whether
/// it exists.
static Value windowSum(Emitter &e, const nn::Dims &window, Value initial,
                       function_ref<std::pair<Value, Value>(size_t, Value)> inputAt,
                       function_ref<Value(ArrayRef<Value> taps, ArrayRef<Value> coordinates, Value carried)> channels) {
  Index taps, coordinates;
  std::function<Value(size_t, Value)> level = [&](size_t i, Value carried) -> Value {
    if (i == window.size())
      return channels(taps, coordinates, carried);
    return e.reduce(e.i64(0), e.size(window[i]), {carried}, [&](Value tap, ArrayRef<Value> args) -> Index {
      auto [coordinate, exists] = inputAt(i, tap);
      Value next = e.ifElse(
          exists,
          [&]() -> Value {
            taps.push_back(tap);
            coordinates.push_back(coordinate);
            Value inner = level(i + 1, args[0]);
            taps.pop_back();
            coordinates.pop_back();
            return inner;
          },
          [&] { return args[0]; });
      return {next};
    })[0];
  };
  return level(0, initial);
}

/// acc + bias in the result's type.
Value DispatchLowering::addBias(Value acc, Value bias, Value channel, Type accType, Type result) {
  if (bias) {
    Value value = e->convert(e->element(bias, {channel}), Emitter::elementType(bias), accType);
    acc = isa<FloatType>(accType) ? arith::AddFOp::create(e->b, e->loc, acc, value).getResult() : e->add(acc, value);
  }
  return e->convert(acc, accType, result);
}

/// One element of a convolution of either kind, which differ in the input coordinate that a tap reads: see windowSum.
template <typename Op>
Value DispatchLowering::windowedElement(Op op, ArrayRef<Value> index,
                                        function_ref<std::pair<Value, Value>(size_t, Value)> inputAt) {
  nn::Dims filter = nn::getDims(op.getFilter());
  nn::Dims window(filter.begin() + 1, filter.end() - 1);
  Type acc = accumulatorOf(op), lhsType = Emitter::elementType(op.getInput()),
       rhsType = Emitter::elementType(op.getFilter());
  Value o = index.back();
  int64_t groups = op.getGroups();
  Value perGroup = e->size(filter.back());
  Value firstChannel =
      groups == 1 ? e->i64(0) : e->mul(e->div(o, e->i64(*nn::getConstant(filter[0]) / groups)), perGroup);
  Value zero = rhsZeroPoint(op.getRhsZeroPoints(), o);
  auto channels = [&](ArrayRef<Value> taps, ArrayRef<Value> coordinates, Value carried) {
    return e->reduce(e->i64(0), perGroup, {carried}, [&](Value c, ArrayRef<Value> args) -> Index {
      Index x = {index[0]}, w = {o};
      x.append(coordinates.begin(), coordinates.end());
      x.push_back(e->add(firstChannel, c));
      w.append(taps.begin(), taps.end());
      w.push_back(c);
      return {product(args[0], e->element(op.getInput(), x), e->element(op.getFilter(), w), lhsType, rhsType,
                      op.getLhsZeroPoint(), zero, acc)};
    })[0];
  };
  Value sum = windowSum(*e, window, e->constant(acc, 0), inputAt, channels);
  return addBias(sum, op.getBias(), o, acc, resultElement(op));
}

Value DispatchLowering::convElement(nn::ConvOp op, ArrayRef<Value> index) {
  nn::Dims in = nn::getDims(op.getInput());
  return windowedElement(op, index, [&](size_t i, Value tap) -> std::pair<Value, Value> {
    Value x = e->add(e->sub(e->mul(index[i + 1], e->i64(op.getStrides()[i])), e->i64(op.getPadsLow()[i])),
                     e->mul(tap, e->i64(op.getDilations()[i])));
    return {x, e->inRange(x, e->size(in[i + 1]))};
  });
}

Value DispatchLowering::convTransposeElement(nn::ConvTransposeOp op, ArrayRef<Value> index) {
  nn::Dims in = nn::getDims(op.getInput());
  return windowedElement(op, index, [&](size_t i, Value tap) -> std::pair<Value, Value> {
    // stride * x + dilation * tap - low = y
    Value scaled = e->sub(e->add(index[i + 1], e->i64(op.getPadsLow()[i])), e->mul(tap, e->i64(op.getDilations()[i])));
    int64_t stride = op.getStrides()[i];
    if (stride == 1)
      return {scaled, e->inRange(scaled, e->size(in[i + 1]))};
    Value isWhole = e->compare(arith::CmpIPredicate::eq, e->rem(scaled, e->i64(stride)), e->i64(0));
    Value notNegative = e->compare(arith::CmpIPredicate::sge, scaled, e->i64(0));
    Value x = e->div(scaled, e->i64(stride));
    return {x, e->logicalAnd(e->logicalAnd(notNegative, isWhole), e->inRange(x, e->size(in[i + 1])))};
  });
}

/// What elements [first, last) of a row of lhs are multiplied by before and after they are rounded to 8 bits.
std::pair<Value, Value> DispatchLowering::roundingOf(nn::MatmulOp op, Value first, Value last, function_ref<Value(Value)> lhsAt) {
  OpBuilder &b = e->b;
  Location loc = e->loc;
  Type f32 = b.getF32Type();
  Value largest = e->reduce(first, last, {e->constant(f32, 0)}, [&](Value k, ArrayRef<Value> carried) -> Index {
    Value next = arith::MaxNumFOp::create(b, loc, carried[0], math::AbsFOp::create(b, loc, lhsAt(k)));
    return {next};
  })[0];
  Value isNothing = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, largest, e->constant(f32, 0x1p-120));
  Value most = e->constant(f32, 127), scale = arith::DivFOp::create(b, loc, largest, most);
  Value factor = e->select(isNothing, e->constant(f32, 0), arith::DivFOp::create(b, loc, most, largest));
  if (op.getLhsHalfScales())
    scale = e->convert(e->convert(scale, f32, b.getF16Type()), b.getF16Type(), f32);
  return {factor, scale};
}

Value DispatchLowering::matmulElement(nn::MatmulOp op, ArrayRef<Value> index) {
  nn::Dims lhs = nn::getDims(op.getLhs()), rhs = nn::getDims(op.getRhs());
  Type acc = accumulatorOf(op), lhsType = Emitter::elementType(op.getLhs()), rhsType = Emitter::elementType(op.getRhs());
  Value m = index[index.size() - 2], n = index.back();
  Value zero = rhsZeroPoint(op.getRhsZeroPoints(), n);
  auto position = [&](const nn::Dims &dims, Value row, Value column) {
    Index own;
    for (size_t i = 0; i + 2 < dims.size(); ++i)
      own.push_back(nn::getConstant(dims[i]) == 1 ? e->i64(0) : index[index.size() - dims.size() + i]);
    own.push_back(row);
    own.push_back(column);
    return own;
  };
  auto lhsAt = [&](Value k) { return e->element(op.getLhs(), op.getTransposeLhs() ? position(lhs, k, m) : position(lhs, m, k)); };
  auto sumOver = [&](Value first, Value last, Value sum, function_ref<Value(Value)> round) {
    return e->reduce(first, last, {sum}, [&](Value k, ArrayRef<Value> carried) -> Index {
      Index r = op.getTransposeRhs() ? position(rhs, n, k) : position(rhs, k, n);
      return {product(carried[0], round(lhsAt(k)), e->element(op.getRhs(), r), lhsType, rhsType, op.getLhsZeroPoint(), zero, acc)};
    })[0];
  };
  Value depth = e->size(op.getTransposeLhs() ? lhs[lhs.size() - 2] : lhs.back()), sum = e->constant(acc, 0);
  if (op.getLhsGroup() == 0)
    sum = sumOver(e->i64(0), depth, sum, [](Value x) { return x; });
  else
    sum = e->reduce(e->i64(0), depth, {sum}, [&](Value first, ArrayRef<Value> carried) -> Index {
      Value last = e->min(depth, e->add(first, e->i64(op.getLhsGroup())));
      auto [factor, scale] = roundingOf(op, first, last, lhsAt);
      return {sumOver(first, last, carried[0], [&](Value x) -> Value {
        Value code = math::RoundEvenOp::create(e->b, e->loc, arith::MulFOp::create(e->b, e->loc, x, factor));
        return arith::MulFOp::create(e->b, e->loc, code, scale);
      })};
    }, op.getLhsGroup())[0];
  return addBias(sum, op.getBias(), n, acc, resultElement(op));
}

/// The same sum where weights are integers in groups along the depth: each group's is scaled as a whole, so that the inner loop has
/// neither division nor parameters.
std::optional<Value> DispatchLowering::groupedExpertSum(nn::ExpertMatmulOp op, ArrayRef<Value> row, ArrayRef<Value> column) {
  auto form = op.getRhs().getDefiningOp<nn::DequantizeGroupedOp>();
  nn::Dims lhs = nn::getDims(op.getLhs());
  std::optional<int64_t> depth = nn::getConstant(lhs[2]);
  bool isPlain = form && form->getNumOperands() == (form.getZeroPoints() ? 3u : 2u);
  if (!isPlain || form.getAxis() != 2 || !depth || *depth % int64_t(form.getGroup()) != 0 || !Emitter::elementType(op.getLhs()).isF32())
    return std::nullopt;
  OpBuilder &b = e->b;
  bool isOffset = form.getOffsets();
  Type f32 = b.getF32Type(), bytes = Emitter::elementType(form.getInput());
  auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  auto multiply = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, e->loc, x, y, flags); };
  auto sum = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, e->loc, x, y, flags); };
  int64_t group = form.getGroup();
  return e->reduce(e->i64(0), e->i64(*depth / group), {e->constant(f32, 0)}, [&](Value g, ArrayRef<Value> carried) -> Index {
    auto parameter = [&](Value tensor) {
      nn::Dims dims = nn::getDims(tensor);
      Index own = {column[0], column[1], g};
      for (size_t d = 0; d < own.size(); ++d)
        if (nn::getConstant(dims[d]) == 1)
          own[d] = e->i64(0);
      return e->convert(e->element(tensor, own), Emitter::elementType(tensor), f32);
    };
    Value zero = form.getZeroPoints() ? parameter(form.getZeroPoints()) : Value(), first = e->mul(g, e->i64(group));
    Index sums = e->reduce(e->i64(0), e->i64(group), {e->constant(f32, 0), e->constant(f32, 0)}, [&](Value i, ArrayRef<Value> part) -> Index {
      Value k = e->add(first, i), x = e->element(op.getLhs(), {row[0], row[1], k});
      Value weight = e->convert(e->element(form.getInput(), {column[0], column[1], k}), bytes, f32);
      return {sum(part[0], multiply(x, weight)), zero ? sum(part[1], x) : part[1]};
    });
    // (q - zero) scale, or q scale + offset.
    Value scale = parameter(form.getScales()), scaled = multiply(sums[0], scale);
    if (zero) {
      Value shift = multiply(sums[1], isOffset ? zero : multiply(zero, scale));
      scaled = isOffset ? sum(scaled, shift) : Value(arith::SubFOp::create(b, e->loc, scaled, shift, flags));
    }
    return {sum(carried[0], scaled)};
  })[0];
}

Value DispatchLowering::expertElement(nn::ExpertMatmulOp op, ArrayRef<Value> index) {
  nn::Dims lhs = nn::getDims(op.getLhs()), rhs = nn::getDims(op.getRhs());
  Type acc = accumulatorOf(op), type = Emitter::elementType(op.getLhs()), i64 = e->b.getI64Type();
  Value expert = e->convert(e->element(op.getExperts(), {index[0], index[1]}), Emitter::elementType(op.getExperts()), i64);
  expert = e->max(e->i64(0), e->min(expert, e->sub(e->size(rhs[0]), e->i64(1))));
  Value slot = nn::getConstant(lhs[1]) == 1 ? e->i64(0) : index[1];
  if (std::optional<Value> sum = groupedExpertSum(op, {index[0], slot}, {expert, index[2]}))
    return e->convert(*sum, acc, resultElement(op));
  Value sum = e->reduce(e->i64(0), e->size(lhs[2]), {e->constant(acc, 0)}, [&](Value k, ArrayRef<Value> carried) -> Index {
    return {product(carried[0], e->element(op.getLhs(), {index[0], slot, k}), e->element(op.getRhs(), {expert, index[2], k}),
                    type, type, 0, Value(), acc)};
  })[0];
  return e->convert(sum, acc, resultElement(op));
}

} // namespace ajour::loops
