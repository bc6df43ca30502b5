//===- Units.h - which weights a structure decides on together -*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_UNITS_H
#define AJOUR_LIB_COMPRESS_UNITS_H

#include "Solver.h"

namespace ajour::compress {

/// Bits of a unit's columns that are kept.
using KeepMask = uint64_t;

/// A unit is a run of columns that a structure decides on at once, for `rowsAlike` outputs together.
struct Unit {
  int64_t first = 0, width = 1;
};

/// The order of a part's columns in which every unit is a run, and the units.
struct Units {
  std::vector<int64_t> order; ///< column of the part ([taps][count]) at each place
  std::vector<Unit> list;
  int64_t rowsAlike = 1;
  /// A unit may go as a whole, for a budget over the layer.
  bool removable = false;
};

Units unitsOf(const LayerShape &shape, const LayerPart &part, const LayerPlan &plan);

/// What a kept unit of `width` columns may keep: masks over its columns. One mask of all ones where the structure only
/// removes whole units. Not for patterns, whose table depends on the weights.
std::vector<KeepMask> choicesOf(const LayerPlan &plan, int64_t width);

/// All patterns with this many of `taps` bits.
std::vector<KeepMask> subsets(int64_t taps, int64_t count);

/// The share of removable units that must go.
double removedShare(const LayerPlan &plan);

} // namespace ajour::compress

#endif
