#include "Functions.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace ajour::language::chat {

const Value *Arguments::find(size_t place, const char *name) const {
  if (place < unnamed())
    return &values[place];
  for (size_t i = 0; i < names.size; ++i)
    if (names[i] == literal(name))
      return &values[unnamed() + i];
  return nullptr;
}

namespace {

bool isSpace(char ch) { return ch == ' ' || (ch >= '\t' && ch <= '\r'); }
char upper(char ch) { return ch >= 'a' && ch <= 'z' ? char(ch - 32) : ch; }
char lower(char ch) { return ch >= 'A' && ch <= 'Z' ? char(ch + 32) : ch; }

Bytes needText(Context &c, const Value &value, const char *what) {
  if (!value.is(Kind::String))
    c.fail("%s needs a string, found %s", what, kindName(value));
  return value.bytes();
}
int64_t needWhole(Context &c, const Value &value, const char *what) {
  if (!value.is(Kind::Int) && !value.is(Kind::Bool))
    c.fail("%s needs an integer, found %s", what, kindName(value));
  return value.whole();
}

/// Takes white space, or the characters of `set`, off the ends.
Bytes strip(Bytes text, const Value *set, bool left, bool right) {
  auto drops = [&](char ch) {
    return !set || !set->is(Kind::String) ? isSpace(ch) : set->length != 0 && std::memchr(set->text, ch, set->length) != nullptr;
  };
  while (left && text.size != 0 && drops(text.data[0]))
    text = {text.data + 1, text.size - 1};
  while (right && text.size != 0 && drops(text.data[text.size - 1]))
    --text.size;
  return text;
}

size_t findText(Bytes text, Bytes wanted, size_t from) {
  for (size_t at = from; at + wanted.size <= text.size; ++at)
    if (wanted.size == 0 || std::memcmp(text.data + at, wanted.data, wanted.size) == 0)
      return at;
  return SIZE_MAX;
}
bool endsIn(Bytes text, Bytes wanted) {
  return text.size >= wanted.size && (wanted.size == 0 || std::memcmp(text.data + text.size - wanted.size, wanted.data, wanted.size) == 0);
}
bool beginsWith(Bytes text, Bytes wanted) {
  return text.size >= wanted.size && (wanted.size == 0 || std::memcmp(text.data, wanted.data, wanted.size) == 0);
}

Bytes replaceAll(Context &c, Bytes text, Bytes from, Bytes to, int64_t most) {
  Out out;
  for (size_t at = 0; at <= text.size; ++at) {
    if (most != 0 && text.size - at >= from.size && (from.size == 0 || std::memcmp(text.data + at, from.data, from.size) == 0)) {
      --most;
      out.append(c, to.data, to.size);
      if (from.size != 0) {
        at += from.size - 1;
        continue;
      }
    }
    if (at < text.size)
      out.push(c, text.data[at]);
  }
  return {out.data, out.size};
}

template <typename Change> Bytes changeCase(Context &c, Bytes text, Change change) {
  Bytes copy = copyText(c, text);
  bool wordBegins = true;
  for (size_t i = 0; i < copy.size; ++i) {
    char &ch = const_cast<char &>(copy.data[i]);
    ch = change(ch, wordBegins);
    bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || uint8_t(ch) >= 0x80;
    wordBegins = !letter && ch != '\'';
  }
  return copy;
}
Bytes capitalize(Context &c, Bytes text) {
  bool first = true;
  return changeCase(c, text, [&](char ch, bool) { return std::exchange(first, false) ? upper(ch) : lower(ch); });
}

Value split(Context &c, Bytes text, const Value *separator, int64_t most, bool fromRight) {
  Value parts = makeList(c);
  bool blank = !separator || separator->is(Kind::None);
  Bytes wanted = blank ? Bytes() : needText(c, *separator, "split");
  if (!blank && wanted.size == 0)
    c.fail("split needs a separator that is not empty");
  if (fromRight && most >= 0) {
    while (most-- > 0) {
      size_t at = SIZE_MAX;
      for (size_t next = 0; (next = findText(text, wanted, next)) != SIZE_MAX; ++next)
        at = next;
      if (blank || at == SIZE_MAX)
        break;
      parts.list->items.push(c, Value::ofText({text.data + at + wanted.size, text.size - at - wanted.size}));
      text.size = at;
    }
    parts.list->items.push(c, Value::ofText(text));
    std::reverse(parts.list->items.begin(), parts.list->items.end());
    return parts;
  }
  for (;;) {
    if (blank)
      text = strip(text, nullptr, true, false);
    if (blank && text.size == 0)
      return parts;
    size_t at = blank ? 0 : findText(text, wanted, 0);
    while (blank && at < text.size && !isSpace(text.data[at]))
      ++at;
    if (most == 0 || at == SIZE_MAX || (blank && at == text.size)) {
      parts.list->items.push(c, Value::ofText(blank ? strip(text, nullptr, false, true) : text));
      return parts;
    }
    parts.list->items.push(c, Value::ofText({text.data, at}));
    at += blank ? 1 : wanted.size;
    text = {text.data + at, text.size - at};
    most -= most > 0;
  }
}

Value splitLines(Context &c, Bytes text) {
  Value lines = makeList(c);
  for (size_t begin = 0; begin < text.size;) {
    size_t end = begin;
    while (end < text.size && text.data[end] != '\n')
      ++end;
    lines.list->items.push(c, Value::ofText({text.data + begin, end - begin}));
    begin = end + 1;
  }
  return lines;
}

Bytes join(Context &c, const Sequence &items, Bytes separator, const Value *attribute) {
  Out out;
  for (size_t i = 0; i < items.items.size; ++i) {
    if (i)
      out.append(c, separator.data, separator.size);
    print(c, attribute ? memberOf(c, items.items[i], *attribute) : items.items[i], false, out);
  }
  return {out.data, out.size};
}

Value itemsOf(Context &c, const Value &value) {
  if (!value.is(Kind::Dict))
    c.fail("items needs a mapping, found %s", kindName(value));
  Value list = makeList(c);
  for (const Entry &entry : value.dict->entries) {
    Value pair = makeList(c);
    pair.list->isTuple = true;
    pair.list->items.push(c, Value::ofText(entry.key));
    pair.list->items.push(c, entry.value);
    list.list->items.push(c, pair);
  }
  return list;
}

/// Sorts by insertion, so that equals keep their order; lists of templates are short.
template <typename Key> void sortItems(Context &c, List<Value> &items, bool reverse, Key key) {
  for (size_t i = 1; i < items.size; ++i)
    for (size_t at = i; at > 0; --at) {
      c.step();
      int order = compare(c, key(items[at - 1]), key(items[at]));
      if (reverse ? order >= 0 : order <= 0)
        break;
      std::swap(items[at - 1], items[at]);
    }
}

bool flag(const Arguments &arguments, size_t place, const char *name) {
  const Value *found = arguments.find(place, name);
  return found && isTrue(*found);
}

Bytes indentText(Context &c, Bytes text, const Arguments &arguments) {
  const Value *width = arguments.find(0, "width");
  bool first = flag(arguments, 1, "first"), blank = flag(arguments, 2, "blank");
  Out prefix, out;
  if (width && width->is(Kind::String))
    prefix.append(c, width->text, width->length);
  else
    for (int64_t i = width ? needWhole(c, *width, "indent") : 4; i > 0 && i < 1000; --i)
      prefix.push(c, ' ');
  bool lineBegins = first;
  for (size_t i = 0; i < text.size; ++i) {
    if (lineBegins && (blank || text.data[i] != '\n'))
      out.append(c, prefix.data, prefix.size);
    lineBegins = text.data[i] == '\n';
    out.push(c, text.data[i]);
  }
  return {out.data, out.size};
}

Bytes escapeMarkup(Context &c, Bytes text) {
  Out out;
  for (size_t i = 0; i < text.size; ++i) {
    char ch = text.data[i];
    const char *name = ch == '&' ? "&amp;" : ch == '<' ? "&lt;" : ch == '>' ? "&gt;" : ch == '"' ? "&#34;" : ch == '\'' ? "&#39;" : nullptr;
    if (name)
      out.append(c, name, std::strlen(name));
    else
      out.push(c, ch);
  }
  return {out.data, out.size};
}

/// Arguments without the first `n`, which have no names.
Arguments behind(Context &c, const Arguments &arguments, size_t n) {
  Arguments rest;
  for (size_t i = n; i < arguments.values.size; ++i)
    rest.values.push(c, arguments.values[i]);
  rest.names = arguments.names;
  return rest;
}

/// select, reject, selectattr, rejectattr.
Value selectItems(Context &c, Caller &caller, const Value &subject, const Arguments &arguments, bool wanted, bool byMember) {
  Value list = makeList(c);
  size_t place = byMember ? 1 : 0;
  if (byMember && arguments.unnamed() == 0)
    c.fail("selectattr and rejectattr need the name of a member");
  for (const Value &item : elementsOf(c, subject)->items) {
    c.step();
    Value tested = byMember ? memberOf(c, item, arguments.values[0]) : item;
    bool holds = arguments.unnamed() > place
                     ? caller.test(needText(c, arguments.values[place], "the name of a test"), tested, behind(c, arguments, place + 1))
                     : isTrue(tested);
    if (holds == wanted)
      list.list->items.push(c, item);
  }
  return list;
}

Value mapItems(Context &c, Caller &caller, const Value &subject, const Arguments &arguments) {
  Value list = makeList(c);
  const Value *attribute = arguments.unnamed() == 0 ? arguments.find(0, "attribute") : nullptr;
  const Value *fallback = attribute ? arguments.find(1, "default") : nullptr;
  if (!attribute && arguments.unnamed() == 0)
    c.fail("map needs the name of a filter, or attribute=");
  for (const Value &item : elementsOf(c, subject)->items) {
    c.step();
    Value mapped = attribute ? memberOf(c, item, *attribute)
                             : caller.filter(needText(c, arguments.values[0], "the name of a filter"), item, behind(c, arguments, 1));
    list.list->items.push(c, mapped.is(Kind::Undefined) && fallback ? *fallback : mapped);
  }
  return list;
}

Value toInteger(const Value &value, const Arguments &arguments) {
  const Value *fallback = arguments.find(0, "default");
  if (value.is(Kind::Float))
    return Value::ofInt(value.real > -9e18 && value.real < 9e18 ? int64_t(value.real) : 0);
  if (value.isNumber())
    return Value::ofInt(value.whole());
  if (value.is(Kind::String) && value.length < 60) {
    char digits[64] = {};
    std::memcpy(digits, value.text, value.length);
    char *end;
    double number = std::strtod(digits, &end);
    if (end != digits && *end == 0 && std::fabs(number) < 9e18)
      return Value::ofInt(int64_t(number));
  }
  return fallback ? *fallback : Value::ofInt(0);
}

Value toReal(const Value &value, const Arguments &arguments) {
  const Value *fallback = arguments.find(0, "default");
  if (value.isNumber())
    return Value::ofReal(value.number());
  if (value.is(Kind::String) && value.length < 60) {
    char digits[64] = {};
    std::memcpy(digits, value.text, value.length);
    char *end;
    double number = std::strtod(digits, &end);
    if (end != digits && *end == 0)
      return Value::ofReal(number);
  }
  return fallback ? *fallback : Value::ofReal(0);
}

Value lengthOf(Context &c, const Value &value) {
  if (value.is(Kind::String))
    return Value::ofInt(int64_t(countPoints(value.bytes())));
  if (value.is(Kind::List))
    return Value::ofInt(int64_t(value.list->items.size));
  if (value.is(Kind::Dict))
    return Value::ofInt(int64_t(value.dict->entries.size));
  if (value.is(Kind::Undefined))
    return Value::ofInt(0);
  c.fail("%s has no length", kindName(value));
}

Value copyList(Context &c, const Value &value) {
  Value list = makeList(c);
  Sequence *from = elementsOf(c, value);
  list.list->items.append(c, from->items.data, from->items.size);
  return list;
}

Value sorted(Context &c, const Value &subject, const Arguments &arguments) {
  Value list = copyList(c, subject);
  const Value *attribute = arguments.find(2, "attribute");
  bool exact = flag(arguments, 1, "case_sensitive");
  sortItems(c, list.list->items, flag(arguments, 0, "reverse"), [&](const Value &item) {
    Value key = attribute ? memberOf(c, item, *attribute) : item;
    return key.is(Kind::String) && !exact ? Value::ofText(changeCase(c, key.bytes(), [](char ch, bool) { return lower(ch); })) : key;
  });
  return list;
}

/// Filters of lists.
bool filterList(Context &c, Caller &caller, Bytes name, const Value &v, const Arguments &a, Value &result) {
  auto is = [&](const char *known) { return name == literal(known); };
  if (is("join")) {
    const Value *separator = a.find(0, "d");
    result = Value::ofText(join(c, *elementsOf(c, v), separator ? toText(c, *separator) : Bytes(), a.find(1, "attribute")));
  } else if (is("first") || is("last")) {
    const List<Value> &items = elementsOf(c, v)->items;
    result = items.size == 0 ? Value() : items[is("first") ? 0 : items.size - 1];
  } else if (is("list")) {
    result = copyList(c, v);
  } else if (is("reverse")) {
    result = copyList(c, v);
    std::reverse(result.list->items.begin(), result.list->items.end());
    if (v.is(Kind::String))
      result = Value::ofText(join(c, *result.list, {}, nullptr));
  } else if (is("unique")) {
    result = makeList(c);
    for (const Value &item : elementsOf(c, v)->items)
      if (c.step(), !contains(c, result, item))
        result.list->items.push(c, item);
  } else if (is("sum")) {
    result = Value::ofInt(0);
    for (const Value &item : elementsOf(c, v)->items)
      result = item.is(Kind::Float) || result.is(Kind::Float) ? Value::ofReal(result.number() + item.number())
                                                              : Value::ofInt(result.integer + needWhole(c, item, "sum"));
  } else if (is("min") || is("max")) {
    for (const Value &item : elementsOf(c, v)->items)
      if (result.is(Kind::Undefined) || (compare(c, item, result) < 0) == is("min"))
        result = item;
  } else if (is("sort")) {
    result = sorted(c, v, a);
  } else if (is("dictsort")) {
    result = itemsOf(c, v);
    bool byValue = a.find(1, "by") && equal(*a.find(1, "by"), Value::ofText(literal("value")));
    sortItems(c, result.list->items, flag(a, 2, "reverse"), [&](const Value &pair) { return pair.list->items[byValue]; });
  } else if (is("select") || is("reject")) {
    result = selectItems(c, caller, v, a, is("select"), false);
  } else if (is("selectattr") || is("rejectattr")) {
    result = selectItems(c, caller, v, a, is("selectattr"), true);
  } else if (is("map")) {
    result = mapItems(c, caller, v, a);
  } else if (is("items")) {
    result = v.is(Kind::Undefined) ? makeList(c) : itemsOf(c, v);
  } else {
    return false;
  }
  return true;
}

Bytes jsonOf(Context &c, const Value &v, const Arguments &a) {
  Out out;
  const Value *indent = a.find(0, "indent");
  printJson(c, v, indent && !indent->is(Kind::None) ? int(std::min<int64_t>(needWhole(c, *indent, "tojson"), 64)) : -1, 0, out);
  return {out.data, out.size};
}

} // namespace

Value applyFilter(Context &c, Caller &caller, Bytes name, const Value &v, const Arguments &a) {
  auto is = [&](const char *known) { return name == literal(known); };
  Value result;
  if (filterList(c, caller, name, v, a, result))
    return result;
  if (is("default") || is("d")) {
    const Value *fallback = a.find(0, "default_value");
    bool missing = v.is(Kind::Undefined) || (flag(a, 1, "boolean") && !isTrue(v));
    return missing ? fallback ? *fallback : Value::ofText(literal("")) : v;
  }
  if (is("length") || is("count"))
    return lengthOf(c, v);
  if (is("tojson"))
    return Value::ofText(jsonOf(c, v, a));
  if (is("int"))
    return toInteger(v, a);
  if (is("float"))
    return toReal(v, a);
  if (is("abs"))
    return v.is(Kind::Float) ? Value::ofReal(std::fabs(v.real)) : Value::ofInt(std::abs(needWhole(c, v, "abs")));
  if (is("round")) {
    double scale = std::pow(10.0, double(a.find(0, "precision") ? needWhole(c, *a.find(0, "precision"), "round") : 0));
    return Value::ofReal(std::nearbyint(toReal(v, {}).real * scale) / scale);
  }
  if (is("string") || is("safe"))
    return Value::ofText(toText(c, v));
  // Filters of strings take other values as their text.
  Bytes text = toText(c, v);
  if (is("trim"))
    return Value::ofText(strip(text, a.find(0, "chars"), true, true));
  if (is("upper") || is("lower") || is("title") || is("capitalize") || is("replace"))
    return callMethod(c, Value::ofText(text), name, a);
  if (is("escape") || is("e"))
    return Value::ofText(escapeMarkup(c, text));
  if (is("indent"))
    return Value::ofText(indentText(c, text, a));
  c.fail("unknown filter '%.*s'", int(name.size), name.data);
}

bool applyTest(Context &c, Bytes name, const Value &v, const Arguments &a) {
  auto is = [&](const char *known) { return name == literal(known); };
  auto argument = [&]() -> const Value & {
    if (a.values.size == 0)
      c.fail("the test '%.*s' needs a value", int(name.size), name.data);
    return a.values[0];
  };
  if (is("defined"))
    return !v.is(Kind::Undefined);
  if (is("undefined"))
    return v.is(Kind::Undefined);
  if (is("none"))
    return v.is(Kind::None);
  if (is("string"))
    return v.is(Kind::String);
  if (is("number"))
    return v.isNumber();
  if (is("integer"))
    return v.is(Kind::Int);
  if (is("float"))
    return v.is(Kind::Float);
  if (is("boolean"))
    return v.is(Kind::Bool);
  if (is("true") || is("false"))
    return v.is(Kind::Bool) && v.boolean == is("true");
  if (is("mapping"))
    return v.is(Kind::Dict);
  if (is("sequence") || is("iterable"))
    return v.is(Kind::List) || v.is(Kind::String) || v.is(Kind::Dict) || (is("iterable") && v.is(Kind::Undefined));
  if (is("callable"))
    return v.is(Kind::Macro) || v.is(Kind::Function);
  if (is("eq") || is("equalto") || is("=="))
    return equal(v, argument());
  if (is("ne") || is("!="))
    return !equal(v, argument());
  if (is("lt") || is("<") || is("lessthan"))
    return compare(c, v, argument()) < 0;
  if (is("le") || is("<="))
    return compare(c, v, argument()) <= 0;
  if (is("gt") || is(">") || is("greaterthan"))
    return compare(c, v, argument()) > 0;
  if (is("ge") || is(">="))
    return compare(c, v, argument()) >= 0;
  if (is("in"))
    return contains(c, argument(), v);
  if (is("even") || is("odd"))
    return (needWhole(c, v, "a test of numbers") & 1) == (is("odd") ? 1 : 0);
  if (is("divisibleby")) {
    int64_t by = needWhole(c, argument(), "divisibleby");
    if (by == 0)
      c.fail("division by zero");
    return by == -1 || needWhole(c, v, "divisibleby") % by == 0;
  }
  if (is("lower") || is("upper")) {
    Bytes text = toText(c, v), changed = changeCase(c, text, [&](char ch, bool) { return is("lower") ? lower(ch) : upper(ch); });
    return text == changed;
  }
  c.fail("unknown test '%.*s'", int(name.size), name.data);
}

static bool textMethod(Context &c, Bytes text, Bytes name, const Arguments &a, Value &result) {
  auto is = [&](const char *known) { return name == literal(known); };
  auto need = [&](size_t place, const char *argument) {
    const Value *found = a.find(place, argument);
    if (!found)
      c.fail("'%.*s' needs an argument", int(name.size), name.data);
    return needText(c, *found, "a method of strings");
  };
  if (is("strip") || is("lstrip") || is("rstrip")) {
    result = Value::ofText(strip(text, a.find(0, "chars"), !is("rstrip"), !is("lstrip")));
  } else if (is("split") || is("rsplit")) {
    const Value *most = a.find(1, "maxsplit");
    result = split(c, text, a.find(0, "sep"), most ? needWhole(c, *most, "split") : -1, is("rsplit"));
  } else if (is("splitlines")) {
    result = splitLines(c, text);
  } else if (is("startswith") || is("endswith")) {
    auto matches = [&](Bytes wanted) { return is("startswith") ? beginsWith(text, wanted) : endsIn(text, wanted); };
    const Value *wanted = a.find(0, "prefix");
    bool found = false;
    if (wanted && wanted->is(Kind::List))
      for (const Value &item : wanted->list->items)
        found |= matches(needText(c, item, "a method of strings"));
    else
      found = matches(need(0, "prefix"));
    result = Value::ofBool(found);
  } else if (is("removeprefix") || is("removesuffix")) {
    Bytes part = need(0, "prefix");
    if (is("removeprefix") ? beginsWith(text, part) : endsIn(text, part))
      text = {text.data + (is("removeprefix") ? part.size : 0), text.size - part.size};
    result = Value::ofText(text);
  } else if (is("upper")) {
    result = Value::ofText(changeCase(c, text, [](char ch, bool) { return upper(ch); }));
  } else if (is("lower")) {
    result = Value::ofText(changeCase(c, text, [](char ch, bool) { return lower(ch); }));
  } else if (is("title")) {
    result = Value::ofText(changeCase(c, text, [](char ch, bool begins) { return begins ? upper(ch) : lower(ch); }));
  } else if (is("capitalize")) {
    result = Value::ofText(capitalize(c, text));
  } else if (is("replace")) {
    const Value *most = a.find(2, "count");
    result = Value::ofText(replaceAll(c, text, need(0, "old"), need(1, "new"), most && !most->is(Kind::None) ? needWhole(c, *most, "replace") : -1));
  } else if (is("find") || is("index") || is("count")) {
    Bytes wanted = need(0, "sub");
    size_t at = findText(text, wanted, 0);
    int64_t count = 0;
    for (size_t next = at; is("count") && wanted.size != 0 && next != SIZE_MAX; next = findText(text, wanted, next + wanted.size))
      ++count;
    if (is("index") && at == SIZE_MAX)
      c.fail("the string has no such part");
    result = Value::ofInt(is("count") ? count : at == SIZE_MAX ? -1 : int64_t(countPoints({text.data, at})));
  } else if (is("join")) {
    result = Value::ofText(join(c, *elementsOf(c, a.values.size ? a.values[0] : Value()), text, nullptr));
  } else if (is("isdigit") || is("isspace") || is("isalpha")) {
    bool all = text.size != 0;
    for (size_t i = 0; i < text.size; ++i) {
      char ch = text.data[i];
      all = all && (is("isdigit") ? ch >= '0' && ch <= '9' : is("isspace") ? isSpace(ch) : lower(ch) >= 'a' && lower(ch) <= 'z');
    }
    result = Value::ofBool(all);
  } else {
    return false;
  }
  return true;
}

static bool dictMethod(Context &c, const Value &object, Bytes name, const Arguments &a, Value &result) {
  auto is = [&](const char *known) { return name == literal(known); };
  if (is("items")) {
    result = itemsOf(c, object);
  } else if (is("keys") || is("values")) {
    result = makeList(c);
    for (const Entry &entry : object.dict->entries)
      result.list->items.push(c, is("keys") ? Value::ofText(entry.key) : entry.value);
  } else if (is("get")) {
    const Value *key = a.find(0, "key"), *fallback = a.find(1, "default");
    result = key && key->is(Kind::String) ? memberOf(c, object, *key) : Value();
    if (result.is(Kind::Undefined))
      result = fallback ? *fallback : Value::none();
  } else if (is("update")) {
    const Value *other = a.find(0, "other");
    if (!other || !other->is(Kind::Dict))
      c.fail("update needs a mapping");
    for (const Entry &entry : other->dict->entries)
      object.dict->set(c, entry.key, entry.value);
    result = Value::none();
  } else {
    return false;
  }
  return true;
}

Value callMethod(Context &c, const Value &object, Bytes name, const Arguments &a) {
  auto is = [&](const char *known) { return name == literal(known); };
  Value result;
  if (object.is(Kind::String) && textMethod(c, object.bytes(), name, a, result))
    return result;
  if (object.is(Kind::Dict) && object.dict->isLoop && is("cycle") && a.values.size != 0)
    return a.values[size_t(object.dict->find(literal("index0"))->integer) % a.values.size];
  if (object.is(Kind::Dict) && dictMethod(c, object, name, a, result))
    return result;
  if (object.is(Kind::List) && is("append") && a.values.size == 1) {
    object.list->items.push(c, a.values[0]);
    return Value::none();
  }
  if (object.is(Kind::List) && is("pop") && object.list->items.size != 0) {
    List<Value> &items = object.list->items;
    int64_t at = a.values.size ? needWhole(c, a.values[0], "pop") : -1;
    at += at < 0 ? int64_t(items.size) : 0;
    if (at < 0 || at >= int64_t(items.size))
      c.fail("the list has no element %lld", (long long)at);
    result = items[size_t(at)];
    for (size_t i = size_t(at) + 1; i < items.size; ++i)
      items[i - 1] = items[i];
    --items.size;
    return result;
  }
  c.fail("%s has no method '%.*s'", kindName(object), int(name.size), name.data);
}

static Value makeRange(Context &c, const Arguments &a) {
  int64_t numbers[3] = {0, 0, 1};
  if (a.values.size == 0 || a.values.size > 3)
    c.fail("range needs one to three integers");
  for (size_t i = 0; i < a.values.size; ++i)
    numbers[a.values.size == 1 ? 1 : i] = needWhole(c, a.values[i], "range");
  if (numbers[2] == 0)
    c.fail("range needs a step that is not 0");
  Value list = makeList(c);
  for (int64_t i = numbers[0]; numbers[2] > 0 ? i < numbers[1] : i > numbers[1];) {
    c.step();
    list.list->items.push(c, Value::ofInt(i));
    if (__builtin_add_overflow(i, numbers[2], &i))
      break;
  }
  return list;
}

Value callFunction(Context &c, Function function, const Arguments &a, int64_t now) {
  switch (function) {
  case Function::RaiseException: {
    Bytes text = a.values.size ? toText(c, a.values[0]) : literal("");
    c.fail("the template refuses: %.*s", int(std::min<size_t>(text.size, 400)), text.data ? text.data : "");
  }
  case Function::StrftimeNow: {
    Bytes format = needText(c, a.values.size ? a.values[0] : Value(), "strftime_now");
    time_t seconds = time_t(now);
    tm parts = {};
    localtime_r(&seconds, &parts);
    Out out;
    out.reserve(c, 1024);
    out.size = strftime(out.data, 1024, copyText(c, format).data, &parts);
    return Value::ofText({out.data, out.size});
  }
  case Function::Range:
    return makeRange(c, a);
  case Function::Namespace:
  case Function::Dict: {
    Value dict = makeDict(c);
    dict.dict->isNamespace = function == Function::Namespace;
    for (size_t i = 0; i < a.unnamed(); ++i)
      if (a.values[i].is(Kind::Dict))
        for (const Entry &entry : a.values[i].dict->entries)
          dict.dict->set(c, entry.key, entry.value);
    for (size_t i = 0; i < a.names.size; ++i)
      dict.dict->set(c, a.names[i], a.values[a.unnamed() + i]);
    return dict;
  }
  }
  return Value();
}

Value memberOf(Context &c, const Value &object, const Value &key) {
  if (object.is(Kind::Undefined))
    c.fail("an undefined value has no members; '%.*s' was asked for", key.is(Kind::String) ? int(key.length) : 0, key.is(Kind::String) ? key.text : "");
  if (object.is(Kind::Dict) && key.is(Kind::String)) {
    const Value *found = object.dict->find(key.bytes());
    return found ? *found : Value();
  }
  if (key.is(Kind::Int) && (object.is(Kind::List) || object.is(Kind::String))) {
    int64_t size = object.is(Kind::List) ? int64_t(object.list->items.size) : int64_t(countPoints(object.bytes()));
    int64_t at = key.integer < 0 ? key.integer + size : key.integer;
    if (at < 0 || at >= size)
      return Value();
    if (object.is(Kind::List))
      return object.list->items[size_t(at)];
    size_t begin = offsetOfPoint(object.bytes(), size_t(at));
    unsigned length;
    decodeUtf8(object.text + begin, object.length - begin, length);
    return Value::ofText({object.text + begin, length});
  }
  return Value();
}

bool contains(Context &c, const Value &container, const Value &element) {
  if (container.is(Kind::String))
    return findText(container.bytes(), needText(c, element, "'in' a string"), 0) != SIZE_MAX;
  if (container.is(Kind::Dict))
    return element.is(Kind::String) && container.dict->find(element.bytes());
  for (const Value &item : elementsOf(c, container)->items)
    if (c.step(), equal(item, element))
      return true;
  return false;
}

} // namespace ajour::language::chat
