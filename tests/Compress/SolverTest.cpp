//===- SolverTest.cpp - zeros and steps of one layer ---------------------------===//
#include "Solver.h"

#include "ajour/Encoding/Codec.h"

#include <Eigen/Cholesky>

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

using namespace ajour::compress;

namespace {

struct Random {
  std::mt19937_64 engine;
  explicit Random(uint64_t seed) : engine(seed) {}
  double normal() { return std::normal_distribution<double>()(engine); }
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(engine); }
};

/// A layer with random weights whose inputs are correlated: each a mixture of a few causes, with a mean.
LayerProblem randomProblem(const LayerShape &shape, uint64_t seed, bool hasBias = false, int64_t mostColumns = 4608) {
  Random random(seed);
  LayerProblem problem;
  problem.shape = shape;
  problem.hasBias = hasBias;
  for (int64_t i = 0; i < shape.outputs * shape.columns(); ++i)
    problem.weights.push_back(float(random.normal()));
  problem.parts = partsOf(shape, mostColumns);
  for (LayerPart &part : problem.parts) {
    int64_t columns = shape.taps * part.count, causes = std::max<int64_t>(columns / 3, 1), rows = 4 * columns + 16;
    Matrix mixture = Matrix::NullaryExpr(causes, columns, [&] { return random.normal(); });
    Matrix x = Matrix::NullaryExpr(rows, causes, [&] { return random.normal(); }) * mixture;
    x += Matrix::NullaryExpr(rows, columns, [&] { return 0.3 * random.normal() + 0.5; });
    part.moments = x.transpose() * x / double(rows);
    part.means = x.colwise().mean().transpose();
  }
  setTargets(problem);
  return problem;
}

struct Case {
  const char *name;
  LayerPlan plan;
  LayerShape shape;
};

LayerPlan plan(Structure structure) {
  LayerPlan plan;
  plan.structure = structure;
  return plan;
}
LayerPlan c4n(int64_t n, int64_t share) {
  LayerPlan result = plan(Structure::C4n);
  result.pruned = n;
  result.share = share;
  return result;
}
LayerPlan nm(int64_t kept, int64_t of) {
  LayerPlan result = plan(Structure::NM);
  result.kept = kept;
  result.of = of;
  return result;
}
LayerPlan pattern(double connectivity, int64_t table = 8) {
  LayerPlan result = plan(Structure::Pattern);
  result.connectivity = connectivity;
  result.table = table;
  return result;
}
LayerPlan block(int64_t rows, int64_t cols, double ratio) {
  LayerPlan result = plan(Structure::Block);
  result.rows = rows;
  result.cols = cols;
  result.ratio = ratio;
  return result;
}
LayerPlan unstructured(double ratio) {
  LayerPlan result = plan(Structure::Unstructured);
  result.ratio = ratio;
  return result;
}

/// {outputs, groups, taps, channels}: matrices, convolutions, groups, ragged ends.
std::vector<Case> cases() {
  return {
      {"c4^1", c4n(1, 1), {7, 1, 1, 32}},
      {"c4^2 of a convolution", c4n(2, 1), {6, 1, 9, 8}},
      {"c4^3 with a short run at the end", c4n(3, 1), {5, 1, 3, 11}},
      {"c4^2, rows alike", c4n(2, 8), {20, 1, 1, 24}},
      {"c4^2 in groups", c4n(2, 4), {12, 3, 9, 4}},
      {"2:4", nm(2, 4), {9, 1, 1, 30}},
      {"4:16", nm(4, 16), {4, 1, 1, 40}},
      {"pattern", pattern(0), {8, 1, 9, 6}},
      {"pattern with connectivity", pattern(0.5), {16, 1, 9, 12}},
      {"pattern of a depthwise convolution", pattern(0), {10, 10, 9, 1}},
      {"pattern of 5x5", pattern(0.25), {8, 1, 25, 4}},
      {"block-punched", block(8, 4, 0.5), {20, 1, 9, 10}},
      {"4x1", block(4, 1, 0.75), {18, 1, 1, 40}},
      {"4x1 in groups", block(4, 1, 0.5), {16, 2, 1, 8}},
      {"unstructured", unstructured(0.8), {10, 1, 1, 50}},
  };
}

bool isKept(const Case &c, const LayerSolution &s, int64_t o, int64_t t, int64_t ch) {
  return s.kept[(o * c.shape.taps + t) * c.shape.channels + ch] != 0;
}

/// Runs of `of` channels at a tap keep at most (in fact, exactly) `kept`, for `share` outputs the same ones.
void checkRuns(const Case &c, const LayerSolution &s, int64_t of, int64_t kept, int64_t share) {
  for (int64_t o = 0; o < c.shape.outputs; ++o)
    for (int64_t t = 0; t < c.shape.taps; ++t)
      for (int64_t run = 0; run < c.shape.channels; run += of) {
        int64_t width = std::min(of, c.shape.channels - run), count = 0;
        for (int64_t i = 0; i < width; ++i) {
          count += isKept(c, s, o, t, run + i);
          int64_t first = o % c.shape.outputsPerGroup() / share * share + o / c.shape.outputsPerGroup() * c.shape.outputsPerGroup();
          ASSERT_EQ(isKept(c, s, o, t, run + i), isKept(c, s, first, t, run + i));
        }
        ASSERT_EQ(count, std::min(width, kept));
      }
}

void checkPatterns(const Case &c, const LayerSolution &s) {
  std::set<uint64_t> patterns;
  int64_t gone = 0;
  for (int64_t o = 0; o < c.shape.outputs; ++o)
    for (int64_t ch = 0; ch < c.shape.channels; ++ch) {
      uint64_t mask = 0;
      for (int64_t t = 0; t < c.shape.taps; ++t)
        mask |= uint64_t(isKept(c, s, o, t, ch)) << t;
      if (mask)
        patterns.insert(mask);
      gone += mask == 0;
      ASSERT_TRUE(mask == 0 || __builtin_popcountll(mask) == c.plan.entries);
    }
  EXPECT_LE(patterns.size(), size_t(c.plan.table));
  EXPECT_NEAR(double(gone), c.plan.connectivity * double(c.shape.outputs * c.shape.channels), 1);
}

void checkBlocks(const Case &c, const LayerSolution &s) {
  int64_t perGroup = c.shape.outputsPerGroup(), zeros = 0;
  for (int64_t o = 0; o < c.shape.outputs; ++o)
    for (int64_t t = 0; t < c.shape.taps; ++t)
      for (int64_t ch = 0; ch < c.shape.channels; ++ch) {
        int64_t row = o / perGroup * perGroup + o % perGroup / c.plan.rows * c.plan.rows;
        ASSERT_EQ(isKept(c, s, o, t, ch), isKept(c, s, row, t, ch / c.plan.cols * c.plan.cols));
        zeros += !isKept(c, s, o, t, ch);
      }
  double half = double(c.plan.rows * c.plan.cols) / 2;
  EXPECT_NEAR(double(zeros), c.plan.ratio * double(c.shape.outputs * c.shape.columns()), half + 1);
}

void checkStructure(const Case &c, const LayerSolution &s) {
  for (size_t i = 0; i < s.weights.size(); ++i)
    ASSERT_TRUE(s.kept[i] || s.weights[i] == 0) << i;
  switch (c.plan.structure) {
  case Structure::C4n:
    return checkRuns(c, s, 4, 4 - c.plan.pruned, c.plan.share);
  case Structure::NM:
    return checkRuns(c, s, c.plan.of, c.plan.kept, 1);
  case Structure::Pattern:
    return checkPatterns(c, s);
  case Structure::Block:
    return checkBlocks(c, s);
  case Structure::Unstructured: {
    int64_t zeros = std::count(s.kept.begin(), s.kept.end(), 0);
    EXPECT_NEAR(double(zeros), c.plan.ratio * double(s.kept.size()), 1);
    return;
  }
  case Structure::Dense:
    FAIL();
  }
}

/// What the encoder of weights takes for this plan; nothing where the layer is no single matrix or runs end elsewhere in it.
std::optional<ajour::encoding::Structure> encodedStructure(const Case &c) {
  ajour::encoding::Structure structure;
  using Kind = ajour::encoding::StructureKind;
  if (c.shape.groups > 1)
    return std::nullopt;
  switch (c.plan.structure) {
  case Structure::C4n:
    structure.kind = Kind::C4n;
    structure.pruned = {c.plan.pruned};
    structure.share = c.plan.share;
    return c.shape.taps == 1 || c.shape.channels % 4 == 0 ? std::optional(structure) : std::nullopt;
  case Structure::Block:
    structure.kind = c.shape.taps > 1 ? Kind::BlockPunched : Kind::Block;
    structure.blockFilters = structure.rows = c.plan.rows;
    structure.blockChannels = c.plan.cols;
    return structure;
  default:
    return std::nullopt; // N:M, patterns and single weights have no parameters that could contradict the mask
  }
}

/// The encoder of weights agrees that the structure holds.
void checkEncodable(const Case &c, const LayerSolution &s) {
  std::optional<ajour::encoding::Structure> structure = encodedStructure(c);
  if (!structure)
    return;
  int64_t side = c.shape.taps == 9 ? 3 : 1;
  ajour::encoding::WeightShape shape{c.shape.outputs, c.shape.columns(), side, c.shape.taps / side};
  std::string error;
  auto size = ajour::encoding::storedSize({*structure, {}}, shape, s.kept, error);
  ASSERT_TRUE(size) << error;
  int64_t kept = int64_t(std::count(s.kept.begin(), s.kept.end(), 1));
  EXPECT_EQ(size->kept, kept);
}

TEST(Solver, StructureHoldsAndCompensationHelps) {
  for (const Case &c : cases())
    for (bool hasBias : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (hasBias ? ", bias" : ""));
      ASSERT_EQ(obstacle(c.shape, c.plan), "");
      LayerProblem problem = randomProblem(c.shape, 7, hasBias);
      LayerPlan plain = c.plan;
      plain.method = Method::Magnitude;
      LayerSolution magnitude = solve(problem, plain), better = solve(problem, c.plan);
      checkStructure(c, magnitude);
      checkStructure(c, better);
      checkEncodable(c, better);
      for (size_t i = 0; i < magnitude.weights.size(); ++i) // only zeros are new
        ASSERT_TRUE(magnitude.weights[i] == problem.weights[i] || !magnitude.kept[i]);
      // Inputs are mixtures of a third as many causes, so that others can stand in for most of what goes.
      EXPECT_LT(better.error, 0.8 * magnitude.error);
      EXPECT_EQ(better.biasDelta.size(), hasBias ? size_t(c.shape.outputs) : 0u);
    }
}

/// The reported error against outputs computed from inputs that have exactly these moments.
TEST(Solver, ErrorIsThatOfTheOutputs) {
  LayerShape shape{5, 1, 1, 6};
  LayerProblem problem = randomProblem(shape, 3, true);
  LayerSolution solution = solve(problem, c4n(2, 1));
  // Rows of the factor of the centred moments, scaled, with both signs, around the mean.
  Matrix centred = problem.parts[0].moments - problem.parts[0].means * problem.parts[0].means.transpose();
  Matrix factor = centred.llt().matrixU();
  Matrix x(12, 6);
  x << factor * std::sqrt(6.), -factor * std::sqrt(6.);
  x.rowwise() += problem.parts[0].means.transpose();
  auto toMatrix = [](const std::vector<float> &w) {
    return Matrix(Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>>(w.data(), 5, 6).cast<double>());
  };
  Matrix before = x * toMatrix(problem.weights).transpose(), after = x * toMatrix(solution.weights).transpose();
  for (int64_t o = 0; o < 5; ++o)
    after.col(o).array() += solution.biasDelta[o];
  Matrix spreadOut = before.rowwise() - before.colwise().mean();
  EXPECT_NEAR(solution.error, (after - before).norm() / spreadOut.norm(), 1e-5);
}

/// Two inputs that are always equal: the weight that stays takes the other's over, without any error.
TEST(Solver, EqualInputsStandInForEachOther) {
  LayerProblem problem;
  problem.shape = {1, 1, 1, 2};
  problem.weights = {3, 2};
  problem.parts = partsOf(problem.shape, 64);
  problem.parts[0].moments = Matrix::Constant(2, 2, 4.);
  problem.parts[0].means = Vector::Zero(2);
  problem.damping = 0;
  setTargets(problem);
  LayerSolution solution = solve(problem, nm(1, 2));
  EXPECT_NEAR(solution.weights[0] + solution.weights[1], 5, 1e-4);
  EXPECT_TRUE(solution.weights[0] == 0 || solution.weights[1] == 0);
  EXPECT_NEAR(solution.error, 0, 1e-3);
}

/// One run of four weights and one output: the choice and the new weights are the best of all six.
TEST(Solver, OneRunIsSolvedExactly) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    LayerProblem problem = randomProblem({1, 1, 1, 4}, seed);
    LayerSolution solution = solve(problem, c4n(2, 1));
    Matrix h = problem.parts[0].moments;
    double damping = problem.damping * h.diagonal().mean();
    Matrix damped = h + damping * Matrix::Identity(4, 4);
    Vector w = Eigen::Map<const Eigen::VectorXf>(problem.weights.data(), 4).cast<double>();
    auto costOf = [&](const Vector &v) { return (v - w).dot(damped * (v - w)); };
    double least = 1e300;
    for (int a = 0; a < 4; ++a)
      for (int b = a + 1; b < 4; ++b) {
        std::vector<int> kept{a, b};
        Vector v = Vector::Zero(4);
        Vector best = Matrix(damped(kept, kept)).llt().solve(Vector(damped(kept, Eigen::all) * w));
        v(kept) = best;
        least = std::min(least, costOf(v));
      }
    Vector found = Eigen::Map<const Eigen::VectorXf>(solution.weights.data(), 4).cast<double>();
    EXPECT_NEAR(costOf(found), least, 1e-5 * least + 1e-9);
  }
}

TEST(Solver, StepsStayInTheirRange) {
  for (int64_t bits : {2, 3, 4, 8})
    for (int64_t group : {0, 8}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, group " + std::to_string(group));
      LayerShape shape{6, 1, 3, 20};
      LayerPlan plan = c4n(2, 1);
      plan.bits = bits;
      plan.group = group;
      LayerProblem problem = randomProblem(shape, 11);
      LayerSolution solution = solve(problem, plan);
      ASSERT_EQ(solution.scales.size(), size_t(group ? 6 * 3 * 3 : 6));
      int64_t largest = 0;
      for (int64_t o = 0; o < 6; ++o)
        for (int64_t t = 0; t < 3; ++t)
          for (int64_t ch = 0; ch < 20; ++ch) {
            size_t at = size_t((o * 3 + t) * 20 + ch);
            float scale = solution.scales[group ? (o * 3 + t) * 3 + ch / 8 : o];
            ASSERT_EQ(solution.weights[at], float(solution.steps[at]) * scale);
            largest = std::max<int64_t>(largest, std::abs(solution.steps[at]));
          }
      EXPECT_EQ(largest, largestStep(bits));
      checkRuns({"", plan, shape}, solution, 4, 2, 1);
      LayerPlan plain = plan;
      plain.method = Method::Magnitude;
      EXPECT_LT(solution.error, solve(problem, plain).error);
    }
}

TEST(Solver, RoundingAloneIsCompensated) {
  LayerProblem problem = randomProblem({16, 1, 1, 48}, 5);
  LayerPlan plan;
  plan.bits = 4;
  LayerPlan plain = plan;
  plain.method = Method::Magnitude;
  EXPECT_LT(solve(problem, plan).error, 0.7 * solve(problem, plain).error);
}

/// Without data there is nothing to compensate with: both methods are the same.
TEST(Solver, WithoutDataByMagnitude) {
  LayerProblem problem = randomProblem({8, 1, 1, 16}, 2);
  problem.parts = partsOf(problem.shape, 4608);
  LayerPlan plain = c4n(1, 4);
  plain.method = Method::Magnitude;
  LayerSolution solution = solve(problem, c4n(1, 4));
  EXPECT_EQ(solution.weights, solve(problem, plain).weights);
  EXPECT_EQ(solution.error, -1);
}

/// A layer too wide for one matrix of moments is treated in parts.
TEST(Solver, WideLayersInParts) {
  LayerProblem problem = randomProblem({6, 1, 2, 100}, 9, false, 64);
  ASSERT_EQ(problem.parts.size(), 4u);
  LayerSolution solution = solve(problem, c4n(2, 1));
  checkRuns({"", c4n(2, 1), problem.shape}, solution, 4, 2, 1);
  LayerPlan plain = c4n(2, 1);
  plain.method = Method::Magnitude;
  EXPECT_LT(solution.error, 0.8 * solve(problem, plain).error);
}

TEST(Solver, DeadInputsDoNoHarm) {
  LayerProblem problem = randomProblem({4, 1, 1, 8}, 1);
  problem.parts[0].moments.row(3).setZero();
  problem.parts[0].moments.col(3).setZero();
  setTargets(problem);
  LayerSolution one = solve(problem, c4n(2, 1));
  problem.parts[0].moments.setZero();
  problem.parts[0].means.setZero();
  setTargets(problem);
  LayerSolution all = solve(problem, c4n(2, 1));
  for (const LayerSolution *solution : {&one, &all})
    for (float weight : solution->weights)
      ASSERT_TRUE(std::isfinite(weight));
  EXPECT_EQ(all.error, 0);
}

TEST(Solver, Obstacles) {
  EXPECT_EQ(obstacle({4, 1, 9, 1}, c4n(2, 1)), "it has 1 inputs for each output, of which 2 are kept in any case");
  EXPECT_EQ(obstacle({4, 1, 1, 8}, pattern(0)), "its kernel has 1 taps, a pattern keeps 4");
  EXPECT_EQ(obstacle({4, 1, 49, 8}, pattern(0)), "its kernel has 49 taps, patterns are for at most 25");
  EXPECT_EQ(obstacle({4, 1, 9, 8}, pattern(0)), "");
}

} // namespace
