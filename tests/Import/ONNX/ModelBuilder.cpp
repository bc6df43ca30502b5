//===- ModelBuilder.cpp - small ONNX models for tests --------------------------------===//
#include "ModelBuilder.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace mlir;

namespace ajour::onnx_test {

template <typename T> static HostTensor make(uint32_t type, Shape shape, const std::vector<T> &values) {
  HostTensor tensor;
  tensor.elementType = type;
  tensor.shape = std::move(shape);
  tensor.data.resize(values.size() * sizeof(T));
  if (!values.empty())
    memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

HostTensor floats(Shape shape, Floats values) { return make(AJOUR_F32, std::move(shape), values); }
HostTensor int64s(Shape shape, Int64s values) { return make(AJOUR_I64, std::move(shape), values); }
HostTensor int32s(Shape shape, std::vector<int32_t> values) { return make(AJOUR_I32, std::move(shape), values); }
HostTensor bytes(Shape shape, std::vector<int> values, bool isSigned) {
  return make(isSigned ? AJOUR_I8 : AJOUR_U8, std::move(shape), std::vector<uint8_t>(values.begin(), values.end()));
}
HostTensor booleans(Shape shape, std::vector<int> values) {
  return make(AJOUR_BOOL, std::move(shape), std::vector<uint8_t>(values.begin(), values.end()));
}
HostTensor ramp(Shape shape, float first, float step) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  Floats values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(first + step * float(i));
  return floats(std::move(shape), values);
}

static int32_t onnxType(uint32_t type) {
  switch (type) {
  case AJOUR_F32:
    return ::onnx::TensorProto::FLOAT;
  case AJOUR_F16:
    return ::onnx::TensorProto::FLOAT16;
  case AJOUR_I8:
    return ::onnx::TensorProto::INT8;
  case AJOUR_U8:
    return ::onnx::TensorProto::UINT8;
  case AJOUR_I32:
    return ::onnx::TensorProto::INT32;
  case AJOUR_BOOL:
    return ::onnx::TensorProto::BOOL;
  default:
    return ::onnx::TensorProto::INT64;
  }
}

::onnx::TensorProto toProto(const HostTensor &tensor) {
  ::onnx::TensorProto proto;
  proto.set_data_type(onnxType(tensor.elementType));
  for (int64_t size : tensor.shape)
    proto.add_dims(size);
  proto.set_raw_data(std::string(tensor.data.begin(), tensor.data.end()));
  return proto;
}

ModelBuilder::ModelBuilder(int64_t opset) {
  proto.set_ir_version(8);
  auto *import = proto.add_opset_import();
  import->set_version(opset);
  proto.mutable_graph()->set_name("test");
}

ModelBuilder &ModelBuilder::input(const std::string &name, std::vector<Dim> shape, int32_t type) {
  auto *info = proto.mutable_graph()->add_input();
  info->set_name(name);
  auto *tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const Dim &size : shape) {
    auto *dim = tensor->mutable_shape()->add_dim();
    if (auto *number = std::get_if<int64_t>(&size))
      dim->set_dim_value(*number);
    else if (!std::get<std::string>(size).empty())
      dim->set_dim_param(std::get<std::string>(size));
  }
  return *this;
}

ModelBuilder &ModelBuilder::initializer(const std::string &name, const HostTensor &tensor) {
  auto *proto_ = proto.mutable_graph()->add_initializer();
  *proto_ = toProto(tensor);
  proto_->set_name(name);
  return *this;
}

ModelBuilder &ModelBuilder::node(const std::string &type, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs, std::vector<Attr> attrs, const std::string &domain) {
  auto *node = proto.mutable_graph()->add_node();
  node->set_op_type(type);
  node->set_domain(domain);
  if (!domain.empty() && llvm::none_of(proto.opset_import(), [&](auto &i) { return i.domain() == domain; })) {
    auto *import = proto.add_opset_import();
    import->set_domain(domain);
    import->set_version(1);
  }
  for (const std::string &name : inputs)
    node->add_input(name);
  for (const std::string &name : outputs)
    node->add_output(name);
  for (const Attr &attr : attrs) {
    auto *a = node->add_attribute();
    a->set_name(attr.name);
    if (auto *i = std::get_if<int64_t>(&attr.value)) {
      a->set_type(::onnx::AttributeProto::INT);
      a->set_i(*i);
    } else if (auto *f = std::get_if<float>(&attr.value)) {
      a->set_type(::onnx::AttributeProto::FLOAT);
      a->set_f(*f);
    } else if (auto *s = std::get_if<std::string>(&attr.value)) {
      a->set_type(::onnx::AttributeProto::STRING);
      a->set_s(*s);
    } else if (auto *ints = std::get_if<Int64s>(&attr.value)) {
      a->set_type(::onnx::AttributeProto::INTS);
      for (int64_t value : *ints)
        a->add_ints(value);
    } else {
      a->set_type(::onnx::AttributeProto::FLOATS);
      for (float value : std::get<Floats>(attr.value))
        a->add_floats(value);
    }
  }
  return *this;
}

ModelBuilder &ModelBuilder::output(const std::string &name) {
  proto.mutable_graph()->add_output()->set_name(name);
  return *this;
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ajour-onnx-XXXXXX").string();
  path = mkdtemp(pattern.data());
}
TempDir::~TempDir() { std::filesystem::remove_all(path); }

void writeFile(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary).write(content.data(), std::streamsize(content.size()));
}

static bool interpretMain(ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &symbols,
                          std::vector<HostTensor> &outputs, std::string &) {
  auto results = interpret(module.lookupSymbol<func::FuncOp>("main"), inputs, symbols);
  if (succeeded(results))
    outputs = std::move(*results);
  return succeeded(results);
}

Executor &executor() {
  static Executor instance = interpretMain;
  return instance;
}

static Outcome runFile(const std::string &path, const std::vector<HostTensor> *inputs, const ImportOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  Outcome outcome;
  DiagnosticCollector diagnostics(&context, path);
  OwningOpRef<ModuleOp> module = importONNX(&context, path, options);
  outcome.error = diagnostics.text();
  EXPECT_NE(bool(module), !outcome.error.empty()) << "a module xor a message";
  if (!module)
    return outcome;
  llvm::raw_string_ostream(outcome.ir) << *module;
  if (!inputs)
    return outcome;
  auto function = module->lookupSymbol<func::FuncOp>("main");
  auto list = module->getOperation()->getAttrOfType<ArrayAttr>("nn.symbols");
  std::vector<int64_t> symbols(list.size(), 1);
  for (auto [type, input] : llvm::zip(function.getArgumentTypes(), *inputs))
    for (auto [expr, size] : llvm::zip(nn::getDims(cast<RankedTensorType>(type)), input.shape))
      if (auto symbol = nn::matchSymbol(expr))
        symbols[symbol->position] = size / symbol->multiple;
  std::string error;
  bool done = executor()(*module, *inputs, symbols, outcome.outputs, error);
  outcome.error = diagnostics.text() + error;
  EXPECT_EQ(done, outcome.error.empty());
  return outcome;
}

Outcome run(const ModelBuilder &model, const std::vector<HostTensor> &inputs, const ImportOptions &options) {
  TempDir dir;
  writeFile(dir / "model.onnx", model.proto.SerializeAsString());
  return runFile(dir / "model.onnx", &inputs, options);
}
Outcome importBytes(const std::string &content, const ImportOptions &options) {
  TempDir dir;
  writeFile(dir / "model.onnx", content);
  return runFile(dir / "model.onnx", nullptr, options);
}
std::string importFile(const std::string &path, const ImportOptions &options) {
  return runFile(path, nullptr, options).error;
}
Outcome importOnly(const ModelBuilder &model, const ImportOptions &options) {
  return importBytes(model.proto.SerializeAsString(), options);
}

void expectFloats(const Outcome &outcome, const Shape &shape, const Floats &values, float tolerance) {
  ASSERT_EQ(outcome.error, "");
  ASSERT_EQ(outcome.outputs.at(0).elementType, uint32_t(AJOUR_F32));
  ASSERT_EQ(outcome.outputs[0].shape, shape);
  ASSERT_EQ(size_t(outcome.outputs[0].numElements()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(outcome.outputs[0].as<float>()[i], values[i], tolerance * std::max(1.0f, std::abs(values[i]))) << "element " << i;
}

void expectInts(const Outcome &outcome, const Shape &shape, const Int64s &values) {
  ASSERT_EQ(outcome.error, "");
  const HostTensor &t = outcome.outputs.at(0);
  ASSERT_EQ(t.shape, shape);
  Int64s found;
  for (int64_t i = 0; i < t.numElements(); ++i)
    found.push_back(t.elementType == AJOUR_I64   ? t.as<int64_t>()[i]
                    : t.elementType == AJOUR_I32 ? t.as<int32_t>()[i]
                    : t.elementType == AJOUR_I8  ? t.as<int8_t>()[i]
                                                 : t.as<uint8_t>()[i]);
  EXPECT_EQ(found, values);
}

void expectError(const Outcome &outcome, std::vector<std::string> parts) {
  EXPECT_TRUE(outcome.ir.empty()) << "it should be refused";
  for (const std::string &part : parts)
    EXPECT_NE(outcome.error.find(part), std::string::npos) << "'" << part << "' in: " << outcome.error;
}

} // namespace ajour::onnx_test
