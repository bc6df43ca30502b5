//===- Regex.cpp - regular expressions as code of the runtime's matcher ------------===//
#include "Regex.h"

#include "ajour/ABI/PatternCode.h"

#include <map>
#include <memory>
#include <optional>

namespace ajour::text {

namespace {

constexpr uint32_t noLimit = UINT32_MAX;
constexpr uint32_t repeatLimit = 1000;
constexpr size_t codeLimit = 1 << 16;
constexpr unsigned groupLimit = 64;

struct Node {
  enum Kind { Set, Sequence, Alternatives, Repeat, Ahead, NotAhead, Start, End } kind;
  CodePointSet set;                             ///< Set
  std::vector<std::unique_ptr<Node>> children;
  uint32_t least = 0, most = 0;                 ///< Repeat
  enum { Greedy, Lazy, Possessive } mode = Greedy;
};
using NodePtr = std::unique_ptr<Node>;

NodePtr make(Node::Kind kind) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  return node;
}

/// Reads the text into a tree. The first problem ends it.
class Parser {
public:
  Parser(std::string_view text, std::string &problem) : text(text), problem(problem) {}

  NodePtr run() {
    NodePtr node = alternatives();
    if (node && at < text.size())
      return fail("a ')' without its '('");
    return node;
  }

private:
  NodePtr fail(const std::string &what) {
    if (problem.empty())
      problem = "at byte " + std::to_string(at) + ": " + what;
    return nullptr;
  }

  bool accept(std::string_view wanted) {
    if (text.substr(at, wanted.size()) != wanted)
      return false;
    at += wanted.size();
    return true;
  }

  std::optional<uint32_t> codePoint() {
    unsigned char lead = text[at];
    unsigned length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (length == 0 || at + length > text.size())
      return std::nullopt;
    uint32_t value = length == 1 ? lead : lead & (0x7fu >> length);
    for (unsigned i = 1; i < length; ++i)
      value = value << 6 | (uint8_t(text[at + i]) & 0x3f);
    at += length;
    return value;
  }

  NodePtr alternatives() {
    if (++depth > groupLimit)
      return fail("groups are nested more than " + std::to_string(groupLimit) + " deep");
    NodePtr result = make(Node::Alternatives);
    do {
      NodePtr branch = sequence();
      if (!branch)
        return nullptr;
      result->children.push_back(std::move(branch));
    } while (accept("|"));
    --depth;
    return result->children.size() == 1 ? std::move(result->children[0]) : std::move(result);
  }

  NodePtr sequence() {
    NodePtr result = make(Node::Sequence);
    while (at < text.size() && text[at] != '|' && text[at] != ')') {
      NodePtr atom = this->atom();
      if (!atom || !(atom = quantified(std::move(atom))))
        return nullptr;
      result->children.push_back(std::move(atom));
    }
    return result;
  }

  NodePtr group() {
    Node::Kind kind = Node::Sequence;
    bool outer = ignoreCase;
    if (accept("?:")) {
    } else if (accept("?i:")) {
      ignoreCase = true;
    } else if (accept("?=")) {
      kind = Node::Ahead;
    } else if (accept("?!")) {
      kind = Node::NotAhead;
    } else if (accept("?>") || accept("?<") || accept("?P")) {
      return fail("look-behind, atomic and named groups are not supported");
    } else if (accept("?")) {
      return fail("an unknown kind of group");
    }
    NodePtr body = alternatives();
    if (!body)
      return nullptr;
    ignoreCase = outer;
    if (!accept(")"))
      return fail("a '(' without its ')'");
    if (kind == Node::Sequence)
      return body;
    NodePtr result = make(kind);
    result->children.push_back(std::move(body));
    return result;
  }

  NodePtr setNode(CodePointSet set) {
    if (ignoreCase)
      set.ignoreCase();
    NodePtr node = make(Node::Set);
    node->set = std::move(set);
    return node;
  }

  NodePtr atom() {
    if (accept("(")) {
      // (?i) alone holds up to the end of the group.
      if (accept("?i)")) {
        ignoreCase = true;
        return make(Node::Sequence);
      }
      return group();
    }
    if (accept("^"))
      return make(Node::Start);
    if (accept("$") || accept("\\z"))
      return make(Node::End);
    CodePointSet set;
    if (accept(".")) {
      set.add('\n', '\n');
      set.invert();
      return setNode(std::move(set));
    }
    if (accept("["))
      return characterClass(set) ? setNode(std::move(set)) : nullptr;
    if (text[at] == '*' || text[at] == '+' || text[at] == '?')
      return fail("a quantifier with nothing before it");
    std::optional<uint32_t> single;
    if (!element(set, single))
      return nullptr;
    return setNode(std::move(set));
  }

  /// One code point or one escaped class, added to `set`.
  bool element(CodePointSet &set, std::optional<uint32_t> &single) {
    if (accept("\\"))
      return escape(set, single);
    single = codePoint();
    if (!single)
      return fail("bytes that are not UTF-8") != nullptr;
    set.add(*single, *single);
    return true;
  }

  bool hexadecimal(unsigned digits, std::optional<uint32_t> &value) {
    bool braces = accept("{");
    uint32_t number = 0;
    unsigned count = 0;
    for (; at < text.size() && count < (braces ? 6 : digits); ++at, ++count) {
      char c = text[at];
      unsigned digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 16;
      if (digit == 16)
        break;
      number = number * 16 + digit;
    }
    if (count == 0 || (!braces && count != digits) || (braces && !accept("}")) || number > 0x10ffff)
      return fail("an escape without its hexadecimal digits") != nullptr;
    value = number;
    return true;
  }

  bool escape(CodePointSet &set, std::optional<uint32_t> &single) {
    if (at >= text.size())
      return fail("a '\\' at the end") != nullptr;
    char c = text[at++];
    static const std::map<char, std::vector<std::string>> classes = {
        {'s', {"White_Space"}}, {'d', {"Nd"}}, {'w', {"L", "M", "N", "Pc"}}};
    static const std::map<char, uint32_t> controls = {{'r', '\r'}, {'n', '\n'}, {'t', '\t'}, {'f', '\f'}, {'v', '\v'},
                                                      {'0', 0}};
    if (c == 'p' || c == 'P')
      return property(c == 'P', set);
    if (auto found = classes.find(char(c | 32)); found != classes.end()) {
      CodePointSet members;
      for (const std::string &name : found->second) {
        CodePointSet part;
        CodePointSet::property(name, part);
        members.add(part);
      }
      if (c < 'a')
        members.invert();
      set.add(members);
      return true;
    }
    if (auto found = controls.find(c); found != controls.end())
      single = found->second;
    else if (c == 'x' || c == 'u') {
      if (!hexadecimal(c == 'x' ? 2 : 4, single))
        return false;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9')) {
      --at;
      return fail(std::string("the escape \\") + c + " is not supported") != nullptr;
    } else {
      --at;
      single = codePoint();
      if (!single)
        return fail("bytes that are not UTF-8") != nullptr;
    }
    set.add(*single, *single);
    return true;
  }

  bool property(bool inverted, CodePointSet &set) {
    std::string name;
    if (accept("{")) {
      size_t end = text.find('}', at);
      if (end == std::string_view::npos)
        return fail("a property without its '}'") != nullptr;
      inverted ^= accept("^");
      name = text.substr(at, end - at);
      at = end + 1;
    } else if (at < text.size()) {
      name = text[at++];
    }
    CodePointSet members;
    if (!CodePointSet::property(name, members))
      return fail("there is no Unicode property '" + name + "'") != nullptr;
    if (inverted)
      members.invert();
    set.add(members);
    return true;
  }

  bool characterClass(CodePointSet &set) {
    bool inverted = accept("^");
    for (bool first = true;; first = false) {
      if (at >= text.size())
        return fail("a '[' without its ']'") != nullptr;
      if (!first && accept("]"))
        break;
      if (text.substr(at, 2) == "[:" || text.substr(at, 2) == "&&")
        return fail("'[:' and '&&' inside a class are not supported") != nullptr;
      std::optional<uint32_t> low, high;
      CodePointSet one;
      if (!element(one, low))
        return false;
      bool isRange = low && text.substr(at, 1) == "-" && at + 1 < text.size() && text[at + 1] != ']';
      if (!isRange) {
        set.add(one);
        continue;
      }
      ++at;
      if (!element(one, high))
        return false;
      if (!high || *high < *low)
        return fail("a range that ends before it begins") != nullptr;
      set.add(*low, *high);
    }
    // Case is closed over before the complement is taken.
    if (inverted) {
      if (ignoreCase)
        set.ignoreCase();
      set.invert();
    }
    return true;
  }

  bool number(uint32_t &value) {
    size_t begin = at;
    value = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && value <= repeatLimit; ++at)
      value = value * 10 + uint32_t(text[at] - '0');
    return at > begin;
  }

  NodePtr quantified(NodePtr atom) {
    for (;;) {
      uint32_t least, most;
      size_t begin = at;
      if (accept("*")) {
        least = 0, most = noLimit;
      } else if (accept("+")) {
        least = 1, most = noLimit;
      } else if (accept("?")) {
        least = 0, most = 1;
      } else if (accept("{")) {
        if (!number(least)) {
          at = begin;
          return fail("a '{' that is no quantifier; write \\{");
        }
        most = least;
        if (accept(",") && !number(most))
          most = noLimit;
        if (!accept("}") || least > repeatLimit || (most != noLimit && (most > repeatLimit || most < least)))
          return fail("a quantifier {m,n} that is not closed, has m > n or more than " + std::to_string(repeatLimit));
      } else {
        return atom;
      }
      if (atom->kind == Node::Start || atom->kind == Node::End || atom->kind == Node::Ahead || atom->kind == Node::NotAhead)
        return fail("a quantifier of something without width");
      NodePtr repeat = make(Node::Repeat);
      repeat->least = least, repeat->most = most;
      if (accept("?"))
        repeat->mode = Node::Lazy;
      else if (accept("+"))
        repeat->mode = Node::Possessive;
      repeat->children.push_back(std::move(atom));
      atom = std::move(repeat);
    }
  }

  std::string_view text;
  std::string &problem;
  size_t at = 0;
  unsigned depth = 0;
  bool ignoreCase = false;
};

/// Writes the code of a tree.
class Writer {
public:
  Writer(CompiledPattern &result, std::string &problem) : result(result), problem(problem) {}

  void write(const Node &node) {
    if (result.code.size() > codeLimit) {
      problem = "the expression needs more than " + std::to_string(codeLimit) + " instructions";
      return;
    }
    switch (node.kind) {
    case Node::Set:
      emit(AJOUR_PATTERN_SET, set(node));
      break;
    case Node::Sequence:
      for (const NodePtr &child : node.children)
        write(*child);
      break;
    case Node::Alternatives:
      alternatives(node);
      break;
    case Node::Repeat:
      repeat(node);
      break;
    case Node::Ahead:
    case Node::NotAhead: {
      size_t start = emit(node.kind == Node::Ahead ? AJOUR_PATTERN_AHEAD : AJOUR_PATTERN_NOT_AHEAD, 0);
      write(*node.children[0]);
      emit(AJOUR_PATTERN_ACCEPT, 0);
      patch(start);
      break;
    }
    case Node::Start:
      emit(AJOUR_PATTERN_START, 0);
      break;
    case Node::End:
      emit(AJOUR_PATTERN_END, 0);
      break;
    }
  }

  void finish() { emit(AJOUR_PATTERN_MATCH, 0); }

private:
  size_t emit(uint32_t opcode, uint32_t operand) {
    result.code.push_back(opcode | operand << 8);
    return result.code.size() - 1;
  }
  /// Lets an instruction go to what comes next.
  void patch(size_t instruction) { result.code[instruction] |= uint32_t(result.code.size()) << 8; }

  uint32_t set(const Node &node) {
    std::vector<uint32_t> ranges = node.set.ranges();
    auto [it, fresh] = known.try_emplace(ranges, uint32_t(result.sets.size()));
    if (fresh)
      result.sets.push_back(std::move(ranges));
    return it->second;
  }

  void alternatives(const Node &node) {
    std::vector<size_t> jumps;
    for (size_t i = 0; i < node.children.size(); ++i) {
      bool last = i + 1 == node.children.size();
      size_t split = last ? 0 : emit(AJOUR_PATTERN_SPLIT, 0);
      write(*node.children[i]);
      if (!last) {
        jumps.push_back(emit(AJOUR_PATTERN_JUMP, 0));
        patch(split);
      }
    }
    for (size_t jump : jumps)
      patch(jump);
  }

  void repeat(const Node &node) {
    const Node &child = *node.children[0];
    if (node.mode == Node::Possessive && (child.kind != Node::Set || (node.most != noLimit && node.most != 1))) {
      problem = "a possessive quantifier is supported as +, * and ? of one class";
      return;
    }
    for (uint32_t i = 0; i < node.least && problem.empty(); ++i)
      write(child);
    if (node.most == noLimit)
      return unlimited(node, child);
    std::vector<size_t> splits;
    if (node.mode == Node::Possessive && node.least == 0) {
      // X?+ takes an X that is there and never gives it back: (?!X) or X.
      size_t split = emit(AJOUR_PATTERN_SPLIT, 0);
      write(child);
      size_t jump = emit(AJOUR_PATTERN_JUMP, 0);
      patch(split);
      size_t ahead = emit(AJOUR_PATTERN_NOT_AHEAD, 0);
      write(child);
      emit(AJOUR_PATTERN_ACCEPT, 0);
      patch(ahead);
      patch(jump);
      return;
    }
    for (uint32_t i = node.least; i < node.most && problem.empty(); ++i) {
      splits.push_back(optional(node));
      write(child);
    }
    for (size_t split : splits)
      patch(split);
  }

  // What follows may be left out; a lazy one is left out first.
  size_t optional(const Node &node) {
    if (node.mode != Node::Lazy)
      return emit(AJOUR_PATTERN_SPLIT, 0);
    return emit(AJOUR_PATTERN_SPLIT_LAST, 0);
  }

  void unlimited(const Node &node, const Node &child) {
    if (child.kind == Node::Set && node.mode != Node::Lazy) {
      emit(node.mode == Node::Possessive ? AJOUR_PATTERN_RUN_ATOMIC : AJOUR_PATTERN_RUN, set(child));
      return;
    }
    size_t split = optional(node);
    write(child);
    emit(AJOUR_PATTERN_JUMP, uint32_t(split));
    patch(split);
  }

  CompiledPattern &result;
  std::string &problem;
  std::map<std::vector<uint32_t>, uint32_t> known;
};

} // namespace

std::string compilePattern(std::string_view expression, CompiledPattern &result) {
  std::string problem;
  NodePtr tree = Parser(expression, problem).run();
  if (!tree)
    return problem;
  result = {};
  Writer writer(result, problem);
  writer.write(*tree);
  writer.finish();
  return problem;
}

std::string escapePattern(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos)
      result += '\\';
    result += c;
  }
  return result;
}

} // namespace ajour::text
