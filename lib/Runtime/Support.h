/// Messages, arrays and arithmetic that neither throw nor abort.
#ifndef AJOUR_LIB_RUNTIME_SUPPORT_H
#define AJOUR_LIB_RUNTIME_SUPPORT_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ajour/ABI/Dispatch.h"
#include "ajour/Runtime/Message.h"

namespace ajour::runtime {

/// A sized array of plain values; allocation can fail, never throws.
template <typename T> class Array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
  Array() = default;
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  Array(Array &&other) : elements(std::exchange(other.elements, nullptr)), count(std::exchange(other.count, 0)) {}
  Array &operator=(Array &&other) {
    std::swap(elements, other.elements);
    std::swap(count, other.count);
    return *this;
  }
  ~Array() { std::free(elements); }

  /// Replaces the contents by `n` zero-initialised elements. Returns false, and leaves the array as it
  /// was, when memory is lacking.
  [[nodiscard]] bool reset(size_t n) {
    T *fresh = n == 0 ? nullptr : static_cast<T *>(std::calloc(n, sizeof(T)));
    if (n != 0 && !fresh)
      return false;
    std::free(elements);
    elements = fresh;
    count = n;
    return true;
  }

  T &operator[](size_t i) { return elements[i]; }
  const T &operator[](size_t i) const { return elements[i]; }
  T *data() { return elements; }
  const T *data() const { return elements; }
  size_t size() const { return count; }
  T *begin() { return elements; }
  T *end() { return elements + count; }
  const T *begin() const { return elements; }
  const T *end() const { return elements + count; }

private:
  T *elements = nullptr;
  size_t count = 0;
};

/// Memory aligned to AJOUR_BUFFER_ALIGNMENT with AJOUR_BUFFER_SLACK readable bytes behind it.
class AlignedMemory {
public:
  AlignedMemory() = default;
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;
  AlignedMemory(AlignedMemory &&other)
      : bytes(std::exchange(other.bytes, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedMemory &operator=(AlignedMemory &&other) {
    std::swap(bytes, other.bytes);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedMemory() { std::free(bytes); }

  /// Replaces the memory; the contents are unspecified. On failure the old memory stays.
  [[nodiscard]] bool reset(uint64_t size);
  uint8_t *data() const { return bytes; }
  uint64_t size() const { return size_; }
  /// Hands the memory to the caller, who frees it.
  uint8_t *release() {
    size_ = 0;
    return std::exchange(bytes, nullptr);
  }

private:
  uint8_t *bytes = nullptr;
  uint64_t size_ = 0;
};

inline bool addOverflows(uint64_t a, uint64_t b, uint64_t &sum) { return __builtin_add_overflow(a, b, &sum); }

/// Whether [offset, offset + size) lies in [0, limit).
inline bool rangeFits(uint64_t offset, uint64_t size, uint64_t limit) {
  return size <= limit && offset <= limit - size;
}

inline uint64_t roundDown(uint64_t value, uint64_t alignment) { return value & ~(alignment - 1); }

} // namespace ajour::runtime

#endif
