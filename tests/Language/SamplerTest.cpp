// From logits to tokens.
#include "ajour/Language/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

using namespace ajour::language;

namespace {

SamplerOptions plain() {
  SamplerOptions options;
  options.temperature = 1.0f;
  options.topK = 0;
  options.topP = 1.0f;
  options.minP = 0.0f;
  return options;
}

/// How often each token is chosen in `n` draws.
std::map<int32_t, int> draw(const SamplerOptions &options, const std::vector<float> &logits, int n = 20000) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int i = 0; i < n; ++i)
    ++counts[sampler.sample(logits.data(), int32_t(logits.size()), nullptr, 0)];
  return counts;
}

TEST(Sampler, ZeroTemperatureTakesTheBest) {
  SamplerOptions options;
  options.temperature = 0;
  Sampler sampler(options);
  std::vector<float> logits = {1, 3, 3, -2};
  EXPECT_EQ(sampler.sample(logits.data(), 4, nullptr, 0), 1);
}

TEST(Sampler, DrawsByProbability) {
  // Probabilities 1/7, 2/7, 4/7.
  std::map<int32_t, int> counts = draw(plain(), {0.0f, std::log(2.0f), std::log(4.0f)});
  EXPECT_NEAR(counts[0] / 20000.0, 1 / 7.0, 0.015);
  EXPECT_NEAR(counts[1] / 20000.0, 2 / 7.0, 0.015);
  EXPECT_NEAR(counts[2] / 20000.0, 4 / 7.0, 0.015);
  SamplerOptions cold = plain();
  cold.temperature = 0.5f; // squares the odds: 1, 4, 16
  EXPECT_NEAR(draw(cold, {0.0f, std::log(2.0f), std::log(4.0f)})[2] / 20000.0, 16 / 21.0, 0.015);
}

TEST(Sampler, CutsLeaveOutTheUnlikely) {
  std::vector<float> logits = {0.0f, std::log(2.0f), std::log(4.0f)};
  SamplerOptions k = plain();
  k.topK = 2;
  EXPECT_EQ(draw(k, logits).count(0), 0u);
  SamplerOptions p = plain();
  p.topP = 0.6f; // 4/7 is not enough, with 2/7 it is
  EXPECT_EQ(draw(p, logits).count(0), 0u);
  EXPECT_GT(draw(p, logits)[1], 0);
  SamplerOptions m = plain();
  m.minP = 0.4f;
  EXPECT_EQ(draw(m, logits).count(0), 0u);
  EXPECT_GT(draw(m, logits)[1], 0);
}

TEST(Sampler, SameSeedSameTokens) {
  std::vector<float> logits(50);
  for (int i = 0; i < 50; ++i)
    logits[size_t(i)] = float(i % 7);
  auto sequence = [&](uint64_t seed) {
    SamplerOptions options = plain();
    options.seed = seed;
    Sampler sampler(options);
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i)
      ids.push_back(sampler.sample(logits.data(), 50, nullptr, 0));
    return ids;
  };
  EXPECT_EQ(sequence(7), sequence(7));
  EXPECT_NE(sequence(7), sequence(8));
}

TEST(Sampler, RepetitionsBecomeLessLikely) {
  SamplerOptions options;
  options.temperature = 0;
  options.repetitionPenalty = 2.0f;
  options.penaltyWindow = 2;
  Sampler sampler(options);
  std::vector<float> logits = {3, 2, -1};
  std::vector<int32_t> history = {0, 0};
  EXPECT_EQ(sampler.sample(logits.data(), 3, history.data(), 2), 1) << "3 / 2 is below 2, and counts once";
  history = {0, 1, 1};
  EXPECT_EQ(sampler.sample(logits.data(), 3, history.data(), 3), 0) << "0 is out of the window";
}

TEST(Sampler, NumbersThatAreNoneAreNotChosen) {
  float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(draw(plain(), {nan, 1.0f, -infinity}, 100)[1], 100);
  EXPECT_EQ(draw(plain(), {nan, nan}, 10)[-1], 10);
}

} // namespace
