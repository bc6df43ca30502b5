/// Which weights of a small group are kept, as a number.
#ifndef AJOUR_LIB_ENCODING_GROUPS_H
#define AJOUR_LIB_ENCODING_GROUPS_H

#include "Structures.h"

namespace ajour::encoding {

/// Bits of the number of a subset of `keep` out of `width` (at most 32) weights.
unsigned patternBits(int64_t width, int64_t keep);

/// The number of a subset among those of as many weights, in colexicographic order.
uint64_t patternRank(uint32_t mask);

} // namespace ajour::encoding

#endif
