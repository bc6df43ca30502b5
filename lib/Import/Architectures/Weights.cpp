//===- Weights.cpp - weights of language models, whatever file they are in ----------===//
#include "Weights.h"

#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/ElementTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"

#include <sys/mman.h>

using namespace llvm;

namespace ajour::architectures {

/// Whether all parts of a file are mapped: small ones are read into memory, and bytes that were parsed elsewhere have none.
template <typename File> static bool isMapped(const File &file) {
  return !file.parts.empty() && all_of(file.parts, [](const std::unique_ptr<MemoryBuffer> &part) { return part->getBufferKind() == MemoryBuffer::MemoryBuffer_MMap; });
}

void Weight::release() const {
  // Pages at the ends are the neighbours' too.
  uintptr_t page = sys::Process::getPageSizeEstimate();
  uintptr_t begin = alignTo(reinterpret_cast<uintptr_t>(bytes.data()), page), end = reinterpret_cast<uintptr_t>(bytes.end()) & ~(page - 1);
  if (isMapped && begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

/// Adds a tensor to a fingerprint. Four pieces of it: reading all of a large file for this would take as long as compiling a small one.
static void addTensor(uint64_t &fingerprint, StringRef name, ArrayRef<int64_t> shape, ArrayRef<char> bytes) {
  auto add = [&](const void *data, size_t size) {
    uint64_t both[2] = {fingerprint, ajour_checksum(data, size)};
    fingerprint = ajour_checksum(both, sizeof(both));
  };
  add(name.data(), name.size());
  add(shape.data(), shape.size() * sizeof(int64_t));
  constexpr size_t pieces = 4, pieceBytes = 64;
  for (size_t i = 0; i < pieces; ++i) {
    ArrayRef<char> piece = bytes.drop_front(bytes.size() / pieces * i).take_front(pieceBytes);
    add(piece.data(), piece.size());
  }
}

WeightSource::WeightSource(std::shared_ptr<const gguf::File> file) {
  bool mapped = isMapped(*file);
  for (const gguf::Tensor &tensor : file->tensors) {
    Weight weight{tensor.shape, tensor.bytes};
    addTensor(fingerprint, tensor.name, tensor.shape, tensor.bytes);
    weight.file = file;
    weight.isMapped = mapped;
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

WeightSource::WeightSource(std::shared_ptr<const safetensors::File> file) {
  bool mapped = isMapped(*file);
  for (const safetensors::Tensor &tensor : file->tensors) {
    Weight weight{tensor.shape, tensor.bytes, tensor.elementType};
    addTensor(fingerprint, tensor.name, tensor.shape, tensor.bytes);
    weight.file = file;
    weight.isMapped = mapped;
    weights[tensor.name] = std::move(weight);
  }
}

std::string WeightSource::addQuantized(const safetensors::File &file, const safetensors::Quantization &quantization) {
  std::vector<std::string> parts;
  if (std::string problem = safetensors::findQuantizedWeights(file, quantization, quantized, parts); !problem.empty())
    return problem;
  for (const std::string &part : parts)
    weights.erase(part);
  for (const safetensors::QuantizedWeight &weight : quantized)
    weights[weight.name] = {weight.shape, {}, weight.elementType, nullptr, &weight};
  return "";
}

const Weight *WeightSource::find(StringRef name) const {
  auto it = weights.find(name);
  if (it == weights.end() && !prefix.empty())
    it = weights.find(prefix + name.str());
  if (it == weights.end())
    return nullptr;
  used.insert(it->first());
  return &it->second;
}

/// What some programs store beside the weights although it follows from parameters.
static bool isDerived(StringRef name) {
  for (const char *ending : {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias"})
    if (name.ends_with(ending))
      return true;
  return false;
}

std::vector<std::string> WeightSource::unused() const {
  std::vector<std::string> names;
  for (const auto &entry : weights)
    if (!used.contains(entry.first()) && !isDerived(entry.first()))
      names.push_back(entry.first().str());
  llvm::sort(names);
  return names;
}

} // namespace ajour::architectures
