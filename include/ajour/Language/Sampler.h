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
  int32_t penaltyWindow = 64;    ///< how many tokens back count as recent
  uint64_t seed = 0;             ///< the same seed and logits give the same tokens
};

/// Chooses tokens. The cuts are made in the order top-k, top-p, min-p, on probabilities at the given temperature.
class Sampler {
public:
  explicit Sampler(const SamplerOptions &options) : options(options), state(options.seed) {}

  /// The next token from `count` logits after the tokens of `history`; -1 when memory is lacking or no logit is a number.
  /// Equal logits: the lower token.
  int32_t sample(const float *logits, int32_t count, const int32_t *history, size_t historyLength);

private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  void penalize(const int32_t *history, size_t length);
  double uniform();

  SamplerOptions options;
  uint64_t state;
  Buffer<Candidate> candidates;
};

} // namespace ajour::language

#endif
