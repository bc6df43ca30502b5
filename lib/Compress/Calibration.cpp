//===- Calibration.cpp - a model run on many inputs side by side ---------------===//
#include "Calibration.h"

#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

using namespace mlir;

namespace ajour::compress {

namespace {

/// Calls work(0) ... work(count - 1) on all processors; false when one of them was.
bool forEachParallel(int64_t count, const std::function<bool(int64_t)> &work) {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> good = true;
  auto loop = [&] {
    for (int64_t i = next++; i < count && good; i = next++)
      if (!work(i))
        good = false;
  };
  std::vector<std::thread> threads;
  int64_t others = std::min<int64_t>(count, std::thread::hardware_concurrency()) - 1;
  for (int64_t t = 0; t < others; ++t)
    threads.emplace_back(loop);
  loop();
  for (std::thread &thread : threads)
    thread.join();
  return good;
}

} // namespace

Calibration::Calibration(func::FuncOp main, std::vector<Sample> samples) : main(main), samples(std::move(samples)) {}

void Calibration::evaluateInto(Lane &lane, Operation *op, ValueRange operands, Lookup lookup) {
  // What depends on no input is the same for all.
  bool shared = llvm::all_of(operands, [&](Value operand) { return lookup(operand).size() == 1; }) &&
                (!operands.empty() || isa<nn::ConstantOp>(op));
  int64_t count = shared ? 1 : numSamples();
  std::vector<std::vector<HostTensor>> results(op->getNumResults(), std::vector<HostTensor>(count));
  bool good = forEachParallel(count, [&](int64_t s) {
    SmallVector<const HostTensor *> tensors;
    for (Value operand : operands) {
      const std::vector<HostTensor> &all = lookup(operand);
      tensors.push_back(&all[all.size() == 1 ? 0 : s]);
    }
    FailureOr<std::vector<HostTensor>> found = evaluate(op, tensors, samples[s].symbols);
    if (failed(found))
      return false;
    for (size_t r = 0; r < found->size(); ++r)
      results[r][s] = std::move((*found)[r]);
    return true;
  });
  if (!good)
    throw CompressError("the model cannot be run on the calibration data");
  for (auto [value, tensors] : llvm::zip_equal(op->getResults(), results))
    lane[value] = std::move(tensors);
}

void Calibration::evaluateConstants(ValueRange operands) {
  for (Value operand : operands)
    if (Operation *definition = operand.getDefiningOp(); definition && !values.count(operand))
      evaluateInto(values, definition, {}, [&](Value v) -> const std::vector<HostTensor> & { return valueOf(v); });
}

/// Forgets what no later operation reads.
void Calibration::release(Operation *op) {
  auto isDead = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) { return user == op || user->isBeforeInBlock(op); });
  };
  for (Value operand : op->getOperands())
    if (isDead(operand)) {
      values.erase(operand);
      unchanged.erase(operand);
    }
}

void Calibration::run() {
  Block &block = main.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    std::vector<HostTensor> &tensors = values[argument];
    for (Sample &sample : samples)
      tensors.push_back(std::move(sample.inputs[argument.getArgNumber()]));
  }
  int64_t done = 0, total = int64_t(block.getOperations().size());
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (progress)
      progress(done++, total);
    SmallVector<Value> operands(op.getOperands());
    if (before)
      before(&op);
    if (samples.empty())
      continue;
    evaluateConstants(operands);
    evaluateConstants(op.getOperands());
    bool differs = operands != SmallVector<Value>(op.getOperands()) ||
                   llvm::any_of(operands, [&](Value operand) { return unchanged.count(operand) != 0; });
    evaluateInto(values, &op, op.getOperands(),
                 [&](Value v) -> const std::vector<HostTensor> & { return valueOf(v); });
    if (differs)
      evaluateInto(unchanged, &op, operands,
                   [&](Value v) -> const std::vector<HostTensor> & { return unchangedValueOf(v); });
    if (after)
      for (Value result : op.getResults())
        after(result, valueOf(result));
    release(&op);
  }
}

//===----------------------------------------------------------------------===//
// Moments
//===----------------------------------------------------------------------===//

namespace {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Collects rows of inputs of one part, some hundred at a time.
class MomentSum {
public:
  /// `weights`: the part's, [outputs][columns]. With `drifts` inputs without the changes come too.
  MomentSum(Rows weights, bool drifts)
      : weights(std::move(weights)), drifts(drifts), changed(rowsAtOnce, this->weights.cols()),
        unchanged(drifts ? rowsAtOnce : 0, this->weights.cols()),
        moments(Eigen::MatrixXf::Zero(columns(), columns())), means(Vector::Zero(columns())),
        targets(Matrix::Zero(outputs(), columns())), targetMeans(Vector::Zero(outputs())),
        targetSquares(Vector::Zero(outputs())) {}

  /// The next row to be filled, with the changes and without them (null where nothing drifts).
  std::pair<float *, float *> nextRow() {
    if (filled == rowsAtOnce)
      flush();
    int64_t row = filled++;
    return {changed.row(row).data(), drifts ? unchanged.row(row).data() : nullptr};
  }

  void store(LayerPart &part) {
    flush();
    if (!count)
      return;
    Eigen::MatrixXf full = moments.selfadjointView<Eigen::Lower>();
    part.moments = full.cast<double>() / double(count);
    part.means = means / double(count);
    part.targetMeans = targetMeans / double(count);
    part.targetSquares = targetSquares / double(count);
    part.targets = drifts ? Matrix(targets / double(count)) : Matrix(weights.cast<double>() * part.moments);
  }

private:
  int64_t columns() const { return weights.cols(); }
  int64_t outputs() const { return weights.rows(); }

  void flush() {
    auto x = changed.topRows(filled);
    moments.selfadjointView<Eigen::Lower>().rankUpdate(x.transpose());
    means += x.cast<double>().colwise().sum().transpose();
    Rows y = (drifts ? unchanged.topRows(filled) : x) * weights.transpose();
    targetMeans += y.cast<double>().colwise().sum().transpose();
    targetSquares += y.cast<double>().colwise().squaredNorm().transpose();
    if (drifts)
      targets += (y.transpose() * x).cast<double>();
    count += filled;
    filled = 0;
  }

  static constexpr int64_t rowsAtOnce = 512;
  Rows weights;
  bool drifts;
  Rows changed, unchanged;
  Eigen::MatrixXf moments;
  Vector means;
  Matrix targets;
  Vector targetMeans, targetSquares;
  int64_t filled = 0, count = 0;
};

std::vector<MomentSum> sumsFor(const LayerProblem &problem, bool drifts) {
  const LayerShape &shape = problem.shape;
  std::vector<MomentSum> sums;
  for (const LayerPart &part : problem.parts) {
    std::vector<int64_t> columns = part.columnsOf(shape);
    Rows weights(shape.outputsPerGroup(), int64_t(columns.size()));
    for (int64_t o = 0; o < weights.rows(); ++o)
      for (size_t c = 0; c < columns.size(); ++c)
        weights(o, c) = problem.weights[(part.group * shape.outputsPerGroup() + o) * shape.columns() + columns[c]];
    sums.emplace_back(std::move(weights), drifts);
  }
  return sums;
}

/// About `most` of `all` numbers, spread over them; the same ones each time.
std::vector<int64_t> spread(int64_t all, int64_t most) {
  std::vector<int64_t> chosen;
  std::minstd_rand random(1);
  int64_t count = std::min(all, most);
  for (int64_t i = 0; i < count; ++i) {
    int64_t low = all * i / count, high = all * (i + 1) / count;
    chosen.push_back(low + int64_t(random() % uint64_t(high - low)));
  }
  return chosen;
}

/// The elements of a tensor as floats, in its order; of integers their distance from the zero point, which is what a product
/// takes them for, but for a factor.
std::vector<float> floatsOf(const HostTensor &tensor, MLIRContext *context, int32_t zeroPoint) {
  if (tensor.elementType == AJOUR_F32)
    return {tensor.as<float>(), tensor.as<float>() + tensor.numElements()};
  ElementsAttr attr = toAttribute(tensor, context);
  if (std::optional<std::vector<float>> values = nn::constantFloats(attr))
    return *values;
  std::optional<std::vector<int64_t>> integers = nn::constantInts(attr);
  std::vector<float> values;
  for (int64_t value : *integers)
    values.push_back(float(value - zeroPoint));
  return values;
}

/// Positions of a window: input offsets in elements of its pixels, -1 in the padding.
std::vector<int64_t> windowPixels(nn::ConvOp op, ArrayRef<int64_t> input, ArrayRef<int64_t> window,
                                  ArrayRef<int64_t> output, int64_t position) {
  size_t spatial = window.size();
  int64_t taps = 1;
  for (int64_t size : window)
    taps *= size;
  SmallVector<int64_t, 3> at(spatial);
  for (size_t d = spatial; d-- > 0; position /= output[d + 1])
    at[d] = position % output[d + 1];
  std::vector<int64_t> pixels(taps);
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t rest = tap, pixel = position, stride = 1; // `position` is the batch index now
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = spatial; d-- > 0; rest /= window[d]) {
      int64_t x = at[d] * op.getStrides()[d] + rest % window[d] * op.getDilations()[d] - op.getPadsLow()[d];
      inside &= x >= 0 && x < input[d + 1];
      offset += x * stride;
      stride *= input[d + 1];
    }
    pixels[tap] = inside ? (pixel * stride + offset) * input.back() : -1;
  }
  return pixels;
}

} // namespace

void measure(nn::ConvOp op, const LayerInputs &inputs, int64_t mostRows, LayerProblem &problem) {
  const LayerShape &shape = problem.shape;
  ArrayRef<int64_t> filter = cast<RankedTensorType>(op.getFilter().getType()).getShape();
  ArrayRef<int64_t> window = filter.drop_front().drop_back();
  bool drifts = &inputs.changed != &inputs.unchanged;
  std::vector<MomentSum> sums = sumsFor(problem, drifts);
  int64_t most = std::max<int64_t>(mostRows / int64_t(inputs.changed.size()), 4);
  for (size_t i = 0; i < inputs.changed.size(); ++i) {
    const HostTensor &input = inputs.changed[i];
    std::vector<float> values = floatsOf(input, op.getContext(), op.getLhsZeroPoint()), before;
    if (drifts)
      before = floatsOf(inputs.unchanged[i], op.getContext(), op.getLhsZeroPoint());
    // The result's shape; symbolic sizes are known from the input.
    SmallVector<int64_t> output{input.shape[0]};
    for (size_t d = 0; d < window.size(); ++d) {
      int64_t extent = (window[d] - 1) * op.getDilations()[d] + 1;
      output.push_back((input.shape[d + 1] + op.getPadsLow()[d] + op.getPadsHigh()[d] - extent) / op.getStrides()[d] + 1);
    }
    int64_t positions = 1;
    for (int64_t size : output)
      positions *= size;
    for (int64_t position : spread(positions, most)) {
      std::vector<int64_t> pixels = windowPixels(op, input.shape, window, output, position);
      for (auto [part, sum] : llvm::zip_equal(problem.parts, sums)) {
        auto [row, beforeRow] = sum.nextRow();
        auto fill = [&, first = part.group * shape.channels + part.first, count = part.count](const std::vector<float> &from, float *to) {
          for (int64_t pixel : pixels) {
            if (pixel < 0)
              std::fill_n(to, count, 0.f);
            else
              std::copy_n(from.data() + pixel + first, count, to);
            to += count;
          }
        };
        fill(values, row);
        if (beforeRow)
          fill(before, beforeRow);
      }
    }
  }
  for (auto [part, sum] : llvm::zip_equal(problem.parts, sums))
    sum.store(part);
}

void measure(nn::MatmulOp op, const LayerInputs &inputs, int64_t mostRows, LayerProblem &problem) {
  bool drifts = &inputs.changed != &inputs.unchanged;
  std::vector<MomentSum> sums = sumsFor(problem, drifts);
  int64_t most = std::max<int64_t>(mostRows / int64_t(inputs.changed.size()), 4);
  for (size_t i = 0; i < inputs.changed.size(); ++i) {
    const HostTensor &input = inputs.changed[i];
    std::vector<float> values = floatsOf(input, op.getContext(), op.getLhsZeroPoint()), before;
    if (drifts)
      before = floatsOf(inputs.unchanged[i], op.getContext(), op.getLhsZeroPoint());
    int64_t columns = problem.shape.channels, rows = columns ? input.numElements() / columns : 0;
    // Transposed, the elements of a row are `stride` apart.
    bool transposed = op.getTransposeLhs();
    int64_t stride = transposed ? input.shape.back() : 1;
    for (int64_t r : spread(rows, most)) {
      int64_t base = transposed ? r / stride * stride * columns + r % stride : r * columns;
      for (auto [part, sum] : llvm::zip_equal(problem.parts, sums)) {
        auto [row, beforeRow] = sum.nextRow();
        for (int64_t c = 0; c < part.count; ++c) {
          row[c] = values[base + (part.first + c) * stride];
          if (beforeRow)
            beforeRow[c] = before[base + (part.first + c) * stride];
        }
      }
    }
  }
  for (auto [part, sum] : llvm::zip_equal(problem.parts, sums))
    sum.store(part);
}

} // namespace ajour::compress
