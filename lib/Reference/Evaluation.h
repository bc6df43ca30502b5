//===- Evaluation.h - one operation with its values -------------*- C++ -*-===//
#ifndef AJOUR_LIB_REFERENCE_EVALUATION_H
#define AJOUR_LIB_REFERENCE_EVALUATION_H

#include "Elements.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Reference/HostTensor.h"

#include <array>
#include <vector>

namespace ajour::reference {

using Shape = llvm::SmallVector<int64_t, 6>;

/// Operands in the operation's order (absent optional ones are absent) and results that have their
/// shape already and hold zeros. Operands are checked against the operation's types.
struct Evaluation {
  llvm::ArrayRef<const HostTensor *> operands;
  std::vector<HostTensor> results;

  const HostTensor &operand(size_t i) const { return *operands[i]; }
  HostTensor &result(size_t i = 0) { return results[i]; }
};

/// Row-major strides in elements.
Shape stridesOf(llvm::ArrayRef<int64_t> shape);
/// Strides with which a tensor of `shape` is read at an index of the broadcast shape `to`: 0 where repeated.
Shape broadcastStrides(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> to);
/// Product of `shape`'s dimensions in [begin, end).
int64_t sizeOf(llvm::ArrayRef<int64_t> shape, size_t begin, size_t end);

/// Calls `function(i, offsets)` for each index of `shape` in row-major order; i counts, and offsets[n] is
/// the sum of index times strides[n].
template <size_t N, typename Function>
void forEachIndex(llvm::ArrayRef<int64_t> shape, const std::array<Shape, N> &strides, Function &&function) {
  size_t rank = shape.size();
  int64_t count = sizeOf(shape, 0, rank);
  Shape index(rank, 0);
  std::array<int64_t, N> offsets{};
  for (int64_t i = 0; i < count; ++i) {
    function(i, offsets);
    for (size_t d = rank; d-- > 0;) {
      ++index[d];
      for (size_t n = 0; n < N; ++n)
        offsets[n] += strides[n][d];
      if (index[d] < shape[d])
        break;
      for (size_t n = 0; n < N; ++n)
        offsets[n] -= strides[n][d] * index[d];
      index[d] = 0;
    }
  }
}

/// nn.binary on one pair of elements. Floating point kinds and integer kinds that a type has not give 0;
/// `hasBinary` tells which those are.
template <typename T> T applyBinary(nn::BinaryKind kind, T lhs, T rhs);
bool hasBinary(nn::BinaryKind kind, uint32_t elementType);

/// One function for each operation; they fail, with a diagnostic, for values that break its rules.
llvm::LogicalResult evaluate(nn::ConstantOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::UnaryOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::BinaryOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::CompareOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::SelectOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::CastOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ClampOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::QuantizeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::DequantizeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::RequantizeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::LookupOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::MatmulOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ExpertMatmulOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ConvOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ConvTransposeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::MaxPoolOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::AvgPoolOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ResizeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::GridSampleOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ReduceOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ArgReduceOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::SoftmaxOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::LayerNormOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::CumsumOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::TopKOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::TransposeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ReshapeOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::BroadcastOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::SliceOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ConcatOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::PadOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::GatherOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::GatherElementsOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::GatherNDOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ScatterElementsOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ScatterNDOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::ReverseSequenceOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::IotaOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::DequantizeGroupedOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::DequantizeCodebookOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::RnnOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::GruOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::LstmOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::AttentionOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::CausalConvOp op, Evaluation &e);
llvm::LogicalResult evaluate(nn::SelectiveScanOp op, Evaluation &e);

} // namespace ajour::reference

#endif
