//===- GemvTest.cpp - products of few rows, and with weights of few bits ------------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"

#include "ajour/Conversion/Dispatch.h"
#include "ajour/Conversion/Encode.h"

#include <random>

using namespace ajour;
using namespace ajour::test;

namespace {

/// "dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>" of random numbers in [low, high].
std::string literal(int64_t rows, int64_t columns, int low, int high, const std::string &element, std::mt19937 &rng) {
  std::string text;
  for (int64_t r = 0; r < rows; ++r) {
    text += r ? ", [" : "[";
    for (int64_t c = 0; c < columns; ++c)
      text += (c ? ", " : "") + std::to_string(low + int(rng() % (high - low + 1)));
    text += "]";
  }
  return "dense<[" + text + "]> : " + tensorType({rows, columns}, element);
}

/// A product of an input [rows][k] with weights of few bits.
struct StoredCase {
  int64_t bits = 4;
  std::string element = "i8", scale = "f32";
  int64_t k = 64, n = 24, group = 32;
  bool zeroPoints = false;
  bool perChannel = false; ///< one scale for each column, said by groups of 1 along n
  bool transposed = true;
  std::vector<std::string> rows = {"1"};
  int64_t lhsGroup = 0;    ///< the lhs is rounded to 8 bits
  bool halfLhs = false;
  bool offsets = false;
  int64_t run = 0;         ///< groups with codes for scales
};

void addProduct(ModuleText &m, const StoredCase &c) {
  std::mt19937 rng(c.k * 100 + c.n);
  std::vector<std::string> lhs = c.rows, out = c.rows;
  lhs.push_back(std::to_string(c.k));
  out.push_back(std::to_string(c.n));
  std::string x = m.input(symbolicType(lhs, "f32"));
  const int64_t groups = c.perChannel ? 1 : (c.k + c.group - 1) / c.group;
  auto shape = [&](int64_t depth) {
    return c.transposed ? std::pair<int64_t, int64_t>(c.n, depth) : std::pair<int64_t, int64_t>(depth, c.n);
  };
  const bool isSigned = c.element == "i8";
  const int low = isSigned ? -(1 << (c.bits - 1)) : 0, high = low + (1 << c.bits) - 1;
  auto constant = [&](int64_t depth, const std::string &element) {
    auto [rows, columns] = shape(depth);
    return m.raw("\"nn.constant\"()", {}, "value = " + literal(rows, columns, low, high, element, rng),
                 tensorType({rows, columns}, element));
  };
  auto [rows, columns] = shape(c.k);
  std::string w = constant(c.k, c.element);
  auto [scaleRows, scaleColumns] = shape(groups);
  auto parameters = [&, rows = scaleRows, columns = scaleColumns] {
    if (c.run == 0)
      return m.constant(tensorType({rows, columns}, c.scale));
    std::string codes = m.raw("\"nn.constant\"()", {}, "value = " + literal(rows, columns, -32, 31, "i8", rng), tensorType({rows, columns}, "i8"));
    return m.op("nn.dequantize_grouped", {codes, m.constant(tensorType({rows, columns / c.run}, c.scale))},
                "axis = 1 : i64, group = " + std::to_string(c.run) + " : i64", tensorType({rows, columns}, "f32"));
  };
  std::vector<std::string> operands = {w, parameters()};
  if (c.zeroPoints)
    operands.push_back(constant(groups, c.element));
  if (c.offsets)
    operands.push_back(parameters());
  const int64_t kAxis = c.transposed ? 1 : 0;
  std::string real = m.op("nn.dequantize_grouped", operands,
                          "axis = " + std::to_string(c.perChannel ? 1 - kAxis : kAxis) +
                              " : i64, group = " + std::to_string(c.perChannel ? 1 : c.group) +
                              " : i64, bits = " + std::to_string(c.bits) + " : i64" + (c.offsets ? ", offsets" : ""),
                          tensorType({rows, columns}, "f32"));
  std::string bias = m.constant(tensorType({c.n}, "f32"));
  std::string attributes = c.transposed ? "transpose_rhs" : "";
  if (c.lhsGroup > 0)
    attributes += (c.transposed ? ", " : "") + ("lhs_group = " + std::to_string(c.lhsGroup) + " : i64" + (c.halfLhs ? ", lhs_half_scales" : ""));
  m.output(m.unary("relu", m.op("nn.matmul", {x, real, bias}, attributes, symbolicType(out, "f32"))));
}

/// The packings of all dispatches for one level.
std::vector<PackSpec> packsOf(const std::string &text) {
  auto module = parseModule(text);
  if (!module || failed(encodeWeights(*module)) || failed(formDispatches(*module)))
    return {};
  std::vector<PackSpec> packs;
  mlir::OwningOpRef<mlir::ModuleOp> loops = mlir::ModuleOp::create(module->getLoc());
  for (auto callee : module->getOps<mlir::func::FuncOp>()) {
    if (callee.getName() == "main")
      continue;
    auto lowered = lowerDispatch(callee, AJOUR_LEVEL_avx2, 1, *loops);
    if (failed(lowered) || lowered->packs.empty())
      ADD_FAILURE() << callee.getName().str() << " packs nothing: it dequantises, or its product is scalar code";
    else
      packs.insert(packs.end(), lowered->packs.begin(), lowered->packs.end());
  }
  return packs;
}

/// All products in one module.
void expectStored(const std::vector<StoredCase> &cases, const std::vector<std::vector<int64_t>> &symbols = {{}}) {
  ModuleText m(symbols[0].size());
  for (const StoredCase &c : cases)
    addProduct(m, c);
  for (const PackSpec &pack : packsOf(m.text()))
    EXPECT_EQ(pack.kind, PackSpec::Gemv);
  // Sums of at most 100 products of numbers of about 2^bits, 1 and 1; the bound is relative to the largest of them.
  expectCompiled(m.text(), symbols, {.tolerance = 1e-4, .threads = 2});
}

} // namespace

TEST(CompiledGemv, StoredWeights) {
  std::vector<StoredCase> cases;
  for (int64_t bits : {4, 8})
    for (const char *element : {"i8", "ui8"})
      for (bool zeroPoints : {false, true})
        for (const char *scale : {"f32", "f16"})
          cases.push_back({.bits = bits, .element = element, .scale = scale, .zeroPoints = zeroPoints});
  expectStored(cases);
}

TEST(CompiledGemv, StoredWeightsOfRaggedSizes) {
  std::vector<StoredCase> cases;
  for (int64_t bits : {2, 4, 8})
    for (auto [k, group] : std::vector<std::pair<int64_t, int64_t>>{{40, 16}, {33, 32}, {33, 64}, {5, 5}})
      for (int64_t n : {1, 37})
        cases.push_back({.bits = bits, .k = k, .n = n, .group = group, .zeroPoints = n == 1, .rows = {"2"}});
  expectStored(cases);
}

TEST(CompiledGemv, StoredWeightsInOtherForms) {
  std::vector<StoredCase> cases;
  for (bool transposed : {false, true})
    for (bool perChannel : {false, true})
      for (bool zeroPoints : {false, true})
        cases.push_back(
            {.zeroPoints = zeroPoints, .perChannel = perChannel, .transposed = transposed, .rows = {"3", "1"}});
  expectStored(cases);
}

TEST(CompiledGemv, RowsOfStoredWeights) {
  std::vector<StoredCase> cases;
  for (const char *rows : {"1", "3", "4", "5", "11"})
    cases.push_back({.rows = {rows}});
  expectStored(cases);
  expectStored({{.k = 70, .rows = {"s0"}}, {.bits = 8, .rows = {"s0", "2"}}}, {{1}, {2}, {4}, {7}, {0}, {13}});
}

TEST(CompiledGemv, RoundedLhs) {
  std::vector<StoredCase> cases;
  for (int64_t bits : {1, 2, 3, 4, 5, 6, 7, 8})
    for (const char *element : {"i8", "ui8"})
      for (bool half : {false, true})
        cases.push_back({.bits = bits, .element = element, .scale = half ? "f16" : "f32", .lhsGroup = 32, .halfLhs = half});
  for (int64_t bits : {4, 8})
    cases.push_back({.bits = bits, .zeroPoints = true, .lhsGroup = 32});
  for (bool transposed : {false, true})
    cases.push_back({.perChannel = true, .transposed = transposed, .lhsGroup = 64});
  expectStored(cases);
}

// Offsets, codes for scales, and both.
TEST(CompiledGemv, RoundedLhsAndOffsets) {
  std::vector<StoredCase> cases;
  for (int64_t bits : {2, 4, 5, 6, 8})
    for (bool offsets : {false, true})
      for (int64_t run : {0, 4}) {
        StoredCase c{.bits = bits, .element = offsets ? "ui8" : "i8", .scale = "f16", .k = 128, .n = 37};
        c.lhsGroup = run ? 128 : 32;
        c.offsets = offsets;
        c.run = run;
        cases.push_back(c);
      }
  expectStored(cases);
}

TEST(CompiledGemv, RowsOfRoundedLhs) {
  std::vector<StoredCase> cases;
  for (const char *rows : {"1", "3", "4", "5", "11"})
    cases.push_back({.k = 70, .rows = {rows}, .lhsGroup = 32});
  // Many rows too, whose weights are not unpacked for the dense kernel.
  cases.push_back({.rows = {"33"}, .lhsGroup = 32});
  expectStored(cases);
  StoredCase runs{.scale = "f16", .k = 512, .rows = {"s0"}, .lhsGroup = 256};
  runs.run = 8;
  expectStored({{.k = 70, .rows = {"s0"}, .lhsGroup = 32}, {.bits = 8, .rows = {"s0", "2"}, .lhsGroup = 32}, runs}, {{1}, {2}, {4}, {7}, {0}, {13}});
}

// More rows than the matrix-vector kernels take: tiles of them, whole and in part.
TEST(CompiledGemv, ManyRowsOfRoundedLhs) {
  std::vector<StoredCase> cases, fixed;
  for (int64_t bits : {2, 4, 5, 6, 8}) {
    cases.push_back({.bits = bits, .scale = bits % 2 ? "f32" : "f16", .k = 128, .n = 37, .rows = {"s0"}, .lhsGroup = 32, .halfLhs = bits == 4});
    for (bool offsets : {false, true}) {
      StoredCase c{.bits = bits, .element = offsets ? "ui8" : "i8", .scale = "f16", .k = 256, .n = 37, .rows = {"s0"}};
      c.lhsGroup = 128;
      c.offsets = offsets;
      c.run = 4;
      cases.push_back(c);
    }
  }
  for (int64_t bits : {4, 8})
    cases.push_back({.bits = bits, .zeroPoints = true, .rows = {"2", "s0"}, .lhsGroup = 32});
  // Groups that a tile cuts, and rows that end within one.
  cases.push_back({.perChannel = true, .rows = {"s0"}, .lhsGroup = 64});
  cases.push_back({.k = 320, .group = 256, .rows = {"s0"}, .lhsGroup = 256});
  cases.push_back({.k = 70, .rows = {"s0"}, .lhsGroup = 32});
  expectStored(cases, {{1}, {5}, {13}, {29}, {61}});
  for (const char *rows : {"5", "24", "61"})
    fixed.push_back({.k = 96, .n = 300, .rows = {rows}, .lhsGroup = 32});
  expectStored(fixed);
  // Rows that nothing stores.
  ModuleText m(1);
  std::string x = m.op("nn.concat", {m.input(symbolicType({"s0", "32"}, "f32")), m.input(symbolicType({"s0", "64"}, "f32"))},
                       "axis = 1 : i64", symbolicType({"s0", "96"}, "f32"));
  std::string w = m.op("nn.dequantize_grouped", {m.constant(tensorType({40, 96}, "i8")), m.constant(tensorType({40, 3}, "f16"))},
                       "axis = 1 : i64, group = 32 : i64, bits = 8 : i64", tensorType({40, 96}, "f32"));
  m.output(m.op("nn.matmul", {x, w}, "transpose_rhs, lhs_group = 32 : i64", symbolicType({"s0", "40"}, "f32")));
  expectCompiled(m.text(), {{2}, {40}}, {.tolerance = 1e-4, .threads = 2});
}

// One row meets several blocks at once where there are many: whole items, and a last one that is not.
TEST(CompiledGemv, BlocksTogetherOfRoundedLhs) {
  std::vector<StoredCase> cases;
  for (const char *rows : {"1", "s0"})
    for (int64_t n : {1000, 1024})
      cases.push_back({.scale = "f16", .k = 96, .n = n, .rows = {rows}, .lhsGroup = 32, .halfLhs = n == 1000});
  expectStored({cases[0], cases[1]});
  expectStored({cases[2], cases[3]}, {{1}, {2}, {5}});
}

// Groups that no kernel has: scalar code.
TEST(CompiledGemv, RoundedLhsInOtherGroups) {
  ModuleText m;
  addProduct(m, {.k = 70, .rows = {"2"}, .lhsGroup = 48, .halfLhs = true});
  std::string x = m.input(tensorType({3, 50}, "f32")), y = m.input(tensorType({50, 9}, "f32"));
  m.output(m.op("nn.matmul", {x, y}, "lhs_group = 16 : i64", tensorType({3, 9}, "f32")));
  expectCompiled(m.text(), {{}}, {.tolerance = 1e-4, .threads = 2});
}

TEST(CompiledGemv, HalfWeights) {
  for (const char *rows : {"1", "6"})
    for (bool transposed : {false, true}) {
      ModuleText m;
      std::string x = m.input(tensorType({atoi(rows), 48}, "f32"));
      std::string type = transposed ? tensorType({40, 48}, "f16") : tensorType({48, 40}, "f16");
      std::string wide = transposed ? tensorType({40, 48}, "f32") : tensorType({48, 40}, "f32");
      std::string w = m.op("nn.cast", {m.constant(type)}, "", wide);
      m.output(m.op("nn.matmul", {x, w}, transposed ? "transpose_rhs" : "", tensorType({atoi(rows), 40}, "f32")));
      for (const PackSpec &pack : packsOf(m.text()))
        EXPECT_EQ(pack.kind, PackSpec::Gemv);
      expectCompiled(m.text(), {{}}, {.threads = 2});
    }
}

// Each of two products reads the stored weights; neither has a dispatch that only dequantises.
TEST(CompiledGemv, SharedStoredWeights) {
  ModuleText m;
  std::string x = m.input(tensorType({1, 64}, "f32")), y = m.input(tensorType({1, 64}, "f32"));
  std::string real =
      m.op("nn.dequantize_grouped", {m.constant(tensorType({32, 64}, "i8")), m.constant(tensorType({32, 2}, "f32"))},
           "axis = 1 : i64, group = 32 : i64, bits = 8 : i64", tensorType({32, 64}, "f32"));
  std::string out = tensorType({1, 32}, "f32");
  m.output(m.op("nn.matmul", {x, real}, "transpose_rhs", out));
  m.output(m.op("nn.matmul", {y, real}, "transpose_rhs", out));
  auto module = parseModule(m.text());
  ASSERT_TRUE(module && succeeded(formDispatches(*module)));
  int64_t callees = 0;
  for (auto callee : module->getOps<mlir::func::FuncOp>())
    callees += callee.getName() != "main";
  EXPECT_EQ(callees, 1) << "both products are one function";
  expectCompiled(m.text());
}

// The same with coded scales, and rows of the weights gathered besides.
TEST(CompiledGemv, SharedCodedScales) {
  ModuleText m;
  std::string x = m.input(tensorType({1, 64}, "f32")), y = m.input(tensorType({1, 64}, "f32"));
  std::string scales = m.op("nn.dequantize_grouped", {m.constant(tensorType({32, 4}, "i8")), m.constant(tensorType({32, 1}, "f16"))},
                            "axis = 1 : i64, group = 4 : i64", tensorType({32, 4}, "f32"));
  std::string real = m.op("nn.dequantize_grouped", {m.constant(tensorType({32, 64}, "i8")), scales},
                          "axis = 1 : i64, group = 16 : i64", tensorType({32, 64}, "f32"));
  std::string out = tensorType({1, 32}, "f32");
  m.output(m.op("nn.matmul", {x, real}, "transpose_rhs, lhs_group = 64 : i64", out));
  m.output(m.op("nn.matmul", {y, real}, "transpose_rhs, lhs_group = 64 : i64", out));
  std::string rows = m.constant(tensorType({2}, "i64"));
  m.output(m.op("nn.gather", {real, rows}, "axis = 0 : i64", tensorType({2, 64}, "f32")));
  expectCompiled(m.text());
}

// C4^n of 4- and 8-bit weights.
TEST(CompiledGemv, SparseStoredWeights) {
  for (auto [bits, n] : std::vector<std::pair<int64_t, int64_t>>{{4, 40}, {8, 40}, {4, 920}}) {
    ModuleText m(1);
    std::mt19937 rng(bits);
    const int64_t k = 128;
    std::string text, x = m.input(symbolicType({"s0", "128"}, "f32")), type = tensorType({n, k}, "i8");
    std::vector<bool> keeps(k);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t p = 0; row % 8 == 0 && p < k; p += 4) {
        int64_t first = rng() % 4, second = (first + 1 + rng() % 3) % 4;
        for (int64_t i = 0; i < 4; ++i)
          keeps[p + i] = i == first || i == second;
      }
      text += row ? ", [" : "[";
      for (int64_t p = 0; p < k; ++p)
        text += (p ? ", " : "") + std::to_string(keeps[p] ? int(rng() % 7) + 1 : 0);
      text += "]";
    }
    std::string w = m.raw("\"nn.constant\"()", {}, "value = dense<[" + text + "]> : " + type, type);
    std::string real = m.op("nn.dequantize_grouped", {w, m.constant(tensorType({n, k / 32}, "f16"))},
                            "axis = 1 : i64, group = 32 : i64, bits = " + std::to_string(bits) + " : i64", tensorType({n, k}, "f32"));
    m.output(m.op("nn.matmul", {x, real}, "transpose_rhs, lhs_group = 32 : i64", symbolicType({"s0", std::to_string(n)}, "f32")));
    for (const PackSpec &pack : packsOf(m.text())) {
      EXPECT_EQ(pack.gemv.structure, encoding::GemvFormat::C4n);
      EXPECT_EQ(pack.gemv.kept, 2);
    }
    expectCompiled(m.text(), {{1}, {3}, {9}, {60}}, {.tolerance = 1e-4, .threads = 2});
  }
}

namespace {

/// A product with weights [n][k] whose groups of `share` rows keep the same columns: `kept` of each four, or (kept 0)
/// about a quarter of all.
struct SparseCase {
  std::string element = "f32", lhs = "f32";
  int64_t share = 8, kept = 2;
  int64_t k = 96, n = 40, rows = 1;
  int lhsZeroPoint = 0;
  int64_t patterns() const { return 16 / share; }
};

void addProduct(ModuleText &m, const SparseCase &c) {
  std::mt19937 rng(c.k + c.share + c.kept);
  std::vector<bool> keeps;
  std::string text;
  for (int64_t row = 0; row < c.n; ++row) {
    if (row % c.share == 0) {
      keeps.assign(c.k + 3, c.kept > 0);
      for (int64_t p = 0; p < c.k; p += 4)
        for (int64_t drop = c.kept > 0 ? 4 - c.kept : 0; drop > 0;) {
          int64_t at = p + rng() % 4;
          drop -= keeps[at];
          keeps[at] = false;
        }
      for (int64_t p = 0; c.kept == 0 && p < c.k; ++p)
        keeps[p] = rng() % 4 == 0;
    }
    text += row ? ", [" : "[";
    for (int64_t p = 0; p < c.k; ++p) {
      int value = keeps[p] ? int(rng() % 127) + 1 : 0;
      text += (p ? ", " : "") + std::to_string(rng() % 2 ? value : -value) + (c.element == "f32" ? ".0" : "");
    }
    text += "]";
  }
  std::string x = m.input(tensorType({c.rows, c.k}, c.lhs)), type = tensorType({c.n, c.k}, c.element);
  std::string w = m.raw("\"nn.constant\"()", {}, "value = dense<[" + text + "]> : " + type, type);
  const std::string acc = c.element == "f32" ? "f32" : "i32", out = tensorType({c.rows, c.n}, acc);
  std::string bias = m.constant(tensorType({c.n}, acc));
  m.output(m.op("nn.matmul", {x, w, bias},
                "transpose_rhs, lhs_zero_point = " + std::to_string(c.lhsZeroPoint) + " : i32", out));
}

void expectSparse(const std::vector<SparseCase> &cases) {
  ModuleText m;
  for (const SparseCase &c : cases)
    addProduct(m, c);
  std::vector<encoding::GemvFormat> formats;
  for (const PackSpec &pack : packsOf(m.text()))
    if (pack.kind == PackSpec::Gemv)
      formats.push_back(pack.gemv);
  ASSERT_EQ(formats.size(), cases.size());
  for (auto [format, c] : llvm::zip_equal(formats, cases)) {
    // Which of them is fastest is the cost table's matter; it may let fewer rows share than do.
    EXPECT_NE(format.structure, encoding::GemvFormat::Dense);
    EXPECT_GE(format.patterns, c.patterns());
    if (format.structure == encoding::GemvFormat::C4n)
      EXPECT_EQ(format.kept, c.kept);
  }
  expectCompiled(m.text(), {{}}, {.tolerance = 1e-4, .threads = 2});
}

} // namespace

TEST(CompiledGemv, SparseFloats) {
  std::vector<SparseCase> cases;
  for (int64_t share : {4, 8, 16})
    for (int64_t kept : {0, 1, 2})
      for (auto [k, n, rows] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{96, 48, 1}, {70, 37, 3}})
        cases.push_back({.share = share, .kept = kept, .k = k, .n = n, .rows = rows});
  expectSparse(cases);
}

TEST(CompiledGemv, SparseBytes) {
  std::vector<SparseCase> cases;
  for (int64_t share : {4, 8, 16})
    for (int64_t kept : {0, 1, 2})
      for (auto [k, n, rows, lhs] :
           std::vector<std::tuple<int64_t, int64_t, int64_t, const char *>>{{128, 32, 1, "i8"}, {70, 37, 4, "ui8"}})
        cases.push_back({.element = "i8",
                         .lhs = lhs,
                         .share = share,
                         .kept = kept,
                         .k = k,
                         .n = n,
                         .rows = rows,
                         .lhsZeroPoint = 7});
  expectSparse(cases);
}
