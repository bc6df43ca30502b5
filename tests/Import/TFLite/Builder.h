//===- Builder.h - small TFLite files for tests ------------------*- C++ -*-===//
#ifndef AJOUR_TESTS_IMPORT_TFLITE_BUILDER_H
#define AJOUR_TESTS_IMPORT_TFLITE_BUILDER_H

#include "ajour/Import/TFLite_generated.h"
#include "ajour/Reference/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <vector>

namespace ajour::test {

/// Builds a model of one subgraph through the schema's object API.
class TFLiteBuilder {
public:
  TFLiteBuilder();

  /// Adds a tensor and returns its index. `data` makes it a constant.
  int tensor(const std::string &name, tflite::TensorType type, std::vector<int32_t> shape, std::string data = "");
  template <typename T>
  int constant(const std::string &name, tflite::TensorType type, std::vector<int32_t> shape, std::vector<T> values) {
    return tensor(name, type, std::move(shape),
                  std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)));
  }
  /// Gives a tensor quantisation.
  void quantize(int tensor, std::vector<float> scales, std::vector<int64_t> zeroPoints, int axis = 0);
  /// Adds an operator.
  tflite::OperatorT &op(tflite::Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                        int version = 1, const std::string &custom = "");
  /// Adds an operator with options.
  template <typename T>
  T &op(tflite::Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs, T options, int version = 1) {
    tflite::OperatorT &made = op(code, std::move(inputs), std::move(outputs), version);
    made.options.Set(std::move(options));
    return *static_cast<T *>(made.options.value);
  }
  void io(std::vector<int32_t> inputs, std::vector<int32_t> outputs);
  tflite::TensorT &at(int index) { return *model.subgraphs[0]->tensors[index]; }

  /// The file's bytes.
  std::string bytes() const;

  tflite::ModelT model;
};

/// What came of an import: outputs of main, or the messages.
struct Outcome {
  bool imported = false;
  std::vector<HostTensor> outputs;
  std::string errors; ///< one line each
  std::string notes;
};

/// Runs the function `main` of an imported module; false when it cannot.
using TFLiteExecutor = std::function<bool(mlir::ModuleOp module, const std::vector<HostTensor> &inputs,
                                          std::vector<HostTensor> &outputs)>;
/// What imported models are executed with: the reference interpreter, unless a program says otherwise.
TFLiteExecutor &executor();

/// Writes the bytes to a file "model.tflite" in a folder of this process, imports it, verifies the module and,
/// if `inputs` are given or main has no arguments, executes it.
Outcome importBytes(const std::string &bytes, const std::vector<HostTensor> &inputs = {});
/// The same without interpreting.
Outcome importOnly(const std::string &bytes);
inline Outcome importModel(const TFLiteBuilder &builder, const std::vector<HostTensor> &inputs = {}) {
  return importBytes(builder.bytes(), inputs);
}

} // namespace ajour::test

#endif
