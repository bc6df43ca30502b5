/// Structures of convolution filters: patterns of window positions (PatDNN's FKW) and punched blocks (YOLObile).
#include <algorithm>
#include <numeric>

#include "Structures.h"

namespace ajour::encoding {

static std::string checkWindow(const WeightShape &shape) {
  if (shape.window() > 32)
    return "window has " + number(shape.window()) + " positions; at most 32 can be told apart";
  return "";
}

/// The column of a window position and channel: filters are [kh][kw][I].
static int64_t columnOf(const WeightShape &shape, int64_t position, int64_t channel) {
  return position * shape.channels() + channel;
}

//===----------------------------------------------------------------------===//
// Pattern
//===----------------------------------------------------------------------===//

static constexpr size_t maxPatterns = 64;

static std::string checkPattern(const Structure &s, const WeightShape &shape) {
  if (std::string error = checkWindow(shape); !error.empty())
    return error;
  if (s.patterns.empty() || s.patterns.size() > maxPatterns)
    return "patterns has " + number(s.patterns.size()) + " entries; 1 to 64 can be told apart";
  std::vector<int64_t> sorted = s.patterns;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return "patterns has an entry twice";
  if (sorted.front() < 1 || sorted.back() >= int64_t(1) << shape.window())
    return "patterns has an entry that is not a set of the " + number(shape.window()) + " window positions";
  return "";
}

/// The smallest pattern that has all of a kernel's weights; -1: none.
static int choosePattern(const Structure &s, uint32_t kernel) {
  int best = -1;
  for (size_t p = 0; p < s.patterns.size(); ++p) {
    const uint32_t pattern = static_cast<uint32_t>(s.patterns[p]);
    if ((kernel & ~pattern) == 0 &&
        (best < 0 || std::popcount(pattern) < std::popcount(static_cast<uint32_t>(s.patterns[best]))))
      best = static_cast<int>(p);
  }
  return best;
}

static void addKernel(Positions &positions, const WeightShape &shape, int64_t filter, int64_t channel, uint32_t pattern) {
  for (; pattern != 0; pattern &= pattern - 1)
    positions.add(shape, filter, columnOf(shape, std::countr_zero(pattern), channel));
}

/// For each filter, those with most kernels first: its number, then for each pattern how many kernels have it and of which channels.
static std::string writePattern(const Structure &s, const Mask &mask, BitWriter &index, Positions &positions) {
  const WeightShape &shape = mask.shape;
  const int64_t channels = shape.channels();
  std::vector<std::vector<std::vector<int64_t>>> kernels(shape.n); // [filter][pattern]: channels
  std::vector<int64_t> kept(shape.n), order(shape.n);
  for (int64_t f = 0; f < shape.n; ++f) {
    kernels[f].resize(s.patterns.size());
    for (int64_t c = 0; c < channels; ++c) {
      uint32_t kernel = 0;
      for (int64_t p = 0; p < shape.window(); ++p)
        kernel |= uint32_t(mask.at(f, columnOf(shape, p, c))) << p;
      if (kernel == 0)
        continue;
      const int pattern = choosePattern(s, kernel);
      if (pattern < 0)
        return "the kernel of filter " + number(f) + ", channel " + number(c) + " has none of the patterns";
      kernels[f][pattern].push_back(c);
      ++kept[f];
    }
  }
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return kept[a] != kept[b] ? kept[a] > kept[b] : a < b; });
  for (int64_t f : order) {
    index.put(f, bitsFor(shape.n - 1));
    for (size_t p = 0; p < s.patterns.size(); ++p) {
      index.put(kernels[f][p].size(), bitsFor(channels));
      for (int64_t c : kernels[f][p]) {
        index.put(c, bitsFor(channels - 1));
        addKernel(positions, shape, f, c, static_cast<uint32_t>(s.patterns[p]));
      }
    }
  }
  return "";
}

static std::string readPattern(const Structure &s, const WeightShape &shape, BitReader &index, Positions &positions) {
  const int64_t channels = shape.channels();
  std::vector<bool> hasFilter(shape.n), hasChannel;
  for (int64_t i = 0; i < shape.n; ++i) {
    const int64_t f = index.get(bitsFor(shape.n - 1));
    if (f >= shape.n || hasFilter[f])
      return "filter " + number(i) + " in order is " + number(f) + ", which is not there or was there before";
    hasFilter[f] = true;
    hasChannel.assign(channels, false);
    for (int64_t pattern : s.patterns) {
      const int64_t count = index.get(bitsFor(channels));
      for (int64_t j = 0; j < count; ++j) {
        const int64_t c = index.get(bitsFor(channels - 1));
        if (!index.good() || !positions.fits(std::popcount(static_cast<uint64_t>(pattern))))
          return "fewer index bits or values than filter " + number(f) + " needs";
        if (c >= channels || hasChannel[c])
          return "filter " + number(f) + ": channel " + number(c) + " is not there or was there before";
        hasChannel[c] = true;
        addKernel(positions, shape, f, c, static_cast<uint32_t>(pattern));
      }
    }
    if (!index.good())
      return "fewer index bits than filter " + number(f) + " needs";
  }
  return "";
}

static std::string describePattern(const Structure &s, const WeightShape &shape) {
  int64_t most = 0;
  for (int64_t pattern : s.patterns)
    most = std::max<int64_t>(most, std::popcount(static_cast<uint64_t>(pattern)));
  return number(s.patterns.size()) + (s.patterns.size() == 1 ? " pattern of " : " patterns of ") + number(most) + " in " +
         number(shape.kh) + "x" + number(shape.kw);
}

//===----------------------------------------------------------------------===//
// Block-punched
//===----------------------------------------------------------------------===//

static std::string checkPunched(const Structure &s, const WeightShape &shape) {
  for (int64_t size : {s.blockFilters, s.blockChannels})
    if (size < 1 || size > INT32_MAX)
      return "filters and channels are " + number(s.blockFilters) + " and " + number(s.blockChannels) +
             "; a block has at least one";
  return checkWindow(shape);
}

/// Calls `each` with the first and last filter and channel of each block.
template <typename Fn> static std::string forEachBlock(const Structure &s, const WeightShape &shape, Fn &&each) {
  for (int64_t f = 0; f < shape.n; f += s.blockFilters)
    for (int64_t c = 0; c < shape.channels(); c += s.blockChannels)
      if (std::string error = each(f, std::min(f + s.blockFilters, shape.n), c,
                                   std::min(c + s.blockChannels, shape.channels()));
          !error.empty())
        return error;
  return "";
}

static void addBlock(Positions &positions, const WeightShape &shape, uint32_t kept, int64_t f, int64_t fEnd, int64_t c,
                     int64_t cEnd) {
  for (; kept != 0; kept &= kept - 1)
    for (int64_t filter = f; filter < fEnd; ++filter)
      for (int64_t channel = c; channel < cEnd; ++channel)
        positions.add(shape, filter, columnOf(shape, std::countr_zero(kept), channel));
}

static std::string writePunched(const Structure &s, const Mask &mask, BitWriter &index, Positions &positions) {
  const WeightShape &shape = mask.shape;
  return forEachBlock(s, shape, [&](int64_t f, int64_t fEnd, int64_t c, int64_t cEnd) {
    uint32_t kept = 0;
    for (int64_t p = 0; p < shape.window(); ++p)
      for (int64_t filter = f; filter < fEnd; ++filter)
        for (int64_t channel = c; channel < cEnd; ++channel)
          kept |= uint32_t(mask.at(filter, columnOf(shape, p, channel))) << p;
    index.put(kept, shape.window());
    addBlock(positions, shape, kept, f, fEnd, c, cEnd);
    return std::string();
  });
}

static std::string readPunched(const Structure &s, const WeightShape &shape, BitReader &index, Positions &positions) {
  return forEachBlock(s, shape, [&](int64_t f, int64_t fEnd, int64_t c, int64_t cEnd) {
    const uint32_t kept = static_cast<uint32_t>(index.get(shape.window()));
    if (!index.good() || !positions.fits(uint64_t(std::popcount(kept)) * (fEnd - f) * (cEnd - c)))
      return "fewer index bits or values than the block of filter " + number(f) + ", channel " + number(c) + " needs";
    addBlock(positions, shape, kept, f, fEnd, c, cEnd);
    return std::string();
  });
}

static constexpr FieldRow patternFields[] = {{"patterns", nullptr, &Structure::patterns}};
static constexpr FieldRow punchedFields[] = {{"filters", &Structure::blockFilters},
                                             {"channels", &Structure::blockChannels}};

const StructureRow patternRow = {StructureKind::Pattern, "pattern",   patternFields, checkPattern,
                                 writePattern,           readPattern, nullptr,       describePattern};
const StructureRow blockPunchedRow = {
    StructureKind::BlockPunched, "block_punched", punchedFields, checkPunched, writePunched, readPunched, nullptr,
    [](const Structure &s, const WeightShape &shape) {
      return "punched blocks of " + number(s.blockFilters) + " filters x " + number(s.blockChannels) + " channels in " +
             number(shape.kh) + "x" + number(shape.kw);
    }};

} // namespace ajour::encoding
