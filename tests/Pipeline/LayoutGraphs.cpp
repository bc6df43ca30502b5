//===- LayoutGraphs.cpp - networks that move data a lot --------------------------------------===//
#include "Pipeline/LayoutGraphs.h"

#include <random>

using ajour::onnx_test::Attr;
using ajour::onnx_test::Floats;
using ajour::onnx_test::Int64s;
using ajour::onnx_test::ModelBuilder;
using ajour::onnx_test::Shape;

namespace ajour::test {

namespace {

/// Adds nodes and names their results.
struct Graph {
  explicit Graph() : model(17) {}

  std::string weight(const Shape &shape) {
    HostTensor tensor = onnx_test::ramp(shape);
    int64_t fanIn = 1;
    for (size_t i = 1; i < shape.size(); ++i)
      fanIn *= shape[i];
    std::normal_distribution<float> normal(0, 1 / std::sqrt(float(std::max<int64_t>(fanIn, 1))));
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.as<float>()[i] = normal(random);
    return initializer(tensor);
  }
  std::string ints(const Int64s &values) { return initializer(onnx_test::int64s({int64_t(values.size())}, values)); }
  std::string initializer(const HostTensor &tensor) {
    std::string name = "c" + std::to_string(count++);
    model.initializer(name, tensor);
    return name;
  }
  std::string op(const std::string &type, std::vector<std::string> inputs, std::vector<Attr> attrs = {}) {
    std::string name = "v" + std::to_string(count++);
    model.node(type, std::move(inputs), {name}, std::move(attrs)).lastNode().set_name(type + "_" + name);
    return name;
  }
  std::vector<std::string> split(const std::string &x, const Int64s &sizes, int64_t axis) {
    std::vector<std::string> names;
    for (size_t i = 0; i < sizes.size(); ++i)
      names.push_back("v" + std::to_string(count++));
    model.node("Split", {x, ints(sizes)}, names, {{"axis", axis}}).lastNode().set_name("Split_" + names[0]);
    return names;
  }
  std::string reshape(const std::string &x, const Int64s &shape) { return op("Reshape", {x, ints(shape)}); }
  std::string transpose(const std::string &x, const Int64s &perm) { return op("Transpose", {x}, {{"perm", perm}}); }
  std::string slice(const std::string &x, int64_t start, int64_t end, int64_t axis) {
    return op("Slice", {x, ints({start}), ints({end}), ints({axis})});
  }
  std::string concat(const std::vector<std::string> &parts, int64_t axis) { return op("Concat", parts, {{"axis", axis}}); }
  std::string linear(const std::string &x, int64_t in, int64_t out) {
    return op("Add", {op("MatMul", {x, weight({in, out})}), weight({out})});
  }
  std::string norm(const std::string &x, int64_t channels) {
    return op("LayerNormalization", {x, weight({channels}), weight({channels})}, {{"axis", int64_t(-1)}});
  }
  std::string conv(const std::string &x, int64_t in, int64_t out, int64_t window, int64_t stride, int64_t groups = 1,
                   bool relu = true) {
    int64_t pad = window / 2;
    std::string y = op("Conv", {x, weight({out, in / groups, window, window}), weight({out})},
                       {{"strides", Int64s{stride, stride}}, {"pads", Int64s{pad, pad, pad, pad}}, {"group", groups}});
    return relu ? op("Relu", {y}) : y;
  }

  /// Attention over [B, T, C] within each B.
  std::string attention(const std::string &x, int64_t batch, int64_t tokens, int64_t channels, int64_t heads) {
    int64_t depth = channels / heads;
    std::string qkv = reshape(linear(x, channels, 3 * channels), {batch, tokens, 3, heads, depth});
    qkv = transpose(qkv, {2, 0, 3, 1, 4});
    std::string parts[3];
    for (int64_t i = 0; i < 3; ++i)
      parts[i] = op("Gather", {qkv, initializer(onnx_test::int64s({}, {i}))}, {{"axis", int64_t(0)}});
    std::string scaled = op("Mul", {parts[0], initializer(onnx_test::floats({}, {1 / std::sqrt(float(depth))}))});
    std::string scores = op("MatMul", {scaled, transpose(parts[1], {0, 1, 3, 2})});
    std::string mixed = op("MatMul", {op("Softmax", {scores}, {{"axis", int64_t(-1)}}), parts[2]});
    mixed = reshape(transpose(mixed, {0, 2, 1, 3}), {batch, tokens, channels});
    return linear(mixed, channels, channels);
  }
  std::string feedForward(const std::string &x, int64_t channels) {
    std::string hidden = linear(norm(x, channels), channels, 4 * channels);
    std::string half = op("Mul", {hidden, initializer(onnx_test::floats({}, {0.5f}))});
    std::string erf = op("Erf", {op("Div", {hidden, initializer(onnx_test::floats({}, {std::sqrt(2.0f)}))})});
    std::string gelu = op("Mul", {half, op("Add", {erf, initializer(onnx_test::floats({}, {1}))})});
    return op("Add", {x, linear(gelu, 4 * channels, channels)});
  }

  ModelBuilder model;
  std::mt19937 random{11};
  int count = 0;
};

} // namespace

ModelBuilder visionTransformer(const TransformerSize &size) {
  Graph g;
  int64_t patches = size.grid * size.grid, channels = size.channels, tokens = patches + 1;
  g.model.input("x", {size.batch, int64_t(3), 4 * size.grid, 4 * size.grid});
  std::string x = g.op("Conv", {"x", g.weight({channels, 3, 4, 4}), g.weight({channels})}, {{"strides", Int64s{4, 4}}});
  x = g.transpose(g.reshape(x, {size.batch, channels, patches}), {0, 2, 1});
  std::string token = g.op("Expand", {g.weight({1, 1, channels}), g.ints({size.batch, 1, channels})});
  x = g.op("Add", {g.concat({token, x}, 1), g.weight({1, tokens, channels})});
  for (int64_t i = 0; i < size.blocks; ++i) {
    x = g.op("Add", {x, g.attention(g.norm(x, channels), size.batch, tokens, channels, size.heads)});
    x = g.feedForward(x, channels);
  }
  std::string first = g.op("Gather", {g.norm(x, channels), g.initializer(onnx_test::int64s({}, {0}))}, {{"axis", int64_t(1)}});
  g.model.node("Identity", {g.linear(first, channels, 10)}, {"y"}).output("y");
  return g.model;
}

ModelBuilder swinBlocks(const TransformerSize &size) {
  Graph g;
  int64_t n = size.batch, grid = size.grid, w = size.window, channels = size.channels, across = grid / w;
  g.model.input("x", {n, grid * grid, channels});
  std::string x = "x";
  auto roll = [&](std::string y, int64_t by) {
    for (int64_t axis : {1, 2}) {
      int64_t at = by > 0 ? grid - by : -by;
      y = g.concat({g.slice(y, at, grid, axis), g.slice(y, 0, at, axis)}, axis);
    }
    return y;
  };
  for (int64_t i = 0; i < 2 * size.blocks; ++i) {
    int64_t shift = i % 2 ? w / 2 : 0;
    std::string y = g.reshape(g.norm(x, channels), {n, grid, grid, channels});
    if (shift)
      y = roll(y, -shift);
    y = g.transpose(g.reshape(y, {n, across, w, across, w, channels}), {0, 1, 3, 2, 4, 5});
    y = g.reshape(y, {n * across * across, w * w, channels});
    y = g.attention(y, n * across * across, w * w, channels, size.heads);
    y = g.transpose(g.reshape(y, {n, across, across, w, w, channels}), {0, 1, 3, 2, 4, 5});
    y = g.reshape(y, {n, grid, grid, channels});
    if (shift)
      y = roll(y, shift);
    x = g.op("Add", {x, g.reshape(y, {n, grid * grid, channels})});
    x = g.feedForward(x, channels);
  }
  // Patch merging: every other row and column next to each other in channels.
  std::string image = g.reshape(x, {n, grid / 2, 2, grid / 2, 2, channels});
  std::string merged = g.reshape(g.transpose(image, {0, 1, 3, 4, 2, 5}), {n, grid * grid / 4, 4 * channels});
  g.model.node("Identity", {g.linear(g.norm(merged, 4 * channels), 4 * channels, 2 * channels)}, {"y"}).output("y");
  return g.model;
}

ModelBuilder shuffleUnits(int64_t units, int64_t side, int64_t channels) {
  Graph g;
  g.model.input("x", {int64_t(1), int64_t(3), side, side});
  int64_t half = channels / 2;
  std::string x = g.conv("x", 3, channels, 3, 2);
  for (int64_t i = 0; i < units; ++i) {
    std::vector<std::string> halves = g.split(x, {half, half}, 1);
    std::string y = g.conv(halves[1], half, half, 1, 1);
    y = g.conv(g.conv(y, half, half, 3, 1, half, false), half, half, 1, 1);
    y = g.concat({halves[0], y}, 1);
    y = g.transpose(g.reshape(y, {1, 2, half, side / 2, side / 2}), {0, 2, 1, 3, 4});
    x = g.reshape(y, {1, channels, side / 2, side / 2});
  }
  x = g.op("GlobalAveragePool", {g.conv(x, channels, 2 * channels, 1, 1)});
  g.model.node("Identity", {g.linear(g.reshape(x, {1, 2 * channels}), 2 * channels, 10)}, {"y"}).output("y");
  return g.model;
}

ModelBuilder detectorHead(int64_t side, int64_t channels) {
  Graph g;
  g.model.input("x", {int64_t(1), int64_t(3), side, side});
  auto splitBlock = [&](const std::string &x, int64_t in, int64_t out) {
    std::vector<std::string> halves = g.split(g.conv(x, in, out, 1, 1), {out / 2, out / 2}, 1);
    std::string y = g.op("Add", {halves[1], g.conv(g.conv(halves[1], out / 2, out / 2, 3, 1), out / 2, out / 2, 3, 1)});
    return g.conv(g.concat({halves[0], halves[1], y}, 1), out / 2 * 3, out, 1, 1);
  };
  std::string fine = splitBlock(g.conv("x", 3, channels, 3, 2), channels, channels);
  std::string coarse = splitBlock(g.conv(fine, channels, 2 * channels, 3, 2), 2 * channels, 2 * channels);
  std::string pooled = g.conv(coarse, 2 * channels, channels, 1, 1);
  std::vector<std::string> pyramid{pooled};
  for (int i = 0; i < 3; ++i)
    pyramid.push_back(g.op("MaxPool", {pyramid.back()}, {{"kernel_shape", Int64s{5, 5}}, {"pads", Int64s{2, 2, 2, 2}}, {"strides", Int64s{1, 1}}}));
  coarse = g.conv(g.concat(pyramid, 1), 4 * channels, 2 * channels, 1, 1);
  std::string up = g.op("Resize", {coarse, "", g.initializer(onnx_test::floats({4}, {1, 1, 2, 2}))},
                        {{"mode", std::string("nearest")}, {"nearest_mode", std::string("floor")},
                         {"coordinate_transformation_mode", std::string("asymmetric")}});
  fine = splitBlock(g.concat({up, fine}, 1), 3 * channels, channels);
  coarse = splitBlock(g.concat({g.conv(fine, channels, channels, 3, 2), coarse}, 1), 3 * channels, 2 * channels);
  // Boxes and classes of every place: [1, 4 + 6, places].
  std::vector<std::string> places;
  int64_t size = side / 2;
  for (const auto &[x, depth] : {std::pair(fine, channels), std::pair(coarse, 2 * channels)}) {
    std::string box = g.conv(g.conv(x, depth, channels, 3, 1), channels, 4, 1, 1, 1, false);
    std::string classes = g.conv(g.conv(x, depth, channels, 3, 1), channels, 6, 1, 1, 1, false);
    places.push_back(g.reshape(g.concat({box, classes}, 1), {1, 10, size * size}));
    size /= 2;
  }
  std::vector<std::string> parts = g.split(g.concat(places, 2), {4, 6}, 1);
  std::string all = g.concat({g.op("Mul", {parts[0], g.initializer(onnx_test::floats({}, {8}))}), g.op("Sigmoid", {parts[1]})}, 1);
  g.model.node("Identity", {all}, {"y"}).output("y");
  return g.model;
}

} // namespace ajour::test
