#include "ajour/Language/Text.h"

namespace ajour::language {

unsigned utf8Length(uint8_t lead) {
  if (lead >= 0xc2 && lead < 0xe0)
    return 2;
  if (lead >= 0xe0 && lead < 0xf0)
    return 3;
  if (lead >= 0xf0 && lead < 0xf5)
    return 4;
  return 1;
}

uint32_t decodeUtf8(const char *data, size_t size, unsigned &length) {
  auto byte = [&](size_t i) { return uint32_t(uint8_t(data[i])); };
  unsigned wanted = utf8Length(uint8_t(data[0]));
  length = 1;
  if (wanted == 1)
    return byte(0) < 0x80 ? byte(0) : replacementCharacter;
  if (wanted > size)
    return replacementCharacter;
  uint32_t codePoint = byte(0) & (0x7fu >> wanted);
  for (unsigned i = 1; i < wanted; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return replacementCharacter;
    codePoint = codePoint << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
  if (codePoint < smallest[wanted] || codePoint > 0x10ffff || (codePoint >= 0xd800 && codePoint < 0xe000))
    return replacementCharacter;
  length = wanted;
  return codePoint;
}

unsigned encodeUtf8(uint32_t c, char bytes[4]) {
  if (c < 0x80) {
    bytes[0] = char(c);
    return 1;
  }
  unsigned length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (unsigned i = length - 1; i > 0; --i, c >>= 6)
    bytes[i] = char(0x80 | (c & 0x3f));
  bytes[0] = char(0xf00u >> length | c);
  return length;
}

void appendUtf8(uint32_t c, Text &text) {
  char bytes[4];
  text.append(bytes, encodeUtf8(c, bytes));
}

} // namespace ajour::language
