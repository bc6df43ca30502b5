//===- Windows.h - what pools and reductions share --------------*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_LOOPS_WINDOWS_H
#define AJOUR_LIB_CONVERSION_LOOPS_WINDOWS_H

#include "Emitter.h"

namespace ajour::loops {

/// Kept elements that one work item accumulates side by side, so that the innermost loop runs over memory.
constexpr int64_t laneCount = 64;

/// The element type in which a reduction of a type accumulates.
inline mlir::Type accumulatorType(mlir::Type element) {
  return element.isF16() || element.isBF16() ? mlir::Type(mlir::Float32Type::get(element.getContext())) : element;
}

/// acc / count as the mean of a type.
mlir::Value meanOf(Emitter &e, mlir::Value acc, mlir::Value count, mlir::Type type);

/// The window of a pool or convolution over its spatial dimensions.
struct WindowShape {
  llvm::SmallVector<int64_t> window, strides, dilations, low, high;

  int64_t taps() const {
    int64_t count = 1;
    for (int64_t size : window)
      count *= size;
    return count;
  }
};
WindowShape windowShape(mlir::Operation *op);

/// Quotient rounded up of a value of any sign by a positive constant.
mlir::Value ceilDiv(Emitter &e, mlir::Value a, int64_t divisor);

/// The taps of one dimension, at an output coordinate, that lie inside the input, and how many an average counts.
struct WindowTaps {
  mlir::Value start; ///< input coordinate of tap 0
  mlir::Value from, to, counted;
};
WindowTaps windowTaps(Emitter &e, const WindowShape &shape, size_t dim, mlir::Value output, mlir::Value size,
                      bool countsPadding);

/// What a pool adds or compares in.
mlir::Type poolAccumulator(mlir::Operation *pool);
inline nn::ReduceKind poolKind(mlir::Operation *pool) {
  return llvm::isa<nn::AvgPoolOp>(pool) ? nn::ReduceKind::sum : nn::ReduceKind::max;
}
inline bool countsPadding(mlir::Operation *pool) {
  auto average = llvm::dyn_cast<nn::AvgPoolOp>(pool);
  return average && average.getCountIncludePad();
}
/// A pool's element from what its window came to; `counted` taps are what an average divides by.
mlir::Value finishPool(Emitter &e, mlir::Operation *pool, mlir::Value total, mlir::Value counted);

} // namespace ajour::loops

#endif
