//===- Cost.h - what a piece of work takes --------------------*- C++ -*-===//
#ifndef AJOUR_TESTS_SUPPORT_COST_H
#define AJOUR_TESTS_SUPPORT_COST_H

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ajour::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AJOUR_TEST_SANITIZED 1
#endif
#endif
#ifdef AJOUR_TEST_SANITIZED
/// Sanitized code takes some ten times as long, and freed memory is kept for a while.
constexpr double costFactor = 10;
#else
constexpr double costFactor = 1;
#endif

struct Cost {
  bool finished = false; ///< without a crash, a failed check, or more than 60 seconds
  double seconds = 0;    ///< of computing
  int64_t bytes = 0;     ///< most memory at once, beyond what the process had before
};

/// Runs `work` in a process of its own.
inline Cost costOf(const std::function<void()> &work) {
  auto child = [](const std::function<void()> &run, rusage &usage) {
    pid_t pid = fork();
    if (pid == 0) {
      rlimit seconds{60, 60};
      setrlimit(RLIMIT_CPU, &seconds);
      run();
      _exit(testing::Test::HasFailure());
    }
    int status = 0;
    return pid > 0 && wait4(pid, &status, 0, &usage) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  rusage before{}, after{};
  Cost cost;
  cost.finished = child([] {}, before) && child(work, after);
  auto seconds = [](const rusage &usage) {
    return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  cost.seconds = seconds(after) - seconds(before);
  cost.bytes = (after.ru_maxrss - before.ru_maxrss) * 1024;
  return cost;
}

/// The work ends within this many seconds and bytes (more under a sanitizer).
inline void expectCost(const std::function<void()> &work, double seconds, int64_t bytes) {
  Cost cost = costOf(work);
  EXPECT_TRUE(cost.finished) << "after " << cost.seconds << " s";
  EXPECT_LE(cost.seconds, seconds * costFactor);
  EXPECT_LE(cost.bytes, int64_t(bytes * costFactor));
}

} // namespace ajour::test

#endif
