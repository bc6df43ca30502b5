/// Runs compiled regular expressions over code points.
#ifndef AJOUR_LIB_LANGUAGE_PATTERN_H
#define AJOUR_LIB_LANGUAGE_PATTERN_H

#include "Flat.h"
#include "ajour/Language/Text.h"

namespace ajour::language {

/// Whether a sorted list of inclusive ranges holds a code point.
bool contains(const flatbuffers::Vector<uint32_t> &ranges, uint32_t codePoint);

/// Checks the code of an untrusted pattern: opcodes, targets, sets, nesting, sorted ranges. Returns null, or what
/// is wrong.
const char *checkPattern(const tokenizer::Pattern &pattern);
/// The same for one set.
const char *checkSet(const tokenizer::CharSet *set);

/// Code points of a text with the byte at which each begins; `starts` has one more, the size.
struct CodePoints {
  Buffer<uint32_t> values;
  Buffer<uint32_t> starts;
  void assign(Bytes text);
  bool failed() const { return values.failed() || starts.failed(); }
};

/// Finds matches of a checked pattern. Steps are bounded, because patterns come from model files and some take
/// exponential time.
class Matcher {
public:
  Matcher(const tokenizer::Pattern &pattern, const uint32_t *text, size_t size)
      : pattern(pattern), text(text), size(size), budget(4096 + uint64_t(size) * 256) {}

  /// The first match that begins at or after `from`; false: there is none, or `exhausted()`.
  bool find(size_t from, size_t &begin, size_t &end);
  /// Whether matching was given up: too many steps, or no memory.
  bool exhausted() const { return exhausted_; }

private:
  struct State {
    uint32_t pc;
    uint32_t position;
    uint32_t least; ///< of a run: how far it may give back
  };
  bool match(uint32_t pc, size_t from, size_t &end);

  const tokenizer::Pattern &pattern;
  const uint32_t *text;
  size_t size;
  uint64_t budget;
  unsigned depth = 0; ///< of looking ahead
  bool exhausted_ = false;
  Buffer<State> stack;
};

} // namespace ajour::language

#endif
