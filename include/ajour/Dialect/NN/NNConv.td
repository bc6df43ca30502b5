//===- NNConv.td - convolutions, pooling, resampling -----------------------===//

def NN_ConvOp : NN_InferredOp<"conv"> {
  let summary = "grouped convolution (cross-correlation)";
  let description = [{
    input [N, spatial..., C], filter [O, window..., C/groups], bias [O]; 1 to 3 spatial dimensions; result
    [N, (spatial + low + high - (dilation (window - 1) + 1)) / stride + 1, O]. Padding contributes 0
    (lhs_zero_point for integers). Element types and zero points as in nn.matmul, with O for N.
    C1: rank 3 to 5, equal ranks. C2: groups divides C and O, filter's last dimension is C/groups. C3: one
    stride >= 1, dilation >= 1, low and high padding >= 0 for each spatial dimension. C4: the window fits
    the padded input. C5: bias is [O].
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$filter, Optional<NN_Tensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I32Attr, "0">:$lhs_zero_point,
                       DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$rhs_zero_points);
  let results = (outs NN_Tensor:$result);
}

def NN_ConvTransposeOp : NN_InferredOp<"conv_transpose"> {
  let summary = "grouped transposed convolution";
  let description = [{
    input [N, spatial..., C], filter [O, window..., C/groups], bias [O]. Result spatial size:
    stride (in - 1) + dilation (window - 1) + 1 - low - high + output_pad. Element (y, o) sums
    input(x, c) filter(o, k, c) over all x, k with stride x + dilation k - low = y. Output channel o
    belongs to group o / (O/groups). Constraints as in nn.conv; C6: the result's sizes are positive.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$filter, Optional<NN_Tensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high,
                       DenseI64ArrayAttr:$output_pads, DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I32Attr, "0">:$lhs_zero_point,
                       DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$rhs_zero_points);
  let results = (outs NN_Tensor:$result);
}

class NN_PoolOp<string mnemonic, dag extra> : NN_InferredOp<mnemonic> {
  let arguments = !con((ins NN_Tensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                            DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high,
                            UnitAttr:$ceil_mode), extra);
  let results = (outs NN_Tensor:$result);
}

def NN_MaxPoolOp : NN_PoolOp<"max_pool", (ins)> {
  let summary = "maximum of each window";
  let description = [{
    input [N, spatial..., C]. Padding never wins. With ceil_mode the size is rounded up, but a window that
    would start beyond the input and its low padding is dropped. C1, C3, C4 as in nn.conv.
  }];
}

def NN_AvgPoolOp : NN_PoolOp<"avg_pool", (ins UnitAttr:$count_include_pad)> {
  let summary = "mean of each window";
  let description = [{
    As nn.max_pool. The divisor counts the window's elements inside the input, or with count_include_pad
    inside the padded input (never those that ceil_mode adds). A window without elements gives 0.
    Integers: halves round away from zero.
  }];
}

def NN_ResizeOp : NN_Op<"resize"> {
  let summary = "resampling of any dimensions";
  let description = [{
    The result type gives the sizes. `scales` holds out/in for each dimension: a coordinate divides by it
    in f32, and where a mode needs the result's length it is in * scale. Empty: the quotient and the
    length are those of the sizes, exactly. `roi` (tf_crop_and_resize): starts then ends for each
    dimension, normalised. Linear weights outside the input clamp to the edge; cubic uses coefficient `cubic_a`, weights outside are dropped and
    the rest renormalised with `exclude_outside`. tf_crop_and_resize outside gives `extrapolation`. A
    result of length 1 under pytorch_half_pixel reads coordinate 0; under align_corners too. Integers are
    computed in f32; linear and cubic results round half to even and saturate.
    C1: equal rank. C2: 0 or rank scales, all positive. C3: equal element types.
  }];
  let arguments = (ins NN_Tensor:$input, NN_ResizeModeAttr:$mode, NN_CoordinateModeAttr:$coordinate_mode,
                       NN_NearestModeAttr:$nearest_mode, DenseF32ArrayAttr:$scales,
                       DefaultValuedAttr<DenseF32ArrayAttr, "{}">:$roi, DefaultValuedAttr<F32Attr, "-0.75f">:$cubic_a,
                       UnitAttr:$exclude_outside, DefaultValuedAttr<F32Attr, "0.0f">:$extrapolation);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
}

def NN_GridSampleOp : NN_InferredOp<"grid_sample"> {
  let summary = "samples an image at given coordinates";
  let description = [{
    input [N, H, W, C], grid [N, Ho, Wo, 2] of (x, y) in [-1, 1]; result [N, Ho, Wo, C]. Nearest rounds half to
    even; cubic uses a = -0.75. C1: rank 4 and equal N. C2: grid's last dimension is 2. C3: float.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$grid, NN_ResizeModeAttr:$mode,
                       NN_SamplePaddingAttr:$padding, UnitAttr:$align_corners);
  let results = (outs NN_FloatTensor:$result);
}
