// Convolutions with sparse weights over channel-major activations, against the reference: both kernels, every way in
// which tiles, strips, chunks and ranges of filters can be ragged.
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
  int64_t images, channels, height, width, filters, kernel, stride, dilation, pad, group;
  int64_t percent = 75; ///< of zeros
  bool isDepthwise = false;
};

int64_t outSize(const Geometry &g, int64_t in) { return (in + 2 * g.pad - g.dilation * (g.kernel - 1) - 1) / g.stride + 1; }

/// transpose, conv with bias, relu, transpose; with a residual added before the relu.
std::string moduleText(const Geometry &g, bool residual) {
  ModuleText m;
  int64_t oh = outSize(g, g.height), ow = outSize(g, g.width);
  std::string nchw = tensorType({g.images, g.filters, oh, ow}, "f32"), nhwc = tensorType({g.images, oh, ow, g.filters}, "f32");
  std::string x = m.input(tensorType({g.images, g.channels, g.height, g.width}, "f32"));
  std::string w = m.constant(tensorType({g.filters, g.kernel, g.kernel, g.isDepthwise ? 1 : g.channels}, "f32"));
  std::string b = m.constant(tensorType({g.filters}, "f32"));
  std::string t = m.op("nn.transpose", {x}, "perm = " + array({0, 2, 3, 1}),
                       tensorType({g.images, g.height, g.width, g.channels}, "f32"));
  auto pair = [](int64_t v) { return array({v, v}); };
  std::string y = m.op("nn.conv", {t, w, b},
                       "strides = " + pair(g.stride) + ", dilations = " + pair(g.dilation) + ", pads_low = " + pair(g.pad) +
                           ", pads_high = " + pair(g.pad) + ", groups = " + std::to_string(g.isDepthwise ? g.channels : 1) + " : i64, nn.channel_major",
                       nhwc);
  std::string z = m.op("nn.transpose", {y}, "perm = " + array({0, 3, 1, 2}), nchw);
  if (residual)
    z = m.op("nn.binary <add>", {z, m.input(nchw)}, "", nchw);
  m.output(m.op("nn.unary <relu>", {z}, "", nchw));
  return m.text();
}

/// Zeros whole blocks of `group` filters at a tap and channel.
void prune(ModuleOp module, const Geometry &g) {
  std::mt19937 rng(7);
  module.walk([&](nn::ConvOp conv) {
    auto constant = conv.getFilter().getDefiningOp<nn::ConstantOp>();
    auto type = cast<RankedTensorType>(conv.getFilter().getType());
    std::vector<float> weights = *nn::constantFloats(constant.getValue());
    int64_t depth = type.getNumElements() / g.filters;
    for (int64_t f = 0; f < g.filters; f += g.group)
      for (int64_t k = 0; k < depth; ++k)
        if (int64_t(rng() % 100) < g.percent)
          for (int64_t r = f; r < std::min(g.filters, f + g.group); ++r)
            weights[r * depth + k] = 0;
    constant.setValueAttr(DenseElementsAttr::get(type, ArrayRef<float>(weights)));
  });
}

void check(const Geometry &g, bool residual = false) {
  SCOPED_TRACE(std::to_string(g.height) + "x" + std::to_string(g.width) + "x" + std::to_string(g.channels) + "->" +
               std::to_string(g.filters) + " window " + std::to_string(g.kernel) + " stride " + std::to_string(g.stride) +
               " group " + std::to_string(g.group));
  OwningOpRef<ModuleOp> module = parseModule(moduleText(g, residual));
  ASSERT_TRUE(module);
  prune(*module, g);
  ASSERT_TRUE(succeeded(encodeWeights(*module)));
  std::vector<HostTensor> inputs = randomInputs(*module, {}, 3);
  FailureOr<std::vector<HostTensor>> expected = interpret(module->lookupSymbol<func::FuncOp>("main"), inputs, {});
  ASSERT_TRUE(succeeded(expected));
  expectCompiled(*module, inputs, *expected, {.simplify = false, .threads = 2});
}

} // namespace

TEST(CompiledSparseConv, OneTap) {
  for (int64_t group : {1, 2, 4, 8})
    for (auto [height, width] : std::vector<std::pair<int64_t, int64_t>>{{3, 6}, {7, 7}, {14, 14}, {16, 31}})
      check({1, 13, height, width, 21, 1, 1, 1, 0, group}, group == 4);
  check({2, 40, 9, 9, 160, 1, 1, 1, 0, 4}, true);
  check({1, 40, 14, 14, 64, 1, 1, 1, 0, 4, 100});
  check({1, 8, 12, 12, 40, 1, 2, 1, 0, 4});
}

TEST(CompiledSparseConv, Windows) {
  for (int64_t group : {1, 8})
    for (int64_t size : {4, 7, 14, 28})
      check({1, 5, size, size + 1, 9, 3, 1, 1, 1, group}, size == 7);
  check({2, 70, 14, 15, 12, 3, 1, 1, 1, 1}, true);
  check({1, 3, 56, 60, 6, 3, 1, 1, 1, 1});
  check({1, 20, 7, 7, 300, 3, 1, 1, 1, 1});
  for (int64_t group : {1, 8}) {
    check({1, 6, 30, 33, 8, 3, 2, 1, 1, group});
    check({1, 6, 14, 14, 8, 3, 2, 1, 1, group});
    check({1, 4, 20, 20, 5, 5, 1, 1, 2, group});
    check({1, 4, 21, 19, 5, 7, 2, 1, 3, group});
    check({1, 4, 20, 20, 5, 3, 1, 2, 2, group});
    check({1, 4, 9, 40, 5, 3, 1, 1, 0, group});
  }
  check({1, 12, 14, 14, 8, 3, 1, 1, 1, 1, 100});
}

/// The first layer of a channel-major network, whose weights are all there.
TEST(CompiledSparseConv, Dense) {
  check({1, 3, 33, 30, 8, 3, 2, 1, 1, 1, 0}, true);
  check({2, 4, 20, 28, 9, 7, 2, 1, 3, 1, 0});
}

TEST(CompiledSparseConv, Depthwise) {
  for (auto [size, kernel, stride] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{7, 3, 1}, {28, 3, 1}, {33, 3, 2}, {20, 5, 2}})
    check({2, 9, size, size, 9, kernel, stride, 1, kernel / 2, 1, size == 28 ? 30 : 0, true}, size == 7);
}
