//===- VerifierTest.cpp - one violation for each numbered constraint ------------------------===//
#include "Dialect/Parsing.h"

using namespace ajour::test;

namespace {
struct Violation {
  const char *name;      ///< operation and constraint
  const char *arguments; ///< of the function
  const char *body;
  const char *message; ///< part of the diagnostic
};
void PrintTo(const Violation &violation, std::ostream *os) { *os << violation.name; }
} // namespace

class Verifier : public testing::TestWithParam<Violation> {};

TEST_P(Verifier, NamesTheConstraint) {
  std::string message;
  auto module = parse(functionOf(GetParam().arguments, GetParam().body), message);
  EXPECT_FALSE(module) << GetParam().body;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

static std::string nameOf(const testing::TestParamInfo<Violation> &info) { return info.param.name; }

#define WINDOW(strides, dilations, low, high)                                                                          \
  "strides = array<i64: " strides ">, dilations = array<i64: " dilations ">, pads_low = array<i64: " low               \
  ">, pads_high = array<i64: " high ">"
#define RESIZE(scales)                                                                                                 \
  "{mode = #nn.resize_mode<linear>, coordinate_mode = #nn.coordinate_mode<half_pixel>, nearest_mode = "                \
  "#nn.nearest_mode<floor>, scales = array<f32" scales ">}"

INSTANTIATE_TEST_SUITE_P(
    Elementwise, Verifier,
    testing::Values(
        Violation{"constant_C1", "",
                  "%0 = \"nn.constant\"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<3xf32>", "C1:"},
        Violation{"unary_C1_float", "%a: tensor<2xi32>", "%0 = nn.unary <exp> %a : (tensor<2xi32>) -> tensor<2xi32>",
                  "C1: a floating point operand is needed, found i32"},
        Violation{"unary_C1_number", "%a: tensor<2xi1>", "%0 = nn.unary <neg> %a : (tensor<2xi1>) -> tensor<2xi1>",
                  "C1: a number is needed"},
        Violation{"unary_C2", "%a: tensor<2xf32>", "%0 = nn.unary <logical_not> %a : (tensor<2xf32>) -> tensor<2xf32>",
                  "C2: i1 is needed"},
        Violation{"unary_C3", "%a: tensor<2xf32>", "%0 = nn.unary <bitwise_not> %a : (tensor<2xf32>) -> tensor<2xf32>",
                  "C3: an integer is needed"},
        Violation{"binary_C1", "%a: tensor<2xf32>, %b: tensor<2xf16>",
                  "%0 = nn.binary <add> %a, %b : (tensor<2xf32>, tensor<2xf16>) -> tensor<2xf32>", "C1:"},
        Violation{"binary_C2", "%a: tensor<2xf32>, %b: tensor<3xf32>",
                  "%0 = nn.binary <add> %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>", "C2:"},
        Violation{"compare_C1", "%a: tensor<2xf32>, %b: tensor<2xi32>",
                  "%0 = nn.compare <lt> %a, %b : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xi1>", "C1:"},
        Violation{"compare_C2", "%a: tensor<2xf32>, %b: tensor<3xf32>",
                  "%0 = nn.compare <lt> %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xi1>", "C2:"},
        Violation{"select_C1", "%c: tensor<2xi1>, %a: tensor<2xf32>, %b: tensor<2xi32>",
                  "%0 = nn.select %c, %a, %b : (tensor<2xi1>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>", "C1:"},
        Violation{"select_C2", "%c: tensor<3xi1>, %a: tensor<2xf32>, %b: tensor<2xf32>",
                  "%0 = nn.select %c, %a, %b : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>", "C2:"},
        Violation{"cast_C1", "%a: tensor<2xf32>", "%0 = nn.cast %a : (tensor<2xf32>) -> tensor<3xi8>", "C1:"},
        Violation{"clamp_C1", "%a: tensor<2xf32>",
                  "%0 = nn.clamp %a {low = 2.0 : f64, high = 1.0 : f64} : (tensor<2xf32>) -> tensor<2xf32>", "C1:"},
        Violation{"quantize_C1", "%a: tensor<2xf32>",
                  "%0 = nn.quantize %a {scales = array<f32: 1.0>, zero_points = array<i32: 0>} : (tensor<2xf32>) -> "
                  "tensor<3xi8>",
                  "C1:"},
        Violation{"quantize_C2", "%a: tensor<2xf32>",
                  "%0 = nn.quantize %a {scales = array<f32: 1.0, 1.0, 1.0>, zero_points = array<i32: 0, 0, 0>} : "
                  "(tensor<2xf32>) -> tensor<2xi8>",
                  "C2:"},
        Violation{"quantize_C2_zero_points", "%a: tensor<2xf32>",
                  "%0 = nn.quantize %a {scales = array<f32: 1.0, 1.0>, zero_points = array<i32: 0>} : (tensor<2xf32>) "
                  "-> tensor<2xi8>",
                  "C2: 2 scales and 1 zero points"},
        Violation{"quantize_C3", "%a: tensor<2xf32>",
                  "%0 = nn.quantize %a {scales = array<f32: 0.0>, zero_points = array<i32: 0>} : (tensor<2xf32>) -> "
                  "tensor<2xi8>",
                  "C3:"},
        Violation{"quantize_C4", "%a: tensor<2xf32>",
                  "%0 = nn.quantize %a {scales = array<f32: 1.0>, zero_points = array<i32: 128>} : (tensor<2xf32>) -> "
                  "tensor<2xi8>",
                  "C4:"},
        Violation{"dequantize_C1", "%a: tensor<2xi8>",
                  "%0 = nn.dequantize %a {scales = array<f32: 1.0>, zero_points = array<i32: 0>} : (tensor<2xi8>) -> "
                  "tensor<3xf32>",
                  "C1:"},
        Violation{"dequantize_C2", "%a: tensor<2x5xi8>",
                  "%0 = nn.dequantize %a {scales = array<f32: 1.0, 1.0>, zero_points = array<i32: 0, 0>, axis = 1 : i64} "
                  ": (tensor<2x5xi8>) -> tensor<2x5xf32>",
                  "C2:"},
        Violation{"grouped_C1", "%a: tensor<2x5xi8>, %s: tensor<2x3xf32>",
                  "%0 = nn.dequantize_grouped %a, %s {axis = 1 : i64, group = 2 : i64} : (tensor<2x5xi8>, tensor<2x3xf32>) "
                  "-> tensor<5x2xf32>",
                  "C1: static and equal shapes are needed, found i8[2, 5] and f32[5, 2]"},
        Violation{"grouped_C2", "%a: tensor<2x5xi8>, %s: tensor<2x3xf32>",
                  "%0 = nn.dequantize_grouped %a, %s {axis = 2 : i64, group = 2 : i64} : (tensor<2x5xi8>, tensor<2x3xf32>) "
                  "-> tensor<2x5xf32>",
                  "C2: groups of 2 along axis 2 of i8[2, 5]"},
        Violation{"grouped_C3", "%a: tensor<2x5xi8>, %s: tensor<2x2xf32>",
                  "%0 = nn.dequantize_grouped %a, %s {axis = 1 : i64, group = 2 : i64} : (tensor<2x5xi8>, tensor<2x2xf32>) "
                  "-> tensor<2x5xf32>",
                  "C3: scales f32[2, 2] for groups of 2 along axis 1 of i8[2, 5]"},
        Violation{"grouped_C4", "%a: tensor<2x5xi8>, %s: tensor<2x3xf32>, %z: tensor<2x3xui8>",
                  "%0 = nn.dequantize_grouped %a, %s, %z {axis = 1 : i64, group = 2 : i64} : (tensor<2x5xi8>, "
                  "tensor<2x3xf32>, tensor<2x3xui8>) -> tensor<2x5xf32>",
                  "C4: zero points ui8[2, 3] for scales f32[2, 3]"},
        Violation{"grouped_C5", "%a: tensor<2x5xi8>, %s: tensor<2x3xf32>",
                  "%0 = nn.dequantize_grouped %a, %s {axis = 1 : i64, group = 2 : i64, bits = 9 : i64} : (tensor<2x5xi8>, "
                  "tensor<2x3xf32>) -> tensor<2x5xf32>",
                  "C5: elements of 9 bits"},
        Violation{"grouped_C6", "%a: tensor<2x5xi8>, %s: tensor<2x3xf32>, %z: tensor<2x3xi8>",
                  "%0 = nn.dequantize_grouped %a, %s, %z {axis = 1 : i64, group = 2 : i64, offsets} : (tensor<2x5xi8>, "
                  "tensor<2x3xf32>, tensor<2x3xi8>) -> tensor<2x5xf32>",
                  "C6: offsets are floating point numbers, found i8[2, 3]"},
        Violation{"codebook_C1", "%a: tensor<2x5xui8>, %t: tensor<4xf32>",
                  "%0 = nn.dequantize_codebook %a, %t : (tensor<2x5xui8>, tensor<4xf32>) -> tensor<10xf32>", "C1:"},
        Violation{"codebook_C2", "%a: tensor<2x5xui8>, %t: tensor<4xf32>",
                  "%0 = nn.dequantize_codebook %a, %t {group = 0 : i64} : (tensor<2x5xui8>, tensor<4xf32>) -> "
                  "tensor<2x5xf32>",
                  "C2:"},
        Violation{"codebook_C3", "%a: tensor<2x5xui8>, %t: tensor<4xf32>, %s: tensor<3x1xf32>",
                  "%0 = nn.dequantize_codebook %a, %t, %s {axis = 1 : i64, group = 5 : i64} : (tensor<2x5xui8>, "
                  "tensor<4xf32>, tensor<3x1xf32>) -> tensor<2x5xf32>",
                  "C3:"},
        Violation{"codebook_C4", "%a: tensor<2x5xui8>, %t: tensor<3x1x4xf32>",
                  "%0 = nn.dequantize_codebook %a, %t : (tensor<2x5xui8>, tensor<3x1x4xf32>) -> tensor<2x5xf32>",
                  "C4: a table f32[3, 1, 4] for ui8[2, 5]"},
        Violation{"codebook_C5", "%a: tensor<2x5xui8>, %t: tensor<257xf32>",
                  "%0 = nn.dequantize_codebook %a, %t : (tensor<2x5xui8>, tensor<257xf32>) -> tensor<2x5xf32>",
                  "C5: 257 entries"},
        Violation{"dequantize_C4", "%a: tensor<2xui8>",
                  "%0 = nn.dequantize %a {scales = array<f32: 1.0>, zero_points = array<i32: -1>} : (tensor<2xui8>) -> "
                  "tensor<2xf32>",
                  "C4:"},
        Violation{
            "requantize_C1", "%a: tensor<2xi32>",
            "%0 = nn.requantize %a {scales = array<f32: 1.0>, qmin = 0 : i32, qmax = 1 : i32} : (tensor<2xi32>) -> "
            "tensor<3xi8>",
            "C1:"},
        Violation{
            "requantize_C2", "%a: tensor<2xi32>",
            "%0 = nn.requantize %a {scales = array<f32: 1.0>, multipliers = array<i32: 1>, shifts = array<i32: 0>, "
            "qmin = 0 : i32, qmax = 1 : i32} : (tensor<2xi32>) -> tensor<2xi8>",
            "C2:"},
        Violation{"requantize_C3", "%a: tensor<2xi32>",
                  "%0 = nn.requantize %a {scales = array<f32: 1.0, 1.0, 1.0>, qmin = 0 : i32, qmax = 1 : i32} : "
                  "(tensor<2xi32>) -> tensor<2xi8>",
                  "C3:"},
        Violation{
            "requantize_C4", "%a: tensor<2xi32>",
            "%0 = nn.requantize %a {scales = array<f32: 1.0>, qmin = 0 : i32, qmax = 128 : i32} : (tensor<2xi32>) "
            "-> tensor<2xi8>",
            "C4:"},
        Violation{"requantize_C5", "%a: tensor<2xi32>",
                  "%0 = nn.requantize %a {scales = array<f32: 1.0>, divisor = 0.0 : f32, qmin = 0 : i32, qmax = 1 : "
                  "i32} : (tensor<2xi32>) -> tensor<2xi8>",
                  "C5: the divisor must be positive and finite"},
        Violation{"requantize_C5_infinite", "%a: tensor<2xi32>",
                  "%0 = nn.requantize %a {scales = array<f32: 1.0>, divisor = 0x7F800000 : f32, qmin = 0 : i32, qmax = "
                  "1 : i32} : (tensor<2xi32>) -> tensor<2xi8>",
                  "C5: the divisor must be positive and finite"},
        Violation{"requantize_C5_multipliers", "%a: tensor<2xi32>",
                  "%0 = nn.requantize %a {multipliers = array<i32: 1>, shifts = array<i32: 0>, divisor = 2.0 : f32, "
                  "qmin = 0 : i32, qmax = 1 : i32} : (tensor<2xi32>) -> tensor<2xi8>",
                  "C5: a divisor goes with scales"},
        Violation{"lookup_C1", "%a: tensor<2xui16>, %t: tensor<256xui16>",
                  "%0 = nn.lookup %a, %t : (tensor<2xui16>, tensor<256xui16>) -> tensor<2xui16>", "C1:"},
        Violation{"lookup_C2_i16", "%a: tensor<2xi16>, %t: tensor<256xi16>",
                  "%0 = nn.lookup %a, %t : (tensor<2xi16>, tensor<256xi16>) -> tensor<2xi16>", "C2:"},
        Violation{"lookup_C2", "%a: tensor<2xi8>, %t: tensor<255xi8>",
                  "%0 = nn.lookup %a, %t : (tensor<2xi8>, tensor<255xi8>) -> tensor<2xi8>", "C2:"},
        Violation{"lookup_C3", "%a: tensor<2xi8>, %t: tensor<256xi8>",
                  "%0 = nn.lookup %a, %t : (tensor<2xi8>, tensor<256xi8>) -> tensor<3xi8>", "C3:"}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Products, Verifier,
    testing::Values(
        Violation{"matmul_C1", "%a: tensor<2xf32>, %b: tensor<2x2xf32>",
                  "%0 = nn.matmul %a, %b : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>", "C1:"},
        Violation{"matmul_C2", "%a: tensor<2x3xf32>, %b: tensor<2x2xf32>",
                  "%0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>", "C2:"},
        Violation{"matmul_C3", "%a: tensor<2x2xf32>, %c: tensor<3xf32>",
                  "%0 = nn.matmul %a, %a, %c : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<3xf32>) -> tensor<2x2xf32>",
                  "C3:"},
        Violation{"matmul_C4", "%a: tensor<2x2xi8>",
                  "%0 = nn.matmul %a, %a {rhs_zero_points = array<i32: 1, 2, 3>} : (tensor<2x2xi8>, tensor<2x2xi8>) -> "
                  "tensor<2x2xi32>",
                  "C4:"},
        Violation{"matmul_C5", "%a: tensor<2x2xf32>",
                  "%0 = nn.matmul %a, %a {lhs_group = 2 : i64, transpose_lhs} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
                  "C5: groups of 2 of a transposed f32[2, 2]"},
        Violation{"matmul_C5_type", "%a: tensor<2x2xf16>",
                  "%0 = nn.matmul %a, %a {lhs_group = 2 : i64} : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>",
                  "C5: groups of 2 of f16[2, 2]"},
        Violation{"matmul_C5_scales", "%a: tensor<2x2xf32>",
                  "%0 = nn.matmul %a, %a {lhs_half_scales} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
                  "C5: groups of 0 of f32[2, 2]"},
        Violation{"matmul_types", "%a: tensor<2x2xi64>",
                  "%0 = nn.matmul %a, %a : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>",
                  "unsupported element types"},
        Violation{"expert_matmul_C1", "%a: tensor<2x1x3xf32>, %b: tensor<4x5x3xf16>, %e: tensor<2x1xi64>",
                  "%0 = nn.expert_matmul %a, %b, %e : (tensor<2x1x3xf32>, tensor<4x5x3xf16>, tensor<2x1xi64>) -> "
                  "tensor<2x1x5xf32>",
                  "C1:"},
        Violation{"expert_matmul_C2", "%a: tensor<2x1x3xf32>, %b: tensor<4x5x2xf32>, %e: tensor<2x1xi64>",
                  "%0 = nn.expert_matmul %a, %b, %e : (tensor<2x1x3xf32>, tensor<4x5x2xf32>, tensor<2x1xi64>) -> "
                  "tensor<2x1x5xf32>",
                  "C2:"},
        Violation{"expert_matmul_C3", "%a: tensor<2x2x3xf32>, %b: tensor<4x5x3xf32>, %e: tensor<2x3xi64>",
                  "%0 = nn.expert_matmul %a, %b, %e : (tensor<2x2x3xf32>, tensor<4x5x3xf32>, tensor<2x3xi64>) -> "
                  "tensor<2x3x5xf32>",
                  "C3:"},
        Violation{"conv_C1", "%a: tensor<2x2xf32>, %f: tensor<2x2xf32>",
                  "%0 = nn.conv %a, %f {" WINDOW("1", "1", "0", "0") "} : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
                                                                     "tensor<2x2xf32>",
                  "C1:"},
        Violation{"conv_C2", "%a: tensor<1x4x4xf32>, %f: tensor<2x1x3xf32>",
                  "%0 = nn.conv %a, %f {" WINDOW("1", "1", "0", "0") "} : (tensor<1x4x4xf32>, tensor<2x1x3xf32>) -> "
                                                                     "tensor<1x4x2xf32>",
                  "C2:"},
        Violation{"conv_C3", "%a: tensor<1x4x4xf32>, %f: tensor<2x1x4xf32>",
                  "%0 = nn.conv %a, %f {" WINDOW("0", "1", "0", "0") "} : (tensor<1x4x4xf32>, tensor<2x1x4xf32>) -> "
                                                                     "tensor<1x4x2xf32>",
                  "C3:"},
        Violation{"conv_C4", "%a: tensor<1x4x4xf32>, %f: tensor<2x3x4xf32>",
                  "%0 = nn.conv %a, %f {" WINDOW("1", "2", "0", "0") "} : (tensor<1x4x4xf32>, tensor<2x3x4xf32>) -> "
                                                                     "tensor<1x1x2xf32>",
                  "C4:"},
        Violation{"conv_C5", "%a: tensor<1x4x4xf32>, %f: tensor<2x1x4xf32>, %c: tensor<3xf32>",
                  "%0 = nn.conv %a, %f, %c {" WINDOW("1", "1", "0", "0") "} : (tensor<1x4x4xf32>, tensor<2x1x4xf32>, "
                                                                         "tensor<3xf32>) -> tensor<1x4x2xf32>",
                  "C5:"},
        Violation{"conv_transpose_C6", "%a: tensor<1x1x4xf32>, %f: tensor<2x1x4xf32>",
                  "%0 = nn.conv_transpose %a, %f {" WINDOW(
                      "1", "1", "1", "0") ", output_pads = array<i64: 0>} : "
                                          "(tensor<1x1x4xf32>, tensor<2x1x4xf32>) -> tensor<1x1x2xf32>",
                  "C6:"},
        Violation{"max_pool_C1", "%a: tensor<2x2xf32>",
                  "%0 = nn.max_pool %a {window = array<i64: 1>, " WINDOW("1", "1", "0", "0") "} : (tensor<2x2xf32>) -> "
                                                                                             "tensor<2x2xf32>",
                  "C1:"},
        Violation{
            "max_pool_C3", "%a: tensor<1x4x1xf32>",
            "%0 = nn.max_pool %a {window = array<i64: 0>, " WINDOW("1", "1", "0", "0") "} : (tensor<1x4x1xf32>) -> "
                                                                                       "tensor<1x4x1xf32>",
            "C3:"},
        Violation{
            "avg_pool_C4", "%a: tensor<1x4x1xf32>",
            "%0 = nn.avg_pool %a {window = array<i64: 5>, " WINDOW("1", "1", "0", "0") "} : (tensor<1x4x1xf32>) -> "
                                                                                       "tensor<1x1x1xf32>",
            "C4:"},
        Violation{"resize_C1", "%a: tensor<2xf32>",
                  "%0 = nn.resize %a " RESIZE("") " : (tensor<2xf32>) -> tensor<2x2xf32>", "C1:"},
        Violation{"resize_C2", "%a: tensor<2xf32>",
                  "%0 = nn.resize %a " RESIZE(": 0.0") " : (tensor<2xf32>) -> tensor<2xf32>", "C2:"},
        Violation{"resize_C3", "%a: tensor<2xf32>",
                  "%0 = nn.resize %a " RESIZE("") " : (tensor<2xf32>) -> tensor<2xf16>", "C3:"},
        Violation{"grid_sample_C1", "%a: tensor<1x2x2x1xf32>, %g: tensor<2x1x1x2xf32>",
                  "%0 = nn.grid_sample %a, %g {mode = #nn.resize_mode<linear>, padding = #nn.sample_padding<zeros>} : "
                  "(tensor<1x2x2x1xf32>, tensor<2x1x1x2xf32>) -> tensor<2x1x1x1xf32>",
                  "C1:"},
        Violation{"grid_sample_C2", "%a: tensor<1x2x2x1xf32>, %g: tensor<1x1x1x3xf32>",
                  "%0 = nn.grid_sample %a, %g {mode = #nn.resize_mode<linear>, padding = #nn.sample_padding<zeros>} : "
                  "(tensor<1x2x2x1xf32>, tensor<1x1x1x3xf32>) -> tensor<1x1x1x1xf32>",
                  "C2:"},
        Violation{"grid_sample_C3", "%a: tensor<1x2x2x1xi8>, %g: tensor<1x1x1x2xf32>",
                  "%0 = nn.grid_sample %a, %g {mode = #nn.resize_mode<linear>, padding = #nn.sample_padding<zeros>} : "
                  "(tensor<1x2x2x1xi8>, tensor<1x1x1x2xf32>) -> tensor<1x1x1x1xi8>",
                  "must be ranked tensor of"}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Norm, Verifier,
    testing::Values(
        Violation{"reduce_C1", "%a: tensor<2x2xf32>",
                  "%0 = nn.reduce <sum> %a {axes = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<f32>", "C1:"},
        Violation{"arg_reduce_C1", "%a: tensor<2xf32>",
                  "%0 = nn.arg_reduce <max> %a {axis = 1 : i64} : (tensor<2xf32>) -> tensor<i64>", "C1:"},
        Violation{"arg_reduce_C2", "%a: tensor<0xf32>",
                  "%0 = nn.arg_reduce <max> %a {axis = 0 : i64} : (tensor<0xf32>) -> tensor<i64>", "C2:"},
        Violation{"softmax_C1", "%a: tensor<2xf32>",
                  "%0 = nn.softmax %a {axis = -1 : i64} : (tensor<2xf32>) -> tensor<2xf32>", "C1:"},
        Violation{"softmax_C2", "%a: tensor<2xi8>",
                  "%0 = nn.softmax %a {axis = 0 : i64} : (tensor<2xi8>) -> tensor<2xi8>", "must be ranked tensor of"},
        Violation{"layer_norm_C1", "%a: tensor<2xf32>",
                  "%0 = nn.layer_norm %a {axis = 1 : i64, epsilon = 0.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>",
                  "C1:"},
        Violation{
            "layer_norm_C2", "%a: tensor<2xf32>, %s: tensor<3xf32>",
            "%0 = nn.layer_norm %a scale %s {axis = 0 : i64, epsilon = 0.0 : f32} : (tensor<2xf32>, tensor<3xf32>) "
            "-> tensor<2xf32>",
            "C2:"},
        Violation{"cumsum_C1", "%a: tensor<2xf32>",
                  "%0 = nn.cumsum %a {axis = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>", "C1:"},
        Violation{
            "top_k_C1", "%a: tensor<2xf32>",
            "%0, %1 = nn.top_k %a {k = 1 : i64, axis = 1 : i64} : (tensor<2xf32>) -> (tensor<1xf32>, tensor<1xi64>)",
            "C1:"},
        Violation{
            "top_k_C2", "%a: tensor<2xf32>",
            "%0, %1 = nn.top_k %a {k = 3 : i64, axis = 0 : i64} : (tensor<2xf32>) -> (tensor<3xf32>, tensor<3xi64>)",
            "C2:"}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Movement, Verifier,
    testing::Values(
        Violation{"transpose_C1", "%a: tensor<2x3xf32>",
                  "%0 = nn.transpose %a {perm = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>", "C1:"},
        Violation{"reshape_C1", "%a: tensor<2xf32>", "%0 = nn.reshape %a : (tensor<2xf32>) -> tensor<2xi32>", "C1:"},
        Violation{"reshape_C2", "%a: tensor<2xf32>", "%0 = nn.reshape %a : (tensor<2xf32>) -> tensor<3xf32>", "C2:"},
        Violation{"broadcast_C1", "%a: tensor<1xf32>", "%0 = nn.broadcast %a : (tensor<1xf32>) -> tensor<2xi8>", "C1:"},
        Violation{"broadcast_C2", "%a: tensor<2xf32>", "%0 = nn.broadcast %a : (tensor<2xf32>) -> tensor<3xf32>",
                  "C2:"},
        Violation{"slice_C1_count", "%a: tensor<2xf32>",
                  "%0 = nn.slice %a {starts = array<i64>, steps = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>",
                  "C1:"},
        Violation{"slice_C1_step", "%a: tensor<2xf32>",
                  "%0 = nn.slice %a {starts = array<i64: 0>, steps = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>",
                  "C1: step 0"},
        Violation{"slice_C2", "%a: tensor<2xf32>",
                  "%0 = nn.slice %a {starts = array<i64: 0>, steps = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xi8>",
                  "C2:"},
        Violation{"slice_C3", "%a: tensor<2xf32>",
                  "%0 = nn.slice %a {starts = array<i64: 1>, steps = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>",
                  "C3:"},
        Violation{"concat_C1", "", "%0 = nn.concat {axis = 0 : i64} : () -> tensor<0xf32>", "C1:"},
        Violation{"concat_C2", "%a: tensor<2x2xf32>, %b: tensor<2x3xf32>",
                  "%0 = nn.concat %a, %b {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>",
                  "C2:"},
        Violation{"concat_C3", "%a: tensor<2xf32>",
                  "%0 = nn.concat %a {axis = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>", "C3:"},
        Violation{"pad_C1", "%a: tensor<2xf32>",
                  "%0 = nn.pad %a {low = array<i64>, high = array<i64: 1>} : (tensor<2xf32>) -> tensor<3xf32>", "C1:"},
        Violation{"pad_C2", "%a: tensor<2xf32>",
                  "%0 = nn.pad %a {low = array<i64: -2>, high = array<i64: -1>} : (tensor<2xf32>) -> tensor<0xf32>",
                  "C2:"},
        Violation{"pad_C3_reflect", "%a: tensor<3x2xf32>",
                  "%0 = nn.pad %a {low = array<i64: 0, 2>, high = array<i64: 0, 0>, mode = #nn.pad_mode<reflect>} : "
                  "(tensor<3x2xf32>) -> tensor<3x4xf32>",
                  "C3: reflect adds 2 to dimension 1 of f32[3, 2], at most 1 is possible"},
        Violation{"pad_C3_reflect_after_crop", "%a: tensor<4xf32>",
                  "%0 = nn.pad %a {low = array<i64: -3>, high = array<i64: 3>, mode = #nn.pad_mode<reflect>} : "
                  "(tensor<4xf32>) -> tensor<4xf32>",
                  "C3:"},
        Violation{"pad_C3_reflect_far", "%a: tensor<8x20x17x13xf32>",
                  "%0 = nn.pad %a {low = array<i64: 3, 0, 4, 1>, high = array<i64: 11, 1, 8, 0>, mode = "
                  "#nn.pad_mode<reflect>} : (tensor<8x20x17x13xf32>) -> tensor<22x21x29x14xf32>",
                  "C3: reflect adds 11 to dimension 0"},
        Violation{"pad_C3_symmetric", "%a: tensor<2xf32>",
                  "%0 = nn.pad %a {low = array<i64: 3>, high = array<i64: 0>, mode = #nn.pad_mode<symmetric>} : "
                  "(tensor<2xf32>) -> tensor<5xf32>",
                  "C3:"},
        Violation{"pad_C4", "%a: tensor<2xf32>, %v: tensor<i8>",
                  "%0 = nn.pad %a, %v {low = array<i64: 1>, high = array<i64: 0>} : (tensor<2xf32>, tensor<i8>) -> "
                  "tensor<3xf32>",
                  "C4:"},
        Violation{"gather_C1", "%a: tensor<2xf32>, %i: tensor<1xi64>",
                  "%0 = nn.gather %a, %i {axis = 1 : i64} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>", "C1:"},
        Violation{
            "gather_C2", "%a: tensor<2x2xf32>, %i: tensor<3x1xi64>",
            "%0 = nn.gather %a, %i {axis = 1 : i64, batch_dims = 1 : i64} : (tensor<2x2xf32>, tensor<3x1xi64>) -> "
            "tensor<2x1xf32>",
            "C2:"},
        Violation{"gather_C3", "%a: tensor<2xf32>, %i: tensor<1xf32>",
                  "%0 = nn.gather %a, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<1xf32>) -> tensor<1xf32>",
                  "must be ranked tensor of"},
        Violation{
            "gather_elements_C1", "%a: tensor<2xf32>, %i: tensor<1x1xi64>",
            "%0 = nn.gather_elements %a, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<1x1xi64>) -> tensor<1x1xf32>",
            "C1:"},
        Violation{"gather_elements_C2", "%a: tensor<2xf32>, %i: tensor<1xi64>",
                  "%0 = nn.gather_elements %a, %i {axis = 1 : i64} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>",
                  "C2:"},
        Violation{
            "gather_elements_C3", "%a: tensor<2x2xf32>, %i: tensor<1x3xi64>",
            "%0 = nn.gather_elements %a, %i {axis = 0 : i64} : (tensor<2x2xf32>, tensor<1x3xi64>) -> tensor<1x3xf32>",
            "C3:"},
        Violation{"gather_nd_C1", "%a: tensor<2xf32>, %i: tensor<1x2xi64>",
                  "%0 = nn.gather_nd %a, %i : (tensor<2xf32>, tensor<1x2xi64>) -> tensor<1xf32>", "C1:"},
        Violation{
            "gather_nd_C2", "%a: tensor<2x2xf32>, %i: tensor<3x1xi64>",
            "%0 = nn.gather_nd %a, %i {batch_dims = 1 : i64} : (tensor<2x2xf32>, tensor<3x1xi64>) -> tensor<3xf32>",
            "C2:"},
        Violation{
            "scatter_elements_C1", "%a: tensor<2xf32>, %i: tensor<1xi64>, %u: tensor<2xf32>",
            "%0 = nn.scatter_elements %a, %i, %u {axis = 0 : i64} : (tensor<2xf32>, tensor<1xi64>, tensor<2xf32>) -> "
            "tensor<2xf32>",
            "C1:"},
        Violation{
            "scatter_elements_C2", "%a: tensor<2xf32>, %i: tensor<1xi64>, %u: tensor<1xf32>",
            "%0 = nn.scatter_elements %a, %i, %u {axis = 1 : i64} : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> "
            "tensor<2xf32>",
            "C2:"},
        Violation{
            "scatter_elements_C3", "%a: tensor<2xf32>, %i: tensor<1xi64>, %u: tensor<1xf16>",
            "%0 = nn.scatter_elements %a, %i, %u {axis = 0 : i64} : (tensor<2xf32>, tensor<1xi64>, tensor<1xf16>) -> "
            "tensor<2xf32>",
            "C3:"},
        Violation{"scatter_nd_C1", "%a: tensor<2xf32>, %i: tensor<1x2xi64>, %u: tensor<1xf32>",
                  "%0 = nn.scatter_nd %a, %i, %u : (tensor<2xf32>, tensor<1x2xi64>, tensor<1xf32>) -> tensor<2xf32>",
                  "C1:"},
        Violation{"scatter_nd_C2", "%a: tensor<2xf32>, %i: tensor<1x1xi64>, %u: tensor<2xf32>",
                  "%0 = nn.scatter_nd %a, %i, %u : (tensor<2xf32>, tensor<1x1xi64>, tensor<2xf32>) -> tensor<2xf32>",
                  "C2:"},
        Violation{"scatter_nd_C3", "%a: tensor<2xf32>, %i: tensor<1x1xi64>, %u: tensor<1xi8>",
                  "%0 = nn.scatter_nd %a, %i, %u : (tensor<2xf32>, tensor<1x1xi64>, tensor<1xi8>) -> tensor<2xf32>",
                  "C3:"},
        Violation{"reverse_sequence_C1", "%a: tensor<2x2xf32>, %l: tensor<2xi64>",
                  "%0 = nn.reverse_sequence %a, %l {batch_axis = 0 : i64, time_axis = 0 : i64} : (tensor<2x2xf32>, "
                  "tensor<2xi64>) -> tensor<2x2xf32>",
                  "C1:"},
        Violation{"reverse_sequence_C2", "%a: tensor<2x2xf32>, %l: tensor<3xi64>",
                  "%0 = nn.reverse_sequence %a, %l {batch_axis = 0 : i64, time_axis = 1 : i64} : (tensor<2x2xf32>, "
                  "tensor<3xi64>) -> tensor<2x2xf32>",
                  "C2:"},
        Violation{"iota_C1", "", "%0 = nn.iota {axis = 1 : i64} : () -> tensor<2xi32>", "C1:"}),
    nameOf);

// What follows the operands' names: one activation for nn.rnn, two for nn.gru, three for nn.lstm.
#define CELL(n) "activations = [" CELL_##n "]"
#define CELL_1 "#nn.cell_activation<tanh>"
#define CELL_2 CELL_1 ", " CELL_1
#define CELL_3 CELL_2 ", " CELL_1

INSTANTIATE_TEST_SUITE_P(
    Recurrent, Verifier,
    testing::Values(
        Violation{"rnn_C1", "%x: tensor<3x2x4xf32>, %r: tensor<4x5xf32>",
                  "%0, %1 = nn.rnn %x, %r {" CELL(1) "} : (tensor<3x2x4xf32>, tensor<4x5xf32>) -> "
                  "(tensor<3x2x5xf32>, tensor<2x4xf32>)",
                  "C1: recurrent must be"},
        Violation{"rnn_C2", "%x: tensor<3x2x4xf32>, %r: tensor<4x4xf16>",
                  "%0, %1 = nn.rnn %x, %r {" CELL(1) "} : (tensor<3x2x4xf32>, tensor<4x4xf16>) -> "
                  "(tensor<3x2x4xf32>, tensor<2x4xf32>)",
                  "C2: element types differ: f32, f16"},
        Violation{"rnn_C3", "%x: tensor<3x2x4xf32>, %r: tensor<4x4xf32>",
                  "%0, %1 = nn.rnn %x, %r {" CELL(2) "} : (tensor<3x2x4xf32>, tensor<4x4xf32>) -> "
                  "(tensor<3x2x4xf32>, tensor<2x4xf32>)",
                  "C3: 1 activations"},
        Violation{"rnn_C4", "%x: tensor<3x2x4xf32>, %r: tensor<4x4xf32>, %l: tensor<3xi32>",
                  "%0, %1 = nn.rnn %x, %r lengths %l {" CELL(1) "} : (tensor<3x2x4xf32>, tensor<4x4xf32>, "
                  "tensor<3xi32>) -> (tensor<3x2x4xf32>, tensor<2x4xf32>)",
                  "C4: lengths"},
        Violation{"gru_C1", "%x: tensor<3x2x4xf32>, %r: tensor<4x4xf32>",
                  "%0, %1 = nn.gru %x, %r {" CELL(2) "} : (tensor<3x2x4xf32>, tensor<4x4xf32>) -> "
                  "(tensor<3x2x4xf32>, tensor<2x4xf32>)",
                  "C1: an input [T, B, 3 H]"},
        Violation{"gru_C1_candidate_bias", "%x: tensor<3x2x6xf32>, %r: tensor<6x2xf32>, %b: tensor<6xf32>",
                  "%0, %1 = nn.gru %x, %r candidate_bias %b {" CELL(2) "} : (tensor<3x2x6xf32>, tensor<6x2xf32>, "
                  "tensor<6xf32>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>)",
                  "C1: candidate_bias must be"},
        Violation{"gru_C2", "%x: tensor<3x2x6xf32>, %r: tensor<6x2xf64>",
                  "%0, %1 = nn.gru %x, %r {" CELL(2) "} : (tensor<3x2x6xf32>, tensor<6x2xf64>) -> "
                  "(tensor<3x2x2xf32>, tensor<2x2xf32>)",
                  "C2:"},
        Violation{"gru_C3", "%x: tensor<3x2x6xf32>, %r: tensor<6x2xf32>",
                  "%0, %1 = nn.gru %x, %r {" CELL(2) ", alphas = array<f32: 1.0>} : (tensor<3x2x6xf32>, "
                  "tensor<6x2xf32>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>)",
                  "C3: 2 activations with none or as many alphas"},
        Violation{"gru_C4", "%x: tensor<3x2x6xf32>, %r: tensor<6x2xf32>, %l: tensor<2x1xi32>",
                  "%0, %1 = nn.gru %x, %r lengths %l {" CELL(2) "} : (tensor<3x2x6xf32>, tensor<6x2xf32>, "
                  "tensor<2x1xi32>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>)",
                  "C4:"},
        Violation{"lstm_C1", "%x: tensor<3x2x8xf32>, %r: tensor<8x3xf32>",
                  "%0, %1, %2 = nn.lstm %x, %r {" CELL(3) "} : (tensor<3x2x8xf32>, tensor<8x3xf32>) -> "
                  "(tensor<3x2x3xf32>, tensor<2x3xf32>, tensor<2x2xf32>)",
                  "C1: recurrent must be"},
        Violation{"lstm_C1_initial_cell", "%x: tensor<3x2x8xf32>, %r: tensor<8x2xf32>, %c: tensor<1x2xf32>",
                  "%0, %1, %2 = nn.lstm %x, %r initial_cell %c {" CELL(3) "} : (tensor<3x2x8xf32>, tensor<8x2xf32>, "
                  "tensor<1x2xf32>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)",
                  "C1: initial_cell must be"},
        Violation{"lstm_C2", "%x: tensor<3x2x8xf32>, %r: tensor<8x2xf16>",
                  "%0, %1, %2 = nn.lstm %x, %r {" CELL(3) "} : (tensor<3x2x8xf32>, tensor<8x2xf16>) -> "
                  "(tensor<3x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)",
                  "C2:"},
        Violation{"lstm_C3", "%x: tensor<3x2x8xf32>, %r: tensor<8x2xf32>",
                  "%0, %1, %2 = nn.lstm %x, %r {" CELL(1) "} : (tensor<3x2x8xf32>, tensor<8x2xf32>) -> "
                  "(tensor<3x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)",
                  "C3:"},
        Violation{"lstm_C4", "%x: tensor<3x2x8xf32>, %r: tensor<8x2xf32>, %l: tensor<1xi64>",
                  "%0, %1, %2 = nn.lstm %x, %r lengths %l {" CELL(3) "} : (tensor<3x2x8xf32>, tensor<8x2xf32>, "
                  "tensor<1xi64>) -> (tensor<3x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)",
                  "C4:"}),
    nameOf);

/// Attention of operands %q, %k, %v and more; `rest` is what follows those three.
#define ATTENTION(rest, q, k, v, types)                                                                                \
  "%0 = nn.attention %q, %k, %v " rest " : (tensor<" q ">, tensor<" k ">, tensor<" v ">" types ") -> tensor<3x4x8xf32>"
#define QKV(q, k, v) "%q: tensor<" q ">, %k: tensor<" k ">, %v: tensor<" v ">"
#define UNIT "{scale = 1.0 : f32}"
#define USUAL QKV("3x4x8xf32", "5x2x8xf32", "5x2x8xf32")
#define USUALLY(rest, types) ATTENTION(rest, "3x4x8xf32", "5x2x8xf32", "5x2x8xf32", types)

INSTANTIATE_TEST_SUITE_P(
    Attention, Verifier,
    testing::Values(
        Violation{"attention_C1_rank", QKV("4x8xf32", "5x2x8xf32", "5x2x8xf32"), ATTENTION(UNIT, "4x8xf32", "5x2x8xf32", "5x2x8xf32", ""),
                  "C1: query, key and value need one rank"},
        Violation{"attention_C1_sizes", QKV("3x4x8xf32", "5x2x6xf32", "5x2x8xf32"),
                  ATTENTION(UNIT, "3x4x8xf32", "5x2x6xf32", "5x2x8xf32", ""), "do not fit: f32[3, 4, 8], f32[5, 2, 6], f32[5, 2, 8]"},
        Violation{"attention_C1_rows", QKV("3x4x8xf32", "5x2x8xf32", "6x2x8xf32"),
                  ATTENTION(UNIT, "3x4x8xf32", "5x2x8xf32", "6x2x8xf32", ""), "C1: query [..., T, H, D]"},
        Violation{"attention_C1_mask", USUAL ", %m: tensor<2x5xf32>", USUALLY("mask %m " UNIT, ", tensor<2x5xf32>"),
                  "C1: mask f32[2, 5] does not broadcast to [4, 3, 5]"},
        Violation{"attention_C1_sinks", USUAL ", %s: tensor<2xf32>", USUALLY("sinks %s " UNIT, ", tensor<2xf32>"),
                  "C1: slopes and sinks must be [4], found f32[2]"},
        Violation{"attention_C1_scales", QKV("3x4x8xf32", "5x2x8xi8", "5x2x8xf32") ", %s: tensor<5xf32>",
                  ATTENTION("key_scales %s " UNIT, "3x4x8xf32", "5x2x8xi8", "5x2x8xf32", ", tensor<5xf32>"),
                  "C1: scales of key must be [5, 2], found f32[5]"},
        Violation{"attention_C2", QKV("3x4x8xf32", "5x3x8xf32", "5x3x8xf32"), ATTENTION(UNIT, "3x4x8xf32", "5x3x8xf32", "5x3x8xf32", ""),
                  "C2: [4] query heads are no multiple of [3] key heads"},
        Violation{"attention_C3", QKV("3x4x8xf16", "5x2x8xf16", "5x2x8xf16"), ATTENTION(UNIT, "3x4x8xf16", "5x2x8xf16", "5x2x8xf16", ""),
                  "C3: f32 is needed, found f16[3, 4, 8]"},
        Violation{"attention_C4_type", QKV("3x4x8xf32", "5x2x8xi16", "5x2x8xf32"), ATTENTION(UNIT, "3x4x8xf32", "5x2x8xi16", "5x2x8xf32", ""),
                  "C4: key must be f32 or f16, or i8 or ui8 with scales, found i16 without scales"},
        Violation{"attention_C4_scales", QKV("3x4x8xf32", "5x2x8xf32", "5x2x4xui8"),
                  ATTENTION(UNIT, "3x4x8xf32", "5x2x8xf32", "5x2x4xui8", ""), "C4: value must be"},
        Violation{"attention_C5", USUAL ", %p: tensor<4xi64>", USUALLY("positions %p " UNIT, ", tensor<4xi64>"),
                  "C5: positions must be i32 or i64 [3], found i64[4]"},
        Violation{"attention_C6_window", USUAL, USUALLY("{scale = 1.0 : f32, window = 4 : i64}", ""), "C6: window and slopes need positions"},
        Violation{"attention_C6_negative", USUAL, USUALLY("{scale = 1.0 : f32, soft_cap = -1.0 : f32}", ""),
                  "C6: window and soft_cap must not be negative"}),
    nameOf);

/// A scan of 3 tokens and 4 heads of 2 channels; `rest` is what follows %x, %d, %a, %b, %c.
#define SCAN(rest, a, b, more)                                                                                         \
  "%0, %1 = nn.selective_scan %x, %d, %a, %b, %c " rest " : (tensor<3x4x2xf32>, tensor<3x4xf32>, tensor<" a ">, tensor<" b ">, " \
  "tensor<" b ">" more ") -> (tensor<3x4x2xf32>, tensor<5x4x2xf32>)"
#define SCANNED(a, b) "%x: tensor<3x4x2xf32>, %d: tensor<3x4xf32>, %a: tensor<" a ">, %b: tensor<" b ">, %c: tensor<" b ">"
#define MORE(name, type) SCANNED("5x4xf32", "3x2x5xf32") ", %" name ": tensor<" type ">"

INSTANTIATE_TEST_SUITE_P(
    StateSpace, Verifier,
    testing::Values(
        Violation{"causal_conv_C1", "%x: tensor<3x4xf32>, %f: tensor<1x4xf32>",
                  "%0, %1 = nn.causal_conv %x, %f : (tensor<3x4xf32>, tensor<1x4xf32>) -> (tensor<3x4xf32>, tensor<0x4xf32>)",
                  "C1: an input [T, C] and a filter [K, C] with K at least 2 are needed, found f32[3, 4] and f32[1, 4]"},
        Violation{"causal_conv_C1_bias", "%x: tensor<3x4xf32>, %f: tensor<2x4xf32>, %b: tensor<3xf32>",
                  "%0, %1 = nn.causal_conv %x, %f bias %b : (tensor<3x4xf32>, tensor<2x4xf32>, tensor<3xf32>) -> "
                  "(tensor<3x4xf32>, tensor<1x4xf32>)",
                  "C1: bias must be [4], found f32[3]"},
        Violation{"causal_conv_C1_initial", "%x: tensor<3x4xf32>, %f: tensor<2x4xf32>",
                  "%0, %1 = nn.causal_conv %x, %f initial %x : (tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>) -> "
                  "(tensor<3x4xf32>, tensor<1x4xf32>)",
                  "C1: initial must be [1, 4], found f32[3, 4]"},
        Violation{"causal_conv_C2", "%x: tensor<3x4xf32>, %f: tensor<2x4xf16>",
                  "%0, %1 = nn.causal_conv %x, %f : (tensor<3x4xf32>, tensor<2x4xf16>) -> (tensor<3x4xf32>, tensor<1x4xf32>)",
                  "C2: element types differ: f32, f16"},
        Violation{"selective_scan_C1", SCANNED("5x4xf32", "3x3x5xf32"), SCAN("", "5x4xf32", "3x3x5xf32", ""),
                  "C1: x [T, H, P], a [N, H] and b [T, G, N] with H a multiple of G are needed"},
        Violation{"selective_scan_C1_a", SCANNED("2x4xf32", "3x2x5xf32"), SCAN("", "2x4xf32", "3x2x5xf32", ""),
                  "C1: a must be [5, 4], found f32[2, 4]"},
        Violation{"selective_scan_C1_tokens", SCANNED("5x4xf32", "2x2x5xf32"), SCAN("", "5x4xf32", "2x2x5xf32", ""),
                  "C1: b must be [3, 2, 5], found f32[2, 2, 5]"},
        Violation{"selective_scan_C1_skip", MORE("s", "3xf32"), SCAN("skip %s", "5x4xf32", "3x2x5xf32", ", tensor<3xf32>"),
                  "C1: skip must be [4], found f32[3]"},
        Violation{"selective_scan_C1_gate", MORE("g", "3x2x4xf32"), SCAN("gate %g", "5x4xf32", "3x2x5xf32", ", tensor<3x2x4xf32>"),
                  "C1: gate must be [3, 4, 2], found f32[3, 2, 4]"},
        Violation{"selective_scan_C1_initial", MORE("i", "4x4x2xf32"),
                  SCAN("initial %i", "5x4xf32", "3x2x5xf32", ", tensor<4x4x2xf32>"), "C1: initial must be [5, 4, 2]"},
        Violation{"selective_scan_C2", MORE("s", "4xf64"), SCAN("skip %s", "5x4xf32", "3x2x5xf32", ", tensor<4xf64>"),
                  "C2: element types differ: f32, f64"},
        Violation{"selective_scan_C3", SCANNED("5x4xf32", "3x2x5xf32"),
                  SCAN("{delta_min = 2.0 : f32, delta_max = 1.0 : f32}", "5x4xf32", "3x2x5xf32", ""),
                  "C3: delta_min 2"}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Exec, Verifier,
    testing::Values(Violation{"dispatch_C1_missing", "%a: tensor<2xf32>",
                              "%0 = exec.dispatch \"x\" @nothing(%a) : (tensor<2xf32>) -> tensor<2xf32>",
                              "C1: no function @nothing"},
                    Violation{"dispatch_C1_types", "%a: tensor<2xf32>",
                              "%0 = exec.dispatch \"x\" @main(%a) : (tensor<2xf32>) -> tensor<2xf32>",
                              "C1: types differ"}),
    nameOf);

TEST(Dims, ConstraintsAreNamed) {
  std::string message;
  EXPECT_FALSE(parse(functionOf("%a: tensor<?x2xf32, #nn.dims<()[s0] -> (s0)>>", ""), message));
  EXPECT_NE(message.find("C1"), std::string::npos) << message;
  message.clear();
  EXPECT_FALSE(parse(functionOf("%a: tensor<?x2xf32, #nn.dims<()[s0] -> (s0, 3)>>", ""), message));
  EXPECT_NE(message.find("C2"), std::string::npos) << message;
}
