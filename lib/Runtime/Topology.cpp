#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "Cpu.h"

namespace ajour::runtime {

constexpr uint32_t maxCpus = 1024;

/// Reads a small text file into `text`. Returns false when it is missing or empty.
static bool readSmall(const char *root, uint32_t cpu, const char *name, char *text, size_t capacity) {
  char path[512];
  int length = std::snprintf(path, sizeof(path), "%s/cpu%u/%s", root, cpu, name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path))
    return false;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  ssize_t got = read(file, text, capacity - 1);
  close(file);
  if (got <= 0)
    return false;
  text[got] = 0;
  return true;
}

static uint64_t readNumber(const char *root, uint32_t cpu, const char *name) {
  char text[64];
  return readSmall(root, cpu, name, text, sizeof(text)) ? std::strtoull(text, nullptr, 10) : 0;
}

/// Whether `cpu` is the first hardware thread of its core.
static bool isFirstThread(const char *root, uint32_t cpu) {
  char text[64];
  return !readSmall(root, cpu, "topology/thread_siblings_list", text, sizeof(text)) ||
         std::strtoull(text, nullptr, 10) == cpu;
}

static bool exists(const char *root, uint32_t cpu) {
  char path[512];
  std::snprintf(path, sizeof(path), "%s/cpu%u", root, cpu);
  return access(path, F_OK) == 0;
}

/// How many cores reach `percent` of the best value of `file`; 0 when the file is not there.
static uint32_t countNearBest(const char *root, const Array<uint32_t> &cpus, uint32_t count, const char *file,
                              uint64_t percent) {
  uint64_t best = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t value = readNumber(root, cpus[i], file);
    best = value > best ? value : best;
  }
  uint32_t near = 0;
  for (uint32_t i = 0; i < count && best != 0; ++i)
    near += readNumber(root, cpus[i], file) * 100 >= best * percent;
  return near;
}

uint32_t performanceCores(const char *root, bool onlyAllowed) {
  Array<uint32_t> cpus;
  if (!cpus.reset(maxCpus))
    return 1;
  uint32_t count = 0, allowedCount = 0;
#if defined(__linux__)
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  bool known = onlyAllowed && sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  if (known)
    allowedCount = static_cast<uint32_t>(CPU_COUNT(&allowed));
#else
  bool known = false;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  allowedCount = online > 0 ? static_cast<uint32_t>(online) : 1;
#endif
  for (uint32_t cpu = 0; cpu < maxCpus; ++cpu) {
    if (!exists(root, cpu))
      continue;
#if defined(__linux__)
    if (known && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)))
      continue;
#endif
    if (isFirstThread(root, cpu))
      cpus[count++] = cpu;
  }
  (void)known;
  // A capacity includes what a core does per cycle: little cores have a quarter to a half of the best
  // one's. Frequencies lie closer together.
  uint32_t near = countNearBest(root, cpus, count, "cpu_capacity", 60);
  if (near == 0)
    near = countNearBest(root, cpus, count, "cpufreq/cpuinfo_max_freq", 80);
  if (near == 0)
    near = count;
  if (near == 0)
    near = allowedCount;
  return near != 0 ? near : 1;
}

} // namespace ajour::runtime
