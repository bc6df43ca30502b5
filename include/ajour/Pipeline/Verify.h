//===- Verify.h - compiled against reference ------------------*- C++ -*-===//
#ifndef AJOUR_PIPELINE_VERIFY_H
#define AJOUR_PIPELINE_VERIFY_H

#include "ajour/Pipeline/Compile.h"
#include "ajour/Reference/HostTensor.h"

#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace ajour {

/// Absolute part of a float's tolerance where a whole tensor is tiny.
constexpr double verifyTinyValue = 1e-6;

struct VerifyOptions {
  CompileOptions compile;
  /// A float is right when |found - expected| <= tolerance * (max(1e-6, largest |expected| of the tensor) + |expected|).
  ///
  /// The default leaves room for sums taken in another order (about sqrt(k) 2^-24 of their terms, k up to some
  /// thousands) and for the elementary functions (2^-21), and is far below what a wrong element costs. Depth does
  /// not need more: each dispatch is compared with the reference on the values that it was given.
  double tolerance = 1e-4;
  /// Steps by which an integer may be off where a float is rounded to it (nn.quantize, nn.cast) within the compared
  /// piece: a float off by its last bit may round to the next integer. All other integers must be equal.
  int64_t steps = 1;
  /// Run every code level of this machine instead of the default one.
  bool allLevels = false;
  uint32_t threads = 1;
  /// For tests of verify itself: changes the module after simplification, and the module of dispatches that is
  /// compiled (not the one that is interpreted).
  std::function<void(mlir::ModuleOp)> afterSimplify, beforeCode;
  /// The same after the first n stages, for each n that is tried.
  std::function<void(mlir::ModuleOp, int stages)> afterStages;
};

/// How two tensors of one type and shape differ.
struct TensorDifference {
  bool differs = false;
  double maxAbsolute = 0, maxRelative = 0; ///< relative to |expected|; where it is not 0
  double cosine = 1;
  int64_t count = 0;  ///< elements outside the tolerance
  int64_t index = -1; ///< of the worst element, row-major; -1: all are equal
  double expected = 0, found = 0;
  std::vector<int64_t> shape;
};

/// Compares by the rule at VerifyOptions::tolerance; integers may be off by `steps`. Two NaNs are equal, as are
/// infinities of one sign.
TensorDifference compareTensors(const HostTensor &found, const HostTensor &expected, double tolerance, int64_t steps);

/// One dispatch, or one output of the model, under comparison.
struct VerifiedValue {
  std::string name;  ///< "#12 conv" or the output's name
  std::string nodes; ///< the user's nodes, described
  std::string kind, level;
  TensorDifference difference;
  double step = 0; ///< of a dequantised or quantised value: what one integer step is worth; 0: not quantised
};

struct VerifyReport {
  /// Imported against simplified module: the model's outputs.
  std::vector<VerifiedValue> simplified;
  std::string pass;         ///< the stage of simplification that changes a result; empty: none
  VerifiedValue suspect;    ///< the first node behind that pass whose value is another (nodes empty: not found)
  /// Compiled against interpreted, each dispatch on its own inputs, in the order of execution, level by level.
  std::vector<VerifiedValue> dispatches;
  /// Compiled against simplified module, the model's outputs, level by level.
  std::vector<VerifiedValue> outputs;

  /// Of the imported module, by the reference.
  std::vector<HostTensor> results;

  /// Null when everything agrees, else the first dispatch that differs.
  const VerifiedValue *firstDispatch() const;
  /// The simplified module differs only because integer arithmetic (nn-integer) rounds a quantised value one step
  /// otherwise than floating point would, which that pass may; later layers can make more of it.
  bool roundsOtherwise() const;
  bool passed() const;
};

/// Runs an imported module (left as it is), with one tensor for each argument of main, by the reference, after simplification, and compiled. Fails after
/// diagnostics when one of them cannot be done at all.
mlir::FailureOr<VerifyReport> verifyModule(mlir::ModuleOp module, llvm::ArrayRef<HostTensor> inputs,
                                           const VerifyOptions &options);

/// The report for people: what differs first, then the worst `rows` dispatches.
std::string toText(const VerifyReport &report, size_t rows = 10);

} // namespace ajour

#endif
