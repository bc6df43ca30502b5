//===- PartSolver.h - the weights of one part of a layer -------*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_PARTSOLVER_H
#define AJOUR_LIB_COMPRESS_PARTSOLVER_H

#include "Units.h"

namespace ajour::compress {

/// Upper U with U^T U = H^-1, for a positive definite H. The block of U from place i on then belongs to the inverse of
/// the block of H from i on, which is what is left once the columns before i are settled.
Matrix inverseFactor(const Matrix &h);

/// What a unit costs for each output: w_S (C_SS)^-1 w_S^T for the columns S that a mask does not keep, where C is the inverse of
/// the moments: the least square error after the best compensation. `w` is [outputs][width], the result
/// [outputs][masks].
Matrix costsOf(const Eigen::MatrixXd &w, const Matrix &inverse, const std::vector<KeepMask> &masks);

/// Zeros and steps for the weights of one part.
class PartSolver {
public:
  PartSolver(const LayerProblem &problem, const LayerPart &part, const LayerPlan &plan);

  int64_t rowGroups() const { return (rows() + units.rowsAlike - 1) / units.rowsAlike; }
  const std::vector<Unit> &unitList() const { return units.list; }
  bool removable() const { return units.removable; }
  /// Weights in a row group and a unit.
  int64_t elements(int64_t rowGroup, int64_t unit) const { return rowsIn(rowGroup) * units.list[unit].width; }

  /// What removing each unit costs more than keeping its best choice: [row groups][units]; -1 for those that have gone.
  Matrix removalCosts(const std::vector<KeepMask> &choices) const;
  /// Removes units, given as [row groups][units], and brings the other weights up to date where refit() can.
  void remove(const std::vector<uint8_t> &units);
  /// How often removalCosts and refit can be called in turn within the time that a part may take; 1 where neither follows
  /// what has been removed.
  int64_t affordableRounds() const;
  /// Adds each kernel's costs of these patterns to `costs`, for one in `every` kernels.
  void patternCosts(const std::vector<KeepMask> &patterns, int64_t every, std::vector<std::vector<double>> &costs) const;
  /// The entries with the largest saliencies of each kernel.
  void patternVotes(int64_t entries, std::vector<KeepMask> &votes) const;

  /// Chooses what is kept of each unit that has not gone, compensating column by column. `table`: the choices; empty: those
  /// of the plan.
  void prune(const std::vector<KeepMask> &table);
  /// The best weights for what is kept, exactly; left out where it would take too long.
  void refit();
  /// Rounds to steps of these scales, compensating column by column.
  void quantise(const Scales &scales);

  void store(LayerSolution &solution) const;

  /// Floating point operations that one exact refit of a part may take: some tens of seconds.
  static constexpr double refitLimit = 1e11;

private:
  int64_t rows() const { return weights.rows(); }
  int64_t columns() const { return weights.cols(); }
  int64_t rowsIn(int64_t rowGroup) const { return std::min(units.rowsAlike, rows() - rowGroup * units.rowsAlike); }
  std::vector<KeepMask> planChoices(const Unit &unit, const std::vector<KeepMask> &table) const;
  Matrix inverseBlock(const Unit &unit) const;
  void choose(const Unit &unit, const std::vector<KeepMask> &table);
  Vector goneCosts(const Unit &unit, const Matrix &inverse, int64_t firstRow, int64_t count,
                   const std::vector<KeepMask> &table) const;
  void keepLargest(const Unit &unit, const Vector &diagonal, int64_t firstRow, int64_t count);
  /// Rows with equal masks, and what working on each alone would cost.
  std::vector<std::vector<int64_t>> rowsByMask() const;
  double refitCost(const std::vector<std::vector<int64_t>> &groups) const;
  bool canRefit() const { return correlated && refitCost(rowsByMask()) <= refitLimit; }
  std::vector<int64_t> keptColumns(int64_t row) const;
  double scaleAt(const Scales &scales, int64_t row, int64_t column) const;

  LayerShape shape;
  LayerPlan plan;
  Units units;
  int64_t firstOutput = 0;
  std::vector<int64_t> layerColumns; ///< of the layer, for each place
  bool correlated = false;           ///< else moments are those of independent inputs of equal size
  Matrix moments, factor;            ///< damped, in the order of places
  Eigen::MatrixXd original, weights; ///< [outputs][places]
  Eigen::Matrix<uint8_t, Eigen::Dynamic, Eigen::Dynamic> kept;
};

} // namespace ajour::compress

#endif
