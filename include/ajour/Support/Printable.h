//===- Printable.h - names and texts of files in messages ---------*- C++ -*-===//
#ifndef AJOUR_SUPPORT_PRINTABLE_H
#define AJOUR_SUPPORT_PRINTABLE_H

#include <string>
#include <string_view>

namespace ajour {

/// A text with control characters written as \xNN, so that a name out of a file can neither feign further lines of a message nor
/// steer a terminal. `keepLines` leaves ends of lines and tabs as they are.
inline std::string printable(std::string_view text, bool keepLines = false) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  for (char c : text) {
    auto code = static_cast<unsigned char>(c);
    if ((code >= 0x20 && code != 0x7f) || (keepLines && (c == '\n' || c == '\t')))
      result += c;
    else
      result += {'\\', 'x', digits[code >> 4], digits[code & 15]};
  }
  return result;
}

} // namespace ajour

#endif
