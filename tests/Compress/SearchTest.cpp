//===- SearchTest.cpp - shares of zeros for a target time -------------------------===//
#include "Search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace ajour::compress;

namespace {

Choice choice(double error, double time) {
  Choice made;
  made.error = error;
  made.time = time;
  return made;
}

TEST(Search, TakesTheCheapestChangesFirst) {
  // The second layer saves as much time for a quarter of the square of the error.
  std::vector<std::vector<Choice>> layers{{choice(0, 10), choice(0.2, 5)}, {choice(0, 10), choice(0.1, 5)}};
  EXPECT_EQ(searchChoices(layers, 20), (std::vector<size_t>{0, 0}));
  EXPECT_EQ(searchChoices(layers, 15), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(searchChoices(layers, 14), (std::vector<size_t>{1, 1}));
  EXPECT_EQ(searchChoices(layers, 9), std::vector<size_t>());
}

/// A choice that is slower than dense is never taken. One that saves much for little more error is reached over its neighbour, which comes
/// back where it is fast enough.
TEST(Search, SkipsChoicesThatDoNotPay) {
  std::vector<std::vector<Choice>> layers{{choice(0, 10), choice(0.1, 12), choice(0.3, 9.9), choice(0.31, 4)}};
  EXPECT_EQ(searchChoices(layers, 5), (std::vector<size_t>{3}));
  EXPECT_EQ(searchChoices(layers, 9.95), (std::vector<size_t>{2}));
}

/// Where errors grow and each further saving costs more, one change after the other is within one change of the best, which all
/// combinations are tried for.
TEST(Search, IsNearTheBest) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> unit(0.1, 1);
    std::vector<std::vector<Choice>> layers(3);
    double dense = 0, largest = 0;
    for (auto &choices : layers) {
      double size = 10 * unit(random), weight = unit(random), last = 0;
      for (int c = 0; c < 6; ++c) {
        double share = c / 6.;
        choices.push_back(choice(weight * share * share, size * (1 - share)));
        largest = std::max(largest, std::pow(choices.back().error, 2) - last);
        last = std::pow(choices.back().error, 2);
      }
      dense += size;
    }
    auto errorOf = [&](const std::vector<size_t> &chosen) {
      double sum = 0;
      for (size_t l = 0; l < 3; ++l)
        sum += std::pow(layers[l][chosen[l]].error, 2);
      return sum;
    };
    double target = 0.6 * dense, best = 1e9;
    for (size_t a = 0; a < 6; ++a)
      for (size_t b = 0; b < 6; ++b)
        for (size_t c = 0; c < 6; ++c)
          if (layers[0][a].time + layers[1][b].time + layers[2][c].time <= target)
            best = std::min(best, errorOf({a, b, c}));
    std::vector<size_t> chosen = searchChoices(layers, target);
    ASSERT_EQ(chosen.size(), 3u);
    EXPECT_LE(layers[0][chosen[0]].time + layers[1][chosen[1]].time + layers[2][chosen[2]].time, target + 1e-9);
    EXPECT_LE(errorOf(chosen), best + largest);
  }
}

TEST(Search, Plans) {
  LayerPlan block;
  block.structure = Structure::Block;
  block.ratio = 0.55;
  block.bits = 8;
  std::vector<LayerPlan> plans = plansUpTo(block);
  ASSERT_EQ(plans.size(), 6u);
  EXPECT_EQ(toString(plans[0]), "dense, int8");
  EXPECT_EQ(toString(plans[1]), "block 8x4 at 20 %, int8");
  EXPECT_EQ(toString(plans[5]), "block 8x4 at 55 %, int8");
  LayerPlan pattern;
  pattern.structure = Structure::Pattern;
  pattern.connectivity = 0.3;
  plans = plansUpTo(pattern);
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_EQ(toString(plans[1]), "pattern of 4");
  EXPECT_EQ(toString(plans[3]), "pattern of 4, 30 % of kernels gone");
  LayerPlan c4n;
  c4n.structure = Structure::C4n;
  EXPECT_EQ(plansUpTo(c4n).size(), 1u);
}

} // namespace
