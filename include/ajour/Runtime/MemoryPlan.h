/// Placement of buffers with known lifetimes in one arena. Used by the compiler and by the runtime.
#ifndef AJOUR_RUNTIME_MEMORYPLAN_H
#define AJOUR_RUNTIME_MEMORYPLAN_H

#include <cstddef>
#include <cstdint>

namespace ajour {

/// A buffer that lives from step `firstUse` to step `lastUse`, both included.
struct PlannedBuffer {
  uint64_t size = 0; ///< bytes, without slack
  uint32_t firstUse = 0;
  uint32_t lastUse = 0;
  uint64_t offset = 0; ///< result: bytes from the start of the arena, a multiple of AJOUR_BUFFER_ALIGNMENT
};

/// The most buffers that a plan takes: the method is quadratic.
constexpr size_t maxPlannedBuffers = 16384;

/// Bytes that a buffer of `size` bytes occupies: slack added, rounded up to the alignment. Returns
/// false on overflow.
bool paddedBufferSize(uint64_t size, uint64_t &padded);

/// Fills in the offsets and the arena's `total` bytes. Largest buffer first, each into the smallest
/// gap that holds it among the buffers alive at the same time (greedy by size with best fit, after
/// Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). Buffers whose lifetimes
/// share a step never overlap. Returns false on overflow, lack of memory or too many buffers.
bool planMemory(PlannedBuffer *buffers, size_t count, uint64_t &total);

/// Whether a plan is sound for an arena of `total` bytes; else `first` and `second` tell the two
/// buffers that overlap (equal when one is misplaced by itself).
bool checkMemoryPlan(const PlannedBuffer *buffers, size_t count, uint64_t total, size_t &first, size_t &second);

} // namespace ajour

#endif
