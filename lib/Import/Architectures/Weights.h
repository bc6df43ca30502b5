//===- Weights.h - weights of language models, whatever file they are in -*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_WEIGHTS_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_WEIGHTS_H

#include "../GGUF/Blocks.h"
#include "../SafeTensors/Reader.h"

#include "llvm/ADT/StringSet.h"

namespace ajour::architectures {

/// One weight as its file holds it.
struct Weight {
  std::vector<int64_t> shape;
  llvm::ArrayRef<char> bytes;
  uint32_t elementType = 0;              ///< of plain numbers
  const gguf::TypeInfo *blocks = nullptr; ///< of quantised blocks

  /// Integers and their parameters, of a weight in blocks.
  gguf::Grouped unpack() const { return gguf::unpackBlocks(*blocks, bytes); }
};

/// Where a builder takes weights from. Names are the file's, whose bytes must outlive it.
class WeightSource {
public:
  explicit WeightSource(const gguf::File &file);
  explicit WeightSource(const safetensors::File &file);
  /// Null when there is none of that name. What has been found counts as used.
  const Weight *find(llvm::StringRef name) const;
  /// Names without this prefix find weights with it too.
  void setOptionalPrefix(llvm::StringRef text) { prefix = text.str(); }
  /// Weights that nobody asked for, in the order of their names, without those that are known to be derived from parameters
  /// (frequencies of rotary embeddings, masks).
  std::vector<std::string> unused() const;

private:
  llvm::StringMap<Weight> weights;
  std::string prefix;
  mutable llvm::StringSet<> used;
};

} // namespace ajour::architectures

#endif
