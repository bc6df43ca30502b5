#include "ajour/Runtime/MemoryPlan.h"

#include <algorithm>

#include "Support.h"

namespace ajour {

bool paddedBufferSize(uint64_t size, uint64_t &padded) {
  if (runtime::addOverflows(size, AJOUR_BUFFER_SLACK + AJOUR_BUFFER_ALIGNMENT - 1, padded))
    return false;
  padded = runtime::roundDown(padded, AJOUR_BUFFER_ALIGNMENT);
  return true;
}

static bool liveTogether(const PlannedBuffer &a, const PlannedBuffer &b) {
  return a.firstUse <= b.lastUse && b.firstUse <= a.lastUse;
}

/// Start of the smallest gap of `size` bytes beside the placed buffers alive with `buffer`, or the end
/// of the last of them. `placed` is sorted by offset.
static uint64_t findPlace(const PlannedBuffer *buffers, const uint32_t *placed, size_t placedCount,
                          const PlannedBuffer &buffer, uint64_t size) {
  uint64_t end = 0, best = UINT64_MAX, bestGap = UINT64_MAX;
  for (size_t i = 0; i < placedCount; ++i) {
    const PlannedBuffer &other = buffers[placed[i]];
    if (!liveTogether(buffer, other))
      continue;
    if (other.offset > end && other.offset - end >= size && other.offset - end < bestGap) {
      best = end;
      bestGap = other.offset - end;
    }
    uint64_t otherSize;
    paddedBufferSize(other.size, otherSize);
    end = std::max(end, other.offset + otherSize);
  }
  return best != UINT64_MAX ? best : end;
}

bool planMemory(PlannedBuffer *buffers, size_t count, uint64_t &total) {
  total = 0;
  if (count > maxPlannedBuffers)
    return false;
  runtime::Array<uint32_t> order, placed;
  if (!order.reset(count) || !placed.reset(count))
    return false;
  for (size_t i = 0; i < count; ++i)
    order[i] = static_cast<uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (buffers[a].size != buffers[b].size)
      return buffers[a].size > buffers[b].size;
    return a < b;
  });
  for (size_t n = 0; n < count; ++n) {
    PlannedBuffer &buffer = buffers[order[n]];
    uint64_t size, end;
    if (!paddedBufferSize(buffer.size, size))
      return false;
    buffer.offset = findPlace(buffers, placed.data(), n, buffer, size);
    if (runtime::addOverflows(buffer.offset, size, end))
      return false;
    total = std::max(total, end);
    size_t at = n;
    for (; at > 0 && buffers[placed[at - 1]].offset > buffer.offset; --at)
      placed[at] = placed[at - 1];
    placed[at] = order[n];
  }
  return true;
}

bool checkMemoryPlan(const PlannedBuffer *buffers, size_t count, uint64_t total, size_t &first, size_t &second) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t size, otherSize;
    first = second = i;
    if (buffers[i].offset % AJOUR_BUFFER_ALIGNMENT != 0 || !paddedBufferSize(buffers[i].size, size) ||
        !runtime::rangeFits(buffers[i].offset, size, total))
      return false;
    for (second = 0; second < i; ++second) {
      paddedBufferSize(buffers[second].size, otherSize);
      if (liveTogether(buffers[i], buffers[second]) && buffers[i].offset < buffers[second].offset + otherSize &&
          buffers[second].offset < buffers[i].offset + size)
        return false;
    }
  }
  return true;
}

} // namespace ajour
