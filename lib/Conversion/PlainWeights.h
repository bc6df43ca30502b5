//===- PlainWeights.h - a product's constant weights in plain form ---*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_PLAINWEIGHTS_H
#define AJOUR_LIB_CONVERSION_PLAINWEIGHTS_H

#include "ajour/Encoding/Encoding.h"

#include "mlir/IR/Operation.h"

#include <vector>

namespace ajour {

/// What the structure and values of a weight are found from.
struct PlainWeight {
  std::vector<uint8_t> mask; ///< [n][k], 1: not zero
  encoding::Values values;   ///< as the module says it, or as the numbers show
  int64_t bytes = 0;         ///< of the constants as they are in the module
};

/// The operand of a product (nn.matmul, nn.conv, nn.conv_transpose) that holds its weights; null for other operations.
mlir::Value weightsOf(mlir::Operation *product);

/// Reads a product's weights, seen as a matrix of this shape: a constant of floats or 8-bit integers, or one behind an operation that says
/// what few bits stand for (nn.dequantize_grouped, nn.dequantize_codebook, nn.cast of 16-bit floats). False: they are no such constant.
bool readPlainWeight(mlir::Operation *product, const encoding::WeightShape &shape, PlainWeight &weight);

} // namespace ajour

#endif
