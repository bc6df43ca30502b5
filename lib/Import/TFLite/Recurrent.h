//===- Recurrent.h - shared by recurrent operators --------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_TFLITE_RECURRENT_H
#define AJOUR_LIB_IMPORT_TFLITE_RECURRENT_H

#include "Importer.h"

namespace ajour::tflite {

/// Operands of one direction of an LSTM layer, as the format numbers them; -1: there is none. Gates are input, forget,
/// cell and output.
struct LstmOperands {
  int input, weights, recurrent, peephole, bias, projection, projectionBias, state, cell, norm;
};

/// What an LSTM layer's options say.
struct LstmOptions {
  Activation activation = Activation::TANH;
  float cellClip = 0, projectionClip = 0;
  bool timeMajor = false, reverse = false;
};

/// The order of our gates (input, output, forget, cell) in the format's.
constexpr int gateOrder[] = {0, 3, 1, 2};

/// The input as [T, B, I]; null after a diagnostic. A matrix is one step.
mlir::Value timeMajorInput(Node &node, mlir::Value x, bool timeMajor);
/// A sequence [T, B, R] as the operator gives it.
mlir::Value fromTimeMajor(Node &node, mlir::Value y, bool timeMajor, size_t rank);

/// An 8-bit LSTM with 16-bit cells, step by step; the result is [T, B, R] of the state's type. Null after a diagnostic.
mlir::Value importQuantizedLstm(Node &node, const LstmOperands &at, const LstmOptions &options);

} // namespace ajour::tflite

#endif
