/// Growable arrays and code points for text, without exceptions and without abort.
#ifndef AJOUR_LANGUAGE_TEXT_H
#define AJOUR_LANGUAGE_TEXT_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ajour::language {

/// Bytes that belong to somebody else.
struct Bytes {
  const char *data = nullptr;
  size_t size = 0;
  Bytes() = default;
  Bytes(const char *data, size_t size) : data(data), size(size) {}
  bool operator==(const Bytes &other) const { return size == other.size && std::memcmp(data, other.data, size) == 0; }
};

/// An array of plain values that grows. After a failed growth `failed()` is true and what was appended is
/// lost; callers look once at their end.
template <typename T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  Buffer(Buffer &&other) { swap(other); }
  Buffer &operator=(Buffer &&other) {
    swap(other);
    return *this;
  }
  ~Buffer() { std::free(elements); }

  void push(T value) {
    if (reserve(count + 1))
      elements[count++] = value;
  }
  void append(const T *values, size_t n) {
    if (n != 0 && reserve(count + n)) {
      std::memcpy(elements + count, values, n * sizeof(T));
      count += n;
    }
  }
  /// Appends `n` times the value. False: there is no memory.
  bool fill(size_t n, T value) {
    if (!reserve(count + n))
      return false;
    for (size_t i = 0; i < n; ++i)
      elements[count++] = value;
    return true;
  }
  /// Makes room for `n` elements in all. False: there is no memory.
  bool reserve(size_t n) { return n <= capacity || grow(n); }
  T pop() { return elements[--count]; }
  /// Takes `n` elements out from the front.
  void dropFront(size_t n) {
    if (n == 0)
      return;
    std::memmove(static_cast<void *>(elements), elements + n, (count - n) * sizeof(T));
    count -= n;
  }
  void shrink(size_t n) { count = n; }
  void clear() { count = 0; }

  T &operator[](size_t i) { return elements[i]; }
  const T &operator[](size_t i) const { return elements[i]; }
  T *data() { return elements; }
  const T *data() const { return elements; }
  size_t size() const { return count; }
  T &back() { return elements[count - 1]; }
  bool failed() const { return failed_; }
  void swap(Buffer &other) {
    std::swap(elements, other.elements);
    std::swap(count, other.count);
    std::swap(capacity, other.capacity);
    std::swap(failed_, other.failed_);
  }

private:
  bool grow(size_t n) {
    size_t wanted = capacity < 8 ? 16 : capacity * 2;
    if (wanted < n)
      wanted = n;
    T *grown = static_cast<T *>(std::realloc(static_cast<void *>(elements), wanted * sizeof(T)));
    if (!grown) {
      failed_ = true;
      return false;
    }
    elements = grown;
    capacity = wanted;
    return true;
  }

  T *elements = nullptr;
  size_t count = 0, capacity = 0;
  bool failed_ = false;
};

using Text = Buffer<char>;
inline void append(Text &text, Bytes bytes) { text.append(bytes.data, bytes.size); }
inline Bytes bytesOf(const Text &text) { return {text.data(), text.size()}; }

/// What a byte that starts no whole code point becomes.
inline constexpr uint32_t replacementCharacter = 0xfffd;

/// The code point at `data`, and how many bytes it takes (at least 1). Bytes that are not UTF-8 give the
/// replacement character one by one.
uint32_t decodeUtf8(const char *data, size_t size, unsigned &length);
/// Bytes of a sequence that begins with `lead`, 1 for a byte that begins none.
unsigned utf8Length(uint8_t lead);
/// Writes a code point's bytes and returns how many.
unsigned encodeUtf8(uint32_t codePoint, char bytes[4]);
void appendUtf8(uint32_t codePoint, Text &text);

} // namespace ajour::language

#endif
