//===- StoredWeightsTest.cpp - products whose weights keep their few bits -----------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"

#include "ajour/Conversion/Dispatch.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Pipeline/Compile.h"

using namespace ajour;
using namespace ajour::test;

namespace {

/// A weight of random codes of `bits`, which the fold makes of random bytes.
std::string codes(ModuleText &m, const std::vector<int64_t> &sizes, const std::string &element, int64_t bits) {
  std::string type = tensorType(sizes, element), ui8 = tensorType(sizes, "ui8"), mask = tensorType({1}, "ui8");
  std::string all = m.constant(ui8);
  std::string value = m.op("nn.binary <bit_and>", {all, m.splat((1 << bits) - 1, mask)}, "", ui8);
  if (element == "ui8")
    return value;
  // Around 0; the subtraction wraps for 8 bits.
  std::string middle = m.splat(bits == 8 ? -128 : 1 << (bits - 1), tensorType({1}, "i8"));
  return m.op("nn.binary <sub>", {m.op("nn.cast", {value}, "", type), middle}, "", type);
}

struct Form {
  std::string codes = "i8", scales = "f32", zeros; ///< element types; no zeros: none
  int64_t bits = 4, group = 32;                    ///< group 0: per output; -1: one for all
};

std::ostream &operator<<(std::ostream &os, const Form &f) {
  return os << f.codes << " of " << f.bits << " bits, scales " << f.scales << ", zeros " << f.zeros << ", group " << f.group;
}

/// The stored weight; dimension `depth` has the groups, `outputs` the outputs.
std::string stored(ModuleText &m, const std::vector<int64_t> &sizes, const Form &f, size_t outputs, size_t depth) {
  std::string x = codes(m, sizes, f.codes, f.bits);
  std::vector<int64_t> parameters(sizes.size(), 1);
  int64_t group = f.group > 0 ? f.group : sizes[depth];
  if (f.group >= 0)
    parameters[outputs] = sizes[outputs];
  parameters[depth] = (sizes[depth] + group - 1) / group;
  std::vector<std::string> operands{x, m.constant(tensorType(parameters, f.scales))};
  if (!f.zeros.empty() && f.zeros[0] != 'f')
    operands.push_back(codes(m, parameters, f.zeros, f.bits));
  else if (!f.zeros.empty())
    operands.push_back(m.constant(tensorType(parameters, f.zeros)));
  return m.op("nn.dequantize_grouped", operands,
              "axis = " + std::to_string(depth) + " : i64, group = " + std::to_string(group) +
                  " : i64, bits = " + std::to_string(f.bits) + " : i64",
              tensorType(sizes, "f32"));
}

std::string convAttributes(int64_t pad, int64_t stride) {
  std::string s = array({stride, stride}), p = array({pad, pad});
  return "strides = " + s + ", dilations = array<i64: 1, 1>, pads_low = " + p + ", pads_high = " + p;
}

const Form forms[] = {
    {},
    {.scales = "f16"},
    {.codes = "ui8", .zeros = "ui8"},
    {.codes = "i8", .scales = "f16", .zeros = "i8", .bits = 3, .group = 16},
    {.codes = "ui8", .scales = "f16", .zeros = "f16", .bits = 2},
    {.codes = "ui8", .bits = 1, .group = 64},
    {.bits = 8, .group = 0},
    {.codes = "ui8", .zeros = "ui8", .bits = 8, .group = -1},
    {.bits = 5, .group = 0},
    {.bits = 6, .group = -1},
    {.bits = 7, .group = 48},
};

} // namespace

TEST(StoredWeights, Matmul) {
  for (const Form &form : forms) {
    testing::Message message;
    message << form;
    SCOPED_TRACE(message);
    ModuleText m;
    for (auto [rows, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{1, 70, 35}, {5, 128, 16}, {150, 33, 50}})
      for (bool transposed : {true, false}) {
        if (!transposed && rows != 5)
          continue;
        std::string x = m.input(tensorType({rows, k}, "f32")), b = m.constant(tensorType({n}, "f32"));
        std::string w = transposed ? stored(m, {n, k}, form, 0, 1) : stored(m, {k, n}, form, 1, 0);
        std::string y = m.op("nn.matmul", {x, w, b}, transposed ? "transpose_rhs" : "", tensorType({rows, n}, "f32"));
        m.output(m.unary("relu", y));
      }
    expectCompiled(m.text(), {{}}, {.tolerance = 2e-4, .threads = 2});
  }
}

// Many blocks of rows meet many panels, in any order of work items.
TEST(StoredWeights, ManyItems) {
  ModuleText m;
  std::string x = m.input(tensorType({700, 96}, "f32"));
  m.output(m.op("nn.matmul", {x, stored(m, {700, 96}, {}, 0, 1)}, "transpose_rhs", tensorType({700, 700}, "f32")));
  expectCompiled(m.text(), {{}}, {.tolerance = 2e-4, .threads = 3});
}

TEST(StoredWeights, SymbolicRows) {
  ModuleText m(1);
  std::string x = m.input(symbolicType({"s0", "96"}, "f32"));
  m.output(m.op("nn.matmul", {x, stored(m, {70, 96}, {.scales = "f16"}, 0, 1)}, "transpose_rhs", symbolicType({"s0", "70"}, "f32")));
  expectCompiled(m.text(), {{1}, {13}, {64}}, {.tolerance = 2e-4, .threads = 2});
}

// The number of rows is known only when the model runs.
TEST(StoredWeights, FewRowsOrMany) {
  for (const Form &form : {Form{.scales = "f16"}, Form{.bits = 8}, Form{.codes = "ui8", .zeros = "ui8", .bits = 8},
                           Form{.codes = "ui8", .scales = "f16", .zeros = "ui8", .bits = 2, .group = 16}, Form{.bits = 8, .group = 0}}) {
    testing::Message message;
    message << form;
    SCOPED_TRACE(message);
    ModuleText m(1);
    for (int64_t k : {70, 128}) {
      if (k % std::max<int64_t>(form.group, 1) != 0)
        continue;
      std::string x = m.input(symbolicType({"s0", std::to_string(k)}, "f32"));
      m.output(m.unary("relu", m.op("nn.matmul", {x, stored(m, {90, k}, form, 0, 1), m.constant(tensorType({90}, "f32"))}, "transpose_rhs",
                                    symbolicType({"s0", "90"}, "f32"))));
    }
    expectCompiled(m.text(), {{0}, {1}, {16}, {17}, {40}, {64}}, {.tolerance = 2e-4, .threads = 2});
  }
  ModuleText m(1);
  std::string x = m.input(symbolicType({"2", "s0", "64"}, "f32")), h = m.constant(tensorType({35, 64}, "f16"));
  std::string w = m.op("nn.cast", {h}, "", tensorType({35, 64}, "f32"));
  m.output(m.op("nn.matmul", {m.unary("abs", x), w}, "transpose_rhs", symbolicType({"2", "s0", "35"}, "f32")));
  expectCompiled(m.text(), {{1}, {8}, {9}, {33}}, {.tolerance = 2e-4, .threads = 2});
}

// So deep that many rows of f16 weights take the depth in stretches: rows in one block and in several, a panel that is half full.
TEST(StoredWeights, DeepHalfPrecision) {
  for (int64_t k : {1024, 1301}) {
    SCOPED_TRACE(k);
    ModuleText m(1);
    std::string size = std::to_string(k), x = m.input(symbolicType({"4", "s0", size}, "f32")), b = m.constant(tensorType({75}, "f32"));
    std::string w = m.op("nn.cast", {m.constant(tensorType({75, k}, "f16"))}, "", tensorType({75, k}, "f32"));
    std::string y = m.op("nn.matmul", {x, w, b}, "transpose_rhs", symbolicType({"4", "s0", "75"}, "f32"));
    m.output(m.unary("relu", y));
    expectCompiled(m.text(), {{1}, {4}, {5}, {12}, {36}, {64}}, {.tolerance = 2e-4, .threads = 2});
  }
}

TEST(StoredWeights, Convolution) {
  for (const Form &form : {Form{.bits = 8, .group = 0}, Form{}, Form{.codes = "ui8", .zeros = "ui8", .bits = 3, .group = -1}})
    for (auto [window, stride] : {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {3, 1}}) {
      testing::Message message;
      message << form << ", window " << window << ", stride " << stride;
      SCOPED_TRACE(message);
      ModuleText m;
      int64_t out = (14 - 1) / stride + 1;
      std::string x = m.input(tensorType({2, 14, 14, 32}, "f32")), b = m.constant(tensorType({40}, "f32"));
      std::string w = stored(m, {40, window, window, 32}, form, 0, 3);
      m.output(m.op("nn.conv", {x, w, b}, convAttributes(window / 2, stride), tensorType({2, out, out, 40}, "f32")));
      expectCompiled(m.text(), {{}}, {.tolerance = 2e-4, .threads = 2});
    }
}

// Whole rows of tiles: in bands with a stride of 2, by Winograd's method (whose filters are floats) without.
TEST(StoredWeights, ConvolutionByRows) {
  ModuleText m;
  std::string x = m.input(tensorType({1, 56, 56, 64}, "f32"));
  for (int64_t stride : {1, 2}) {
    std::string type = tensorType({1, 56 / stride, 56 / stride, 96}, "f32");
    std::string w = stored(m, {96, 3, 3, 64}, {.bits = 8, .group = 0}, 0, 3);
    m.output(m.op("nn.conv", {x, w}, convAttributes(1, stride), type));
    std::string table = m.constant(tensorType({16}, "f32")), codes = m.constant(tensorType({96, 3, 3, 64}, "ui8"));
    std::string decoded = m.op("nn.dequantize_codebook", {codes, table}, "", tensorType({96, 3, 3, 64}, "f32"));
    m.output(m.op("nn.conv", {x, decoded}, convAttributes(1, stride), type));
  }
  expectCompiled(m.text(), {{}}, {.tolerance = 1e-3, .threads = 2});
}

TEST(StoredWeights, HalfPrecision) {
  for (int64_t rows : {1, 40}) {
    ModuleText m;
    std::string x = m.input(tensorType({rows, 65}, "f32")), h = m.constant(tensorType({35, 65}, "f16"));
    std::string w = m.op("nn.cast", {h}, "", tensorType({35, 65}, "f32"));
    m.output(m.op("nn.matmul", {x, w}, "transpose_rhs", tensorType({rows, 35}, "f32")));
    expectCompiled(m.text(), {{}}, {.tolerance = 2e-4});
  }
}

TEST(StoredWeights, Codebook) {
  ModuleText m;
  std::string x = m.input(tensorType({20, 64}, "f32"));
  for (int64_t entries : {2, 3, 16, 33, 256})
    for (const char *scales : {"", "f16", "f32"}) {
      std::vector<std::string> operands{m.constant(tensorType({35, 64}, "ui8")), m.constant(tensorType({entries}, "f32"))};
      if (*scales)
        operands.push_back(m.constant(tensorType({35, 2}, scales)));
      std::string w = m.op("nn.dequantize_codebook", operands, "axis = 1 : i64, group = 32 : i64", tensorType({35, 64}, "f32"));
      m.output(m.op("nn.matmul", {x, w}, "transpose_rhs", tensorType({20, 35}, "f32")));
    }
  expectCompiled(m.text(), {{}}, {.tolerance = 2e-4});
}

TEST(StoredWeights, GatherOfRows) {
  ModuleText m;
  std::string i = m.input(tensorType({5}, "i64")), w = stored(m, {9, 64}, {}, 0, 1);
  m.output(m.op("nn.gather", {w, i}, "axis = 0 : i64", tensorType({5, 64}, "f32")));
  expectCompiled(m.text());
}

/// Bytes of all constants of a module as an artifact holds them.
static int64_t constantBytes(const std::string &text) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parseModule(text);
  EXPECT_TRUE(succeeded(simplify(*module)) && succeeded(lowerToExec(*module)));
  int64_t bytes = 0;
  for (auto callee : module->getOps<mlir::func::FuncOp>()) {
    if (callee.getName() == "main")
      continue;
    mlir::OwningOpRef<mlir::ModuleOp> loops = mlir::ModuleOp::create(module->getLoc());
    auto lowered = lowerDispatch(callee, hostArch() == AJOUR_ARCH_X86_64 ? AJOUR_LEVEL_avx2 : AJOUR_LEVEL_neon, 0, *loops);
    EXPECT_TRUE(succeeded(lowered));
    if (failed(lowered))
      return -1;
    std::vector<mlir::ElementsAttr> constants;
    module->lookupSymbol<mlir::func::FuncOp>("main").walk([&](exec::DispatchOp dispatch) {
      if (dispatch.getCallee() != callee.getName())
        return;
      for (mlir::Value input : dispatch.getInputs())
        constants.push_back(nn::getConstantValue(input));
    });
    for (const OperandSpec &operand : lowered->operands) {
      if (operand.kind == OperandSpec::Packed)
        bytes += packOperand(lowered->packs[operand.index], constants).size();
      else if (operand.kind == OperandSpec::Argument && constants[operand.index])
        bytes += nn::constantBytes(constants[operand.index]).size();
    }
  }
  return bytes;
}

TEST(StoredWeights, TheArtifactHoldsTheCodes) {
  auto bytesOf = [](const Form &form) {
    ModuleText m;
    std::string x = m.input(tensorType({32, 1024}, "f32"));
    m.output(m.op("nn.matmul", {x, stored(m, {512, 1024}, form, 0, 1)}, "transpose_rhs", tensorType({32, 512}, "f32")));
    return constantBytes(m.text());
  };
  int64_t elements = 512 * 1024;
  EXPECT_EQ(bytesOf({.scales = "f16"}), elements / 2 + elements / 32 * 2);
  EXPECT_EQ(bytesOf({}), elements / 2 + elements / 32 * 4);
  EXPECT_EQ(bytesOf({.codes = "ui8", .scales = "f16", .zeros = "ui8"}), elements / 2 + elements / 32 * 3);
  EXPECT_EQ(bytesOf({.bits = 3, .group = 0}), elements * 3 / 8 + 512 * 4);
  EXPECT_EQ(bytesOf({.bits = 1, .group = 64}), elements / 8 + elements / 64 * 4);
}
