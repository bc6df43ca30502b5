//===- Linear.cpp - matrix products ---------------------------------------------===//
#include "Linear.h"

#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

/// Matrix `i` of a batch as [rows, columns], whether or not it is stored transposed.
template <typename Acc>
static Matrix<Acc> matrixOf(const std::vector<Acc> &batch, int64_t i, int64_t rows, int64_t columns, bool transposed) {
  const Acc *data = batch.data() + i * rows * columns;
  if (transposed)
    return Eigen::Map<const Matrix<Acc>>(data, columns, rows).transpose();
  return Eigen::Map<const Matrix<Acc>>(data, rows, columns);
}

/// Rounds groups of a row of `k` numbers to 8 bits. All steps are those of f32.
static void roundGroups(MutableArrayRef<float> row, int64_t group, bool halfScales) {
  for (; !row.empty(); row = row.drop_front(std::min<size_t>(group, row.size()))) {
    MutableArrayRef<float> part = row.take_front(group);
    float largest = 0;
    for (float x : part)
      largest = std::max(largest, std::fabs(x));
    float scale = largest / 127.0f, factor = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
    if (halfScales)
      scale = static_cast<float>(Eigen::half(scale));
    for (float &x : part)
      x = std::nearbyint(x * factor) * scale;
  }
}

LogicalResult evaluate(MatmulOp op, Evaluation &e) {
  const HostTensor &lhs = e.operand(0), &rhs = e.operand(1);
  ArrayRef<int64_t> shape = e.result().shape, batch = shape.drop_back(2);
  int64_t m = shape[shape.size() - 2], n = shape.back();
  int64_t k = lhs.shape[lhs.shape.size() - (op.getTransposeLhs() ? 2 : 1)];
  // Offsets count whole matrices.
  std::array<Shape, 2> strides{broadcastStrides(ArrayRef(lhs.shape).drop_back(2), batch),
                               broadcastStrides(ArrayRef(rhs.shape).drop_back(2), batch)};
  withAccumulator(lhs.elementType, [&](auto tag) {
    using Acc = typename decltype(tag)::type;
    HostTensor rounded;
    if (op.getLhsGroup() > 0) {
      rounded = lhs;
      for (MutableArrayRef<float> rest(rounded.as<float>(), lhs.numElements()); !rest.empty(); rest = rest.drop_front(k))
        roundGroups(rest.take_front(k), op.getLhsGroup(), op.getLhsHalfScales());
    }
    std::vector<Acc> left = loadWidened<Acc>(op.getLhsGroup() > 0 ? rounded : lhs, op.getLhsZeroPoint()), right = loadWidened<Acc>(rhs, 0);
    std::vector<Acc> bias = loadBias<Acc>(op.getBias() ? &e.operand(2) : nullptr, n);
    forEachIndex<2>(batch, strides, [&](int64_t i, auto &offsets) {
      Matrix<Acc> a = matrixOf(left, offsets[0], m, k, op.getTransposeLhs());
      Matrix<Acc> b = matrixOf(right, offsets[1], k, n, op.getTransposeRhs());
      for (int64_t column = 0; column < n; ++column)
        b.col(column).array() -= widen<Acc>(channelZeroPoint(op.getRhsZeroPoints(), column));
      Matrix<Acc> c(m, n);
      c.noalias() = a * b;
      c.rowwise() += Eigen::Map<const Eigen::Matrix<Acc, 1, Eigen::Dynamic>>(bias.data(), n);
      storeSums(e.result(), i * m * n, c.data(), m * n);
    });
  });
  return success();
}

LogicalResult evaluate(ExpertMatmulOp op, Evaluation &e) {
  const HostTensor &lhs = e.operand(0), &rhs = e.operand(1);
  ArrayRef<int64_t> shape = e.result().shape;
  int64_t n = shape[2], k = lhs.shape[2], slots = shape[1], count = rhs.shape[0];
  std::vector<int64_t> experts = loadWidened<int64_t>(e.operand(2), 0);
  withAccumulator(lhs.elementType, [&](auto tag) {
    using Acc = typename decltype(tag)::type;
    std::vector<Acc> left = loadWidened<Acc>(lhs, 0), right = loadWidened<Acc>(rhs, 0);
    for (int64_t i = 0; i < shape[0] * slots && count > 0; ++i) {
      int64_t row = lhs.shape[1] == 1 ? i / slots : i, expert = std::clamp<int64_t>(experts[i], 0, count - 1);
      Matrix<Acc> a = matrixOf(left, row, 1, k, false), b = matrixOf(right, expert, k, n, true), c(1, n);
      c.noalias() = a * b;
      storeSums(e.result(), i * n, c.data(), n);
    }
  });
  return success();
}

} // namespace ajour::reference
