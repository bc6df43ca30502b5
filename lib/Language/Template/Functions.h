/// Filters, tests, methods and functions of chat templates.
#ifndef AJOUR_LIB_LANGUAGE_TEMPLATE_FUNCTIONS_H
#define AJOUR_LIB_LANGUAGE_TEMPLATE_FUNCTIONS_H

#include "Value.h"

namespace ajour::language::chat {

/// Arguments of a call; the last names.size of them have names.
struct Arguments {
  List<Value> values;
  List<Bytes> names;

  size_t unnamed() const { return values.size - names.size; }
  /// The argument at that place or of that name; null: not given.
  const Value *find(size_t place, const char *name) const;
};

/// Calls back for filters that apply others (map, select).
struct Caller {
  virtual Value filter(Bytes name, const Value &subject, const Arguments &arguments) = 0;
  virtual bool test(Bytes name, const Value &subject, const Arguments &arguments) = 0;

protected:
  ~Caller() = default;
};

Value applyFilter(Context &c, Caller &caller, Bytes name, const Value &subject, const Arguments &arguments);
bool applyTest(Context &c, Bytes name, const Value &subject, const Arguments &arguments);
Value callMethod(Context &c, const Value &object, Bytes name, const Arguments &arguments);
/// `now`: seconds since 1970, for strftime_now.
Value callFunction(Context &c, Function function, const Arguments &arguments, int64_t now);
/// A member of a mapping, or an element by its number; undefined when there is none.
Value memberOf(Context &c, const Value &object, const Value &key);
bool contains(Context &c, const Value &container, const Value &element);

} // namespace ajour::language::chat

#endif
