/// Streams of fields of a few bits, least significant bit first.
#ifndef AJOUR_LIB_ENCODING_BITS_H
#define AJOUR_LIB_ENCODING_BITS_H

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace ajour::encoding {

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Bits that hold the numbers 0 to `largest`.
inline unsigned bitsFor(uint64_t largest) { return std::bit_width(largest); }

class BitWriter {
public:
  BitWriter() = default;
  /// One that only counts the bits.
  static BitWriter counter() {
    BitWriter writer;
    writer.isCounter = true;
    return writer;
  }
  /// Appends the low `bits` (at most 56) of a value that fits.
  void put(uint64_t value, unsigned bits) {
    if (isCounter) {
      counted += bits;
      return;
    }
    pending |= value << used;
    used += bits;
    for (; used >= 8; used -= 8, pending >>= 8)
      bytes.push_back(static_cast<uint8_t>(pending));
  }
  int64_t bitCount() const { return isCounter ? counted : static_cast<int64_t>(bytes.size()) * 8 + used; }
  /// The bytes so far, filled up with zero bits.
  std::vector<uint8_t> take() {
    if (used > 0)
      bytes.push_back(static_cast<uint8_t>(pending));
    used = 0;
    pending = 0;
    return std::move(bytes);
  }

private:
  std::vector<uint8_t> bytes;
  uint64_t pending = 0;
  unsigned used = 0; // Less than 8 between calls.
  bool isCounter = false;
  int64_t counted = 0;
};

/// Reads what BitWriter wrote. Past the end it gives zeros and is no longer good.
class BitReader {
public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes(bytes) {}
  uint64_t get(unsigned bits) {
    while (used < bits) {
      if (next == bytes.size()) {
        isGood = false;
        return 0;
      }
      pending |= static_cast<uint64_t>(bytes[next++]) << used;
      used += 8;
    }
    uint64_t value = pending & ((uint64_t(1) << bits) - 1);
    pending >>= bits;
    used -= bits;
    return value;
  }
  bool good() const { return isGood; }
  /// Whether all that is left is the zero bits of the last byte.
  bool atEnd() const { return isGood && next == bytes.size() && used < 8 && pending == 0; }

private:
  std::span<const uint8_t> bytes;
  size_t next = 0;
  uint64_t pending = 0;
  unsigned used = 0; // At most 63: `bits` is at most 56.
  bool isGood = true;
};

} // namespace ajour::encoding

#endif
