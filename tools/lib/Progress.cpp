//===- Progress.cpp - How far long work has come --------------------------===//

#include "ToolSupport/Progress.h"

#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace ajour::tools {

namespace {

/// A line "Key:   1234 kB" of /proc/self/status, in bytes.
uint64_t statusBytes(const char *key) {
  std::FILE *file = std::fopen("/proc/self/status", "r");
  if (!file)
    return 0;
  char line[256];
  unsigned long long kilobytes = 0;
  size_t length = std::strlen(key);
  while (std::fgets(line, sizeof(line), file))
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, " %llu", &kilobytes) == 1)
      break;
  std::fclose(file);
  return kilobytes * 1024;
}

} // namespace

uint64_t residentBytes() { return statusBytes("VmRSS:"); }
uint64_t peakResidentBytes() { return statusBytes("VmHWM:"); }

std::string formatProgress(const std::string &phase, uint64_t done, uint64_t total, uint64_t memoryBytes,
                           double elapsedSeconds) {
  std::string text = phase;
  if (total)
    text += ' ' + std::to_string(done) + '/' + std::to_string(total);
  if (memoryBytes)
    text += ", " + std::to_string(memoryBytes / 1000000) + " MB";
  if (total && done && done <= total) {
    double left = elapsedSeconds / static_cast<double>(done) * static_cast<double>(total - done);
    text += ", " + std::to_string(static_cast<uint64_t>(left + 0.5)) + " s left";
  }
  return text;
}

Progress::Progress(std::optional<bool> force) : enabled(force ? *force : isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { finish(); }

void Progress::begin(std::string newPhase, uint64_t newTotal) {
  phase = std::move(newPhase);
  total = newTotal;
  phaseStart = Clock::now();
  update(0);
}

void Progress::update(uint64_t done) {
  Clock::time_point now = Clock::now();
  if (!enabled || now - start < std::chrono::seconds(2) || now - lastShown < std::chrono::milliseconds(100))
    return;
  lastShown = now;
  shown = true;
  double elapsed = std::chrono::duration<double>(now - phaseStart).count();
  std::fprintf(stderr, "\r\033[K%s", formatProgress(phase, done, total, residentBytes(), elapsed).c_str());
  std::fflush(stderr);
}

void Progress::finish() {
  if (shown)
    std::fputs("\r\033[K", stderr);
  shown = false;
  start = Clock::now();
}

} // namespace ajour::tools
