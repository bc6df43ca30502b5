//===- Ranges.h - what activations lie between ------------------*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_RANGES_H
#define AJOUR_LIB_COMPRESS_RANGES_H

#include "ModelFormat.h"
#include "ajour/Reference/HostTensor.h"

#include "mlir/IR/Value.h"

namespace ajour::compress {

/// The range of 256 even steps that stands for values with the smallest mean square error. It holds 0, and at most reaches from
/// the smallest to the largest value.
ActivationRanges::Range chooseRange(const std::vector<float> &values);

/// Some of the elements of tensors, and the extremes of all; for tensors of floats.
std::vector<float> sampleValues(const std::vector<HostTensor> &tensors);

/// Notes the range of a value at the node that it comes from, in place of one noted before: the last operation of a node makes
/// its result.
void noteRange(mlir::Value value, const std::vector<HostTensor> &tensors, ActivationRanges &ranges);

} // namespace ajour::compress

#endif
