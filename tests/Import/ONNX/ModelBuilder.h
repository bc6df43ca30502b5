//===- ModelBuilder.h - small ONNX models for tests ------------*- C++ -*-===//
#ifndef AJOUR_TESTS_IMPORT_ONNX_MODELBUILDER_H
#define AJOUR_TESTS_IMPORT_ONNX_MODELBUILDER_H

#define ONNX_ML 1
#include <onnx/onnx_pb.h>

#include "ajour/Import/Import.h"

#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace ajour::onnx_test {

using Shape = std::vector<int64_t>;
using Floats = std::vector<float>;
using Int64s = std::vector<int64_t>;

HostTensor floats(Shape shape, Floats values);
HostTensor int64s(Shape shape, Int64s values);
HostTensor int32s(Shape shape, std::vector<int32_t> values);
HostTensor bytes(Shape shape, std::vector<int> values, bool isSigned = false);
HostTensor booleans(Shape shape, std::vector<int> values);
/// 0, 1, 2, ... times `step` plus `first`.
HostTensor ramp(Shape shape, float first = 0, float step = 1);

struct Attr {
  std::string name;
  std::variant<int64_t, float, std::string, Int64s, Floats> value;
};

/// A size of an input: a number, or the name of a dimension ("" for none).
using Dim = std::variant<int64_t, std::string>;

/// Builds a model; `opset` is that of ai.onnx.
class ModelBuilder {
public:
  explicit ModelBuilder(int64_t opset);

  ModelBuilder &input(const std::string &name, std::vector<Dim> shape, int32_t type = ::onnx::TensorProto::FLOAT);
  ModelBuilder &initializer(const std::string &name, const HostTensor &tensor);
  ModelBuilder &node(const std::string &type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                     std::vector<Attr> attrs = {}, const std::string &domain = "");
  ModelBuilder &output(const std::string &name);

  ::onnx::ModelProto proto;
  ::onnx::NodeProto &lastNode() { return *proto.mutable_graph()->mutable_node(proto.graph().node_size() - 1); }
};

::onnx::TensorProto toProto(const HostTensor &tensor);

/// A fresh folder below the temporary one, removed with everything in it.
class TempDir {
public:
  TempDir();
  ~TempDir();
  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::string path;
};
void writeFile(const std::string &path, const std::string &bytes);

/// Runs the function `main` of an imported module; false with `error` when it cannot.
using Executor = std::function<bool(mlir::ModuleOp module, const std::vector<HostTensor> &inputs,
                                    const std::vector<int64_t> &symbols, std::vector<HostTensor> &outputs,
                                    std::string &error)>;
/// What run() executes with: the reference interpreter, unless a program says otherwise.
Executor &executor();

/// What came of importing and executing a model.
struct Outcome {
  std::vector<HostTensor> outputs;
  std::string ir;    ///< the imported module as text
  std::string error; ///< diagnostics; empty on success
};

/// Writes the model, imports it, and executes it on the inputs (in the order of the function's arguments).
Outcome run(const ModelBuilder &model, const std::vector<HostTensor> &inputs, const ImportOptions &options = {});
/// Imports only.
Outcome importOnly(const ModelBuilder &model, const ImportOptions &options = {});
/// Imports a file; the diagnostics, empty on success.
std::string importFile(const std::string &path, const ImportOptions &options = {});
Outcome importBytes(const std::string &bytes, const ImportOptions &options = {});

void expectFloats(const Outcome &outcome, const Shape &shape, const Floats &values, float tolerance = 1e-4f);
void expectInts(const Outcome &outcome, const Shape &shape, const Int64s &values);
/// The model is refused, and the message holds each of these.
void expectError(const Outcome &outcome, std::vector<std::string> parts);

} // namespace ajour::onnx_test

#endif
