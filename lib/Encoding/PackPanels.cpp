#include "ajour/Encoding/PackSparse.h"

#include "ajour/ABI/PanelOrder.h"

#include <algorithm>
#include <cassert>

namespace ajour::encoding {

namespace {

template <typename T> class PanelPacker {
public:
  PanelPacker(const PanelPlan &plan, const WeightView<T> &weights)
      : plan(plan), weights(weights), pending(plan.lanes), next(plan.lanes) {}

  PackedPanels<T> run() {
    for (int64_t panel = 0; panel < plan.panels(); ++panel)
      for (int64_t part = 0; part < plan.parts; ++part) {
        packed.index.push_back(packed.offsets.size());
        collect(panel, part);
        while (addStep(panel, part)) {
        }
      }
    packed.index.push_back(packed.offsets.size());
    return std::move(packed);
  }

private:
  int64_t column(int64_t panel, int64_t lane, int64_t t) const {
    return (panel * plan.lanes + ajour_gemm_sparse_group(lane, plan.lanes, plan.share)) * plan.share + t;
  }
  T weight(int64_t p, int64_t j) const {
    return j < plan.n ? weights.data[p * weights.strideK + j * weights.strideN] : T(0);
  }

  /// The inputs that each lane keeps.
  void collect(int64_t panel, int64_t part) {
    for (int64_t lane = 0; lane < plan.lanes; ++lane) {
      pending[lane].clear();
      next[lane] = 0;
      for (int64_t p = 0; p < plan.depth(); ++p) {
        bool any = false;
        for (int64_t t = 0; t < plan.share; ++t)
          any |= weight(part * plan.depth() + p, column(panel, lane, t)) != T(0);
        if (any)
          pending[lane].push_back(p);
      }
    }
  }

  bool addStep(int64_t panel, int64_t part) {
    int64_t first = plan.depth();
    for (int64_t lane = 0; lane < plan.lanes; ++lane)
      if (next[lane] < pending[lane].size())
        first = std::min(first, pending[lane][next[lane]]);
    if (first == plan.depth())
      return false;
    // A window that ends with the part reads nothing behind it.
    const int64_t offset = std::min(first, std::max<int64_t>(0, plan.depth() - plan.window));
    const size_t slots = plan.lanes * plan.kr, pick = packed.picks.size(), at = packed.weights.size();
    packed.offsets.push_back(offset);
    packed.picks.resize(pick + slots);
    packed.weights.resize(at + slots * plan.share);
    for (int64_t lane = 0; lane < plan.lanes; ++lane)
      for (int64_t q = 0; q < plan.kr; ++q) {
        size_t &position = next[lane];
        if (position == pending[lane].size() || pending[lane][position] >= offset + plan.window)
          break;
        const int64_t p = pending[lane][position++], slot = lane * plan.kr + q;
        packed.picks[pick + slot] = p - offset;
        for (int64_t t = 0; t < plan.share; ++t)
          packed.weights[at + t * slots + slot] = weight(part * plan.depth() + p, column(panel, lane, t));
      }
    return true;
  }

  const PanelPlan &plan;
  const WeightView<T> &weights;
  std::vector<std::vector<int64_t>> pending;
  std::vector<size_t> next; ///< of each lane's pending inputs
  PackedPanels<T> packed;
};

template <typename T> PackedPanels<T> pack(const PanelPlan &plan, const WeightView<T> &weights) {
  assert(plan.k % plan.parts == 0 && plan.depth() <= 0x10000 && plan.window <= 0x100);
  return PanelPacker<T>(plan, weights).run();
}

} // namespace

PackedPanels<float> packPanels(const PanelPlan &plan, const WeightView<float> &weights) { return pack(plan, weights); }
PackedPanels<int8_t> packPanels(const PanelPlan &plan, const WeightView<int8_t> &weights) { return pack(plan, weights); }

} // namespace ajour::encoding
