//===- RoundTripTest.cpp - every operation prints what it parses -----------------------------===//
#include "Dialect/Parsing.h"

#include <set>

using namespace ajour::test;
using namespace mlir;

/// At least one of every operation, with its optional operands and attributes.
static const char *everything = R"(
module attributes {nn.symbols = [#nn.symbol<"batch", 1, 16>]} {
  func.func private @callee(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32>, %i: tensor<2xi64>, %q: tensor<2xi8>, %b: tensor<2xi1>, %s: tensor<3x2x2xf32>, %s6: tensor<3x2x6xf32>, %m6: tensor<6x2xf32>, %s8: tensor<3x2x8xf32>,
                    %m8: tensor<8x2xf32>, %m: tensor<2x2xf32>, %m3: tensor<3x2xf32>,
                  %image: tensor<1x4x4x2xf32>, %dynamic: tensor<?x2xf32, #nn.dims<()[s0] -> (s0, 2)>>,
                  %keys: tensor<4x1x1xui8>, %places: tensor<3xi64>, %mask: tensor<3x4xf32>, %units: tensor<4x1xf32>,
                  %expert_rows: tensor<2x1x3xf32>, %expert_weights: tensor<4x5x3xf32>, %chosen: tensor<2x1xi64>) {
    %c = nn.constant {value = dense<[1, 2]> : tensor<2xi8>} : tensor<2xi8>
    %unary = nn.unary <elu> %x {alpha = 1.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>
    %binary = nn.binary <floor_mod> %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %compare = nn.compare <ge> %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %select = nn.select %b, %x, %x : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %cast = nn.cast %x : (tensor<2xf32>) -> tensor<2xui8>
    %clamp = nn.clamp %x {low = 0.0 : f64, high = 6.0 : f64} : (tensor<2xf32>) -> tensor<2xf32>
    %quantize = nn.quantize %x {scales = array<f32: 0.5>, zero_points = array<i32: 3>} : (tensor<2xf32>) -> tensor<2xi8>
    %dequantize = nn.dequantize %q {scales = array<f32: 0.5>, zero_points = array<i32: 3>, axis = 0 : i64}
      : (tensor<2xi8>) -> tensor<2xf32>
    %scale = nn.slice %x {starts = array<i64: 0>, steps = array<i64: 1>} : (tensor<2xf32>) -> tensor<1xf32>
    %zero = nn.cast %scale : (tensor<1xf32>) -> tensor<1xi8>
    %grouped = nn.dequantize_grouped %q, %scale, %zero {axis = 0 : i64, group = 2 : i64, bits = 4 : i64}
      : (tensor<2xi8>, tensor<1xf32>, tensor<1xi8>) -> tensor<2xf32>
    %codebook = nn.dequantize_codebook %cast, %x, %scale {axis = 0 : i64, group = 2 : i64}
      : (tensor<2xui8>, tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
    %requantize = nn.requantize %q {multipliers = array<i32: 1>, shifts = array<i32: -1>, axis = 0 : i64, qmin = -128 : i32,
      qmax = 127 : i32, zero_point = 2 : i32} : (tensor<2xi8>) -> tensor<2xi8>
    %table = nn.iota {axis = 0 : i64} : () -> tensor<256xi8>
    %lookup = nn.lookup %q, %table : (tensor<2xi8>, tensor<256xi8>) -> tensor<2xi8>
    %matmul = nn.matmul %m, %m, %x {transpose_rhs} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    %filter = nn.reshape %m : (tensor<2x2xf32>) -> tensor<2x1x1x2xf32>
    %conv = nn.conv %image, %filter, %x {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x4x4x2xf32>, tensor<2x1x1x2xf32>, tensor<2xf32>)
      -> tensor<1x4x4x2xf32>
    %deconv = nn.conv_transpose %image, %filter {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, output_pads = array<i64: 0, 0>}
      : (tensor<1x4x4x2xf32>, tensor<2x1x1x2xf32>) -> tensor<1x4x4x2xf32>
    %max = nn.max_pool %image {window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, ceil_mode} : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
    %avg = nn.avg_pool %image {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, count_include_pad}
      : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
    %resize = nn.resize %x {mode = #nn.resize_mode<cubic>, coordinate_mode = #nn.coordinate_mode<half_pixel>,
      nearest_mode = #nn.nearest_mode<floor>, scales = array<f32: 2.0>, exclude_outside} : (tensor<2xf32>) -> tensor<4xf32>
    %sample = nn.grid_sample %image, %image {mode = #nn.resize_mode<linear>, padding = #nn.sample_padding<border>}
      : (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
    %reduce = nn.reduce <mean> %m {axes = array<i64: 0, 1>, keep_dims} : (tensor<2x2xf32>) -> tensor<1x1xf32>
    %arg = nn.arg_reduce <min> %m {axis = 1 : i64, select_last} : (tensor<2x2xf32>) -> tensor<2xi64>
    %softmax = nn.softmax %dynamic {axis = 1 : i64, log} : (tensor<?x2xf32, #nn.dims<()[s0] -> (s0, 2)>>)
      -> tensor<?x2xf32, #nn.dims<()[s0] -> (s0, 2)>>
    %norm = nn.layer_norm %m scale %x bias %x {axis = 1 : i64, epsilon = 1.0e-5 : f32}
      : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    %cumsum = nn.cumsum %x {axis = 0 : i64, exclusive} : (tensor<2xf32>) -> tensor<2xf32>
    %values, %indices = nn.top_k %x {k = 1 : i64, axis = 0 : i64} : (tensor<2xf32>) -> (tensor<1xf32>, tensor<1xi64>)
    %transpose = nn.transpose %m {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %broadcast = nn.broadcast %x : (tensor<2xf32>) -> tensor<3x2xf32>
    %slice = nn.slice %x {starts = array<i64: 1>, steps = array<i64: -1>} : (tensor<2xf32>) -> tensor<2xf32>
    %concat = nn.concat %x, %x {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    %pad = nn.pad %x {low = array<i64: 1>, high = array<i64: 0>, mode = #nn.pad_mode<reflect>} : (tensor<2xf32>)
      -> tensor<3xf32>
    %gather = nn.gather %x, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %elements = nn.gather_elements %x, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
    %nd = nn.gather_nd %m, %i : (tensor<2x2xf32>, tensor<2xi64>) -> tensor<f32>
    %scatter = nn.scatter_elements %x, %i, %x {axis = 0 : i64, kind = #nn.scatter_kind<add>}
      : (tensor<2xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2xf32>
    %scatternd = nn.scatter_nd %m, %i, %nd : (tensor<2x2xf32>, tensor<2xi64>, tensor<f32>) -> tensor<2x2xf32>
    %reverse = nn.reverse_sequence %m, %i {batch_axis = 0 : i64, time_axis = 1 : i64} : (tensor<2x2xf32>, tensor<2xi64>)
      -> tensor<2x2xf32>
    %seq, %state = nn.rnn %s, %m initial %m lengths %i {activations = [#nn.cell_activation<tanh>], clip = 2.0 : f32, reverse}
      : (tensor<3x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xi64>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>)
    %gru:2 = nn.gru %s6, %m6 candidate_bias %x
      {activations = [#nn.cell_activation<sigmoid>, #nn.cell_activation<tanh>], linear_before_reset}
      : (tensor<3x2x6xf32>, tensor<6x2xf32>, tensor<2xf32>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>)
    %lstm:3 = nn.lstm %s8, %m8 projection %m projection_bias %x initial %m initial_cell %m
      {activations = [#nn.cell_activation<sigmoid>, #nn.cell_activation<tanh>, #nn.cell_activation<relu>],
       alphas = array<f32: 0.0, 0.0, 1.0>, input_forget, cell_clip = 3.0 : f32}
      : (tensor<3x2x8xf32>, tensor<8x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
      -> (tensor<3x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
    %attention = nn.attention %s, %keys, %keys positions %places mask %mask slopes %x sinks %x key_scales %units value_scales %units
      {scale = 0.5 : f32, soft_cap = 30.0 : f32, window = 2 : i64}
      : (tensor<3x2x2xf32>, tensor<4x1x1xui8>, tensor<4x1x1xui8>, tensor<3xi64>, tensor<3x4xf32>, tensor<2xf32>, tensor<2xf32>,
         tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<3x2x2xf32>
    %conv1d:2 = nn.causal_conv %m, %m bias %x {silu} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<1x2xf32>)
    %scan:2 = nn.selective_scan %s, %m3, %m, %s, %s delta_bias %x skip %x gate %s {softplus, delta_max = 1.0 : f32}
      : (tensor<3x2x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>, tensor<3x2x2xf32>, tensor<3x2x2xf32>, tensor<2xf32>, tensor<2xf32>,
         tensor<3x2x2xf32>) -> (tensor<3x2x2xf32>, tensor<2x2x2xf32>)
    %experts = nn.expert_matmul %expert_rows, %expert_weights, %chosen : (tensor<2x1x3xf32>, tensor<4x5x3xf32>, tensor<2x1xi64>) -> tensor<2x1x5xf32>
    %dispatch = exec.dispatch "copy" @callee(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %alias = exec.alias %x : tensor<2xf32> to tensor<1x2xf32>
    return
  }
})";

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

TEST(RoundTrip, TextIsStable) {
  std::string message;
  OwningOpRef<ModuleOp> first = parse(everything, message);
  ASSERT_TRUE(first) << message;
  std::string text = print(*first);
  OwningOpRef<ModuleOp> second = parse(text, message);
  ASSERT_TRUE(second) << message << text;
  EXPECT_EQ(print(*second), text);
}

TEST(RoundTrip, CoversEveryOperation) {
  std::string message;
  OwningOpRef<ModuleOp> module = parse(everything, message);
  ASSERT_TRUE(module) << message;
  std::set<std::string> seen;
  module->walk([&](Operation *op) { seen.insert(op->getName().getStringRef().str()); });
  for (RegisteredOperationName name : context()->getRegisteredOperations())
    if (name.getDialectNamespace() == "nn" || name.getDialectNamespace() == "exec") {
      EXPECT_TRUE(seen.count(name.getStringRef().str())) << name.getStringRef().str();
    }
}
