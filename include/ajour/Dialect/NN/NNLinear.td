//===- NNLinear.td - matrix products ---------------------------------------===//

def NN_MatmulOp : NN_InferredOp<"matmul"> {
  let summary = "batched matrix product with optional bias";
  let description = [{
    lhs [..., M, K] (or [..., K, M] with transpose_lhs), rhs [..., K, N] (or [..., N, K] with
    transpose_rhs), bias [N]; leading dimensions broadcast. Result [..., M, N].
    Floating point: equal element types, result the same. Integers: lhs i8, ui8, i16, i32; rhs i8, ui8 (i16, i32 with
    an equal lhs); (lhs - lhs_zero_point) (rhs - rhs_zero_points[n]) summed in i32, in i64 when lhs is i16.
    With `lhs_group` > 0 each group of so many elements of a row of lhs (the last one may be shorter) is first rounded to 8 bits, in f32: with a
    the largest magnitude in it, an element x becomes q s with q the integer nearest to x (127 / a), ties to even, and s = a / 127, rounded to f16 and back with
    `lhs_half_scales`; where a < 2^-120, q = 0. So a kernel may multiply 8-bit integers.
    C1: rank of both >= 2. C2: equal K. C3: bias is [N] of the result's type (i32 or i64 for an i64
    result). C4: 0, 1 or N rhs zero points. C5: `lhs_group` >= 0, and only of an f32 lhs that is not transposed; `lhs_half_scales` only with it.
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs, Optional<NN_Tensor>:$bias, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs, DefaultValuedAttr<I32Attr, "0">:$lhs_zero_point,
                       DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$rhs_zero_points,
                       DefaultValuedAttr<I64Attr, "0">:$lhs_group, UnitAttr:$lhs_half_scales);
  let results = (outs NN_Tensor:$result);
}

def NN_ExpertMatmulOp : NN_InferredOp<"expert_matmul"> {
  let summary = "products of rows with the weights of experts that were chosen for them";
  let description = [{
    lhs [T, S, K], or [T, 1, K] for a row that meets all its experts; rhs [E, N, K]: the weights of E experts; experts
    [T, S]: which of them each row meets, clamped to [0, E). Result [T, S, N]: result[t, s] = rhs[experts[t, s]] lhs[t, s].
    Only the weights of chosen experts are read.
    C1: ranks 3, 3 and 2, floating point factors of one element type. C2: equal K. C3: experts are integers [T, S], lhs has S or 1
    rows for each.
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs, NN_IntTensor:$experts);
  let results = (outs NN_Tensor:$result);
}
