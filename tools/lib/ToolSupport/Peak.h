//===- Peak.h - How fast this machine multiplies and adds -------*- C++ -*-===//

#ifndef AJOUR_TOOLS_PEAK_H
#define AJOUR_TOOLS_PEAK_H

#include <cstdint>

namespace ajour::tools {

/// What is multiplied: f32 with f32 into f32, or 8-bit integers with 8-bit integers into i32.
enum class PeakKind { F32, Int8 };

/// The machine's peak in GOP/s (a multiplication or an addition is an operation), measured now: `threads` threads run loops that
/// hold everything in registers and consist of the best multiply-add instruction of this CPU's best level, whatever level
/// AJOUR_CPU forces. The best of some tries; takes less than 50 ms. 0 if there is no loop for this CPU.
double measurePeak(PeakKind kind, uint32_t threads);

/// The instruction that measurePeak runs, "none" if there is no loop for this CPU.
const char *peakInstruction(PeakKind kind);

} // namespace ajour::tools

#endif
