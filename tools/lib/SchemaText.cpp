//===- SchemaText.cpp - the texts that JSON schemas bound -----------------------===//

#include "ToolSupport/SchemaText.h"

#include <bitset>
#include <cctype>
#include <cstdio>
#include <stdexcept>

namespace ajour::tools {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static std::string digitBetween(char least, char most) { return least == most ? std::string("\"") + least + "\"" : std::string("[") + least + "-" + most + "]"; }

/// Numbers of as many digits as both bounds have.
static std::string sameLength(const std::string &least, const std::string &most) {
  if (least.empty())
    return "\"\"";
  std::string low = least.substr(1), high = most.substr(1), any = low.empty() ? "" : " [0-9]{" + std::to_string(low.size()) + "}";
  std::string zeros(low.size(), '0'), nines(low.size(), '9');
  if (least[0] == most[0] && (low != zeros || high != nines))
    return digitBetween(least[0], least[0]) + " (" + sameLength(low, high) + ")";
  std::string result;
  auto add = [&](const std::string &choice) { result += (result.empty() ? "" : " | ") + choice; };
  char first = least[0], last = most[0];
  if (low != zeros)
    add(digitBetween(first, first) + " (" + sameLength(low, nines) + ")"), ++first;
  if (high != nines)
    --last;
  if (first <= last)
    add(digitBetween(first, last) + any);
  if (high != nines)
    add(digitBetween(most[0], most[0]) + " (" + sameLength(zeros, high) + ")");
  return result;
}

/// Numbers from 0 on.
static std::string naturalsBetween(int64_t least, int64_t most) {
  std::string result, low = std::to_string(least), high = std::to_string(most);
  for (size_t length = low.size(); length <= high.size(); ++length) {
    std::string from = length == low.size() ? low : "1" + std::string(length - 1, '0');
    std::string to = length == high.size() ? high : std::string(length, '9');
    result += (result.empty() ? "" : " | ") + sameLength(from, to);
  }
  return result;
}

/// Numbers from 0 on: an integer below the highest with any digits behind the point, or that with none but zeros.
static std::string positiveBetween(int64_t least, int64_t most) {
  std::string below = least < most ? "(" + naturalsBetween(least, most - 1) + ") (\".\" [0-9]{1,17})? | " : "";
  return below + "\"" + std::to_string(most) + "\" (\".\" \"0\"{1,17})?";
}

/// Either sign of what `between` writes from 0 on; `leastNegated` is the smallest that may stand behind a minus.
static std::string signedBetween(int64_t least, int64_t most, int64_t leastNegated, std::string (*between)(int64_t, int64_t)) {
  std::string result;
  if (least < 0)
    result = "\"-\" (" + between(most < 0 ? -most : leastNegated, -least) + ")";
  if (most >= 0)
    result += (result.empty() ? "" : " | ") + between(least < 0 ? 0 : least, most);
  return result;
}

std::string integersBetween(int64_t least, int64_t most) { return signedBetween(least, most, 1, naturalsBetween); }

std::string numbersBetween(int64_t least, int64_t most) { return signedBetween(least, most, 0, positiveBetween); }

//===----------------------------------------------------------------------===//
// Regular expressions
//===----------------------------------------------------------------------===//

namespace {

/// Reads an expression and writes a grammar's. What a JSON string must escape is written escaped.
class PatternReader {
public:
  explicit PatternReader(const std::string &pattern) : text(pattern) {}

  std::string run() {
    bool begins = take('^'), choice = false;
    std::string body = "(" + alternatives(choice) + ")";
    if (!end())
      fail(next, "')' without its beginning");
    if (choice && (begins || ends))
      fail(0, "alternatives beside '^' or '$' need a group: ^(a|b)$");
    // Without an anchor anything may stand before or behind.
    return (begins ? "" : std::string(anyCharacter) + "* ") + body + (ends ? "" : " " + std::string(anyCharacter) + "*");
  }

private:
  static constexpr const char *anyCharacter = "[^\"\\\\\\x00-\\x1f]";
  static constexpr int mostDepth = 50, mostRepeats = 10000;

  [[noreturn]] static void fail(size_t at, const std::string &problem) { throw std::runtime_error("at character " + std::to_string(at + 1) + ": " + problem); }
  bool end() const { return next >= text.size(); }
  bool take(char ch) {
    if (end() || text[next] != ch)
      return false;
    ++next;
    return true;
  }

  std::string alternatives(bool &choice) {
    std::string result = sequence();
    while (take('|')) {
      choice = true;
      result += " | " + sequence();
    }
    return result;
  }

  std::string sequence() {
    std::string result;
    while (!end() && text[next] != '|' && text[next] != ')') {
      if (text[next] == '$' && next + 1 == text.size() && depth == 0) {
        ++next;
        ends = true;
        break;
      }
      std::string item = atom();
      result += (result.empty() ? "" : " ") + item + repeats();
    }
    return result.empty() ? "\"\"" : result;
  }

  std::string atom() {
    size_t at = next;
    char ch = text[next++];
    switch (ch) {
    case '(': {
      if (take('?') && !take(':'))
        fail(at, "of groups that begin with '(?' only '(?:' is known");
      if (++depth > mostDepth)
        fail(at, "groups are nested more than " + std::to_string(mostDepth) + " deep");
      bool choice = false;
      std::string inner = alternatives(choice);
      --depth;
      if (!take(')'))
        fail(at, "the group has no end");
      return "(" + inner + ")";
    }
    case '[':
      return characterClass(at);
    case '.':
      return anyCharacter;
    case '\\':
      return classOf(escaped(at));
    case '*': case '+': case '?': case '{':
      fail(at, std::string("there is nothing in front of '") + ch + "' to repeat");
    case '^': case '$':
      fail(at, std::string("'") + ch + "' is known at the " + (ch == '^' ? "beginning" : "end") + " of the whole expression only");
    case ']': case '}':
      fail(at, std::string("'") + ch + "' without its beginning");
    default:
      return literal(ch);
    }
  }

  /// One byte, or the rest of a character of more.
  std::string literal(char ch) {
    std::string bytes(1, ch);
    while (uint8_t(ch) >= 0xc0 && !end() && (uint8_t(text[next]) & 0xc0) == 0x80)
      bytes += text[next++];
    if (bytes.size() > 1)
      return "\"" + bytes + "\"";
    Characters one;
    one.set(uint8_t(ch));
    return classOf(one);
  }

  std::string repeats() {
    size_t at = next;
    std::string result;
    if (take('*') || take('+') || take('?'))
      result = text.substr(at, 1);
    else if (take('{')) {
      int64_t least = number(at), most = least;
      if (take(','))
        most = !end() && text[next] != '}' ? number(at) : -1;
      if (!take('}') || (most >= 0 && most < least))
        fail(at, "a repetition is {3}, {3,} or {3,7}");
      result = "{" + std::to_string(least) + "," + (most < 0 ? "" : std::to_string(most)) + "}";
    }
    if (!result.empty() && !end() && (text[next] == '*' || text[next] == '+' || text[next] == '?' || text[next] == '{'))
      fail(next, "a repetition of a repetition needs a group");
    return result;
  }

  int64_t number(size_t at) {
    int64_t value = 0;
    size_t begin = next;
    for (; !end() && text[next] >= '0' && text[next] <= '9' && value <= mostRepeats; ++next)
      value = value * 10 + (text[next] - '0');
    if (next == begin || value > mostRepeats)
      fail(at, "a repetition counts to " + std::to_string(mostRepeats));
    return value;
  }

  /// Characters below 128, and whether all others are in.
  struct Characters : std::bitset<128> {
    bool others = false;
    void addRange(uint8_t from, uint8_t to) {
      for (unsigned c = from; c <= to; ++c)
        set(c);
    }
    void invert() { flip(), others = !others; }
    bool isOne() const { return count() == 1 && !others; }
    uint8_t first() const {
      uint8_t c = 0;
      while (c < 127 && !test(c))
        ++c;
      return c;
    }
  };

  Characters escaped(size_t at) {
    if (end())
      fail(at, "'\\' ends the expression");
    char ch = text[next++];
    Characters set;
    switch (ch) {
    case 'd': case 'D':
      set.addRange('0', '9');
      break;
    case 'w': case 'W':
      set.addRange('a', 'z'), set.addRange('A', 'Z'), set.addRange('0', '9'), set.set('_');
      break;
    case 's': case 'S':
      for (char space : {' ', '\t', '\n', '\r', '\v', '\f'})
        set.set(uint8_t(space));
      break;
    case 'n': set.set('\n'); return set;
    case 't': set.set('\t'); return set;
    case 'r': set.set('\r'); return set;
    default:
      if (uint8_t(ch) >= 0x80 || std::isalnum(uint8_t(ch)))
        fail(at, std::string("the escape '\\") + ch + "' is not known");
      set.set(uint8_t(ch));
      return set;
    }
    if (ch < 'a')
      set.invert();
    return set;
  }

  std::string characterClass(size_t at) {
    Characters set;
    bool inverted = take('^');
    for (bool first = true; first || end() || text[next] != ']'; first = false) {
      if (end())
        fail(at, "the class has no end");
      size_t from = next;
      char ch = text[next++];
      if (uint8_t(ch) >= 0x80)
        fail(from, "classes of characters beyond ASCII are not known");
      Characters one;
      one.set(uint8_t(ch));
      if (ch == '\\')
        one = escaped(from);
      if (one.isOne() && next + 1 < text.size() && text[next] == '-' && text[next + 1] != ']') {
        uint8_t low = one.first();
        ++next;
        char last = text[next++];
        Characters high;
        high.set(uint8_t(last) & 127);
        if (last == '\\')
          high = escaped(from);
        if (uint8_t(last) >= 0x80 || !high.isOne() || high.first() < low)
          fail(from, "the range ends before it begins");
        set.addRange(low, high.first());
        continue;
      }
      set |= one;
      set.others |= one.others;
    }
    ++next;
    if (inverted)
      set.invert();
    if (set.none() && !set.others)
      fail(at, "the class is empty");
    return classOf(set);
  }

  /// One character of a set, as a JSON string has it.
  static std::string classOf(Characters set) {
    std::string result;
    auto add = [&](const std::string &choice) { result += (result.empty() ? "" : " | ") + choice; };
    // What may stand as it is.
    std::string plain;
    bool allOthers = set.others;
    for (unsigned c = 0x20; c < 128; ++c) {
      bool in = set.test(c) && c != '"' && c != '\\';
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x", c);
      if (in != allOthers)
        plain += code;
    }
    if (allOthers)
      add("[^\\x00-\\x1f" + plain + "]");
    else if (!plain.empty())
      add("[" + plain + "]");
    const std::pair<char, const char *> escapes[] = {{'"', "\"\\\\\\\"\""}, {'\\', "\"\\\\\\\\\""}, {'\n', "\"\\\\n\""}, {'\t', "\"\\\\t\""}, {'\r', "\"\\\\r\""}};
    for (const auto &[ch, escape] : escapes)
      if (set.test(uint8_t(ch)))
        add(escape);
    if (result.empty())
      throw std::runtime_error("matches control characters alone");
    return "(" + result + ")";
  }

  const std::string &text;
  size_t next = 0;
  int depth = 0;
  bool ends = false; ///< with '$'
};

} // namespace

std::string stringsThatMatch(const std::string &pattern) {
  return PatternReader(pattern).run();
}

} // namespace ajour::tools
