#include "Parser.h"

#include "Lexer.h"

#include <new>

namespace ajour::language::chat {

namespace {

class Parser {
public:
  Parser(Context &c, Bytes source) : c(c), tokens(readTokens(c, source)) {}

  List<Node *> run() {
    List<Node *> body = parseBody({});
    if (token().kind != TokenKind::End)
      here().fail("'%.*s' ends nothing", int(name(1).size), name(1).data);
    return body;
  }

private:
  //===--- tokens -----------------------------------------------------------===//

  const Token &token(size_t ahead = 0) const { return tokens[at + ahead < tokens.size ? at + ahead : tokens.size - 1]; }
  Bytes name(size_t ahead = 0) const { return token(ahead).text; }
  /// For failing at the present token.
  Context &here() {
    c.line = token().line;
    return c;
  }
  bool isName(const char *word, size_t ahead = 0) const {
    return token(ahead).kind == TokenKind::Name && token(ahead).text == literal(word);
  }
  bool isOperator(const char *op, size_t ahead = 0) const {
    return token(ahead).kind == TokenKind::Operator && token(ahead).text == literal(op);
  }
  bool takeName(const char *word) { return isName(word) && ++at; }
  bool takeOperator(const char *op) { return isOperator(op) && ++at; }
  void needOperator(const char *op) {
    if (!takeOperator(op))
      here().fail("expected '%s', found '%.*s'", op, int(shown().size), shown().data);
  }
  Bytes shown() const {
    static constexpr const char *names[] = {"text", "a block", "the end of the tag", "a print", "the end of the tag", "", "a string", "a number", "", "the end"};
    return token().text.size != 0 && token().kind != TokenKind::Text ? token().text : literal(names[int(token().kind)]);
  }
  Bytes needName() {
    if (token().kind != TokenKind::Name)
      here().fail("expected a name, found '%.*s'", int(shown().size), shown().data);
    return tokens[at++].text;
  }
  void endBlock() {
    if (token().kind != TokenKind::BlockEnd)
      here().fail("expected '%%}', found '%.*s'", int(shown().size), shown().data);
    ++at;
  }

  Node *make(NodeKind kind) {
    Node *node = new (c.allocate(sizeof(Node))) Node();
    node->kind = kind;
    node->line = token().line;
    return node;
  }

  //===--- statements -------------------------------------------------------===//

  /// Statements up to a block of one of the names, which stays.
  List<Node *> parseBody(std::initializer_list<const char *> ends) {
    List<Node *> body;
    c.enter();
    while (token().kind != TokenKind::End) {
      if (token().kind == TokenKind::Text) {
        Node *node = make(NodeKind::Text);
        node->text = tokens[at++].text;
        body.push(c, node);
      } else if (token().kind == TokenKind::PrintBegin) {
        Node *node = make(NodeKind::Print);
        ++at;
        node->a = parseTuple();
        if (token().kind != TokenKind::PrintEnd)
          here().fail("expected '}}', found '%.*s'", int(shown().size), shown().data);
        ++at;
        body.push(c, node);
      } else {
        bool isEnd = isName("endif", 1) && ends.size() == 0;
        for (const char *end : ends)
          isEnd |= isName(end, 1);
        if (isEnd)
          break;
        Bytes word = name(1);
        if (word.size > 3 && std::memcmp(word.data, "end", 3) == 0)
          break;
        body.push(c, parseStatement());
      }
    }
    c.leave();
    return body;
  }
  /// Goes past the block that ends a statement.
  void needEnd(const char *word, const Node *begun) {
    if (!isName(word, 1)) {
      c.line = begun->line;
      c.fail("a block has no '%s'", word);
    }
    at += 2;
    endBlock();
  }

  Node *parseStatement() {
    Node *node = make(NodeKind::Text);
    ++at;
    Bytes word = needName();
    auto is = [&](const char *text) { return word == literal(text); };
    if (is("if"))
      return parseIf(node);
    if (is("for"))
      return parseFor(node);
    if (is("set"))
      return parseSet(node);
    if (is("macro"))
      return parseMacro(node);
    if (is("break") || is("continue")) {
      node->kind = is("break") ? NodeKind::Break : NodeKind::Continue;
      endBlock();
      return node;
    }
    if (is("generation")) {
      node->kind = NodeKind::Generation;
      endBlock();
      node->list = parseBody({"endgeneration"});
      needEnd("endgeneration", node);
      return node;
    }
    if (is("filter") || is("call")) {
      bool isFilter = is("filter");
      node->kind = isFilter ? NodeKind::FilterBlock : NodeKind::CallBlock;
      node->a = isFilter ? parseFilters(nullptr, true) : parseExpression();
      if (!isFilter && node->a->kind != NodeKind::Call)
        here().fail("'call' needs a call of a macro");
      endBlock();
      node->list = parseBody({isFilter ? "endfilter" : "endcall"});
      needEnd(isFilter ? "endfilter" : "endcall", node);
      return node;
    }
    --at;
    here().fail("unknown block '%.*s'", int(word.size), word.data);
  }

  Node *parseIf(Node *node) {
    node->kind = NodeKind::If;
    node->a = parseExpression();
    endBlock();
    node->list = parseBody({"elif", "else", "endif"});
    if (isName("elif", 1)) {
      ++at;
      Node *inner = make(NodeKind::If);
      ++at;
      c.enter();
      node->other.push(c, parseIf(inner));
      c.leave();
      return node;
    }
    if (isName("else", 1)) {
      at += 2;
      endBlock();
      node->other = parseBody({"endif"});
    }
    needEnd("endif", node);
    return node;
  }

  void parseTargets(Node *node) {
    bool enclosed = takeOperator("(");
    do {
      if (node->names.size != 0 && (isName("in") || isOperator("=")))
        break;
      node->names.push(c, needName());
    } while (takeOperator(","));
    if (enclosed)
      needOperator(")");
  }

  Node *parseFor(Node *node) {
    node->kind = NodeKind::For;
    parseTargets(node);
    if (!takeName("in"))
      here().fail("expected 'in', found '%.*s'", int(shown().size), shown().data);
    node->a = parseTuple(false);
    if (takeName("if"))
      node->b = parseExpression();
    if (isName("recursive"))
      here().fail("recursive loops are not known");
    endBlock();
    node->list = parseBody({"else", "endfor"});
    if (isName("else", 1)) {
      at += 2;
      endBlock();
      node->other = parseBody({"endfor"});
    }
    needEnd("endfor", node);
    return node;
  }

  Node *parseSet(Node *node) {
    node->kind = NodeKind::Set;
    if (isOperator(".", 1)) {
      node->names.push(c, needName());
      ++at;
      node->text = needName();
    } else {
      parseTargets(node);
    }
    if (takeOperator("=")) {
      node->a = parseTuple();
      endBlock();
      return node;
    }
    node->kind = NodeKind::SetBlock;
    if (isOperator("|"))
      node->a = parseFilters(nullptr, false);
    endBlock();
    node->list = parseBody({"endset"});
    needEnd("endset", node);
    return node;
  }

  Node *parseMacro(Node *node) {
    node->kind = NodeKind::MacroDef;
    node->names.push(c, needName());
    needOperator("(");
    while (!takeOperator(")")) {
      if (node->names.size > 1)
        needOperator(",");
      node->names.push(c, needName());
      node->other.push(c, takeOperator("=") ? parseExpression() : nullptr);
    }
    endBlock();
    node->list = parseBody({"endmacro"});
    needEnd("endmacro", node);
    return node;
  }

  //===--- expressions ------------------------------------------------------===//

  /// One expression, or several with commas between as a tuple.
  Node *parseTuple(bool withCondition = true) {
    Node *first = withCondition ? parseExpression() : parseOr();
    if (!isOperator(","))
      return first;
    Node *tuple = make(NodeKind::ListOf);
    tuple->value = Value::ofBool(true);
    tuple->list.push(c, first);
    while (takeOperator(",")) {
      if (token().kind == TokenKind::BlockEnd || token().kind == TokenKind::PrintEnd || isOperator(")"))
        break;
      tuple->list.push(c, withCondition ? parseExpression() : parseOr());
    }
    return tuple;
  }

  Node *parseExpression() {
    c.enter();
    Node *node = parseOr();
    while (isName("if")) {
      Node *choose = make(NodeKind::Choose);
      ++at;
      choose->b = node;
      choose->a = parseOr();
      choose->c = takeName("else") ? parseExpression() : nullptr;
      node = choose;
    }
    c.leave();
    return node;
  }

  Node *parseOr() {
    Node *node = parseAnd();
    while (isName("or")) {
      Node *both = make(NodeKind::Or);
      ++at;
      both->a = node;
      both->b = parseAnd();
      node = both;
    }
    return node;
  }

  Node *parseAnd() {
    Node *node = parseNot();
    while (isName("and")) {
      Node *both = make(NodeKind::And);
      ++at;
      both->a = node;
      both->b = parseNot();
      node = both;
    }
    return node;
  }

  Node *parseNot() {
    if (!isName("not"))
      return parseCompare();
    Node *node = make(NodeKind::Not);
    ++at;
    c.enter();
    node->a = parseNot();
    c.leave();
    return node;
  }

  Node *parseCompare() {
    Node *left = parseSum(), *node = nullptr;
    for (;;) {
      Bytes op;
      for (const char *known : {"==", "!=", "<=", ">=", "<", ">"})
        if (isOperator(known))
          op = literal(known);
      if (isName("in"))
        op = literal("in");
      if (isName("not") && isName("in", 1)) {
        op = literal("not in");
        ++at;
      }
      if (op.size == 0)
        return node ? node : left;
      if (!node) {
        node = make(NodeKind::Chain);
        node->a = left;
      }
      ++at;
      node->names.push(c, op);
      node->list.push(c, parseSum());
    }
  }

  template <typename Next> Node *parseBinary(std::initializer_list<const char *> operators, Next next) {
    Node *node = next();
    for (;;) {
      Bytes op;
      for (const char *known : operators)
        if (isOperator(known))
          op = literal(known);
      if (op.size == 0)
        return node;
      Node *binary = make(NodeKind::Binary);
      ++at;
      binary->text = op;
      binary->a = node;
      binary->b = next();
      node = binary;
    }
  }
  Node *parseSum() {
    return parseBinary({"+", "-"}, [&] { return parseBinary({"~"}, [&] { return parseProduct(); }); });
  }
  Node *parseProduct() {
    return parseBinary({"*", "/", "//", "%"}, [&] { return parseBinary({"**"}, [&] { return parseUnary(true); }); });
  }

  Node *parseUnary(bool withFilters) {
    c.enter();
    Node *node;
    if (isOperator("-") || isOperator("+")) {
      node = make(isOperator("-") ? NodeKind::Minus : NodeKind::Plus);
      ++at;
      node->a = parseUnary(false);
    } else {
      node = parsePostfix(parsePrimary());
    }
    if (withFilters)
      node = parseFilters(node, false);
    c.leave();
    return node;
  }

  Node *parsePrimary() {
    Node *node = make(NodeKind::Constant);
    if (token().kind == TokenKind::String || token().kind == TokenKind::Number) {
      node->value = tokens[at++].value;
      return node;
    }
    if (token().kind == TokenKind::Name)
      return parseName(node);
    if (takeOperator("(")) {
      if (takeOperator(")")) {
        node->kind = NodeKind::ListOf;
        node->value = Value::ofBool(true);
        return node;
      }
      Node *inner = parseTuple();
      needOperator(")");
      return inner;
    }
    if (takeOperator("[")) {
      node->kind = NodeKind::ListOf;
      node->value = Value::ofBool(false);
      parseElements("]", [&] { node->list.push(c, parseExpression()); });
      return node;
    }
    if (takeOperator("{")) {
      node->kind = NodeKind::DictOf;
      parseElements("}", [&] {
        node->list.push(c, parseExpression());
        needOperator(":");
        node->other.push(c, parseExpression());
      });
      return node;
    }
    here().fail("expected a value, found '%.*s'", int(shown().size), shown().data);
  }
  template <typename Parse> void parseElements(const char *end, Parse parse) {
    while (!takeOperator(end)) {
      parse();
      if (takeOperator(end))
        return;
      needOperator(",");
    }
  }

  Node *parseName(Node *node) {
    Bytes word = tokens[at++].text;
    auto is = [&](const char *a, const char *b) { return word == literal(a) || word == literal(b); };
    if (is("true", "True")) {
      node->value = Value::ofBool(true);
    } else if (is("false", "False")) {
      node->value = Value::ofBool(false);
    } else if (is("none", "None")) {
      node->value = Value::none();
    } else {
      node->kind = NodeKind::Name;
      node->text = word;
    }
    return node;
  }

  Node *parsePostfix(Node *node) {
    for (;;) {
      Node *outer = make(NodeKind::Member);
      outer->a = node;
      if (takeOperator(".")) {
        if (token().kind == TokenKind::Number) {
          outer->kind = NodeKind::Index;
          outer->b = make(NodeKind::Constant);
          outer->b->value = tokens[at++].value;
        } else {
          outer->text = needName();
        }
      } else if (takeOperator("[")) {
        parseIndex(outer);
      } else if (isOperator("(")) {
        outer->kind = NodeKind::Call;
        parseArguments(outer);
      } else {
        return node;
      }
      node = outer;
    }
  }

  void parseIndex(Node *node) {
    Node *parts[3] = {};
    int colons = 0;
    for (int i = 0; i < 3; ++i) {
      if (!isOperator(":") && !isOperator("]"))
        parts[i] = parseTuple();
      if (i == 2 || !takeOperator(":"))
        break;
      ++colons;
    }
    needOperator("]");
    if (colons == 0 && !parts[0])
      here().fail("an index is missing");
    node->kind = colons ? NodeKind::Slice : NodeKind::Index;
    node->b = parts[0];
    if (colons)
      node->list.append(c, parts, 3);
  }

  void parseArguments(Node *node) {
    needOperator("(");
    parseElements(")", [&] {
      if (token().kind == TokenKind::Name && isOperator("=", 1)) {
        node->names.push(c, needName());
        ++at;
      } else if (node->names.size != 0) {
        here().fail("an argument without a name stands behind one with a name");
      }
      node->list.push(c, parseExpression());
    });
  }

  /// Filters and tests behind a value. `bare`: the first filter has no bar.
  Node *parseFilters(Node *node, bool bare) {
    for (;; bare = false) {
      if (bare || isOperator("|")) {
        Node *filter = make(NodeKind::Filter);
        at += !bare;
        filter->a = node;
        filter->text = needName();
        if (isOperator("("))
          parseArguments(filter);
        node = filter;
      } else if (node && isName("is")) {
        Node *test = make(NodeKind::Test);
        ++at;
        test->a = node;
        test->value = Value::ofBool(takeName("not"));
        test->text = token().kind == TokenKind::Operator ? tokens[at++].text : needName();
        parseTestArgument(test);
        node = test;
      } else if (node && isOperator("(")) {
        Node *call = make(NodeKind::Call);
        call->a = node;
        parseArguments(call);
        node = call;
      } else {
        return node;
      }
    }
  }

  void parseTestArgument(Node *test) {
    if (isOperator("("))
      return parseArguments(test);
    bool name = token().kind == TokenKind::Name;
    for (const char *word : {"else", "or", "and", "is", "if", "not", "in"})
      name = name && !isName(word);
    if (name || token().kind == TokenKind::String || token().kind == TokenKind::Number || isOperator("[") || isOperator("{"))
      test->list.push(c, parsePostfix(parsePrimary()));
  }

  Context &c;
  List<Token> tokens;
  size_t at = 0;
};

} // namespace

List<Node *> parseTemplate(Context &c, Bytes source) { return Parser(c, source).run(); }

} // namespace ajour::language::chat
