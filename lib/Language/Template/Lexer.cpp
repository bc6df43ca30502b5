#include "Lexer.h"

namespace ajour::language::chat {

namespace {

bool isSpace(char ch) { return ch == ' ' || (ch >= '\t' && ch <= '\r'); }
bool isDigit(char ch) { return ch >= '0' && ch <= '9'; }
bool isNameStart(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' || uint8_t(ch) >= 0x80; }

class Lexer {
public:
  Lexer(Context &c, Bytes source) : c(c), source(normalize(c, source)), line(c.line) { line = 1; }

  List<Token> run() {
    while (at < source.size)
      readPiece();
    add(TokenKind::End, {});
    return tokens;
  }

private:
  /// Line ends as \n, and none at the end, as Jinja reads templates.
  static Bytes normalize(Context &c, Bytes source) {
    Out out;
    out.reserve(c, source.size + 1);
    for (size_t i = 0; i < source.size; ++i) {
      if (source.data[i] == '\r' && i + 1 < source.size && source.data[i + 1] == '\n')
        continue;
      out.push(c, source.data[i] == '\r' ? '\n' : source.data[i]);
    }
    if (out.size != 0 && out[out.size - 1] == '\n')
      --out.size;
    return {out.data, out.size};
  }

  void add(TokenKind kind, Bytes text) { tokens.push(c, {kind, line, text, Value()}); }
  char peek(size_t ahead = 0) const { return at + ahead < source.size ? source.data[at + ahead] : 0; }
  bool standsAt(size_t place, const char *text) const {
    size_t size = std::strlen(text);
    return source.size - place >= size && std::memcmp(source.data + place, text, size) == 0;
  }
  void skip(size_t n) {
    for (; n > 0 && at < source.size; --n)
      line += source.data[at++] == '\n';
  }

  /// Text up to the next tag, and the tag's beginning.
  void readPiece() {
    size_t tag = at;
    while (tag < source.size && !(source.data[tag] == '{' && tag + 1 < source.size && std::strchr("{%#", source.data[tag + 1]) && source.data[tag + 1]))
      ++tag;
    size_t end = tag;
    bool found = tag < source.size, isPrint = found && source.data[tag + 1] == '{';
    char sign = found && tag + 2 < source.size ? source.data[tag + 2] : 0;
    if (found && sign == '-') {
      while (end > at && isSpace(source.data[end - 1]))
        --end;
    } else if (found && !isPrint && sign != '+') {
      size_t begin = end;
      while (begin > at && (source.data[begin - 1] == ' ' || source.data[begin - 1] == '\t'))
        --begin;
      if (begin > at ? source.data[begin - 1] == '\n' : lineBegins)
        end = begin;
    }
    if (end > at)
      add(TokenKind::Text, {source.data + at, end - at});
    skip(tag - at);
    if (!found)
      return;
    skip(sign == '-' || (sign == '+' && !isPrint) ? 3 : 2);
    if (source.data[tag + 1] == '#')
      return readComment();
    if (!isPrint && readRaw())
      return;
    add(isPrint ? TokenKind::PrintBegin : TokenKind::BlockBegin, {});
    readTag(isPrint);
  }

  /// Goes past a tag's end and the white space that it takes along.
  void endTag(bool minus, bool plus, bool isPrint) {
    lineBegins = false;
    if (minus) {
      while (isSpace(peek()) && at < source.size)
        skip(1);
    } else if (!isPrint && !plus && peek() == '\n') {
      skip(1);
      lineBegins = true;
    }
  }

  void readComment() {
    int begin = line;
    for (; at < source.size; skip(1))
      if (standsAt(at, "#}")) {
        bool minus = source.data[at - 1] == '-', plus = source.data[at - 1] == '+';
        skip(2);
        return endTag(minus, plus, false);
      }
    line = begin;
    c.fail("a comment has no end");
  }

  size_t spacesFrom(size_t place) const {
    while (place < source.size && isSpace(source.data[place]))
      ++place;
    return place;
  }

  /// What stands between raw and endraw, as it is. False: the block is another one.
  bool readRaw() {
    size_t place = spacesFrom(at);
    if (!standsAt(place, "raw"))
      return false;
    place = spacesFrom(place + 3);
    bool minus = standsAt(place, "-");
    if (!standsAt(place + minus, "%}"))
      return false;
    skip(place + minus + 2 - at);
    endTag(minus, false, false);
    for (size_t end = at; end < source.size; ++end) {
      if (!standsAt(end, "{%"))
        continue;
      bool before = standsAt(end + 2, "-");
      size_t word = spacesFrom(end + 2 + before);
      if (!standsAt(word, "endraw"))
        continue;
      size_t close = spacesFrom(word + 6);
      bool after = standsAt(close, "-");
      if (!standsAt(close + after, "%}"))
        continue;
      size_t last = end;
      while (before && last > at && isSpace(source.data[last - 1]))
        --last;
      add(TokenKind::Text, {source.data + at, last - at});
      skip(close + after + 2 - at);
      endTag(after, false, false);
      return true;
    }
    c.fail("a raw block has no end");
  }

  void readTag(bool isPrint) {
    int begin = line;
    int open = 0;
    const char *close = isPrint ? "}}" : "%}";
    for (;;) {
      while (at < source.size && isSpace(peek()))
        skip(1);
      if (at >= source.size) {
        line = begin;
        c.fail("expected '%s' at the end of a tag", close);
      }
      bool minus = peek() == '-', plus = peek() == '+';
      if (open == 0 && standsAt(at + (minus || (plus && !isPrint)), close)) {
        add(isPrint ? TokenKind::PrintEnd : TokenKind::BlockEnd, {});
        skip(2 + (minus || (plus && !isPrint)));
        return endTag(minus, plus, isPrint);
      }
      char ch = peek();
      open += ch == '{' || ch == '(' || ch == '[';
      if ((ch == '}' || ch == ')' || ch == ']') && --open < 0)
        c.fail("'%c' closes nothing", ch);
      readToken(ch);
    }
  }

  void readToken(char ch) {
    size_t begin = at;
    if (ch == '"' || ch == '\'')
      return readString(ch);
    if (isDigit(ch))
      return readNumber();
    if (isNameStart(ch)) {
      while (isNameStart(peek()) || isDigit(peek()))
        skip(1);
      return add(TokenKind::Name, {source.data + begin, at - begin});
    }
    static constexpr const char *operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">",
                                                "=",  "(",  ")",  "[",  "]",  "{",  "}", ".", ",", ":", "|"};
    for (const char *op : operators)
      if (standsAt(at, op)) {
        add(TokenKind::Operator, {source.data + at, std::strlen(op)});
        return skip(std::strlen(op));
      }
    c.fail("unexpected character '%c'", ch);
  }

  void readNumber() {
    char digits[64];
    size_t size = 0;
    bool real = false;
    while ((isDigit(peek()) || peek() == '_' || (peek() == '.' && isDigit(peek(1)) && !real) ||
            ((peek() == 'e' || peek() == 'E') && (isDigit(peek(1)) || (peek(1) == '-' && isDigit(peek(2)))))) &&
           size + 2 < sizeof(digits)) {
      char ch = peek();
      real |= ch == '.' || ch == 'e' || ch == 'E';
      if (ch != '_')
        digits[size++] = ch;
      skip(1);
      if ((ch == 'e' || ch == 'E') && peek() == '-') {
        digits[size++] = '-';
        skip(1);
      }
    }
    digits[size] = 0;
    add(TokenKind::Number, {});
    tokens[tokens.size - 1].value = real ? Value::ofReal(std::strtod(digits, nullptr)) : Value::ofInt(std::strtoll(digits, nullptr, 10));
  }

  uint32_t readHex(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      char ch = peek();
      int digit = isDigit(ch) ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
      if (digit < 0)
        c.fail("expected %d hexadecimal digits in a string", digits);
      value = value * 16 + uint32_t(digit);
      skip(1);
    }
    return value > 0x10ffff ? replacementCharacter : value;
  }

  void readString(char quote) {
    int begin = line;
    skip(1);
    Out out;
    while (peek() != quote || at >= source.size) {
      if (at >= source.size) {
        line = begin;
        c.fail("a string has no end");
      }
      char ch = peek();
      skip(1);
      if (ch != '\\') {
        out.push(c, ch);
        continue;
      }
      ch = peek();
      skip(1);
      const char *names = "nrtabfv0", *found = ch ? std::strchr(names, ch) : nullptr;
      char utf8[4];
      if (found)
        out.push(c, "\n\r\t\a\b\f\v\0"[found - names]);
      else if (ch == 'x' || ch == 'u' || ch == 'U')
        out.append(c, utf8, encodeUtf8(readHex(ch == 'x' ? 2 : ch == 'u' ? 4 : 8), utf8));
      else if (ch == '\\' || ch == '\'' || ch == '"')
        out.push(c, ch);
      else if (ch != '\n')
        out.append(c, "\\", 1), out.push(c, ch);
    }
    skip(1);
    // Strings next to each other are one.
    if (tokens.size != 0 && tokens[tokens.size - 1].kind == TokenKind::String) {
      Token &last = tokens[tokens.size - 1];
      Out joined;
      joined.append(c, last.value.text, last.value.length);
      joined.append(c, out.data, out.size);
      last.value = Value::ofText({joined.data, joined.size});
      return;
    }
    add(TokenKind::String, {});
    tokens[tokens.size - 1].value = Value::ofText({out.data, out.size});
  }

  Context &c;
  Bytes source;
  size_t at = 0;
  int &line; ///< the context's, so that messages name it
  bool lineBegins = true;
  List<Token> tokens;
};

} // namespace

List<Token> readTokens(Context &c, Bytes source) { return Lexer(c, source).run(); }

} // namespace ajour::language::chat
