//===- Sparse.cpp - sparse constants as dense ones -------------------------------===//
#include "Reader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;

namespace ajour::tflite {

namespace {

/// One level of the storage tree.
struct Level {
  bool compressed = false;
  int64_t size = 0;    // dense size of the level
  int64_t stride = 0;  // bytes in the dense tensor for one step of the level
  std::vector<int64_t> segments, indices;
};

template <typename Vector> std::vector<int64_t> widen(const Vector *vector) {
  std::vector<int64_t> out;
  if (vector && vector->values())
    out.assign(vector->values()->begin(), vector->values()->end());
  return out;
}

std::vector<int64_t> readIndices(SparseIndices type, const void *table) {
  switch (type) {
  case SparseIndices::Int32Vector:
    return widen(static_cast<const Int32Vector *>(table));
  case SparseIndices::Uint16Vector:
    return widen(static_cast<const Uint16Vector *>(table));
  case SparseIndices::Uint8Vector:
    return widen(static_cast<const Uint8Vector *>(table));
  default:
    return {};
  }
}

std::string text(const llvm::Twine &twine) { return twine.str(); }

/// Checks a compressed level against the number of its parents.
std::string checkCompressed(const Level &level, size_t position, int64_t parents) {
  if (int64_t(level.segments.size()) != parents + 1)
    return text("sparse dimension " + llvm::Twine(position) + " needs " + llvm::Twine(parents + 1) +
                " segment bounds, has " + llvm::Twine(level.segments.size()));
  for (size_t i = 0; i < level.segments.size(); ++i)
    if (level.segments[i] < (i ? level.segments[i - 1] : 0) || (i == 0 && level.segments[0] != 0))
      return text("segment bounds of sparse dimension " + llvm::Twine(position) + " do not ascend from 0");
  if (level.segments.back() != int64_t(level.indices.size()))
    return text("sparse dimension " + llvm::Twine(position) + " needs " + llvm::Twine(level.segments.back()) +
                " indices, has " + llvm::Twine(level.indices.size()));
  for (int64_t index : level.indices)
    if (index < 0 || index >= level.size)
      return text("index " + llvm::Twine(index) + " of sparse dimension " + llvm::Twine(position) +
                  " is outside 0 to " + llvm::Twine(level.size - 1));
  return "";
}

/// Traversal order and block map: checked, as plain vectors.
struct Layout {
  std::vector<int64_t> order, blockOf; // blockOf[b]: the dimension that block dimension b divides
};

std::string readLayout(const Sparsity &sparsity, size_t rank, Layout &layout) {
  if (const auto *map = sparsity.block_map())
    layout.blockOf.assign(map->begin(), map->end());
  for (int64_t dim : layout.blockOf)
    if (dim < 0 || dim >= int64_t(rank))
      return text("block map names dimension " + llvm::Twine(dim) + " of a tensor of rank " + llvm::Twine(rank));
  size_t levels = rank + layout.blockOf.size();
  if (!sparsity.traversal_order())
    return "sparsity has no traversal order";
  layout.order.assign(sparsity.traversal_order()->begin(), sparsity.traversal_order()->end());
  std::vector<bool> seen(levels, false);
  for (int64_t dim : layout.order) {
    if (dim < 0 || dim >= int64_t(levels) || seen[dim])
      return "traversal order is not a permutation";
    seen[dim] = true;
  }
  if (layout.order.size() != levels)
    return text("traversal order needs " + llvm::Twine(levels) + " entries, has " + llvm::Twine(layout.order.size()));
  if (!sparsity.dim_metadata() || sparsity.dim_metadata()->size() != levels)
    return text("sparsity needs metadata of " + llvm::Twine(levels) + " dimensions, has " +
                llvm::Twine(sparsity.dim_metadata() ? sparsity.dim_metadata()->size() : 0));
  return "";
}

/// The dense size of each logical level (outer dimensions divided by their blocks, then blocks), and its
/// stride in bytes.
std::string measureLevels(const Sparsity &sparsity, ArrayRef<int64_t> shape, int64_t elementBytes,
                          const Layout &layout, std::vector<int64_t> &sizes, std::vector<int64_t> &strides) {
  size_t rank = shape.size();
  sizes.assign(shape.begin(), shape.end());
  strides.assign(rank, elementBytes);
  for (size_t i = rank; i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  // A block's size stands in its own (dense) metadata.
  for (size_t b = 0; b < layout.blockOf.size(); ++b) {
    size_t at = llvm::find(layout.order, int64_t(rank + b)) - layout.order.begin();
    const DimensionMetadata *metadata = sparsity.dim_metadata()->Get(at);
    int64_t block = metadata ? metadata->dense_size() : 0, dim = layout.blockOf[b];
    if (block < 1 || sizes[dim] % block)
      return text("block size " + llvm::Twine(block) + " does not divide dimension " + llvm::Twine(dim) + " of " +
                  llvm::Twine(sizes[dim]));
    sizes[dim] /= block;
    sizes.push_back(block);
    strides.push_back(strides[dim]);
    strides[dim] *= block;
  }
  return "";
}

} // namespace

std::string decodeSparse(const Sparsity &sparsity, ArrayRef<int64_t> shape, int64_t elementBytes,
                         ArrayRef<char> values, std::vector<char> &dense) {
  Layout layout;
  std::vector<int64_t> sizes, strides;
  if (std::string problem = readLayout(sparsity, shape.size(), layout); !problem.empty())
    return problem;
  if (std::string problem = measureLevels(sparsity, shape, elementBytes, layout, sizes, strides); !problem.empty())
    return problem;

  int64_t total = elementBytes;
  for (int64_t size : shape)
    total *= size;
  // Walk the levels outermost first; `offsets` are the byte offsets of all positions reached so far.
  std::vector<int64_t> offsets{0};
  int64_t reachable = 1; // distinct positions that there can be so far
  for (size_t i = 0; i < layout.order.size(); ++i) {
    const DimensionMetadata *metadata = sparsity.dim_metadata()->Get(i);
    if (!metadata)
      return text("metadata of sparse dimension " + llvm::Twine(i) + " is missing");
    Level level;
    level.size = sizes[layout.order[i]];
    level.stride = strides[layout.order[i]];
    reachable *= level.size;
    std::vector<int64_t> next;
    if (metadata->format() == DimensionKind::DENSE) {
      if (metadata->dense_size() != level.size)
        return text("sparse dimension " + llvm::Twine(i) + " has dense size " + llvm::Twine(metadata->dense_size()) +
                    ", expected " + llvm::Twine(level.size));
      next.reserve(offsets.size() * level.size);
      for (int64_t offset : offsets)
        for (int64_t k = 0; k < level.size; ++k)
          next.push_back(offset + k * level.stride);
    } else if (metadata->format() == DimensionKind::SPARSE_CSR) {
      level.segments = readIndices(metadata->array_segments_type(), metadata->array_segments());
      level.indices = readIndices(metadata->array_indices_type(), metadata->array_indices());
      if (std::string problem = checkCompressed(level, i, offsets.size()); !problem.empty())
        return problem;
      for (size_t parent = 0; parent < offsets.size(); ++parent)
        for (int64_t k = level.segments[parent]; k < level.segments[parent + 1]; ++k)
          next.push_back(offsets[parent] + level.indices[k] * level.stride);
    } else {
      return text("sparse dimension " + llvm::Twine(i) + " has unknown format " +
                  llvm::Twine(int(metadata->format())));
    }
    offsets = std::move(next);
    // Repeated indices could otherwise multiply beyond the tensor in the next level.
    if (int64_t(offsets.size()) > reachable)
      return text("sparse dimension " + llvm::Twine(i) + " repeats indices");
  }
  int64_t needed = int64_t(offsets.size()) * elementBytes;
  if (needed != int64_t(values.size()))
    return text("sparse constant needs " + llvm::Twine(needed) + " bytes, has " + llvm::Twine(values.size()));
  dense.assign(total, 0);
  for (size_t i = 0; i < offsets.size(); ++i)
    memcpy(dense.data() + offsets[i], values.data() + i * elementBytes, elementBytes);
  return "";
}

} // namespace ajour::tflite
