//===- DynamicCases.cpp - one artifact for many sizes ---------------------------------===//
#include "Import/ONNX/ModelBuilder.h"
#include "Support/CompiledModel.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include <cmath>
#include <filesystem>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

/// Compiles a model of the published ones once; null when it is not there.
struct Prepared {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< as imported
  std::shared_ptr<CompiledModel> compiled;

  explicit Prepared(const std::string &path, const ImportOptions &options = {}) {
    DiagnosticCollector diagnostics(context.get(), path);
    module = importONNX(context.get(), path, options);
    EXPECT_TRUE(module) << diagnostics.text();
    if (module)
      compiled = test::compileClone(*module);
  }
  std::vector<HostTensor> run(const HostTensor &input) {
    std::vector<HostTensor> outputs;
    std::string error = "not compiled";
    EXPECT_TRUE(compiled && compiled->run({input}, outputs, error)) << error;
    return outputs;
  }
  std::string refusal(const HostTensor &input) {
    std::vector<HostTensor> outputs;
    std::string error;
    EXPECT_FALSE(compiled && compiled->run({input}, outputs, error));
    return error;
  }
};

HostTensor picture(int64_t height, int64_t width) {
  HostTensor x = ramp({1, 3, height, width});
  for (int64_t c = 0, i = 0; c < 3; ++c)
    for (int64_t h = 0; h < height; ++h)
      for (int64_t w = 0; w < width; ++w)
        x.as<float>()[i++] = 127 + 100 * std::sin(float(h) * .05f + float(c)) * std::cos(float(w) * .07f);
  return x;
}

void expectNear(const std::vector<HostTensor> &found, const std::vector<HostTensor> &expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) {
    ASSERT_EQ(found[k].shape, expected[k].shape) << "output " << k;
    for (int64_t i = 0; i < found[k].numElements(); ++i) {
      float a = found[k].as<float>()[i], b = expected[k].as<float>()[i];
      ASSERT_NEAR(a, b, tolerance * (1 + std::abs(b))) << "output " << k << ", element " << i;
    }
  }
}

/// Options that give a module's symbolic dimensions these sizes, in their order.
ImportOptions sizes(mlir::ModuleOp module, std::vector<int64_t> values) {
  ImportOptions options;
  auto symbols = module->getAttrOfType<mlir::ArrayAttr>("nn.symbols");
  EXPECT_EQ(symbols.size(), values.size());
  for (auto [symbol, value] : llvm::zip(symbols.getAsRange<nn::SymbolAttr>(), values))
    options.dims[symbol.getName().str()] = {value, value};
  return options;
}

TEST(DynamicCases, PyramidOfPublishedDetector) {
  std::string folder = AJOUR_TEST_MODELS "/yunet/";
  if (!std::filesystem::exists(folder + "yunet_n_dynamic.onnx") || !std::filesystem::exists(folder + "yunet_n_320_320.onnx"))
    GTEST_SKIP() << "absent: yunet";
  Prepared dynamic(folder + "yunet_n_dynamic.onnx"), fixed(folder + "yunet_n_320_320.onnx");
  ASSERT_TRUE(dynamic.compiled && fixed.compiled);
  expectNear(dynamic.run(picture(320, 320)), fixed.run(picture(320, 320)), 1e-5f);
  // A small picture against the reference; a large one, which that takes long for, against code for this size alone.
  auto main = dynamic.module->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<HostTensor> input{picture(96, 160)};
  auto expected = interpret(main, input, readSymbols(main, input));
  ASSERT_TRUE(succeeded(expected));
  expectNear(dynamic.run(input[0]), *expected, 1e-5f);
  Prepared alone(folder + "yunet_n_dynamic.onnx", sizes(*dynamic.module, {1, 640, 480})); // batch, height, width
  expectNear(dynamic.run(picture(640, 480)), alone.run(picture(640, 480)), 1e-5f);
  EXPECT_NE(dynamic.refusal(picture(320, 330)).find("is 330, expected a multiple of 32"), std::string::npos)
      << dynamic.refusal(picture(320, 330));
  EXPECT_NE(dynamic.refusal(picture(16, 320)).find("is 16, allowed 32 to"), std::string::npos)
      << dynamic.refusal(picture(16, 320));
}

/// Halved twice, doubled once, and added to what was halved once: H must be a multiple of 4.
ModelBuilder pyramid() {
  ModelBuilder m(13);
  std::vector<Attr> half{{"kernel_shape", Int64s{1}}, {"strides", Int64s{2}}};
  m.input("x", {1, 1, std::string("H")}).initializer("scales", floats({3}, {1, 1, 2}));
  m.node("MaxPool", {"x"}, {"a"}, half).node("MaxPool", {"a"}, {"b"}, half);
  m.node("Resize", {"b", "", "scales"}, {"c"}, {{"mode", std::string("nearest")}}).node("Add", {"a", "c"}, {"y"}).output("y");
  return m;
}

TEST(DynamicCases, MultiplesAreStatedInRealSizes) {
  TempDir dir;
  writeFile(dir / "model.onnx", pyramid().proto.SerializeAsString());
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  DiagnosticCollector diagnostics(context.get(), "model.onnx");
  ImportOptions options;
  options.dims["H"] = {6, 22}; // 8 to 20
  mlir::OwningOpRef<mlir::ModuleOp> module = importONNX(context.get(), dir / "model.onnx", options);
  ASSERT_TRUE(module) << diagnostics.text();
  std::shared_ptr<CompiledModel> compiled = test::compileClone(*module);
  ASSERT_TRUE(compiled);
  ajour_load_options load = AJOUR_INIT(ajour_load_options);
  ajour_model *model = nullptr;
  ASSERT_EQ(ajour_model_load_file(compiled->path().c_str(), &load, &model), AJOUR_OK) << ajour_last_message();
  ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
  EXPECT_EQ(ajour_model_input(model, 0, &info), AJOUR_OK);
  EXPECT_STREQ(info.dim_names[2], "H");
  EXPECT_EQ(info.dim_min[2], 8);
  EXPECT_EQ(info.dim_max[2], 20);
  EXPECT_EQ(info.dim_multiple[2], 4);
  ajour_model_destroy(model);
  std::vector<HostTensor> outputs;
  std::string error;
  ASSERT_TRUE(compiled->run({ramp({1, 1, 8})}, outputs, error)) << error;
  EXPECT_EQ(outputs[0].data, floats({1, 1, 4}, {0, 2, 8, 10}).data);
  EXPECT_FALSE(compiled->run({ramp({1, 1, 10})}, outputs, error));
  EXPECT_NE(error.find("input 'x': dimension 2 ('H') is 10, expected a multiple of 4"), std::string::npos) << error;
  EXPECT_FALSE(compiled->run({ramp({1, 1, 24})}, outputs, error));
  EXPECT_NE(error.find("input 'x': dimension 2 ('H') is 24, allowed 8 to 20"), std::string::npos) << error;
}

} // namespace
