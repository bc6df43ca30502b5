#include "Template.h"

#include "Functions.h"
#include "Parser.h"

#include <algorithm>
#include <cmath>
#include <new>

namespace ajour::language::chat {

/// Variables of a block; those of outer ones are seen through it.
struct Scope {
  Mapping variables;
  Scope *outer = nullptr;
};

struct Macro {
  const Node *node;
  Scope *scope; ///< where it was defined
};

namespace {

enum class Flow { Normal, Break, Continue };

class Interpreter final : public Caller {
public:
  Interpreter(Context &c, Mapping &variables, int64_t now) : c(c), now(now), global(*makeScope(nullptr)) { global.variables = variables; }

  Out run(const List<Node *> &body) {
    Out out;
    execute(body, global, out);
    return out;
  }

  Value filter(Bytes name, const Value &subject, const Arguments &arguments) override {
    return applyFilter(c, *this, name, subject, arguments);
  }
  bool test(Bytes name, const Value &subject, const Arguments &arguments) override { return applyTest(c, name, subject, arguments); }

private:
  Scope *makeScope(Scope *outer) {
    Scope *scope = new (c.allocate(sizeof(Scope))) Scope();
    scope->outer = outer;
    return scope;
  }

  //===--- statements -------------------------------------------------------===//

  Flow execute(const List<Node *> &body, Scope &scope, Out &out) {
    c.enter();
    Flow flow = Flow::Normal;
    for (size_t i = 0; i < body.size && flow == Flow::Normal; ++i) {
      c.step();
      c.line = body[i]->line;
      flow = execute(*body[i], scope, out);
    }
    c.leave();
    return flow;
  }

  Flow execute(const Node &node, Scope &scope, Out &out) {
    switch (node.kind) {
    case NodeKind::Text:
      out.append(c, node.text.data, node.text.size);
      break;
    case NodeKind::Print:
      print(c, evaluate(*node.a, scope), false, out);
      break;
    case NodeKind::If:
      return execute(isTrue(evaluate(*node.a, scope)) ? node.list : node.other, scope, out);
    case NodeKind::For:
      executeFor(node, scope, out);
      break;
    case NodeKind::Set:
      executeSet(node, scope);
      break;
    case NodeKind::SetBlock: {
      Value text = Value::ofText(capture(node.list, scope));
      assign(scope, node.names[0], node.text, node.a ? filterWith(*node.a, text, scope) : text);
      break;
    }
    case NodeKind::MacroDef: {
      Value value = Value::of(Kind::Macro);
      value.macro = new (c.allocate(sizeof(Macro))) Macro{&node, &scope};
      scope.variables.set(c, node.names[0], value);
      break;
    }
    case NodeKind::FilterBlock:
      print(c, filterWith(*node.a, Value::ofText(capture(node.list, scope)), scope), false, out);
      break;
    case NodeKind::CallBlock: {
      Node *body = new (c.allocate(sizeof(Node))) Node();
      body->kind = NodeKind::MacroDef;
      body->line = node.line;
      body->list = node.list;
      body->names.push(c, literal("caller"));
      Value caller = Value::of(Kind::Macro);
      caller.macro = new (c.allocate(sizeof(Macro))) Macro{body, &scope};
      Scope *inner = makeScope(&scope);
      inner->variables.set(c, literal("caller"), caller);
      print(c, call(*node.a, *inner, &caller), false, out);
      break;
    }
    case NodeKind::Generation:
      return execute(node.list, scope, out);
    case NodeKind::Break:
      return Flow::Break;
    case NodeKind::Continue:
      return Flow::Continue;
    default:
      break;
    }
    return Flow::Normal;
  }

  Bytes capture(const List<Node *> &body, Scope &scope) {
    Out out;
    execute(body, *makeScope(&scope), out);
    return {out.data, out.size};
  }

  /// Applies a chain of filters whose first has no subject.
  Value filterWith(const Node &node, const Value &subject, Scope &scope) {
    Value inner = node.a ? filterWith(*node.a, subject, scope) : subject;
    return filter(node.text, inner, argumentsOf(node, scope));
  }

  void assign(Scope &scope, Bytes name, Bytes member, const Value &value) {
    if (member.size == 0)
      return scope.variables.set(c, name, value);
    Value *object = lookup(scope, name);
    if (!object || !object->is(Kind::Dict) || !object->dict->isNamespace)
      c.fail("'%.*s' is no namespace, its members cannot be set", int(name.size), name.data);
    object->dict->set(c, member, value);
  }

  void unpack(const Node &node, Scope &scope, const Value &value) {
    if (node.names.size == 1)
      return assign(scope, node.names[0], node.text, value);
    Sequence *items = elementsOf(c, value);
    if (items->items.size != node.names.size)
      c.fail("%zu values for %zu names", items->items.size, node.names.size);
    for (size_t i = 0; i < node.names.size; ++i)
      scope.variables.set(c, node.names[i], items->items[i]);
  }

  void executeSet(const Node &node, Scope &scope) { unpack(node, scope, evaluate(*node.a, scope)); }

  void executeFor(const Node &node, Scope &scope, Out &out) {
    Sequence *items = elementsOf(c, evaluate(*node.a, scope));
    List<Value> chosen = items->items;
    if (node.b) {
      chosen = {};
      for (size_t i = 0; i < items->items.size; ++i) {
        Scope *trial = makeScope(&scope);
        c.step();
        unpack(node, *trial, items->items[i]);
        if (isTrue(evaluate(*node.b, *trial)))
          chosen.push(c, items->items[i]);
      }
    }
    if (chosen.size == 0) {
      execute(node.other, *makeScope(&scope), out);
      return;
    }
    // The list may be changed by the body; the loop goes over what it was.
    size_t count = chosen.size;
    for (size_t i = 0; i < count; ++i) {
      Scope *inner = makeScope(&scope);
      unpack(node, *inner, chosen[i]);
      inner->variables.set(c, literal("loop"), loopAt(chosen, i, count));
      if (execute(node.list, *inner, out) == Flow::Break)
        break;
    }
  }

  Value loopAt(const List<Value> &items, size_t i, size_t count) {
    Value loop = makeDict(c);
    loop.dict->isLoop = true;
    auto set = [&](const char *name, Value value) { loop.dict->entries.push(c, {literal(name), value}); };
    set("index", Value::ofInt(int64_t(i) + 1));
    set("index0", Value::ofInt(int64_t(i)));
    set("revindex", Value::ofInt(int64_t(count - i)));
    set("revindex0", Value::ofInt(int64_t(count - i) - 1));
    set("first", Value::ofBool(i == 0));
    set("last", Value::ofBool(i + 1 == count));
    set("length", Value::ofInt(int64_t(count)));
    set("previtem", i == 0 ? Value() : items[i - 1]);
    set("nextitem", i + 1 == count ? Value() : items[i + 1]);
    return loop;
  }

  //===--- expressions ------------------------------------------------------===//

  Value *lookup(Scope &scope, Bytes name) {
    for (Scope *at = &scope; at; at = at->outer)
      if (Value *found = at->variables.find(name))
        return found;
    return nullptr;
  }

  Value variable(Scope &scope, Bytes name) {
    if (Value *found = lookup(scope, name))
      return *found;
    static constexpr const char *functions[] = {"raise_exception", "strftime_now", "range", "namespace", "dict"};
    for (int i = 0; i < 5; ++i)
      if (name == literal(functions[i])) {
        Value value = Value::of(Kind::Function);
        value.function = Function(i);
        return value;
      }
    return Value();
  }

  Value evaluate(const Node &node, Scope &scope) {
    c.enter();
    c.step();
    c.line = node.line;
    Value value = compute(node, scope);
    c.leave();
    return value;
  }

  Value compute(const Node &node, Scope &scope) {
    switch (node.kind) {
    case NodeKind::Constant:
      return node.value;
    case NodeKind::Name:
      return variable(scope, node.text);
    case NodeKind::ListOf: {
      Value list = makeList(c);
      list.list->isTuple = node.value.boolean;
      for (const Node *item : node.list)
        list.list->items.push(c, evaluate(*item, scope));
      return list;
    }
    case NodeKind::DictOf: {
      Value dict = makeDict(c);
      for (size_t i = 0; i < node.list.size; ++i)
        dict.dict->set(c, toText(c, evaluate(*node.list[i], scope)), evaluate(*node.other[i], scope));
      return dict;
    }
    case NodeKind::Member:
      return memberOf(c, evaluate(*node.a, scope), Value::ofText(node.text));
    case NodeKind::Index: {
      Value object = evaluate(*node.a, scope);
      return memberOf(c, object, evaluate(*node.b, scope));
    }
    case NodeKind::Slice:
      return slice(node, scope);
    case NodeKind::Call:
      return call(node, scope, nullptr);
    case NodeKind::Filter: {
      Value subject = evaluate(*node.a, scope);
      return filter(node.text, subject, argumentsOf(node, scope));
    }
    case NodeKind::Test: {
      Value subject = evaluate(*node.a, scope);
      return Value::ofBool(test(node.text, subject, argumentsOf(node, scope)) != node.value.boolean);
    }
    case NodeKind::Not:
      return Value::ofBool(!isTrue(evaluate(*node.a, scope)));
    case NodeKind::Minus:
    case NodeKind::Plus:
      return negate(evaluate(*node.a, scope), node.kind == NodeKind::Minus);
    case NodeKind::And: {
      Value left = evaluate(*node.a, scope);
      return isTrue(left) ? evaluate(*node.b, scope) : left;
    }
    case NodeKind::Or: {
      Value left = evaluate(*node.a, scope);
      return isTrue(left) ? left : evaluate(*node.b, scope);
    }
    case NodeKind::Choose:
      return isTrue(evaluate(*node.a, scope)) ? evaluate(*node.b, scope) : node.c ? evaluate(*node.c, scope) : Value();
    case NodeKind::Chain:
      return chain(node, scope);
    case NodeKind::Binary: {
      Value left = evaluate(*node.a, scope);
      return binary(node.text, left, evaluate(*node.b, scope));
    }
    default:
      return Value();
    }
  }

  Value negate(const Value &value, bool minus) {
    if (!value.isNumber())
      c.fail("%s has no sign", kindName(value));
    if (value.is(Kind::Float))
      return Value::ofReal(minus ? -value.real : value.real);
    return Value::ofInt(minus ? int64_t(0 - uint64_t(value.whole())) : value.whole());
  }

  Value chain(const Node &node, Scope &scope) {
    Value left = evaluate(*node.a, scope);
    for (size_t i = 0; i < node.list.size; ++i) {
      Value right = evaluate(*node.list[i], scope);
      auto is = [&](const char *op) { return node.names[i] == literal(op); };
      bool holds = is("==")       ? equal(left, right)
                   : is("!=")     ? !equal(left, right)
                   : is("in")     ? contains(c, right, left)
                   : is("not in") ? !contains(c, right, left)
                   : is("<")      ? compare(c, left, right) < 0
                   : is("<=")     ? compare(c, left, right) <= 0
                   : is(">")      ? compare(c, left, right) > 0
                                  : compare(c, left, right) >= 0;
      if (!holds)
        return Value::ofBool(false);
      left = right;
    }
    return Value::ofBool(true);
  }

  Value binary(Bytes op, const Value &a, const Value &b) {
    auto is = [&](const char *known) { return op == literal(known); };
    if (is("~") || (is("+") && a.is(Kind::String) && b.is(Kind::String))) {
      Out out;
      print(c, a, false, out);
      print(c, b, false, out);
      return Value::ofText({out.data, out.size});
    }
    if (is("+") && a.is(Kind::List) && b.is(Kind::List)) {
      Value list = makeList(c);
      list.list->isTuple = a.list->isTuple;
      list.list->items.append(c, a.list->items.data, a.list->items.size);
      list.list->items.append(c, b.list->items.data, b.list->items.size);
      return list;
    }
    if (is("*") && (a.is(Kind::String) || a.is(Kind::List)) && b.is(Kind::Int))
      return repeat(a, b.integer);
    if (!a.isNumber() || !b.isNumber())
      c.fail("'%.*s' does not take %s and %s", int(op.size), op.data, kindName(a), kindName(b));
    bool real = a.is(Kind::Float) || b.is(Kind::Float) || is("/") || (is("**") && b.whole() < 0);
    return real ? arithmetic(op, a.number(), b.number()) : arithmetic(op, a.whole(), b.whole());
  }

  Value repeat(const Value &value, int64_t times) {
    Out out;
    Value list = makeList(c);
    for (; times > 0; --times) {
      c.step();
      if (value.is(Kind::String))
        out.append(c, value.text, value.length);
      else
        list.list->items.append(c, value.list->items.data, value.list->items.size);
    }
    return value.is(Kind::String) ? Value::ofText({out.data, out.size}) : list;
  }

  Value arithmetic(Bytes op, double a, double b) {
    char first = op.data[0];
    if ((first == '/' || first == '%') && b == 0)
      c.fail("division by zero");
    if (op == literal("//"))
      return Value::ofReal(std::floor(a / b));
    if (op == literal("**"))
      return Value::ofReal(std::pow(a, b));
    if (first == '%')
      return Value::ofReal(a - b * std::floor(a / b));
    return Value::ofReal(first == '+' ? a + b : first == '-' ? a - b : first == '*' ? a * b : a / b);
  }

  Value arithmetic(Bytes op, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflows = false;
    if (op == literal("**")) {
      result = 1;
      for (int64_t i = 0; i < b && !overflows; ++i) {
        c.step();
        overflows = __builtin_mul_overflow(result, a, &result);
      }
    } else if (op.data[0] == '/' || op.data[0] == '%') {
      if (b == 0)
        c.fail("division by zero");
      // As in Python, the remainder has the sign of the divisor.
      int64_t quotient = b == -1 ? 0 : a / b, rest = b == -1 ? 0 : a % b;
      if (b == -1)
        overflows = __builtin_sub_overflow(int64_t(0), a, &quotient);
      if (rest != 0 && (rest < 0) != (b < 0)) {
        --quotient;
        rest += b;
      }
      result = op.data[0] == '/' ? quotient : rest;
    } else {
      overflows = op.data[0] == '+'   ? __builtin_add_overflow(a, b, &result)
                  : op.data[0] == '-' ? __builtin_sub_overflow(a, b, &result)
                                      : __builtin_mul_overflow(a, b, &result);
    }
    if (overflows)
      c.fail("a number is larger than 64 bits");
    return Value::ofInt(result);
  }

  /// Places as Python counts them: from the end when negative, held within the ends.
  Value slice(const Node &node, Scope &scope) {
    Value object = evaluate(*node.a, scope), parts[3];
    for (int i = 0; i < 3; ++i)
      if (node.list[i])
        parts[i] = evaluate(*node.list[i], scope);
    bool isText = object.is(Kind::String);
    if (!isText && !object.is(Kind::List))
      c.fail("%s has no parts", kindName(object));
    int64_t size = isText ? int64_t(countPoints(object.bytes())) : int64_t(object.list->items.size);
    int64_t step = parts[2].is(Kind::Int) ? parts[2].integer : 1;
    if (step == 0)
      c.fail("a part needs a step that is not 0");
    auto place = [&](const Value &value, int64_t missing) {
      if (!value.is(Kind::Int))
        return missing;
      int64_t at = value.integer < 0 ? value.integer + size : value.integer;
      return std::clamp(at, step > 0 ? int64_t(0) : int64_t(-1), step > 0 ? size : size - 1);
    };
    int64_t begin = place(parts[0], step > 0 ? 0 : size - 1), end = place(parts[1], step > 0 ? size : -1);
    if (isText && step == 1) {
      size_t from = offsetOfPoint(object.bytes(), size_t(begin)), to = offsetOfPoint(object.bytes(), size_t(std::max(begin, end)));
      return Value::ofText({object.text + from, to - from});
    }
    Sequence *items = elementsOf(c, object);
    Value list = makeList(c);
    list.list->isTuple = items->isTuple;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step)
      list.list->items.push(c, items->items[size_t(i)]);
    if (!isText)
      return list;
    Out out;
    for (const Value &item : list.list->items)
      out.append(c, item.text, item.length);
    return Value::ofText({out.data, out.size});
  }

  //===--- calls ------------------------------------------------------------===//

  Arguments argumentsOf(const Node &node, Scope &scope) {
    Arguments arguments;
    for (const Node *argument : node.list)
      arguments.values.push(c, evaluate(*argument, scope));
    arguments.names = node.names;
    return arguments;
  }

  Value call(const Node &node, Scope &scope, const Value *caller) {
    const Node &callee = *node.a;
    Value function;
    if (callee.kind == NodeKind::Member) {
      Value object = evaluate(*callee.a, scope);
      if (object.is(Kind::Dict))
        function = memberOf(c, object, Value::ofText(callee.text));
      if (!function.is(Kind::Macro) && !function.is(Kind::Function)) {
        if (object.is(Kind::Undefined))
          c.fail("an undefined value has no method '%.*s'", int(callee.text.size), callee.text.data);
        return callMethod(c, object, callee.text, argumentsOf(node, scope));
      }
    } else {
      function = evaluate(callee, scope);
    }
    if (function.is(Kind::Macro))
      return callMacro(*function.macro, argumentsOf(node, scope), caller);
    if (!function.is(Kind::Function))
      c.fail("'%.*s' is %s and cannot be called", int(callee.text.size), callee.text.data ? callee.text.data : "", kindName(function));
    return callFunction(c, function.function, argumentsOf(node, scope), now);
  }

  Value callMacro(const Macro &macro, const Arguments &arguments, const Value *caller) {
    const Node &node = *macro.node;
    Scope *scope = makeScope(macro.scope);
    size_t parameters = node.names.size - 1;
    if (arguments.unnamed() > parameters)
      c.fail("'%.*s' takes %zu arguments, found %zu", int(node.names[0].size), node.names[0].data, parameters, arguments.unnamed());
    for (size_t i = 0; i < arguments.names.size; ++i) {
      bool known = false;
      for (size_t p = 1; p <= parameters; ++p)
        known |= node.names[p] == arguments.names[i];
      if (!known)
        c.fail("'%.*s' has no parameter '%.*s'", int(node.names[0].size), node.names[0].data, int(arguments.names[i].size), arguments.names[i].data);
    }
    for (size_t i = 0; i < parameters; ++i) {
      Bytes name = node.names[i + 1];
      const Value *given = i < arguments.unnamed() ? &arguments.values[i] : nullptr;
      for (size_t k = 0; k < arguments.names.size; ++k)
        if (arguments.names[k] == name)
          given = &arguments.values[arguments.unnamed() + k];
      scope->variables.set(c, name, given ? *given : i < node.other.size && node.other[i] ? evaluate(*node.other[i], *scope) : Value());
    }
    if (caller)
      scope->variables.set(c, literal("caller"), *caller);
    Out out;
    execute(node.list, *scope, out);
    return Value::ofText({out.data, out.size});
  }

  Context &c;
  int64_t now;
  Scope &global;
};

/// The variables that templates expect.
Mapping makeVariables(Context &c, const Input &input) {
  Mapping variables;
  Value messages = makeList(c);
  for (size_t i = 0; i < input.messageCount; ++i) {
    const ajour_chat_message &given = input.messages[i];
    Value message = makeDict(c);
    message.dict->set(c, literal("role"), Value::ofText(literal(given.role)));
    if (given.content)
      message.dict->set(c, literal("content"), Value::ofText(literal(given.content)));
    if (given.members) {
      Value members = parseJson(c, literal(given.members), "the members of a message");
      if (!members.is(Kind::Dict))
        c.fail("the members of message %zu are %s, expected a JSON object", i, kindName(members));
      for (const Entry &entry : members.dict->entries)
        message.dict->set(c, entry.key, entry.value);
    }
    messages.list->items.push(c, message);
  }
  variables.set(c, literal("messages"), messages);
  variables.set(c, literal("add_generation_prompt"), Value::ofBool(input.addGenerationPrompt));
  variables.set(c, literal("bos_token"), Value::ofText(input.bos));
  variables.set(c, literal("eos_token"), Value::ofText(input.eos));
  if (input.variables.size != 0) {
    Value more = parseJson(c, input.variables, "the variables of the chat");
    if (!more.is(Kind::Dict))
      c.fail("the variables of the chat are %s, expected a JSON object", kindName(more));
    for (const Entry &entry : more.dict->entries)
      variables.set(c, entry.key, entry.value);
  }
  return variables;
}

} // namespace

bool render(Context &context, Bytes source, const Input &input, Text &text) {
  if (setjmp(context.escape) != 0)
    return false;
  Mapping variables = makeVariables(context, input);
  List<Node *> body = parseTemplate(context, source);
  Interpreter interpreter(context, variables, input.now);
  Out out = interpreter.run(body);
  text.append(out.data, out.size);
  if (text.failed())
    context.fail("no memory for %zu bytes of text", out.size);
  return true;
}

} // namespace ajour::language::chat
