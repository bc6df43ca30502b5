#include "Models.h"

#include "Vocabulary.h"

#include <algorithm>

namespace ajour::language {

namespace {



/// What is no token: its bytes where the model has them, else the unknown token.
void appendUnknown(const tokenizer::Tokenizer &t, Bytes text, Buffer<int32_t> &ids) {
  if (t.byte_fallback() && sizeOf(t.byte_tokens()) == 256) {
    bool all = true;
    for (size_t i = 0; i < text.size; ++i)
      all &= t.byte_tokens()->Get(uint8_t(text.data[i])) >= 0;
    if (all) {
      for (size_t i = 0; i < text.size; ++i)
        ids.push(t.byte_tokens()->Get(uint8_t(text.data[i])));
      return;
    }
  }
  if (t.unknown() < 0 || (t.fuse_unknown() && ids.size() > 0 && ids.back() == t.unknown()))
    return;
  ids.push(t.unknown());
}

/// A part of a piece that may still be joined with its neighbours.
struct Symbol {
  uint32_t begin, size; ///< size 0: joined into the one before
  int32_t previous, next;
  int32_t id; ///< -1: no token
};

/// A pair that could be joined; the largest is joined first.
struct Candidate {
  uint64_t order; ///< BPE: rank; SPM: score, as a number that grows with it
  int32_t left, right;
  uint32_t size; ///< of both when this was found; a stale candidate differs
  int32_t id;
  /// Heap order: the best candidate is the greatest. Ties go to the left.
  bool operator<(const Candidate &other) const {
    return order != other.order ? order > other.order : left > other.left;
  }
};

/// A number that falls as the score grows.
uint64_t descending(float score) {
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof(bits));
  bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return UINT32_MAX - bits;
}

/// Joins neighbours, best pair first, until none is left.
class Merging {
public:
  Merging(const tokenizer::Tokenizer &t, Bytes piece) : t(t), piece(piece) {}

  TextStatus run(Buffer<int32_t> &ids) {
    split();
    for (int32_t i = 1; i < int32_t(symbols.size()); ++i)
      consider(i - 1, i);
    while (heap.size() > 0 && !heap.failed()) {
      std::pop_heap(heap.data(), heap.data() + heap.size());
      join(heap.pop());
    }
    if (symbols.failed() || heap.failed())
      return TextStatus::OutOfMemory;
    for (int32_t i = symbols.size() ? 0 : -1; i >= 0; i = symbols[size_t(i)].next) {
      const Symbol &symbol = symbols[size_t(i)];
      if (symbol.id >= 0)
        ids.push(symbol.id);
      else
        appendUnknown(t, {piece.data + symbol.begin, symbol.size}, ids);
    }
    return ids.failed() ? TextStatus::OutOfMemory : TextStatus::Ok;
  }

private:
  void split() {
    for (size_t at = 0; at < piece.size;) {
      unsigned length = 1;
      if (!t.byte_level())
        decodeUtf8(piece.data + at, piece.size - at, length);
      int32_t index = int32_t(symbols.size());
      int32_t id = t.byte_level() ? t.byte_tokens()->Get(uint8_t(piece.data[at])) : findToken(t, {piece.data + at, length});
      symbols.push({uint32_t(at), length, index - 1, index + 1, id});
      at += length;
    }
    if (symbols.size() > 0)
      symbols.back().next = -1;
  }

  void consider(int32_t left, int32_t right) {
    const Symbol &a = symbols[size_t(left)], &b = symbols[size_t(right)];
    if (t.model() == tokenizer::ModelKind::SPM) {
      int32_t id = findToken(t, {piece.data + a.begin, a.size + b.size});
      if (id >= 0)
        push({descending(t.scores()->Get(uint32_t(id))), left, right, a.size + b.size, id});
      return;
    }
    uint64_t merge = findMerge(t, a.id, b.id);
    if (merge != UINT64_MAX)
      push({merge >> 32, left, right, a.size + b.size, int32_t(merge & UINT32_MAX)});
  }

  void push(const Candidate &candidate) {
    heap.push(candidate);
    if (!heap.failed())
      std::push_heap(heap.data(), heap.data() + heap.size());
  }

  void join(const Candidate &candidate) {
    Symbol &left = symbols[size_t(candidate.left)], &right = symbols[size_t(candidate.right)];
    if (left.size == 0 || right.size == 0 || left.size + right.size != candidate.size)
      return;
    left.size += right.size;
    left.id = candidate.id;
    right.size = 0;
    left.next = right.next;
    if (right.next >= 0)
      symbols[size_t(right.next)].previous = candidate.left;
    if (left.previous >= 0)
      consider(left.previous, candidate.left);
    if (left.next >= 0)
      consider(candidate.left, left.next);
  }

  const tokenizer::Tokenizer &t;
  Bytes piece;
  Buffer<Symbol> symbols;
  Buffer<Candidate> heap;
};

/// The longest token at the front again and again; a word with a rest that begins with no token is unknown as a whole.
TextStatus wordPieces(const tokenizer::Tokenizer &t, Bytes word, Buffer<int32_t> &ids) {
  size_t first = ids.size(), codePoints = 0;
  for (size_t i = 0; i < word.size; ++i)
    codePoints += (uint8_t(word.data[i]) & 0xc0) != 0x80;
  bool known = t.longest_word() == 0 || codePoints <= t.longest_word();
  Text key;
  for (size_t at = 0; known && at < word.size;) {
    Bytes prefix = bytesOf(at == 0 ? t.word_prefix() : t.piece_prefix());
    key.clear();
    key.append(prefix.data, prefix.size);
    size_t size = std::min<size_t>(word.size - at, t.longest_token());
    key.append(word.data + at, size);
    if (key.failed())
      return TextStatus::OutOfMemory;
    int32_t id = -1;
    for (; size > 0; --size) {
      // Only whole code points.
      if (at + size < word.size && (uint8_t(word.data[at + size]) & 0xc0) == 0x80)
        continue;
      if ((id = findToken(t, {key.data(), prefix.size + size})) >= 0)
        break;
    }
    known = id >= 0;
    ids.push(id);
    at += size;
  }
  if (!known) {
    ids.shrink(first);
    if (t.unknown() >= 0)
      ids.push(t.unknown());
  }
  return ids.failed() ? TextStatus::OutOfMemory : TextStatus::Ok;
}

/// The segmentation with the highest sum of scores (Viterbi). A code point that is no token counts as unknown.
TextStatus unigram(const tokenizer::Tokenizer &t, Bytes piece, Buffer<int32_t> &ids) {
  struct Best {
    double score;
    uint32_t from;
    int32_t id;
  };
  Buffer<Best> best;
  constexpr double none = -1e300;
  for (size_t i = 0; i <= piece.size; ++i)
    best.push({i == 0 ? 0.0 : none, 0, -1});
  if (best.failed())
    return TextStatus::OutOfMemory;
  for (size_t at = 0; at < piece.size;) {
    unsigned length;
    decodeUtf8(piece.data + at, piece.size - at, length);
    bool hasSingle = false;
    for (size_t size = 1; size <= t.longest_token() && at + size <= piece.size; ++size) {
      if (at + size < piece.size && (uint8_t(piece.data[at + size]) & 0xc0) == 0x80)
        continue;
      int32_t id = findToken(t, {piece.data + at, size});
      if (id < 0 || t.types()->Get(uint32_t(id)) == uint8_t(tokenizer::TokenType::Unused))
        continue;
      hasSingle |= size == length;
      double score = best[at].score + double(t.scores()->Get(uint32_t(id)));
      if (score > best[at + size].score)
        best[at + size] = {score, uint32_t(at), id};
    }
    double score = best[at].score + double(t.worst_score()) - double(t.unknown_penalty());
    if (!hasSingle && score > best[at + length].score)
      best[at + length] = {score, uint32_t(at), -1};
    at += length;
  }
  // The path is found backwards.
  Buffer<uint32_t> ends;
  for (uint32_t end = uint32_t(piece.size); end > 0; end = best[end].from)
    ends.push(end);
  if (ends.failed())
    return TextStatus::OutOfMemory;
  for (size_t i = ends.size(); i-- > 0;) {
    const Best &step = best[ends[i]];
    if (step.id >= 0)
      ids.push(step.id);
    else
      appendUnknown(t, {piece.data + step.from, ends[i] - step.from}, ids);
  }
  return ids.failed() ? TextStatus::OutOfMemory : TextStatus::Ok;
}

} // namespace

TextStatus encodePiece(const tokenizer::Tokenizer &t, Bytes piece, Buffer<int32_t> &ids) {
  if (piece.size == 0)
    return TextStatus::Ok;
  switch (t.model()) {
  case tokenizer::ModelKind::BPE:
    if (t.whole_words())
      if (int32_t id = findToken(t, piece); id >= 0) {
        ids.push(id);
        return ids.failed() ? TextStatus::OutOfMemory : TextStatus::Ok;
      }
    return Merging(t, piece).run(ids);
  case tokenizer::ModelKind::SPM:
    return Merging(t, piece).run(ids);
  case tokenizer::ModelKind::WordPiece:
    return wordPieces(t, piece, ids);
  case tokenizer::ModelKind::Unigram:
    return unigram(t, piece, ids);
  }
  return TextStatus::Ok;
}

} // namespace ajour::language
