//===- Solver.h - zeros and steps for the weights of one layer -*- C++ -*-===//
//
// A layer computes y = W x for many x. When layers before it have changed, it is given z instead of x, and new weights V should
// bring V z near to y. With H the mean of z z^T and T that of y z^T, the mean square of the difference is
// mean(y^2) - 2 trace(T V^T) + trace(V H V^T), so everything about the data is in H and T; without drift T is W H, and it is
// trace((V - W) H (V - W)^T). Sources: optimal brain surgeon (Hassibi, Stork 1993), and its form
// by columns in GPTQ and SparseGPT (Frantar et al. 2022, 2023): zeros are chosen by what they cost after the
// best compensation, column by column, and each column's change is made up for by the columns behind it.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_COMPRESS_SOLVER_H
#define AJOUR_LIB_COMPRESS_SOLVER_H

#include "ajour/Compress/Recipe.h"

#include <Eigen/Core>

#include <vector>

namespace ajour::compress {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// How the weights of a layer lie: [outputs][taps][channels], `channels` those of one group; a matrix has one tap.
struct LayerShape {
  int64_t outputs = 1, groups = 1, taps = 1, channels = 1;
  int64_t columns() const { return taps * channels; }
  int64_t outputsPerGroup() const { return outputs / groups; }
};

/// Inputs that are treated together: channels [first, first + count) of one group at all taps. Several parts of a group
/// have nothing to do with each other, as if the inputs of different parts were not correlated.
struct LayerPart {
  int64_t group = 0, first = 0, count = 0;
  Matrix moments; ///< H: mean of z z^T, z as [taps][count]; empty: no data
  Vector means;   ///< mean of z
  Matrix targets; ///< T: mean of y z^T, [outputs of the group][taps][count], y the part's share of the outputs
  Vector targetMeans, targetSquares; ///< of y

  /// Column of the layer ([taps][channels]) for each of the part's.
  std::vector<int64_t> columnsOf(const LayerShape &shape) const;
};

/// The parts of a layer; none has more than `mostColumns` columns, where that is possible.
std::vector<LayerPart> partsOf(const LayerShape &shape, int64_t mostColumns);

struct LayerProblem {
  LayerShape shape;
  std::vector<float> weights;
  std::vector<LayerPart> parts;
  bool hasBias = false; ///< the mean of the output's change can go into the bias
  double damping = 0.01;
  std::vector<float> scales; ///< one for each output that steps must have; empty: they are chosen
};

struct LayerSolution {
  std::vector<float> weights;   ///< as they stand for: after rounding to steps
  std::vector<uint8_t> kept;    ///< for each weight whether it may be other than zero
  std::vector<float> biasDelta; ///< to add to the bias; empty: nothing
  std::vector<int8_t> steps;    ///< with bits: weight = step * scale
  std::vector<float> scales;    ///< with bits: [outputs], or with groups [outputs][taps][ceil(channels / group)]
  double error = -1;            ///< see LayerReport
};

/// Why this structure cannot be had in a layer of this shape; empty: it can.
std::string obstacle(const LayerShape &shape, const LayerPlan &plan);

/// Chooses zeros and steps and compensates for them, as the plan says.
LayerSolution solve(const LayerProblem &problem, const LayerPlan &plan);

/// Sets the targets of parts whose inputs have not drifted: y = W z.
void setTargets(LayerProblem &problem);

/// The relative error at the output of changed weights (LayerReport); -1 without data.
double outputError(const LayerProblem &problem, const std::vector<float> &changed, bool correctsBias);

/// The scale of each group of weights: the layout of LayerSolution::scales, for the step of each weight.
struct Scales {
  int64_t group = 0, groupsPerTap = 1;
  std::vector<float> values;
  int64_t indexOf(const LayerShape &shape, int64_t output, int64_t tap, int64_t channel) const {
    return group ? (output * shape.taps + tap) * groupsPerTap + channel / group : output;
  }
};

/// Symmetric scales for weights of `bits` bits. For fewer than 8 bits the scale with the smallest square error, weighted
/// with the inputs' mean squares (`importance`, one for each weight of a row; empty: equal).
Scales chooseScales(const LayerShape &shape, const std::vector<float> &weights, int64_t bits, int64_t group,
                    const std::vector<double> &importance);

/// Largest step of `bits` bits; the lowest is its negative.
inline int64_t largestStep(int64_t bits) { return (int64_t(1) << (bits - 1)) - 1; }

} // namespace ajour::compress

#endif
