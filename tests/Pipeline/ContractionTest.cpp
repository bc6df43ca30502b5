//===- ContractionTest.cpp - compiled products and convolutions ---------------------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"
#include "ajour/Reference/Interpreter.h"

using namespace ajour;
using namespace ajour::test;

static std::string window(const char *name, std::vector<int64_t> values) { return std::string(name) + " = " + array(values); }

/// Attributes of a convolution over two dimensions.
static std::string convAttributes(std::vector<int64_t> strides, std::vector<int64_t> dilations, std::vector<int64_t> low,
                                  std::vector<int64_t> high, int64_t groups = 1) {
  return window("strides", strides) + ", " + window("dilations", dilations) + ", " + window("pads_low", low) + ", " +
         window("pads_high", high) + ", groups = " + std::to_string(groups) + " : i64";
}

static int64_t outSize(int64_t in, int64_t window, int64_t stride, int64_t dilation, int64_t low, int64_t high) {
  return (in + low + high - (dilation * (window - 1) + 1)) / stride + 1;
}

// Row P10: every n from 1 to 8 and tails of k; row counts around the tile's.
TEST(CompiledMatmul, F32Sizes) {
  for (int64_t rows : {1, 2, 5, 13})
    for (auto [k, n] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {3, 2}, {4, 3}, {7, 4}, {8, 5}, {16, 6}, {33, 7}, {64, 8}, {5, 17}, {40, 33}, {0, 3}, {129, 16}}) {
      SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(k) + "x" + std::to_string(n));
      ModuleText m;
      std::string out = tensorType({rows, n}, "f32");
      std::string x = m.input(tensorType({rows, k}, "f32")), w = m.constant(tensorType({n, k}, "f32"));
      std::string b = m.constant(tensorType({n}, "f32"));
      m.output(m.op("nn.matmul", {x, w, b}, "transpose_rhs", out));
      expectCompiled(m.text(), {{}}, {.simplify = false, .threads = 2});
    }
}

// Rows that are long and many: the depth is taken in stretches, whole and with a rest, rows in one block and in several.
TEST(CompiledMatmul, Deep) {
  for (auto [rows, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{57, 1300, 70}, {128, 1024, 33}, {300, 2048, 64}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(k) + "x" + std::to_string(n));
    ModuleText m;
    std::string x = m.input(tensorType({rows, k}, "f32")), w = m.constant(tensorType({n, k}, "f32"));
    std::string b = m.constant(tensorType({n}, "f32")), out = tensorType({rows, n}, "f32");
    m.output(m.unary("relu", m.op("nn.matmul", {x, w, b}, "transpose_rhs", out)));
    for (const char *lhs : {"i8", "ui8"}) {
      std::string q = m.input(tensorType({rows, 4 * k}, lhs)), v = m.constant(tensorType({n, 4 * k}, "i8"));
      m.output(m.op("nn.matmul", {q, v}, "transpose_rhs, lhs_zero_point = 3 : i32", tensorType({rows, n}, "i32")));
    }
    expectCompiled(m.text(), {{}}, {.tolerance = 2e-4, .threads = 2});
  }
}

// The same of rows that are not stored as such, and of a convolution of single pixels.
TEST(CompiledMatmul, DeepInOtherForms) {
  ModuleText m;
  std::string x = m.input(tensorType({1300, 64}, "f32")), w = m.constant(tensorType({70, 1300}, "f32"));
  std::string rows = m.op("nn.transpose", {x}, "perm = array<i64: 1, 0>", tensorType({64, 1300}, "f32"));
  m.output(m.op("nn.matmul", {rows, w}, "transpose_rhs", tensorType({64, 70}, "f32")));
  std::string q = m.input(tensorType({4100, 61}, "ui8")), v = m.constant(tensorType({33, 4100}, "i8"));
  std::string turned = m.op("nn.transpose", {q}, "perm = array<i64: 1, 0>", tensorType({61, 4100}, "ui8"));
  m.output(m.op("nn.matmul", {turned, v}, "transpose_rhs, lhs_zero_point = 3 : i32", tensorType({61, 33}, "i32")));
  std::string image = m.input(tensorType({1, 8, 9, 1200}, "f32")), filter = m.constant(tensorType({40, 1, 1, 1200}, "f32"));
  m.output(m.op("nn.conv", {image, filter, m.constant(tensorType({40}, "f32"))},
                "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>",
                tensorType({1, 8, 9, 40}, "f32")));
  expectCompiled(m.text(), {{}}, {.tolerance = 2e-4, .threads = 2});
}

TEST(CompiledMatmul, FormsOfOperands) {
  for (const char *element : {"f32", "f16", "f64", "bf16"})
    for (bool transposeLhs : {false, true})
      for (bool transposeRhs : {false, true})
        for (bool constantRhs : {false, true}) {
          ModuleText m;
          std::string x = m.input(transposeLhs ? tensorType({9, 6}, element) : tensorType({6, 9}, element));
          std::string type = transposeRhs ? tensorType({20, 9}, element) : tensorType({9, 20}, element);
          std::string w = constantRhs ? m.constant(type) : m.input(type);
          std::string attributes = std::string(transposeLhs ? "transpose_lhs" : "") +
                                   (transposeLhs && transposeRhs ? ", " : "") + (transposeRhs ? "transpose_rhs" : "");
          m.output(m.op("nn.matmul", {x, w}, attributes, tensorType({6, 20}, element)));
          expectCompiled(m.text());
        }
}

TEST(CompiledMatmul, Batches) {
  struct Row {
    std::vector<int64_t> lhs, rhs, out;
  } rows[] = {{{3, 4, 5}, {3, 5, 6}, {3, 4, 6}},
              {{3, 4, 5}, {5, 6}, {3, 4, 6}},
              {{4, 5}, {3, 5, 6}, {3, 4, 6}},
              {{2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}},
              {{2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}},
              {{0, 4, 5}, {0, 5, 6}, {0, 4, 6}}};
  for (const Row &row : rows)
    for (bool constantRhs : {false, true}) {
      ModuleText m;
      std::string x = m.input(tensorType(row.lhs, "f32"));
      std::string w = constantRhs ? m.constant(tensorType(row.rhs, "f32")) : m.input(tensorType(row.rhs, "f32"));
      m.output(m.op("nn.matmul", {x, w}, "", tensorType(row.out, "f32")));
      expectCompiled(m.text());
    }
}

TEST(CompiledMatmul, Integers) {
  for (const char *lhs : {"i8", "ui8"})
    for (const char *rhs : {"i8", "ui8"})
      for (bool constantRhs : {true, false})
        for (auto [rows, k, n] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
                 {1, 1, 1}, {3, 7, 5}, {6, 64, 16}, {17, 130, 33}}) {
          SCOPED_TRACE(std::string(lhs) + " " + rhs + " k " + std::to_string(k));
          ModuleText m;
          std::string acc = tensorType({rows, n}, "i32"), x = m.input(tensorType({rows, k}, lhs));
          std::string type = tensorType({n, k}, rhs);
          std::string w = constantRhs ? m.constant(type) : m.input(type), b = m.constant(tensorType({n}, "i32"));
          std::string zeros = rhs[0] == 'u' ? "128" : "-3", lhsZero = lhs[0] == 'u' ? "131" : "-5";
          m.output(m.op("nn.matmul", {x, w}, "transpose_rhs", acc));
          std::string y = m.op("nn.matmul", {x, w, b},
                               "transpose_rhs, lhs_zero_point = " + lhsZero + " : i32, rhs_zero_points = array<i32: " +
                                   zeros + ">",
                               acc);
          m.output(m.op("nn.requantize", {y},
                        "multipliers = array<i32: 1518500250>, shifts = array<i32: -7>, zero_point = 4 : i32, qmin = -128 "
                        ": i32, qmax = 127 : i32",
                        tensorType({rows, n}, "i8")));
          expectCompiled(m.text());
        }
}

TEST(CompiledMatmul, WideIntegers) {
  for (auto [lhs, rhs, out] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"i16", "i8", "i64"}, {"i16", "i16", "i64"}, {"i32", "i32", "i32"}}) {
    ModuleText m;
    std::string x = m.input(tensorType({5, 40}, lhs)), w = m.constant(tensorType({40, 9}, rhs));
    m.output(m.op("nn.matmul", {x, w}, "", tensorType({5, 9}, out)));
    expectCompiled(m.text());
  }
}

struct ConvCase {
  std::vector<int64_t> in; ///< N H W C
  int64_t out, kh, kw;
  std::vector<int64_t> strides{1, 1}, dilations{1, 1}, low{0, 0}, high{0, 0};
  int64_t groups = 1;
};

static const std::vector<ConvCase> convCases = {
    {{1, 8, 8, 3}, 16, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {{1, 9, 7, 3}, 8, 3, 3, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
    {{2, 6, 5, 16}, 33, 1, 1},
    {{1, 6, 5, 16}, 7, 1, 1, {2, 2}},
    {{1, 8, 8, 2}, 4, 3, 1, {2, 2}, {1, 1}, {0, 0}, {1, 0}},   // row T1
    {{1, 9, 9, 4}, 32, 3, 3, {1, 1}, {2, 1}, {2, 1}, {2, 1}},  // row T3
    {{1, 5, 5, 4}, 4, 3, 3, {1, 1}, {2, 2}, {2, 2}, {2, 2}, 4}, // row T3, depthwise
    {{1, 8, 8, 8}, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 8},
    {{1, 9, 8, 17}, 17, 3, 3, {2, 2}, {1, 1}, {1, 0}, {0, 1}, 17},
    {{2, 7, 7, 32}, 32, 5, 5, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 32},
    {{1, 6, 6, 4}, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4}, // two filters a channel
    {{1, 6, 6, 8}, 12, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    {{1, 1, 1, 20}, 10, 1, 1},
    {{1, 4, 4, 1}, 1, 4, 4},
    {{0, 4, 4, 2}, 3, 2, 2},
};

static std::vector<int64_t> outShape(const ConvCase &c) {
  return {c.in[0], outSize(c.in[1], c.kh, c.strides[0], c.dilations[0], c.low[0], c.high[0]),
          outSize(c.in[2], c.kw, c.strides[1], c.dilations[1], c.low[1], c.high[1]), c.out};
}

TEST(CompiledConv, Floats) {
  for (const ConvCase &c : convCases)
    for (const char *element : {"f32", "f16"}) {
      SCOPED_TRACE(array(c.in) + " to " + std::to_string(c.out) + " groups " + std::to_string(c.groups));
      ModuleText m;
      std::string x = m.input(tensorType(c.in, element));
      std::string w = m.constant(tensorType({c.out, c.kh, c.kw, c.in[3] / c.groups}, element));
      std::string b = m.constant(tensorType({c.out}, element));
      m.output(m.op("nn.conv", {x, w, b}, convAttributes(c.strides, c.dilations, c.low, c.high, c.groups),
                    tensorType(outShape(c), element)));
      expectCompiled(m.text(), {{}}, {.threads = 2});
    }
}

TEST(CompiledConv, Integers) {
  for (const ConvCase &c : convCases)
    for (const char *lhs : {"i8", "ui8"})
      for (const char *rhs : {"i8", "ui8"}) {
        SCOPED_TRACE(array(c.in) + " to " + std::to_string(c.out) + " groups " + std::to_string(c.groups) + " " + lhs + rhs);
        ModuleText m;
        std::string x = m.input(tensorType(c.in, lhs));
        std::string w = m.constant(tensorType({c.out, c.kh, c.kw, c.in[3] / c.groups}, rhs));
        std::string b = m.constant(tensorType({c.out}, "i32"));
        std::string zeros = rhs[0] == 'u' ? "128" : "0", lhsZero = lhs[0] == 'u' ? "128" : "-7";
        std::string acc =
            m.op("nn.conv", {x, w, b},
                 convAttributes(c.strides, c.dilations, c.low, c.high, c.groups) + ", lhs_zero_point = " + lhsZero +
                     " : i32, rhs_zero_points = array<i32: " + zeros + ">",
                 tensorType(outShape(c), "i32"));
        m.output(acc);
        std::string scales = "array<f32: 0.01";
        for (int64_t i = 1; i < c.out; ++i)
          scales += ", 0.0" + std::to_string(i % 9 + 1);
        m.output(m.op("nn.requantize", {acc},
                      "scales = " + scales + ">, zero_point = 3 : i32, qmin = -128 : i32, qmax = 127 : i32",
                      tensorType(outShape(c), "i8")));
        expectCompiled(m.text(), {{}}, {.simplify = false});
      }
}

/// Every tile size and border: images from one pixel on, ragged channels, several panels and images, with a residual.
static const std::vector<ConvCase> winogradCases = {
    {{1, 8, 8, 16}, 64, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}},  {{2, 14, 13, 33}, 40, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {{1, 20, 27, 48}, 65, 3, 3},                                 {{1, 30, 5, 64}, 32, 3, 3, {1, 1}, {1, 1}, {2, 0}, {0, 1}},
    {{1, 1, 40, 32}, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, {{3, 7, 7, 128}, 96, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
};

/// A convolution, the addition of a second input, and a limit.
static std::string convWithResidual(const ConvCase &c) {
  ModuleText m;
  std::string out = tensorType(outShape(c), "f32");
  std::string x = m.input(tensorType(c.in, "f32")), r = m.input(out);
  std::string w = m.constant(tensorType({c.out, c.kh, c.kw, c.in[3]}, "f32")), b = m.constant(tensorType({c.out}, "f32"));
  std::string y = m.op("nn.conv", {x, w, b}, convAttributes(c.strides, c.dilations, c.low, c.high), out);
  m.output(m.unary("relu", m.binary("add", y, r)));
  return m.text();
}

TEST(CompiledConv, Winograd) {
  for (const ConvCase &c : winogradCases) {
    SCOPED_TRACE(array(c.in) + " to " + std::to_string(c.out));
    expectCompiled(convWithResidual(c), {{}}, {.threads = 2});
  }
}

/// The largest difference to the reference, of results that are sums of 9 * channels products of deviation 1.5 * 1.5.
static double winogradError(const ConvCase &c, bool winograd) {
  auto module = parseModule(convWithResidual(c));
  std::vector<HostTensor> inputs = randomInputs(*module, {}, 1), outputs;
  auto expected = interpret(module->lookupSymbol<mlir::func::FuncOp>("main"), inputs, {});
  EXPECT_TRUE(mlir::succeeded(expected));
  CompileOptions options;
  options.lowering.winograd = winograd;
  auto compiled = CompiledModel::compile(*module, options);
  std::string error;
  EXPECT_TRUE(compiled && compiled->run(inputs, outputs, error)) << error;
  return compareTensors(outputs[0], (*expected)[0], 1e-4, 0).maxAbsolute;
}

// What decision 8 states: relative to the deviation of the results, Winograd's method errs by less than 2e-5; and the option
// changes how they are rounded.
TEST(CompiledConv, WinogradCanBeLeftOut) {
  for (int64_t channels : {64, 256}) {
    ConvCase c{{1, 16, 16, channels}, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    double deviation = 1.5 * 1.5 * std::sqrt(9.0 * channels);
    double with = winogradError(c, true) / deviation, without = winogradError(c, false) / deviation;
    EXPECT_LT(with, 2e-5) << channels;
    EXPECT_LT(without, 2e-5) << channels;
    EXPECT_NE(with, without) << channels;
  }
}

// Weights that stay in cache while many row tiles pass: the order of loops that no small case takes.
TEST(CompiledConv, ManyRowsAndFewWeights) {
  ConvCase pointwise{{1, 21, 21, 40}, 72, 1, 1}, strided{{1, 43, 40, 24}, 40, 1, 1, {2, 2}};
  for (const ConvCase &c : {pointwise, strided})
    expectCompiled(convWithResidual(c), {{}}, {.threads = 2});
}

// The table at the end of an epilogue has a loop of its own: for products, bands and depthwise convolutions, whole panels
// and partial ones.
TEST(CompiledConv, ResultsLookedUpInATable) {
  for (const ConvCase &c : std::vector<ConvCase>{{{1, 6, 5, 16}, 70, 1, 1},
                                                 {{1, 12, 28, 40}, 37, 3, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                                                 {{1, 9, 8, 70}, 70, 3, 3, {2, 2}, {1, 1}, {1, 0}, {0, 1}, 70}})
    for (const char *between : {"i8", "ui8"})
      for (const char *entry : {"i8", "ui8"}) {
        SCOPED_TRACE(array(c.in) + " " + between + " to " + entry);
        ModuleText m;
        std::string x = m.input(tensorType(c.in, "ui8")), table = m.constant(tensorType({256}, entry));
        std::string w = m.constant(tensorType({c.out, c.kh, c.kw, c.in[3] / c.groups}, "i8"));
        std::string acc = m.op("nn.conv", {x, w},
                               convAttributes(c.strides, c.dilations, c.low, c.high, c.groups) + ", lhs_zero_point = 7 : i32",
                               tensorType(outShape(c), "i32"));
        std::string y = m.op("nn.requantize", {acc}, std::string("scales = array<f32: 0.001>, zero_point = 3 : i32, ") +
                                 (between[0] == 'u' ? "qmin = 0 : i32, qmax = 255 : i32" : "qmin = -128 : i32, qmax = 127 : i32"),
                             tensorType(outShape(c), between));
        m.output(m.op("nn.lookup", {y, table}, "", tensorType(outShape(c), entry)));
        expectCompiled(m.text(), {{}}, {.threads = 2});
      }
}

TEST(CompiledConv, FilterThatIsAnInput) {
  for (int64_t groups : {1, 4}) {
    ModuleText m;
    std::string x = m.input(tensorType({1, 6, 6, 4}, "f32")), w = m.input(tensorType({4, 3, 3, 4 / groups}, "f32"));
    m.output(m.op("nn.conv", {x, w}, convAttributes({1, 1}, {1, 1}, {1, 1}, {1, 1}, groups), tensorType({1, 6, 6, 4}, "f32")));
    expectCompiled(m.text());
  }
}

TEST(CompiledConv, OneAndThreeDimensions) {
  for (int64_t groups : {1, 6}) {
    ModuleText m;
    std::string x = m.input(tensorType({2, 20, 6}, "f32")), w = m.constant(tensorType({6, 5, 6 / groups}, "f32"));
    m.output(m.op("nn.conv", {x, w}, convAttributes({2}, {1}, {2}, {2}, groups), tensorType({2, 10, 6}, "f32")));
    std::string v = m.input(tensorType({1, 4, 5, 6, 6}, "f32")), u = m.constant(tensorType({6, 2, 3, 3, 6 / groups}, "f32"));
    m.output(m.op("nn.conv", {v, u}, convAttributes({1, 2, 1}, {1, 1, 2}, {0, 1, 2}, {1, 1, 2}, groups),
                  tensorType({1, 4, 3, 6, 6}, "f32")));
    expectCompiled(m.text());
  }
}

TEST(CompiledConvTranspose, Forms) {
  for (int64_t groups : {1, 2})
    for (int64_t stride : {1, 2, 3}) {
      ModuleText m;
      int64_t size = (5 - 1) * stride + 3 - 1 + 1;
      std::string x = m.input(tensorType({1, 5, 5, 4}, "f32")), w = m.constant(tensorType({6, 3, 3, 4 / groups}, "f32"));
      std::string b = m.constant(tensorType({6}, "f32"));
      m.output(m.op("nn.conv_transpose", {x, w, b},
                    convAttributes({stride, stride}, {1, 1}, {1, 0}, {0, 1}, groups) + ", output_pads = array<i64: 1, 1>",
                    tensorType({1, size, size, 6}, "f32")));
      expectCompiled(m.text());
    }
}

// Row P8 at a smaller picture: the same bits in every run.
TEST(CompiledConv, BitsAreTheSameInEveryRun) {
  ModuleText m;
  std::string x = m.input(tensorType({1, 16, 16, 48}, "f32")), w = m.constant(tensorType({176, 3, 3, 48}, "f32"));
  m.output(m.op("nn.conv", {x, w}, convAttributes({1, 1}, {1, 1}, {1, 1}, {1, 1}), tensorType({1, 16, 16, 176}, "f32")));
  auto module = parseModule(m.text());
  std::vector<HostTensor> inputs = randomInputs(*module, {}, 1), first, again;
  auto compiled = CompiledModel::compile(*module);
  ASSERT_TRUE(compiled);
  std::string error;
  CompiledModel::RunOptions run;
  run.threads = 2;
  ASSERT_TRUE(compiled->run(inputs, first, error, run)) << error;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(compiled->run(inputs, again, error, run)) << error;
    ASSERT_EQ(first[0].data, again[0].data);
  }
}

TEST(CompiledContraction, SymbolicSizes) {
  ModuleText m(2);
  std::string x = m.input(symbolicType({"s0", "s1", "12"}, "f32")), w = m.constant(tensorType({12, 20}, "f32"));
  m.output(m.op("nn.matmul", {x, w}, "", symbolicType({"s0", "s1", "20"}, "f32")));
  m.output(m.op("nn.matmul", {x, x}, "transpose_rhs", symbolicType({"s0", "s1", "s1"}, "f32")));
  expectCompiled(m.text(), {{1, 1}, {3, 7}, {2, 33}, {0, 2}, {2, 0}});

  ModuleText c(2);
  std::string image = c.input(symbolicType({"1", "s0", "s1", "3"}, "f32")), filter = c.constant(tensorType({8, 3, 3, 3}, "f32"));
  std::string y = c.op("nn.conv", {image, filter}, convAttributes({2, 2}, {1, 1}, {1, 1}, {1, 1}),
                       symbolicType({"1", "(s0 - 1) floordiv 2 + 1", "(s1 - 1) floordiv 2 + 1", "8"}, "f32"));
  std::string depthwise = c.constant(tensorType({8, 3, 3, 1}, "f32"));
  std::string z = c.op("nn.conv", {y, depthwise}, convAttributes({1, 1}, {1, 1}, {1, 1}, {1, 1}, 8), c.typeOf(y));
  c.output(c.unary("relu", z));
  expectCompiled(c.text(), {{1, 1}, {8, 9}, {15, 4}, {32, 32}});
}
