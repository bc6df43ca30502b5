//===- Harness.h - compile and run small modules --------------*- C++ -*-===//
#ifndef AJOUR_TESTS_TARGET_HARNESS_H
#define AJOUR_TESTS_TARGET_HARNESS_H

#include "ajour/ABI/Dispatch.h"
#include "ajour/Target/CpuTarget.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace ajour::test {

/// A context in which code generation is prepared; errors are kept instead of printed.
class Session {
public:
  Session();
  /// Parses a module; null after a syntax error.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  mlir::FailureOr<CpuCode> emit(const std::string &text, ajour_cpu_level level, const CpuEmitOptions &options = {});
  /// Errors since the last call.
  std::string takeErrors();

  mlir::MLIRContext context;

private:
  std::string errors;
};

/// A shared object in the process.
class Loaded {
public:
  explicit Loaded(const std::vector<char> &sharedObject);
  ~Loaded();
  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;
  /// Null if there is no such symbol.
  ajour_dispatch_fn find(const char *name) const;

private:
  void *handle = nullptr;
};

/// Whether the CPU that the test runs on has all features of a level.
bool cpuHas(ajour_cpu_level level);
/// The levels of this machine's architecture that it can run.
std::vector<ajour_cpu_level> runnableLevels();

/// Dynamic symbols of a shared object, read with readelf: defined and undefined.
struct Symbols {
  std::vector<std::string> defined, undefined;
};
Symbols readSymbols(const std::vector<char> &sharedObject);

/// Writes bytes into a new file in the temporary folder and returns its path.
std::string writeTemporary(const std::vector<char> &bytes, const char *suffix);

} // namespace ajour::test

#endif
