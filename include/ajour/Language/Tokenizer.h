/// Text to tokens and back.
///
/// A tokenizer is a FlatBuffers description (include/ajour/ABI/Tokenizer.fbs) that the compiler made from the
/// model's own; it stays where it is, is checked once, and may be shared by threads. Neither exceptions nor abort.
#ifndef AJOUR_LANGUAGE_TOKENIZER_H
#define AJOUR_LANGUAGE_TOKENIZER_H

#include "ajour/Language/Text.h"

namespace ajour::tokenizer {
struct Tokenizer;
}

namespace ajour::language {

/// What a call came to.
enum class TextStatus {
  Ok,
  OutOfMemory,
  TooComplex, ///< a pattern of the tokenizer needs too many steps on this text
};

struct EncodeOptions {
  bool addSpecial = false;   ///< put the model's begin and end tokens around the text
  bool parseSpecial = false; ///< read the texts of control tokens as these tokens
};

class Tokenizer {
public:
  /// Checks `size` bytes of a description, 4-byte aligned, that must outlive the tokenizer. Returns null, or what is
  /// wrong with them.
  const char *open(const void *bytes, size_t size);

  /// Appends the tokens of a UTF-8 text of at most 2^31 bytes.
  TextStatus encode(Bytes text, const EncodeOptions &options, Buffer<int32_t> &ids) const;

  /// Appends the bytes of a token; nothing for control tokens unless `special`, and for ids that are none. `first`
  /// says that it begins a text, so that a blank which encoding put before it is dropped.
  void decode(int32_t id, bool first, bool special, Text &text) const;

  int32_t size() const;
  uint32_t longestToken() const;
  /// The chat template that came with it; empty: none.
  Bytes chatTemplate() const;
  /// Whether the token is no text: it begins or ends something.
  bool isControl(int32_t id) const;
  /// The bytes that a token stands for in the vocabulary; `id` must be one.
  Bytes bytes(int32_t id) const;
  int32_t bos() const;
  int32_t eos() const;
  bool endsGeneration(int32_t id) const;

private:
  const tokenizer::Tokenizer *data = nullptr;
};

/// Turns a stream of tokens into whole UTF-8 sequences: bytes of an unfinished one are kept until it is finished, or until it
/// cannot be any more and U+FFFD stands for each of them.
class StreamDecoder {
public:
  explicit StreamDecoder(const Tokenizer &tokenizer, bool special = false) : special(special), tokenizer(&tokenizer) {}

  /// Begins anew. `first`: the next token begins a text.
  void reset(bool first) {
    pending.clear();
    this->first = first;
  }
  /// Appends what can be said after one more token.
  void add(int32_t id, Text &text);
  /// Appends what is left at the end of the stream.
  void finish(Text &text);

  bool special; ///< control tokens have text

private:
  void flush(bool end, Text &text);

  const Tokenizer *tokenizer;
  bool first = true;
  Text pending;
};

} // namespace ajour::language

#endif
