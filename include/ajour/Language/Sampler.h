/// From logits to the next token.
#ifndef AJOUR_LANGUAGE_SAMPLER_H
#define AJOUR_LANGUAGE_SAMPLER_H

#include "ajour/Language/Text.h"

namespace ajour::language {

struct SamplerOptions {
  float temperature = 0.8f;      ///< 0: always the most likely token
  int32_t topK = 40;             ///< of the k most likely; 0: all
  float topP = 0.95f;            ///< of the fewest that together reach this probability; 1: all
  float minP = 0.05f;            ///< of those at least this likely relative to the most likely; 0: all
  float repetitionPenalty = 1.0f; ///< divides positive and multiplies negative logits of recent tokens
  float frequencyPenalty = 0.0f; ///< taken off for each time that a recent token was said
  float presencePenalty = 0.0f;  ///< taken off of recent tokens once
  int32_t penaltyWindow = 64;    ///< how many tokens back count as recent; -1: all
  uint64_t seed = 0;             ///< the same seed and logits give the same tokens
};

/// Chooses tokens. The cuts are made in the order top-k, top-p, min-p, on probabilities at the given temperature.
class Sampler {
public:
  Sampler() = default;
  explicit Sampler(const SamplerOptions &options) : options(options), state(options.seed) {}

  /// Other options from now on. The random numbers begin anew when the seed is another one.
  void setOptions(const SamplerOptions &changed) {
    if (changed.seed != options.seed)
      state = changed.seed;
    options = changed;
  }
  /// Takes memory for this many logits now, so that sampling does not. False: there is none.
  bool reserve(int32_t count) { return candidates.reserve(size_t(count)) && recent.reserve(size_t(count)); }

  /// The next token from `count` logits after the tokens of `history`; -1 when memory is lacking or no logit is a number.
  /// Equal logits: the lower token. `allowed`: one bit for each token that may be chosen; null: all.
  int32_t sample(const float *logits, int32_t count, const int32_t *history, size_t historyLength, const uint64_t *allowed = nullptr);

  /// Where the row of random numbers is, and with which seed it began.
  struct Position {
    uint64_t seed, state;
  };
  Position position() const { return {options.seed, state}; }
  void setPosition(Position position) {
    options.seed = position.seed;
    state = position.state;
  }

private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  bool penalizes() const { return options.repetitionPenalty != 1.0f || options.frequencyPenalty != 0.0f || options.presencePenalty != 0.0f; }
  void penalize(const int32_t *history, size_t length);
  double uniform();

  SamplerOptions options;
  uint64_t state = 0;
  Buffer<Candidate> candidates;
  Buffer<uint32_t> recent; ///< how often each token is in the window
};

} // namespace ajour::language

#endif
