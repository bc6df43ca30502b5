/// Values of chat templates, and the memory and failure of one rendering.
///
/// A rendering allocates from an arena and frees it as a whole. What goes wrong leaves through one longjmp to where the rendering began; so no
/// frame on the way may own anything that needs a destructor: everything here is plain data in the arena.
#ifndef AJOUR_LIB_LANGUAGE_TEMPLATE_VALUE_H
#define AJOUR_LIB_LANGUAGE_TEMPLATE_VALUE_H

#include <csetjmp>

#include "ajour/Language/Text.h"

namespace ajour::language::chat {

/// Memory, limits and the error of one rendering.
struct Context {
  static constexpr size_t mostBytes = size_t(64) << 20; ///< of the arena
  static constexpr uint64_t mostSteps = 5000000;        ///< of evaluation
  static constexpr unsigned mostDepth = 200;             ///< of expressions and blocks within each other

  jmp_buf escape;
  char message[512] = "";
  int line = 1;
  uint64_t steps = 0;
  unsigned depth = 0;

  Context() = default;
  Context(const Context &) = delete;
  ~Context();
  void *allocate(size_t bytes);
  /// Ends the rendering with "line N: MESSAGE".
  [[noreturn]] __attribute__((format(printf, 2, 3), cold)) void fail(const char *format, ...);
  void step() {
    if (++steps > mostSteps)
      fail("the template takes too many steps");
  }
  void enter() {
    if (++depth > mostDepth)
      fail("is nested deeper than %u", mostDepth);
  }
  void leave() { --depth; }

private:
  struct Block {
    Block *next;
  };
  Block *blocks = nullptr;
  char *at = nullptr, *end = nullptr;
  size_t total = 0;
};

/// An array in the arena.
template <typename T> struct List {
  T *data = nullptr;
  size_t size = 0, capacity = 0;

  void push(Context &c, T value) {
    reserve(c, size + 1);
    data[size++] = value;
  }
  void append(Context &c, const T *values, size_t n) {
    if (n == 0)
      return;
    reserve(c, size + n);
    std::memcpy(static_cast<void *>(data + size), values, n * sizeof(T));
    size += n;
  }
  void reserve(Context &c, size_t n) {
    if (n <= capacity)
      return;
    size_t wanted = capacity * 2 > n ? capacity * 2 : n < 4 ? 4 : n;
    T *grown = static_cast<T *>(c.allocate(wanted * sizeof(T)));
    if (size != 0)
      std::memcpy(static_cast<void *>(grown), data, size * sizeof(T));
    data = grown;
    capacity = wanted;
  }
  T &operator[](size_t i) { return data[i]; }
  const T &operator[](size_t i) const { return data[i]; }
  T *begin() const { return data; }
  T *end() const { return data + size; }
};
using Out = List<char>;

struct Sequence;
struct Mapping;
struct Node;
struct Macro;

enum class Kind : uint8_t { Undefined, None, Bool, Int, Float, String, List, Dict, Macro, Function };
enum class Function : uint8_t { RaiseException, StrftimeNow, Range, Namespace, Dict };

struct Value {
  Kind kind = Kind::Undefined;
  union {
    bool boolean;
    int64_t integer;
    double real;
    struct {
      const char *text;
      size_t length;
    };
    Sequence *list;
    Mapping *dict;
    Macro *macro;
    Function function;
  };
  Value() : text(nullptr), length(0) {}
  static Value none() { return of(Kind::None); }
  static Value of(Kind kind) {
    Value value;
    value.kind = kind;
    return value;
  }
  static Value ofBool(bool b) {
    Value value = of(Kind::Bool);
    value.boolean = b;
    return value;
  }
  static Value ofInt(int64_t i) {
    Value value = of(Kind::Int);
    value.integer = i;
    return value;
  }
  static Value ofReal(double d) {
    Value value = of(Kind::Float);
    value.real = d;
    return value;
  }
  static Value ofText(Bytes bytes) {
    Value value = of(Kind::String);
    value.text = bytes.data;
    value.length = bytes.size;
    return value;
  }
  Bytes bytes() const { return {text, length}; }
  bool is(Kind k) const { return kind == k; }
  bool isNumber() const { return is(Kind::Int) || is(Kind::Float) || is(Kind::Bool); }
  double number() const { return is(Kind::Float) ? real : is(Kind::Bool) ? double(boolean) : double(integer); }
  int64_t whole() const { return is(Kind::Bool) ? int64_t(boolean) : integer; }
};

struct Sequence {
  List<Value> items;
  bool isTuple = false;
};
struct Entry {
  Bytes key;
  Value value;
};
struct Mapping {
  List<Entry> entries;
  bool isNamespace = false;
  bool isLoop = false;

  Value *find(Bytes key) const {
    for (Entry &entry : entries)
      if (entry.key == key)
        return &entry.value;
    return nullptr;
  }
  void set(Context &c, Bytes key, Value value) {
    if (Value *found = find(key))
      *found = value;
    else
      entries.push(c, {key, value});
  }
};

inline Bytes literal(const char *text) { return {text, std::strlen(text)}; }
template <typename T> T *create(Context &c) { return new (c.allocate(sizeof(T))) T(); }
Value makeList(Context &c);
Value makeDict(Context &c);
/// A copy in the arena.
Bytes copyText(Context &c, Bytes bytes);

bool isTrue(const Value &value);
bool equal(const Value &a, const Value &b);
/// Below 0, 0, above 0. Fails for values without an order.
int compare(Context &c, const Value &a, const Value &b);
/// What a kind is called in messages.
const char *kindName(const Value &value);
/// As Python prints it; `quoted`: as it shows it inside lists.
void print(Context &c, const Value &value, bool quoted, Out &out);
Bytes toText(Context &c, const Value &value);
/// As JSON; `indent` below 0: on one line.
void printJson(Context &c, const Value &value, int indent, int level, Out &out);
/// Reads JSON. Fails with the byte where it is wrong.
Value parseJson(Context &c, Bytes json, const char *what);

/// Code points of a UTF-8 text; bytes that are none count one each.
size_t countPoints(Bytes text);
/// Where code point number `n` begins.
size_t offsetOfPoint(Bytes text, size_t n);
/// The elements that a loop over the value goes through; fails when there can be none.
Sequence *elementsOf(Context &c, const Value &value);

} // namespace ajour::language::chat

#endif
