//===- Compiled.cpp - compiled modules against the reference -----------------------------===//
#include "Pipeline/Compiled.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/Diagnostics.h"

#include "mlir/Parser/Parser.h"

#include <random>

using namespace mlir;

namespace ajour::test {

MLIRContext *compilerContext() {
  static MLIRContext *context = makeContext().release();
  return context;
}

/// Random elements of a tensor whose type and shape are set.
static void fill(HostTensor &tensor, std::mt19937_64 &random, int64_t indexBound) {
  uint32_t size = ajour_element_size(tensor.elementType);
  tensor.data.resize(tensor.numElements() * size);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    char *element = tensor.data.data() + i * size;
    double real = std::normal_distribution<double>(0, 1.5)(random);
    uint64_t bits = random();
    switch (tensor.elementType) {
    case AJOUR_F32:
      *reinterpret_cast<float *>(element) = float(real);
      break;
    case AJOUR_F64:
      *reinterpret_cast<double *>(element) = real;
      break;
    case AJOUR_F16:
    case AJOUR_BF16: {
      llvm::APFloat value(real);
      bool lost;
      value.convert(tensor.elementType == AJOUR_F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                    llvm::APFloat::rmNearestTiesToEven, &lost);
      bits = value.bitcastToAPInt().getZExtValue();
      std::memcpy(element, &bits, 2);
      break;
    }
    case AJOUR_BOOL:
      *element = bits & 1;
      break;
    case AJOUR_I32:
    case AJOUR_I64:
      bits = uint64_t(int64_t(bits % uint64_t(2 * indexBound)) - indexBound);
      std::memcpy(element, &bits, size);
      break;
    default:
      std::memcpy(element, &bits, size);
      break;
    }
  }
}

static HostTensor randomTensor(RankedTensorType type, const std::vector<int64_t> &symbols, std::mt19937_64 &random,
                               int64_t indexBound) {
  HostTensor tensor;
  tensor.elementType = nn::getElementTypeId(type.getElementType());
  for (AffineExpr dim : nn::getDims(type)) {
    auto symbol = nn::matchSymbol(dim);
    tensor.shape.push_back(symbol ? symbols.at(symbol->position) * symbol->multiple : *nn::getConstant(dim));
  }
  fill(tensor, random, indexBound);
  return tensor;
}

OwningOpRef<ModuleOp> parseModule(const std::string &text, uint64_t seed) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, compilerContext());
  if (!module)
    return module;
  auto main = module->lookupSymbol<func::FuncOp>("main");
  std::mt19937_64 random(seed + 1000);
  for (int i = int(main.getNumArguments()) - 1; i >= 0; --i) {
    if (!main.getArgAttr(i, "test.constant"))
      continue;
    auto type = cast<RankedTensorType>(main.getArgumentTypes()[i]);
    OpBuilder b(&main.getBody().front(), main.getBody().front().begin());
    auto constant =
        nn::ConstantOp::create(b, main.getLoc(), type, toAttribute(randomTensor(type, {}, random, 8), compilerContext()));
    main.getArgument(i).replaceAllUsesWith(constant.getResult());
    EXPECT_TRUE(succeeded(main.eraseArgument(i)));
  }
  return module;
}

std::vector<HostTensor> randomInputs(ModuleOp module, const std::vector<int64_t> &symbols, uint64_t seed,
                                     int64_t indexBound) {
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  for (Type type : module.lookupSymbol<func::FuncOp>("main").getArgumentTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), symbols, random, indexBound));
  return inputs;
}

static std::string describe(const TensorDifference &d) {
  return "element " + std::to_string(d.index) + " of " + std::to_string(d.count) + " wrong: expected " +
         std::to_string(d.expected) + ", found " + std::to_string(d.found) + ", max abs " + std::to_string(d.maxAbsolute);
}

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().elideLargeElementsAttrs(16).elideLargeResourceString(16));
  return text;
}

/// Compiles a module of dispatches once and compares its runs at every level.
static void compareRuns(ModuleOp exec, const std::vector<std::vector<HostTensor>> &inputs,
                        const std::vector<std::vector<HostTensor>> &expected, const Expectation &expectation,
                        DiagnosticCollector &diagnostics) {
  // Every kind of dispatch can be reported.
  CompileReport report;
  CompileOptions options;
  options.report = &report;
  std::unique_ptr<CompiledModel> compiled = CompiledModel::write(exec, options);
  ASSERT_TRUE(compiled) << diagnostics.text() << "\n" << textOf(exec);
  for (const std::string &level : runnableLevels())
    for (uint32_t threads : {1u, 2u})
      for (size_t set = 0; set < inputs.size(); ++set) {
        if (threads == 2 && (set > 0 || expectation.threads < 2))
          continue;
        CompiledModel::RunOptions run;
        run.level = level;
        run.threads = threads;
        std::vector<HostTensor> outputs;
        std::string error;
        ASSERT_TRUE(compiled->run(inputs[set], outputs, error, run)) << error << "\n" << textOf(exec);
        ASSERT_EQ(outputs.size(), expected[set].size());
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(outputs[i].shape, expected[set][i].shape);
          if (!expectation.values)
            continue;
          TensorDifference difference =
              compareTensors(outputs[i], expected[set][i], expectation.tolerance, expectation.steps);
          EXPECT_FALSE(difference.differs)
              << "output " << i << " at " << level << ", inputs " << set << ": " << describe(difference) << "\n"
              << textOf(exec);
        }
      }
}

/// As written and simplified.
static void compareBoth(ModuleOp module, const std::vector<std::vector<HostTensor>> &inputs,
                        const std::vector<std::vector<HostTensor>> &expected, const Expectation &expectation) {
  DiagnosticCollector diagnostics(module.getContext(), "test");
  for (bool simplified : {false, true}) {
    if (simplified && !expectation.simplify)
      continue;
    SCOPED_TRACE(simplified ? "simplified" : "as written");
    OwningOpRef<ModuleOp> clone = module.clone();
    ASSERT_TRUE(!simplified || succeeded(simplify(*clone))) << diagnostics.text();
    ASSERT_TRUE(succeeded(lowerToExec(*clone))) << diagnostics.text() << textOf(*clone);
    compareRuns(*clone, inputs, expected, expectation, diagnostics);
  }
}

void expectCompiled(ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<HostTensor> &expected,
                    const Expectation &expectation) {
  compareBoth(module, {inputs}, {expected}, expectation);
}

void expectCompiled(const std::string &text, const std::vector<std::vector<int64_t>> &symbolSets,
                    const Expectation &expectation) {
  OwningOpRef<ModuleOp> module = parseModule(text, expectation.seed);
  ASSERT_TRUE(module) << text;
  std::vector<std::vector<HostTensor>> inputs, expected;
  for (const std::vector<int64_t> &symbols : symbolSets) {
    inputs.push_back(randomInputs(*module, symbols, expectation.seed, expectation.indexBound));
    auto results = interpret(module->lookupSymbol<func::FuncOp>("main"), inputs.back(), symbols);
    ASSERT_TRUE(succeeded(results)) << text;
    expected.push_back(std::move(*results));
  }
  compareBoth(*module, inputs, expected, expectation);
}

} // namespace ajour::test
