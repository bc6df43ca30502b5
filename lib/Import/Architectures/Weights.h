//===- Weights.h - weights of language models, whatever file they are in -*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_WEIGHTS_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_WEIGHTS_H

#include "../GGUF/Blocks.h"
#include "../SafeTensors/Quantized.h"

#include "llvm/ADT/StringSet.h"

namespace ajour::architectures {

/// One weight as its file holds it. It keeps the file.
struct Weight {
  std::vector<int64_t> shape;
  llvm::ArrayRef<char> bytes;
  uint32_t elementType = 0;              ///< of plain numbers
  const gguf::TypeInfo *blocks = nullptr; ///< of quantised blocks

  const safetensors::QuantizedWeight *quantized = nullptr; ///< of several tensors together

  std::shared_ptr<const void> file; ///< that the bytes are in
  bool isMapped = false;            ///< the file is mapped, not read

  /// Whether it is integers of few bits with their parameters, which `unpack` gives.
  bool isGrouped() const { return blocks || (quantized && !quantized->elementType); }
  gguf::Grouped unpack() const { return blocks ? gguf::unpackBlocks(*blocks, bytes) : quantized->unpack(); }
  /// Lets go of the memory that holds the bytes: those of a mapped file come back when they are read again.
  void release() const;
  /// The inputs in the order of its columns; empty: as they are.
  llvm::ArrayRef<int64_t> order() const { return quantized ? llvm::ArrayRef(quantized->order) : llvm::ArrayRef<int64_t>(); }
};

/// Where a builder takes weights from. Names are the file's.
class WeightSource {
public:
  explicit WeightSource(std::shared_ptr<const gguf::File> file);
  explicit WeightSource(std::shared_ptr<const safetensors::File> file);
  /// The same with quantised weights, which take the place of the tensors that they are made of. Returns an empty string, or what does
  /// not fit together.
  std::string addQuantized(const safetensors::File &file, const safetensors::Quantization &quantization);
  /// Null when there is none of that name. What has been found counts as used.
  const Weight *find(llvm::StringRef name) const;
  /// A number that other weights do not have: of names, shapes and some bytes of each of the file's tensors.
  uint64_t identity() const { return fingerprint; }
  /// Names without this prefix find weights with it too.
  void setOptionalPrefix(llvm::StringRef text) { prefix = text.str(); }
  /// Weights that nobody asked for, in the order of their names, without those that are known to be derived from parameters
  /// (frequencies of rotary embeddings, masks).
  std::vector<std::string> unused() const;

private:
  llvm::StringMap<Weight> weights;
  std::vector<safetensors::QuantizedWeight> quantized;
  std::string prefix;
  uint64_t fingerprint = 0;
  mutable llvm::StringSet<> used;
};

} // namespace ajour::architectures

#endif
