//===- Harness.h - runs one operation on values ---------------*- C++ -*-===//
#ifndef AJOUR_TESTS_REFERENCE_HARNESS_H
#define AJOUR_TESTS_REFERENCE_HARNESS_H

#include "ajour/ABI/ElementTypes.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

namespace ajour::test {

template <typename T> constexpr uint32_t elementTypeOf();
template <> constexpr uint32_t elementTypeOf<float>() { return AJOUR_F32; }
template <> constexpr uint32_t elementTypeOf<double>() { return AJOUR_F64; }
template <> constexpr uint32_t elementTypeOf<int8_t>() { return AJOUR_I8; }
template <> constexpr uint32_t elementTypeOf<uint8_t>() { return AJOUR_U8; }
template <> constexpr uint32_t elementTypeOf<int16_t>() { return AJOUR_I16; }
template <> constexpr uint32_t elementTypeOf<uint16_t>() { return AJOUR_U16; }
template <> constexpr uint32_t elementTypeOf<int32_t>() { return AJOUR_I32; }
template <> constexpr uint32_t elementTypeOf<uint32_t>() { return AJOUR_U32; }
template <> constexpr uint32_t elementTypeOf<int64_t>() { return AJOUR_I64; }
template <> constexpr uint32_t elementTypeOf<uint64_t>() { return AJOUR_U64; }

/// A tensor of values; `elementType` overrides T's (bits of f16 and bf16 as uint16_t, booleans as uint8_t).
template <typename T>
HostTensor tensor(std::vector<int64_t> shape, std::vector<T> values, uint32_t elementType = elementTypeOf<T>()) {
  HostTensor result;
  result.elementType = elementType;
  result.shape = std::move(shape);
  result.data.assign(reinterpret_cast<const char *>(values.data()),
                     reinterpret_cast<const char *>(values.data() + values.size()));
  return result;
}
/// 0, 1, 2, ... plus `first`.
template <typename T> HostTensor range(std::vector<int64_t> shape, T first = 0) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(first + i);
  return tensor<T>(std::move(shape), values);
}
inline HostTensor booleans(std::vector<int64_t> shape, std::vector<uint8_t> values) {
  return tensor<uint8_t>(std::move(shape), std::move(values), AJOUR_BOOL);
}

template <typename T> std::vector<T> values(const HostTensor &tensor) {
  EXPECT_EQ(sizeof(T), ajour_element_size(tensor.elementType));
  return std::vector<T>(tensor.as<T>(), tensor.as<T>() + tensor.numElements());
}

/// A context that knows func, nn and exec; made once for a test program.
mlir::MLIRContext *context();

/// What came of a run.
struct Outcome {
  bool parsed = false;
  std::vector<HostTensor> results; ///< empty when it failed
  std::string message;             ///< all diagnostics, a line each
};

/// Called with every module that was interpreted and what came of it: other ways to execute it are compared here.
using ModuleCheck = void (*)(mlir::ModuleOp module, const std::vector<HostTensor> &inputs,
                             const std::vector<int64_t> &symbols, const Outcome &outcome);
extern ModuleCheck moduleCheck;

/// Parses and verifies a module and interprets its function `main`.
Outcome runModule(const std::string &text, std::vector<HostTensor> inputs, std::vector<int64_t> symbols = {});

/// Runs one operation, written as in a file but for its results. The inputs are %0, %1, ...
Outcome runOp(const std::string &op, std::vector<HostTensor> inputs);

/// The first result's values; reports a failure and gives none otherwise.
template <typename T> std::vector<T> eval(const std::string &op, std::vector<HostTensor> inputs) {
  Outcome outcome = runOp(op, std::move(inputs));
  EXPECT_FALSE(outcome.results.empty()) << op << "\n" << outcome.message;
  return outcome.results.empty() ? std::vector<T>() : values<T>(outcome.results[0]);
}

/// The values of all results; reports a failure and gives none otherwise.
inline std::vector<std::vector<float>> evalAll(const std::string &op, std::vector<HostTensor> inputs) {
  Outcome outcome = runOp(op, std::move(inputs));
  EXPECT_FALSE(outcome.results.empty()) << op << "\n" << outcome.message;
  std::vector<std::vector<float>> all;
  for (const HostTensor &result : outcome.results)
    all.push_back(values<float>(result));
  return all;
}

/// Equal up to `tolerance`, relative above 1.
void expectNear(const std::vector<float> &found, const std::vector<float> &expected, float tolerance = 1e-4f);

/// Fails in the interpreter (not before) with a message that contains `text`.
void expectError(const std::string &op, std::vector<HostTensor> inputs, const std::string &text);

} // namespace ajour::test

#endif
