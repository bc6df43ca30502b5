//===- Conformance.h - the format's own test cases ------------*- C++ -*-===//
#ifndef AJOUR_TESTS_CONFORMANCE_CONFORMANCE_H
#define AJOUR_TESTS_CONFORMANCE_CONFORMANCE_H

#include "ajour/Reference/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ajour::conformance {

/// Runs the function `main` of an imported module. Inputs are in the order of the function's arguments and
/// `symbols` in that of the module's. Returns false with `error` when it cannot.
using Executor = std::function<bool(mlir::ModuleOp module, const std::vector<HostTensor> &inputs,
                                    const std::vector<int64_t> &symbols, std::vector<HostTensor> &outputs,
                                    std::string &error)>;

/// The reference interpreter as an executor.
bool interpretModule(mlir::ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &symbols,
                     std::vector<HostTensor> &outputs, std::string &error);

enum class Verdict { passed, refused, wrong };

struct CaseResult {
  std::string name;
  Verdict verdict;
  std::string message; ///< of a refusal, or what differs
};

/// Runs a case: a folder with model.onnx and test_data_set_N folders. Inputs that the model needs when
/// compiling are bound and the case is tried again.
CaseResult runCase(const std::string &folder, const Executor &executor);

/// Counts of what came of cases, and what was refused.
struct Tally {
  int passed = 0, refused = 0, wrong = 0;
  std::map<std::string, int> refusals; ///< by kind: the operator and what is wrong with it

  void add(const CaseResult &result);
  void print() const;
};

/// Where Debian's libonnx-testdata puts its cases; AJOUR_ONNX_TESTDATA names another place.
std::string testData();

/// All cases below a folder, sorted by path.
std::vector<std::string> findCases(const std::string &root);

/// Reads a serialised TensorProto; false when it is not a dense tensor of numbers.
bool readTensorFile(const std::string &path, HostTensor &tensor, std::string &error);

/// Whether two tensors agree as the format's own runner demands (relative 1e-3 and absolute 1e-7 for floats,
/// equality for others); else says where they differ.
bool agree(const HostTensor &found, const HostTensor &expected, std::string &difference);

} // namespace ajour::conformance

#endif
