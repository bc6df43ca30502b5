//===- Units.cpp - which weights a structure decides on together --------------===//
#include "Units.h"

#include <algorithm>
#include <numeric>

namespace ajour::compress {

std::vector<int64_t> LayerPart::columnsOf(const LayerShape &shape) const {
  std::vector<int64_t> columns;
  for (int64_t tap = 0; tap < shape.taps; ++tap)
    for (int64_t c = 0; c < count; ++c)
      columns.push_back(tap * shape.channels + first + c);
  return columns;
}

std::vector<LayerPart> partsOf(const LayerShape &shape, int64_t mostColumns) {
  // A multiple of 32 keeps runs of channels whole for every structure.
  int64_t channels = std::max<int64_t>(mostColumns / shape.taps / 32 * 32, 32);
  std::vector<LayerPart> parts;
  for (int64_t group = 0; group < shape.groups; ++group)
    for (int64_t first = 0; first < shape.channels; first += channels) {
      LayerPart part;
      part.group = group;
      part.first = first;
      part.count = std::min(channels, shape.channels - first);
      parts.push_back(std::move(part));
    }
  return parts;
}

std::string obstacle(const LayerShape &shape, const LayerPlan &plan) {
  auto number = [](int64_t value) { return std::to_string(value); };
  switch (plan.structure) {
  case Structure::C4n:
  case Structure::NM: {
    int64_t kept = plan.structure == Structure::C4n ? 4 - plan.pruned : plan.kept;
    if (shape.channels <= kept)
      return "it has " + number(shape.channels) + " inputs for each output, of which " + number(kept) + " are kept in any case";
    return "";
  }
  case Structure::Pattern:
    if (shape.taps <= plan.entries)
      return "its kernel has " + number(shape.taps) + " taps, a pattern keeps " + number(plan.entries);
    if (shape.taps > 25)
      return "its kernel has " + number(shape.taps) + " taps, patterns are for at most 25";
    return "";
  default:
    return "";
  }
}

Units unitsOf(const LayerShape &shape, const LayerPart &part, const LayerPlan &plan) {
  Units units;
  if (plan.structure == Structure::Pattern) {
    for (int64_t c = 0; c < part.count; ++c) {
      units.list.push_back({c * shape.taps, shape.taps});
      for (int64_t tap = 0; tap < shape.taps; ++tap)
        units.order.push_back(tap * part.count + c);
    }
    units.removable = plan.connectivity > 0;
    return units;
  }
  units.order.resize(shape.taps * part.count);
  std::iota(units.order.begin(), units.order.end(), 0);
  int64_t width = plan.structure == Structure::C4n     ? 4
                  : plan.structure == Structure::NM    ? plan.of
                  : plan.structure == Structure::Block ? std::min(plan.cols, part.count)
                                                       : 1;
  for (int64_t tap = 0; tap < shape.taps; ++tap)
    for (int64_t c = 0; c < part.count; c += width)
      units.list.push_back({tap * part.count + c, std::min(width, part.count - c)});
  units.rowsAlike = plan.structure == Structure::C4n ? plan.share : plan.structure == Structure::Block ? plan.rows : 1;
  units.removable = plan.structure == Structure::Block || plan.structure == Structure::Unstructured;
  return units;
}

std::vector<KeepMask> subsets(int64_t taps, int64_t count) {
  std::vector<KeepMask> masks;
  for (KeepMask mask = 0; mask < (KeepMask(1) << taps); ++mask)
    if (__builtin_popcountll(mask) == count)
      masks.push_back(mask);
  return masks;
}

std::vector<KeepMask> choicesOf(const LayerPlan &plan, int64_t width) {
  if (plan.structure == Structure::C4n)
    return subsets(width, std::min(width, 4 - plan.pruned));
  if (plan.structure == Structure::NM && plan.of <= 8)
    return subsets(width, std::min(width, plan.kept));
  return {};
}

double removedShare(const LayerPlan &plan) {
  return plan.structure == Structure::Pattern ? plan.connectivity : plan.ratio;
}

} // namespace ajour::compress
