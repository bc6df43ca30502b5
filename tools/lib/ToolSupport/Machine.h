//===- Machine.h - What a measurement was made on ---------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_MACHINE_H
#define AJOUR_TOOLS_MACHINE_H

#include <cstdint>
#include <string>

namespace ajour::tools {

struct Machine {
  std::string cpu, arch, system, cpuLevel;
  uint32_t cores = 0, performanceCores = 0;
  uint64_t memoryBytes = 0;
};

/// Asks the system; what it does not tell is empty or 0.
Machine describeMachine();

} // namespace ajour::tools

#endif
