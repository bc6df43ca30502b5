#include "ajour/Language/Tokenizer.h"

#include "Models.h"
#include "Normalize.h"
#include "Pattern.h"
#include "Vocabulary.h"

#include <algorithm>

namespace ajour::language {

namespace {

using tokenizer::AddedToken;
using tokenizer::SplitBehavior;

bool isPowerOfTwo(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

/// The checks of a description, in the order of its fields.
class Checker {
public:
  explicit Checker(const tokenizer::Tokenizer &t) : t(t) {}

  const char *run() {
    for (auto part : {&Checker::tokens, &Checker::tables, &Checker::ids, &Checker::steps})
      if (const char *problem = (this->*part)())
        return problem;
    return nullptr;
  }

private:
  const char *tokens() {
    if (t.model() > tokenizer::ModelKind::Unigram)
      return "the tokenizer is of an unknown kind";
    uint32_t starts = sizeOf(t.token_starts());
    if (starts < 2 || starts > (1u << 28))
      return "the tokenizer has no tokens, or too many";
    count = starts - 1;
    for (uint32_t i = 0; i < starts; ++i)
      if (t.token_starts()->Get(i) > sizeOf(t.token_bytes()) ||
          (i > 0 && t.token_starts()->Get(i) < t.token_starts()->Get(i - 1)))
        return "a token lies outside the bytes of the tokens";
    if (sizeOf(t.types()) != count)
      return "there is not one type for each token";
    bool scored = t.model() == tokenizer::ModelKind::SPM || t.model() == tokenizer::ModelKind::Unigram;
    if (scored && sizeOf(t.scores()) != count)
      return "there is not one score for each token";
    return nullptr;
  }

  const char *tables() {
    if (!isPowerOfTwo(sizeOf(t.token_table())))
      return "the table of tokens has no power of two of entries";
    for (uint32_t entry : *t.token_table())
      if (entry > count)
        return "the table of tokens names a token that there is not";
    if (!isAligned(t.merge_keys()) || !isAligned(t.merge_values()))
      return "the table of merges lies at an address that is no multiple of 8";
    uint32_t merges = sizeOf(t.merge_keys());
    if (merges != 0 && (!isPowerOfTwo(merges) || sizeOf(t.merge_values()) != merges))
      return "the table of merges has no power of two of entries";
    for (uint32_t i = 0; i < merges; ++i)
      if (t.merge_keys()->Get(i) != 0 && uint32_t(t.merge_values()->Get(i)) >= count)
        return "the table of merges names a token that there is not";
    uint32_t bytes = sizeOf(t.byte_tokens());
    if (bytes != 0 && bytes != 256)
      return "there is not one token for each byte";
    for (uint32_t i = 0; i < bytes; ++i)
      if (t.byte_tokens()->Get(i) < -1 || t.byte_tokens()->Get(i) >= int32_t(count))
        return "a byte has a token that there is not";
    return t.byte_level() && bytes == 0 ? "the tokenizer works on bytes but has no tokens for them" : nullptr;
  }

  const char *ids() {
    for (int32_t id : {t.unknown(), t.bos(), t.eos()})
      if (id < -1 || id >= int32_t(count))
        return "a special token is none";
    for (auto *list : {t.prefix(), t.suffix(), t.end_of_generation()})
      for (uint32_t i = 0; i < sizeOf(list); ++i)
        if (list->Get(i) >= count)
          return "a token around the text is none";
    for (uint32_t i = 0; i < sizeOf(t.added()); ++i) {
      const AddedToken &added = *t.added()->Get(i);
      if (added.id() >= count || bytesOf(added.text()).size == 0)
        return "an added token is none, or has no text";
    }
    return nullptr;
  }

  const char *steps() {
    for (uint32_t i = 0; i < sizeOf(t.normals()); ++i)
      if (const char *problem = checkNormal(*t.normals()->Get(i)))
        return problem;
    for (uint32_t i = 0; i < sizeOf(t.splits()); ++i) {
      const tokenizer::Split &split = *t.splits()->Get(i);
      if (!split.pattern() || split.behavior() > SplitBehavior::Contiguous)
        return "a cut has no pattern, or an unknown behaviour";
      if (const char *problem = checkPattern(*split.pattern()))
        return problem;
    }
    return nullptr;
  }

  const tokenizer::Tokenizer &t;
  uint32_t count = 0;
};

/// A part of the text: bytes, or a token that is already found.
struct Part {
  uint32_t begin, end;
  int32_t id; ///< -1: text
};

bool isSpaceByte(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool isWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || uint8_t(c) >= 0x80;
}

/// One encoding.
class Encoder {
public:
  Encoder(const tokenizer::Tokenizer &t, const EncodeOptions &options, Buffer<int32_t> &ids)
      : t(t), options(options), ids(ids) {}

  TextStatus run(Bytes text) {
    if (options.addSpecial)
      for (uint32_t i = 0; i < sizeOf(t.prefix()); ++i)
        ids.push(int32_t(t.prefix()->Get(i)));
    Buffer<Part> parts;
    findAdded(text, false, parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part &part = parts[i];
      if (part.id >= 0) {
        ids.push(part.id);
        continue;
      }
      if (TextStatus status = encodeText({text.data + part.begin, part.end - part.begin}); status != TextStatus::Ok)
        return status;
    }
    if (options.addSpecial)
      for (uint32_t i = 0; i < sizeOf(t.suffix()); ++i)
        ids.push(int32_t(t.suffix()->Get(i)));
    return ids.failed() || parts.failed() ? TextStatus::OutOfMemory : TextStatus::Ok;
  }

private:
  /// The longest added token that stands at `at`.
  const AddedToken *addedAt(Bytes text, size_t at, bool normalized) const {
    const AddedToken *best = nullptr;
    for (uint32_t i = 0; i < sizeOf(t.added()); ++i) {
      const AddedToken &added = *t.added()->Get(i);
      Bytes wanted = bytesOf(added.text());
      if (added.normalized() != normalized || (added.special() && !options.parseSpecial) ||
          wanted.size > text.size - at || wanted.data[0] != text.data[at] ||
          std::memcmp(wanted.data, text.data + at, wanted.size) != 0)
        continue;
      bool joined = (at > 0 && isWordByte(text.data[at - 1])) ||
                    (at + wanted.size < text.size && isWordByte(text.data[at + wanted.size]));
      if (added.single_word() && joined)
        continue;
      if (!best || wanted.size > bytesOf(best->text()).size)
        best = &added;
    }
    return best;
  }

  void findAdded(Bytes text, bool normalized, Buffer<Part> &parts) const {
    bool starts[256] = {};
    for (uint32_t i = 0; i < sizeOf(t.added()); ++i)
      starts[uint8_t(bytesOf(t.added()->Get(i)->text()).data[0])] = true;
    size_t begin = 0;
    for (size_t at = 0; at < text.size;) {
      const AddedToken *added = starts[uint8_t(text.data[at])] ? addedAt(text, at, normalized) : nullptr;
      if (!added) {
        ++at;
        continue;
      }
      size_t end = at, next = at + bytesOf(added->text()).size;
      while (added->strip_left() && end > begin && isSpaceByte(text.data[end - 1]))
        --end;
      while (added->strip_right() && next < text.size && isSpaceByte(text.data[next]))
        ++next;
      if (end > begin)
        parts.push({uint32_t(begin), uint32_t(end), -1});
      parts.push({0, 0, int32_t(added->id())});
      begin = at = next;
    }
    if (begin < text.size)
      parts.push({uint32_t(begin), uint32_t(text.size), -1});
  }

  TextStatus encodeText(Bytes bytes) {
    Text text;
    text.append(bytes.data, bytes.size);
    if (text.failed())
      return TextStatus::OutOfMemory;
    if (TextStatus status = normalize(t, text); status != TextStatus::Ok)
      return status;
    Buffer<Part> parts;
    findAdded(bytesOf(text), true, parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].id >= 0) {
        ids.push(parts[i].id);
        continue;
      }
      Bytes part{text.data() + parts[i].begin, parts[i].end - parts[i].begin};
      if (TextStatus status = encodePieces(part); status != TextStatus::Ok)
        return status;
    }
    return parts.failed() ? TextStatus::OutOfMemory : TextStatus::Ok;
  }

  TextStatus encodePieces(Bytes text) {
    CodePoints points;
    points.assign(text);
    // Pieces as code point ranges; each split cuts all of them.
    Buffer<Part> pieces;
    if (points.values.size() > 0)
      pieces.push({0, uint32_t(points.values.size()), -1});
    for (uint32_t i = 0; i < sizeOf(t.splits()); ++i) {
      Buffer<Part> cut;
      for (size_t p = 0; p < pieces.size(); ++p)
        if (!splitPiece(*t.splits()->Get(i), points, pieces[p], cut))
          return TextStatus::TooComplex;
      if (cut.failed())
        return TextStatus::OutOfMemory;
      pieces.swap(cut);
    }
    if (points.failed() || pieces.failed())
      return TextStatus::OutOfMemory;
    for (size_t p = 0; p < pieces.size(); ++p) {
      uint32_t begin = points.starts[pieces[p].begin], end = points.starts[pieces[p].end];
      if (TextStatus status = encodePiece(t, {text.data + begin, end - begin}, ids); status != TextStatus::Ok)
        return status;
    }
    return TextStatus::Ok;
  }

  /// Cuts one piece. `id` of a part says here whether it is a match.
  bool splitPiece(const tokenizer::Split &split, const CodePoints &points, Part piece, Buffer<Part> &cut) const {
    Matcher matcher(*split.pattern(), points.values.data() + piece.begin, piece.end - piece.begin);
    Buffer<Part> parts;
    size_t at = 0, size = piece.end - piece.begin, begin, end;
    auto add = [&](size_t from, size_t to, bool match) {
      if (to > from)
        parts.push({uint32_t(piece.begin + from), uint32_t(piece.begin + to), match != split.invert()});
    };
    for (size_t from = 0; from < size && matcher.find(from, begin, end);) {
      if (end == begin) {
        from = end + 1;
        continue;
      }
      add(at, begin, false);
      add(begin, end, true);
      at = from = end;
    }
    add(at, size, false);
    arrange(split.behavior(), parts, cut);
    return !matcher.exhausted();
  }

  static void arrange(SplitBehavior behavior, const Buffer<Part> &parts, Buffer<Part> &cut) {
    bool lastIsMatch = false, joinNext = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      Part part = parts[i];
      bool isMatch = part.id != 0;
      part.id = -1;
      bool join = (behavior == SplitBehavior::MergedWithPrevious && isMatch && i > 0) ||
                  (behavior == SplitBehavior::Contiguous && i > 0 && isMatch == lastIsMatch) || joinNext;
      joinNext = behavior == SplitBehavior::MergedWithNext && isMatch;
      lastIsMatch = isMatch;
      if (behavior == SplitBehavior::Removed && isMatch)
        continue;
      if (join)
        cut.back().end = part.end;
      else
        cut.push(part);
    }
  }

  const tokenizer::Tokenizer &t;
  const EncodeOptions &options;
  Buffer<int32_t> &ids;
};

} // namespace

const char *Tokenizer::open(const void *bytes, size_t size) {
  flatbuffers::Verifier::Options limits;
  limits.max_tables = 1000000;
  flatbuffers::Verifier verifier(static_cast<const uint8_t *>(bytes), size, limits);
  if (size < 8 || reinterpret_cast<uintptr_t>(bytes) % 4 != 0 || !tokenizer::VerifyTokenizerBuffer(verifier))
    return "the tokenizer's description is damaged";
  const tokenizer::Tokenizer *found = tokenizer::GetTokenizer(bytes);
  if (const char *problem = Checker(*found).run())
    return problem;
  data = found;
  return nullptr;
}

TextStatus Tokenizer::encode(Bytes text, const EncodeOptions &options, Buffer<int32_t> &ids) const {
  return Encoder(*data, options, ids).run(text);
}

void Tokenizer::decode(int32_t id, bool first, bool special, Text &text) const {
  if (id < 0 || id >= size())
    return;
  auto type = tokenizer::TokenType(data->types()->Get(uint32_t(id)));
  if (!special && (type == tokenizer::TokenType::Control || type == tokenizer::TokenType::Unknown))
    return;
  Bytes bytes = tokenBytes(*data, id), space = bytesOf(data->space()), piece = bytesOf(data->piece_prefix());
  size_t at = 0;
  bool isFirst = first && data->strip_leading_space() && type == tokenizer::TokenType::Normal;
  // Words whose later pieces are marked have a blank between them that no token holds.
  if (piece.size > 0) {
    bool continues = bytes.size >= piece.size && std::memcmp(bytes.data, piece.data, piece.size) == 0;
    at = continues ? piece.size : 0;
    if (!continues && !first)
      text.push(' ');
  }
  while (at < bytes.size) {
    if (space.size > 0 && bytes.size - at >= space.size && std::memcmp(bytes.data + at, space.data, space.size) == 0) {
      if (!(isFirst && at == 0))
        text.push(' ');
      at += space.size;
    } else {
      text.push(bytes.data[at++]);
    }
  }
}

int32_t Tokenizer::size() const { return int32_t(data->token_starts()->size()) - 1; }
uint32_t Tokenizer::longestToken() const {
  uint32_t longest = 0;
  for (int32_t id = 0; id < size(); ++id)
    longest = std::max(longest, uint32_t(tokenBytes(*data, id).size));
  return longest;
}
Bytes Tokenizer::chatTemplate() const { return bytesOf(data->chat_template()); }
Bytes Tokenizer::bytes(int32_t id) const { return tokenBytes(*data, id); }
bool Tokenizer::isControl(int32_t id) const {
  return id >= 0 && id < size() && tokenizer::TokenType(data->types()->Get(uint32_t(id))) == tokenizer::TokenType::Control;
}
int32_t Tokenizer::bos() const { return data->bos(); }
int32_t Tokenizer::eos() const { return data->eos(); }

bool Tokenizer::endsGeneration(int32_t id) const {
  for (uint32_t i = 0; i < sizeOf(data->end_of_generation()); ++i)
    if (data->end_of_generation()->Get(i) == uint32_t(id))
      return true;
  return id >= 0 && id == data->eos();
}

void StreamDecoder::add(int32_t id, Text &text) {
  tokenizer->decode(id, first, special, pending);
  first = false;
  flush(false, text);
}

void StreamDecoder::finish(Text &text) { flush(true, text); }

void StreamDecoder::flush(bool end, Text &text) {
  size_t at = 0;
  while (at < pending.size()) {
    const char *bytes = pending.data() + at;
    size_t left = pending.size() - at;
    unsigned length;
    if (decodeUtf8(bytes, left, length) == replacementCharacter && length == 1) {
      // Perhaps the beginning of a sequence whose end is still to come.
      unsigned wanted = utf8Length(uint8_t(bytes[0]));
      bool open = wanted > left;
      for (size_t i = 1; i < left && open; ++i)
        open = (uint8_t(bytes[i]) & 0xc0) == 0x80;
      if (open && !end)
        break;
      appendUtf8(replacementCharacter, text);
    } else {
      text.append(bytes, length);
    }
    at += length;
  }
  pending.dropFront(at);
}

} // namespace ajour::language
