//===- Quantized.h - weights of few bits in safetensors files ---*- C++ -*-===//
//
// What quantising programs leave beside config.json: GPTQ, AWQ, and the integer and sparse forms of compressed-tensors. Several tensors
// of the file together are one weight [out, in].
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_IMPORT_SAFETENSORS_QUANTIZED_H
#define AJOUR_LIB_IMPORT_SAFETENSORS_QUANTIZED_H

#include "../GGUF/Blocks.h"
#include "ajour/Import/SafeTensors.h"

namespace ajour::safetensors {

/// How a model's weights are quantised, as `quantization_config` of its config.json says.
struct Quantization {
  enum class Method { None, GPTQ, AWQ, CompressedTensors };
  Method method = Method::None;
  unsigned bits = 4;
  int64_t group = -1;      ///< inputs that share parameters; -1: all
  int64_t zeroOffset = 0;  ///< what is added to stored zero points: GPTQ's first format has them less 1
};

/// Reads a config.json. Returns an empty string, or the parameter that is not supported and what is.
std::string readQuantization(llvm::StringRef config, Quantization &quantization);

/// A weight [out, in] that several tensors make up, checked: unpacking cannot fail.
struct QuantizedWeight {
  std::string name;           ///< "LAYER.weight"
  std::vector<int64_t> shape;
  std::vector<int64_t> order; ///< the inputs in the order of the weight's columns; empty: as they are
  /// Of a sparse weight of plain numbers: it has no scales, and `expand` gives all its elements.
  uint32_t elementType = 0;

  gguf::Grouped unpack() const;
  std::vector<char> expand() const;

  enum class Layout {
    GPTQ,    ///< [in / n, out] words of n values below each other
    AWQ,     ///< [in, out / 8] words of 8 values next to each other, even columns before odd ones
    Packed,  ///< [out, in / n] words of n values next to each other
    Bytes,   ///< [out, in] bytes
    Sparse,  ///< kept elements, and which those are
  } layout = Layout::Bytes;
  unsigned bits = 8;
  int64_t group = 0, zeroOffset = 0;
  Tensor values, scales, zeroPoints, mask; ///< absent ones have no bytes
};

/// Finds the quantised weights of a file. `used` receives the names of all tensors that they are made of. Returns an empty string, or
/// the weight whose tensors do not fit together.
std::string findQuantizedWeights(const File &file, const Quantization &quantization, std::vector<QuantizedWeight> &weights,
                                 std::vector<std::string> &used);

} // namespace ajour::safetensors

#endif
