//===- Weights.cpp - weights of language models, whatever file they are in ----------===//
#include "Weights.h"

#include "ajour/ABI/ElementTypes.h"

using namespace llvm;

namespace ajour::architectures {

WeightSource::WeightSource(const gguf::File &file) {
  for (const gguf::Tensor &tensor : file.tensors) {
    Weight weight{tensor.shape, tensor.bytes};
    switch (tensor.type->type) {
    case gguf::TensorType::F32:
      weight.elementType = AJOUR_F32;
      break;
    case gguf::TensorType::F16:
      weight.elementType = AJOUR_F16;
      break;
    case gguf::TensorType::BF16:
      weight.elementType = AJOUR_BF16;
      break;
    default:
      weight.blocks = tensor.type;
    }
    weights[tensor.name] = std::move(weight);
  }
}

WeightSource::WeightSource(const safetensors::File &file) {
  for (const safetensors::Tensor &tensor : file.tensors)
    weights[tensor.name] = {tensor.shape, tensor.bytes, tensor.elementType};
}

const Weight *WeightSource::find(StringRef name) const {
  auto it = weights.find(name);
  return it == weights.end() ? nullptr : &it->second;
}

} // namespace ajour::architectures
