//===- Machine.cpp - What a measurement was made on -----------------------===//

#include "ToolSupport/Machine.h"
#include "ajour/ajour.h"

#include <cstdio>
#include <cstring>
#include <sys/utsname.h>
#include <unistd.h>

namespace ajour::tools {

namespace {

/// The value of the first line of /proc/cpuinfo that starts with `key`.
std::string cpuInfo(const char *key) {
  std::FILE *file = std::fopen("/proc/cpuinfo", "r");
  if (!file)
    return "";
  char line[512];
  std::string value;
  while (value.empty() && std::fgets(line, sizeof(line), file)) {
    const char *colon = std::strchr(line, ':');
    if (std::strncmp(line, key, std::strlen(key)) != 0 || !colon)
      continue;
    value = colon + 1;
    while (!value.empty() && (value.back() == '\n' || value.back() == ' '))
      value.pop_back();
    value.erase(0, value.find_first_not_of(' '));
  }
  std::fclose(file);
  return value;
}

} // namespace

Machine describeMachine() {
  Machine machine;
  machine.cpu = cpuInfo("model name");
  utsname name;
  if (uname(&name) == 0) {
    machine.arch = name.machine;
    machine.system = std::string(name.sysname) + " " + name.release;
  }
  machine.cpuLevel = ajour_cpu_level_name();
  machine.cores = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.performanceCores = ajour_cpu_performance_cores();
  machine.memoryBytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return machine;
}

} // namespace ajour::tools
