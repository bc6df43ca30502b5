#include "Value.h"

#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <new>

namespace ajour::language::chat {

Context::~Context() {
  while (blocks)
    std::free(std::exchange(blocks, blocks->next));
}

void *Context::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t(15);
  if (bytes > size_t(end - at)) {
    size_t size = bytes + 16 > 65536 ? bytes + 16 : 65536;
    Block *block = total > mostBytes || size > mostBytes ? nullptr : static_cast<Block *>(std::malloc(size));
    if (!block)
      fail("the template takes too much memory");
    total += size;
    block->next = blocks;
    blocks = block;
    at = reinterpret_cast<char *>(block) + 16;
    end = reinterpret_cast<char *>(block) + size;
  }
  return std::exchange(at, at + bytes);
}

void Context::fail(const char *format, ...) {
  int used = std::snprintf(message, sizeof(message), "line %d: ", line);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message + used, sizeof(message) - size_t(used), format, arguments);
  va_end(arguments);
  longjmp(escape, 1);
}

Value makeList(Context &c) {
  Value value = Value::of(Kind::List);
  value.list = create<Sequence>(c);
  return value;
}
Value makeDict(Context &c) {
  Value value = Value::of(Kind::Dict);
  value.dict = create<Mapping>(c);
  return value;
}
Bytes copyText(Context &c, Bytes bytes) {
  char *copy = static_cast<char *>(c.allocate(bytes.size + 1));
  if (bytes.size != 0)
    std::memcpy(copy, bytes.data, bytes.size);
  copy[bytes.size] = 0;
  return {copy, bytes.size};
}

bool isTrue(const Value &value) {
  switch (value.kind) {
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Bool:
    return value.boolean;
  case Kind::Int:
    return value.integer != 0;
  case Kind::Float:
    return value.real != 0;
  case Kind::String:
    return value.length != 0;
  case Kind::List:
    return value.list->items.size != 0;
  case Kind::Dict:
    return value.dict->isNamespace || value.dict->entries.size != 0;
  default:
    return true;
  }
}

bool equal(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.number() == b.number();
  if (a.kind != b.kind)
    return false;
  switch (a.kind) {
  case Kind::String:
    return a.bytes() == b.bytes();
  case Kind::List:
    if (a.list->items.size != b.list->items.size || a.list->isTuple != b.list->isTuple)
      return false;
    for (size_t i = 0; i < a.list->items.size; ++i)
      if (!equal(a.list->items[i], b.list->items[i]))
        return false;
    return true;
  case Kind::Dict:
    if (a.dict == b.dict)
      return true;
    if (a.dict->entries.size != b.dict->entries.size)
      return false;
    for (const Entry &entry : a.dict->entries) {
      const Value *other = b.dict->find(entry.key);
      if (!other || !equal(entry.value, *other))
        return false;
    }
    return true;
  case Kind::Macro:
    return a.macro == b.macro;
  case Kind::Function:
    return a.function == b.function;
  default:
    return true;
  }
}

int compare(Context &c, const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.number() < b.number() ? -1 : a.number() > b.number();
  if (a.is(Kind::String) && b.is(Kind::String)) {
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common == 0 ? 0 : std::memcmp(a.text, b.text, common);
    return order != 0 ? order : a.length < b.length ? -1 : a.length > b.length;
  }
  if (a.is(Kind::List) && b.is(Kind::List)) {
    for (size_t i = 0; i < a.list->items.size && i < b.list->items.size; ++i)
      if (!equal(a.list->items[i], b.list->items[i]))
        return compare(c, a.list->items[i], b.list->items[i]);
    return a.list->items.size < b.list->items.size ? -1 : a.list->items.size > b.list->items.size;
  }
  c.fail("%s and %s have no order", kindName(a), kindName(b));
}

const char *kindName(const Value &value) {
  static constexpr const char *names[] = {"an undefined value", "none",   "a boolean", "an integer", "a number",
                                          "a string",           "a list", "a mapping", "a macro",    "a function"};
  return names[int(value.kind)];
}

static void printReal(Context &c, double value, Out &out) {
  if (std::isnan(value) || std::isinf(value))
    return out.append(c, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf", std::isnan(value) || value > 0 ? 3 : 4);
  char text[40];
  // The fewest digits that read back as the number.
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  double size = std::fabs(value);
  bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  if (plain && std::strchr(text, 'e'))
    std::snprintf(text, sizeof(text), "%.0f", value);
  if (plain && !std::strchr(text, '.'))
    std::strcat(text, ".0");
  out.append(c, text, std::strlen(text));
}

static void printInteger(Context &c, int64_t value, Out &out) {
  char text[24];
  out.append(c, text, size_t(std::snprintf(text, sizeof(text), "%" PRId64, value)));
}

static void printQuoted(Context &c, Bytes bytes, Out &out) {
  // Python takes double quotes where the text has single ones alone.
  bool single = bytes.size != 0 && std::memchr(bytes.data, '\'', bytes.size);
  char quote = single && !std::memchr(bytes.data, '"', bytes.size) ? '"' : '\'';
  out.push(c, quote);
  for (size_t i = 0; i < bytes.size; ++i) {
    char ch = bytes.data[i], escape[5];
    const char *name = ch == '\n' ? "\\n" : ch == '\r' ? "\\r" : ch == '\t' ? "\\t" : ch == '\\' ? "\\\\" : nullptr;
    if (name) {
      out.append(c, name, 2);
    } else if (uint8_t(ch) < 0x20 || ch == 0x7f) {
      std::snprintf(escape, sizeof(escape), "\\x%02x", unsigned(uint8_t(ch)));
      out.append(c, escape, 4);
    } else {
      if (ch == quote)
        out.push(c, '\\');
      out.push(c, ch);
    }
  }
  out.push(c, quote);
}

void print(Context &c, const Value &value, bool quoted, Out &out) {
  c.enter();
  auto add = [&](const char *text) { out.append(c, text, std::strlen(text)); };
  switch (value.kind) {
  case Kind::Undefined:
    break;
  case Kind::None:
    add("None");
    break;
  case Kind::Bool:
    add(value.boolean ? "True" : "False");
    break;
  case Kind::Int:
    printInteger(c, value.integer, out);
    break;
  case Kind::Float:
    printReal(c, value.real, out);
    break;
  case Kind::String:
    if (quoted)
      printQuoted(c, value.bytes(), out);
    else
      out.append(c, value.text, value.length);
    break;
  case Kind::List:
    add(value.list->isTuple ? "(" : "[");
    for (size_t i = 0; i < value.list->items.size; ++i) {
      add(i ? ", " : "");
      print(c, value.list->items[i], true, out);
    }
    add(!value.list->isTuple ? "]" : value.list->items.size == 1 ? ",)" : ")");
    break;
  case Kind::Dict:
    add("{");
    for (size_t i = 0; i < value.dict->entries.size; ++i) {
      add(i ? ", " : "");
      printQuoted(c, value.dict->entries[i].key, out);
      add(": ");
      print(c, value.dict->entries[i].value, true, out);
    }
    add("}");
    break;
  default:
    c.fail("%s cannot be printed", kindName(value));
  }
  c.leave();
}

Bytes toText(Context &c, const Value &value) {
  if (value.is(Kind::String))
    return value.bytes();
  Out out;
  print(c, value, false, out);
  return {out.data, out.size};
}

size_t countPoints(Bytes text) {
  size_t points = 0;
  unsigned length;
  for (size_t at = 0; at < text.size; at += length, ++points)
    decodeUtf8(text.data + at, text.size - at, length);
  return points;
}

size_t offsetOfPoint(Bytes text, size_t n) {
  size_t at = 0;
  unsigned length;
  for (; n > 0 && at < text.size; at += length, --n)
    decodeUtf8(text.data + at, text.size - at, length);
  return at;
}

Sequence *elementsOf(Context &c, const Value &value) {
  if (value.is(Kind::List))
    return value.list;
  Sequence *list = create<Sequence>(c);
  if (value.is(Kind::Dict) && !value.dict->isNamespace) {
    for (const Entry &entry : value.dict->entries)
      list->items.push(c, Value::ofText(entry.key));
  } else if (value.is(Kind::String)) {
    unsigned length;
    for (size_t at = 0; at < value.length; at += length) {
      decodeUtf8(value.text + at, value.length - at, length);
      list->items.push(c, Value::ofText({value.text + at, length}));
    }
  } else if (!value.is(Kind::Undefined)) {
    c.fail("%s has no elements to go through", kindName(value));
  }
  return list;
}

//===--- JSON -------------------------------------------------------------------===//

static void printJsonText(Context &c, Bytes bytes, Out &out) {
  out.push(c, '"');
  for (size_t i = 0; i < bytes.size; ++i) {
    char ch = bytes.data[i], escape[8];
    const char *name = ch == '"' ? "\\\"" : ch == '\\' ? "\\\\" : ch == '\n' ? "\\n" : ch == '\r' ? "\\r" : ch == '\t' ? "\\t"
                       : ch == '\b' ? "\\b" : ch == '\f' ? "\\f" : nullptr;
    if (name)
      out.append(c, name, 2);
    else if (uint8_t(ch) < 0x20)
      out.append(c, escape, size_t(std::snprintf(escape, sizeof(escape), "\\u%04x", unsigned(uint8_t(ch)))));
    else
      out.push(c, ch);
  }
  out.push(c, '"');
}

void printJson(Context &c, const Value &value, int indent, int level, Out &out) {
  c.enter();
  c.step();
  auto add = [&](const char *text) { out.append(c, text, std::strlen(text)); };
  auto newLine = [&](int depth) {
    if (indent < 0)
      return;
    out.push(c, '\n');
    for (int i = 0; i < indent * depth; ++i)
      out.push(c, ' ');
  };
  bool isList = value.is(Kind::List);
  if (isList || value.is(Kind::Dict)) {
    size_t count = isList ? value.list->items.size : value.dict->entries.size;
    add(isList ? "[" : "{");
    for (size_t i = 0; i < count; ++i) {
      add(i == 0 ? "" : indent < 0 ? ", " : ",");
      newLine(level + 1);
      if (!isList) {
        printJsonText(c, value.dict->entries[i].key, out);
        add(": ");
      }
      printJson(c, isList ? value.list->items[i] : value.dict->entries[i].value, indent, level + 1, out);
    }
    if (count != 0)
      newLine(level);
    add(isList ? "]" : "}");
  } else if (value.is(Kind::String)) {
    printJsonText(c, value.bytes(), out);
  } else if (value.is(Kind::Bool)) {
    add(value.boolean ? "true" : "false");
  } else if (value.is(Kind::None)) {
    add("null");
  } else if (value.isNumber()) {
    print(c, value, false, out);
  } else {
    c.fail("%s cannot be written as JSON", kindName(value));
  }
  c.leave();
}

namespace {

class JsonReader {
public:
  JsonReader(Context &c, Bytes json, const char *what) : c(c), json(json), what(what) {}

  Value run() {
    Value value = read();
    if (space() < json.size)
      fail("more behind the value");
    return value;
  }

private:
  [[noreturn]] void fail(const char *problem) { c.fail("%s is no JSON: byte %zu: %s", what, at, problem); }
  size_t space() {
    while (at < json.size && std::strchr(" \t\r\n", json.data[at]) && json.data[at])
      ++at;
    return at;
  }
  bool take(char ch) {
    if (space() >= json.size || json.data[at] != ch)
      return false;
    ++at;
    return true;
  }
  bool takeWord(const char *word) {
    size_t size = std::strlen(word);
    if (json.size - at < size || std::memcmp(json.data + at, word, size) != 0)
      return false;
    at += size;
    return true;
  }

  Value read() {
    c.enter();
    c.step();
    if (space() >= json.size)
      fail("a value is missing");
    Value value;
    char ch = json.data[at];
    if (ch == '"')
      value = Value::ofText(readText());
    else if (take('['))
      value = readList();
    else if (take('{'))
      value = readDict();
    else if (takeWord("true"))
      value = Value::ofBool(true);
    else if (takeWord("false"))
      value = Value::ofBool(false);
    else if (takeWord("null"))
      value = Value::none();
    else
      value = readNumber();
    c.leave();
    return value;
  }

  Value readList() {
    Value value = makeList(c);
    if (take(']'))
      return value;
    do
      value.list->items.push(c, read());
    while (take(','));
    if (!take(']'))
      fail("expected ',' or ']'");
    return value;
  }

  Value readDict() {
    Value value = makeDict(c);
    if (take('}'))
      return value;
    do {
      if (space() >= json.size || json.data[at] != '"')
        fail("expected a key in double quotes");
      Bytes key = readText();
      if (!take(':'))
        fail("expected ':'");
      value.dict->set(c, key, read());
    } while (take(','));
    if (!take('}'))
      fail("expected ',' or '}'");
    return value;
  }

  Value readNumber() {
    char digits[64];
    size_t size = 0;
    bool real = false;
    while (at < json.size && size < sizeof(digits) - 1 && json.data[at] && std::strchr("+-0123456789.eE", json.data[at])) {
      real |= std::strchr(".eE", json.data[at]) != nullptr;
      digits[size++] = json.data[at++];
    }
    digits[size] = 0;
    char *end = digits;
    Value value = real ? Value::ofReal(std::strtod(digits, &end)) : Value::ofInt(std::strtoll(digits, &end, 10));
    if (size == 0 || *end)
      fail("expected a value");
    return value;
  }

  uint32_t readHex() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at) {
      char ch = at < json.size ? json.data[at] : 0;
      int digit = ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
      if (digit < 0)
        fail("expected four hexadecimal digits");
      value = value * 16 + uint32_t(digit);
    }
    return value;
  }

  void readEscape(Out &out) {
    char ch = at < json.size ? json.data[at++] : 0;
    const char *names = "\"\\/bfnrt", *found = ch ? std::strchr(names, ch) : nullptr;
    if (found)
      return out.push(c, "\"\\/\b\f\n\r\t"[found - names]);
    if (ch != 'u')
      fail("unknown escape");
    uint32_t point = readHex();
    if (point >= 0xd800 && point < 0xdc00 && json.size - at >= 6 && json.data[at] == '\\' && json.data[at + 1] == 'u') {
      at += 2;
      point = 0x10000 + ((point - 0xd800) << 10) + (readHex() - 0xdc00);
    }
    char utf8[4];
    out.append(c, utf8, encodeUtf8(point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? replacementCharacter : point, utf8));
  }

  Bytes readText() {
    ++at;
    Out out;
    for (;;) {
      if (at >= json.size)
        fail("a string has no end");
      char ch = json.data[at++];
      if (ch == '"')
        return {out.data, out.size};
      if (ch == '\\')
        readEscape(out);
      else
        out.push(c, ch);
    }
  }

  Context &c;
  Bytes json;
  const char *what;
  size_t at = 0;
};

} // namespace

Value parseJson(Context &c, Bytes json, const char *what) { return JsonReader(c, json, what).run(); }

} // namespace ajour::language::chat
