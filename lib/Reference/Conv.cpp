//===- Conv.cpp - convolutions and pooling ----------------------------------------===//
#include "Linear.h"

#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

namespace {

/// The geometry of a windowed operation, written with three spatial dimensions (missing leading ones are 1).
struct Window3 {
  using Triple = std::array<int64_t, 3>;

  template <typename Op>
  Window3(Op op, ArrayRef<int64_t> input, ArrayRef<int64_t> window, ArrayRef<int64_t> output)
      : batch(input[0]), channels(input.back()), in(triple(input.drop_front().drop_back(), 1)),
        window(triple(window, 1)), out(triple(output.drop_front().drop_back(), 1)), strides(triple(op.getStrides(), 1)),
        dilations(triple(op.getDilations(), 1)), low(triple(op.getPadsLow(), 0)), high(triple(op.getPadsHigh(), 0)) {}

  static Triple triple(ArrayRef<int64_t> values, int64_t missing) {
    Triple result{missing, missing, missing};
    std::copy(values.begin(), values.end(), result.end() - values.size());
    return result;
  }
  static int64_t volume(const Triple &sizes) { return sizes[0] * sizes[1] * sizes[2]; }
  /// The index in a box of these sizes, from a row-major position.
  static Triple indexOf(int64_t position, const Triple &sizes) {
    return {position / (sizes[1] * sizes[2]), position / sizes[2] % sizes[1], position % sizes[2]};
  }
  static bool contains(const Triple &sizes, const Triple &at) {
    return at[0] >= 0 && at[0] < sizes[0] && at[1] >= 0 && at[1] < sizes[1] && at[2] >= 0 && at[2] < sizes[2];
  }
  static int64_t positionOf(const Triple &at, const Triple &sizes) {
    return (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
  }

  /// What window element `tap` reads for output `output`: the input index, which may lie in the padding.
  Triple inputIndex(const Triple &output, const Triple &tap) const {
    Triple at;
    for (size_t d = 0; d < 3; ++d)
      at[d] = output[d] * strides[d] + tap[d] * dilations[d] - low[d];
    return at;
  }

  int64_t batch, channels;
  Triple in, window, out, strides, dilations, low, high;
};

ArrayRef<int64_t> windowOf(const HostTensor &filter) { return ArrayRef(filter.shape).drop_front().drop_back(); }

} // namespace

//===----------------------------------------------------------------------===//
// conv
//===----------------------------------------------------------------------===//

/// The filter [O, taps, C/groups] minus its zero points, in the accumulator's type.
template <typename Acc> static std::vector<Acc> loadFilter(const HostTensor &filter, ArrayRef<int32_t> zeroPoints) {
  std::vector<Acc> values = loadWidened<Acc>(filter, 0);
  int64_t perOutput = sizeOf(filter.shape, 1, filter.shape.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] -= widen<Acc>(channelZeroPoint(zeroPoints, i / perOutput));
  return values;
}

/// Few channels a group (depthwise above all): sums go straight over outputs, with the filter as [tap, c, O].
template <typename Acc>
static void convolveDirectly(const Window3 &w, int64_t groups, const std::vector<Acc> &input,
                             const std::vector<Acc> &filter, const std::vector<Acc> &bias, HostTensor &result) {
  int64_t taps = Window3::volume(w.window), perGroup = w.channels / groups, outputs = bias.size();
  std::vector<Acc> byTap(filter.size());
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t t = 0; t < taps * perGroup; ++t)
      byTap[t * outputs + o] = filter[o * taps * perGroup + t];
  int64_t outputsPerGroup = outputs / groups, positions = Window3::volume(w.out);
  std::vector<Acc> sums(outputs);
  for (int64_t p = 0; p < w.batch * positions; ++p) {
    sums = bias;
    for (int64_t t = 0; t < taps; ++t) {
      Window3::Triple at = w.inputIndex(Window3::indexOf(p % positions, w.out), Window3::indexOf(t, w.window));
      if (!Window3::contains(w.in, at))
        continue;
      const Acc *pixel =
          input.data() + (p / positions * Window3::volume(w.in) + Window3::positionOf(at, w.in)) * w.channels;
      for (int64_t c = 0; c < perGroup; ++c) {
        const Acc *weights = byTap.data() + (t * perGroup + c) * outputs;
        for (int64_t o = 0; o < outputs; ++o)
          sums[o] += pixel[outputsPerGroup == 1 ? o * perGroup + c : o / outputsPerGroup * perGroup + c] * weights[o];
      }
    }
    storeSums(result, p * outputs, sums.data(), outputs);
  }
}

/// Rows of output positions times the filter: patches [positions, taps C/groups] by [taps C/groups, O/groups].
template <typename Acc>
static void convolveByPatches(const Window3 &w, int64_t groups, const std::vector<Acc> &input,
                              const std::vector<Acc> &filter, const std::vector<Acc> &bias, HostTensor &result) {
  constexpr int64_t rowsAtOnce = 256;
  int64_t taps = Window3::volume(w.window), perGroup = w.channels / groups, outputs = bias.size();
  int64_t positions = Window3::volume(w.out), outputsPerGroup = outputs / groups, all = w.batch * positions;
  Eigen::Map<const Matrix<Acc>> weights(filter.data(), outputs, taps * perGroup);
  for (int64_t first = 0; first < all; first += rowsAtOnce) {
    int64_t rows = std::min(rowsAtOnce, all - first);
    Matrix<Acc> sums(rows, outputs);
    for (int64_t g = 0; g < groups; ++g) {
      Matrix<Acc> patches = Matrix<Acc>::Zero(rows, taps * perGroup);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t t = 0; t < taps; ++t) {
          int64_t p = first + r;
          Window3::Triple at = w.inputIndex(Window3::indexOf(p % positions, w.out), Window3::indexOf(t, w.window));
          if (!Window3::contains(w.in, at))
            continue;
          int64_t pixel = p / positions * Window3::volume(w.in) + Window3::positionOf(at, w.in);
          std::copy_n(input.data() + pixel * w.channels + g * perGroup, perGroup, &patches(r, t * perGroup));
        }
      sums.middleCols(g * outputsPerGroup, outputsPerGroup).noalias() =
          patches * weights.middleRows(g * outputsPerGroup, outputsPerGroup).transpose();
    }
    sums.rowwise() += Eigen::Map<const Eigen::Matrix<Acc, 1, Eigen::Dynamic>>(bias.data(), outputs);
    storeSums(result, first * outputs, sums.data(), rows * outputs);
  }
}

LogicalResult evaluate(ConvOp op, Evaluation &e) {
  const HostTensor &filter = e.operand(1);
  Window3 window(op, e.operand(0).shape, windowOf(filter), e.result().shape);
  if (e.result().data.empty())
    return success();
  withAccumulator(e.operand(0).elementType, [&](auto tag) {
    using Acc = typename decltype(tag)::type;
    std::vector<Acc> input = loadWidened<Acc>(e.operand(0), op.getLhsZeroPoint());
    std::vector<Acc> weights = loadFilter<Acc>(filter, op.getRhsZeroPoints());
    std::vector<Acc> bias = loadBias<Acc>(op.getBias() ? &e.operand(2) : nullptr, filter.shape[0]);
    bool direct = op.getGroups() > 1 && filter.shape.back() < 4;
    auto convolve = direct ? convolveDirectly<Acc> : convolveByPatches<Acc>;
    convolve(window, op.getGroups(), input, weights, bias, e.result());
  });
  return success();
}

//===----------------------------------------------------------------------===//
// conv_transpose
//===----------------------------------------------------------------------===//

/// Adds what one input pixel sends to every output: y = stride x + dilation k - low.
template <typename Acc>
static void scatterPixel(const Window3 &w, int64_t groups, const Window3::Triple &x, const Acc *pixel,
                         const std::vector<Acc> &filter, int64_t outputs, Acc *image) {
  int64_t taps = Window3::volume(w.window), perGroup = w.channels / groups;
  for (int64_t t = 0; t < taps; ++t) {
    Window3::Triple k = Window3::indexOf(t, w.window), y;
    for (size_t d = 0; d < 3; ++d)
      y[d] = w.strides[d] * x[d] + w.dilations[d] * k[d] - w.low[d];
    if (!Window3::contains(w.out, y))
      continue;
    Acc *sums = image + Window3::positionOf(y, w.out) * outputs;
    for (int64_t o = 0; o < outputs; ++o) {
      int64_t group = o / (outputs / groups);
      const Acc *weights = filter.data() + (o * taps + t) * perGroup;
      for (int64_t c = 0; c < perGroup; ++c)
        sums[o] += pixel[group * perGroup + c] * weights[c];
    }
  }
}

LogicalResult evaluate(ConvTransposeOp op, Evaluation &e) {
  const HostTensor &filter = e.operand(1);
  Window3 w(op, e.operand(0).shape, windowOf(filter), e.result().shape);
  int64_t outputs = filter.shape[0], pixels = Window3::volume(w.in), results = Window3::volume(w.out);
  withAccumulator(e.operand(0).elementType, [&](auto tag) {
    using Acc = typename decltype(tag)::type;
    std::vector<Acc> input = loadWidened<Acc>(e.operand(0), op.getLhsZeroPoint());
    std::vector<Acc> weights = loadFilter<Acc>(filter, op.getRhsZeroPoints());
    std::vector<Acc> bias = loadBias<Acc>(op.getBias() ? &e.operand(2) : nullptr, outputs);
    for (int64_t b = 0; b < w.batch; ++b) {
      std::vector<Acc> image(results * outputs);
      for (size_t i = 0; i < image.size(); ++i)
        image[i] = bias[i % outputs];
      for (int64_t x = 0; x < pixels; ++x)
        scatterPixel(w, op.getGroups(), Window3::indexOf(x, w.in), input.data() + (b * pixels + x) * w.channels,
                     weights, outputs, image.data());
      storeSums(e.result(), b * int64_t(image.size()), image.data(), image.size());
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// pooling
//===----------------------------------------------------------------------===//

/// Calls `function(result element, output position's taps)` where `visit(f)` calls f(input element) for each
/// tap inside the input and returns how many taps lie inside the padded input.
template <typename Function> static void forEachWindow(const Window3 &w, Function &&function) {
  int64_t taps = Window3::volume(w.window), positions = Window3::volume(w.out), pixels = Window3::volume(w.in);
  Window3::Triple padded;
  for (size_t d = 0; d < 3; ++d)
    padded[d] = w.low[d] + w.in[d] + w.high[d];
  for (int64_t p = 0; p < w.batch * positions; ++p)
    for (int64_t c = 0; c < w.channels; ++c) {
      auto visit = [&](auto &&read) {
        int64_t inPadded = 0;
        for (int64_t t = 0; t < taps; ++t) {
          Window3::Triple at = w.inputIndex(Window3::indexOf(p % positions, w.out), Window3::indexOf(t, w.window));
          Window3::Triple fromEdge{at[0] + w.low[0], at[1] + w.low[1], at[2] + w.low[2]};
          inPadded += Window3::contains(padded, fromEdge);
          if (Window3::contains(w.in, at))
            read((p / positions * pixels + Window3::positionOf(at, w.in)) * w.channels + c);
        }
        return inPadded;
      };
      function(p * w.channels + c, visit);
    }
}

LogicalResult evaluate(MaxPoolOp op, Evaluation &e) {
  Window3 window(op, e.operand(0).shape, op.getWindow(), e.result().shape);
  dispatch(e.operand(0).elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachWindow(window, [&](int64_t i, auto &visit) {
      T most = lowestOf<T>();
      visit([&](int64_t from) { most = applyBinary<T>(BinaryKind::max, most, e.operand(0).as<T>()[from]); });
      e.result().as<T>()[i] = most;
    });
  });
  return success();
}

/// sum / count; integers round halves away from zero.
template <typename T, typename Sum> static T meanOf(Sum sum, int64_t count) {
  if (count == 0)
    return T(0);
  if constexpr (isFloat<T>)
    return T(sum / count);
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>((sum >= 0 ? sum + count / 2 : sum - count / 2) / count);
  else
    return static_cast<T>((sum + count / 2) / count);
}

LogicalResult evaluate(AvgPoolOp op, Evaluation &e) {
  Window3 window(op, e.operand(0).shape, op.getWindow(), e.result().shape);
  return dispatch(e.operand(0).elementType, [&](auto tag) -> LogicalResult {
    using T = typename decltype(tag)::type;
    if constexpr (isBool<T>)
      return op.emitError() << "a mean has no meaning for bool";
    else {
      // Sums of 64-bit integers take 128 bits.
      using Sum = std::conditional_t<isFloat<T>, double, __int128>;
      forEachWindow(window, [&](int64_t i, auto &visit) {
        Sum sum = 0;
        int64_t inInput = 0;
        int64_t inPadded = visit([&](int64_t from) {
          sum += static_cast<Sum>(Compute<T>(e.operand(0).as<T>()[from]));
          ++inInput;
        });
        e.result().as<T>()[i] = meanOf<T>(sum, op.getCountIncludePad() ? inPadded : inInput);
      });
    }
    return success();
  });
}

} // namespace ajour::reference
