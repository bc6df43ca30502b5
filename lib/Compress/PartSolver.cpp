//===- PartSolver.cpp - the weights of one part of a layer ---------------------===//
#include "PartSolver.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ajour::compress {

namespace {

/// Columns whose changes are passed on to all columns behind them at once.
constexpr int64_t lazyColumns = 128;
/// Rounds in which units are removed, a few each time: those that are left then count without the others.
constexpr int64_t mostRounds = 10;

std::vector<int64_t> columnsOutside(KeepMask mask, int64_t width) {
  std::vector<int64_t> columns;
  for (int64_t c = 0; c < width; ++c)
    if (!(mask >> c & 1))
      columns.push_back(c);
  return columns;
}

Matrix inverseOf(const Matrix &m) {
  return m.llt().solve(Matrix::Identity(m.rows(), m.cols()));
}

/// Rounds to the nearest step; a tie goes to the even one.
double roundTo(double value, double scale, int64_t most) {
  return scale > 0 ? std::clamp(std::nearbyint(value / scale), -double(most), double(most)) * scale : 0;
}

} // namespace

Matrix inverseFactor(const Matrix &h) {
  // With the order of columns reversed, a lower factor is an upper one: H = R R^T, and U = R^-1.
  Matrix reversed = h.reverse();
  Matrix lower = reversed.llt().matrixL();
  Matrix upper = lower.reverse();
  return upper.triangularView<Eigen::Upper>().solve(Matrix::Identity(h.rows(), h.cols()));
}

Matrix costsOf(const Eigen::MatrixXd &w, const Matrix &inverse, const std::vector<KeepMask> &masks) {
  Matrix costs(w.rows(), int64_t(masks.size()));
  for (size_t m = 0; m < masks.size(); ++m) {
    std::vector<int64_t> out = columnsOutside(masks[m], w.cols());
    if (out.empty()) {
      costs.col(m).setZero();
      continue;
    }
    Eigen::MatrixXd part = w(Eigen::all, out);
    Matrix block = inverseOf(inverse(out, out));
    costs.col(m) = (part * block).cwiseProduct(part).rowwise().sum();
  }
  return costs;
}

PartSolver::PartSolver(const LayerProblem &problem, const LayerPart &part, const LayerPlan &plan)
    : shape(problem.shape), plan(plan), units(unitsOf(problem.shape, part, plan)) {
  std::vector<int64_t> columns = part.columnsOf(shape);
  for (int64_t place : units.order)
    layerColumns.push_back(columns[place]);
  int64_t perGroup = shape.outputsPerGroup(), count = int64_t(layerColumns.size());
  firstOutput = part.group * perGroup;
  original.resize(perGroup, count);
  for (int64_t o = 0; o < perGroup; ++o)
    for (int64_t c = 0; c < count; ++c)
      original(o, c) = problem.weights[(firstOutput + o) * shape.columns() + layerColumns[c]];
  weights = original;
  kept.setOnes(perGroup, count);
  if (plan.method == Method::Magnitude || part.moments.size() == 0)
    return;
  Matrix centred = part.moments, targets = part.targets;
  if (problem.hasBias) {
    centred -= part.means * part.means.transpose();
    targets -= part.targetMeans * part.means.transpose();
  }
  moments = centred(units.order, units.order);
  double mean = moments.diagonal().mean();
  if (!(mean > 0) || !std::isfinite(mean))
    return;
  double damping = std::max(problem.damping, 1e-6) * mean;
  moments.diagonal().array() += damping;
  factor = inverseFactor(moments);
  correlated = factor.allFinite();
  if (!correlated)
    return;
  // The best weights without zeros, drawn towards those of the model by the damping; without drift those.
  Matrix wanted = targets(Eigen::all, units.order) + damping * original;
  original = wanted * factor.transpose() * factor;
  weights = original;
}

Matrix PartSolver::inverseBlock(const Unit &unit) const {
  if (!correlated)
    return Matrix::Identity(unit.width, unit.width);
  auto columns = factor.block(0, unit.first, unit.first + unit.width, unit.width);
  return columns.transpose() * columns;
}

std::vector<KeepMask> PartSolver::planChoices(const Unit &unit, const std::vector<KeepMask> &table) const {
  return table.empty() ? choicesOf(plan, unit.width) : table;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// What removing a unit costs more than keeping its best choice, for each of some outputs.
Vector PartSolver::goneCosts(const Unit &unit, const Matrix &inverse, int64_t firstRow, int64_t count,
                             const std::vector<KeepMask> &table) const {
  Eigen::MatrixXd w = weights.block(firstRow, unit.first, count, unit.width);
  Vector gone = (w * inverseOf(inverse)).cwiseProduct(w).rowwise().sum();
  if (std::vector<KeepMask> choices = planChoices(unit, table); !choices.empty())
    gone -= costsOf(w, inverse, choices).rowwise().minCoeff();
  return gone;
}

Matrix PartSolver::removalCosts(const std::vector<KeepMask> &table) const {
  Matrix costs = Matrix::Constant(rowGroups(), int64_t(units.list.size()), -1);
  if (affordableRounds() == 1) {
    for (size_t u = 0; u < units.list.size(); ++u) {
      Vector gone = goneCosts(units.list[u], inverseBlock(units.list[u]), 0, rows(), table);
      costs.col(u).setZero();
      for (int64_t row = 0; row < rows(); ++row)
        costs(row / units.rowsAlike, u) += gone(row);
    }
    return costs;
  }
  for (int64_t group = 0; group < rowGroups(); ++group) {
    int64_t firstRow = group * units.rowsAlike;
    std::vector<int64_t> list = keptColumns(firstRow);
    Matrix inverse = list.empty() ? Matrix() : inverseOf(moments(list, list));
    int64_t at = 0; // of the unit among kept columns
    for (size_t u = 0; u < units.list.size(); ++u) {
      const Unit &unit = units.list[u];
      if (!kept(firstRow, unit.first))
        continue;
      Matrix block = inverse.block(at, at, unit.width, unit.width);
      costs(group, u) = goneCosts(unit, block, firstRow, rowsIn(group), table).sum();
      at += unit.width;
    }
  }
  return costs;
}

void PartSolver::remove(const std::vector<uint8_t> &which) {
  int64_t count = int64_t(units.list.size());
  for (int64_t group = 0; group < rowGroups(); ++group)
    for (int64_t u = 0; u < count; ++u)
      if (which[group * count + u]) {
        const Unit &unit = units.list[u];
        kept.block(group * units.rowsAlike, unit.first, rowsIn(group), unit.width).setZero();
      }
  if (affordableRounds() > 1)
    refit();
}

int64_t PartSolver::affordableRounds() const {
  if (!correlated || !units.removable)
    return 1;
  // An inverse for each row group takes three times as long as a factor; all columns are the worst case.
  double size = double(columns());
  double cost = double(rowGroups()) * (size * size * size * 4 / 3 + 2 * size * size * double(units.rowsAlike));
  return std::clamp<int64_t>(int64_t(2 * refitLimit / cost), 1, mostRounds);
}

void PartSolver::patternCosts(const std::vector<KeepMask> &patterns, int64_t every,
                              std::vector<std::vector<double>> &costs) const {
  for (size_t u = 0; u < units.list.size(); ++u) {
    const Unit &unit = units.list[u];
    std::vector<int64_t> chosen;
    for (int64_t row = int64_t(u) % every; row < rows(); row += every)
      chosen.push_back(row);
    if (chosen.empty())
      continue;
    Eigen::MatrixXd all = weights.middleCols(unit.first, unit.width);
    Matrix found = costsOf(all(chosen, Eigen::all), inverseBlock(unit), patterns);
    for (int64_t r = 0; r < found.rows(); ++r)
      costs.emplace_back(found.row(r).begin(), found.row(r).end());
  }
}

void PartSolver::patternVotes(int64_t entries, std::vector<KeepMask> &votes) const {
  for (const Unit &unit : units.list) {
    Vector diagonal = inverseBlock(unit).diagonal();
    for (int64_t row = 0; row < rows(); ++row) {
      std::vector<int64_t> places(unit.width);
      std::iota(places.begin(), places.end(), 0);
      auto saliency = [&](int64_t c) { return std::pow(weights(row, unit.first + c), 2) / diagonal(c); };
      std::sort(places.begin(), places.end(),
                [&](int64_t a, int64_t b) { return std::pair(-saliency(a), a) < std::pair(-saliency(b), b); });
      KeepMask mask = 0;
      for (int64_t i = 0; i < entries; ++i)
        mask |= KeepMask(1) << places[i];
      votes.push_back(mask);
    }
  }
}

//===----------------------------------------------------------------------===//
// Zeros
//===----------------------------------------------------------------------===//

/// Of a unit too wide for all its choices: the columns with the largest saliencies, each for itself.
void PartSolver::keepLargest(const Unit &unit, const Vector &diagonal, int64_t firstRow, int64_t count) {
  std::vector<double> saliency(unit.width, 0);
  for (int64_t c = 0; c < unit.width; ++c)
    for (int64_t row = firstRow; row < firstRow + count; ++row)
      saliency[c] += std::pow(weights(row, unit.first + c), 2) / diagonal(c);
  std::vector<int64_t> places(unit.width);
  std::iota(places.begin(), places.end(), 0);
  std::sort(places.begin(), places.end(),
            [&](int64_t a, int64_t b) { return std::pair(-saliency[a], a) < std::pair(-saliency[b], b); });
  for (int64_t i = plan.kept; i < unit.width; ++i)
    kept.block(firstRow, unit.first + places[i], count, 1).setZero();
}

void PartSolver::choose(const Unit &unit, const std::vector<KeepMask> &table) {
  Matrix inverse = Matrix::Identity(unit.width, unit.width);
  if (correlated) {
    auto block = factor.block(unit.first, unit.first, unit.width, unit.width);
    inverse = block.transpose() * block;
  }
  std::vector<KeepMask> choices = planChoices(unit, table);
  if (choices.empty() && plan.structure != Structure::NM)
    return;
  Matrix costs;
  if (!choices.empty())
    costs = costsOf(weights.middleCols(unit.first, unit.width), inverse, choices);
  for (int64_t group = 0; group < rowGroups(); ++group) {
    int64_t firstRow = group * units.rowsAlike, count = rowsIn(group);
    if (!kept(firstRow, unit.first))
      continue; // removed
    if (choices.empty()) {
      keepLargest(unit, inverse.diagonal(), firstRow, count);
      continue;
    }
    Eigen::Index best;
    costs.middleRows(firstRow, count).colwise().sum().minCoeff(&best);
    for (int64_t c : columnsOutside(choices[best], unit.width))
      kept.block(firstRow, unit.first + c, count, 1).setZero();
  }
}

void PartSolver::prune(const std::vector<KeepMask> &table) {
  int64_t unitCount = int64_t(units.list.size());
  for (int64_t u = 0; u < unitCount;) {
    int64_t begin = units.list[u].first, last = u, end = begin;
    for (; last < unitCount && end - begin < lazyColumns; ++last)
      end = units.list[last].first + units.list[last].width;
    Eigen::MatrixXd changes(rows(), end - begin);
    for (; u < last; ++u) {
      const Unit &unit = units.list[u];
      choose(unit, table);
      for (int64_t j = unit.first; j < unit.first + unit.width; ++j) {
        Vector zeroed = weights.col(j).cwiseProduct(kept.col(j).cast<double>());
        Vector change = weights.col(j) - zeroed;
        weights.col(j) = zeroed;
        if (!correlated)
          continue;
        changes.col(j - begin) = change / factor(j, j);
        weights.middleCols(j + 1, end - j - 1) -= changes.col(j - begin) * factor.row(j).segment(j + 1, end - j - 1);
      }
    }
    if (correlated && end < columns())
      weights.rightCols(columns() - end) -= changes * factor.block(begin, end, end - begin, columns() - end);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::vector<std::vector<int64_t>> PartSolver::rowsByMask() const {
  std::map<std::string, std::vector<int64_t>> byMask;
  for (int64_t row = 0; row < rows(); ++row) {
    std::string key(columns(), 0);
    for (int64_t c = 0; c < columns(); ++c)
      key[c] = char(kept(row, c));
    byMask[key].push_back(row);
  }
  std::vector<std::vector<int64_t>> groups;
  for (auto &[key, group] : byMask)
    groups.push_back(std::move(group));
  return groups;
}

std::vector<int64_t> PartSolver::keptColumns(int64_t row) const {
  std::vector<int64_t> list;
  for (int64_t c = 0; c < columns(); ++c)
    if (kept(row, c))
      list.push_back(c);
  return list;
}

double PartSolver::refitCost(const std::vector<std::vector<int64_t>> &groups) const {
  double cost = 0;
  for (const std::vector<int64_t> &group : groups) {
    double size = double(keptColumns(group[0]).size());
    cost += size * size * size / 3 + 2 * size * double(columns()) * double(group.size());
  }
  return cost;
}

void PartSolver::refit() {
  if (!canRefit())
    return;
  for (const std::vector<int64_t> &group : rowsByMask()) {
    std::vector<int64_t> columnList = keptColumns(group[0]);
    if (columnList.empty())
      continue;
    Matrix wanted = original(group, Eigen::all) * moments(Eigen::all, columnList);
    Matrix block = moments(columnList, columnList);
    Matrix best = block.llt().solve(wanted.transpose()).transpose();
    if (best.allFinite())
      weights(group, columnList) = best;
  }
}

double PartSolver::scaleAt(const Scales &scales, int64_t row, int64_t column) const {
  int64_t at = layerColumns[column];
  return scales.values[scales.indexOf(shape, firstOutput + row, at / shape.channels, at % shape.channels)];
}

void PartSolver::quantise(const Scales &scales) {
  int64_t most = largestStep(plan.bits);
  std::vector<std::vector<int64_t>> groups = rowsByMask();
  // With a factor for each mask, changes are made up for by kept weights only; else those of weights that go are
  // made up for once more.
  bool each = correlated && 3 * refitCost(groups) <= refitLimit;
  if (!each) {
    groups.assign(1, std::vector<int64_t>(rows()));
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  for (const std::vector<int64_t> &group : groups) {
    std::vector<int64_t> list = each ? keptColumns(group[0]) : std::vector<int64_t>(columns());
    if (!each)
      std::iota(list.begin(), list.end(), 0);
    if (list.empty())
      continue;
    Eigen::MatrixXd w = weights(group, list);
    Matrix own = each ? inverseFactor(moments(list, list)) : factor;
    for (int64_t j = 0; j < int64_t(list.size()); ++j) {
      Vector rounded(w.rows());
      for (int64_t r = 0; r < w.rows(); ++r)
        rounded(r) = kept(group[r], list[j]) ? roundTo(w(r, j), scaleAt(scales, group[r], list[j]), most) : 0;
      Vector change = w.col(j) - rounded;
      w.col(j) = rounded;
      if (int64_t behind = w.cols() - j - 1; correlated && behind > 0)
        w.rightCols(behind) -= change / own(j, j) * own.row(j).segment(j + 1, behind);
    }
    weights(group, list) = w;
  }
}

void PartSolver::store(LayerSolution &solution) const {
  for (int64_t row = 0; row < rows(); ++row)
    for (int64_t c = 0; c < columns(); ++c) {
      size_t at = size_t((firstOutput + row) * shape.columns() + layerColumns[c]);
      solution.weights[at] = kept(row, c) ? float(weights(row, c)) : 0.f;
      solution.kept[at] = kept(row, c);
    }
}

} // namespace ajour::compress
