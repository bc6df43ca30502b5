//===- Solver.cpp - zeros and steps for the weights of one layer ---------------===//
#include "PartSolver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace ajour::compress {

namespace {

/// Kernels whose costs decide on the table of patterns, and patterns that are tried for it.
constexpr int64_t mostKernels = 8192;
constexpr size_t mostPatterns = 512;

/// The patterns that cost all kernels together the least, each kernel taking its best: one after the other.
std::vector<KeepMask> chooseTable(const std::vector<PartSolver> &parts, const LayerShape &shape, const LayerPlan &plan) {
  std::vector<KeepMask> candidates;
  // 25 over 12 has some millions of patterns; then those that kernels would like best are tried.
  double count = std::exp(std::lgamma(shape.taps + 1.) - std::lgamma(plan.entries + 1.) -
                          std::lgamma(double(shape.taps - plan.entries) + 1));
  if (count <= double(mostPatterns)) {
    candidates = subsets(shape.taps, plan.entries);
  } else {
    std::vector<KeepMask> votes;
    for (const PartSolver &part : parts)
      part.patternVotes(plan.entries, votes);
    std::map<KeepMask, int64_t> counts;
    for (KeepMask vote : votes)
      ++counts[vote];
    std::vector<std::pair<int64_t, KeepMask>> ranked;
    for (auto [mask, number] : counts)
      ranked.emplace_back(-number, mask);
    std::sort(ranked.begin(), ranked.end());
    for (size_t i = 0; i < ranked.size() && i < mostPatterns; ++i)
      candidates.push_back(ranked[i].second);
  }
  int64_t kernels = shape.outputs * shape.channels, every = (kernels + mostKernels - 1) / mostKernels;
  std::vector<std::vector<double>> costs;
  for (const PartSolver &part : parts)
    part.patternCosts(candidates, every, costs);

  std::vector<KeepMask> table;
  std::vector<double> best(costs.size(), std::numeric_limits<double>::max());
  while (int64_t(table.size()) < plan.table && table.size() < candidates.size()) {
    size_t chosen = 0;
    double least = std::numeric_limits<double>::max();
    for (size_t c = 0; c < candidates.size(); ++c) {
      double sum = 0;
      for (size_t k = 0; k < costs.size(); ++k)
        sum += std::min(best[k], costs[k][c]);
      if (sum < least && !std::count(table.begin(), table.end(), candidates[c])) {
        least = sum;
        chosen = c;
      }
    }
    table.push_back(candidates[chosen]);
    for (size_t k = 0; k < costs.size(); ++k)
      best[k] = std::min(best[k], costs[k][chosen]);
  }
  return table;
}

/// Removes units until this share of the layer's weights has gone: those that cost the least for each of their weights.
void removeUpTo(std::vector<PartSolver> &parts, double share, const std::vector<KeepMask> &table) {
  struct Place {
    double cost;
    size_t part, at;
    int64_t elements;
  };
  std::vector<std::vector<uint8_t>> removed;
  std::vector<Place> places;
  int64_t total = 0, gone = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const PartSolver &part = parts[p];
    int64_t units = int64_t(part.unitList().size());
    removed.emplace_back(part.rowGroups() * units, 0);
    Matrix costs = part.removalCosts(table);
    for (int64_t i = 0; i < costs.size(); ++i) {
      int64_t elements = part.elements(i / units, i % units);
      total += elements;
      if (costs.data()[i] < 0)
        gone += elements;
      else
        places.push_back({costs.data()[i] / double(elements), p, size_t(i), elements});
    }
  }
  std::sort(places.begin(), places.end(),
            [](const Place &a, const Place &b) { return std::tie(a.cost, a.part, a.at) < std::tie(b.cost, b.part, b.at); });
  double wanted = share * double(total);
  for (const Place &place : places) {
    // The nearest number of units.
    if (double(gone) + double(place.elements) / 2 > wanted)
      break;
    removed[place.part][place.at] = 1;
    gone += place.elements;
  }
  for (size_t p = 0; p < parts.size(); ++p)
    parts[p].remove(removed[p]);
}

std::vector<double> importanceOf(const LayerProblem &problem, const LayerPlan &plan) {
  std::vector<double> importance;
  if (plan.method == Method::Magnitude || problem.parts.empty() || problem.parts[0].moments.size() == 0)
    return importance;
  // One row for each group.
  importance.resize(problem.shape.groups * problem.shape.columns());
  for (const LayerPart &part : problem.parts) {
    std::vector<int64_t> columns = part.columnsOf(problem.shape);
    for (size_t c = 0; c < columns.size(); ++c)
      importance[part.group * problem.shape.columns() + columns[c]] = part.moments(c, c);
  }
  return importance;
}

/// The weights of a part's outputs and columns.
Matrix weightsOf(const LayerProblem &problem, const LayerPart &part, const std::vector<float> &weights) {
  const LayerShape &shape = problem.shape;
  std::vector<int64_t> columns = part.columnsOf(shape);
  Matrix result(shape.outputsPerGroup(), int64_t(columns.size()));
  for (int64_t o = 0; o < result.rows(); ++o)
    for (size_t c = 0; c < columns.size(); ++c)
      result(o, c) = weights[(part.group * shape.outputsPerGroup() + o) * shape.columns() + columns[c]];
  return result;
}

void correctBias(const LayerProblem &problem, LayerSolution &solution) {
  solution.biasDelta.assign(problem.shape.outputs, 0);
  for (const LayerPart &part : problem.parts) {
    Vector change = part.targetMeans - weightsOf(problem, part, solution.weights) * part.means;
    for (int64_t o = 0; o < change.size(); ++o)
      solution.biasDelta[part.group * problem.shape.outputsPerGroup() + o] += float(change(o));
  }
}

void storeSteps(const LayerShape &shape, const Scales &scales, LayerSolution &solution) {
  solution.scales = scales.values;
  solution.steps.resize(solution.weights.size());
  for (int64_t o = 0; o < shape.outputs; ++o)
    for (int64_t t = 0; t < shape.taps; ++t)
      for (int64_t c = 0; c < shape.channels; ++c) {
        size_t at = size_t((o * shape.taps + t) * shape.channels + c);
        float scale = scales.values[scales.indexOf(shape, o, t, c)];
        solution.steps[at] = scale > 0 ? int8_t(std::nearbyint(solution.weights[at] / scale)) : 0;
        solution.weights[at] = float(solution.steps[at]) * scale;
      }
}

} // namespace

Scales chooseScales(const LayerShape &shape, const std::vector<float> &weights, int64_t bits, int64_t group,
                    const std::vector<double> &importance) {
  Scales scales;
  scales.group = group;
  scales.groupsPerTap = group ? (shape.channels + group - 1) / group : 1;
  int64_t count = group ? shape.outputs * shape.taps * scales.groupsPerTap : shape.outputs;
  struct Member {
    float weight;
    double importance;
  };
  std::vector<std::vector<Member>> members(count);
  for (int64_t o = 0; o < shape.outputs; ++o)
    for (int64_t t = 0; t < shape.taps; ++t)
      for (int64_t c = 0; c < shape.channels; ++c) {
        int64_t column = t * shape.channels + c;
        double weight = importance.empty() ? 1 : importance[o / shape.outputsPerGroup() * shape.columns() + column];
        members[scales.indexOf(shape, o, t, c)].push_back({weights[o * shape.columns() + column], weight});
      }
  double most = double(largestStep(bits));
  for (const std::vector<Member> &list : members) {
    double largest = 0;
    for (const Member &member : list)
      largest = std::max(largest, std::abs(double(member.weight)));
    double chosen = largest / most, least = std::numeric_limits<double>::max();
    for (int step = 0; bits < 8 && largest > 0 && step <= 20; ++step) {
      double scale = largest / most * (1 - 0.03 * step), sum = 0;
      for (const Member &member : list) {
        double rounded = std::clamp(std::nearbyint(member.weight / scale), -most, most) * scale;
        sum += member.importance * (member.weight - rounded) * (member.weight - rounded);
      }
      if (sum < least) {
        least = sum;
        chosen = scale;
      }
    }
    // A scale of zeros alone may be anything; tiny ones would make denormal numbers.
    scales.values.push_back(chosen > 1e-30 ? float(chosen) : 1.f);
  }
  return scales;
}

void setTargets(LayerProblem &problem) {
  for (LayerPart &part : problem.parts) {
    Matrix w = weightsOf(problem, part, problem.weights);
    part.targets = w * part.moments;
    part.targetMeans = w * part.means;
    part.targetSquares = part.targets.cwiseProduct(w).rowwise().sum();
  }
}

double outputError(const LayerProblem &problem, const std::vector<float> &changed, bool correctsBias) {
  double error = 0, variance = 0;
  for (const LayerPart &part : problem.parts) {
    if (part.moments.size() == 0)
      return -1;
    Matrix v = weightsOf(problem, part, changed);
    error += part.targetSquares.sum() - 2 * part.targets.cwiseProduct(v).sum() + (v * part.moments).cwiseProduct(v).sum();
    if (correctsBias)
      error -= (part.targetMeans - v * part.means).squaredNorm();
    variance += part.targetSquares.sum() - part.targetMeans.squaredNorm();
  }
  // Below this both are rounding errors of the sums.
  return variance > 0 ? std::sqrt(std::max(error, 0.) / variance) : error > 1e-12 ? 1 : 0;
}

LayerSolution solve(const LayerProblem &problem, const LayerPlan &plan) {
  std::vector<PartSolver> parts;
  for (const LayerPart &part : problem.parts)
    parts.emplace_back(problem, part, plan);
  std::vector<KeepMask> table;
  if (plan.structure == Structure::Pattern)
    table = chooseTable(parts, problem.shape, plan);
  LayerSolution solution;
  solution.weights.resize(problem.weights.size());
  solution.kept.resize(problem.weights.size());
  if (!parts.empty() && parts[0].removable()) {
    int64_t rounds = parts[0].affordableRounds();
    for (const PartSolver &part : parts)
      rounds = std::min(rounds, part.affordableRounds());
    for (int64_t round = 1; round <= rounds; ++round)
      removeUpTo(parts, removedShare(plan) * double(round) / double(rounds), table);
  }
  for (PartSolver &part : parts) {
    if (plan.structure != Structure::Dense) {
      part.prune(table);
      part.refit();
    }
    part.store(solution);
  }
  if (plan.bits) {
    Scales scales;
    if (problem.scales.empty())
      scales = chooseScales(problem.shape, solution.weights, plan.bits, plan.group, importanceOf(problem, plan));
    else
      scales.values = problem.scales;
    for (PartSolver &part : parts) {
      part.quantise(scales);
      part.store(solution);
    }
    storeSteps(problem.shape, scales, solution);
  }
  bool hasData = !problem.parts.empty() && problem.parts[0].moments.size() != 0;
  bool corrects = problem.hasBias && hasData && plan.method == Method::SecondOrder;
  if (corrects)
    correctBias(problem, solution);
  solution.error = outputError(problem, solution.weights, corrects);
  return solution;
}

} // namespace ajour::compress
