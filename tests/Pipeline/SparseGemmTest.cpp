// Products and convolutions whose weights are lists for each lane, against the reference: f32 and 8 bits, columns that keep their
// inputs alone and together, every way in which rows, panels and window rows can be ragged.
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"

#include "ajour/Conversion/Encode.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"

#include <random>

using namespace ajour;
using namespace ajour::test;
using namespace mlir;

namespace {

struct Geometry {
  int64_t images, height, width, channels, filters, kernel = 1, stride = 1, group = 4;
  int64_t percent = 90; ///< of zeros
  bool isMatmul = false;
};

std::string describe(const Geometry &g) {
  return std::to_string(g.height) + "x" + std::to_string(g.width) + "x" + std::to_string(g.channels) + "->" +
         std::to_string(g.filters) + " window " + std::to_string(g.kernel) + " stride " + std::to_string(g.stride) + " group " +
         std::to_string(g.group);
}

/// A product with bias and what follows it; an `element` of i8 or ui8 is quantised again.
std::string moduleText(const Geometry &g, const std::string &element) {
  ModuleText m;
  const int64_t pad = g.kernel / 2, oh = (g.height + 2 * pad - g.kernel) / g.stride + 1;
  const int64_t ow = (g.width + 2 * pad - g.kernel) / g.stride + 1;
  const bool is8 = element != "f32";
  const std::string acc = is8 ? "i32" : "f32", weight = is8 ? "i8" : "f32", zero = is8 ? "lhs_zero_point = 3 : i32" : "";
  const std::string comma = is8 ? ", " : "";
  auto out = [&](const std::string &type) {
    return g.isMatmul ? tensorType({g.height * g.width, g.filters}, type) : tensorType({g.images, oh, ow, g.filters}, type);
  };
  std::string x = m.input(g.isMatmul ? tensorType({g.height * g.width, g.channels}, element)
                                     : tensorType({g.images, g.height, g.width, g.channels}, element));
  std::string w = m.constant(g.isMatmul ? tensorType({g.filters, g.channels}, weight)
                                        : tensorType({g.filters, g.kernel, g.kernel, g.channels}, weight));
  std::string b = m.constant(tensorType({g.filters}, acc));
  auto pair = [](int64_t v) { return array({v, v}); };
  std::string y = g.isMatmul ? m.op("nn.matmul", {x, w, b}, "transpose_rhs" + comma + zero, out(acc))
                             : m.op("nn.conv", {x, w, b},
                                    "strides = " + pair(g.stride) + ", dilations = " + pair(1) + ", pads_low = " + pair(pad) +
                                        ", pads_high = " + pair(pad) + ", groups = 1 : i64" + comma + zero,
                                    out(acc));
  if (is8)
    m.output(m.op("nn.requantize", {y}, "scales = array<f32: 0.0011>, zero_point = 3 : i32, qmin = -128 : i32, qmax = 127 : i32",
                  out("i8")));
  else
    m.output(m.op("nn.unary <relu>", {y}, "", out(acc)));
  return m.text();
}

/// Zeros whole groups of filters at a tap and channel.
void prune(ModuleOp module, const Geometry &g) {
  std::mt19937 rng(7);
  module.walk([&](Operation *op) {
    if (!isa<nn::ConvOp, nn::MatmulOp>(op))
      return;
    auto constant = op->getOperand(1).getDefiningOp<nn::ConstantOp>();
    auto type = cast<RankedTensorType>(constant.getType());
    std::vector<char> storage;
    ArrayRef<char> bytes = nn::constantBytes(constant.getValue(), storage);
    std::vector<char> weights(bytes.begin(), bytes.end());
    const int64_t depth = type.getNumElements() / g.filters, size = nn::elementBytes(type.getElementType());
    for (int64_t f = 0; f < g.filters; f += g.group)
      for (int64_t k = 0; k < depth; ++k)
        if (int64_t(rng() % 100) < g.percent)
          for (int64_t r = f; r < std::min(g.filters, f + g.group); ++r)
            std::fill_n(weights.begin() + (r * depth + k) * size, size, 0);
    constant.setValueAttr(DenseElementsAttr::getFromRawBuffer(type, weights));
  });
}

void check(const Geometry &g, const std::string &element) {
  SCOPED_TRACE(describe(g) + " " + element);
  OwningOpRef<ModuleOp> module = parseModule(moduleText(g, element));
  ASSERT_TRUE(module);
  prune(*module, g);
  FailureOr<std::vector<EncodedWeight>> weights = encodeWeights(*module);
  ASSERT_TRUE(succeeded(weights) && weights->size() == 1);
  const KernelChoice choice = selectKernel(weights->front().use, weights->front().rows, AJOUR_LEVEL_avx2, /*overPixels=*/false);
  EXPECT_EQ(name(choice.family), "gemm_sparse") << choice.reason;
  std::vector<HostTensor> inputs = randomInputs(*module, {}, 3);
  FailureOr<std::vector<HostTensor>> expected = interpret(module->lookupSymbol<func::FuncOp>("main"), inputs, {});
  ASSERT_TRUE(succeeded(expected));
  expectCompiled(*module, inputs, *expected, {.simplify = false, .threads = 2});
}

} // namespace

TEST(CompiledSparseGemm, OneTap) {
  for (const char *element : {"f32", "i8", "ui8"})
    for (int64_t group : {1, 2, 4}) {
      check({.images = 1, .height = 5, .width = 7, .channels = 70, .filters = 64, .group = group}, element);
      check({.images = 2, .height = 9, .width = 9, .channels = 67, .filters = 96, .group = group}, element);
      check({.images = 1, .height = 14, .width = 14, .channels = 200, .filters = 37, .group = group}, element);
      check({.images = 1, .height = 4, .width = 4, .channels = 66, .filters = 128, .group = group}, element);
      check({.images = 1, .height = 13, .width = 13, .channels = 80, .filters = 64, .stride = 2, .group = group}, element);
      check({.images = 1, .height = 13, .width = 13, .channels = 80, .filters = 64, .group = group, .percent = 100}, element);
    }
}

TEST(CompiledSparseGemm, Matmul) {
  for (const char *element : {"f32", "i8", "ui8"})
    for (int64_t group : {1, 2, 4})
      for (int64_t rows : {16, 29, 130})
        check({.images = 1, .height = rows, .width = 1, .channels = 300, .filters = 72, .group = group, .isMatmul = true}, element);
}

// Wide rows of many channels are bands, whose window rows have lists of their own; others are patches.
TEST(CompiledSparseGemm, Windows) {
  for (const char *element : {"f32", "i8", "ui8"})
    for (int64_t group : {1, 2, 4}) {
      if (element[0] != 'f') // f32 has Winograd's method
        check({.images = 1, .height = 12, .width = 12, .channels = 32, .filters = 64, .kernel = 3, .group = group, .percent = 97}, element);
      check({.images = 1, .height = 14, .width = 14, .channels = 48, .filters = 40, .kernel = 3, .stride = 2, .group = group, .percent = 97}, element);
      check({.images = 2, .height = 7, .width = 7, .channels = 9, .filters = 70, .kernel = 3, .group = group, .percent = 97}, element);
    }
}
