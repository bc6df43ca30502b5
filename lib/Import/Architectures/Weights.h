//===- Weights.h - weights of language models, whatever file they are in -*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_WEIGHTS_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_WEIGHTS_H

#include "../GGUF/Reader.h"
#include "../SafeTensors/Reader.h"

namespace ajour::architectures {

/// One weight as its file holds it.
struct Weight {
  std::vector<int64_t> shape;
  llvm::ArrayRef<char> bytes;
  uint32_t elementType = 0;              ///< of plain numbers
  const gguf::TypeInfo *blocks = nullptr; ///< of quantised blocks
};

/// Where a builder takes weights from. Names are the file's, whose bytes must outlive it.
class WeightSource {
public:
  explicit WeightSource(const gguf::File &file);
  explicit WeightSource(const safetensors::File &file);
  /// Null when there is none of that name.
  const Weight *find(llvm::StringRef name) const;

private:
  llvm::StringMap<Weight> weights;
};

} // namespace ajour::architectures

#endif
