//===- Norm.cpp - reductions and normalisations ----------------------------------===//
#include "Evaluation.h"
#include "ajour/Dialect/NN/Shapes.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

namespace {
/// A tensor seen as [outer, size, inner] around one axis. Element (o, i, k) stands at start(o, k) + i inner.
struct AxisView {
  AxisView(ArrayRef<int64_t> shape, int64_t axis)
      : outer(sizeOf(shape, 0, axis)), size(shape[axis]), inner(sizeOf(shape, axis + 1, shape.size())) {}
  /// Calls `function(line, start)` for each line along the axis.
  template <typename Function> void forEachLine(Function &&function) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k)
        function(o * inner + k, o * size * inner + k);
  }
  int64_t outer, size, inner;
};
} // namespace

//===----------------------------------------------------------------------===//
// reduce, arg_reduce
//===----------------------------------------------------------------------===//

/// For each element of the operand the offset of the result's element that it goes into, as strides.
static Shape reducedStrides(ReduceOp op, ArrayRef<int64_t> shape) {
  Shape kept(shape);
  for (int64_t axis : op.getAxes())
    kept[axis] = 1;
  return broadcastStrides(kept, shape);
}

/// Sums and products; sums divided by the count give the mean. In f32 they are rounded one after the other, as code computes them: models hang on
/// it that are simulated in f32 (ImportOptions::floatProducts).
template <typename T> static void reduceArithmetic(ReduceOp op, Evaluation &e) {
  using Acc = std::conditional_t<std::is_same_v<T, float>, float, Accumulator<T>>;
  bool isProduct = op.getKind() == ReduceKind::prod;
  const T *in = e.operand(0).as<T>();
  std::vector<Acc> sums(e.result().numElements(), isProduct ? Acc(1) : Acc(0));
  ArrayRef<int64_t> shape = e.operand(0).shape;
  forEachIndex<1>(shape, {reducedStrides(op, shape)}, [&](int64_t i, auto &offsets) {
    Acc x = static_cast<Acc>(static_cast<Compute<T>>(in[i])), &sum = sums[offsets[0]];
    sum = isProduct ? sum * x : sum + x;
  });
  int64_t count = 1;
  for (int64_t axis : op.getAxes())
    count *= shape[axis];
  bool divides = op.getKind() == ReduceKind::mean && count > 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if constexpr (isFloat<T>)
      e.result().as<T>()[i] = T(divides ? sums[i] / count : sums[i]);
    else {
      // An unsigned 64-bit sum must not be divided as a signed one.
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      e.result().as<T>()[i] = static_cast<T>(Wide(static_cast<T>(sums[i])) / Wide(divides ? count : 1));
    }
  }
}

template <typename T> static void reduceExtreme(ReduceOp op, Evaluation &e) {
  bool isMax = op.getKind() == ReduceKind::max;
  T *out = e.result().as<T>();
  std::fill_n(out, e.result().numElements(), isMax ? lowestOf<T>() : highestOf<T>());
  ArrayRef<int64_t> shape = e.operand(0).shape;
  forEachIndex<1>(shape, {reducedStrides(op, shape)}, [&](int64_t i, auto &offsets) {
    T &best = out[offsets[0]];
    best = applyBinary<T>(isMax ? BinaryKind::max : BinaryKind::min, best, e.operand(0).as<T>()[i]);
  });
}

LogicalResult evaluate(ReduceOp op, Evaluation &e) {
  bool isExtreme = op.getKind() == ReduceKind::max || op.getKind() == ReduceKind::min;
  return dispatch(e.operand(0).elementType, [&](auto tag) -> LogicalResult {
    using T = typename decltype(tag)::type;
    if (isExtreme)
      reduceExtreme<T>(op, e);
    else if constexpr (isBool<T>)
      return op.emitError() << "'" << stringifyReduceKind(op.getKind()) << "' has no meaning for bool";
    else
      reduceArithmetic<T>(op, e);
    return success();
  });
}

LogicalResult evaluate(ArgReduceOp op, Evaluation &e) {
  AxisView view(e.operand(0).shape, op.getAxis());
  if (view.size == 0)
    return op.emitError() << "axis " << op.getAxis() << " is empty, it has no extreme";
  bool isMax = op.getKind() == ArgKind::max, last = op.getSelectLast();
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    view.forEachLine([&](int64_t line, int64_t start) {
      const T *in = e.operand(0).as<T>() + start;
      int64_t best = 0;
      for (int64_t i = 1; i < view.size; ++i) {
        C x = in[i * view.inner], y = in[best * view.inner];
        if ((isMax ? x > y : x < y) || (last && x == y))
          best = i;
      }
      e.result().as<int64_t>()[line] = best;
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// softmax, layer_norm
//===----------------------------------------------------------------------===//

LogicalResult evaluate(SoftmaxOp op, Evaluation &e) {
  AxisView view(e.operand(0).shape, op.getAxis());
  dispatchFloat(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    view.forEachLine([&](int64_t, int64_t start) {
      const T *in = e.operand(0).as<T>() + start;
      T *out = e.result().as<T>() + start;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < view.size; ++i)
        most = std::max<double>(most, Compute<T>(in[i * view.inner]));
      for (int64_t i = 0; i < view.size; ++i)
        sum += std::exp(Compute<T>(in[i * view.inner]) - most);
      for (int64_t i = 0; i < view.size; ++i) {
        double x = Compute<T>(in[i * view.inner]) - most;
        out[i * view.inner] = T(op.getLog() ? x - std::log(sum) : std::exp(x) / sum);
      }
    });
  });
  return success();
}

/// Mean and variance of a row; with `rms` 0 and the mean of squares.
template <typename T> static std::pair<double, double> momentsOf(const T *row, int64_t size, bool rms) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < size && !rms; ++i)
    mean += Compute<T>(row[i]) / double(size);
  for (int64_t i = 0; i < size; ++i)
    variance += (Compute<T>(row[i]) - mean) * (Compute<T>(row[i]) - mean);
  return {mean, variance / size};
}

LogicalResult evaluate(LayerNormOp op, Evaluation &e) {
  ArrayRef<int64_t> shape = e.operand(0).shape;
  int64_t size = sizeOf(shape, op.getAxis(), shape.size()), rows = sizeOf(shape, 0, op.getAxis());
  const HostTensor *scale = op.getScale() ? &e.operand(1) : nullptr;
  const HostTensor *bias = op.getBias() ? &e.operand(scale ? 2 : 1) : nullptr;
  std::array<Shape, 2> strides{scale ? broadcastStrides(scale->shape, shape) : Shape(shape.size(), 0),
                               bias ? broadcastStrides(bias->shape, shape) : Shape(shape.size(), 0)};
  double epsilon = op.getEpsilon().convertToFloat();
  auto elementOf = [](const HostTensor *tensor, int64_t offset, double absent) -> double {
    if (!tensor)
      return absent;
    return dispatchFloat(tensor->elementType, [&](auto tag) -> double {
      using T = typename decltype(tag)::type;
      return Compute<T>(tensor->as<T>()[offset]);
    });
  };
  dispatchFloat(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *in = e.operand(0).as<T>();
    std::vector<std::pair<double, double>> moments;
    for (int64_t row = 0; row < rows && size > 0; ++row)
      moments.push_back(momentsOf(in + row * size, size, op.getRms()));
    forEachIndex<2>(shape, strides, [&](int64_t i, auto &offsets) {
      auto [mean, variance] = moments[i / size];
      double normal = (Compute<T>(in[i]) - mean) / std::sqrt(variance + epsilon);
      e.result().as<T>()[i] = T(normal * elementOf(scale, offsets[0], 1) + elementOf(bias, offsets[1], 0));
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// cumsum, top_k
//===----------------------------------------------------------------------===//

LogicalResult evaluate(CumsumOp op, Evaluation &e) {
  AxisView view(e.operand(0).shape, op.getAxis());
  return dispatch(e.operand(0).elementType, [&](auto tag) -> LogicalResult {
    using T = typename decltype(tag)::type;
    if constexpr (isBool<T>)
      return op.emitError() << "a running sum has no meaning for bool";
    else
      view.forEachLine([&](int64_t, int64_t start) {
        Accumulator<T> sum = 0;
        for (int64_t i = 0; i < view.size; ++i) {
          int64_t at = start + (op.getReverse() ? view.size - 1 - i : i) * view.inner;
          Accumulator<T> before = sum;
          sum += static_cast<Accumulator<T>>(static_cast<Compute<T>>(e.operand(0).as<T>()[at]));
          e.result().as<T>()[at] = static_cast<T>(op.getExclusive() ? before : sum);
        }
      });
    return success();
  });
}

/// A total order in which NaN exceeds every number.
template <typename C> static bool isLess(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    if (std::isnan(a) || std::isnan(b))
      return !std::isnan(a);
  return a < b;
}

LogicalResult evaluate(TopKOp op, Evaluation &e) {
  AxisView view(e.operand(0).shape, op.getAxis());
  int64_t k = op.getK();
  if (k > view.size)
    return op.emitError() << "k = " << k << " exceeds the " << view.size << " elements along axis " << op.getAxis();
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    view.forEachLine([&](int64_t line, int64_t start) {
      const T *in = e.operand(0).as<T>() + start;
      std::vector<int64_t> order(view.size);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        C x = in[a * view.inner], y = in[b * view.inner];
        if (isLess(x, y) || isLess(y, x))
          return op.getSmallest() ? isLess(x, y) : isLess(y, x);
        return a < b;
      });
      int64_t first = line / view.inner * k * view.inner + line % view.inner;
      for (int64_t i = 0; i < k; ++i) {
        e.result(0).as<T>()[first + i * view.inner] = in[order[i] * view.inner];
        e.result(1).as<int64_t>()[first + i * view.inner] = order[i];
      }
    });
  });
  return success();
}

} // namespace ajour::reference
