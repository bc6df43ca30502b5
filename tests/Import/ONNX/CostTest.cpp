//===- CostTest.cpp - what small files may cost -------------------------------------===//
//
// Each model is a few hundred bytes that ask for much: sizes, windows and paddings beyond every machine, chains of
// constants, functions that multiply. It is imported or refused, soon and in little memory.
//
//===----------------------------------------------------------------------===//
#include "ModelBuilder.h"
#include "Support/Cost.h"

#include <functional>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

constexpr int64_t huge = int64_t(1) << 62, large = int64_t(1) << 40, lowest = INT64_MIN, highest = INT64_MAX;

struct Bomb {
  const char *name;
  std::function<void(ModelBuilder &)> build; ///< makes value 'y'
};
std::ostream &operator<<(std::ostream &os, const Bomb &bomb) { return os << bomb.name; }

/// c = ones of these sizes.
ModelBuilder &ones(ModelBuilder &m, const std::string &name, Int64s sizes) {
  m.initializer(name + "_shape", int64s({int64_t(sizes.size())}, sizes));
  return m.node("ConstantOfShape", {name + "_shape"}, {name});
}

/// A 1-D convolution or pooling of input x [1, 1, 8].
void window(ModelBuilder &m, const char *type, std::vector<Attr> attrs) {
  m.input("x", {1, 1, 8});
  bool isPool = std::string(type).find("Pool") != std::string::npos;
  if (!isPool)
    m.initializer("w", ramp({1, 1, 3}));
  m.node(type, isPool ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "w"}, {"y"}, std::move(attrs));
}

/// A constant of 2^n elements, by n concatenations of the one before with itself: c0, c1, ... c`n`.
void doublings(ModelBuilder &m, int n) {
  m.initializer("c0", floats({1}, {1}));
  for (int i = 0; i < n; ++i)
    m.node("Concat", {"c" + std::to_string(i), "c" + std::to_string(i)}, {"c" + std::to_string(i + 1)},
           {{"axis", int64_t(0)}});
}

/// A chain of elementwise operations on a constant of a million elements, each with another result.
void chain(ModelBuilder &m) {
  doublings(m, 20);
  for (int i = 20; i < 220; ++i)
    m.node(i % 2 ? "Exp" : "Cos", {"c" + std::to_string(i)}, {"c" + std::to_string(i + 1)});
  m.node("Neg", {"c220"}, {"y"});
}

/// Sums of one large constant: each result is small, but all of it is read each time.
void sums(ModelBuilder &m) {
  doublings(m, 21);
  std::vector<std::string> all;
  for (int i = 0; i < 2000; ++i) {
    all.push_back("s" + std::to_string(i));
    m.node("ReduceL2", {"c21"}, {all.back()}, {{"keepdims", int64_t(1)}});
  }
  m.node("Concat", all, {"y"}, {{"axis", int64_t(0)}});
}

/// Resizes a constant of a million elements from one shape to another of as many, by `mode` linear.
void resizeConstant(ModelBuilder &m, Int64s from, Int64s to) {
  doublings(m, 20);
  m.initializer("from", int64s({4}, from)).initializer("to", int64s({4}, to)).node("Reshape", {"c20", "from"}, {"d"});
  m.node("Resize", {"d", "", "", "to"}, {"y"}, {{"mode", std::string("linear")}});
}

/// Sixteen functions; each calls the one before ten times.
void functions(ModelBuilder &m) {
  auto *domain = m.proto.add_opset_import();
  domain->set_domain("f");
  domain->set_version(1);
  for (int level = 0; level < 15; ++level) {
    auto *f = m.proto.add_functions();
    f->set_domain("f");
    f->set_name("f" + std::to_string(level));
    f->add_input("a");
    f->add_output("v10");
    for (const auto &import : m.proto.opset_import())
      *f->add_opset_import() = import;
    for (int i = 0; i < 10; ++i) {
      auto *node = f->add_node();
      node->set_op_type(level ? "f" + std::to_string(level - 1) : "Neg");
      node->set_domain(level ? "f" : "");
      node->add_input(i ? "v" + std::to_string(i) : "a");
      node->add_output("v" + std::to_string(i + 1));
    }
  }
  m.input("x", {4}).node("f14", {"x"}, {"y"}, {}, "f");
}

const Bomb bombs[] = {
    {"OnesBeyondMemory", [](auto &m) { ones(m, "y", {large, large}); }},
    {"ManyOnes", [](auto &m) { ones(m, "c", {large}).node("Neg", {"c"}, {"y"}); }},
    {"EmptyWithHugeSizes", [](auto &m) { ones(m, "c", {0, huge, huge}).node("Neg", {"c"}, {"y"}); }},
    {"EmptyInitializerWithHugeSizes",
     [](auto &m) { m.initializer("c", floats({0, huge, huge}, {})).node("Neg", {"c"}, {"y"}); }},
    {"Chain", chain},
    {"Sums", sums},
    {"Doubling",
     [](auto &m) {
       m.input("c0", {1});
       for (int i = 0; i < 64; ++i)
         m.node("Concat", {"c" + std::to_string(i), "c" + std::to_string(i)}, {"c" + std::to_string(i + 1)},
                {{"axis", int64_t(0)}});
       m.node("Neg", {"c64"}, {"y"});
     }},
    {"DoublingConstant", [](auto &m) { doublings(m, 64); m.node("Neg", {"c64"}, {"y"}); }},
    {"Tile", [](auto &m) { m.initializer("x", floats({1}, {1})).initializer("n", int64s({1}, {large})).node("Tile", {"x", "n"}, {"y"}); }},
    {"TileOverflow", [](auto &m) { m.input("x", {1 << 20}).initializer("n", int64s({1}, {huge})).node("Tile", {"x", "n"}, {"y"}); }},
    {"ExpandAndReduce",
     [](auto &m) {
       m.initializer("x", floats({1}, {1})).initializer("n", int64s({1}, {large}));
       m.node("Expand", {"x", "n"}, {"e"}).node("ReduceSum", {"e"}, {"y"});
     }},
    {"BroadcastOfConstants",
     [](auto &m) { ones(m, "a", {1 << 18, 1}); ones(m, "b", {1, 1 << 18}).node("Add", {"a", "b"}, {"y"}); }},
    {"OuterProduct",
     [](auto &m) { ones(m, "a", {1 << 18, 1}); ones(m, "b", {1, 1 << 18}).node("MatMul", {"a", "b"}, {"y"}); }},
    {"ProductOfConstants",
     [](auto &m) {
       doublings(m, 22);
       m.initializer("s", int64s({2}, {1 << 11, 1 << 11})).node("Reshape", {"c22", "s"}, {"a"}).node("MatMul", {"a", "a"}, {"y"});
     }},
    {"Range",
     [](auto &m) {
       m.initializer("a", int64s({}, {0})).initializer("b", int64s({}, {highest})).initializer("c", int64s({}, {1}));
       m.node("Range", {"a", "b", "c"}, {"y"});
     }},
    {"RangeDown",
     [](auto &m) {
       m.initializer("a", int64s({}, {0})).initializer("b", int64s({}, {lowest})).initializer("c", int64s({}, {-1}));
       m.node("Range", {"a", "b", "c"}, {"y"});
     }},
    {"FloatRange",
     [](auto &m) {
       m.initializer("a", floats({}, {0})).initializer("b", floats({}, {1e30f})).initializer("c", floats({}, {1e-30f}));
       m.node("Range", {"a", "b", "c"}, {"y"});
     }},
    {"Pad", [](auto &m) { m.input("x", {4}).initializer("p", int64s({2}, {highest, highest})).node("Pad", {"x", "p"}, {"y"}); }},
    {"PadBothWays", [](auto &m) { m.input("x", {4}).initializer("p", int64s({2}, {lowest, highest})).node("Pad", {"x", "p"}, {"y"}); }},
    {"SliceExtremes",
     [](auto &m) {
       m.input("x", {4}).initializer("a", int64s({1}, {highest})).initializer("b", int64s({1}, {lowest}));
       m.initializer("axes", int64s({1}, {0})).initializer("s", int64s({1}, {lowest}));
       m.node("Slice", {"x", "a", "b", "axes", "s"}, {"y"});
     }},
    {"SliceLargeStep",
     [](auto &m) {
       m.input("x", {4}).initializer("a", int64s({1}, {1})).initializer("b", int64s({1}, {highest}));
       m.initializer("axes", int64s({1}, {0})).initializer("s", int64s({1}, {highest}));
       m.node("Slice", {"x", "a", "b", "axes", "s"}, {"y"});
     }},
    {"ConvDilation", [](auto &m) { window(m, "Conv", {{"dilations", Int64s{huge}}}); }},
    {"ConvStride", [](auto &m) { window(m, "Conv", {{"strides", Int64s{highest}}}); }},
    {"ConvPadding", [](auto &m) { window(m, "Conv", {{"pads", Int64s{highest, highest}}}); }},
    {"ConvLargePadding", [](auto &m) { window(m, "Conv", {{"pads", Int64s{1 << 30, 1 << 30}}}); }},
    {"ConvSamePadding", [](auto &m) { window(m, "Conv", {{"auto_pad", std::string("SAME_UPPER")}, {"dilations", Int64s{huge}}}); }},
    {"ConvTransposeStride", [](auto &m) { window(m, "ConvTranspose", {{"strides", Int64s{huge}}}); }},
    {"ConvTransposeOutputPadding", [](auto &m) { window(m, "ConvTranspose", {{"output_padding", Int64s{huge}}}); }},
    {"ConvTransposeOutputShape", [](auto &m) { window(m, "ConvTranspose", {{"output_shape", Int64s{highest}}}); }},
    {"PoolWindow", [](auto &m) { window(m, "AveragePool", {{"kernel_shape", Int64s{huge}}, {"pads", Int64s{huge, huge}}}); }},
    {"PoolWindowOfConstants",
     [](auto &m) {
       m.initializer("x", ramp({1, 1, 2, 2}));
       m.node("AveragePool", {"x"}, {"y"}, {{"kernel_shape", Int64s{1 << 30, 1 << 30}}, {"pads", Int64s{1 << 29, 1 << 29, 1 << 29, 1 << 29}}});
     }},
    {"PoolCeil",
     [](auto &m) { window(m, "MaxPool", {{"kernel_shape", Int64s{1}}, {"strides", Int64s{highest}}, {"ceil_mode", int64_t(1)}}); }},
    {"LpPool", [](auto &m) { window(m, "LpPool", {{"kernel_shape", Int64s{1 << 30}}, {"pads", Int64s{1 << 29, 1 << 29}}, {"p", int64_t(1) << 40}}); }},
    {"LRN", [](auto &m) { m.input("x", {1, 4, 2, 2}).node("LRN", {"x"}, {"y"}, {{"size", highest}}); }},
    {"ResizeScales",
     [](auto &m) { m.input("x", {1, 1, 2, 2}).initializer("s", floats({4}, {1, 1, 1e30f, 1e30f})).node("Resize", {"x", "", "s"}, {"y"}); }},
    {"ResizeSizes",
     [](auto &m) { m.input("x", {1, 1, 2, 2}).initializer("s", int64s({4}, {1, 1, huge, huge})).node("Resize", {"x", "", "", "s"}, {"y"}); }},
    {"ResizeThroughLarge", [](auto &m) { resizeConstant(m, {1, 1, 1 << 20, 1}, {1, 1, 1, 1 << 20}); }},
    {"ResizeGrowsFirst", [](auto &m) { resizeConstant(m, {1, 1, 1, 1 << 20}, {1, 1, 1 << 20, 1}); }},
    {"OneHot",
     [](auto &m) {
       m.input("x", {4}, ::onnx::TensorProto::INT64).initializer("d", int64s({}, {huge})).initializer("v", floats({2}, {0, 1}));
       m.node("OneHot", {"x", "d", "v"}, {"y"});
     }},
    {"EyeLike", [](auto &m) { ones(m, "c", {1 << 20, 1 << 20}).node("EyeLike", {"c"}, {"y"}, {{"k", highest}}); }},
    {"Trilu", [](auto &m) { ones(m, "c", {1 << 20, 1 << 20}).node("Trilu", {"c"}, {"y"}); }},
    {"DepthToSpace", [](auto &m) { m.input("x", {1, 4, 2, 2}).node("DepthToSpace", {"x"}, {"y"}, {{"blocksize", int64_t(1) << 32}}); }},
    {"TopK",
     [](auto &m) { m.input("x", {4}).initializer("k", int64s({1}, {huge})).node("TopK", {"x", "k"}, {"y", "i"}); }},
    {"Axis", [](auto &m) { m.input("x", {4}).node("Softmax", {"x"}, {"y"}, {{"axis", lowest}}); }},
    {"Reshape",
     [](auto &m) { m.input("x", {4}).initializer("s", int64s({3}, {huge, huge, -1})).node("Reshape", {"x", "s"}, {"y"}); }},
    {"ShapeArithmetic",
     [](auto &m) {
       m.input("x", {"n"}).initializer("k", int64s({1}, {huge})).node("Shape", {"x"}, {"s"});
       m.node("Mul", {"s", "k"}, {"a"}).node("Mul", {"a", "k"}, {"b"}).node("Add", {"b", "k"}, {"c"});
       m.node("ConstantOfShape", {"c"}, {"y"});
     }},
    {"Functions", functions},
};

struct OnnxCost : testing::TestWithParam<Bomb> {};

TEST_P(OnnxCost, IsSmall) {
  std::string file;
  {
    ModelBuilder m(18);
    GetParam().build(m);
    m.output("y");
    file = m.proto.SerializeAsString();
  }
  ASSERT_LE(file.size(), size_t(200) << 10);
  ajour::test::expectCost([&] { importBytes(file); }, /*seconds=*/2, /*bytes=*/int64_t(256) << 20);
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxCost, testing::ValuesIn(bombs), [](const auto &info) { return std::string(info.param.name); });

} // namespace
