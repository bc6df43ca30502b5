#include "ajour/Language/Sampler.h"

#include <algorithm>
#include <cmath>

namespace ajour::language {

/// SplitMix64 (Steele, Lea and Flood, 2014): a number in [0, 1).
double Sampler::uniform() {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return double((z ^ z >> 31) >> 11) * 0x1p-53;
}

/// Works on all logits in the order of tokens.
void Sampler::penalize(const int32_t *history, size_t length) {
  size_t window = options.penaltyWindow >= 0 ? size_t(options.penaltyWindow) : length;
  size_t begin = length > window ? length - window : 0, count = candidates.size();
  recent.clear();
  if (!recent.fill(count, 0))
    return;
  for (size_t i = begin; i < length; ++i)
    if (history[i] >= 0 && size_t(history[i]) < count)
      ++recent[size_t(history[i])];
  for (size_t i = begin; i < length; ++i) {
    if (history[i] < 0 || size_t(history[i]) >= count || recent[size_t(history[i])] == 0)
      continue;
    float &logit = candidates[size_t(history[i])].logit;
    logit = logit > 0 ? logit / options.repetitionPenalty : logit * options.repetitionPenalty;
    logit -= float(recent[size_t(history[i])]) * options.frequencyPenalty + options.presencePenalty;
    // Each token once, however often it was said.
    recent[size_t(history[i])] = 0;
  }
}

int32_t Sampler::sample(const float *logits, int32_t count, const int32_t *history, size_t historyLength, const uint64_t *allowed) {
  auto may = [&](int32_t id) { return !allowed || (allowed[id >> 6] >> (id & 63) & 1) != 0; };
  if (options.temperature <= 0 && !penalizes()) {
    int32_t best = -1;
    for (int32_t i = 0; i < count; ++i)
      if (logits[i] == logits[i] && may(i) && (best < 0 || logits[i] > logits[best]))
        best = i;
    return best;
  }
  candidates.clear();
  if (count <= 0 || !candidates.reserve(size_t(count)))
    return -1;
  for (int32_t i = 0; i < count; ++i)
    candidates.push({logits[i], i});
  if (penalizes())
    penalize(history, historyLength);
  if (recent.failed())
    return -1;
  // Numbers only: NaN compares with nothing.
  Candidate *begin = candidates.data(),
            *end = std::remove_if(begin, begin + count, [&](const Candidate &c) { return c.logit != c.logit || !may(c.id); });
  if (begin == end)
    return -1;
  auto better = [](const Candidate &a, const Candidate &b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };
  if (options.temperature <= 0)
    return std::min_element(begin, end, better)->id;
  size_t kept = size_t(end - begin);
  if (options.topK > 0 && size_t(options.topK) < kept)
    kept = size_t(options.topK);
  std::partial_sort(begin, begin + kept, end, better);

  double best = double(begin[0].logit), sum = 0;
  auto weight = [&](size_t i) { return std::exp((double(begin[i].logit) - best) / double(options.temperature)); };
  for (size_t i = 0; i < kept; ++i)
    sum += weight(i);
  if (options.topP < 1.0f) {
    double reached = 0;
    size_t n = 0;
    while (n < kept && (n == 0 || reached < double(options.topP) * sum))
      reached += weight(n++);
    kept = n;
  }
  while (kept > 1 && weight(kept - 1) < double(options.minP))
    --kept;
  sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sum += weight(i);
  double point = uniform() * sum;
  for (size_t i = 0; i + 1 < kept; ++i)
    if ((point -= weight(i)) < 0)
      return begin[i].id;
  return begin[kept - 1].id;
}

} // namespace ajour::language
