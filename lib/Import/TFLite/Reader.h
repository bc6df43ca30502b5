//===- Reader.h - a checked TFLite file -------------------------*- C++ -*-===//
//
// The door for untrusted bytes: behind it every index, offset, shape and buffer size of the first subgraph,
// and of those that initialise variables, is known to be good, and tensors hold their constants decoded (sparse ones dense).
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_IMPORT_TFLITE_READER_H
#define AJOUR_LIB_IMPORT_TFLITE_READER_H

#include "ajour/Import/TFLite_generated.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ajour::tflite {

/// What a file may ask of us.
struct Limits {
  static constexpr int64_t tensors = 1 << 20;
  static constexpr int64_t operators = 1 << 20;
  static constexpr int64_t rank = 8;
  static constexpr int64_t elements = int64_t(1) << 31;
};

/// Quantisation of a tensor: real = (stored - zeroPoint) * scale.
struct QuantInfo {
  std::vector<float> scales;
  std::vector<int32_t> zeroPoints; ///< as many as scales
  int64_t axis = 0;
  bool isPerTensor() const { return scales.size() == 1; }
};

/// Quantisation in blocks along `axis`: scales (and zero points) are tensors of their own.
struct BlockQuantInfo {
  int32_t scales = -1, zeroPoints = -1; ///< tensors; -1: no zero points
  int64_t axis = 0, size = 0;
};

struct TensorData {
  std::string name;
  TensorType format = TensorType::FLOAT32; ///< as in the file
  mlir::Type elementType;                  ///< null for types that nn lacks
  std::vector<int64_t> shape;              ///< as stored, static
  std::vector<bool> isDynamic;             ///< dimensions that the signature leaves open
  std::optional<QuantInfo> quant;
  std::optional<BlockQuantInfo> blocks; ///< then `quant` is absent
  bool isConstant = false;
  bool isVariable = false;
  std::string problem; ///< non-empty: why the tensor cannot be used (reported at its user)
  llvm::ArrayRef<char> bytes; ///< of a constant; points into the file or `storage`
  std::vector<char> storage;

  /// Bits of a stored element: less than a byte in packed types, whose `bytes` are unpacked.
  int64_t bits() const;
  bool isQuantized() const { return quant && mlir::isa<mlir::IntegerType>(elementType); }
};

struct OperatorData {
  std::string type; ///< "CONV_2D", or a custom operator's name
  Builtin code = Builtin::CUSTOM;
  int32_t version = 1;
  const Operator *table = nullptr;
  std::vector<int32_t> inputs, outputs; ///< -1: an absent optional input
  std::vector<int32_t> intermediates;   ///< tensors whose quantisation is that of values inside the operator; -1: none
};

struct Graph {
  std::string fileName;
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::vector<TensorData> tensors;
  std::vector<OperatorData> operators;
  std::vector<int32_t> inputs, outputs;
  std::map<int32_t, std::shared_ptr<Graph>> initialisers; ///< the subgraphs that CALL_ONCE operators name
};

/// Reads and checks a file; each problem is a diagnostic at a location in `path`.
mlir::FailureOr<Graph> readGraph(mlir::MLIRContext *context, const std::string &path);

/// Expands a sparse constant to row-major bytes of `shape`. `values` are the stored elements. Returns an
/// empty string, or what is wrong with the metadata. Source of the layout: the format's description of
/// traversal order, block map and per-dimension dense or compressed-sparse-row metadata.
std::string decodeSparse(const Sparsity &sparsity, llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                         llvm::ArrayRef<char> values, std::vector<char> &dense);

/// The format's name of a type ("FLOAT32"), or its number.
std::string typeName(TensorType type);

} // namespace ajour::tflite

#endif
