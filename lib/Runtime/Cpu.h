/// What this CPU can do, and how many of its cores are worth using.
#ifndef AJOUR_LIB_RUNTIME_CPU_H
#define AJOUR_LIB_RUNTIME_CPU_H

#include "Support.h"
#include "ajour/ABI/CpuFeatures.h"

namespace ajour::runtime {

struct CpuLevel {
  uint32_t id;
  const char *name;
  uint32_t arch;
  uint64_t features;
};

/// The architecture that this library is compiled for (ajour_arch), 0 when there is no code for it.
uint32_t hostArch();
const char *archName(uint32_t arch);

/// Features that both the CPU and the operating system support.
uint64_t hostFeatures();

/// The level of that id or name; null for an unknown one.
const CpuLevel *findLevel(uint32_t id);
const CpuLevel *findLevel(const char *name);

/// The highest level of `arch` whose features are all in `features`, or null.
const CpuLevel *bestLevel(uint32_t arch, uint64_t features);

/// Directory that describes the cores.
constexpr const char *cpuDirectory = "/sys/devices/system/cpu";

/// Number of performance cores under `root` (a directory in the form of cpuDirectory), at least 1. Takes
/// cpu_capacity, else the highest frequency; a core counts when it comes near the best one. Hardware
/// threads of one core count once. With `onlyAllowed`, only CPUs that this process may use.
uint32_t performanceCores(const char *root, bool onlyAllowed);

} // namespace ajour::runtime

#endif
