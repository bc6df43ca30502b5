//===- Conv.h - windows of spatial operators ------------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ONNX_CONV_H
#define AJOUR_LIB_IMPORT_ONNX_CONV_H

#include "Node.h"

namespace ajour::onnx_import {

/// The window of a spatial operator: one value for each spatial dimension.
struct Window {
  Ints size, strides, dilations, low, high;
};

/// Reads kernel_shape, strides, dilations, pads and auto_pad. `kernel` is the window when the attribute is
/// absent (a filter's), or empty.
Window readWindow(Node &n, Value x, const Ints &kernel);

/// nn.conv of channels-first operands; the result is channels-last. `lhsZeroPoint` and `rhsZeroPoints` for
/// integers.
Value convolveLast(Node &n, Value x, Value filter, Value bias, int32_t lhsZeroPoint = 0,
                   ArrayRef<int32_t> rhsZeroPoints = {});

} // namespace ajour::onnx_import

#endif
