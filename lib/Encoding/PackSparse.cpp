#include "ajour/Encoding/PackSparse.h"

#include <array>
#include <cassert>

namespace ajour::encoding {

namespace {

template <typename T> class Packer {
public:
  Packer(const SparsePlan &plan, const T *weights) : plan(plan), weights(weights) {}

  PackedSparse<T> run() {
    for (int64_t first = 0; first < plan.channels; first += plan.chunk)
      for (int64_t filter = 0; filter < plan.filters; filter += plan.group)
        plan.runs ? addRuns(first, filter) : addEntries(first, filter);
    if (!plan.runs)
      packed.index.push_back(packed.inputs.size());
    return std::move(packed);
  }

private:
  T weight(int64_t filter, int64_t ky, int64_t kx, int64_t channel) const {
    return filter < plan.filters ? weights[((filter * plan.kh + ky) * plan.kw + kx) * plan.channels + channel] : T(0);
  }

  /// All taps of a chunk: fn(channel in the chunk, channel, kx), window columns innermost.
  template <typename Fn> void forColumns(int64_t first, Fn fn) const {
    for (int64_t c = 0; c < plan.chunk && first + c < plan.channels; ++c)
      for (int64_t kx = 0; kx < plan.kw; ++kx)
        fn(c, first + c, kx);
  }

  void addEntries(int64_t first, int64_t filter) {
    packed.index.push_back(packed.inputs.size());
    forColumns(first, [&](int64_t c, int64_t channel, int64_t kx) {
      for (int64_t ky = 0; ky < plan.kh; ++ky) {
        bool any = false;
        for (int64_t r = 0; r < plan.group; ++r)
          any |= weight(filter + r, ky, kx, channel) != T(0);
        if (!any)
          continue;
        packed.inputs.push_back(plan.unit(c, ky, kx));
        for (int64_t r = 0; r < plan.group; ++r)
          packed.weights.push_back(weight(filter + r, ky, kx, channel));
      }
    });
  }

  /// Entries of one, two and three taps. Window rows of one phase read successive units.
  void addRuns(int64_t first, int64_t filter) {
    std::array<std::vector<uint16_t>, 3> inputs;
    std::array<std::vector<T>, 3> taps;
    std::vector<T> run;
    auto close = [&](int64_t after) {
      if (run.empty())
        return;
      inputs[run.size() - 1].push_back(after - run.size());
      taps[run.size() - 1].insert(taps[run.size() - 1].end(), run.begin(), run.end());
      run.clear();
    };
    forColumns(first, [&](int64_t c, int64_t channel, int64_t kx) {
      for (int64_t phase = 0; phase < plan.strideY; ++phase) {
        int64_t next = 0; // the unit behind the open run
        for (int64_t ky = 0; ky < plan.kh; ++ky) {
          const T w = weight(filter, ky, kx, channel);
          const int64_t unit = plan.unit(c, ky, kx);
          if (ky * plan.dilationY % plan.strideY != phase || w == T(0))
            continue;
          if (unit != next || run.size() == 3)
            close(next);
          run.push_back(w);
          next = unit + 1;
        }
        close(next);
      }
    });
    packed.index.insert(packed.index.end(),
                        {uint32_t(packed.inputs.size()), uint32_t(packed.weights.size()), uint32_t(inputs[0].size()),
                         uint32_t(inputs[1].size()), uint32_t(inputs[2].size())});
    for (int i = 0; i < 3; ++i) {
      packed.inputs.insert(packed.inputs.end(), inputs[i].begin(), inputs[i].end());
      packed.weights.insert(packed.weights.end(), taps[i].begin(), taps[i].end());
    }
  }

  const SparsePlan &plan;
  const T *weights;
  PackedSparse<T> packed;
};

} // namespace

PackedSparse<float> packSparse(const SparsePlan &plan, const float *weights) {
  assert(plan.units() <= 0x10000 && (!plan.runs || plan.group == 1));
  return Packer<float>(plan, weights).run();
}

} // namespace ajour::encoding
