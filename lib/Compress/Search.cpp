//===- Search.cpp - shares of zeros for a target time -----------------------------===//
#include "Search.h"

#include <algorithm>
#include <limits>

namespace ajour::compress {

std::vector<LayerPlan> plansUpTo(const LayerPlan &most) {
  constexpr double shares[] = {0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95};
  double LayerPlan::*field = most.structure == Structure::Pattern ? &LayerPlan::connectivity : &LayerPlan::ratio;
  if (most.structure != Structure::Pattern && most.structure != Structure::Block && most.structure != Structure::Unstructured)
    return {most};
  LayerPlan dense = most;
  dense.structure = Structure::Dense;
  std::vector<LayerPlan> plans{dense};
  auto add = [&](double share) {
    plans.push_back(most);
    plans.back().*field = share;
  };
  if (most.structure == Structure::Pattern && most.connectivity > 0)
    add(0);
  for (double share : shares)
    if (share < most.*field)
      add(share);
  add(most.*field);
  return plans;
}

std::vector<size_t> searchChoices(const std::vector<std::vector<Choice>> &layers, double target) {
  std::vector<size_t> chosen(layers.size(), 0);
  double total = 0;
  for (const std::vector<Choice> &choices : layers)
    total += choices[0].time;
  while (total > target) {
    double least = std::numeric_limits<double>::max();
    size_t layer = layers.size(), choice = 0;
    for (size_t l = 0; l < layers.size(); ++l) {
      const Choice &now = layers[l][chosen[l]];
      for (size_t c = 0; c < layers[l].size(); ++c) {
        const Choice &next = layers[l][c];
        if (next.time >= now.time)
          continue;
        double price = (next.error * next.error - now.error * now.error) / (now.time - next.time);
        if (price < least) {
          least = price;
          layer = l;
          choice = c;
        }
      }
    }
    if (layer == layers.size())
      return {};
    total += layers[layer][choice].time - layers[layer][chosen[layer]].time;
    chosen[layer] = choice;
  }
  // The last changes may have saved more than was needed: what fits goes back, the largest errors first.
  for (bool changed = true; changed;) {
    changed = false;
    double most = 0;
    size_t layer = 0, choice = 0;
    for (size_t l = 0; l < layers.size(); ++l)
      for (size_t c = 0; c < layers[l].size(); ++c) {
        const Choice &now = layers[l][chosen[l]], &other = layers[l][c];
        double gain = now.error * now.error - other.error * other.error;
        if (gain > most && total - now.time + other.time <= target) {
          most = gain;
          layer = l;
          choice = c;
          changed = true;
        }
      }
    if (changed) {
      total += layers[layer][choice].time - layers[layer][chosen[layer]].time;
      chosen[layer] = choice;
    }
  }
  return chosen;
}

} // namespace ajour::compress
