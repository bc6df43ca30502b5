// Grammars as texts: names, "strings", [classes], groups, alternatives and repetitions.
#include "Grammar.h"

#include <algorithm>
#include <cstdio>

namespace ajour::language {

namespace {

struct Range {
  uint32_t first, last;
};

struct Name {
  Bytes text;
  uint32_t rule;
  bool defined;
  size_t used; ///< where it was first used
};

class Parser {
public:
  Parser(Grammar &grammar, Bytes text, char *message, size_t messageSize)
      : g(grammar), text(text), message(message), messageSize(messageSize) {}

  bool run() {
    skipSpace(true);
    while (at < text.size)
      if (!parseRule())
        return false;
    Name *root = findName(Bytes("root", 4));
    if (!root || !root->defined)
      return fail(text.size, "there is no rule 'root'");
    g.root = root->rule;
    for (size_t i = 0; i < names.size(); ++i)
      if (!names[i].defined)
        return failAbout(names[i].used, "there is no rule '%.*s'", names[i].text);
    if (g.elements.failed() || g.alternatives.failed() || g.rules.failed() || g.sets.failed() || names.failed())
      return fail(at, "there is no memory for it");
    return checkLeftRecursion();
  }

private:
  static constexpr uint32_t none = Grammar::none;
  static constexpr unsigned mostDepth = 100;
  static constexpr uint32_t mostRepeats = 10000;
  using Row = Buffer<Grammar::Element>;

  //===--- messages ---------------------------------------------------------===//

  bool failAbout(size_t place, const char *format, Bytes about) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < place && i < text.size; ++i) {
      column = text.data[i] == '\n' ? 1 : column + 1;
      line += text.data[i] == '\n';
    }
    char what[256];
    std::snprintf(what, sizeof(what), format, int(std::min<size_t>(about.size, 100)), about.data);
    std::snprintf(message, messageSize, "line %zu, column %zu: %s", line, column, what);
    return false;
  }
  bool fail(size_t place, const char *what) { return failAbout(place, "%.*s", Bytes(what, std::strlen(what))); }

  //===--- characters -------------------------------------------------------===//

  char peek() const { return at < text.size ? text.data[at] : 0; }
  bool stands(const char *what) const {
    size_t size = std::strlen(what);
    return text.size - at >= size && std::memcmp(text.data + at, what, size) == 0;
  }
  void skipSpace(bool lines) {
    while (at < text.size) {
      char ch = text.data[at];
      if (ch == '#')
        while (at < text.size && text.data[at] != '\n')
          ++at;
      else if (ch == ' ' || ch == '\t' || ch == '\r' || (lines && ch == '\n'))
        ++at;
      else
        break;
    }
  }
  static bool isNameByte(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '-' || ch == '_';
  }
  Bytes readName() {
    size_t begin = at;
    while (isNameByte(peek()))
      ++at;
    return {text.data + begin, at - begin};
  }

  /// One character of a string or class; `end` closes it.
  bool readCharacter(uint32_t &point) {
    if (peek() != '\\') {
      unsigned length;
      point = decodeUtf8(text.data + at, text.size - at, length);
      if (point == replacementCharacter && length == 1)
        return fail(at, "the grammar is not UTF-8");
      at += length;
      return true;
    }
    size_t begin = at++;
    char ch = peek();
    ++at;
    int digits = ch == 'x' ? 2 : ch == 'u' ? 4 : ch == 'U' ? 8 : 0;
    const char *names = "nrt\\\"'[]^-/", *found = ch ? std::strchr(names, ch) : nullptr;
    if (digits == 0) {
      point = found ? uint32_t(uint8_t("\n\r\t\\\"'[]^-/"[found - names])) : 0;
      return found || fail(begin, "unknown escape in a string");
    }
    point = 0;
    for (int i = 0; i < digits; ++i, ++at) {
      char d = peek();
      int digit = d >= '0' && d <= '9' ? d - '0' : d >= 'a' && d <= 'f' ? d - 'a' + 10 : d >= 'A' && d <= 'F' ? d - 'A' + 10 : -1;
      if (digit < 0)
        return fail(begin, "an escape needs hexadecimal digits: \\xHH, \\uHHHH, \\UHHHHHHHH");
      point = point * 16 + uint32_t(digit);
    }
    return point <= 0x10ffff || fail(begin, "a character is above U+10FFFF");
  }

  //===--- rules ------------------------------------------------------------===//

  Name *findName(Bytes name) {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i].text == name)
        return &names[i];
    return nullptr;
  }
  Name *nameOf(Bytes name, size_t place) {
    if (Name *found = findName(name))
      return found;
    g.rules.push(none);
    names.push({name, uint32_t(g.rules.size()) - 1, false, place});
    return names.failed() ? nullptr : &names.back();
  }
  uint32_t newRule() {
    g.rules.push(none);
    return uint32_t(g.rules.size()) - 1;
  }
  void addAlternative(uint32_t rule, const Row &row, size_t from = 0) {
    uint32_t first = uint32_t(g.elements.size());
    g.elements.append(row.data() + from, row.size() - from);
    g.elements.push({Grammar::Kind::End, 0});
    g.alternatives.push({first, g.rules[rule]});
    g.rules[rule] = uint32_t(g.alternatives.size()) - 1;
  }

  bool parseRule() {
    size_t begin = at;
    Bytes name = readName();
    if (name.size == 0)
      return fail(begin, "expected the name of a rule");
    skipSpace(false);
    if (!stands("::="))
      return fail(at, "expected '::='");
    at += 3;
    Name *entry = nameOf(name, begin);
    if (!entry)
      return fail(begin, "there is no memory for it");
    if (entry->defined)
      return failAbout(begin, "the rule '%.*s' is defined twice", name);
    entry->defined = true;
    if (!parseAlternatives(entry->rule, false))
      return false;
    skipSpace(false);
    if (at < text.size && peek() != '\n')
      return fail(at, "expected the end of the rule");
    skipSpace(true);
    return true;
  }

  /// In a group, and behind '|', rules go on over lines.
  bool parseAlternatives(uint32_t rule, bool inGroup) {
    if (++depth > mostDepth)
      return fail(at, "groups are nested too deep");
    do {
      Row row;
      skipSpace(true);
      if (!parseRow(row, inGroup))
        return false;
      addAlternative(rule, row);
      if (row.failed() || g.elements.failed() || g.elements.size() > Grammar::mostElements)
        return fail(at, "the grammar is too large");
      size_t back = at;
      skipSpace(true);
      if (peek() != '|') {
        at = inGroup ? at : back;
        break;
      }
      ++at;
    } while (true);
    --depth;
    return true;
  }

  bool parseRow(Row &row, bool inGroup) {
    for (;;) {
      skipSpace(inGroup);
      size_t begin = at, from = row.size();
      char ch = peek();
      if (ch == '"') {
        if (!parseString(row))
          return false;
      } else if (ch == '[') {
        if (!parseClass(row))
          return false;
      } else if (ch == '.') {
        ++at;
        const Range all[2] = {{0, 0xd7ff}, {0xe000, 0x10ffff}};
        addRanges(row, all, 2);
      } else if (ch == '(') {
        ++at;
        uint32_t rule = newRule();
        if (!parseAlternatives(rule, true))
          return false;
        if (peek() != ')')
          return fail(begin, "a group has no ')'");
        ++at;
        row.push({Grammar::Kind::Rule, rule});
      } else if (isNameByte(ch)) {
        Name *entry = nameOf(readName(), begin);
        if (!entry)
          return fail(begin, "there is no memory for it");
        row.push({Grammar::Kind::Rule, entry->rule});
      } else {
        return true;
      }
      if (!parseRepeats(row, from))
        return false;
    }
  }

  bool parseString(Row &row) {
    size_t begin = at++;
    while (peek() != '"') {
      if (at >= text.size || peek() == '\n')
        return fail(begin, "a string has no end");
      uint32_t point;
      char utf8[4];
      if (!readCharacter(point))
        return false;
      unsigned length = encodeUtf8(point, utf8);
      for (unsigned i = 0; i < length; ++i)
        addSet(row, uint8_t(utf8[i]), uint8_t(utf8[i]));
    }
    ++at;
    return true;
  }

  bool parseClass(Row &row) {
    size_t begin = at++;
    bool negated = peek() == '^';
    at += negated;
    Buffer<Range> ranges;
    while (peek() != ']') {
      if (at >= text.size || peek() == '\n')
        return fail(begin, "a class has no ']'");
      Range range;
      size_t place = at;
      if (!readCharacter(range.first))
        return false;
      range.last = range.first;
      if (peek() == '-' && at + 1 < text.size && text.data[at + 1] != ']') {
        ++at;
        if (!readCharacter(range.last))
          return false;
      }
      if (range.last < range.first)
        return fail(place, "a range of characters ends before it begins");
      ranges.push(range);
    }
    ++at;
    if (ranges.failed())
      return fail(begin, "there is no memory for it");
    std::sort(ranges.data(), ranges.data() + ranges.size(), [](const Range &a, const Range &b) { return a.first < b.first; });
    Buffer<Range> wanted;
    uint32_t from = 0;
    auto add = [&](uint32_t first, uint32_t last) {
      // No text has surrogates.
      if (first < 0xd800)
        wanted.push({first, std::min(last, 0xd7ffu)});
      if (last > 0xdfff)
        wanted.push({std::max(first, 0xe000u), last});
    };
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (negated && ranges[i].first > from)
        add(from, ranges[i].first - 1);
      if (!negated && ranges[i].last >= from)
        add(std::max(from, ranges[i].first), ranges[i].last);
      from = std::max(from, ranges[i].last + 1);
    }
    if (negated && from <= 0x10ffff)
      add(from, 0x10ffff);
    if (wanted.failed() || wanted.size() == 0)
      return fail(begin, "a class has no characters");
    addRanges(row, wanted.data(), wanted.size());
    return true;
  }

  //===--- bytes ------------------------------------------------------------===//

  static void include(ByteSet &set, unsigned first, unsigned last) {
    for (unsigned b = first; b <= last; ++b)
      set.bits[b >> 6] |= uint64_t(1) << (b & 63);
  }
  void addSet(Row &row, uint8_t first, uint8_t last) {
    ByteSet set = {};
    include(set, first, last);
    addSet(row, set);
  }
  void addSet(Row &row, const ByteSet &set) {
    // Few sets are different; the last ones are likeliest to be the same.
    for (size_t i = g.sets.size(), end = i > 64 ? i - 64 : 0; i > end; --i)
      if (std::memcmp(&g.sets[i - 1], &set, sizeof(set)) == 0)
        return row.push({Grammar::Kind::Set, uint32_t(i - 1)});
    g.sets.push(set);
    row.push({Grammar::Kind::Set, uint32_t(g.sets.size()) - 1});
  }

  /// One character of the ranges: a set of bytes where all are ASCII, else a rule with a row for each form of UTF-8.
  void addRanges(Row &row, const Range *ranges, size_t count) {
    ByteSet ascii = {};
    bool anyAscii = false;
    for (size_t i = 0; i < count; ++i)
      if (ranges[i].first < 0x80) {
        include(ascii, ranges[i].first, std::min(ranges[i].last, 0x7fu));
        anyAscii = true;
      }
    if (ranges[count - 1].last < 0x80)
      return addSet(row, ascii);
    uint32_t rule = newRule();
    if (anyAscii) {
      Row single;
      addSet(single, ascii);
      addAlternative(rule, single);
    }
    for (size_t i = 0; i < count; ++i)
      if (ranges[i].last >= 0x80)
        addUtf8(rule, std::max(ranges[i].first, 0x80u), ranges[i].last);
    row.push({Grammar::Kind::Rule, rule});
  }

  /// Splits a range until each of its parts is a range of bytes at every place (Cox, Regular Expression Matching in the Wild).
  void addUtf8(uint32_t rule, uint32_t first, uint32_t last) {
    for (uint32_t most : {0x7ffu, 0xffffu})
      if (first <= most && last > most) {
        addUtf8(rule, first, most);
        return addUtf8(rule, most + 1, last);
      }
    for (int i = 1; i < 4; ++i) {
      uint32_t low = (1u << (6 * i)) - 1;
      if ((first & ~low) == (last & ~low))
        continue;
      if ((first & low) != 0) {
        addUtf8(rule, first, first | low);
        return addUtf8(rule, (first | low) + 1, last);
      }
      if ((last & low) != low) {
        addUtf8(rule, first, (last & ~low) - 1);
        return addUtf8(rule, last & ~low, last);
      }
    }
    char from[4], to[4];
    unsigned length = encodeUtf8(first, from);
    encodeUtf8(last, to);
    Row bytes;
    for (unsigned i = 0; i < length; ++i)
      addSet(bytes, uint8_t(from[i]), uint8_t(to[i]));
    addAlternative(rule, bytes);
  }

  //===--- repetitions ------------------------------------------------------===//

  bool readCount(uint32_t &count) {
    size_t begin = at;
    count = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at)
      if ((count = count * 10 + uint32_t(peek() - '0')) > mostRepeats)
        return fail(begin, "more than 10000 repetitions");
    return at != begin || fail(begin, "expected a number");
  }

  /// What follows an item: *, +, ?, {m}, {m,}, {m,n}. The item is the row's elements from `from` on.
  bool parseRepeats(Row &row, size_t from) {
    for (;;) {
      size_t begin = at;
      uint32_t least = 0, most = none;
      char ch = peek();
      if (ch != '*' && ch != '+' && ch != '?' && ch != '{')
        return true;
      ++at;
      least = ch == '+' ? 1 : 0;
      most = ch == '?' ? 1 : none;
      if (ch == '{') {
        if (!readCount(least))
          return false;
        most = least;
        if (peek() == ',') {
          ++at;
          most = none;
          if (peek() != '}' && !readCount(most))
            return false;
        }
        if (peek() != '}')
          return fail(at, "expected '}'");
        ++at;
        if (most < least)
          return fail(begin, "the most repetitions are fewer than the fewest");
      }
      if (!repeat(row, from, least, most))
        return fail(begin, "the grammar is too large");
    }
  }

  bool repeat(Row &row, size_t from, uint32_t least, uint32_t most) {
    Grammar::Element item = {Grammar::Kind::Rule, 0};
    if (row.size() - from == 1) {
      item = row[from];
    } else {
      item.index = newRule();
      addAlternative(item.index, row, from);
    }
    row.shrink(from);
    for (uint32_t i = 0; i < least; ++i)
      row.push(item);
    if (most == least)
      return true;
    // Without an end: one rule that goes on with itself; else one for each repetition that may be left out.
    uint32_t rule = newRule(), inner = rule;
    row.push({Grammar::Kind::Rule, rule});
    for (uint32_t left = most == none ? 1 : most - least; left > 0; --left) {
      Row one, nothing;
      one.push(item);
      if (most == none || left > 1)
        one.push({Grammar::Kind::Rule, most == none ? rule : (inner = newRule())});
      addAlternative(rule, nothing);
      addAlternative(rule, one);
      rule = inner;
      if (g.elements.size() > Grammar::mostElements || g.elements.failed() || row.failed())
        return false;
    }
    return true;
  }

  //===--- left recursion ---------------------------------------------------===//

  /// Which rules can be empty: found again and again until nothing changes.
  void findEmpty(Buffer<uint8_t> &empty) {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t r = 0; r < g.rules.size(); ++r)
        for (uint32_t a = g.rules[r]; a != none && !empty[r]; a = g.alternatives[a].next) {
          uint32_t e = g.alternatives[a].first;
          while (g.elements[e].kind == Grammar::Kind::Rule && empty[g.elements[e].index])
            ++e;
          if (g.elements[e].kind == Grammar::Kind::End)
            changed = empty[r] = 1;
        }
    }
  }

  bool checkLeftRecursion() {
    Buffer<uint8_t> empty, colour; // 1: on the way, 2: done
    struct Visit {
      uint32_t rule, alternative, element;
    };
    Buffer<Visit> stack;
    if (!empty.fill(g.rules.size(), 0) || !colour.fill(g.rules.size(), 0))
      return fail(at, "there is no memory for it");
    findEmpty(empty);
    for (uint32_t r = 0; r < g.rules.size(); ++r) {
      if (colour[r] != 0)
        continue;
      stack.push({r, g.rules[r], none});
      colour[r] = 1;
      while (stack.size() > 0 && !stack.failed()) {
        Visit &visit = stack.back();
        if (visit.alternative == none) {
          colour[visit.rule] = 2;
          stack.pop();
          continue;
        }
        uint32_t e = visit.element == none ? g.alternatives[visit.alternative].first : visit.element;
        Grammar::Element element = g.elements[e];
        bool goesOn = element.kind == Grammar::Kind::Rule && empty[element.index];
        visit.element = e + 1;
        if (!goesOn) {
          visit.alternative = g.alternatives[visit.alternative].next;
          visit.element = none;
        }
        if (element.kind != Grammar::Kind::Rule || colour[element.index] == 2)
          continue;
        if (colour[element.index] == 1)
          return failRecursion(element.index);
        colour[element.index] = 1;
        stack.push({element.index, g.rules[element.index], none});
      }
    }
    return !stack.failed() || fail(at, "there is no memory for it");
  }
  bool failRecursion(uint32_t rule) {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i].rule == rule)
        return failAbout(names[i].used, "the rule '%.*s' begins with itself", names[i].text);
    return fail(text.size, "something that may be empty is repeated without end");
  }

  Grammar &g;
  Bytes text;
  char *message;
  size_t messageSize;
  size_t at = 0;
  unsigned depth = 0;
  Buffer<Name> names;
};

} // namespace

bool Grammar::parse(Bytes text, char *message, size_t messageSize) { return Parser(*this, text, message, messageSize).run(); }

} // namespace ajour::language
