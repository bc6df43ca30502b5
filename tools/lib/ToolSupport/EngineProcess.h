//===- EngineProcess.h - An engine in a process of its own ------*- C++ -*-===//

#ifndef AJOUR_TOOLS_ENGINEPROCESS_H
#define AJOUR_TOOLS_ENGINEPROCESS_H

#include "Peers/Engine.h"
#include "ToolSupport/Files.h"

#include <sys/types.h>

namespace ajour::tools {

/// Runs an engine in a child process, so that engines under comparison share neither memory nor threads, each has a peak
/// memory of its own, and the fall of one is an error message. Create it while the process has one thread. Every function may
/// throw ToolError.
class EngineProcess {
public:
  EngineProcess(const EngineKind &kind, const EngineConfig &config);
  ~EngineProcess();
  EngineProcess(const EngineProcess &) = delete;
  EngineProcess &operator=(const EngineProcess &) = delete;

  const std::string &name() const { return engineName; }
  const std::string &version() const { return engineVersion; }
  double loadMilliseconds() const { return loadMs; }
  const MacCounts &macs() const { return engineMacs; }
  const WeightCounts &weights() const { return engineWeights; }

  /// Runs once untimed, to find its data and wake its threads again, then `count` times; milliseconds of each.
  std::vector<double> burst(uint32_t count);
  /// A language model (EngineConfig::context): milliseconds that a prompt of `count` tokens takes, and `count` tokens generated one by one
  /// behind `behind` others.
  double prompt(uint32_t count);
  double generate(uint32_t count, uint32_t behind = 1);
  /// The outputs of the last run.
  std::vector<HostTensor> outputs();
  /// Most memory that the process had resident.
  uint64_t peakBytes();

private:
  double tokens(uint32_t command, uint32_t count, uint32_t behind);
  Bytes request(uint32_t command, uint32_t argument = 0, uint32_t behind = 0);
  Bytes receive();

  std::string engineName, engineVersion;
  double loadMs = 0;
  MacCounts engineMacs;
  WeightCounts engineWeights;
  int socket = -1;
  pid_t child = -1;
};

} // namespace ajour::tools

#endif
