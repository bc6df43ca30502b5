//===- Resample.cpp - resize and grid_sample -----------------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using ajour::nn::CoordinateMode;
using ajour::nn::NearestMode;
using ajour::nn::ResizeMode;

namespace ajour::loops {

namespace {

/// Arithmetic in f32 that reads like formulas.
struct Real {
  Emitter &e;
  Value of(double value) { return e.constant(e.b.getF32Type(), value); }
  Value ofInt(Value i) { return arith::SIToFPOp::create(e.b, e.loc, e.b.getF32Type(), i); }
  Value toInt(Value x) { return arith::FPToSIOp::create(e.b, e.loc, e.b.getI64Type(), x); }
  Value add(Value a, Value c) { return e.b.createOrFold<arith::AddFOp>(e.loc, a, c); }
  Value sub(Value a, Value c) { return e.b.createOrFold<arith::SubFOp>(e.loc, a, c); }
  Value mul(Value a, Value c) { return e.b.createOrFold<arith::MulFOp>(e.loc, a, c); }
  Value div(Value a, Value c) { return e.b.createOrFold<arith::DivFOp>(e.loc, a, c); }
  Value floor(Value a) { return math::FloorOp::create(e.b, e.loc, a); }
  Value ceil(Value a) { return math::CeilOp::create(e.b, e.loc, a); }
  Value min(Value a, Value c) { return arith::MinNumFOp::create(e.b, e.loc, a, c); }
  Value max(Value a, Value c) { return arith::MaxNumFOp::create(e.b, e.loc, a, c); }
  Value less(Value a, Value c) { return arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, a, c); }
  Value greater(Value a, Value c) { return arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OGT, a, c); }

  /// Keys' cubic convolution weights of the four neighbours of a fraction t in [0, 1).
  std::array<Value, 4> cubic(Value t, double a) {
    auto near = [&](Value x) { // |x| <= 1
      return add(mul(mul(sub(mul(of(a + 2), x), of(a + 3)), x), x), of(1));
    };
    auto far = [&](Value x) { // 1 < |x| < 2
      return sub(mul(add(mul(sub(mul(of(a), x), of(5 * a)), x), of(8 * a)), x), of(4 * a));
    };
    return {far(add(t, of(1))), near(t), near(sub(of(1), t)), far(sub(of(2), t))};
  }
};

/// Neighbours of a coordinate along one dimension with their weights.
struct Taps {
  SmallVector<Value> indices; // clamped into the dimension
  SmallVector<Value> weights;
};

} // namespace

/// Follows onnx Resize's coordinate formulas; the scale is the given one, else the quotient of sizes.
Value Emitter::resizeCoordinate(nn::ResizeOp op, unsigned dim, Value index) {
  Real r{*this};
  Value in = r.ofInt(size(op.getInput(), dim)), out = r.ofInt(size(op.getResult(), dim));
  Value scale = op.getScales().empty() ? r.div(out, in) : r.of(op.getScales()[dim]);
  Value x = r.ofInt(index), half = r.of(0.5), one = r.of(1), zero = r.of(0);
  Value halfPixel = r.sub(r.div(r.add(x, half), scale), half);
  // The output length that a given scale asks for may be fractional.
  auto gaps = [&] { return r.max(r.sub(op.getScales().empty() ? out : r.mul(in, scale), one), one); };
  switch (op.getCoordinateMode()) {
  case CoordinateMode::half_pixel:
    return halfPixel;
  case CoordinateMode::pytorch_half_pixel:
    return select(r.greater(out, one), halfPixel, zero);
  case CoordinateMode::align_corners:
    return select(r.greater(out, one), r.div(r.mul(x, r.sub(in, one)), gaps()), zero);
  case CoordinateMode::asymmetric:
    return r.div(x, scale);
  case CoordinateMode::half_pixel_symmetric: {
    // Centre what is cut from the length.
    Value adjustment = r.div(out, r.mul(scale, in));
    Value offset = r.mul(r.div(in, r.of(2)), r.sub(one, adjustment));
    return r.add(offset, halfPixel);
  }
  case CoordinateMode::tf_half_pixel_for_nn:
    return r.div(r.add(x, half), scale);
  case CoordinateMode::tf_crop_and_resize: {
    size_t rank = nn::getDims(op.getInput()).size();
    double start = op.getRoi().empty() ? 0 : op.getRoi()[dim];
    double end = op.getRoi().empty() ? 1 : op.getRoi()[rank + dim];
    Value last = r.sub(in, one);
    Value many = r.add(r.mul(r.of(start), last),
                       r.div(r.mul(x, r.mul(r.of(end - start), last)), gaps()));
    return select(r.greater(out, one), many, r.mul(r.of(0.5 * (start + end)), last));
  }
  }
  llvm_unreachable("unknown coordinate mode");
}

static Taps nearestTaps(Emitter &e, NearestMode mode, Value x, Value size) {
  Real r{e};
  Value rounded;
  switch (mode) {
  case NearestMode::round_prefer_floor:
    rounded = r.ceil(r.sub(x, r.of(0.5)));
    break;
  case NearestMode::round_prefer_ceil:
    rounded = r.floor(r.add(x, r.of(0.5)));
    break;
  case NearestMode::floor:
    rounded = r.floor(x);
    break;
  case NearestMode::ceil:
    rounded = r.ceil(x);
    break;
  }
  Value i = e.max(e.i64(0), e.min(r.toInt(rounded), e.sub(size, e.i64(1))));
  return {{i}, {r.of(1)}};
}

static Taps linearTaps(Emitter &e, Value x, Value size) {
  Real r{e};
  Value last = r.ofInt(e.sub(size, e.i64(1)));
  x = r.max(r.of(0), r.min(x, last));
  Value low = r.floor(x);
  Value fraction = r.sub(x, low);
  Value i = r.toInt(low);
  Value next = e.min(e.add(i, e.i64(1)), e.sub(size, e.i64(1)));
  return {{i, next}, {r.sub(r.of(1), fraction), fraction}};
}

static Taps cubicTaps(Emitter &e, Value x, Value size, double a, bool excludeOutside) {
  Real r{e};
  Value low = r.floor(x);
  std::array<Value, 4> weights = r.cubic(r.sub(x, low), a);
  Value base = r.toInt(low);
  Taps taps;
  Value sum;
  for (int k = 0; k < 4; ++k) {
    Value i = e.add(base, e.i64(k - 1));
    Value weight = weights[k];
    if (excludeOutside)
      weight = e.select(e.inRange(i, size), weight, r.of(0));
    sum = sum ? r.add(sum, weight) : weight;
    taps.indices.push_back(e.max(e.i64(0), e.min(i, e.sub(size, e.i64(1)))));
    taps.weights.push_back(weight);
  }
  if (excludeOutside)
    for (Value &weight : taps.weights)
      weight = r.div(weight, sum);
  return taps;
}

Value Emitter::computeResize(nn::ResizeOp op, ArrayRef<Value> index) {
  Real r{*this};
  nn::Dims in = nn::getDims(op.getInput()), out = nn::getDims(op.getResult());
  Type type = elementType(op.getInput());
  SmallVector<Taps> taps(index.size());
  Value outside;
  bool isExact = op.getMode() == ResizeMode::nearest;
  for (size_t i = 0; i < index.size(); ++i) {
    bool isIdentity = in[i] == out[i] && op.getCoordinateMode() != CoordinateMode::tf_crop_and_resize &&
                      (op.getScales().empty() || op.getScales()[i] == 1);
    if (isIdentity) {
      taps[i] = {{index[i]}, {r.of(1)}};
      continue;
    }
    Value extent = size(in[i]);
    Value x = resizeCoordinate(op, i, index[i]);
    if (op.getCoordinateMode() == CoordinateMode::tf_crop_and_resize) {
      Value beyond = b.createOrFold<arith::OrIOp>(loc, r.less(x, r.of(0)),
                                                  r.greater(x, r.ofInt(sub(extent, i64(1)))));
      outside = outside ? b.createOrFold<arith::OrIOp>(loc, outside, beyond) : beyond;
    }
    if (op.getMode() == ResizeMode::nearest)
      taps[i] = nearestTaps(*this, op.getNearestMode(), x, extent);
    else if (op.getMode() == ResizeMode::linear)
      taps[i] = linearTaps(*this, x, extent);
    else
      taps[i] = cubicTaps(*this, x, extent, op.getCubicA().convertToFloat(), op.getExcludeOutside());
  }
  Index source(index.size());
  Value result;
  if (isExact) {
    for (size_t i = 0; i < index.size(); ++i)
      source[i] = taps[i].indices[0];
    result = element(op.getInput(), source);
  } else {
    std::function<Value(size_t)> blend = [&](size_t dim) -> Value {
      if (dim == taps.size())
        return toFloat(element(op.getInput(), source), type);
      Value sum;
      for (auto [i, weight] : llvm::zip_equal(taps[dim].indices, taps[dim].weights)) {
        source[dim] = i;
        Value inner = blend(dim + 1);
        Value term = taps[dim].indices.size() == 1 ? inner : r.mul(inner, convert(weight, b.getF32Type(), inner.getType()));
        sum = sum ? r.add(sum, term) : term;
      }
      return sum;
    };
    result = blend(0);
    if (isa<IntegerType>(type)) {
      auto [low, high] = nn::integerRange(type);
      result = saturate(math::RoundEvenOp::create(b, loc, result), type, low, high);
    } else {
      result = convert(result, type.isF64() ? type : Type(b.getF32Type()), type);
    }
  }
  if (outside)
    result = select(outside, constant(scalarType(type), op.getExtrapolation().convertToFloat()), result);
  return result;
}

/// Brings a coordinate back into [low, high] by reflection at both ends.
static Value reflect(Emitter &e, Value x, Value low, Value high) {
  Real r{e};
  Value range = r.max(r.sub(high, low), r.of(1e-30));
  Value distance = math::AbsFOp::create(e.b, e.loc, r.sub(x, low));
  Value turns = r.floor(r.div(distance, range));
  Value rest = r.sub(distance, r.mul(turns, range));
  Value halfTurns = r.floor(r.mul(turns, r.of(0.5)));
  Value isOdd = r.greater(r.sub(turns, r.mul(halfTurns, r.of(2))), r.of(0.5));
  return e.select(isOdd, r.sub(high, rest), r.add(low, rest));
}

Value Emitter::computeGridSample(nn::GridSampleOp op, ArrayRef<Value> index) {
  Real r{*this};
  Type type = elementType(op.getInput());
  Value n = index[0], c = index[3];
  bool align = op.getAlignCorners();
  // x is component 0 and runs along the width (dimension 2), y along the height (dimension 1).
  auto coordinate = [&](int component, unsigned dim) {
    Value g = toFloat(element(op.getGrid(), {n, index[1], index[2], i64(component)}), elementType(op.getGrid()));
    if (type.isF64())
      g = convert(g, g.getType(), b.getF32Type());
    Value extent = r.ofInt(size(op.getInput(), dim));
    Value unit = r.mul(r.add(g, r.of(1)), r.of(0.5));
    return align ? r.mul(unit, r.sub(extent, r.of(1))) : r.sub(r.mul(unit, extent), r.of(0.5));
  };
  // What a neighbour outside reads depends on the padding.
  auto place = [&](Value x, unsigned dim) -> Value {
    Value extent = r.ofInt(size(op.getInput(), dim));
    Value last = r.sub(extent, r.of(1));
    if (op.getPadding() == nn::SamplePadding::reflection)
      x = align ? reflect(*this, x, r.of(0), last) : reflect(*this, x, r.of(-0.5), r.sub(extent, r.of(0.5)));
    if (op.getPadding() == nn::SamplePadding::zeros)
      return x;
    return r.max(r.of(0), r.min(x, last));
  };
  auto read = [&](Value yReal, Value xReal) -> Value {
    Value y = r.toInt(yReal), x = r.toInt(xReal);
    Value height = size(op.getInput(), 1), width = size(op.getInput(), 2);
    Value yIn = max(i64(0), min(y, sub(height, i64(1)))), xIn = max(i64(0), min(x, sub(width, i64(1))));
    Value pixel = toFloat(element(op.getInput(), {n, yIn, xIn, c}), type);
    Value isInside = logicalAnd(inRange(y, height), inRange(x, width));
    return select(isInside, pixel, constant(pixel.getType(), 0));
  };
  // Far-off coordinates are limited so that they fit an integer; NaN goes to the low side.
  auto tame = [&](Value x) { return r.min(r.of(1e9), r.max(x, r.of(-1e9))); };
  Value x = tame(coordinate(0, 2)), y = tame(coordinate(1, 1));
  Type real = type.isF64() ? type : Type(b.getF32Type());
  Value result;
  if (op.getMode() == ResizeMode::nearest) {
    Value xr = math::RoundEvenOp::create(b, loc, place(x, 2)), yr = math::RoundEvenOp::create(b, loc, place(y, 1));
    result = read(yr, xr);
  } else if (op.getMode() == ResizeMode::linear) {
    x = place(x, 2);
    y = place(y, 1);
    Value x0 = r.floor(x), y0 = r.floor(y), fx = r.sub(x, x0), fy = r.sub(y, y0);
    Value x1 = r.add(x0, r.of(1)), y1 = r.add(y0, r.of(1));
    Value gx = r.sub(r.of(1), fx), gy = r.sub(r.of(1), fy);
    auto weighted = [&](Value yy, Value xx, Value wy, Value wx) {
      return r.mul(read(yy, xx), convert(r.mul(wy, wx), b.getF32Type(), real));
    };
    result = r.add(r.add(weighted(y0, x0, gy, gx), weighted(y0, x1, gy, fx)),
                   r.add(weighted(y1, x0, fy, gx), weighted(y1, x1, fy, fx)));
  } else {
    Value x0 = r.floor(x), y0 = r.floor(y);
    std::array<Value, 4> wx = r.cubic(r.sub(x, x0), -0.75), wy = r.cubic(r.sub(y, y0), -0.75);
    for (int j = 0; j < 4; ++j) {
      Value row;
      for (int i = 0; i < 4; ++i) {
        Value xx = place(r.add(x0, r.of(i - 1)), 2), yy = place(r.add(y0, r.of(j - 1)), 1);
        Value term = r.mul(read(yy, xx), convert(wx[i], b.getF32Type(), real));
        row = row ? r.add(row, term) : term;
      }
      Value term = r.mul(row, convert(wy[j], b.getF32Type(), real));
      result = result ? r.add(result, term) : term;
    }
  }
  return convert(result, real, type);
}

} // namespace ajour::loops
