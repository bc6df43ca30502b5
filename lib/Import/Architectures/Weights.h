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

/// Where a builder takes weights from. Names are the file's.
class WeightSource {
public:
  virtual ~WeightSource() = default;
  /// Null when there is none of that name.
  virtual const Weight *find(llvm::StringRef name) const = 0;
};

class GGUFWeights : public WeightSource {
public:
  explicit GGUFWeights(const gguf::File &file);
  const Weight *find(llvm::StringRef name) const override;

private:
  llvm::StringMap<Weight> weights;
};

class SafeTensorsWeights : public WeightSource {
public:
  explicit SafeTensorsWeights(const safetensors::File &file);
  const Weight *find(llvm::StringRef name) const override;

private:
  llvm::StringMap<Weight> weights;
};

} // namespace ajour::architectures

#endif
