/// Grammars that say what may be generated, as sets of bytes and rules, and which tokens may come next.
#ifndef AJOUR_LIB_LANGUAGE_GRAMMAR_H
#define AJOUR_LIB_LANGUAGE_GRAMMAR_H

#include "ajour/Language/Tokenizer.h"

namespace ajour::language {

struct ByteSet {
  uint64_t bits[4];
  bool has(uint8_t byte) const { return (bits[byte >> 6] >> (byte & 63) & 1) != 0; }
};

/// Rules over bytes. An alternative is a row of elements that ends with End.
struct Grammar {
  enum class Kind : uint32_t { End, Set, Rule };
  struct Element {
    Kind kind;
    uint32_t index; ///< of the set or rule
  };
  struct Alternative {
    uint32_t first; ///< element
    uint32_t next;  ///< alternative of the same rule; none: the last
  };
  static constexpr uint32_t none = ~uint32_t(0);
  static constexpr size_t mostElements = size_t(1) << 18;

  Buffer<Element> elements;
  Buffer<Alternative> alternatives;
  Buffer<uint32_t> rules; ///< first alternative of each
  Buffer<ByteSet> sets;
  uint32_t root = none;

  /// Reads a grammar (docs/GRAMMAR.md). Returns false after writing "line L, column C: what is wrong".
  bool parse(Bytes text, char *message, size_t messageSize);
};

/// The tokens of a vocabulary by their bytes: nodes in the order of a walk that goes down first.
struct TokenTree {
  struct Node {
    uint8_t byte;
    uint16_t depth;  ///< bytes before this one
    uint32_t end;    ///< the first node that is not below this one
    int32_t token;   ///< that ends here; -1: none
  };
  Buffer<Node> nodes;
  Buffer<int32_t> same;   ///< another token of the same bytes, -1: none
  Buffer<int32_t> ends;   ///< tokens that end texts
  uint32_t longest = 0;   ///< bytes

  /// False: there is no memory.
  bool build(const Tokenizer &tokenizer);
};

/// Where a text stands in its grammar. What is met on the way is remembered: sets of stacks as states, the state behind each byte, the tokens
/// that each state allows.
class GrammarMatcher {
public:
  /// At the beginning; what was learnt of the same grammar stays. False: the grammar is too ambiguous, or memory is lacking.
  bool reset(const Grammar &grammar, const TokenTree &tree, uint64_t identity, int32_t vocabulary);
  /// Bits of the tokens that may come next; null as above.
  const uint64_t *allowed();
  /// Whether one of them may: a text or its end.
  bool hasNext() const { return anyAllowed; }
  /// Whether the text may end here.
  bool mayEnd() const { return states[current].accepts; }
  /// Goes on behind these bytes, which must be allowed. False as above.
  bool advance(Bytes bytes);

private:
  static constexpr uint32_t none = ~uint32_t(0), unknown = ~uint32_t(0) - 1;
  static constexpr size_t mostStates = 1 << 14, mostFrames = 1 << 20, usualStates = 1 << 11, mostMasks = 64;

  /// A place in an alternative, and where to go on when it ends.
  struct Frame {
    uint32_t element, parent;
  };
  struct State {
    uint32_t first, count; ///< frames, in `members`
    bool accepts;
    uint32_t mask;         ///< in `masks`, or none
  };

  uint32_t frameOf(uint32_t element, uint32_t parent);
  bool expand(uint32_t element, uint32_t parent);
  uint32_t stateOf();
  uint32_t step(uint32_t state, uint8_t byte);
  bool forget();
  bool fillMask(uint64_t *mask);

  const Grammar *grammar = nullptr;
  const TokenTree *tree = nullptr;
  uint64_t identity = 0;
  size_t words = 0;
  uint32_t start = none, current = none;
  bool anyAllowed = false;

  Buffer<Frame> frames;
  Buffer<uint32_t> frameTable; ///< open addressing, index + 1
  Buffer<State> states;
  Buffer<uint32_t> stateTable;
  Buffer<uint32_t> members;
  Buffer<uint32_t> next;    ///< 256 of each state
  Buffer<uint64_t> masks;
  Buffer<uint32_t> maskOwners;
  size_t nextMask = 0;
  // Of one step.
  Buffer<Frame> work;
  Buffer<uint32_t> found;
  bool accepts = false;
  Buffer<uint32_t> path; ///< states along a walk through the tree
};

} // namespace ajour::language

/// A grammar of the C API, with the vocabulary that it is asked about.
struct ajour_grammar {
  ajour::language::Grammar grammar;
  ajour::language::TokenTree tree;
  int32_t vocabulary = 0;
  uint64_t identity = 0; ///< no other grammar has it, also after this one is gone
};

#endif
