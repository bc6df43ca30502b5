//===- Encodings.h - what a model says of its weights ----------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ONNX_ENCODINGS_H
#define AJOUR_LIB_IMPORT_ONNX_ENCODINGS_H

#include "ajour/Import/OnnxFile.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace ajour::onnx_import {

/// What messages and locations call a node of the main graph.
inline std::string nodeName(const ::onnx::NodeProto &node, int64_t index) {
  return node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
}

/// The metadata entry `ajour.encoding`, {"INITIALIZER": {"structure": "c4n", "n": 2, ...}, ...}, as the attribute `enc.declared`: by the nodes
/// that read the weights, also behind nodes that only dequantise or reorder them. Null if there is no entry, or with `error` set.
mlir::DictionaryAttr readDeclaredEncodings(const ::onnx::ModelProto &model, mlir::MLIRContext *context, std::string &error);

} // namespace ajour::onnx_import

#endif
