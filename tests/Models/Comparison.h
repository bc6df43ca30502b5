//===- Comparison.h - executors that compare compiled code with another -*- C++ -*-===//
#ifndef AJOUR_TESTS_MODELS_COMPARISON_H
#define AJOUR_TESTS_MODELS_COMPARISON_H

#include "Models/Executor.h"

#include <string>

namespace ajour::test {

/// Fails the test where results differ: integers at all, floats by more than 1e-4 of themselves and of the tensor's
/// largest.
void expectAgreement(const std::vector<HostTensor> &found, const std::vector<HostTensor> &expected);

/// Whether every picture and every code level is to be checked (AJOUR_ALL_PICTURES).
bool checksAll();

/// Runs compiled code: at the machine's best level, or at every level that it has, which must agree; where AJOUR_CPU
/// names a level, at that. The first `references` runs are also interpreted, and must agree with that.
Prepare compiledAndCompared(int references, bool everyLevel = checksAll());

/// Where the program that runs artifacts on aarch64 is; empty if it or the emulator is absent.
std::string findAarch64Runner();

/// Compiles for aarch64 and runs under emulation at each of its levels, and natively; all must agree.
Prepare emulatedAndCompared();

/// The same for calls one after the other whose state goes on: each input has the calls' inputs along a further
/// dimension in front.
void expectEmulatedSequence(mlir::ModuleOp module, const std::vector<HostTensor> &sequences);

} // namespace ajour::test

#endif
