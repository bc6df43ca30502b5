//===- Builder.cpp - small TFLite files for tests --------------------------------===//
#include "Import/TFLite/Builder.h"

#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "ajour/Reference/State.h"

namespace ajour::test {

TFLiteBuilder::TFLiteBuilder() {
  model.version = 3;
  model.buffers.push_back(std::make_unique<tflite::BufferT>()); // number 0 is empty
  model.subgraphs.push_back(std::make_unique<tflite::SubGraphT>());
}

int TFLiteBuilder::tensor(const std::string &name, tflite::TensorType type, std::vector<int32_t> shape,
                          std::string data) {
  auto tensor = std::make_unique<tflite::TensorT>();
  tensor->name = name;
  tensor->type = type;
  tensor->shape = std::move(shape);
  if (!data.empty()) {
    tensor->buffer = uint32_t(model.buffers.size());
    model.buffers.push_back(std::make_unique<tflite::BufferT>());
    model.buffers.back()->data.assign(data.begin(), data.end());
  }
  model.subgraphs[0]->tensors.push_back(std::move(tensor));
  return int(model.subgraphs[0]->tensors.size()) - 1;
}

void TFLiteBuilder::quantize(int index, std::vector<float> scales, std::vector<int64_t> zeroPoints, int axis) {
  auto quantization = std::make_unique<tflite::QuantizationT>();
  quantization->scale = std::move(scales);
  quantization->zero_point = std::move(zeroPoints);
  quantization->quantized_dimension = axis;
  at(index).quantization = std::move(quantization);
}

tflite::OperatorT &TFLiteBuilder::op(tflite::Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                                     int version, const std::string &custom) {
  auto made = std::make_unique<tflite::OperatorT>();
  made->opcode_index = uint32_t(model.operator_codes.size());
  made->inputs = std::move(inputs);
  made->outputs = std::move(outputs);
  auto operatorCode = std::make_unique<tflite::OperatorCodeT>();
  operatorCode->code = code;
  operatorCode->short_code = int8_t(std::min(int(code), 127));
  operatorCode->version = version;
  operatorCode->custom_code = custom;
  model.operator_codes.push_back(std::move(operatorCode));
  model.subgraphs[0]->operators.push_back(std::move(made));
  return *model.subgraphs[0]->operators.back();
}

void TFLiteBuilder::io(std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
  model.subgraphs[0]->inputs = std::move(inputs);
  model.subgraphs[0]->outputs = std::move(outputs);
}

std::string TFLiteBuilder::bytes() const {
  flatbuffers::FlatBufferBuilder builder;
  tflite::FinishModelBuffer(builder, tflite::Model::Pack(builder, &model));
  return std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
}

static bool interpretMain(mlir::ModuleOp module, const std::vector<HostTensor> &inputs,
                          std::vector<HostTensor> &outputs) {
  auto results = interpret(module.lookupSymbol<mlir::func::FuncOp>("main"), inputs);
  if (mlir::succeeded(results))
    outputs = std::move(*results);
  return mlir::succeeded(results);
}

TFLiteExecutor &executor() {
  static TFLiteExecutor instance = interpretMain;
  return instance;
}

static Outcome import(const std::string &bytes, const std::vector<HostTensor> *inputs) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / ("ajour-tflite-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::string path = (folder / "model.tflite").string();
  std::ofstream(path, std::ios::binary) << bytes;
  Outcome outcome;
  {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    DiagnosticCollector diagnostics(&context, path);
    mlir::OwningOpRef<mlir::ModuleOp> module = importTFLite(&context, path, {});
    outcome.imported = bool(module);
    if (module) {
      auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
      if (inputs && nn::inputArguments(main).size() == inputs->size())
        executor()(*module, withInitialStates(main, *inputs), outcome.outputs);
    }
    outcome.errors = diagnostics.text();
    for (const std::string &note : diagnostics.notes())
      outcome.notes += note + "\n";
  }
  fs::remove_all(folder);
  return outcome;
}

Outcome importBytes(const std::string &bytes, const std::vector<HostTensor> &inputs) { return import(bytes, &inputs); }
Outcome importOnly(const std::string &bytes) { return import(bytes, nullptr); }

} // namespace ajour::test
