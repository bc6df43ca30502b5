//===- ChannelMajorTest.cpp - convolutions that store [N, C, H, W] --------------------------===//
#include "Pipeline/Compiled.h"
#include "Pipeline/ModuleText.h"

#include "ajour/Conversion/LayoutOps.h"
#include "ajour/Conversion/Simplify.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace ajour;
using namespace ajour::test;
using namespace mlir;

namespace {

/// A network over pictures, channels last, as it is after nn-layout.
struct Net : ModuleText {
  struct Picture {
    std::string value;
    int64_t height, width, channels;
  };
  std::string type(const Picture &p) const { return tensorType({batch, p.height, p.width, p.channels}, "f32"); }
  Picture named(Picture p, const std::string &value) {
    p.value = value;
    return p;
  }

  /// An input [N, C, H, W].
  Picture picture(int64_t channels, int64_t height, int64_t width) {
    Picture p{"", height, width, channels};
    std::string x = input(tensorType({batch, channels, height, width}, "f32"));
    return named(p, op("nn.transpose", {x}, "perm = array<i64: 0, 2, 3, 1>", type(p)));
  }
  void outputs(const Picture &p) {
    output(op("nn.transpose", {p.value}, "perm = array<i64: 0, 3, 1, 2>",
              tensorType({batch, p.channels, p.height, p.width}, "f32")));
  }
  static int64_t sized(int64_t in, int64_t window, int64_t stride, int64_t pad, int64_t dilation = 1) {
    return (in + 2 * pad - (window - 1) * dilation - 1) / stride + 1;
  }
  static std::string windowed(int64_t stride, int64_t pad, int64_t dilation = 1) {
    return "strides = " + array({stride, stride}) + ", dilations = " + array({dilation, dilation}) +
           ", pads_low = " + array({pad, pad}) + ", pads_high = " + array({pad, pad});
  }
  Picture conv(const Picture &x, int64_t channels, int64_t window, int64_t stride, int64_t pad, int64_t groups = 1,
               int64_t dilation = 1) {
    Picture y{"", sized(x.height, window, stride, pad, dilation), sized(x.width, window, stride, pad, dilation), channels};
    std::string w = constant(tensorType({channels, window, window, x.channels / groups}, "f32"));
    std::string b = constant(tensorType({channels}, "f32"));
    return named(y, op("nn.conv", {x.value, w, b},
                       windowed(stride, pad, dilation) + ", groups = " + std::to_string(groups) + " : i64", type(y)));
  }
  Picture pool(const std::string &kind, const Picture &x, int64_t window, int64_t stride, int64_t pad,
               const std::string &more = "") {
    Picture y{"", sized(x.height, window, stride, pad), sized(x.width, window, stride, pad), x.channels};
    return named(y, op("nn." + kind, {x.value}, "window = " + array({window, window}) + ", " + windowed(stride, pad) + more,
                       type(y)));
  }
  Picture relu(const Picture &x) { return named(x, unary("relu", x.value)); }
  Picture add(const Picture &x, const Picture &y) { return named(x, binary("add", x.value, y.value)); }

  int64_t batch = 2;
};

struct Counts {
  int64_t transposes = 0, bytes = 0, border = 0;
  std::string code; ///< the dispatches, when there is one that transposes
};

/// Runs nn-channel-major with the convolutions that `wanted` names (by position among them), compares with the
/// reference as it was, and counts what remains.
Counts expectChannelMajor(const Net &net, const std::function<bool(nn::ConvOp)> &wanted) {
  OwningOpRef<ModuleOp> module = parseModule(net.text());
  Counts counts;
  EXPECT_TRUE(bool(module)) << net.text();
  if (!module)
    return counts;
  std::vector<HostTensor> inputs = randomInputs(*module, {}, 1, 8);
  auto main = module->lookupSymbol<func::FuncOp>("main");
  auto expected = interpret(main, inputs, {});
  EXPECT_TRUE(succeeded(expected));
  PassManager manager(module->getContext());
  manager.addNestedPass<func::FuncOp>(createChannelMajorPass(wanted));
  EXPECT_TRUE(succeeded(manager.run(*module)));
  expectCompiled(*module, inputs, *expected, {.simplify = false});
  EXPECT_TRUE(succeeded(lowerToExec(*module)));
  for (const LayoutOp &op : findLayoutDispatches(*module)) {
    EXPECT_EQ(op.kind, "transpose");
    llvm::raw_string_ostream(counts.code) << *module;
    ++(op.border ? counts.border : counts.transposes);
    counts.bytes += op.bytes;
  }
  return counts;
}

bool isWindowed(nn::ConvOp conv) {
  return conv.getGroups() == 1 && cast<RankedTensorType>(conv.getFilter().getType()).getDimSize(1) > 1;
}

TEST(ChannelMajor, ClusterGrowsOverCheapOperations) {
  Net net;
  Net::Picture x = net.picture(3, 13, 11);
  Net::Picture a = net.relu(net.conv(x, 8, 3, 1, 1));
  Net::Picture b = net.conv(net.pool("max_pool", a, 3, 2, 1), 8, 3, 1, 1);
  Net::Picture c = net.relu(net.add(net.conv(net.relu(net.conv(b, 8, 3, 1, 1, 8)), 8, 3, 1, 1), b));
  net.outputs(net.pool("avg_pool", c, 2, 1, 0));
  Counts counts = expectChannelMajor(net, isWindowed);
  EXPECT_EQ(counts.transposes, 0) << counts.code;
  EXPECT_EQ(counts.border, 0) << "input and output are channel-major already";
}

TEST(ChannelMajor, DenseNetsStayAsTheyAre) {
  Net net;
  net.outputs(net.relu(net.conv(net.relu(net.conv(net.picture(3, 9, 7), 8, 3, 1, 1)), 4, 1, 1, 0)));
  OwningOpRef<ModuleOp> module = parseModule(net.text());
  std::string before, after;
  llvm::raw_string_ostream(before) << *module;
  PassManager manager(module->getContext());
  manager.addNestedPass<func::FuncOp>(createChannelMajorPass([](nn::ConvOp) { return false; }));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  llvm::raw_string_ostream(after) << *module;
  EXPECT_EQ(before, after);
}

/// What a dense convolution stores for a channel-major one, and the other way round, is stored so at once.
TEST(ChannelMajor, DenseNeighboursStoreForTheirReaders) {
  Net net;
  Net::Picture a = net.relu(net.conv(net.picture(3, 10, 9), 16, 3, 2, 1));
  Net::Picture b = net.relu(net.conv(a, 16, 1, 1, 0));
  Net::Picture c = net.relu(net.conv(net.relu(net.conv(b, 16, 3, 1, 1)), 8, 1, 1, 0));
  net.outputs(net.conv(c, 8, 3, 1, 1));
  int64_t position = 0;
  Counts counts = expectChannelMajor(net, [&](nn::ConvOp) { return ++position == 3; });
  EXPECT_EQ(counts.transposes, 0);
  EXPECT_EQ(counts.border, 1) << "the input of a dense convolution";
}

/// Windows of every kind over planes: all ends, more padding than picture, both divisors.
TEST(ChannelMajor, Windows) {
  struct Row {
    int64_t window, stride, pad, height, width;
  };
  for (const Row &row : {Row{3, 1, 1, 9, 8}, {3, 2, 1, 8, 9}, {2, 2, 0, 6, 7}, {5, 1, 2, 3, 4}, {3, 3, 1, 7, 10}, {7, 2, 3, 12, 33}})
    for (const char *kind : {"max_pool", "avg_pool", "avg_pool include", "depthwise"}) {
      SCOPED_TRACE(std::string(kind) + " " + std::to_string(row.window) + " " + std::to_string(row.stride));
      Net net;
      Net::Picture x = net.conv(net.picture(2, row.height, row.width), 3, 3, 1, 1);
      std::string name = kind;
      Net::Picture y = name == "depthwise" ? net.conv(x, 3, row.window, row.stride, row.pad, 3)
                                           : net.pool(name.substr(0, 8), x, row.window, row.stride, row.pad,
                                                      name.size() > 8 ? ", count_include_pad" : "");
      net.outputs(net.conv(net.relu(y), 4, 3, 1, 1));
      Counts counts = expectChannelMajor(net, isWindowed);
      EXPECT_EQ(counts.transposes + counts.border, 0);
    }
}

} // namespace
