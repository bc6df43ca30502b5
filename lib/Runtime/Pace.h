/// How long a dispatch takes: is it worth handing to other threads?
#ifndef AJOUR_LIB_RUNTIME_PACE_H
#define AJOUR_LIB_RUNTIME_PACE_H

#include <cstdint>

namespace ajour::runtime {

/// What was seen of one dispatch. Time goes with the number of items, so that what was seen with many tells of few. All zero
/// at first: nothing is known.
class Pace {
public:
  /// Waking others and waiting for them takes microseconds, even where they spin: what is as short is not shared.
  static constexpr float shortNs = 5000;

  /// Whether the calling thread had better do `work` items alone. Something that was never seen is not tried alone.
  bool prefersAlone(int64_t work) const {
    const float items = static_cast<float>(work);
    if (together == 0 || together * items >= 4 * shortNs)
      return false;
    return alone * items < shortNs || alone < together;
  }

  void learn(int64_t work, uint64_t ns, bool wasAlone) {
    const float seen = static_cast<float>(ns) / static_cast<float>(work);
    // The fastest counts: what is slower was disturbed. It is forgotten little by little, so that nothing is judged for ever.
    float &pace = wasAlone ? alone : together;
    pace = pace == 0 || seen < pace * forgetting ? seen : pace * forgetting;
    if (!wasAlone)
      alone /= forgetting;
  }

private:
  static constexpr float forgetting = 1.02f;
  float alone = 0, together = 0; ///< nanoseconds for an item; 0: not seen
};

} // namespace ajour::runtime

#endif
