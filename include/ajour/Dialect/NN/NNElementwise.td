//===- NNElementwise.td - operations on elements ---------------------------===//

def NN_ConstantOp : NN_Op<"constant", [ConstantLike]> {
  let summary = "a tensor known at compile time";
  let description = [{C1: the value's type is the result's. C2: the shape is static. A boolean takes one byte.}];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_UnaryOp : NN_InferredOp<"unary"> {
  let summary = "element-wise function of one operand";
  let description = [{
    Result type: the operand's; `is_nan` and `is_inf` give i1. C1: transcendental kinds need a floating
    point operand. C2: `logical_not` needs i1. C3: `bitwise_not` needs an integer.
    Parameters: elu(alpha), leaky_relu(alpha), selu(alpha, gamma = beta), celu(alpha),
    thresholded_relu(alpha), hard_sigmoid(alpha, beta) = max(0, min(1, alpha x + beta)),
    shrink(lambda = alpha, bias = beta), is_inf(alpha != 0 detects -inf, beta != 0 detects +inf).
    `round` rounds halves to even. hard_swish(x) = x max(0, min(6, x + 3)) / 6. gelu uses erf; gelu_tanh
    the tanh form.
  }];
  let arguments = (ins NN_UnaryKindAttr:$kind, NN_Tensor:$input, DefaultValuedAttr<F32Attr, "0.0f">:$alpha,
                       DefaultValuedAttr<F32Attr, "0.0f">:$beta);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::ajour::nn::UnaryKind":$kind, "::mlir::Value":$input,
                                 CArg<"float", "0.0f">:$alpha, CArg<"float", "0.0f">:$beta)>];
  let hasVerifier = 1;
}

def NN_BinaryOp : NN_InferredOp<"binary"> {
  let summary = "element-wise function of two operands with broadcasting";
  let description = [{
    C1: equal element types. C2: broadcastable shapes. Integer arithmetic wraps. Integer `div` truncates,
    `floor_div` rounds down; `floor_mod` has the divisor's sign, `trunc_mod` the dividend's; all four give 0
    for a divisor of 0. An integer `pow` with a negative exponent is 1 / x^n truncated (x = 0: 0). The
    `bit_` kinds are logical on i1, which has `min` and `max` besides and no arithmetic; floating point has
    no `bit_` and shift kinds, integers no `atan2`. `shift_right` is arithmetic on signed types; a count
    that is negative or at least the width leaves 0, or copies of the sign.
    `prelu`(x, slope) = x < 0 ? slope x : x. `min` and `max` give NaN when an operand is NaN.
  }];
  let arguments = (ins NN_BinaryKindAttr:$kind, NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::ajour::nn::BinaryKind":$kind, "::mlir::Value":$lhs, "::mlir::Value":$rhs)>];
}

def NN_CompareOp : NN_InferredOp<"compare"> {
  let summary = "element-wise comparison with broadcasting";
  let description = [{C1: equal element types. C2: broadcastable shapes. Comparisons with NaN are false but for `ne`.}];
  let arguments = (ins NN_CompareKindAttr:$kind, NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_BoolTensor:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::ajour::nn::CompareKind":$kind, "::mlir::Value":$lhs, "::mlir::Value":$rhs)>];
}

def NN_SelectOp : NN_InferredOp<"select"> {
  let summary = "condition ? lhs : rhs for each element, with broadcasting";
  let description = [{C1: lhs and rhs have equal element types. C2: broadcastable shapes.}];
  let arguments = (ins NN_BoolTensor:$condition, NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$result);
}

def NN_CastOp : NN_Op<"cast"> {
  let summary = "numeric conversion of each element";
  let description = [{
    C1: equal shapes. Float to integer truncates towards zero and saturates (NaN: 0); integer to narrower
    integer wraps; to i1: x != 0; from i1: 0 or 1; float to float rounds to nearest even.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Type":$elementType)>];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_ClampOp : NN_InferredOp<"clamp"> {
  let summary = "max(low, min(high, x)) with constant limits";
  let description = [{Limits are written as f64 and converted to the element type. NaN stays NaN. C1: low <= high.}];
  let arguments = (ins NN_Tensor:$input, F64Attr:$low, F64Attr:$high);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
}

def NN_QuantizeOp : NN_Op<"quantize"> {
  let summary = "real to quantised integer: saturate(round_half_even(x / scale) + zero_point)";
  let description = [{
    Parameters are per tensor (one each) or per channel along `axis` (one for each index). C1: float in,
    integer out, equal shapes. NaN gives the lowest value. C2: 1 or dim(axis) scales, as many zero points. C3: scales are positive
    and finite. C4: zero points lie in the result's range.
  }];
  let arguments = (ins NN_FloatTensor:$input, DenseF32ArrayAttr:$scales, DenseI32ArrayAttr:$zero_points,
                       DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs NN_IntTensor:$result);
  let hasVerifier = 1;
}

def NN_DequantizeOp : NN_Op<"dequantize"> {
  let summary = "quantised integer to real: (x - zero_point) * scale";
  let description = [{As nn.quantize. Parameters in groups are those of nn.dequantize_grouped.}];
  let arguments = (ins NN_IntTensor:$input, DenseF32ArrayAttr:$scales, DenseI32ArrayAttr:$zero_points,
                       DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs NN_FloatTensor:$result);
  let hasVerifier = 1;
}

def NN_RequantizeOp : NN_Op<"requantize"> {
  let summary = "accumulator to quantised integer";
  let description = [{
    Either `scales` (float form: saturate(round_half_even((f32(x) * scale) / divisor) + zero_point), every step
    rounded to f32) or `multipliers` with `shifts` (fixed-point form: x * multiplier * 2^(shift - 31)). With a
    divisor the float form is the dequantisation of a sum by the scales of its two factors followed by the
    quantisation by the result's scale, to the last bit. Fixed-point, operand of at most 32
    bits: x shifted left by max(shift, 0) in 32 bits (wrapping); then the doubling high product,
    (a b + (a b >= 0 ? 2^30 : 1 - 2^30)) / 2^31 truncated towards zero, which rounds halves upwards, with
    -2^31 times -2^31 saturated; then an arithmetic right shift by max(-shift, 0) that rounds halves away
    from zero. Shifts lie in [-31, 31], for 64-bit operands in [-31, 14].
    64-bit operand: the multiplier is first rounded to 16 bits, (m + 2^15) >> 16, at most 0x7fff, then
    (x m + 2^(14 - shift)) >> (15 - shift). Afterwards zero_point is added and the result is limited to
    [qmin, qmax]. One value for all or one for each index of `axis` (negative: from the end).
    C1: integer in and out, equal shapes. C2: exactly one of the two forms. C3: 1 or dim(axis) values.
    C4: qmin <= qmax, both in the result's range. C5: a divisor other than 1 is positive, finite, and with `scales`.
  }];
  let arguments = (ins NN_IntTensor:$input, OptionalAttr<DenseF32ArrayAttr>:$scales,
                       DefaultValuedAttr<F32Attr, "1.0f">:$divisor,
                       OptionalAttr<DenseI32ArrayAttr>:$multipliers, OptionalAttr<DenseI32ArrayAttr>:$shifts,
                       DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<I32Attr, "0">:$zero_point,
                       I32Attr:$qmin, I32Attr:$qmax);
  let results = (outs NN_IntTensor:$result);
  let hasVerifier = 1;
}

def NN_LookupOp : NN_Op<"lookup"> {
  let summary = "table[x - lowest(x's type)] for an 8-bit operand; between two entries for a 16-bit one";
  let description = [{
    An i16 operand is read between entries 128 apart: with i = (x + 32768) / 128 (floored) and f the remainder,
    table[i] + (((table[i + 1] - table[i]) f + 64) >> 7) in i32, whose lower 16 bits are the result.
    C1: i8, ui8 or i16 operand. C2: the table has shape [256] and the result's element type; for i16 [513] and i16.
    C3: equal shapes.
  }];
  let arguments = (ins NN_IntTensor:$input, NN_Tensor:$table);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
}
