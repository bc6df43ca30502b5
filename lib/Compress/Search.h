//===- Search.h - shares of zeros for a target time -------------*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_SEARCH_H
#define AJOUR_LIB_COMPRESS_SEARCH_H

#include "ajour/Compress/Recipe.h"

#include <vector>

namespace ajour::compress {

/// One way to make a layer.
struct Choice {
  LayerPlan plan;
  double error = 0; ///< relative, at its output
  double time = 0;
};

/// The plans to try for a layer whose rule is this one: dense, then with more and more zeros, at most as many as the rule says. Only the plan itself
/// where a structure has no share to choose.
std::vector<LayerPlan> plansUpTo(const LayerPlan &most);

/// Takes for each layer one of its choices (the first is the starting point), so that times add up to at most `target`: again and again the
/// change that adds the least square of error for the time that it saves, and at the end back what still fits. Returns the chosen indices; empty if no
/// choices are fast enough.
std::vector<size_t> searchChoices(const std::vector<std::vector<Choice>> &layers, double target);

} // namespace ajour::compress

#endif
