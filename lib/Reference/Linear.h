//===- Linear.h - sums of products, shared by matmul and convolutions -*- C++ -*-===//
#ifndef AJOUR_LIB_REFERENCE_LINEAR_H
#define AJOUR_LIB_REFERENCE_LINEAR_H

#include "Evaluation.h"

#include <Eigen/Core>

namespace ajour::reference {

template <typename Acc> using Matrix = Eigen::Matrix<Acc, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Calls `function` with the type in which products of these elements are summed: f64, or 64 unsigned
/// bits, whose lower bits are those of any narrower wrapping sum.
template <typename Function> auto withAccumulator(uint32_t elementType, Function &&function) {
  bool isFloat =
      elementType == AJOUR_F32 || elementType == AJOUR_F16 || elementType == AJOUR_BF16 || elementType == AJOUR_F64;
  return isFloat ? function(TypeTag<double>()) : function(TypeTag<uint64_t>());
}

template <typename Acc, typename T> Acc widen(T value) { return static_cast<Acc>(static_cast<Compute<T>>(value)); }

/// The elements of a tensor in the accumulator's type minus a zero point.
template <typename Acc> std::vector<Acc> loadWidened(const HostTensor &tensor, int32_t zeroPoint) {
  std::vector<Acc> values(tensor.numElements());
  dispatch(tensor.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *data = tensor.as<T>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = widen<Acc>(data[i]) - widen<Acc>(zeroPoint);
  });
  return values;
}

/// The bias of each output channel; zeros without one.
template <typename Acc> std::vector<Acc> loadBias(const HostTensor *bias, int64_t channels) {
  return bias ? loadWidened<Acc>(*bias, 0) : std::vector<Acc>(channels, Acc(0));
}

/// The zero point of an output channel: none, one for all or one for each.
inline int32_t channelZeroPoint(llvm::ArrayRef<int32_t> zeroPoints, int64_t channel) {
  return zeroPoints.empty() ? 0 : zeroPoints.size() == 1 ? zeroPoints[0] : zeroPoints[channel];
}

/// Rounds (or cuts) sums to the result's element type and stores them from element `first` on.
template <typename Acc> void storeSums(HostTensor &result, int64_t first, const Acc *sums, int64_t count) {
  dispatch(result.elementType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!isBool<T>)
      for (int64_t i = 0; i < count; ++i)
        result.as<T>()[first + i] = static_cast<T>(sums[i]);
  });
}

} // namespace ajour::reference

#endif
