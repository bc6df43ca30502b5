//===- Progress.h - How far long work has come ------------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_PROGRESS_H
#define AJOUR_TOOLS_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ajour::tools {

/// Rewrites one line on stderr, "phase done/total, memory, time left", at most ten times a second and only after two seconds of
/// work; erases it at the end. Silent when stderr is not a terminal. Used by one thread.
class Progress {
public:
  /// `force`: as if stderr were a terminal (true) or not (false); for tests.
  explicit Progress(std::optional<bool> force = std::nullopt);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// States what is being done and how much of it; total 0: not known.
  void begin(std::string phase, uint64_t total);
  /// States how much of the phase is done.
  void update(uint64_t done);
  /// Erases the line; a later begin starts anew.
  void finish();

private:
  using Clock = std::chrono::steady_clock;

  bool enabled;
  bool shown = false;
  Clock::time_point start = Clock::now(), phaseStart = start, lastShown{};
  std::string phase;
  uint64_t total = 0;
};

/// The text of the line: "phase 3/10, 120 MB, 14 s left".
std::string formatProgress(const std::string &phase, uint64_t done, uint64_t total, uint64_t memoryBytes,
                           double elapsedSeconds);

/// Memory that the process has resident now and had at most, in bytes; 0 where the system does not say.
uint64_t residentBytes();
uint64_t peakResidentBytes();

} // namespace ajour::tools

#endif
