//===- ElementwiseTest.cpp - compiled operations on elements ----------------------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"

using namespace ajour;
using namespace ajour::test;

static const std::vector<std::string> floatTypes = {"f32", "f16", "bf16", "f64"};
static const std::vector<std::string> intTypes = {"i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64"};

/// Every kind on one type, each an output. 37 elements leave a tail behind every vector width.
static void expectUnary(const std::string &element, const std::vector<std::string> &kinds,
                        const std::string &attributes = "") {
  ModuleText m;
  std::string x = m.input(tensorType({37}, element));
  for (const std::string &kind : kinds)
    m.output(m.unary(kind, x, attributes));
  expectCompiled(m.text(), {{}}, {.simplify = false});
}

TEST(CompiledUnary, FloatKinds) {
  for (const std::string &element : floatTypes) {
    SCOPED_TRACE(element);
    expectUnary(element, {"neg",      "abs",        "sign", "ceil",     "floor",   "round", "trunc",     "sqrt",   "rsqrt",
                          "reciprocal", "exp",      "log",  "sin",      "cos",     "tan",   "asin",      "acos",   "atan",
                          "sinh",     "cosh",       "tanh", "asinh",    "acosh",   "atanh", "erf",       "sigmoid", "relu",
                          "softplus", "softsign",   "hard_swish", "mish", "gelu",  "gelu_tanh", "silu",  "square"});
    expectUnary(element, {"elu", "leaky_relu", "selu", "celu", "thresholded_relu", "hard_sigmoid", "shrink"},
                "alpha = 0.75 : f32, beta = 0.5 : f32");
  }
}

TEST(CompiledUnary, IntegerKinds) {
  for (const std::string &element : intTypes) {
    SCOPED_TRACE(element);
    expectUnary(element, {"neg", "abs", "sign", "relu", "square", "bitwise_not"});
  }
  expectUnary("i1", {"logical_not"});
}

static void expectBinary(const std::string &element, const std::vector<std::string> &kinds) {
  ModuleText m;
  std::string x = m.input(tensorType({37}, element)), y = m.input(tensorType({37}, element));
  for (const std::string &kind : kinds)
    m.output(m.binary(kind, x, y));
  expectCompiled(m.text(), {{}}, {.simplify = false});
}

TEST(CompiledBinary, Kinds) {
  for (const std::string &element : floatTypes) {
    SCOPED_TRACE(element);
    expectBinary(element, {"add", "sub", "mul", "div", "pow", "floor_mod", "trunc_mod", "min", "max", "floor_div",
                           "squared_difference", "prelu", "atan2"});
  }
  for (const std::string &element : intTypes) {
    SCOPED_TRACE(element);
    expectBinary(element, {"add", "sub", "mul", "div", "pow", "floor_mod", "trunc_mod", "min", "max", "bit_and", "bit_or",
                           "bit_xor", "shift_left", "shift_right", "floor_div", "squared_difference", "prelu"});
  }
  expectBinary("i1", {"bit_and", "bit_or", "bit_xor", "min", "max"});
}

TEST(CompiledCompare, KindsAndSelect) {
  for (const std::string &element : {"f32", "f16", "i8", "ui8", "i32", "ui64", "i1"}) {
    SCOPED_TRACE(element);
    ModuleText m;
    std::string type = tensorType({37}, element), flags = tensorType({37}, "i1");
    std::string x = m.input(type), y = m.input(type);
    for (const char *kind : {"eq", "ne", "lt", "le", "gt", "ge"}) {
      if (std::string(element) == "i1" && kind[0] != 'e' && kind[0] != 'n')
        continue;
      std::string c = m.op("nn.compare <" + std::string(kind) + ">", {x, y}, "", flags);
      m.output(c);
      m.output(m.op("nn.select", {c, x, y}, "", type));
    }
    expectCompiled(m.text());
  }
}

TEST(CompiledCast, EveryPair) {
  std::vector<std::string> types = floatTypes;
  types.insert(types.end(), intTypes.begin(), intTypes.end());
  types.push_back("i1");
  for (const std::string &from : types) {
    SCOPED_TRACE(from);
    ModuleText m;
    std::string x = m.input(tensorType({37}, from));
    for (const std::string &to : types)
      if (to != from)
        m.output(m.op("nn.cast", {x}, "", tensorType({37}, to)));
    expectCompiled(m.text(), {{}}, {.simplify = false});
  }
}

// Rows P3 of the known cases: shapes that repeat against each other.
TEST(CompiledBinary, Broadcasts) {
  const std::vector<std::vector<std::vector<int64_t>>> patterns = {
      {{16}, {8, 16}, {8, 16}},         {{8, 1}, {8, 16}, {8, 16}},       {{8, 1}, {1, 16}, {8, 16}},
      {{}, {3, 5}, {3, 5}},             {{1}, {3, 5}, {3, 5}},            {{2, 3, 4}, {3, 1}, {2, 3, 4}},
      {{2, 1, 4}, {1, 3, 1}, {2, 3, 4}}, {{1, 1, 1}, {1}, {1, 1, 1}},     {{2, 3, 4, 5}, {2, 1, 1, 5}, {2, 3, 4, 5}},
      {{0, 3}, {1, 3}, {0, 3}},         {{4, 0}, {1}, {4, 0}},            {{2, 1, 3, 1, 5}, {7, 1, 4, 1}, {2, 7, 3, 4, 5}},
      {{1, 7, 7, 64}, {64}, {1, 7, 7, 64}}, {{5, 1, 64}, {1, 3, 64}, {5, 3, 64}}};
  for (const char *element : {"f32", "i8"}) {
    ModuleText m;
    for (const auto &pattern : patterns)
      for (bool swapped : {false, true}) {
        if (element[0] == 'i' && (swapped || pattern[2].size() != 2))
          continue; // the loops are those of floats
        std::string x = m.input(tensorType(pattern[0], element)), y = m.input(tensorType(pattern[1], element));
        if (swapped)
          std::swap(x, y);
        std::string sum = m.op("nn.binary <sub>", {x, y}, "", tensorType(pattern[2], element));
        m.output(m.op("nn.binary <mul>", {sum, y}, "", tensorType(pattern[2], element)));
      }
    expectCompiled(m.text(), {{}}, {.simplify = false});
  }
}

TEST(CompiledQuantize, EveryForm) {
  std::string shape = "3x5x8";
  std::string many = "array<f32: 0.5, 0.25, 0.125, 1.0, 2.0, 0.0625, 0.5, 0.03125>";
  std::string zeros = "array<i32: 0, 1, 2, 3, -4, 5, 6, 7>";
  for (const char *element : {"i8", "i16"}) {
    std::string real = "tensor<" + shape + "xf32>", stored = "tensor<" + shape + "x" + element + ">";
    ModuleText m;
    std::string x = m.input(real), q = m.input(stored), acc = m.input("tensor<" + shape + "xi32>");
    m.output(m.op("nn.quantize", {x}, "scales = array<f32: 0.03>, zero_points = array<i32: 3>", stored));
    m.output(m.op("nn.quantize", {x}, "scales = " + many + ", zero_points = " + zeros + ", axis = 2 : i64", stored));
    m.output(m.op("nn.quantize", {x},
                  "scales = array<f32: 0.5, 0.1, 0.2>, zero_points = array<i32: 1, 0, 2>, axis = 0 : i64", stored));
    m.output(m.op("nn.dequantize", {q}, "scales = array<f32: 0.03>, zero_points = array<i32: 3>", real));
    m.output(m.op("nn.dequantize", {q}, "scales = " + many + ", zero_points = " + zeros + ", axis = -1 : i64", real));
    std::string limits = ", qmin = -100 : i32, qmax = 120 : i32";
    m.output(m.op("nn.requantize", {acc}, "scales = array<f32: 0.37>, zero_point = -3 : i32" + limits, stored));
    m.output(m.op("nn.requantize", {acc}, "scales = " + many + ", axis = 2 : i64" + limits, stored));
    m.output(m.op("nn.requantize", {acc},
                  "multipliers = array<i32: 1518500250>, shifts = array<i32: 3>, zero_point = 4 : i32" + limits, stored));
    m.output(m.op("nn.requantize", {acc},
                  "multipliers = array<i32: 1518500250, 1073741824, 2000000000>, shifts = array<i32: 3, -2, 0>, axis = 0 : "
                  "i64" + limits,
                  stored));
    Expectation expectation;
    expectation.indexBound = 1000;
    expectCompiled(m.text(), {{}}, expectation);
  }
}

TEST(CompiledLookup, TablesOfBothSigns) {
  for (const char *element : {"i8", "ui8"})
    for (const char *entry : {"i8", "ui8", "f32", "i16"}) {
      ModuleText m;
      std::string x = m.input(tensorType({3, 50}, element)), table = m.constant(tensorType({256}, entry));
      m.output(m.op("nn.lookup", {x, table}, "", tensorType({3, 50}, entry)));
      expectCompiled(m.text());
    }
}

// Row P6: a value divided by itself; row O36: a difference that must not become a constant of the wrong sign.
TEST(CompiledBinary, ValueWithItself) {
  ModuleText m;
  std::string type = tensorType({33}, "f32"), x = m.input(type);
  m.output(m.binary("div", x, x));
  std::string one = m.op("nn.cast", {m.op("nn.compare <eq>", {x, x}, "", tensorType({33}, "i1"))}, "", type);
  m.output(m.binary("sub", x, m.binary("add", x, one)));
  expectCompiled(m.text());
}

// Row P1: a sum that is an output and feeds a reduction. Row P5: an input that is read again after pooling.
TEST(CompiledOutputs, ValuesThatAreAlsoOperands) {
  ModuleText m;
  std::string type = tensorType({1, 6, 6, 5}, "f32"), x = m.input(type), y = m.input(type);
  std::string sum = m.binary("add", x, y);
  m.output(sum);
  m.output(m.op("nn.reduce <sum>", {sum}, "axes = array<i64: 1, 2>", tensorType({1, 5}, "f32")));
  std::string pooled = m.op("nn.max_pool", {x},
                            "window = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low "
                            "= array<i64: 1, 1>, pads_high = array<i64: 1, 1>",
                            type);
  m.output(m.binary("sub", x, pooled));
  m.output(x);
  m.output(sum);
  m.output(m.op("nn.reshape", {sum}, "", tensorType({36, 5}, "f32")));
  m.output(m.constant(tensorType({3}, "i8")));
  expectCompiled(m.text());
}

TEST(CompiledClamp, Types) {
  for (const char *element : {"f32", "f16", "i8", "ui8", "i32"}) {
    ModuleText m;
    std::string type = tensorType({50}, element), x = m.input(type);
    m.output(m.op("nn.clamp", {x}, "low = 0.0 : f64, high = 6.0 : f64", type));
    m.output(m.unary("relu", x));
    expectCompiled(m.text());
  }
}

TEST(CompiledElementwise, SymbolicSizes) {
  ModuleText m(2);
  std::string type = symbolicType({"s0", "s1", "5"}, "f32"), x = m.input(type), y = m.input(type);
  std::string row = m.input(symbolicType({"s1", "1"}, "f32")), channel = m.constant(tensorType({5}, "f32"));
  std::string a = m.binary("add", m.binary("mul", x, row), channel);
  m.output(m.unary("sigmoid", m.binary("sub", a, y)));
  m.output(m.op("nn.reshape", {a}, "", symbolicType({"s0 * s1 * 5"}, "f32")));
  m.output(m.op("nn.transpose", {a}, "perm = array<i64: 1, 2, 0>", symbolicType({"s1", "5", "s0"}, "f32")));
  expectCompiled(m.text(), {{2, 3}, {1, 1}, {7, 64}, {0, 3}, {3, 0}});
}
