//===- Resample.h - what a resized dimension reads ------------*- C++ -*-===//
#ifndef AJOUR_REFERENCE_RESAMPLE_H
#define AJOUR_REFERENCE_RESAMPLE_H

#include "ajour/Dialect/NN/NN.h"

#include <vector>

namespace ajour {

/// One result index along one dimension of nn.resize: the weighted sum of operand indices. Interpolation is
/// separable, so a result element is the sum over all dimensions' taps with the products of their weights.
struct ResizeSource {
  bool outside = false; ///< tf_crop_and_resize: any such dimension makes the element the extrapolation value
  llvm::SmallVector<std::pair<int64_t, double>, 4> taps; ///< at least one, inside the operand, weights not 0
};

/// The sources of each result index along dimension `dim`, for an operand of `in` > 0 and a result of `out`
/// elements there. Coordinates come from the exact quotient in / out when the operation has no scales,
/// else from a division by the scale rounded to f32. Definitions: ONNX Resize, operator set 19.
std::vector<ResizeSource> resizeSources(nn::ResizeOp op, unsigned dim, int64_t in, int64_t out);

} // namespace ajour

#endif
