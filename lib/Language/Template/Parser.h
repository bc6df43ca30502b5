/// Chat templates as trees. The language is Jinja's (docs/CHAT.md says what of it), with blocks trimmed as chat templates expect: the line break
/// behind a block goes away, and so do blanks before one that begins a line.
#ifndef AJOUR_LIB_LANGUAGE_TEMPLATE_PARSER_H
#define AJOUR_LIB_LANGUAGE_TEMPLATE_PARSER_H

#include "Value.h"

namespace ajour::language::chat {

enum class NodeKind : uint8_t {
  // Statements
  Text,      // text
  Print,     // a
  If,        // a: condition, list: then, other: else
  For,       // names: targets, a: elements, b: condition or null, list: body, other: else
  Set,       // names: targets (text: member of names[0], if any), a: value
  SetBlock,  // names[0], list: body
  MacroDef,  // names: name, parameters..., list: body, other: default values (null: none) of the parameters
  FilterBlock, // a: filter with a null subject, list: body
  CallBlock, // a: call, list: body
  Generation, // list: body
  Break,
  Continue,
  // Expressions
  Constant,  // value
  Name,      // text
  ListOf,    // list; value.boolean: a tuple
  DictOf,    // list: keys, other: values
  Member,    // a, text
  Index,     // a, b
  Slice,     // a, list: begin, end, step (null: left out)
  Call,      // a, list: arguments, names: of the last of them
  Filter,    // a, text, list, names
  Test,      // a, text, list; value.boolean: negated
  Not,       // a
  Minus,     // a
  Plus,      // a
  And,       // a, b
  Or,        // a, b
  Choose,    // a: condition, b: then, c: else or null
  Compare,   // a, text: operator, b
  Chain,     // a, list: right sides, names: operators
  Binary,    // a, text: operator, b
};

struct Node {
  NodeKind kind;
  int line;
  Node *a = nullptr, *b = nullptr, *c = nullptr;
  Bytes text;
  Value value;
  List<Node *> list, other;
  List<Bytes> names;
};

/// Parses a template. Fails with the line.
List<Node *> parseTemplate(Context &c, Bytes source);

} // namespace ajour::language::chat

#endif
