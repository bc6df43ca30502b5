/// What a language model has seen, and what it says next; behind ajour_generator_*.
#ifndef AJOUR_LIB_LANGUAGE_GENERATOR_H
#define AJOUR_LIB_LANGUAGE_GENERATOR_H

#include <atomic>

#include "Driver.h"
#include "Grammar.h"
#include "ajour/Language/Sampler.h"
#include "ajour/Language/Tokenizer.h"

/// A tokenizer of the C API.
struct ajour_tokenizer {
  ajour::language::Tokenizer tokenizer;
  ajour_model *model = nullptr; ///< that holds its bytes; null: they are the caller's
  ajour::language::Text chatTemplate; ///< with a final zero

  ~ajour_tokenizer() { ajour_model_destroy(model); }
};

namespace ajour::language {

/// Text on its way out: whole UTF-8 comes in, and leaves when it can no more become a stop string.
class StopMatcher {
public:
  /// The strings must live as long as they are looked for.
  void reset(const char *const *stops, uint32_t count) {
    this->stops = stops;
    this->count = count;
    pending.clear();
    shown = 0;
  }
  /// Room for text and stop strings.
  bool reserve(size_t bytes) { return pending.reserve(bytes); }
  /// Where to append the next text.
  Text &text() {
    pending.dropFront(shown);
    shown = 0;
    return pending;
  }
  /// The text that may be shown now; `end`: all that is left. `stopped` becomes true when a stop string is behind it.
  Bytes take(bool end, bool &stopped);

private:
  const char *const *stops = nullptr;
  uint32_t count = 0;
  Text pending;
  size_t shown = 0;
};

} // namespace ajour::language

struct ajour_generator {
  ajour_generator(ajour_session *session, const ajour_tokenizer *tokenizer)
      : session(session), tokenizer(tokenizer), decoder(tokenizer ? tokenizer->tokenizer : none) {}
  ~ajour_generator();

  ajour_status_code open();
  ajour_status_code setPrompt(const int32_t *tokens, size_t count, size_t &reused);
  ajour_status_code generate(const ajour_generate_options &options, ajour_generate_result &result);
  ajour_status_code score(const int32_t *tokens, size_t count, size_t first, double &nll);
  ajour_status_code reset();
  void cancel();

  uint64_t savedBytes() const;
  ajour_status_code save(uint8_t *to, uint64_t capacity, uint64_t &written) const;
  ajour_status_code restore(const uint8_t *from, uint64_t bytes);

  ajour_session *session;
  const ajour_tokenizer *tokenizer;
  ajour::language::Driver driver;
  ajour::language::Buffer<int32_t> history; ///< all tokens so far
  size_t given = 0;                         ///< of them, those that the model has seen
  ajour::language::Buffer<float> logits;    ///< behind the tokens seen, when hasLogits
  bool hasLogits = false;
  ajour_generator_stats stats = {};

private:
  const char *name() const;
  /// Begins a call that may be cancelled.
  void begin() { stop.store(false, std::memory_order_seq_cst); }
  ajour_status_code checkTokens(const int32_t *tokens, size_t count) const;
  /// Puts the model back to where it had seen the first `length` tokens or fewer; says how many.
  ajour_status_code rewind(size_t length, size_t &kept);
  /// Gives the model what history has beyond `given`.
  ajour_status_code advance();
  /// One run. On failure the model is where it was before, if that can be.
  ajour_status_code run(const int32_t *ids, size_t count, bool all);
  ajour_status_code keepCheckpoint();
  bool allowAll(bool ends);
  ajour_status_code choose(const ajour_generate_options &options, int32_t &id);
  ajour_status_code constrain(const ajour_generate_options &options, bool &over);
  bool say(const ajour_generate_options &options, int32_t id, bool &stopped);
  bool isFirst() const;

  static const ajour::language::Tokenizer none;
  ajour::language::Sampler sampler;
  ajour::language::StreamDecoder decoder;
  ajour::language::StopMatcher matcher;
  ajour::language::Buffer<uint64_t> allowed; ///< a bit for each token, where not all may be chosen
  bool restricted = false;
  ajour::language::GrammarMatcher grammar;
  const uint64_t *choices = nullptr; ///< what the choice is restricted to
  std::atomic<bool> stop{false};
  // What the model was after the last prompt, where it cannot rewind.
  ajour::language::Buffer<uint8_t> checkpoint;
  size_t checkpointLength = 0;
};

#endif
