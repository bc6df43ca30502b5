//===- Constants.cpp - constant tensors as bytes ------------------------------===//
#include "ajour/ABI/ElementTypes.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Encoding/Half.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseSet.h"

#include <mutex>

using namespace mlir;

namespace ajour::nn {

/// Constants up to this many bytes print in full in IR text.
static constexpr size_t inlineBytes = 64;

//===----------------------------------------------------------------------===//
// Constants that are made when they are asked for
//===----------------------------------------------------------------------===//

namespace {
/// What the blob of such a constant holds instead of its bytes.
struct Lazy {
  size_t bytes;
  std::function<void(MutableArrayRef<char>)> fill;
};

/// Those that are alive. A blob of text from outside may hold anything, so they are known by where they are, not by what is in them.
class LazyConstants {
public:
  void add(const Lazy *lazy) {
    std::lock_guard guard(lock);
    alive.insert(lazy);
  }
  void remove(const Lazy *lazy) {
    std::lock_guard guard(lock);
    alive.erase(lazy);
  }
  const Lazy *find(const AsmResourceBlob &blob) {
    if (blob.getData().size() != sizeof(Lazy))
      return nullptr;
    std::lock_guard guard(lock);
    auto found = alive.find(static_cast<const void *>(blob.getData().data()));
    return found == alive.end() ? nullptr : static_cast<const Lazy *>(*found);
  }

private:
  std::mutex lock;
  llvm::DenseSet<const void *> alive;
};
} // namespace

static LazyConstants &lazyConstants() {
  static LazyConstants all;
  return all;
}

ElementsAttr makeLazyConstant(RankedTensorType type, std::function<void(MutableArrayRef<char>)> fill) {
  size_t bytes = size_t(type.getNumElements()) * size_t(elementBytes(type.getElementType()));
  auto *lazy = new Lazy{bytes, std::move(fill)};
  lazyConstants().add(lazy);
  auto remove = [lazy](void *, size_t, size_t) {
    lazyConstants().remove(lazy);
    delete lazy;
  };
  return DenseResourceElementsAttr::get(
      type, "data", AsmResourceBlob(ArrayRef(reinterpret_cast<const char *>(lazy), sizeof(Lazy)), alignof(Lazy), remove, /*dataIsMutable=*/false));
}

bool isLazyConstant(ElementsAttr attr) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(attr);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  return blob && lazyConstants().find(*blob);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

ElementsAttr makeConstant(RankedTensorType type, ArrayRef<char> bytes) {
  assert(type.hasStaticShape() &&
         int64_t(bytes.size()) == type.getNumElements() * elementBytes(type.getElementType()) && "size of a constant");
  bool isBool = type.getElementType().isInteger(1);
  if (bytes.size() <= inlineBytes && !isBool && !bytes.empty())
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  // A tensor without elements still has a place in memory.
  static const char nothing = 0;
  if (bytes.empty())
    bytes = ArrayRef<char>(&nothing, size_t(0));
  // Booleans are a byte each here and a bit each in dense attributes, so they always go the other way.
  return DenseResourceElementsAttr::get(type, "data", HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64, /*dataIsMutable=*/false));
}

ArrayRef<char> constantBytes(ElementsAttr attr, std::vector<char> &storage) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return {};
    const Lazy *lazy = lazyConstants().find(*blob);
    if (!lazy)
      return blob->getData();
    storage.resize(lazy->bytes);
    lazy->fill(storage);
    return storage;
  }
  auto dense = cast<DenseElementsAttr>(attr);
  Type element = dense.getElementType();
  if (element.isInteger(1)) {
    storage.clear();
    for (bool value : dense.getValues<bool>())
      storage.push_back(value);
    return storage;
  }
  if (!dense.isSplat())
    return dense.getRawData();
  size_t size = elementBytes(element);
  storage.resize(dense.getNumElements() * size);
  for (int64_t i = 0; i < dense.getNumElements(); ++i)
    memcpy(storage.data() + i * size, dense.getRawData().data(), size);
  return storage;
}

std::vector<char> constantBytes(ElementsAttr attr) {
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(attr, storage);
  if (bytes.data() == storage.data() && bytes.size() == storage.size())
    return storage;
  return std::vector<char>(bytes.begin(), bytes.end());
}

template <typename T, typename Out> static std::vector<Out> widen(ArrayRef<char> bytes) {
  std::vector<Out> out(bytes.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<Out>(value);
  }
  return out;
}

std::optional<std::vector<int64_t>> constantInts(ElementsAttr attr) {
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(attr, storage);
  switch (getElementTypeId(attr.getElementType())) {
  case AJOUR_I8:
    return widen<int8_t, int64_t>(bytes);
  case AJOUR_U8:
  case AJOUR_BOOL:
    return widen<uint8_t, int64_t>(bytes);
  case AJOUR_I16:
    return widen<int16_t, int64_t>(bytes);
  case AJOUR_U16:
    return widen<uint16_t, int64_t>(bytes);
  case AJOUR_I32:
    return widen<int32_t, int64_t>(bytes);
  case AJOUR_U32:
    return widen<uint32_t, int64_t>(bytes);
  case AJOUR_I64:
  case AJOUR_U64:
    return widen<int64_t, int64_t>(bytes);
  default:
    return std::nullopt;
  }
}

/// What each f16 stands for.
static const std::vector<float> &halfTable() {
  static const std::vector<float> table = [] {
    std::vector<float> values(65536);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = encoding::halfToFloat(uint16_t(i));
    return values;
  }();
  return table;
}

std::optional<std::vector<float>> constantFloats(ElementsAttr attr) {
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(attr, storage);
  uint32_t type = getElementTypeId(attr.getElementType());
  if (type == AJOUR_F32)
    return widen<float, float>(bytes);
  if (type == AJOUR_F64)
    return widen<double, float>(bytes);
  if (type != AJOUR_F16 && type != AJOUR_BF16)
    return std::nullopt;
  const float *halves = type == AJOUR_F16 ? halfTable().data() : nullptr;
  std::vector<float> out(bytes.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    memcpy(&bits, bytes.data() + i * 2, 2);
    out[i] = halves ? halves[bits] : encoding::bfloatToFloat(bits);
  }
  return out;
}

ElementsAttr getConstantValue(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? constant.getValue() : ElementsAttr();
}

} // namespace ajour::nn
